/*
 * Any bytes as what the extender reads besides requests: objects for its caches, reservations, lists of events, the
 * operator's readiness file, sizes. The first byte chooses.
 *
 * Checked: what is cached needs neither text nor arena; a reservation that is asked for again keeps what we don't know in
 * it and says what we want; sizes and times are numbers that make sense; whatever isn't read has a reason.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "extender/cached_object.h"
#include "extender/event_lists.h"
#include "extender/limits.h"
#include "extender/readiness_file.h"
#include "extender/reservations.h"
#include "extender/storage_size.h"

enum { MAX_BYTES = 128 * 1024, ARENA_BYTES = 64 * 1024 * 1024, NODES = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* ---- caches ---- */

static const struct extender_settings SETTINGS = {
	.provisioner = SLICE_INIT("csi-baremetal"),
	.node_selector = SLICE_INIT("a=b"),
	.use_node_annotation = true,
	.use_external_annotation = true,
	.node_id_annotation = SLICE_INIT("id"),
};

static struct cached_object *cache(cached_object_decoder *decode, struct slice text)
{
	char *copy = memory_copy_text(text.length > 0 ? text.data : "", text.length);
	struct error err = { .code = ERROR_NONE };
	struct cached_object *object;
	struct arena arena;
	struct slice name;

	require(copy != NULL);
	arena_init(&arena, ARENA_BYTES);
	object = decode(slice_from(copy, text.length), &SETTINGS, &arena, &name, &err);
	require(object != NULL || err.text[0] != '\0');
	arena_destroy(&arena);
	memory_release(copy);
	return object;
}

static size_t sum_of(struct slice text)
{
	size_t sum = 0;

	for (size_t i = 0; i < text.length; i++)
		sum += (unsigned char)text.data[i];
	return sum;
}

static void fuzz_cached(struct slice text)
{
	static cached_object_decoder *const DECODERS[] = { cached_claim_decode, cached_class_decode,
		                                           cached_volume_decode, cached_node_decode };
	size_t sum = 0;

	for (size_t i = 0; i < sizeof DECODERS / sizeof DECODERS[0]; i++) {
		struct cached_object *object = cache(DECODERS[i], text);

		if (object == NULL)
			continue;
		require(object->uid.length > 0);
		/* Reads every byte, for the sanitizer. */
		sum += sum_of(object->uid) + sum_of(object->key);
		if (i == 0)
			sum += sum_of(object->claim.class_name) + sum_of(object->claim.phase) +
			       sum_of(object->claim.storage_group);
		else if (i == 1)
			sum += sum_of(object->class.provisioner) + sum_of(object->class.storage_type);
		else if (i == 2)
			sum += sum_of(object->volume_node_id);
		else
			sum += sum_of(object->node.id);
		if (i == 3)
			require((object->node.outcome == NODE_ID_FOUND) == (object->node.id.length > 0));
		memory_release(object);
	}
	require(sum != SIZE_MAX);
}

/* ---- reservations ---- */

/* A pod's request on three nodes. */
static void make_request(struct request *request, struct request_node nodes[NODES])
{
	static const char *const IDS[NODES] = { "id-1", "id-2", "id-3" };

	request_init(request, REQUEST_ARGS, &SETTINGS);
	request->args.has_pod = true;
	request->args.pod.metadata.namespace = SLICE("space");
	request->args.pod.metadata.name = SLICE("pod");
	for (size_t i = 0; i < NODES; i++)
		nodes[i] = (struct request_node){ .id = { NODE_ID_FOUND, slice_of(IDS[i]) } };
	request->nodes = nodes;
	request->node_count = NODES;
}

static void ask_again(const struct request *request, const struct capacity_plan *plan, enum reservation_reason reason,
                      const struct csi_available_capacity_reservation *reservation, struct arena *arena)
{
	struct csi_available_capacity_reservation again;
	struct buffer out;
	struct error err;

	buffer_init(&out, EXTENDER_RESERVATION_BYTES);
	require(reservation_print_again(request, plan, reason, reservation, arena, &out, &err));
	require(csi_available_capacity_reservation_from_json(buffer_slice(&out), arena, &again, &err));
	require(slice_equal_text(again.spec.status, "REQUESTED"));
	require(again.spec.has_node_requests && again.spec.node_requests.requested_count == NODES);
	require(again.spec.node_requests.reserved_count == reservation->spec.node_requests.reserved_count);
	require(again.unknown_count == reservation->unknown_count);
	require(again.spec.unknown_count == reservation->spec.unknown_count);
	require(slice_equal(again.metadata, reservation->metadata));
	buffer_destroy(&out);
}

static void fuzz_reservation(struct slice text)
{
	struct capacity_request wanted = {
		.name = SLICE("claim"), .storage_type = SLICE("HDD"), .size_bytes = 1024, .storage_group = SLICE("")
	};
	struct capacity_plan plan = { .requests = &wanted, .request_count = 1 };
	struct csi_available_capacity_reservation reservation;
	struct reservation_decision decision;
	struct request_node nodes[NODES];
	struct request request;
	struct arena arena;
	struct error err = { .code = ERROR_NONE };

	arena_init(&arena, ARENA_BYTES);
	if (!csi_available_capacity_reservation_from_json(text, &arena, &reservation, &err)) {
		require(err.text[0] != '\0');
		arena_destroy(&arena);
		return;
	}
	make_request(&request, nodes);
	require(reservation_decide(&request, &plan, &reservation, &arena, &decision, &err));
	require(decision.action != RESERVATION_CREATE && reservation_reason_text(decision.reason)[0] != '\0');
	require((decision.action == RESERVATION_PLACE) == (decision.matched != NULL));
	if (decision.action == RESERVATION_PLACE)
		require(decision.matched[0] || decision.matched[1] || decision.matched[2]);
	if (decision.action == RESERVATION_REPLACE)
		ask_again(&request, &plan, decision.reason, &reservation, &arena);
	arena_destroy(&arena);
}

/* ---- the rest ---- */

static void fuzz_events(struct slice text)
{
	struct schedule_times times = { 0 };
	struct error err = { .code = ERROR_NONE };

	if (event_lists_read(text, INT64_C(1700000000000000000), &times, &err))
		require(isfinite(times.first_seconds) && isfinite(times.since_last_seconds));
	else
		require(err.text[0] != '\0');
}

static void fuzz_readiness(struct slice text)
{
	struct error err = { .code = ERROR_NONE };

	require(readiness_file_check(text, SLICE("node-a"), &err) || err.text[0] != '\0');
}

static void fuzz_sizes(struct slice text)
{
	int64_t bytes = -1;
	struct error err = { .code = ERROR_NONE };

	if (!storage_size_from_quantity(text, &bytes, &err))
		require(err.code == ERROR_SYNTAX || err.code == ERROR_LIMIT);
	bytes = -1;
	if (storage_size_from_inline(text, &bytes))
		require(bytes >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned long blocks = memory_block_count();
	struct slice text;

	if (size == 0 || size > MAX_BYTES)
		return 0;
	text = slice_from(data + 1, size - 1);
	switch (data[0]) {
	case 'c':
		fuzz_cached(text);
		break;
	case 'e':
		fuzz_events(text);
		break;
	case 'f':
		fuzz_readiness(text);
		break;
	case 's':
		fuzz_sizes(text);
		break;
	default:
		fuzz_reservation(text);
		break;
	}
	require(memory_block_count() == blocks);
	return 0;
}
