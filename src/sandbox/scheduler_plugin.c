/*
 * Requests are checked and booked when they come; the answer follows when the real plugin would give it. Until then the
 * call waits with its own timer, and what it answers is what is reserved at that moment, so capacity freed meanwhile
 * counts.
 */
#include "sandbox/scheduler_plugin.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "net/http_server.h"
#include "sandbox/scheduler_capacity.h"

#define GIB_BYTES (UINT64_C(1) << 30)

enum {
	READ_BYTES_MAX = 1024,  /* surroundings 1.1.2 */
	BODY_BYTES_MAX = 65536, /* what is taken in, to be cut */
	ARENA_BYTES_MAX = 256 * 1024,
	ANSWER_BYTES_MAX = 1024,
	ECHO_MS = 10,    /* surroundings 1.8: no increase */
	GROWTH_MS = 100, /* an increase, granted at least in part */
	DENIAL_MS = 1000,
	GRANT_AGAIN_MS = 5000, /* surroundings 1.4.4 */
};

/* On the VM (surroundings 1.4.1). */
static const char APPROVED_KEY[] = "internal.autoscaling.neon.tech/resources-approved";

/* What older releases call a compute unit. */
static const struct resources OLD_UNIT = { .cpu_milli = 250, .mem_bytes = GIB_BYTES };

struct pending_call {
	struct pending_call *next;
	struct scheduler_plugin *plugin;
	struct http_call *call;
	struct loop_timer timer;
	char name_space[SCHEDULER_NAME_BYTES];
	char name[SCHEDULER_NAME_BYTES];
	uint32_t version; /* of the request */
	bool wants_more;  /* than the last permit */
	struct resources last_permit;
};

struct scheduler_plugin {
	struct loop *loop;
	struct address address;
	double speed;
	struct scheduler_plugin_handler handler;
	void *context;
	struct http_server *server; /* NULL during an outage */
	const struct plugin_release *release;
	struct scheduler_capacity capacity;
	struct pending_call *pending;
	struct faults *faults; /* NULL: none */
	struct loop_timer grant_timer;
	struct scheduler_plugin_counters counters;
};

static uint64_t scaled_ns(const struct scheduler_plugin *plugin, unsigned ms)
{
	return (uint64_t)((double)ms * NS_PER_MS / plugin->speed);
}

static void refuse(struct scheduler_plugin *plugin, struct http_call *call, int status, const char *text)
{
	plugin->counters.errors++;
	plugin->counters.malformed += status == 400 ? 1 : 0;
	http_call_respond(call, status, "text/plain", slice_of(text));
}

static void forget_pending(struct pending_call *pending)
{
	struct pending_call **place = &pending->plugin->pending;

	while (*place != pending)
		place = &(*place)->next;
	*place = pending->next;
	loop_timer_stop(pending->plugin->loop, &pending->timer);
	memory_release(pending);
}

static void answer(void *context)
{
	struct pending_call *pending = context;
	struct scheduler_plugin *plugin = pending->plugin;
	struct http_call *call = pending->call;
	const struct scheduler_pod *pod =
		scheduler_capacity_find(&plugin->capacity, slice_of(pending->name_space), slice_of(pending->name));
	struct buffer body;
	struct error err;

	if (pod == NULL) {
		forget_pending(pending);
		refuse(plugin, call, 404, "pod not found");
		return;
	}

	const uint32_t version = pending->version;
	struct scheduler_plugin_answer told = {
		.pod_name = pod->name,
		.wanted = pod->requested,
		.permit = pod->reserved,
		.denied = pending->wants_more && !resources_has_greater(pod->reserved, pending->last_permit),
	};

	forget_pending(pending);
	plugin->counters.version = version;
	if (told.denied)
		plugin->counters.denials++;
	buffer_init(&body, ANSWER_BYTES_MAX);
	if (plugin_release_write(version, told.permit, OLD_UNIT, pod->slot_bytes, &body, &err))
		http_call_respond(call, 200, "application/json", buffer_slice(&body));
	else
		refuse(plugin, call, 500, "request handler panicked");
	buffer_destroy(&body);
	if (plugin->handler.on_answer != NULL)
		plugin->handler.on_answer(plugin->context, &told);
}

static void annotate(struct scheduler_plugin *plugin, const struct scheduler_pod *pod, const char *key,
                     struct resources value)
{
	struct plugin_resources resources = { .cpu_milli = value.cpu_milli, .mem_bytes = value.mem_bytes };
	struct buffer json;
	struct error err;

