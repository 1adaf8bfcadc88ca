/*
 * The real loop: epoll, sockets, the system's clocks and randomness, and a helper thread for names.
 */
#ifndef BALLAST_NET_LOOP_EPOLL_H
#define BALLAST_NET_LOOP_EPOLL_H

#include <netdb.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/error.h"
#include "net/loop.h"

/* The system calls that tests replace, to answer short, late or not at all. Each behaves as its namesake. */
struct loop_epoll_calls {
	ssize_t (*recv)(int descriptor, void *data, size_t size, int flags);
	ssize_t (*send)(int descriptor, const void *data, size_t length, int flags);
	int (*connect)(int descriptor, const struct sockaddr *address, socklen_t length);
	int (*accept4)(int descriptor, struct sockaddr *address, socklen_t *length, int flags);
	int (*epoll_ctl)(int epoll, int operation, int descriptor, struct epoll_event *event);
	/* Called from the helper thread; *ret_list is freed with freeaddrinfo. */
	int (*getaddrinfo)(const char *host, const char *service, const struct addrinfo *hints,
	                   struct addrinfo **ret_list);
};

/* The system's own. */
extern const struct loop_epoll_calls LOOP_EPOLL_SYSTEM_CALLS;

/* Makes a loop; loop_destroy frees it. NULL with *err if memory or descriptors are short. */
struct loop *loop_epoll_create(struct error *err);

/* As loop_epoll_create, with other system calls; *calls must outlive the loop and its lookups. For tests. */
struct loop *loop_epoll_create_with_calls(const struct loop_epoll_calls *calls, struct error *err);

#endif
