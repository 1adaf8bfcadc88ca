/*
 * Level-triggered: what isn't dealt with in one turn is told again in the next. epoll reports errors and hang-ups
 * whether asked or not, so an item that waits for nothing is taken out of the set: a paused stream whose peer went away
 * would otherwise wake the loop for ever.
 *
 * One wait may report several items, and the handler of the first may close the second. So a closed item is only
 * marked; its memory goes at the end of the turn.
 */
#include "net/loop_epoll.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/dns.h"
#include "net/limits.h"
#include "net/loop_epoll_internal.h"

enum { EVENTS_PER_TURN = 64 };

const struct loop_epoll_calls LOOP_EPOLL_SYSTEM_CALLS = {
	.recv = recv,
	.send = send,
	.connect = connect,
	.accept4 = accept4,
	.epoll_ctl = epoll_ctl,
	.getaddrinfo = getaddrinfo,
};

/* ---- items ---- */

bool epoll_item_set_events(struct epoll_loop *epoll, struct epoll_item *item, uint32_t events, struct error *err)
{
	struct epoll_event event = { .events = events, .data.ptr = item };

	if (events == item->events)
		return true;

	int operation = item->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

	if (epoll->calls->epoll_ctl(epoll->descriptor, operation, item->descriptor, &event) != 0)
		return error_set_errno(err, errno, "epoll_ctl");
	item->events = events;
	return true;
}

void epoll_item_forget(struct epoll_loop *epoll, struct epoll_item *item, void (*release)(void *owner), void *owner)
{
	struct error ignored;

	epoll_item_set_events(epoll, item, 0, &ignored); /* taking out can't fail */
	item->forgotten = true;
	loop_release_later(&epoll->loop, &item->garbage, release, owner);
}

/* ---- watches ---- */

struct epoll_watch {
	struct loop_watch watch; /* must be first */
	struct epoll_item item;
	struct epoll_loop *epoll;
	void (*callback)(void *context);
	void *context;
	struct loop_task always; /* for descriptors that epoll refuses because they are always ready */
	bool is_always_ready;
};

static void release_memory(void *owner)
{
	memory_release(owner);
}

static void watch_stop(struct loop_watch *base)
{
	struct epoll_watch *watch = (struct epoll_watch *)base;

	loop_task_cancel(&watch->epoll->loop, &watch->always);
	epoll_item_forget(watch->epoll, &watch->item, release_memory, watch);
}

static void watch_ready(struct epoll_item *item, uint32_t events)
{
	struct epoll_watch *watch = (struct epoll_watch *)((char *)item - offsetof(struct epoll_watch, item));

	(void)events;
	watch->callback(watch->context);
}

static void watch_always(void *context)
{
	struct epoll_watch *watch = context;

	loop_run_soon(&watch->epoll->loop, &watch->always, watch_always, watch);
	watch->callback(watch->context);
}

static struct loop_watch *watch_create(struct loop *loop, int descriptor, unsigned interest,
                                       void (*callback)(void *context), void *context, struct error *err)
{
	struct epoll_loop *epoll = (struct epoll_loop *)loop;
	struct epoll_watch *watch = memory_allocate(sizeof *watch);
	struct epoll_event event = {
		.events = ((interest & SOCKET_READ) != 0 ? EPOLLIN : 0U) |
		          ((interest & SOCKET_WRITE) != 0 ? EPOLLOUT : 0U),
	};

	if (watch == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory to watch a descriptor");
		return NULL;
	}
	*watch = (struct epoll_watch){
		.watch.stop = watch_stop,
		.item = { .on_ready = watch_ready, .descriptor = descriptor },
		.epoll = epoll,
		.callback = callback,
		.context = context,
	};
	event.data.ptr = &watch->item;
	if (epoll->calls->epoll_ctl(epoll->descriptor, EPOLL_CTL_ADD, descriptor, &event) == 0) {
		watch->item.events = event.events;
	} else if (errno == EPERM) {
		loop_run_soon(loop, &watch->always, watch_always, watch);
	} else {
		error_set_errno(err, errno, "epoll_ctl");
		memory_release(watch);
		return NULL;
	}
	return &watch->watch;
}

/* ---- the loop's operations ---- */

