/*
 * What a process sees of the network: sockets that behave as those of loop_epoll_socket.c, level-triggered, with the same
 * errors.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "net/loop_sim_internal.h"

static struct sim_socket *self_of(struct socket *socket)
{
	return (struct sim_socket *)socket;
}

static struct sim_end *end_of(const struct sim_socket *socket)
{
	return &socket->connection->ends[socket->side];
}

bool sim_socket_is_readable(const struct sim_socket *socket)
{
	const struct sim_end *end;

	if (socket->closed)
		return false;
	if (socket->listens)
		return socket->first_waiting != NULL;
	end = end_of(socket);
	return !end->severed && (end->failure != 0 || (end->first != NULL && end->first->arrived));
}

bool sim_socket_is_writable(const struct sim_socket *socket)
{
	const struct sim_end *end;

	if (socket->closed || socket->listens)
		return false;
	end = end_of(socket);
	if (end->severed)
		return false;
	return end->failure != 0 ||
	       (end->connected && socket->connection->ends[!socket->side].unread_bytes < SIM_WINDOW_BYTES);
}

/* ---- operations ---- */

static bool connect_result(struct socket *socket, struct error *err)
{
	const struct sim_end *end = end_of(self_of(socket));

	return end->failure == 0 || error_set_errno(err, end->failure, "connect");
}

static bool set_interest(struct socket *socket, unsigned interest, struct error *err)
{
	struct sim_socket *self = self_of(socket);

	/* Taking out can't fail, nor does what changes nothing ask the system. */
	if (interest != self->interest && interest != 0 && sim_call_fails(self->owner))
		return error_set_errno(err, ENOMEM, "epoll_ctl");
	self->interest = interest;
	sim_wake(self);
	return true;
}

static enum socket_result read_some(struct socket *socket, void *data, size_t size, size_t *ret_length,
                                    struct error *err)
{
	struct sim_socket *self = self_of(socket);
	struct sim_end *end = end_of(self);
	size_t length;

	if (end->severed)
		return SOCKET_AGAIN;
	if (end->failure == 0 && sim_call_fails(self->owner)) {
		end->failure = ECONNRESET;
		sim_network_reset(self->connection, !self->side);
	}
	length = sim_network_read(self->connection, self->side, data, size);
	if (length > 0) {
		*ret_length = length;
		return SOCKET_OK;
	}
	if (end->first != NULL && end->first->arrived)
		return SOCKET_END;
	if (end->failure == 0)
		return SOCKET_AGAIN;
	error_set_errno(err, end->failure, "read");
	return SOCKET_FAILED;
}

static enum socket_result write_some(struct socket *socket, const void *data, size_t length, size_t *ret_written,
                                     struct error *err)
{
	struct sim_socket *self = self_of(socket);
	struct sim_end *end = end_of(self);
	struct sim_world *world = self->owner->world;

	if (end->severed) {
		*ret_written = length;
		return SOCKET_OK;
	}
	if (end->failure == 0 && sim_call_fails(self->owner)) {
		end->failure = EPIPE;
		sim_network_reset(self->connection, !self->side);
	}
	if (end->failure != 0) {
		error_set_errno(err, end->failure, "write");
		return SOCKET_FAILED;
	}
	if (length > 1 && sim_chance(world, world->faults.short_writes)) {
		length = (size_t)rng_between(&world->rng, 1, length);
		sim_count_fault(world, SIM_FAULT_SHORT_WRITE);
	}
	*ret_written = sim_network_send(self->connection, self->side, data, length);
	if (*ret_written == 0)
		return SOCKET_AGAIN;
	self->owner->bytes_sent += *ret_written;
	return SOCKET_OK;
}

static void shutdown_write(struct socket *socket)
{
	struct sim_socket *self = self_of(socket);

	if (!end_of(self)->severed)
		sim_network_send_end(self->connection, self->side);
}

static bool local_address(const struct socket *socket, struct address *ret_address)
{
	const struct sim_socket *self = (const struct sim_socket *)socket;

	*ret_address = self->listens ? self->address : end_of(self)->address;
	return true;
}

static void release_socket(void *owner)
{
	memory_release(owner);
}

static void take_from_ready(struct sim_socket *self)
{
	struct sim_socket **place = &self->owner->first_ready;
	struct sim_socket *before = NULL;

	if (!self->queued)
		return;
	while (*place != self) {
		before = *place;
		place = &(*place)->next_ready;
	}
	*place = self->next_ready;
	if (self->owner->last_ready == self)
		self->owner->last_ready = before;
	self->queued = false;
}

static void refuse_waiting(struct sim_socket *self)
{
	while (self->first_waiting != NULL) {
		struct sim_connection *connection = self->first_waiting;

		self->first_waiting = connection->next_waiting;
		sim_network_close(connection, 1, true, true);
	}
	self->last_waiting = NULL;
	self->waiting_count = 0;
}

static void close_socket(struct socket *socket, bool abort)
{
	struct sim_socket *self = self_of(socket);

	take_from_ready(self);
	self->closed = true;
	if (self->previous != NULL)
		self->previous->next = self->next;
	else
		self->owner->sockets = self->next;
	if (self->next != NULL)
		self->next->previous = self->previous;
	self->owner->socket_count--;
	if (self->listens)
		refuse_waiting(self);
	else
		sim_network_close(self->connection, self->side, abort, !end_of(self)->severed);
	loop_release_later(&self->owner->loop, &self->garbage, release_socket, self);
}