	if (plugin->handler.on_annotate == NULL)
		return;
	buffer_init(&json, ANSWER_BYTES_MAX);
	if (plugin_resources_to_json(&resources, &json, &err))
		plugin->handler.on_annotate(plugin->context, pod->name, key, buffer_slice(&json));
	buffer_destroy(&json);
}

static struct resources resources_of(const struct plugin_resources *from)
{
	return (struct resources){ .cpu_milli = from->cpu_milli, .mem_bytes = from->mem_bytes };
}

/*
 * As older releases do (surroundings 1.7): at once, CPU to the milli and memory to the slot. A last permit, which came
 * with 2.1, is believed as it is later.
 */
static unsigned book_old(struct scheduler_plugin *plugin, struct scheduler_pod *pod,
                         const struct plugin_agent_request *request, struct pending_call *pending)
{
	pod->unit = (struct resources){ .cpu_milli = 1, .mem_bytes = pod->slot_bytes };
	pod->requested = resources_of(&request->resources);
	if (request->last_permit_presence == JSON_VALUE)
		pod->reserved = resources_of(&request->last_permit);
	pending->last_permit = pod->reserved;
	pending->wants_more = resources_has_greater(pod->requested, pod->reserved);
	scheduler_capacity_grant(&plugin->capacity, pod);
	return ECHO_MS;
}

/* Books the request and says after how long the real plugin would answer (surroundings 1.5). */
static unsigned book(struct scheduler_plugin *plugin, struct scheduler_pod *pod,
                     const struct plugin_agent_request *request, struct pending_call *pending)
{
	struct resources before = pod->reserved;
	bool same_wish = resources_equal(pod->requested, resources_of(&request->resources));

	if (!plugin->release->keeps_annotations)
		return book_old(plugin, pod, request, pending);
	pod->unit = resources_of(&request->compute_unit);
	pod->requested = resources_of(&request->resources);
	if (request->last_permit_presence == JSON_VALUE) {
		pod->reserved = resources_of(&request->last_permit);
		pending->last_permit = pod->reserved;
		pending->wants_more = resources_has_greater(pod->requested, pod->reserved);
	}
	scheduler_capacity_grant(&plugin->capacity, pod);

	annotate(plugin, pod, "autoscaling.neon.tech/scaling-unit", pod->unit);
	annotate(plugin, pod, "internal.autoscaling.neon.tech/resources-requested", pod->requested);
	annotate(plugin, pod, APPROVED_KEY, pod->reserved);

	if (request->last_permit_presence != JSON_VALUE)
		return same_wish && resources_equal(before, pod->reserved) ? DENIAL_MS : GROWTH_MS;
	if (!pending->wants_more)
		return ECHO_MS;
	return resources_has_greater(pod->reserved, pending->last_permit) ? GROWTH_MS : DENIAL_MS;
}

static void serve(struct scheduler_plugin *plugin, struct http_call *call, struct plugin_agent_request *request,
                  uint64_t delay_ns)
{
	struct scheduler_pod *pod =
		scheduler_capacity_find(&plugin->capacity, request->pod.namespace, request->pod.name);
	struct pending_call *pending;
	char text[PLUGIN_RELEASE_TEXT_BYTES];

	if (pod == NULL) {
		refuse(plugin, call, 404, "pod not found");
		return;
	}
	if (pod->node[0] == '\0') {
		refuse(plugin, call, 404, "pod's node is unknown");
		return;
	}
	if (!pod->is_vm) {
		refuse(plugin, call, 400, "pod is not associated with a VM");
		return;
	}
	if (!plugin_release_check_pod(plugin->release, request, pod->slot_bytes, text)) {
		refuse(plugin, call, 400, text);
		return;
	}
	plugin_release_to_bytes(plugin->release, pod->slot_bytes, request);
	pending = memory_allocate(sizeof *pending);
	if (pending == NULL) {
		refuse(plugin, call, 500, "request handler panicked");
		return;
	}
	pending->plugin = plugin;
	pending->call = call;
	pending->version = request->proto_version;
	memcpy(pending->name_space, pod->name_space, sizeof pending->name_space);
	memcpy(pending->name, pod->name, sizeof pending->name);
	pending->next = plugin->pending;
	plugin->pending = pending;
	http_call_set_context(call, pending);
	loop_timer_start(plugin->loop, &pending->timer,
	                 scaled_ns(plugin, book(plugin, pod, request, pending)) + delay_ns, answer, pending);
}