static uint64_t epoll_monotonic_ns(const struct loop *loop)
{
	(void)loop;
	return clock_monotonic_ns();
}

static int64_t epoll_wall_ns(const struct loop *loop)
{
	(void)loop;
	return clock_wall_ns();
}

static bool epoll_random(struct loop *loop, void *data, size_t length)
{
	char *bytes = data;

	(void)loop;
	while (length > 0) {
		ssize_t got = getrandom(bytes, length, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		bytes += got;
		length -= (size_t)got;
	}
	return true;
}

/* epoll counts in milliseconds: rounded up, so that a timer is due when the wait ends. */
static int wait_ms(uint64_t now_ns, uint64_t until_ns)
{
	enum { LONGEST_MS = 60 * 60 * 1000 }; /* then the turn just finds nothing due */

	if (until_ns == UINT64_MAX)
		return -1;
	if (until_ns <= now_ns)
		return 0;

	uint64_t ms = (until_ns - now_ns - 1) / NS_PER_MS + 1;

	return ms < LONGEST_MS ? (int)ms : LONGEST_MS;
}

static bool epoll_wait_and_run(struct loop *loop, uint64_t until_ns, struct error *err)
{
	struct epoll_loop *epoll = (struct epoll_loop *)loop;
	struct epoll_event events[EVENTS_PER_TURN];
	int count = epoll_wait(epoll->descriptor, events, EVENTS_PER_TURN, wait_ms(clock_monotonic_ns(), until_ns));

	if (count < 0 && errno != EINTR)
		return error_set_errno(err, errno, "epoll_wait");
	loop->now_ns = clock_monotonic_ns();
	for (int i = 0; i < count; i++) {
		struct epoll_item *item = events[i].data.ptr;

		if (!item->forgotten)
			item->on_ready(item, events[i].events);
	}
	return true;
}

static struct lookup *epoll_lookup(struct loop *loop, const char *host, uint16_t port, uint64_t timeout_ns,
                                   lookup_callback *callback, void *context, struct error *err)
{
	struct epoll_loop *epoll = (struct epoll_loop *)loop;

	if (epoll->dns == NULL)
		epoll->dns = dns_create(loop, epoll->calls->getaddrinfo, err);
	if (epoll->dns == NULL)
		return NULL;
	return dns_lookup(epoll->dns, host, port, timeout_ns, callback, context, err);
}

static void epoll_destroy(struct loop *loop)
{
	struct epoll_loop *epoll = (struct epoll_loop *)loop;

	close(epoll->descriptor);
	memory_release(epoll);
}

static void epoll_close(struct loop *loop)
{
	struct epoll_loop *epoll = (struct epoll_loop *)loop;

	dns_destroy(epoll->dns);
	epoll->dns = NULL;
}

static const struct loop_operations OPERATIONS = {
	.monotonic_ns = epoll_monotonic_ns,
	.wall_ns = epoll_wall_ns,
	.random = epoll_random,
	.wait = epoll_wait_and_run,
	.connect = epoll_socket_connect,
	.listen = epoll_socket_listen,
	.watch = watch_create,
	.lookup = epoll_lookup,
	.close = epoll_close,
	.destroy = epoll_destroy,
};

struct loop *loop_epoll_create_with_calls(const struct loop_epoll_calls *calls, struct error *err)
{
	struct epoll_loop *epoll = memory_allocate(sizeof *epoll);
	uint64_t seed;

	if (epoll == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for an event loop");
		return NULL;
	}
	loop_init(&epoll->loop, &OPERATIONS);
	epoll->calls = calls;
	epoll->descriptor = epoll_create1(EPOLL_CLOEXEC);
	if (epoll->descriptor < 0) {
		error_set_errno(err, errno, "epoll_create1");
		memory_release(epoll);
		return NULL;
	}
	if (!loop_random(&epoll->loop, &seed, sizeof seed)) {
		error_set(err, ERROR_SYSTEM, "the system gives no random numbers");
		loop_destroy(&epoll->loop);
		return NULL;
	}
	rng_seed(&epoll->loop.rng, seed);
	return &epoll->loop;
}

struct loop *loop_epoll_create(struct error *err)
{
	return loop_epoll_create_with_calls(&LOOP_EPOLL_SYSTEM_CALLS, err);
}