static struct socket *accept_one(struct socket *socket, struct address *ret_peer, enum socket_result *ret_result,
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

/* ---- making them ---- */

static struct sim_socket *create(struct loop *loop, const struct socket_handler *handler, void *context,
                                 struct error *err)
{
	struct sim_loop *owner = (struct sim_loop *)loop;
	struct sim_socket *self = memory_allocate(sizeof *self);

	if (self == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a socket");
		return NULL;
	}
	self->socket = (struct socket){ .operations = &OPERATIONS, .loop = loop, .context = context };
	if (handler != NULL)
		self->socket.handler = *handler;
	self->owner = owner;
	return self;
}

/* In order of their making: what chance picks must not depend on anything else. */
static void keep(struct sim_socket *self)
{
	self->next = self->owner->sockets;
	self->previous = NULL;
	if (self->next != NULL)
		self->next->previous = self;
	self->owner->sockets = self;
	self->owner->socket_count++;
}

static uint16_t free_port(struct sim_world *world)
{
	uint16_t port = world->next_port++;

	if (world->next_port == 0)
		world->next_port = 32768;
	return port;
}

struct socket *sim_socket_connect(struct loop *loop, const struct address *address, const struct address *local,
                                  const struct socket_handler *handler, void *context, struct error *err)
{
	struct sim_loop *owner = (struct sim_loop *)loop;
	struct sim_socket *self = create(loop, handler, context, err);
	struct address from = local != NULL ? *local : owner->address;

	if (self == NULL)
		return NULL;
	if (sim_call_fails(owner)) {
		error_set_errno(err, EMFILE, "socket");
		goto fail;
	}
	if (from.port == 0)
		from.port = free_port(owner->world);
	self->connection = sim_network_connect(self, &from, address);
	if (self->connection == NULL) {
		error_set_errno(err, ENOBUFS, "connect");
		goto fail;
	}
	self->interest = SOCKET_WRITE;
	keep(self);
	return &self->socket;
fail:
	memory_release(self);
	return NULL;
}

static bool is_taken(const struct sim_world *world, const struct address *address)
{
	for (const struct sim_loop *loop = world->loops; loop != NULL; loop = loop->next) {
		for (const struct sim_socket *socket = loop->sockets; socket != NULL && !loop->crashed;
		     socket = socket->next)
			if (socket->listens && address_equal(&socket->address, address))
				return true;
	}
	return false;
}

struct socket *sim_socket_listen(struct loop *loop, const struct address *address, const struct socket_handler *handler,
                                 void *context, struct error *err)
{
	struct sim_loop *owner = (struct sim_loop *)loop;
	struct sim_socket *self = create(loop, handler, context, err);

	if (self == NULL)
		return NULL;
	self->listens = true;
	self->address = *address;
	if (self->address.port == 0)
		self->address.port = free_port(owner->world);
	if (sim_call_fails(owner)) {
		error_set_errno(err, EMFILE, "socket");
		goto fail;
	}
	if (is_taken(owner->world, &self->address)) {
		error_set_errno(err, EADDRINUSE, "bind");
		goto fail;
	}
	self->interest = SOCKET_READ;
	keep(self);
	return &self->socket;
fail:
	memory_release(self);
	return NULL;
}

static struct socket *accept_one(struct socket *socket, struct address *ret_peer, enum socket_result *ret_result,
                                 struct error *err)
{
	struct sim_socket *listener = self_of(socket);
	struct sim_world *world = listener->owner->world;
	struct sim_connection *connection = listener->first_waiting;
	struct sim_socket *self;

	if (connection == NULL) {
		*ret_result = SOCKET_AGAIN;
		return NULL;
	}
	*ret_result = SOCKET_FAILED;
	if (sim_call_fails(listener->owner) || sim_chance(world, world->faults.failed_accept)) {
		sim_count_fault(world, SIM_FAULT_FAILED_ACCEPT);
		error_set_errno(err, EMFILE, "accept");
		return NULL;
	}
	listener->first_waiting = connection->next_waiting;
	if (listener->first_waiting == NULL)
		listener->last_waiting = NULL;
	listener->waiting_count--;
	self = create(socket->loop, NULL, NULL, err);
	if (self == NULL) {
		sim_network_close(connection, 1, true, true);
		return NULL;
	}
	self->connection = connection;
	self->side = 1;
	connection->ends[1].socket = self;
	keep(self);
	sim_wake(self);
	*ret_peer = connection->ends[0].address;
	*ret_result = SOCKET_OK;
	return &self->socket;
}

void sim_socket_sever(struct sim_socket *socket, enum sim_crash how)
{
	struct sim_end *end;

	if (socket->listens) {
		refuse_waiting(socket);
		return;
	}
	end = end_of(socket);
	if (end->severed)
		return;
	if (how == SIM_CRASH_SILENT)
		sim_network_silence(socket->connection);
	else if (how == SIM_CRASH_RESET || end->unread_bytes > 0)
		sim_network_reset(socket->connection, !socket->side);
	else
		sim_network_send_end(socket->connection, socket->side);
	end->severed = true;
}
