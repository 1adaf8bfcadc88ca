#include "extender/reservations.h"

#include <stdio.h>
#include <string.h>

#include "extender/limits.h"
#include "extender/slice_set.h"

#define STATUS_REQUESTED SLICE("REQUESTED")
#define STATUS_RESERVED SLICE("RESERVED")
#define STATUS_REJECTED SLICE("REJECTED")

static bool no_memory(const struct request *request, struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a reservation on %zu nodes", request->node_count);
}

bool reservation_name(const struct extender_pod *pod, char *name, size_t size, struct error *err)
{
	const struct extender_pod_meta *meta = &pod->metadata;
	struct slice space = meta->namespace.length > 0 ? meta->namespace : SLICE("default");

	if (space.length + 1 + meta->name.length >= size)
		return error_set(err, ERROR_LIMIT, "the pod's namespace and name are longer than %zu characters",
		                 size - 2);
	if (memchr(space.data, '\0', space.length) != NULL ||
	    (meta->name.length > 0 && memchr(meta->name.data, '\0', meta->name.length) != NULL))
		return error_set(err, ERROR_SYNTAX, "the pod's namespace or name has a zero byte in it");
	snprintf(name, size, "%.*s-%.*s", SLICE_ARGS(space), SLICE_ARGS(meta->name));
	return true;
}

/* --- deciding --- */

static bool any_node_id(const struct request *request)
{
	for (size_t i = 0; i < request->node_count; i++) {
		if (request->nodes[i].id.outcome == NODE_ID_FOUND)
			return true;
	}
	return false;
}

static bool same_request(const struct capacity_request *wanted, const struct csi_reservation_request *there)
{
	const struct csi_capacity_request *request = &there->capacity_request;

	return there->has_capacity_request && slice_equal(wanted->name, request->name) &&
	       slice_equal(wanted->storage_type, request->storage_class) && wanted->size_bytes == request->size_bytes &&
	       slice_equal(wanted->storage_group, request->storage_group);
}

/*
 * Whether one of the pod's requests isn't in the reservation: then it is an earlier pod's of the same name. One that
 * the pod doesn't have any more is no reason: its claim got bound meanwhile. Equal requests (G9) count as one.
 */
static bool lacks_request(const struct capacity_plan *plan, const struct csi_reservation_spec *spec)
{
	for (size_t i = 0; i < plan->request_count; i++) {
		bool found = false;

		for (size_t j = 0; j < spec->reservation_requests_count && !found; j++)
			found = same_request(&plan->requests[i], &spec->reservation_requests[j]);
		if (!found)
			return true;
	}
	return false;
}

/*
 * Whether the reservation asks for something that the pod doesn't need any more. No node may have room for that as well:
 * asked for again and again, it would keep the pod waiting for ever.
 */
static bool has_gone_request(const struct capacity_plan *plan, const struct csi_reservation_spec *spec)
{
	for (size_t i = 0; i < spec->reservation_requests_count; i++) {
		bool found = false;

		for (size_t j = 0; j < plan->request_count && !found; j++)
			found = same_request(&plan->requests[j], &spec->reservation_requests[i]);
		if (!found)
			return true;
	}
	return false;
}

/* F18: which of the request's nodes are reserved. */
static bool match_nodes(const struct request *request, const struct csi_node_requests *node_requests,
                        struct arena *arena, bool **ret_matched, bool *ret_any, struct error *err)
{
	struct slice_set reserved;
	bool *matched = arena_allocate_array(arena, request->node_count, sizeof *matched);

	if (matched == NULL || !slice_set_make(&reserved, arena, node_requests->reserved_count))
		return no_memory(request, err);
	for (size_t i = 0; i < node_requests->reserved_count; i++)
		slice_set_add(&reserved, &node_requests->reserved[i]);
	*ret_any = false;
	for (size_t i = 0; i < request->node_count; i++) {
		const struct node_id *id = &request->nodes[i].id;

		matched[i] = id->outcome == NODE_ID_FOUND && slice_set_has(&reserved, id->id);
		*ret_any = *ret_any || matched[i];
	}
	*ret_matched = matched;
	return true;
}

