/*
 * A vm-monitor for tests, on a port of 127.0.0.1: remembers what it gets; answers only what it is told to.
 */
#ifndef BALLAST_TESTS_FAKE_MONITOR_H
#define BALLAST_TESTS_FAKE_MONITOR_H

#include "net/http_server.h"
#include "net/websocket.h"
#include "tests/unit/agent/agent_fixture.h"

enum { FAKE_MONITOR_MESSAGES = 256, FAKE_MONITOR_MESSAGE_BYTES = 65536 };

struct fake_monitor {
	struct loop *loop;
	struct http_server *server;
	struct websocket *websocket; /* the latest connection; NULL when it is gone */
	const char *version_answer;  /* NULL: silence */
	bool answer_health;
	bool answer_scaling; /* downscales and upscales, positively */
	int connections;
	char *messages[FAKE_MONITOR_MESSAGES];
	size_t message_count;
	int close_code; /* how the last connection ended; 0 if none did */
	char close_reason[256];
};

static inline void fake_monitor_send(struct fake_monitor *monitor, const char *text)
{
	struct error err;

	assert_non_null(monitor->websocket);
	if (!websocket_send(monitor->websocket, slice_of(text), true, &err))
		fail_msg("the fake monitor can't send: %s", err.text);
}

/* Sends a message with the id of the agent's message. */
static inline void fake_monitor_answer(struct fake_monitor *monitor, const char *message, const char *before_id)
{
	const char *id = strstr(message, "\"id\":");
	char text[512];

	assert_non_null(id);
	(void)snprintf(text, sizeof text, "{%s,\"id\":%lu}", before_id, strtoul(id + 5, NULL, 10));
	fake_monitor_send(monitor, text);
}

static void fake_monitor_on_message(void *context, struct slice message, bool is_text)
{
	struct fake_monitor *monitor = context;
	char *copy = calloc(1, message.length + 1);

	assert_true(is_text);
	assert_non_null(copy);
	memcpy(copy, message.data, message.length);
	assert_true(monitor->message_count < FAKE_MONITOR_MESSAGES);
	monitor->messages[monitor->message_count++] = copy;
	if (strstr(copy, "\"min\"") != NULL) {
		if (monitor->version_answer != NULL)
			fake_monitor_send(monitor, monitor->version_answer);
	} else if (monitor->answer_health && strstr(copy, "\"HealthCheck\"") != NULL) {
		fake_monitor_answer(monitor, copy, "\"type\":\"HealthCheck\"");
	} else if (monitor->answer_scaling && strstr(copy, "\"DownscaleRequest\"") != NULL) {
		fake_monitor_answer(monitor, copy, "\"type\":\"DownscaleResult\",\"Ok\":true,\"Status\":\"fine\"");
	} else if (monitor->answer_scaling && strstr(copy, "\"UpscaleNotification\"") != NULL) {
		fake_monitor_answer(monitor, copy, "\"type\":\"UpscaleConfirmation\"");
	}
}

static void fake_monitor_on_close(void *context, int code, struct slice reason, const struct error *err)
{
	struct fake_monitor *monitor = context;

	(void)err;
	monitor->websocket = NULL;
	monitor->close_code = code;
	(void)snprintf(monitor->close_reason, sizeof monitor->close_reason, "%.*s", SLICE_ARGS(reason));
}

static void fake_monitor_on_request(void *context, struct http_call *call)
{
	static const struct websocket_handler HANDLER = {
		.on_message = fake_monitor_on_message,
		.on_close = fake_monitor_on_close,
	};
	struct fake_monitor *monitor = context;
	struct error err;

	assert_true(slice_equal_text(http_call_path(call), "/monitor"));
	if (monitor->websocket != NULL)
		websocket_abort(monitor->websocket);
	monitor->websocket = websocket_accept(monitor->loop, call, FAKE_MONITOR_MESSAGE_BYTES, &HANDLER, monitor, &err);
	if (monitor->websocket == NULL)
		fail_msg("the fake monitor can't accept: %s", err.text);
	monitor->connections++;
}

static inline void fake_monitor_listen(struct fake_monitor *monitor, uint16_t port)
{
	static const struct http_server_handler HANDLER = { .on_request = fake_monitor_on_request };
	struct http_server_options options = { .max_body_bytes = 1024 };
	struct error err;

	assert_true(address_parse(SLICE("127.0.0.1"), port, &options.address));
	monitor->server = http_server_start(monitor->loop, &options, &HANDLER, monitor, &err);
	if (monitor->server == NULL)
		fail_msg("the fake monitor can't listen: %s", err.text);
}

static inline void fake_monitor_begin(struct fake_monitor *monitor, struct loop *loop)
{
	memset(monitor, 0, sizeof *monitor);
	monitor->loop = loop;
	monitor->version_answer = "{\"version\":1}";
	fake_monitor_listen(monitor, 0);
}

static inline uint16_t fake_monitor_port(const struct fake_monitor *monitor)
{
	struct address address;

	assert_true(http_server_address(monitor->server, &address));
	return address.port;
}

static inline void fake_monitor_forget(struct fake_monitor *monitor)
{
	for (size_t i = 0; i < monitor->message_count; i++)
		free(monitor->messages[i]);
	monitor->message_count = 0;
}

/* Drops TCP, as the real one does. */
static inline void fake_monitor_drop(struct fake_monitor *monitor)
{
	assert_non_null(monitor->websocket);
	websocket_abort(monitor->websocket);
	monitor->websocket = NULL;
}

static inline void fake_monitor_end(struct fake_monitor *monitor)
{
	if (monitor->websocket != NULL)
		websocket_abort(monitor->websocket);
	if (monitor->server != NULL)
		http_server_destroy(monitor->server);
	fake_monitor_forget(monitor);
}

/* Turns the loop until that many messages have come in all; fails after a few real seconds. */
static inline const char *fake_monitor_wait(struct fixture *fixture, struct fake_monitor *monitor, size_t count)
{
	for (int i = 0; i < 2000 && monitor->message_count < count; i++)
		test_loop_spin(fixture->loop, 1);
	if (monitor->message_count < count)
		fail_msg("the monitor got %zu messages, not %zu; log:\n%s", monitor->message_count, count,
		         fixture_log(fixture));
	return monitor->messages[count - 1];
}

/* Turns the loop until the connection has ended. */
static inline void fake_monitor_wait_closed(struct fixture *fixture, struct fake_monitor *monitor)
{
	for (int i = 0; i < 2000 && monitor->websocket != NULL; i++)
		test_loop_spin(fixture->loop, 1);
	assert_null(monitor->websocket);
}

#endif
