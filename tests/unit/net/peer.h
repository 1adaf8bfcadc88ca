/*
 * What the tests of streams share: a peer that records what happens to its stream, and turning a loop until something
 * is so.
 */
#ifndef BALLAST_TESTS_UNIT_NET_PEER_H
#define BALLAST_TESTS_UNIT_NET_PEER_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "net/loop_epoll.h"
#include "net/stream.h"

enum { PEER_RECEIVED_BYTES = 64 * 1024 * 1024 };

struct peer {
	struct loop *loop;
	struct stream *stream; /* NULL once it is gone */
	struct buffer received;
	unsigned opened, drained, closed;
	struct error err; /* of on_close */
	bool echoes;
	void (*on_data)(struct peer *peer, struct slice bytes); /* after recording; may be NULL */
	void (*on_open)(struct peer *peer);
};

static inline void peer_on_open(void *context)
{
	struct peer *peer = context;

	peer->opened++;
	if (peer->on_open != NULL)
		peer->on_open(peer);
}

static inline void peer_on_data(void *context, struct slice bytes)
{
	struct peer *peer = context;
	struct error err;

	buffer_append_slice(&peer->received, bytes);
	if (peer->echoes && !stream_write(peer->stream, bytes, &err)) {
		stream_close(peer->stream);
		peer->stream = NULL;
		peer->closed++;
		return;
	}
	if (peer->on_data != NULL)
		peer->on_data(peer, bytes);
}

static inline void peer_on_drained(void *context)
{
	((struct peer *)context)->drained++;
}

static inline void peer_on_close(void *context, const struct error *err)
{
	struct peer *peer = context;

	peer->closed++;
	peer->err = *err;
	peer->stream = NULL;
}

static const struct stream_handler PEER_HANDLER = {
	.on_open = peer_on_open,
	.on_data = peer_on_data,
	.on_drained = peer_on_drained,
	.on_close = peer_on_close,
};

static inline void peer_init(struct peer *peer, struct loop *loop)
{
	*peer = (struct peer){ .loop = loop };
	buffer_init(&peer->received, PEER_RECEIVED_BYTES);
}

static inline void peer_destroy(struct peer *peer)
{
	if (peer->stream != NULL)
		stream_close(peer->stream);
	buffer_destroy(&peer->received);
}

/* A listener on 127.0.0.1 whose newest stream goes to `peer`. */
struct host {
	struct loop *loop;
	struct stream_listener *listener;
	struct address address;
	struct peer peer;
	unsigned accepted, errors;
	struct error err;
	struct tls_settings *tls;
};

static inline void host_accept(void *context, struct stream *stream)
{
	struct host *host = context;

	host->accepted++;
	if (host->peer.stream != NULL)
		stream_close(host->peer.stream);
	host->peer.stream = stream;
	stream_set_handler(stream, &PEER_HANDLER, &host->peer);
}

static inline void host_error(void *context, const struct error *err)
{
	struct host *host = context;

	host->errors++;
	host->err = *err;
}

static inline struct tls_settings *host_tls(void *context)
{
	return ((struct host *)context)->tls;
}

static inline struct stream_listener_options host_options(struct tls_settings *tls)
{
	return (struct stream_listener_options){
		.address = { .bytes = { 127, 0, 0, 1 } },
		.tls = tls != NULL ? host_tls : NULL,
		.on_error = host_error,
	};
}

static inline void host_init_with(struct host *host, struct loop *loop, const struct stream_listener_options *options)
{
	struct error err;

	*host = (struct host){ .loop = loop };
	peer_init(&host->peer, loop);
	host->listener = stream_listen(loop, options, host_accept, host, &err);
	assert_non_null(host->listener);
	assert_true(stream_listener_address(host->listener, &host->address));
}

static inline void host_init(struct host *host, struct loop *loop, struct tls_settings *tls)
{
	struct stream_listener_options options = host_options(tls);

	host_init_with(host, loop, &options);
	host->tls = tls;
}

static inline void host_destroy(struct host *host)
{
	if (host->listener != NULL)
		stream_listener_close(host->listener);
	peer_destroy(&host->peer);
}

static inline void peer_connect(struct peer *peer, const struct stream_connect_options *options)
{
	struct error err;

	peer->stream = stream_connect(peer->loop, options, &PEER_HANDLER, peer, &err);
	assert_non_null(peer->stream);
}

/* Connects to the host, plain. */
static inline void peer_connect_to(struct peer *peer, const struct host *host)
{
	struct stream_connect_options options = { .host = "127.0.0.1", .port = host->address.port };

	peer_connect(peer, &options);
}

static inline void peer_write(struct peer *peer, struct slice bytes)
{
	struct error err;

	assert_true(stream_write(peer->stream, bytes, &err));
}

static inline void too_late(void *context)
{
	*(bool *)context = true;
}

/* Ends a wait that takes too long, and turns the loop now and then for conditions that no callback brings about. */
struct guard {
	struct loop *loop;
	struct loop_timer timer;
	unsigned ticks_left;
};

static inline void guard_tick(void *context)
{
	struct guard *guard = context;

	guard->ticks_left--;
	if (guard->ticks_left > 0)
		loop_timer_start(guard->loop, &guard->timer, 5 * NS_PER_MS, guard_tick, guard);
}

/* Turns the loop until the condition holds; the test fails after 20 seconds. */
#define TURN_UNTIL(the_loop, condition) TURN_UNTIL_OR_FAIL(the_loop, condition, #condition)
#define TURN_UNTIL_OR_FAIL(the_loop, condition, text)                            \
	do {                                                                     \
		struct guard guard = { .loop = (the_loop), .ticks_left = 4001 }; \
		struct error guard_err;                                          \
		bool guard_reached;                                              \
		guard_tick(&guard);                                              \
		while (!(guard_reached = (condition)) && guard.ticks_left > 0)   \
			assert_true(loop_turn(guard.loop, &guard_err));          \
		loop_timer_stop(guard.loop, &guard.timer);                       \
		if (!guard_reached)                                              \
			fail_msg("not within 20 s: %s", text);                   \
	} while (0)

/* Turns for a while: for what must not happen. */
static inline void turn_for(struct loop *loop, uint64_t ms)
{
	struct loop_timer timer = { 0 };
	struct error err;
	bool over = false;

	loop_timer_start(loop, &timer, ms * NS_PER_MS, too_late, &over);
	while (!over)
		assert_true(loop_turn(loop, &err));
}

static inline struct loop *new_loop(void)
{
	struct error err;
	struct loop *loop = loop_epoll_create(&err);

	assert_non_null(loop);
	return loop;
}

static inline size_t open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

/* Bytes in which a lost or swapped block shows. */
static inline char *pattern(size_t length)
{
	char *data = memory_allocate(length);

	assert_non_null(data);
	for (size_t i = 0; i < length; i++)
		data[i] = (char)(i * 7 + i / 251 + i / 65521);
	return data;
}

#endif
