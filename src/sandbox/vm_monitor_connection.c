/*
 * A connection works on one message at a time. While that takes its time, the stream is paused and what came already
 * waits. Functions that may end the connection return whether it still stands; after false it is freed.
 *
 * The engine is used without the websocket module, because the original answers faults by cutting the connection, not
 * by a close frame.
 */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/vm_monitor_internal.h"

enum {
	FIRST_ID = 3, /* surroundings 2.3.3: odd, and not 1 */
	LINGER_MS = 1000,
	MIB_SHIFT = 20,
};

struct monitor_connection *monitor_connection_create(struct vm_monitor *monitor)
{
	struct monitor_connection *connection = memory_allocate(sizeof *connection);

	if (connection == NULL)
		return NULL;
	connection->monitor = monitor;
	connection->next_id = FIRST_ID;
	websocket_engine_init(&connection->engine, WEBSOCKET_SERVER, VM_MONITOR_MESSAGE_BYTES, NULL, NULL);
	buffer_init(&connection->waiting, VM_MONITOR_WAITING_BYTES);
	return connection;
}

void monitor_connection_destroy(struct monitor_connection *connection)
{
	websocket_engine_destroy(&connection->engine);
	buffer_destroy(&connection->waiting);
	memory_release(connection);
}

/* Takes the connection out of everything; its stream is gone or will be. */
static void forget(struct monitor_connection *connection)
{
	struct vm_monitor *monitor = connection->monitor;
	struct monitor_connection **place = &monitor->connections;
	bool was_in_use = !connection->replaced && connection->phase == MONITOR_OPEN;

	while (*place != connection)
		place = &(*place)->next;
	*place = connection->next;
	monitor->connection_count--;
	loop_timer_stop(monitor->loop, &connection->setup_timer);
	loop_timer_stop(monitor->loop, &connection->sample_timer);
	loop_timer_stop(monitor->loop, &connection->work_timer);
	monitor_connection_destroy(connection);
	if (was_in_use)
		monitor_tell(monitor, "the agent's connection to the monitor ended");
}

void monitor_connection_drop(struct monitor_connection *connection)
{
	stream_finish(connection->stream, (uint64_t)LINGER_MS * NS_PER_MS);
	forget(connection);
}

static bool drop_for_fault(struct monitor_connection *connection)
{
	connection->monitor->counters.bad_messages++;
	monitor_tell(connection->monitor,
	             "monitor dropped the connection: the agent sent something else than a message");
	monitor_connection_drop(connection);
	return false;
}

/* ---- sending ---- */

/* Gives the engine's frames to the stream. */
static bool flush(struct monitor_connection *connection)
{
	struct buffer *output = &connection->engine.output;
	struct error err;
	bool written = output->length == 0 || stream_write(connection->stream, buffer_slice(output), &err);

	buffer_release(output);
	if (!written)
		monitor_connection_drop(connection);
	return written;
}

static bool send_text(struct monitor_connection *connection, const struct buffer *text)
{
	struct error err;

	if (text->failed || !websocket_engine_send(&connection->engine, buffer_slice(text), true, &err)) {
		monitor_connection_drop(connection);
		return false;
	}
	return flush(connection);
}

/* ---- sampling ---- */

/* Asks for more memory if it is time to (surroundings 2.5.3). */
static bool ask_for_more(struct monitor_connection *connection)
{
	struct vm_monitor *monitor = connection->monitor;
	uint64_t now_ns = loop_now_ns(monitor->loop);
	struct buffer text;

	if (vm_monitor_samples_mean(&connection->state.samples) < connection->state.threshold_bytes)
		return true;
	if (connection->has_asked && now_ns - connection->asked_ns < (uint64_t)VM_MONITOR_ASK_AGAIN_MS * NS_PER_MS)
		return true;
	connection->has_asked = true;
	connection->asked_ns = now_ns;
	monitor->counters.upscale_requests++;
	monitor_tell(monitor, "monitor asked for more memory");

	buffer_init(&text, VM_MONITOR_ANSWER_BYTES);
	vm_monitor_write_message(&text, SLICE("UpscaleRequest"), connection->next_id);
	connection->next_id += 2;

	bool stands = send_text(connection, &text);

	buffer_destroy(&text);
	return stands;
}

static void take_sample(void *context)
{
	struct monitor_connection *connection = context;
	struct vm_monitor *monitor = connection->monitor;

	loop_timer_start(monitor->loop, &connection->sample_timer, (uint64_t)VM_MONITOR_SAMPLE_MS * NS_PER_MS,
	                 take_sample, connection);
	if (monitor->faults.sampling_stalls)
		return;
	vm_monitor_samples_add(&connection->state.samples, monitor->used_bytes, loop_now_ns(monitor->loop));
	(void)ask_for_more(connection);
}

/* ---- set-up ---- */

