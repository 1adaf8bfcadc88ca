/*
 * What a /filter call costs the extender, from the first byte of the body to the last of the answer, without network
 * and API server (design section 9): 1,000 full nodes of which 500 come back, 5,000 node names, and a body of 64 MiB
 * with the longest single turn of work. The node is one that a real scheduler sent, padded with container images.
 * Prints one JSON object; times are processor time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "extender/filter.h"
#include "gen/kube.gen.h"

enum {
	FULL_NODES = 1000,
	NODE_BYTES = 10 * 1024,
	NAMED_NODES = 5000,
	ROUNDS = 20,
	FEED_BYTES = 64 * 1024, /* what a stream reads at once */
	LARGE_BYTES = 64 * 1024 * 1024 - 64 * 1024,
	FILE_BYTES = 1024 * 1024,
};

static void die(const char *what)
{
	fprintf(stderr, "extender_bench: %s\n", what);
	exit(1);
}

static uint64_t processor_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* --- bodies --- */

static void read_file(const char *path, struct buffer *text)
{
	FILE *file = fopen(path, "rb");
	char *room = buffer_reserve(text, FILE_BYTES);

	if (file == NULL || room == NULL)
		die(path);
	buffer_advance(text, fread(room, 1, FILE_BYTES, file));
	fclose(file);
}

/* A node that a scheduler sent, cut behind the opening of its list of images. */
static struct slice node_head(struct slice recorded)
{
	struct slice node = recorded;
	const char *start = strstr(recorded.data, "\"Nodes\":{\"metadata\":{},\"items\":[{\"metadata\":");
	const char *end = start != NULL ? strstr(start, "},{\"metadata\":{\"name\":\"node-b\"") : NULL;

	if (start == NULL || end == NULL)
		die("the recorded request looks different");
	node.data = strchr(start, '[') + 1;
	node.length = (size_t)(end - node.data);
	return node;
}

static void append_node(struct buffer *out, struct slice head, size_t number, size_t bytes)
{
	static const char UID[] = "\"uid\":\"";
	size_t start = out->length;
	const char *uid = strstr(head.data, UID);

	/* {"metadata":{"name":"node-0001","uid":"… as recorded, then images until it is long enough */
	buffer_append_format(out, "{\"metadata\":{\"name\":\"node-%04zu\",\"uid\":\"uid-%08zu", number, number);
	uid = strchr(uid + sizeof UID - 1, '"');
	buffer_append(out, uid, (size_t)(head.data + head.length - uid));
	buffer_append_text(out, ",\"images\":[{}");
	while (out->length - start + 260 < bytes)
		buffer_append_format(out,
		                     ",{\"names\":[\"upstream.example.com/team/service-%zu@sha256:"
		                     "5d3a1f0f9c6e4c0d8b7a6958473625140f1e2d3c4b5a69788796a5b4c3d2e1f0\","
		                     "\"upstream.example.com/team/service-%zu:v1.24.7\"],\"sizeBytes\":%zu}",
		                     out->length, number, out->length * 977);
	buffer_append_text(out, "]}}");
}

#define POD                                                                                                        \
	"{\"Pod\":{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"},\"spec\":{\"volumes\":[{\"name\":\"d\"," \
	"\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}},"

static void make_full(struct buffer *body, struct slice head, size_t count, size_t bytes)
{
	buffer_append_text(body, POD "\"Nodes\":{\"metadata\":{},\"items\":[");
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buffer_append_char(body, ',');
		append_node(body, head, i, bytes);
	}
	buffer_append_text(body, "]},\"NodeNames\":null}\n");
	if (body->failed)
		die("out of memory");
}

static void make_names(struct buffer *body)
{
	buffer_append_text(body, POD "\"Nodes\":null,\"NodeNames\":[");
	for (size_t i = 0; i < NAMED_NODES; i++)
		buffer_append_format(body, "%s\"ip-10-0-0-0.region.compute.example-%04zu\"", i > 0 ? "," : "", i);
	buffer_append_text(body, "]}\n");
}

/* --- the cluster --- */

static bool find_claim(void *context, struct slice namespace, struct slice name, struct claim_view *ret_claim)
{
	(void)context;
	(void)namespace;
	(void)name;
	*ret_claim = (struct claim_view){ .has_class_name = true, .class_name = SLICE("hdd"), .size_bytes = 1 };
	return true;
}

