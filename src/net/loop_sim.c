/*
 * One step: find the earliest thing that can happen (an event of the network, or a loop that has something to do), make
 * it that time, let the network's events of that time happen, and turn one of the loops that are due, chosen by chance.
 *
 * A turn costs its loop some microseconds, so that a process that never rests can't stop time; it is seen by the number
 * of its turns.
 */
#include "net/loop_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/limits.h"
#include "net/loop_sim_internal.h"

enum { TURN_LOW_NS = 5000, TURN_HIGH_NS = 60000, FIRST_PORT = 32768, LOOKUP_LOW_MS = 1, LOOKUP_HIGH_MS = 20 };

/* ---- events: a binary heap by time, then by order ---- */

static bool comes_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void swap_events(struct sim_world *world, size_t a, size_t b)
{
	struct sim_event *event = world->events[a];

	world->events[a] = world->events[b];
	world->events[b] = event;
}

bool sim_schedule(struct sim_world *world, struct sim_event *event, uint64_t time_ns,
                  void (*run)(struct sim_event *event))
{
	size_t place = world->event_count;

	if (place == world->event_room) {
		size_t room = place == 0 ? 256 : 2 * place;
		struct sim_event **events = realloc(world->events, room * sizeof(struct sim_event *));

		if (events == NULL) {
			world->out_of_memory = true;
			return false;
		}
		world->events = events;
		world->event_room = room;
	}
	event->time_ns = time_ns > world->now_ns ? time_ns : world->now_ns;
	event->order = world->next_order++;
	event->run = run;
	world->events[world->event_count++] = event;
	for (; place > 0 && comes_before(world->events[place], world->events[(place - 1) / 2]); place = (place - 1) / 2)
		swap_events(world, place, (place - 1) / 2);
	return true;
}

static void sink(struct sim_world *world, size_t place)
{
	for (;;) {
		size_t child = 2 * place + 1;

		if (child + 1 < world->event_count && comes_before(world->events[child + 1], world->events[child]))
			child++;
		if (child >= world->event_count || !comes_before(world->events[child], world->events[place]))
			return;
		swap_events(world, place, child);
		place = child;
	}
}

static struct sim_event *take_first(struct sim_world *world)
{
	struct sim_event *first = world->events[0];

	world->events[0] = world->events[--world->event_count];
	sink(world, 0);
	return first;
}

void sim_order_anew(struct sim_world *world)
{
	for (size_t place = world->event_count / 2; place-- > 0;)
		sink(world, place);
}

static void run_events(struct sim_world *world)
{
	while (world->event_count > 0 && world->events[0]->time_ns <= world->now_ns) {
		struct sim_event *event = take_first(world);

		event->run(event);
	}
}

static uint64_t next_event_ns(const struct sim_world *world)
{
	return world->event_count > 0 ? world->events[0]->time_ns : UINT64_MAX;
}

/* ---- running ---- */

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* When the loop can turn next. */
static uint64_t due_ns(const struct sim_loop *self)
{
	uint64_t due = self->first_ready != NULL ? 0 : loop_due_ns(&self->loop);

	if (self->crashed || self->loop.stopping || due == UINT64_MAX)
		return UINT64_MAX;
	return later_of(due, later_of(self->busy_until_ns, self->frozen_until_ns));
}

static struct sim_loop *choose_due(struct sim_world *world)
{
	struct sim_loop *chosen = NULL;
	uint64_t count = 0;

	for (struct sim_loop *self = world->loops; self != NULL; self = self->next) {
		if (due_ns(self) > world->now_ns)
			continue;
		count++;
		if (count == 1 || rng_between(&world->rng, 0, count) == 0)
			chosen = self;
	}
	return chosen;
}

static bool turn(struct sim_loop *self, struct error *err)
{
	struct sim_world *world = self->world;
	bool went;

	self->busy_until_ns = world->now_ns + rng_between(&world->rng, TURN_LOW_NS, TURN_HIGH_NS);
	world->in_step = true;
	if (self->watcher != NULL)
		self->watcher(self->watcher_context, true);
	went = loop_turn(&self->loop, err);
	if (self->watcher != NULL)
		self->watcher(self->watcher_context, false);
	world->in_step = false;
	sim_hash_value(world, self->number);
	return went;
}

bool sim_world_step(struct sim_world *world, uint64_t until_ns, struct error *err)
{
	uint64_t next_ns = next_event_ns(world);
	struct sim_loop *self;

	err->code = ERROR_NONE;
	for (self = world->loops; self != NULL; self = self->next) {
		uint64_t due = due_ns(self);

		if (due < next_ns)
			next_ns = due;
	}
	if (next_ns > until_ns) {
		world->now_ns = later_of(world->now_ns, until_ns);
		return false;
	}
	world->now_ns = later_of(world->now_ns, next_ns);
	run_events(world);
	if (world->out_of_memory)
		return error_set(err, ERROR_NO_MEMORY, "the machine has no memory for the simulated network");
	self = choose_due(world);
	return self == NULL || turn(self, err);
}