static bool finish_setup(struct monitor_connection *connection)
{
	struct vm_monitor *monitor = connection->monitor;
	struct vm_monitor_state *state = &connection->state;
	uint64_t kernel_bytes = monitor->options.kernel_memory_bytes;

	state->manages_cgroup = monitor->options.manages_cgroup;
	state->manages_cache = monitor->options.manages_cache;
	state->cache_maximum_bytes = monitor->options.cache_maximum_bytes;
	if (state->manages_cache && monitor->faults.postgres_down) {
		monitor_tell(monitor, "monitor dropped the connection: Postgres doesn't answer");
		monitor_connection_drop(connection);
		return false;
	}
	loop_timer_stop(monitor->loop, &connection->setup_timer);
	connection->phase = MONITOR_OPEN;
	/* Here, and only here, without the 100 MiB that are kept back (surroundings 2.5.2). */
	state->late_2023 = monitor->options.late_2023;
	state->threshold_bytes = vm_monitor_state_threshold_bytes(state, kernel_bytes);
	state->cache_bytes = vm_monitor_cache_bytes(kernel_bytes, state->cache_maximum_bytes);
	monitor->cache_bytes = state->cache_bytes;
	vm_monitor_samples_begin(&state->samples, loop_now_ns(monitor->loop));
	monitor_tell(monitor, "an agent connected to the monitor");
	/* The first sample comes in a turn of its own: behind the version answer, and not from inside a call. */
	if (state->manages_cgroup)
		loop_timer_start(monitor->loop, &connection->sample_timer, 0, take_sample, connection);
	return true;
}

static bool take_first_message(struct monitor_connection *connection, struct slice message, bool is_text)
{
	struct vm_monitor_range range;
	struct buffer text;

	if (!is_text || !vm_monitor_read_range(message, &range))
		return drop_for_fault(connection);
	buffer_init(&text, VM_MONITOR_ANSWER_BYTES);

	bool overlap = vm_monitor_answer_range(&range, &text);
	bool stands = send_text(connection, &text);

	buffer_destroy(&text);
	if (!stands)
		return false;
	if (overlap)
		connection->monitor->counters.connections++;
	if (!overlap || connection->replaced) {
		monitor_connection_drop(connection);
		return false;
	}
	return finish_setup(connection);
}

static void setup_late(void *context)
{
	monitor_connection_drop(context);
}

/* ---- work ---- */

static void downscale(struct monitor_connection *connection, const struct vm_monitor_request *request,
                      struct buffer *text)
{
	struct vm_monitor *monitor = connection->monitor;
	unsigned long mib = (unsigned long)(request->memory_bytes >> MIB_SHIFT);
	struct buffer status;
	enum vm_monitor_verdict verdict;

	buffer_init(&status, VM_MONITOR_STATUS_BYTES);
	verdict = vm_monitor_downscale(&connection->state, request->memory_bytes, loop_now_ns(monitor->loop), &status);
	if (verdict == VM_MONITOR_FAILED) {
		monitor->counters.internal_errors++;
		monitor_tell(monitor, "monitor failed to downscale to %lu MiB", mib);
		vm_monitor_write_internal_error(text, SLICE("failed to downscale"), request->id);
	} else {
		bool agreed = verdict == VM_MONITOR_AGREED;
		unsigned *counter =
			agreed ? &monitor->counters.downscales_approved : &monitor->counters.downscales_denied;

		++*counter;
		if (agreed) {
			connection->believes_bytes = request->memory_bytes;
			connection->believes_cpus = request->cpus;
			if (connection->state.manages_cache)
				monitor->cache_bytes = connection->state.cache_bytes;
		}
		monitor_tell(monitor, "monitor %s downscale to %lu MiB: %.*s", agreed ? "agreed to" : "denied", mib,
		             SLICE_ARGS(buffer_slice(&status)));
		vm_monitor_write_downscale_result(text, agreed, buffer_slice(&status), request->id);
	}
	buffer_destroy(&status);
}

static void upscale(struct monitor_connection *connection, const struct vm_monitor_request *request,
                    struct buffer *text)
{
	struct vm_monitor *monitor = connection->monitor;
	unsigned long mib = (unsigned long)(request->memory_bytes >> MIB_SHIFT);

	if (!vm_monitor_upscale(&connection->state, request->memory_bytes)) {
		monitor->counters.internal_errors++;
		monitor_tell(monitor, "monitor failed to handle upscale to %lu MiB", mib);
		vm_monitor_write_internal_error(text, SLICE("failed to handle upscale"), request->id);
		return;
	}
	monitor->counters.upscales++;
	connection->believes_bytes = request->memory_bytes;
	connection->believes_cpus = request->cpus;
	if (connection->state.manages_cache)
		monitor->cache_bytes = connection->state.cache_bytes;
	monitor_tell(monitor, "monitor learned of %lu MiB", mib);
	vm_monitor_write_message(text, SLICE("UpscaleConfirmation"), request->id);
}