static bool find_class(void *context, struct slice name, struct class_view *ret_class)
{
	(void)context;
	(void)name;
	*ret_class = (struct class_view){ .provisioner = SLICE("csi-baremetal"), .storage_type = SLICE("HDD") };
	return true;
}

static bool find_node(void *context, struct slice name, struct node_id *ret_id)
{
	const struct table *nodes = context;
	const char *id = table_find(nodes, name);

	if (id != NULL)
		*ret_id = (struct node_id){ NODE_ID_FOUND, slice_of(id) };
	return id != NULL;
}

/* A cache of nodes by name, as the extender has one. */
static void fill_nodes(struct table *nodes)
{
	char name[64];
	char id[32];

	table_init(nodes);
	for (size_t i = 0; i < NAMED_NODES; i++) {
		snprintf(name, sizeof name, "ip-10-0-0-0.region.compute.example-%04zu", i);
		snprintf(id, sizeof id, "uid-%08zu", i);
		if (!table_set(nodes, slice_of(name), memory_copy_text(id, strlen(id))))
			die("out of memory");
	}
}

/* A reservation that holds every second node. */
static void make_reservation(struct buffer *text, size_t nodes)
{
	buffer_append_text(text, "{\"spec\":{\"Namespace\":\"shop\",\"Status\":\"RESERVED\",\"ReservationRequests\":[{"
	                         "\"CapacityRequest\":{\"Name\":\"data\",\"StorageClass\":\"HDD\",\"Size\":1}}],"
	                         "\"NodeRequests\":{\"Reserved\":[\"none\"");
	for (size_t i = 0; i < nodes; i += 2)
		buffer_append_format(text, ",\"uid-%08zu\"", i);
	buffer_append_text(text, "]}}}");
}

/* --- a call --- */

struct call {
	const struct extender_settings *settings;
	const struct storage_view *view;
	struct slice body;
	struct slice reservation;
	uint64_t took_ns;
	uint64_t longest_ns; /* of one turn: a feed, or what comes behind the last */
	size_t peak_bytes;
	size_t answer_bytes;
};

static void note_turn(struct call *call, uint64_t start_ns)
{
	uint64_t took_ns = processor_ns() - start_ns;

	call->took_ns += took_ns;
	if (took_ns > call->longest_ns)
		call->longest_ns = took_ns;
}

static void feed(struct call *call, struct request *request)
{
	if (request_expect(request, call->body.length) != REQUEST_FED)
		die("the body is too large");
	for (size_t at = 0; at < call->body.length; at += FEED_BYTES) {
		struct slice piece = slice_from_offset(call->body, at);
		uint64_t start_ns = processor_ns();

		if (piece.length > FEED_BYTES)
			piece.length = FEED_BYTES;
		if (request_feed(request, piece) != REQUEST_FED)
			die("a piece of the body was refused");
		note_turn(call, start_ns);
	}
}

static void take_answer(struct call *call, struct answer *answer)
{
	static char sink[FEED_BYTES];
	struct slice piece;

	call->answer_bytes = 0;
	while (answer_next(answer, &piece)) {
		call->answer_bytes += piece.length;
		for (; piece.length > sizeof sink; piece = slice_from_offset(piece, sizeof sink))
			memcpy(sink, piece.data, sizeof sink);
		memcpy(sink, piece.data, piece.length);
	}
}

static void run_call(struct call *call)
{
	struct csi_available_capacity_reservation reservation;
	struct request request;
	struct filter filter;
	struct arena arena;
	struct error err;
	uint64_t start_ns;

	request_init(&request, REQUEST_ARGS, call->settings);
	feed(call, &request);
	start_ns = processor_ns();
	if (filter_start(&filter, call->settings, call->view, &request) != FILTER_READ)
		die(filter.answer.text.data);
	note_turn(call, start_ns);
	start_ns = processor_ns();
	arena_init(&arena, 64 * 1024 * 1024);
	if (!csi_available_capacity_reservation_from_json(call->reservation, &arena, &reservation, &err))
		die(err.text);
	if (filter_found(&filter, &reservation) != FILTER_ANSWER || !filter.placed)
		die("no node was placed");
	note_turn(call, start_ns);
	call->peak_bytes =
		request_held_bytes(&request) + filter.arena.used_bytes + filter.answer.text.capacity + arena.used_bytes;
	start_ns = processor_ns();
	take_answer(call, &filter.answer);
	call->took_ns += processor_ns() - start_ns; /* in the product each piece is a turn */
	arena_destroy(&arena);
	filter_destroy(&filter);
	request_destroy(&request);
}