static void serve_or_fail(struct scheduler_plugin *plugin, struct http_call *call, struct plugin_agent_request *request)
{
	switch (plugin->faults != NULL ? faults_draw(plugin->faults, FAULTS_OF_PLUGIN) : FAULT_NONE) {
	case FAULT_PLUGIN_ERROR:
		refuse(plugin, call, 500, "request handler panicked");
		return;
	case FAULT_PLUGIN_CLOSED:
		plugin->counters.errors++;
		http_call_abort(call, true);
		return;
	case FAULT_PLUGIN_SLOW:
		serve(plugin, call, request, faults_slow_ns(plugin->faults));
		return;
	default:
		serve(plugin, call, request, 0);
	}
}

static void on_request(void *context, struct http_call *call)
{
	struct scheduler_plugin *plugin = context;
	struct slice body = http_call_body(call);
	struct plugin_agent_request request;
	struct arena arena;
	char text[PLUGIN_RELEASE_TEXT_BYTES];

	plugin->counters.requests++;
	if (!slice_equal_text(http_call_method(call), "POST")) {
		plugin->counters.errors++;
		plugin->counters.malformed++;
		http_call_respond(call, 400, "text/plain; charset=utf-8", SLICE("must be POST"));
		return;
	}
	if (body.length > READ_BYTES_MAX)
		body.length = READ_BYTES_MAX;
	arena_init(&arena, ARENA_BYTES_MAX);
	if (!plugin_release_read(plugin->release, body, &arena, &request))
		refuse(plugin, call, 400, "bad JSON");
	else if (!plugin_release_check(plugin->release, &request, text))
		refuse(plugin, call, 400, text);
	else
		serve_or_fail(plugin, call, &request);
	arena_destroy(&arena);
}

static void on_abort(void *context, struct http_call *call)
{
	struct pending_call *pending = http_call_context(call);

	(void)context;
	if (pending != NULL)
		forget_pending(pending);
}

static void grant_again(void *context)
{
	struct scheduler_plugin *plugin = context;

	for (size_t i = 0; i < plugin->capacity.pod_count && plugin->release->keeps_annotations; i++) {
		struct scheduler_pod *pod = plugin->capacity.pods[i];
		struct resources before = pod->reserved;

		if (!pod->is_vm)
			continue;
		scheduler_capacity_grant(&plugin->capacity, pod);
		if (!resources_equal(before, pod->reserved))
			annotate(plugin, pod, APPROVED_KEY, pod->reserved);
	}
	loop_timer_start(plugin->loop, &plugin->grant_timer, scaled_ns(plugin, GRANT_AGAIN_MS), grant_again, plugin);
}

static void on_accept_error(void *context, const struct error *err)
{
	const struct scheduler_plugin *plugin = context;

	if (plugin->handler.on_accept_error != NULL)
		plugin->handler.on_accept_error(plugin->context, err);
}

static bool open_server(struct scheduler_plugin *plugin, struct error *err)
{
	static const struct http_server_handler handler = { .on_request = on_request, .on_abort = on_abort };
	struct http_server_options options = { .address = plugin->address,
		                               .max_body_bytes = BODY_BYTES_MAX,
		                               .on_error = on_accept_error };

	plugin->server = http_server_start(plugin->loop, &options, &handler, plugin, err);
	if (plugin->server == NULL)
		return error_wrap(err, "scheduler plugin");
	/* A free port, once taken, stays ours over an outage. */
	return http_server_address(plugin->server, &plugin->address) ||
	       error_set(err, ERROR_SYSTEM, "scheduler plugin: its own address is unknown");
}

static void close_server(struct scheduler_plugin *plugin)
{
	while (plugin->pending != NULL)
		forget_pending(plugin->pending);
	http_server_destroy(plugin->server);
	plugin->server = NULL;
}

struct scheduler_plugin *scheduler_plugin_start(struct loop *loop, const struct address *address, double speed,
                                                const struct scheduler_plugin_handler *handler, void *context,
                                                struct error *err)
{
	struct scheduler_plugin *plugin = memory_allocate(sizeof *plugin);

	if (plugin == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory for the scheduler plugin");
		return NULL;
	}
	plugin->loop = loop;
	plugin->release = plugin_release_newest();
	plugin->address = *address;
	plugin->speed = speed;
	plugin->handler = *handler;
	plugin->context = context;
	if (!open_server(plugin, err)) {
		scheduler_plugin_destroy(plugin);
		return NULL;
	}
	loop_timer_start(loop, &plugin->grant_timer, scaled_ns(plugin, GRANT_AGAIN_MS), grant_again, plugin);
	return plugin;
}