/* ---- what a loop is made of ---- */

static uint64_t monotonic_ns(const struct loop *loop)
{
	return ((const struct sim_loop *)loop)->world->now_ns;
}

static int64_t wall_ns(const struct loop *loop)
{
	const struct sim_loop *self = (const struct sim_loop *)loop;

	return self->world->wall_start_ns + (int64_t)self->world->now_ns + self->wall_offset_ns;
}

bool sim_call_fails(struct sim_loop *loop)
{
	loop->calls++;
	if (loop->fail_call_at == 0 || loop->calls != loop->fail_call_at)
		return false;
	sim_count_fault(loop->world, SIM_FAULT_FAILED_CALL);
	sim_world_note(loop->world, "%s: call %lu fails", loop->name, loop->calls);
	return true;
}

static bool random_bytes(struct loop *loop, void *data, size_t length)
{
	struct sim_loop *self = (struct sim_loop *)loop;

	if (sim_call_fails(self))
		return false;
	rng_fill(&self->secrets, data, length);
	return true;
}

void sim_wake(struct sim_socket *socket)
{
	struct sim_loop *owner = socket->owner;

	if (socket->queued || socket->closed)
		return;
	socket->queued = true;
	socket->next_ready = NULL;
	if (owner->last_ready != NULL)
		owner->last_ready->next_ready = socket;
	else
		owner->first_ready = socket;
	owner->last_ready = socket;
}

static void ask_socket(struct sim_socket *socket)
{
	if (!socket->closed && (socket->interest & SOCKET_READ) != 0 && sim_socket_is_readable(socket))
		socket->socket.handler.on_readable(socket->socket.context);
	if (!socket->closed && (socket->interest & SOCKET_WRITE) != 0 && sim_socket_is_writable(socket))
		socket->socket.handler.on_writable(socket->socket.context);
	/* Level-triggered: what wasn't dealt with is told again. */
	if (((socket->interest & SOCKET_READ) != 0 && sim_socket_is_readable(socket)) ||
	    ((socket->interest & SOCKET_WRITE) != 0 && sim_socket_is_writable(socket)))
		sim_wake(socket);
}

/* A loop that runs by itself (loop_run) moves the world's time as far as it needs. */
static void move_time(struct sim_world *world, const struct sim_loop *self, uint64_t until_ns)
{
	while (self->first_ready == NULL && world->now_ns < until_ns) {
		uint64_t next_ns = next_event_ns(world);

		if (next_ns == UINT64_MAX && until_ns == UINT64_MAX)
			return; /* nothing will ever happen */
		world->now_ns = later_of(world->now_ns, next_ns < until_ns ? next_ns : until_ns);
		run_events(world);
	}
}

static bool wait_and_run(struct loop *loop, uint64_t until_ns, struct error *err)
{
	struct sim_loop *self = (struct sim_loop *)loop;
	struct sim_socket *socket;
	struct sim_socket *last;

	if (!self->world->in_step) {
		run_events(self->world);
		move_time(self->world, self, until_ns);
		if (self->first_ready == NULL && until_ns == UINT64_MAX && !loop->stopping)
			return error_set(err, ERROR_SYSTEM, "the loop waits for nothing that could happen");
	}
	loop->now_ns = self->world->now_ns;
	last = self->last_ready;
	while ((socket = self->first_ready) != NULL) {
		self->first_ready = socket->next_ready;
		if (self->first_ready == NULL)
			self->last_ready = NULL;
		socket->queued = false;
		ask_socket(socket);
		if (socket == last)
			break;
	}
	return true;
}

/* ---- names ---- */

bool sim_world_add_name(struct sim_world *world, const char *name, const struct address *address)
{
	size_t size = strlen(name) + 1;
	struct sim_name *added = malloc(sizeof *added + size);

	if (added == NULL)
		return false;
	added->address = *address;
	memcpy(added->text, name, size);
	added->next = world->names;
	world->names = added;
	return true;
}

struct sim_lookup {
	struct lookup lookup; /* must be first */
	struct loop *loop;
	struct loop_timer timer;
	struct address address;
	bool found;
	lookup_callback *callback;
	void *context;
};

static void lookup_end(struct lookup *base)
{
	struct sim_lookup *lookup = (struct sim_lookup *)base;

	loop_timer_stop(lookup->loop, &lookup->timer);
	memory_release(lookup);
}

static void lookup_answer(void *context)
{
	struct sim_lookup lookup = *(struct sim_lookup *)context;
	struct error err;

	memory_release(context);
	if (lookup.found) {
		lookup.callback(lookup.context, &lookup.address, 1, NULL);
		return;
	}
	error_set(&err, ERROR_SYSTEM, "no such host");
	lookup.callback(lookup.context, NULL, 0, &err);
}

