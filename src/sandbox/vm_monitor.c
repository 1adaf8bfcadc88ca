#include "sandbox/vm_monitor.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/websocket_handshake.h"
#include "sandbox/vm_monitor_internal.h"

enum { BODY_BYTES_MAX = 4096, EVENT_BYTES = 512 };

void monitor_tell(struct vm_monitor *monitor, const char *format, ...)
{
	char text[EVENT_BYTES];
	va_list arguments;

	if (monitor->handler.on_event == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	monitor->handler.on_event(monitor->context, text);
}

struct monitor_connection *monitor_current(const struct vm_monitor *monitor)
{
	struct monitor_connection *newest = monitor->connections;

	return newest != NULL && !newest->replaced ? newest : NULL;
}

/* ---- upgrades ---- */

/*
 * Whether the first field of that name has the word in it, in any letter case, even as part of another (as the original
 * looks for it).
 */
static bool field_contains(struct http_fields fields, const char *name, struct slice word)
{
	struct slice value = http_fields_find(fields, name);

	for (size_t i = 0; i + word.length <= value.length; i++)
		if (slice_equal_fold(slice_from(value.data + i, word.length), word))
			return true;
	return false;
}

/* What is wrong with a request for an upgrade (surroundings 2.1.2), or NULL; *ret_status is its answer's. */
static const char *check_upgrade(const struct http_call *call, struct slice *ret_key, int *ret_status)
{
	struct http_fields fields = http_call_fields(call);
	struct slice key = http_fields_find(fields, "Sec-WebSocket-Key");

	*ret_status = 400;
	if (!field_contains(fields, "Connection", SLICE("upgrade")))
		return "Connection header did not include 'upgrade'";
	if (!slice_equal_fold(http_fields_find(fields, "Upgrade"), SLICE("websocket")))
		return "`Upgrade` header did not include 'websocket'";
	/* The original takes a key of any length; no client has another than this. */
	if (key.length == 0 || key.length > WEBSOCKET_KEY_BYTES - 1)
		return "`Sec-WebSocket-Key` header missing";
	if (!slice_equal_text(http_fields_find(fields, "Sec-WebSocket-Version"), "13"))
		return "`Sec-WebSocket-Version` header did not include '13'";
	if (http_call_is_http10(call)) {
		*ret_status = 426;
		return "WebSocket request couldn't be upgraded since no upgrade state was present";
	}
	*ret_key = key;
	return NULL;
}

static void upgrade(struct vm_monitor *monitor, struct http_call *call, struct slice key)
{
	char accept[WEBSOCKET_ACCEPT_BYTES];
	struct http_field fields[] = {
		{ .name = SLICE("connection"), .value = SLICE("upgrade") },
		{ .name = SLICE("upgrade"), .value = SLICE("websocket") },
		{ .name = SLICE("sec-websocket-accept"),
		  .value = { .data = accept, .length = WEBSOCKET_ACCEPT_BYTES - 1 } },
	};
	struct monitor_connection *connection = NULL;
	struct stream *stream;
	struct slice early;
	struct error err;

	websocket_make_accept(key, accept);
	if (monitor->connection_count < VM_MONITOR_CONNECTIONS)
		connection = monitor_connection_create(monitor);
	if (connection == NULL) {
		http_call_respond(call, 503, NULL, SLICE(""));
		return;
	}
	stream = http_call_upgrade(
		call, (struct http_fields){ .items = fields, .count = sizeof fields / sizeof fields[0] }, &early, &err);
	if (stream == NULL) {
		monitor_connection_destroy(connection);
		http_call_respond(call, 503, NULL, SLICE(""));
		return;
	}
	monitor_connection_begin(connection, stream, early);
}

static void on_request(void *context, struct http_call *call)
{
	static const struct http_field ALLOW = { .name = SLICE_INIT("allow"), .value = SLICE_INIT("GET,HEAD") };
	struct slice key = { 0 };
	const char *problem;
	int status;

	if (!slice_equal_text(http_call_path(call), "/monitor")) {
		http_call_respond(call, 404, NULL, SLICE(""));
		return;
	}
	if (!slice_equal_text(http_call_method(call), "GET")) {
		http_call_respond_with(call, 405, (struct http_fields){ .items = &ALLOW, .count = 1 }, SLICE(""));
		return;
	}
	problem = check_upgrade(call, &key, &status);
	if (problem != NULL)
		http_call_respond(call, status, "text/plain; charset=utf-8", slice_of(problem));
	else
		upgrade(context, call, key);
}

/* ---- listening ---- */

static void on_accept_error(void *context, const struct error *err)
{
	const struct vm_monitor *monitor = context;

	if (monitor->handler.on_accept_error != NULL)
		monitor->handler.on_accept_error(monitor->context, err);
}

static bool open_server(struct vm_monitor *monitor, struct error *err)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request };
	struct http_server_options options = { .address = monitor->options.address,
		                               .max_body_bytes = BODY_BYTES_MAX,
		                               .on_error = on_accept_error };

	monitor->server = http_server_start(monitor->loop, &options, &HANDLER, monitor, err);
	if (monitor->server == NULL)
		return error_wrap(err, "vm-monitor");
	if (http_server_address(monitor->server, &monitor->options.address))
		return true;
	http_server_destroy(monitor->server);
	monitor->server = NULL;
	return error_set(err, ERROR_SYSTEM, "vm-monitor: its own address is unknown");
}

