/*
 * What tests of the sandbox's peers share: a loop whose clock stands still until the test moves it on, so that times
 * can be checked exactly; and a client that sends bytes as they are. To be included by one file of a program.
 */
#ifndef BALLAST_TESTS_UNIT_SANDBOX_SCENE_H
#define BALLAST_TESTS_UNIT_SANDBOX_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "net/loop_epoll.h"
#include "net/stream.h"

enum {
	SCENE_STEP_MS = 5,        /* how the clock moves on */
	SCENE_TURNS_PER_STEP = 6, /* for what is under way on loopback to arrive */
	SCENE_REAL_SECONDS = 10,  /* then a wait has failed */
	SCENE_RAW_BYTES = 4 * 1024 * 1024,
};

static uint64_t scene_ns = (uint64_t)1000 * NS_PER_S;

uint64_t clock_monotonic_ns(void)
{
	return scene_ns;
}

/* 2026-03-04T05:06:07.412 at the start. */
int64_t clock_wall_ns(void)
{
	return INT64_C(1772600767412) * NS_PER_MS + (int64_t)(scene_ns - (uint64_t)1000 * NS_PER_S);
}

static inline void scene_nothing(void *context)
{
	(void)context;
}

/* One turn that waits for nothing. */
static inline void scene_turn(struct loop *loop)
{
	struct loop_task task = { 0 };
	struct error err;

	loop_run_soon(loop, &task, scene_nothing, NULL);
	assert_true(loop_turn(loop, &err));
	loop_task_cancel(loop, &task);
}

/* Lets happen what can happen without time passing. */
static inline void scene_settle(struct loop *loop)
{
	for (int i = 0; i < SCENE_TURNS_PER_STEP; i++)
		scene_turn(loop);
}

static inline void scene_advance(struct loop *loop, unsigned ms)
{
	scene_settle(loop);
	for (unsigned passed = 0; passed < ms; passed += SCENE_STEP_MS) {
		scene_ns += (uint64_t)SCENE_STEP_MS * NS_PER_MS;
		scene_settle(loop);
	}
}

static inline uint64_t scene_ms(void)
{
	return scene_ns / NS_PER_MS;
}

/* Turns the loop, without time passing, until *value is at least `least`; fails after some real seconds. */
#define scene_until(loop, value, least)                                                        \
	do {                                                                                   \
		time_t scene_started = time(NULL);                                             \
                                                                                               \
		while ((value) < (least)) {                                                    \
			scene_turn(loop);                                                      \
			if (time(NULL) - scene_started > SCENE_REAL_SECONDS)                   \
				fail_msg("%s:%d: %s didn't come", __FILE__, __LINE__, #value); \
		}                                                                              \
	} while (0)

/* A connection that sends and keeps bytes as they are. */
struct raw_client {
	struct loop *loop;
	struct stream *stream; /* NULL once it is gone */
	struct buffer received;
	unsigned opened, closed;
	bool clean; /* closed by the peer's end, not by a reset */
};

static inline void raw_client_on_open(void *context)
{
	((struct raw_client *)context)->opened++;
}

static inline void raw_client_on_data(void *context, struct slice bytes)
{
	buffer_append_slice(&((struct raw_client *)context)->received, bytes);
}

static inline void raw_client_on_close(void *context, const struct error *err)
{
	struct raw_client *client = context;

	client->stream = NULL;
	client->closed++;
	client->clean = strcmp(error_root(err), "EOF") == 0;
}

static inline void raw_client_begin(struct raw_client *client, struct loop *loop, const char *host, uint16_t port)
{
	static const struct stream_handler HANDLER = { .on_open = raw_client_on_open,
		                                       .on_data = raw_client_on_data,
		                                       .on_close = raw_client_on_close };
	struct stream_connect_options options = { .host = host, .port = port };
	struct error err;

	*client = (struct raw_client){ .loop = loop };
	buffer_init(&client->received, SCENE_RAW_BYTES);
	client->stream = stream_connect(loop, &options, &HANDLER, client, &err);
	if (client->stream == NULL)
		fail_msg("%s", err.text);
	scene_until(loop, client->opened + client->closed, 1);
}

static inline void raw_client_send(struct raw_client *client, struct slice bytes)
{
	struct error err;

	assert_non_null(client->stream);
	if (!stream_write(client->stream, bytes, &err))
		fail_msg("%s", err.text);
}

static inline void raw_client_end(struct raw_client *client)
{
	if (client->stream != NULL)
		stream_close(client->stream);
	buffer_destroy(&client->received);
	scene_settle(client->loop);
}

/* Sends a request and keeps what comes until the peer closes. */
static inline void raw_client_ask(struct raw_client *client, struct loop *loop, const char *host, uint16_t port,
                                  struct slice request)
{
	raw_client_begin(client, loop, host, port);
	raw_client_send(client, request);
	scene_until(loop, client->closed, 1);
	buffer_append_char(&client->received, '\0');
	assert_false(client->received.failed);
}

static inline int raw_client_status(const struct raw_client *client)
{
	int status = 0;

	if (client->received.length < 1 || sscanf(client->received.data, "HTTP/1.1 %d ", &status) != 1)
		fail_msg("not an HTTP answer");
	return status;
}

/* What follows the head; needs a NUL behind it. */
static inline const char *raw_client_body(const struct raw_client *client)
{
	const char *end = strstr(client->received.data, "\r\n\r\n");

	assert_non_null(end);
	return end + 4;
}

static inline bool raw_client_head_has(const struct raw_client *client, const char *line)
{
	const char *end = strstr(client->received.data, "\r\n\r\n");
	const char *found = strstr(client->received.data, line);

	return found != NULL && found < end && found[strlen(line)] == '\r';
}

#endif
