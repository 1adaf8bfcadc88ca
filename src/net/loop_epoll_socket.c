/*
 * Sockets of the real loop. All are non-blocking, closed on exec, without delay (a TLS handshake takes 40 ms longer
 * with it), and find a dead peer by themselves (limits.h).
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/limits.h"
#include "net/loop_epoll_internal.h"
#include "net/socket_address.h"

struct epoll_socket {
	struct socket socket; /* must be first */
	struct epoll_item item;
};

static struct epoll_loop *loop_of(const struct socket *socket)
{
	return (struct epoll_loop *)socket->loop;
}

static const struct epoll_item *item_of(const struct socket *socket)
{
	return &((const struct epoll_socket *)socket)->item;
}

/* Errors and hang-ups wake both sides: the next read or write tells what happened. */
static void socket_ready(struct epoll_item *item, uint32_t events)
{
	struct epoll_socket *self = (struct epoll_socket *)((char *)item - offsetof(struct epoll_socket, item));
	const uint32_t either = EPOLLERR | EPOLLHUP;

	if ((events & (EPOLLIN | either)) != 0 && (item->events & EPOLLIN) != 0)
		self->socket.handler.on_readable(self->socket.context);
	if (item->forgotten)
		return;
	if ((events & (EPOLLOUT | either)) != 0 && (item->events & EPOLLOUT) != 0)
		self->socket.handler.on_writable(self->socket.context);
}

static bool set_interest(struct socket *socket, unsigned interest, struct error *err)
{
	struct epoll_socket *self = (struct epoll_socket *)socket;
	uint32_t events =
		((interest & SOCKET_READ) != 0 ? EPOLLIN : 0U) | ((interest & SOCKET_WRITE) != 0 ? EPOLLOUT : 0U);

	return epoll_item_set_events(loop_of(socket), &self->item, events, err);
}

static bool connect_result(struct socket *socket, struct error *err)
{
	int result = 0;
	socklen_t length = sizeof result;

	if (getsockopt(item_of(socket)->descriptor, SOL_SOCKET, SO_ERROR, &result, &length) != 0)
		result = errno;
	return result == 0 || error_set_errno(err, result, "connect");
}

static enum socket_result read_some(struct socket *socket, void *data, size_t size, size_t *ret_length,
                                    struct error *err)
{
	ssize_t length;

	do
		length = loop_of(socket)->calls->recv(item_of(socket)->descriptor, data, size, 0);
	while (length < 0 && errno == EINTR);
	if (length > 0) {
		*ret_length = (size_t)length;
		return SOCKET_OK;
	}
	if (length == 0)
		return SOCKET_END;
	if (errno == EAGAIN)
		return SOCKET_AGAIN;
	error_set_errno(err, errno, "read");
	return SOCKET_FAILED;
}

static enum socket_result write_some(struct socket *socket, const void *data, size_t length, size_t *ret_written,
                                     struct error *err)
{
	ssize_t written;

	do
		written = loop_of(socket)->calls->send(item_of(socket)->descriptor, data, length, MSG_NOSIGNAL);
	while (written < 0 && errno == EINTR);
	if (written > 0) {
		*ret_written = (size_t)written;
		return SOCKET_OK;
	}
	if (written == 0 || errno == EAGAIN)
		return SOCKET_AGAIN;
	error_set_errno(err, errno, "write");
	return SOCKET_FAILED;
}

static void shutdown_write(struct socket *socket)
{
	shutdown(item_of(socket)->descriptor, SHUT_WR); /* fails only if the connection is gone already */
}

static bool local_address(const struct socket *socket, struct address *ret_address)
{
	struct sockaddr_storage system;
	socklen_t length = sizeof system;

	return getsockname(item_of(socket)->descriptor, (struct sockaddr *)&system, &length) == 0 &&
	       socket_address_from_system((const struct sockaddr *)&system, ret_address);
}

static void release_socket(void *owner)
{
	memory_release(owner);
}

static void close_socket(struct socket *socket, bool abort)
{
	struct epoll_socket *self = (struct epoll_socket *)socket;
	const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
	int descriptor = self->item.descriptor;

	epoll_item_forget(loop_of(socket), &self->item, release_socket, self);
	if (abort)
		setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(descriptor);
}

static struct socket *accept_one(struct socket *listener, struct address *ret_peer, enum socket_result *ret_result,
                                 struct error *err);

static const struct socket_operations OPERATIONS = {
	.connect_result = connect_result,
	.accept = accept_one,
	.set_interest = set_interest,
	.read = read_some,
	.write = write_some,
	.shutdown_write = shutdown_write,
	.local_address = local_address,
	.close = close_socket,
};

/* What the peer of a connection must not be able to make us wait for. Best effort: the socket works without. */
static void set_options(int descriptor)
{
	static const struct {
		int level, name, value;
	} OPTIONS[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, NET_KEEPALIVE_IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, NET_KEEPALIVE_INTERVAL_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, NET_KEEPALIVE_COUNT },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, NET_USER_TIMEOUT_MS },
	};

	for (size_t i = 0; i < sizeof OPTIONS / sizeof OPTIONS[0]; i++)
		setsockopt(descriptor, OPTIONS[i].level, OPTIONS[i].name, &OPTIONS[i].value, sizeof OPTIONS[i].value);
}

static struct epoll_socket *allocate_socket(struct loop *loop, const struct socket_handler *handler, void *context,
                                            struct error *err)
{
	struct epoll_socket *self = memory_allocate(sizeof *self);