static struct reservation_decision ask_again(const struct request *request, enum reservation_reason reason)
{
	if (!any_node_id(request))
		return (struct reservation_decision){ .reason = RESERVATION_NO_NODE_IDS };
	return (struct reservation_decision){ .action = RESERVATION_REPLACE, .reason = reason };
}

static bool decide_reserved(const struct request *request, const struct csi_reservation_spec *spec, struct arena *arena,
                            struct reservation_decision *ret_decision, struct error *err)
{
	struct reservation_decision place = { .action = RESERVATION_PLACE, .reason = RESERVATION_MATCHES };
	bool any;

	if (!match_nodes(request, &spec->node_requests, arena, &place.matched, &any, err))
		return false;
	*ret_decision = any ? place : ask_again(request, RESERVATION_NO_NODE_RESERVED);
	return true;
}

bool reservation_decide(const struct request *request, const struct capacity_plan *plan,
                        const struct csi_available_capacity_reservation *reservation, struct arena *arena,
                        struct reservation_decision *ret_decision, struct error *err)
{
	struct reservation_decision decision = { .reason = RESERVATION_WAITS };

	if (reservation == NULL) {
		decision.reason = any_node_id(request) ? RESERVATION_IS_NEW : RESERVATION_NO_NODE_IDS;
		if (decision.reason == RESERVATION_IS_NEW)
			decision.action = RESERVATION_CREATE;
		*ret_decision = decision;
		return true;
	}

	const struct csi_reservation_spec *spec = &reservation->spec;
	bool requested = slice_equal(spec->status, STATUS_REQUESTED);
	bool reserved = slice_equal(spec->status, STATUS_RESERVED);
	bool rejected = slice_equal(spec->status, STATUS_REJECTED);

	if (!slice_equal(spec->namespace, request->args.pod.metadata.namespace)) {
		decision.reason = RESERVATION_FOREIGN;
	} else if (!requested && !reserved && !rejected) {
		decision.action = RESERVATION_REFUSE;
		decision.reason = RESERVATION_STATUS_UNKNOWN;
		decision.status = spec->status;
	} else if (lacks_request(plan, spec)) {
		decision = ask_again(request, RESERVATION_LACKS_REQUEST);
	} else if (rejected) {
		decision = ask_again(request, RESERVATION_REJECTED);
	} else if (reserved) {
		return decide_reserved(request, spec, arena, ret_decision, err);
	}
	*ret_decision = decision;
	return true;
}

/* --- the objects --- */

/* F15 */
static bool list_ids(const struct request *request, struct arena *arena, struct csi_node_requests *node_requests,
                     struct error *err)
{
	struct slice *ids = arena_allocate_array(arena, request->node_count, sizeof *ids);
	size_t count = 0;

	if (ids == NULL)
		return no_memory(request, err);
	for (size_t i = 0; i < request->node_count; i++) {
		if (request->nodes[i].id.outcome == NODE_ID_FOUND)
			ids[count++] = request->nodes[i].id.id;
	}
	node_requests->requested = ids;
	node_requests->requested_count = count;
	return true;
}

static bool list_requests(const struct capacity_plan *plan, struct arena *arena, struct csi_reservation_spec *spec,
                          struct error *err)
{
	struct csi_reservation_request *requests = arena_allocate_array(arena, plan->request_count, sizeof *requests);

	if (requests == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a reservation of %zu volumes",
		                 plan->request_count);
	for (size_t i = 0; i < plan->request_count; i++) {
		const struct capacity_request *request = &plan->requests[i];

		requests[i].has_capacity_request = true;
		requests[i].capacity_request = (struct csi_capacity_request){
			.name = request->name,
			.storage_class = request->storage_type,
			.size_bytes = request->size_bytes,
			.storage_group = request->storage_group,
		};
	}
	spec->reservation_requests = requests;
	spec->reservation_requests_count = plan->request_count;
	return true;
}

