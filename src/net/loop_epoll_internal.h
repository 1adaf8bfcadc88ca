/*
 * What the files of the real loop share.
 */
#ifndef BALLAST_NET_LOOP_EPOLL_INTERNAL_H
#define BALLAST_NET_LOOP_EPOLL_INTERNAL_H

#include <stdint.h>

#include "net/loop_epoll.h"
#include "net/loop_internal.h"

/* Anything that has a descriptor in the epoll set. */
struct epoll_item {
	/* events: EPOLLIN and so on. Never called after epoll_item_forget. */
	void (*on_ready)(struct epoll_item *item, uint32_t events);
	int descriptor;
	uint32_t events; /* as in the set; 0: not in it */
	bool forgotten;
	struct loop_garbage garbage;
};

struct dns;

struct epoll_loop {
	struct loop loop; /* must be first */
	const struct loop_epoll_calls *calls;
	struct dns *dns; /* NULL until the first lookup */
	int descriptor;
};

/*
 * Puts the item's descriptor into the set, changes what it waits for, or takes it out (0). False with *err when the
 * system refuses; the item is then as before.
 */
bool epoll_item_set_events(struct epoll_loop *epoll, struct epoll_item *item, uint32_t events, struct error *err);

/*
 * Takes the item out for good: it is told nothing more, not even what is ready already. release(owner) runs when that
 * is safe.
 */
void epoll_item_forget(struct epoll_loop *epoll, struct epoll_item *item, void (*release)(void *owner), void *owner);

/* The operations of sockets; see loop.h. */
struct socket *epoll_socket_connect(struct loop *loop, const struct address *address, const struct address *local,
                                    const struct socket_handler *handler, void *context, struct error *err);
struct socket *epoll_socket_listen(struct loop *loop, const struct address *address,
                                   const struct socket_handler *handler, void *context, struct error *err);

#endif