static struct lookup *start_lookup(struct loop *loop, const char *host, uint16_t port, uint64_t timeout_ns,
                                   lookup_callback *callback, void *context, struct error *err)
{
	struct sim_loop *self = (struct sim_loop *)loop;
	struct sim_lookup *lookup = memory_allocate(sizeof *lookup);
	uint64_t delay_ns = rng_between(&self->world->rng, LOOKUP_LOW_MS, LOOKUP_HIGH_MS) * NS_PER_MS;

	if (lookup == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a lookup");
		return NULL;
	}
	*lookup = (struct sim_lookup){
		.lookup.cancel = lookup_end, .loop = loop, .callback = callback, .context = context
	};
	for (const struct sim_name *name = self->world->names; name != NULL && !lookup->found; name = name->next) {
		lookup->found = strcmp(name->text, host) == 0;
		lookup->address = name->address;
	}
	lookup->found = lookup->found && !sim_call_fails(self);
	lookup->address.port = port;
	loop_timer_start(loop, &lookup->timer, delay_ns < timeout_ns ? delay_ns : timeout_ns, lookup_answer, lookup);
	return &lookup->lookup;
}

/* ---- making and unmaking loops ---- */

static void close_loop(struct loop *loop)
{
	struct sim_loop *self = (struct sim_loop *)loop;
	struct sim_loop **place = &self->world->loops;

	self->world->leaked_sockets += self->socket_count;
	self->world->leaked_timers += loop_sim_timer_count(loop);
	while (self->sockets != NULL)
		socket_close(&self->sockets->socket, true);
	while (*place != self)
		place = &(*place)->next;
	*place = self->next;
	for (struct sim_connection *connection = self->world->connections; connection != NULL;
	     connection = connection->next)
		for (unsigned side = 0; side < 2; side++)
			if (connection->ends[side].loop == self)
				connection->ends[side].loop = NULL;
	for (size_t i = 0; i < SIM_PARTITIONS_MAX; i++)
		if (self->world->partitions[i].a == self || self->world->partitions[i].b == self)
			self->world->partitions[i] = (struct sim_partition){ .a = NULL };
}

static void destroy_loop(struct loop *loop)
{
	memory_release(loop);
}

static const struct loop_operations OPERATIONS = {
	.monotonic_ns = monotonic_ns,
	.wall_ns = wall_ns,
	.random = random_bytes,
	.wait = wait_and_run,
	.connect = sim_socket_connect,
	.listen = sim_socket_listen,
	.lookup = start_lookup,
	.close = close_loop,
	.destroy = destroy_loop,
};

struct loop *loop_sim_create(struct sim_world *world, const char *name, const struct address *address,
                             struct error *err)
{
	struct sim_loop *self = memory_allocate(sizeof *self);
	struct sim_loop **place = &world->loops;

	if (self == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for an event loop");
		return NULL;
	}
	loop_init(&self->loop, &OPERATIONS);
	self->world = world;
	self->number = ++world->next_loop_number;
	(void)snprintf(self->name, sizeof self->name, "%s", name);
	self->address = *address;
	rng_seed(&self->loop.rng, rng_next(&world->rng));
	rng_seed(&self->secrets, rng_next(&world->rng));
	while (*place != NULL)
		place = &(*place)->next;
	*place = self;
	return &self->loop;
}

struct sim_world *sim_world_create(uint64_t seed, int64_t wall_start_ns, struct error *err)
{
	struct sim_world *world = calloc(1, sizeof *world);

	if (world == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a world");
		return NULL;
	}
	world->wall_start_ns = wall_start_ns;
	world->next_port = FIRST_PORT;
	rng_seed(&world->rng, seed);
	return world;
}

void sim_world_destroy(struct sim_world *world)
{
	if (world == NULL)
		return;
	while (world->event_count > 0) {
		struct sim_event *event = take_first(world);

		/* With both sides gone, all that is left to happen is to forget. */
		event->run(event);
	}
	while (world->names != NULL) {
		struct sim_name *name = world->names;

		world->names = name->next;
		free(name);
	}
	free(world->events);
	free(world);
}

uint64_t sim_world_now_ns(const struct sim_world *world)
{
	return world->now_ns;
}

struct rng *sim_world_rng(struct sim_world *world)
{
	return &world->rng;
}

void sim_world_set_faults(struct sim_world *world, const struct sim_faults *faults)
{
	world->faults = *faults;
}

size_t sim_world_leaked_sockets(const struct sim_world *world)
{
	return world->leaked_sockets;
}

size_t sim_world_leaked_timers(const struct sim_world *world)
{
	return world->leaked_timers;
}
