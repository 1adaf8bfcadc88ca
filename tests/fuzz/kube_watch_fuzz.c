/*
 * Any bytes as the answers of an API server to a list and its watches, through the whole client, over simulated
 * connections. The first byte chooses how the agent reads VMs and how the store works; the rest are answers, one for each
 * request, with SEPARATOR between: a line "STATUS", then the body (no such line: 200). What isn't answered hangs.
 *
 * Checked: every object that was read is released; the owner hears of each object's coming, changes and going in an order
 * that makes sense, and the store holds what it was told; and all that stays the same when bytes come one by one, or in pieces.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/vm_watch_object.h"
#include "base/clock.h"
#include "base/memory.h"
#include "kube/watch_store.h"
#include "net/loop_sim.h"
#include "net/stream.h"

enum {
	MAX_BYTES = 64 * 1024,
	LOG_BYTES = 16 * 1024 * 1024,
	ARENA_BYTES = 16 * 1024 * 1024,
	RUN_S = 40,
	SHORT_BYTES = 600,
	SCHEDULER_A_BIT = 1,
	SYNC_BIT = 2,
	PAGES_BIT = 4,
};

#define SEPARATOR SLICE("\n--\n")
#define WALL_NS (INT64_C(1700000000) * NS_PER_S)

static const struct address SERVER = { .bytes = { 10, 0, 0, 2 }, .port = 8080 };
static const struct address CLIENT = { .bytes = { 10, 0, 0, 1 } };

struct connection {
	struct connection *next;
	struct scene *scene;
	struct stream *stream;
	struct buffer received; /* of the request under way */
};

struct scene {
	struct vm_watch_filter filter;
	struct slice answers;
	struct connection *connections;
	struct loop *server;
	struct stream_listener *listener;
	struct arena arena;
	long objects; /* read and not released */
	long shown;   /* told of and not deleted */
	struct buffer log;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* ---- the server ---- */

static struct slice take_answer(struct scene *scene)
{
	const char *end = memmem(scene->answers.data, scene->answers.length, SEPARATOR.data, SEPARATOR.length);
	struct slice answer = scene->answers;