/* The only metadata of a new object; what the API server gives is kept raw. */
static bool print_name(const char *name, struct arena *arena, struct slice *ret_metadata, struct error *err)
{
	struct kube_object_meta meta = {
		.name = slice_of(name),
		.creation_timestamp_ns = RFC3339_ZERO,
		.deletion_timestamp_ns = RFC3339_ZERO,
	};
	struct buffer text;
	bool ok;

	buffer_init(&text, EXTENDER_RESERVATION_BYTES);
	ok = kube_object_meta_to_json(&meta, &text, err);
	if (ok && !arena_copy(arena, buffer_slice(&text), ret_metadata))
		ok = error_set(err, ERROR_NO_MEMORY, "no memory for a reservation");
	buffer_destroy(&text);
	return ok;
}

bool reservation_print_new(const struct request *request, const struct capacity_plan *plan, const char *name,
                           struct arena *arena, struct buffer *out, struct error *err)
{
	struct csi_available_capacity_reservation object = {
		.kind = SLICE("AvailableCapacityReservation"),
		.api_version = SLICE("csi-baremetal.dell.com/v1"),
		.spec = {
			.namespace = request->args.pod.metadata.namespace,
			.status = STATUS_REQUESTED,
			.has_node_requests = true,
		},
	};

	return print_name(name, arena, &object.metadata, err) &&
	       list_ids(request, arena, &object.spec.node_requests, err) &&
	       list_requests(plan, arena, &object.spec, err) &&
	       csi_available_capacity_reservation_to_json(&object, out, err);
}

/* The requests as they were, without the capacity that was chosen for them. */
static bool clear_reservations(struct csi_reservation_spec *spec, struct arena *arena, struct error *err)
{
	size_t count = spec->reservation_requests_count;
	struct csi_reservation_request *requests = arena_allocate_array(arena, count, sizeof *requests);

	if (requests == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a reservation of %zu volumes", count);
	for (size_t i = 0; i < count; i++) {
		requests[i] = spec->reservation_requests[i];
		requests[i].reservations = NULL;
		requests[i].reservations_count = 0;
	}
	spec->reservation_requests = requests;
	return true;
}

bool reservation_print_again(const struct request *request, const struct capacity_plan *plan,
                             enum reservation_reason reason,
                             const struct csi_available_capacity_reservation *reservation, struct arena *arena,
                             struct buffer *out, struct error *err)
{
	struct csi_available_capacity_reservation object = *reservation;
	bool ok;

	object.spec.status = STATUS_REQUESTED;
	object.spec.has_node_requests = true;
	if (reason == RESERVATION_LACKS_REQUEST || has_gone_request(plan, &reservation->spec))
		ok = list_requests(plan, arena, &object.spec, err);
	else
		ok = clear_reservations(&object.spec, arena, err);
	return ok && list_ids(request, arena, &object.spec.node_requests, err) &&
	       csi_available_capacity_reservation_to_json(&object, out, err);
}

/* --- for the log, and failures --- */

const char *reservation_reason_text(enum reservation_reason reason)
{
	switch (reason) {
	case RESERVATION_IS_NEW:
		return "no reservation yet: asked for one";
	case RESERVATION_NO_NODE_IDS:
		return "no node has an id: nothing to ask for";
	case RESERVATION_WAITS:
		return "the controller hasn't answered yet";
	case RESERVATION_FOREIGN:
		return "the reservation of this name belongs to a pod of another namespace";
	case RESERVATION_LACKS_REQUEST:
		return "the reservation is for other volumes: asked anew";
	case RESERVATION_NO_NODE_RESERVED:
		return "none of these nodes is reserved: asked again";
	case RESERVATION_REJECTED:
		return "rejected: asked again";
	case RESERVATION_MATCHES:
		return "reserved";
	case RESERVATION_STATUS_UNKNOWN:
		return "unsupported reservation status";
	}
	return "";
}

bool reservation_failure_passes(int http_status)
{
	return http_status == 0 || http_status == 408 || http_status == 409 || http_status == 410 ||
	       http_status == 429 || http_status >= 500;
}