static void close_server(struct vm_monitor *monitor)
{
	while (monitor->connections != NULL)
		monitor_connection_drop(monitor->connections);
	http_server_destroy(monitor->server);
	monitor->server = NULL;
}

static void reopen(void *context)
{
	struct vm_monitor *monitor = context;
	struct error err;

	if (!open_server(monitor, &err))
		loop_timer_start(monitor->loop, &monitor->reopen_timer, (uint64_t)VM_MONITOR_REOPEN_MS * NS_PER_MS,
		                 reopen, monitor);
}

struct vm_monitor *vm_monitor_start(struct loop *loop, const struct vm_monitor_options *options,
                                    const struct vm_monitor_handler *handler, void *context, struct error *err)
{
	struct vm_monitor *monitor = memory_allocate(sizeof *monitor);

	if (monitor == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a vm-monitor");
		return NULL;
	}
	monitor->loop = loop;
	monitor->options = *options;
	monitor->handler = *handler;
	monitor->context = context;
	monitor->cache_bytes = vm_monitor_cache_bytes(options->kernel_memory_bytes, options->cache_maximum_bytes);
	if (!open_server(monitor, err)) {
		vm_monitor_destroy(monitor);
		return NULL;
	}
	return monitor;
}

void vm_monitor_destroy(struct vm_monitor *monitor)
{
	if (monitor == NULL)
		return;
	monitor->handler.on_event = NULL;
	loop_timer_stop(monitor->loop, &monitor->reopen_timer);
	if (monitor->server != NULL)
		close_server(monitor);
	memory_release(monitor);
}

/* ---- the owner's calls ---- */

struct address vm_monitor_address(const struct vm_monitor *monitor)
{
	return monitor->options.address;
}

void vm_monitor_set_used(struct vm_monitor *monitor, uint64_t used_bytes)
{
	monitor->used_bytes = used_bytes;
}

void vm_monitor_set_kernel_memory(struct vm_monitor *monitor, uint64_t bytes)
{
	monitor->options.kernel_memory_bytes = bytes;
}

void vm_monitor_set_faults(struct vm_monitor *monitor, const struct vm_monitor_faults *faults)
{
	monitor->faults = *faults;
}

void vm_monitor_set_available(struct vm_monitor *monitor, bool available)
{
	loop_timer_stop(monitor->loop, &monitor->reopen_timer);
	if (available && monitor->server == NULL)
		reopen(monitor);
	else if (!available && monitor->server != NULL)
		close_server(monitor);
}

enum vm_monitor_presence vm_monitor_presence(const struct vm_monitor *monitor)
{
	const struct monitor_connection *current = monitor_current(monitor);

	if (monitor->server == NULL)
		return VM_MONITOR_DOWN;
	return current != NULL && current->phase == MONITOR_OPEN ? VM_MONITOR_CONNECTED : VM_MONITOR_WAITING;
}

uint64_t vm_monitor_believes_bytes(const struct vm_monitor *monitor)
{
	const struct monitor_connection *current = monitor_current(monitor);

	return current == NULL ? 0 : current->believes_bytes;
}

double vm_monitor_believes_cpus(const struct vm_monitor *monitor)
{
	const struct monitor_connection *current = monitor_current(monitor);

	return current == NULL ? 0 : current->believes_cpus;
}

uint64_t vm_monitor_threshold_now_bytes(const struct vm_monitor *monitor)
{
	const struct monitor_connection *current = monitor_current(monitor);

	return current == NULL ? 0 : current->state.threshold_bytes;
}

uint64_t vm_monitor_cache_now_bytes(const struct vm_monitor *monitor)
{
	return monitor->cache_bytes;
}

struct vm_monitor_counters vm_monitor_counters(const struct vm_monitor *monitor)
{
	return monitor->counters;
}