static bool carry_out(struct monitor_connection *connection)
{
	struct vm_monitor *monitor = connection->monitor;
	const struct vm_monitor_request *request = &connection->request;
	struct buffer text;
	bool stands;

	connection->state.postgres_down = monitor->faults.postgres_down;
	buffer_init(&text, VM_MONITOR_ANSWER_BYTES);
	switch (request->kind) {
	case VM_MONITOR_HEALTH_CHECK:
		monitor->counters.health_checks++;
		vm_monitor_write_message(&text, SLICE("HealthCheck"), request->id);
		break;
	case VM_MONITOR_DOWNSCALE:
		downscale(connection, request, &text);
		break;
	case VM_MONITOR_UPSCALE:
		upscale(connection, request, &text);
		break;
	case VM_MONITOR_COMPLAINT:
		monitor_tell(monitor, "the agent complained to the monitor");
		break;
	}
	stands = text.length == 0 || send_text(connection, &text);
	buffer_destroy(&text);
	return stands;
}

static bool take_bytes(struct monitor_connection *connection, struct slice bytes);

static void work_done(void *context)
{
	struct monitor_connection *connection = context;
	struct buffer waiting = connection->waiting;

	connection->working = false;
	if (!carry_out(connection))
		return;
	if (connection->replaced) {
		monitor_connection_drop(connection);
		return;
	}
	stream_resume(connection->stream);
	buffer_init(&connection->waiting, VM_MONITOR_WAITING_BYTES);
	(void)take_bytes(connection, buffer_slice(&waiting));
	buffer_destroy(&waiting);
}

static bool take_message(struct monitor_connection *connection, struct slice message, bool is_text)
{
	struct vm_monitor *monitor = connection->monitor;

	if (connection->phase == MONITOR_SETUP)
		return take_first_message(connection, message, is_text);
	if (!is_text)
		return true;
	if (!vm_monitor_read_request(message, &connection->request))
		return drop_for_fault(connection);
	if (monitor->faults.work_ms == 0)
		return carry_out(connection);
	connection->working = true;
	stream_pause(connection->stream);
	loop_timer_start(monitor->loop, &connection->work_timer, (uint64_t)monitor->faults.work_ms * NS_PER_MS,
	                 work_done, connection);
	return true;
}

/* ---- frames ---- */

static bool keep_waiting(struct monitor_connection *connection, struct slice bytes)
{
	buffer_append_slice(&connection->waiting, bytes);
	if (!connection->waiting.failed)
		return true;
	monitor_connection_drop(connection);
	return false;
}

static bool take_bytes(struct monitor_connection *connection, struct slice bytes)
{
	struct websocket_details details;

	while (!connection->working) {
		switch (websocket_engine_next(&connection->engine, &bytes, &details)) {
		case WEBSOCKET_EVENT_MORE:
			return flush(connection);
		case WEBSOCKET_EVENT_MESSAGE:
			if (!flush(connection) || !take_message(connection, details.payload, details.is_text))
				return false;
			break;
		case WEBSOCKET_EVENT_CLOSE:
			if (flush(connection))
				monitor_connection_drop(connection);
			return false;
		case WEBSOCKET_EVENT_FAULT:
			return drop_for_fault(connection); /* the engine's close frame stays unsent */
		}
	}
	return keep_waiting(connection, bytes);
}

static void on_data(void *context, struct slice bytes)
{
	struct monitor_connection *connection = context;

	if (connection->working)
		(void)keep_waiting(connection, bytes);
	else
		(void)take_bytes(connection, bytes);
}

static void on_close(void *context, const struct error *err)
{
	(void)err;
	forget(context);
}

static void replace(struct monitor_connection *connection)
{
	connection->replaced = true;
	if (connection->phase == MONITOR_OPEN && !connection->working)
		monitor_connection_drop(connection);
}

void monitor_connection_begin(struct monitor_connection *connection, struct stream *stream, struct slice early)
{
	static const struct stream_handler HANDLER = { .on_data = on_data, .on_close = on_close };
	struct vm_monitor *monitor = connection->monitor;
	struct monitor_connection *current = monitor_current(monitor);

	if (current != NULL) {
		monitor_tell(monitor, "another agent took the connection to the monitor over");
		replace(current);
	}
	connection->next = monitor->connections;
	monitor->connections = connection;
	monitor->connection_count++;
	connection->stream = stream;
	stream_set_handler(stream, &HANDLER, connection);
	loop_timer_start(monitor->loop, &connection->setup_timer, (uint64_t)VM_MONITOR_SETUP_MS * NS_PER_MS, setup_late,
	                 connection);
	if (early.length > 0)
		(void)take_bytes(connection, early);
}