/* The fastest of some rounds. */
static struct call measure(const struct extender_settings *settings, const struct storage_view *view, struct slice body,
                           size_t reserved, int rounds)
{
	struct call best = { .took_ns = UINT64_MAX };
	struct buffer reservation;

	buffer_init(&reservation, FILE_BYTES);
	make_reservation(&reservation, reserved);
	for (int i = 0; i < rounds; i++) {
		struct call call = { settings, view, body, buffer_slice(&reservation), 0, 0, 0, 0 };

		run_call(&call);
		if (call.took_ns < best.took_ns)
			best = call;
	}
	buffer_destroy(&reservation);
	return best;
}

int main(void)
{
	struct extender_settings settings = { .provisioner = SLICE("csi-baremetal") };
	struct table nodes;
	struct storage_view view = { &nodes, find_claim, find_class, find_node };
	struct buffer recorded;
	struct buffer full;
	struct buffer names;
	struct buffer large;

	buffer_init(&recorded, 2 * FILE_BYTES);
	buffer_init(&full, EXTENDER_BODY_BYTES);
	buffer_init(&names, EXTENDER_BODY_BYTES);
	buffer_init(&large, EXTENDER_BODY_BYTES);
	read_file(TESTS_DIR "/vectors/extender/recorded/ext-01-filter.json", &recorded);
	buffer_append_char(&recorded, '\0');
	fill_nodes(&nodes);

	struct slice head = node_head(buffer_slice(&recorded));

	head.length -= 1; /* the bracket of status, behind which the images go */
	make_full(&full, head, FULL_NODES, NODE_BYTES);
	make_names(&names);
	make_full(&large, head, LARGE_BYTES / (60 * 1024), 60 * 1024);

	struct call of_full = measure(&settings, &view, buffer_slice(&full), FULL_NODES, ROUNDS);
	struct call of_names = measure(&settings, &view, buffer_slice(&names), NAMED_NODES, ROUNDS);
	struct call of_large = measure(&settings, &view, buffer_slice(&large), FULL_NODES, 3);

	printf("{\"bench\":\"extender\","
	       "\"full\":{\"nodes\":%d,\"body_bytes\":%zu,\"answer_bytes\":%zu,\"ms\":%.2f,\"peak_bytes\":%zu,"
	       "\"bodies_in_memory\":%.3f,\"longest_turn_us\":%.0f},"
	       "\"names\":{\"nodes\":%d,\"body_bytes\":%zu,\"ms\":%.3f,\"longest_turn_us\":%.0f},"
	       "\"large\":{\"body_bytes\":%zu,\"ms\":%.1f,\"mb_per_s\":%.0f,\"bodies_in_memory\":%.3f,"
	       "\"longest_turn_us\":%.0f}}\n",
	       FULL_NODES, of_full.body.length, of_full.answer_bytes, (double)of_full.took_ns / 1e6, of_full.peak_bytes,
	       (double)of_full.peak_bytes / (double)of_full.body.length, (double)of_full.longest_ns / 1e3, NAMED_NODES,
	       of_names.body.length, (double)of_names.took_ns / 1e6, (double)of_names.longest_ns / 1e3,
	       of_large.body.length, (double)of_large.took_ns / 1e6,
	       (double)of_large.body.length * 1000 / (double)of_large.took_ns,
	       (double)of_large.peak_bytes / (double)of_large.body.length, (double)of_large.longest_ns / 1e3);
	for (struct table_entry *entry = table_next(&nodes, NULL); entry != NULL; entry = table_next(&nodes, entry))
		memory_release(entry->value);
	table_destroy(&nodes);
	buffer_destroy(&recorded);
	buffer_destroy(&full);
	buffer_destroy(&names);
	buffer_destroy(&large);
	return 0;
}