void scheduler_plugin_be(struct scheduler_plugin *plugin, const struct plugin_release *release)
{
	plugin->release = release;
}

bool scheduler_plugin_address(const struct scheduler_plugin *plugin, struct address *ret_address)
{
	*ret_address = plugin->address;
	return plugin->server != NULL;
}

static bool copy_name(char target[SCHEDULER_NAME_BYTES], const char *text)
{
	size_t length = strlen(text);

	if (length >= SCHEDULER_NAME_BYTES)
		return false;
	memcpy(target, text, length + 1);
	return true;
}

bool scheduler_plugin_add_node(struct scheduler_plugin *plugin, const char *name, struct resources total,
                               struct error *err)
{
	struct scheduler_node node = { .total = total };

	if (!copy_name(node.name, name))
		return error_set(err, ERROR_LIMIT, "node name is longer than %d bytes", SCHEDULER_NAME_BYTES - 1);
	if (!scheduler_capacity_add_node(&plugin->capacity, &node))
		return error_set(err, ERROR_NO_MEMORY, "out of memory for node %s", name);
	return true;
}

bool scheduler_plugin_add_pod(struct scheduler_plugin *plugin, const struct scheduler_plugin_pod *pod,
                              struct error *err)
{
	struct scheduler_pod added = {
		.is_vm = pod->is_vm,
		.reserved = pod->use,
		.requested = pod->use,
		.overcommit_cpu_milli = pod->overcommit_cpu_milli,
		.overcommit_memory_milli = pod->overcommit_memory_milli,
		.maximum = pod->maximum,
		.slot_bytes = pod->slot_bytes != 0 ? pod->slot_bytes : GIB_BYTES,
	};

	if (added.overcommit_cpu_milli == 0)
		added.overcommit_cpu_milli = SCHEDULER_NORMAL_OVERCOMMIT_MILLI;
	if (added.overcommit_memory_milli == 0)
		added.overcommit_memory_milli = SCHEDULER_NORMAL_OVERCOMMIT_MILLI;
	if (!copy_name(added.name_space, pod->name_space) || !copy_name(added.name, pod->name) ||
	    !copy_name(added.node, pod->node == NULL ? "" : pod->node))
		return error_set(err, ERROR_LIMIT, "a name of pod %s is longer than %d bytes", pod->name,
		                 SCHEDULER_NAME_BYTES - 1);
	if (!scheduler_capacity_add_pod(&plugin->capacity, &added))
		return error_set(err, ERROR_NO_MEMORY, "out of memory for pod %s", pod->name);
	return true;
}

void scheduler_plugin_remove_pod(struct scheduler_plugin *plugin, const char *name_space, const char *name)
{
	scheduler_capacity_remove_pod(&plugin->capacity, slice_of(name_space), slice_of(name));
}

bool scheduler_plugin_reserved(const struct scheduler_plugin *plugin, const char *name_space, const char *name,
                               struct resources *ret_reserved)
{
	const struct scheduler_pod *pod =
		scheduler_capacity_find(&plugin->capacity, slice_of(name_space), slice_of(name));

	if (pod == NULL)
		return false;
	*ret_reserved = pod->reserved;
	return true;
}

struct scheduler_plugin_counters scheduler_plugin_counters(const struct scheduler_plugin *plugin)
{
	return plugin->counters;
}

/* What an older release does when it starts and finds VMs running (surroundings 1.7.3). */
static void reserve_maximums(struct scheduler_plugin *plugin)
{
	for (size_t i = 0; i < plugin->capacity.pod_count; i++) {
		struct scheduler_pod *pod = plugin->capacity.pods[i];

		if (pod->is_vm && pod->maximum.cpu_milli != 0)
			pod->reserved = resources_max(pod->reserved, pod->maximum);
	}
}

bool scheduler_plugin_set_available(struct scheduler_plugin *plugin, bool available, struct error *err)
{
	if (available == (plugin->server != NULL))
		return true;
	if (available) {
		if (!plugin->release->keeps_annotations)
			reserve_maximums(plugin);
		return open_server(plugin, err);
	}
	close_server(plugin);
	return true;
}

void scheduler_plugin_set_faults(struct scheduler_plugin *plugin, struct faults *faults)
{
	plugin->faults = faults;
}

void scheduler_plugin_destroy(struct scheduler_plugin *plugin)
{
	if (plugin == NULL)
		return;
	loop_timer_stop(plugin->loop, &plugin->grant_timer);
	if (plugin->server != NULL)
		close_server(plugin);
	scheduler_capacity_destroy(&plugin->capacity);
	memory_release(plugin);
}