	if (end != NULL)
		answer.length = (size_t)(end - answer.data);
	scene->answers = end != NULL ? slice_from_offset(scene->answers, answer.length + SEPARATOR.length) : SLICE("");
	return answer;
}

/* Three digits and a line end at the front of an answer. */
static int take_status(struct slice *answer)
{
	struct slice rest = *answer;
	struct slice line = slice_take_until(&rest, '\n');
	uint64_t status;

	if (line.length != 3 || !slice_to_u64(line, &status) || status < 200)
		return 200;
	*answer = rest;
	return (int)status;
}

static void answer_request(struct connection *connection)
{
	struct slice body = take_answer(connection->scene);
	int status = take_status(&body);
	struct buffer text;
	struct error err;

	buffer_init(&text, MAX_BYTES + 1024);
	buffer_append_format(&text, "HTTP/1.1 %d X\r\nContent-Type: %s\r\n", status,
	                     status % 2 == 0 ? "application/json" : "text/plain");
	if (status == 429 || status >= 500)
		buffer_append_text(&text, "Retry-After: 1\r\n");
	if (status != 204 && status != 304)
		buffer_append_format(&text, "Content-Length: %zu\r\n", body.length);
	buffer_append_text(&text, "\r\n");
	if (status != 204 && status != 304)
		buffer_append_slice(&text, body);
	require(!text.failed && stream_write(connection->stream, buffer_slice(&text), &err));
	buffer_destroy(&text);
}

static void server_data(void *context, struct slice bytes)
{
	struct connection *connection = context;

	buffer_append_slice(&connection->received, bytes);
	if (!slice_contains(buffer_slice(&connection->received), SLICE("\r\n\r\n")))
		return;
	/* Nothing of what it was given may have got out of its place in the request. */
	require(slice_starts_with(buffer_slice(&connection->received),
	                          SLICE("GET /apis/vm.neon.tech/v1/virtualmachines")));
	require(slice_contains(buffer_slice(&connection->received), SLICE("Authorization: Bearer token\r\n")));
	buffer_clear(&connection->received);
	if (connection->scene->answers.length > 0)
		answer_request(connection);
}

static void server_close(void *context, const struct error *err)
{
	(void)err;
	((struct connection *)context)->stream = NULL;
}

static void accept_one(void *context, struct stream *stream)
{
	static const struct stream_handler HANDLER = { .on_data = server_data, .on_close = server_close };
	struct scene *scene = context;
	struct connection *connection = memory_allocate(sizeof *connection);

	require(connection != NULL);
	*connection = (struct connection){ .next = scene->connections, .scene = scene, .stream = stream };
	buffer_init(&connection->received, MAX_BYTES);
	scene->connections = connection;
	stream_set_handler(stream, &HANDLER, connection);
}

static void end_server(struct scene *scene)
{
	while (scene->connections != NULL) {
		struct connection *connection = scene->connections;

		scene->connections = connection->next;
		if (connection->stream != NULL)
			stream_close(connection->stream);
		buffer_destroy(&connection->received);
		memory_release(connection);
	}
	stream_listener_close(scene->listener);
}

/* ---- the owner of the store ---- */

static void *decode(void *context, struct slice json, struct slice *ret_uid, struct slice *ret_name, struct error *err)
{
	struct scene *scene = context;
	struct watched_vm *vm = watched_vm_decode(json, &scene->filter, &scene->arena, ret_name, err);

	if (vm == NULL) {
		require(err->text[0] != '\0');
		return NULL;
	}
	require(vm->uid.length > 0);
	require(vm->here == NULL || (vm->here->snapshot != NULL) != (vm->here->problem != NULL) || !vm->here->ours);
	*ret_uid = vm->uid;
	scene->objects++;
	return vm;
}

static void release(void *context, void *object)
{
	((struct scene *)context)->objects--;
	watched_vm_release(object);
}

static void note(struct scene *scene, const char *what, const struct watched_vm *vm)
{
	buffer_append_format(&scene->log, "%s %d ", what, vm->here != NULL);
	buffer_append_slice(&scene->log, vm->uid);
	buffer_append_char(&scene->log, '\n');
}

static void on_add(void *context, void *object)
{
	((struct scene *)context)->shown++;
	note(context, "add", object);
}

static void on_update(void *context, void *before, void *after)
{
	require(slice_equal(((struct watched_vm *)before)->uid, ((struct watched_vm *)after)->uid));
	note(context, "update", after);
}

static void on_delete(void *context, void *object)
{
	require(((struct scene *)context)->shown-- > 0);
	note(context, "delete", object);
}

static void on_started(void *context)
{
	buffer_append_text(&((struct scene *)context)->log, "started\n");
}

static void on_start_failed(void *context, const struct error *err)
{
	require(err->text[0] != '\0');
	buffer_append_format(&((struct scene *)context)->log, "failed\n");
}

/* ---- a run ---- */

/* A kubeconfig in memory: without TLS, with a token. */
static const char *kubeconfig_path(void)
{
	static const char TEXT[] = "{current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}], "
				   "clusters: [{name: k, cluster: {server: 'http://10.0.0.2:8080'}}], "
				   "users: [{name: u, user: {token: token}}]}\n";
	static char path[64];

	if (path[0] == '\0') {
		int descriptor = memfd_create("kubeconfig", MFD_CLOEXEC);

		require(descriptor >= 0 && write(descriptor, TEXT, sizeof TEXT - 1) == (ssize_t)sizeof TEXT - 1);
		(void)snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
	}
	return path;
}

static void pass(struct sim_world *world)
{
	struct error err;

	while (sim_world_step(world, (uint64_t)RUN_S * NS_PER_S, &err))
		;
	require(err.code == ERROR_NONE);
}

static void watch(struct scene *scene, uint8_t choice, struct sim_world *world, struct loop *loop)
{
	static const struct watch_store_type TYPE = { .path = "/apis/vm.neon.tech/v1/virtualmachines",
		                                      .resource = "virtualmachines.vm.neon.tech",
		                                      .decode = decode,
		                                      .release = release };
	static const struct watch_store_handler HANDLER = { .on_add = on_add,
		                                            .on_update = on_update,
		                                            .on_delete = on_delete,
		                                            .on_started = on_started,
		                                            .on_start_failed = on_start_failed };
	const struct kube_client_options client_options = { .kubeconfig = kubeconfig_path(), .user_agent = "fuzz" };
	const struct watch_store_options options = { .deliver_before_watch = (choice & SYNC_BIT) != 0,
		                                     .retry_unit_ns = NS_PER_MS,
		                                     .retry_low = 500,
		                                     .retry_high = 1000,
		                                     .page_size = (choice & PAGES_BIT) != 0 ? 2 : 0 };
	struct error err;
	struct kube_client *client = kube_client_create(loop, &client_options, &err);
	struct watch_store *store;

	require(client != NULL);
	store = watch_store_start(loop, client, &TYPE, &options, &HANDLER, scene, &err);
	require(store != NULL);
	pass(world);
	/* What was told is what is held; a list under way holds more. */
	require((long)watch_store_count(store) <= scene->objects);
	watch_store_destroy(store);
	require(scene->objects == 0);
	kube_client_destroy(client);
}

static void run(uint8_t choice, struct slice answers, bool in_pieces, struct buffer *ret_log)
{
	/* Short texts byte by byte; long ones, for which that takes too long, in a few pieces. */
	const struct sim_faults calm = { 0 },
				cut = answers.length < SHORT_BYTES
	                                      ? (struct sim_faults){ .single_bytes = 1000000 }
	                                      : (struct sim_faults){ .split = 1000000, .unmerged = 1000000 };
	struct scene scene = { .answers = answers,
		               .filter = { .node_name = SLICE("node-a"),
		                           .scheduler_name = SLICE("autoscale-scheduler"),
		                           .generation = (choice & SCHEDULER_A_BIT) != 0 ? AGENT_GENERATION_A
		                                                                         : AGENT_GENERATION_B } };
	const struct stream_listener_options listening = { .address = SERVER };
	unsigned long blocks = memory_block_count();
	struct error err;
	struct sim_world *world = sim_world_create(1, WALL_NS, &err);
	struct loop *loop;

	require(world != NULL);
	sim_world_set_faults(world, in_pieces ? &cut : &calm);
	loop = loop_sim_create(world, "client", &CLIENT, &err);
	scene.server = loop_sim_create(world, "server", &SERVER, &err);
	require(loop != NULL && scene.server != NULL);
	scene.listener = stream_listen(scene.server, &listening, accept_one, &scene, &err);
	require(scene.listener != NULL);
	arena_init(&scene.arena, ARENA_BYTES);
	buffer_init(&scene.log, LOG_BYTES);
	watch(&scene, choice, world, loop);
	end_server(&scene);
	loop_destroy(loop);
	loop_destroy(scene.server);
	require(sim_world_leaked_sockets(world) == 0 && sim_world_leaked_timers(world) == 0);
	sim_world_destroy(world);
	arena_destroy(&scene.arena);
	require(!scene.log.failed);
	*ret_log = scene.log;
	require(memory_block_count() == blocks + (scene.log.data != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer whole, cut;

	if (size == 0 || size > MAX_BYTES)
		return 0;
	run(data[0], slice_from(data + 1, size - 1), false, &whole);
	run(data[0], slice_from(data + 1, size - 1), true, &cut);
	require(slice_equal(buffer_slice(&whole), buffer_slice(&cut)));
	buffer_destroy(&whole);
	buffer_destroy(&cut);
	return 0;
}
