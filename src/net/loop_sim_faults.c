/* What is done to a loop from outside, as if its machine or its network did it, and what can be seen of one. */
#include "base/clock.h"
#include "net/loop_sim_internal.h"

void loop_sim_crash(struct loop *loop, enum sim_crash how)
{
	struct sim_loop *self = (struct sim_loop *)loop;

	sim_count_fault(self->world, SIM_FAULT_CRASH);
	sim_world_note(self->world, "%s: crashes (%s)", self->name,
	               how == SIM_CRASH_END     ? "connections end"
	               : how == SIM_CRASH_RESET ? "connections are reset"
	                                        : "silently");
	self->crashed = true;
	for (struct sim_socket *socket = self->sockets; socket != NULL; socket = socket->next)
		sim_socket_sever(socket, how);
}

void loop_sim_freeze(struct loop *loop, uint64_t until_ns)
{
	struct sim_loop *self = (struct sim_loop *)loop;

	sim_count_fault(self->world, SIM_FAULT_FREEZE);
	sim_world_note(self->world, "%s: frozen until %.3f", self->name, (double)until_ns / (double)NS_PER_S);
	if (self->frozen_until_ns < until_ns)
		self->frozen_until_ns = until_ns;
}

void loop_sim_step_clock(struct loop *loop, int64_t by_ns)
{
	struct sim_loop *self = (struct sim_loop *)loop;

	sim_count_fault(self->world, SIM_FAULT_CLOCK_STEP);
	sim_world_note(self->world, "%s: wall clock steps by %.3f s", self->name, (double)by_ns / (double)NS_PER_S);
	self->wall_offset_ns += by_ns;
}

void loop_sim_fail_call(struct loop *loop, unsigned long count)
{
	struct sim_loop *self = (struct sim_loop *)loop;

	self->calls = 0;
	self->fail_call_at = count;
}

unsigned long loop_sim_call_count(const struct loop *loop)
{
	return ((const struct sim_loop *)loop)->calls;
}

bool loop_sim_stopped(const struct loop *loop)
{
	return loop->stopping;
}

size_t loop_sim_socket_count(const struct loop *loop)
{
	return ((const struct sim_loop *)loop)->socket_count;
}

size_t loop_sim_timer_count(const struct loop *loop)
{
	size_t count = loop->timers.count;

	for (const struct loop_timer *timer = loop->timers_outside; timer != NULL; timer = timer->next)
		count++;
	return count;
}

uint64_t loop_sim_bytes_sent(const struct loop *loop)
{
	return ((const struct sim_loop *)loop)->bytes_sent;
}

void loop_sim_set_watcher(struct loop *loop, void (*watcher)(void *context, bool begins), void *context)
{
	struct sim_loop *self = (struct sim_loop *)loop;

	self->watcher = watcher;
	self->watcher_context = context;
}

void loop_sim_partition(struct loop *a, struct loop *b, uint64_t until_ns)
{
	struct sim_loop *first = (struct sim_loop *)a;
	struct sim_loop *second = (struct sim_loop *)b;
	struct sim_world *world = first->world;

	for (size_t i = 0; i < SIM_PARTITIONS_MAX; i++) {
		if (world->partitions[i].a != NULL && world->partitions[i].until_ns > world->now_ns)
			continue;
		world->partitions[i] = (struct sim_partition){ .a = first, .b = second, .until_ns = until_ns };
		sim_count_fault(world, SIM_FAULT_PARTITION);
		sim_world_note(world, "%s: no network to %s until %.3f", first->name,
		               second != NULL ? second->name : "anybody", (double)until_ns / (double)NS_PER_S);
		sim_network_partitioned(world, first, second);
		return;
	}
}

void sim_world_heal(struct sim_world *world)
{
	for (size_t i = 0; i < SIM_PARTITIONS_MAX; i++)
		world->partitions[i] = (struct sim_partition){ .a = NULL };
	for (struct sim_loop *self = world->loops; self != NULL; self = self->next)
		self->frozen_until_ns = 0;
	for (struct sim_connection *connection = world->connections; connection != NULL;
	     connection = connection->next) {
		sim_network_hurry(&connection->ends[0], world->now_ns);
		sim_network_hurry(&connection->ends[1], world->now_ns);
	}
	sim_order_anew(world);
}

bool loop_sim_cut_connection(struct loop *loop, uint64_t after_bytes, bool silent)
{
	struct sim_loop *self = (struct sim_loop *)loop;
	struct sim_end *chosen = NULL;
	uint64_t id = 0, count = 0;

	for (struct sim_socket *socket = self->sockets; socket != NULL; socket = socket->next) {
		if (socket->connection == NULL || !socket->connection->ends[socket->side].connected)
			continue;
		count++;
		if (rng_between(&self->world->rng, 0, count) == 0) {
			chosen = &socket->connection->ends[socket->side];
			id = socket->connection->id;
		}
	}
	if (chosen == NULL)
		return false;
	chosen->will_cut = true;
	chosen->cut_silently = silent;
	chosen->cut_after_bytes = after_bytes;
	sim_count_fault(self->world, SIM_FAULT_CUT_ANSWER);
	sim_world_note(self->world, "%s: connection %llu will be cut%s after %llu more bytes", self->name,
	               (unsigned long long)id, silent ? " silently" : "", (unsigned long long)after_bytes);
	return true;
}