	if (self == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a socket");
		return NULL;
	}
	self->socket = (struct socket){ .operations = &OPERATIONS, .loop = loop, .context = context };
	if (handler != NULL)
		self->socket.handler = *handler;
	self->item = (struct epoll_item){ .on_ready = socket_ready, .descriptor = -1 };
	return self;
}

static int open_descriptor(bool is_ipv6)
{
	return socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* A socket with a descriptor, not yet bound to anything. */
static struct epoll_socket *open_socket(struct loop *loop, const struct address *address,
                                        const struct socket_handler *handler, void *context, struct error *err)
{
	struct epoll_socket *self = allocate_socket(loop, handler, context, err);

	if (self == NULL)
		return NULL;
	self->item.descriptor = open_descriptor(address->is_ipv6);
	if (self->item.descriptor < 0) {
		error_set_errno(err, errno, "socket");
		memory_release(self);
		return NULL;
	}
	return self;
}

static bool bind_to(int descriptor, const struct address *address, struct error *err)
{
	struct sockaddr_storage system;
	socklen_t length = socket_address_to_system(address, &system);

	return bind(descriptor, (const struct sockaddr *)&system, length) == 0 || error_set_errno(err, errno, "bind");
}

struct socket *epoll_socket_connect(struct loop *loop, const struct address *address, const struct address *local,
                                    const struct socket_handler *handler, void *context, struct error *err)
{
	struct epoll_socket *self = open_socket(loop, address, handler, context, err);
	struct sockaddr_storage system;
	socklen_t length = socket_address_to_system(address, &system);

	if (self == NULL)
		return NULL;

	int descriptor = self->item.descriptor;

	set_options(descriptor);
	if (local != NULL && !bind_to(descriptor, local, err))
		goto fail;
	/* Interrupted or not, a connect goes on by itself (POSIX). */
	if (loop_of(&self->socket)->calls->connect(descriptor, (const struct sockaddr *)&system, length) != 0 &&
	    errno != EINPROGRESS && errno != EINTR) {
		error_set_errno(err, errno, "connect");
		goto fail;
	}
	if (!set_interest(&self->socket, SOCKET_WRITE, err))
		goto fail;
	return &self->socket;
fail:
	close_socket(&self->socket, false);
	return NULL;
}

/* "::" stands for all addresses; a kernel that was started without IPv6 has them all at 0.0.0.0. */
static struct address where_ipv6_is_missing(const struct address *address)
{
	static const uint8_t ALL[sizeof address->bytes] = { 0 };

	if (!address->is_ipv6 || memcmp(address->bytes, ALL, sizeof ALL) != 0)
		return *address;

	int probe = open_descriptor(true);

	if (probe < 0 && errno == EAFNOSUPPORT)
		return (struct address){ .port = address->port };
	if (probe >= 0)
		close(probe);
	return *address;
}

struct socket *epoll_socket_listen(struct loop *loop, const struct address *address,
                                   const struct socket_handler *handler, void *context, struct error *err)
{
	const struct address local = where_ipv6_is_missing(address);
	struct epoll_socket *self = open_socket(loop, &local, handler, context, err);
	const int on = 1, off = 0;

	if (self == NULL)
		return NULL;

	int descriptor = self->item.descriptor;

	setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (local.is_ipv6)
		/* "::" takes IPv4 too, whatever the system's default. */
		setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (!bind_to(descriptor, &local, err))
		goto fail;
	if (listen(descriptor, NET_LISTEN_BACKLOG) != 0) {
		error_set_errno(err, errno, "listen");
		goto fail;
	}
	if (!set_interest(&self->socket, SOCKET_READ, err))
		goto fail;
	return &self->socket;
fail:
	close_socket(&self->socket, false);
	return NULL;
}

/* What accept(2) reports about one connection that is gone already; the next one may be fine. */
static bool concerns_one_connection(int errno_value)
{
	switch (errno_value) {
	case EINTR:
	case ECONNABORTED:
	case EPROTO:
	case ENOPROTOOPT:
	case ENETDOWN:
	case ENETUNREACH:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case ENONET:
	case EOPNOTSUPP:
	case EPERM: /* forbidden by a firewall */
		return true;
	default:
		return false;
	}
}

static struct socket *accept_one(struct socket *listener, struct address *ret_peer, enum socket_result *ret_result,
                                 struct error *err)
{
	enum { TRIES = NET_LISTEN_BACKLOG };
	struct sockaddr_storage system = { 0 };
	struct address peer = { 0 };
	int descriptor = -1;

	for (int i = 0; i < TRIES && descriptor < 0; i++) {
		socklen_t length = sizeof system;

		descriptor =
			loop_of(listener)->calls->accept4(item_of(listener)->descriptor, (struct sockaddr *)&system,
		                                          &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (descriptor < 0 && !concerns_one_connection(errno))
			break;
	}
	if (descriptor < 0) {
		*ret_result = errno == EAGAIN || concerns_one_connection(errno) ? SOCKET_AGAIN : SOCKET_FAILED;
		if (*ret_result == SOCKET_FAILED)
			error_set_errno(err, errno, "accept");
		return NULL;
	}

	struct epoll_socket *self = allocate_socket(listener->loop, NULL, NULL, err);

	if (self == NULL) {
		close(descriptor);
		*ret_result = SOCKET_FAILED;
		return NULL;
	}
	self->item.descriptor = descriptor;
	set_options(descriptor);
	socket_address_from_system((const struct sockaddr *)&system, &peer);
	*ret_peer = peer;
	*ret_result = SOCKET_OK;
	return &self->socket;
}
