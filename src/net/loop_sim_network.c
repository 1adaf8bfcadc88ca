/*
 * Connections and what is under way in them. Each side of a connection has a queue of segments sent to it; a segment
 * arrives at its time, in order, and can be read from then on. An end of the stream is a segment without bytes.
 *
 * A connection lives until both sides let go of it and nothing of it is scheduled any more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/loop_sim_internal.h"

enum {
	RETRANSMIT_MS = 200,
	RETRANSMITS_MAX = 6,
	FIND_DEAD_LOW_S = 20, /* limits.h: idle 10 s and 4 probes of 5 s, counted from the last sign of life */
	FIND_DEAD_HIGH_S = 30,
	PIECES_MAX = 4,
	KNOCK_ATTEMPTS = 7,
};

/* ---- may it pass? ---- */

/* Until when nothing passes between the two; 0: it does. */
static uint64_t blocked_until_ns(const struct sim_world *world, const struct sim_loop *a, const struct sim_loop *b)
{
	uint64_t until_ns = 0;

	for (size_t i = 0; i < SIM_PARTITIONS_MAX; i++) {
		const struct sim_partition *partition = &world->partitions[i];

		if (partition->a == NULL || partition->until_ns <= world->now_ns || partition->until_ns <= until_ns)
			continue;
		if ((partition->a == a && (partition->b == b || partition->b == NULL)) ||
		    (partition->a == b && (partition->b == a || partition->b == NULL)))
			until_ns = partition->until_ns;
	}
	return until_ns;
}

static uint64_t connection_blocked_ns(const struct sim_connection *connection)
{
	return blocked_until_ns(connection->world, connection->ends[0].loop, connection->ends[1].loop);
}

static uint64_t pick_delay_ns(struct sim_world *world)
{
	const struct sim_faults *faults = &world->faults;
	uint64_t delay_ns = rng_between(&world->rng, faults->delay_low_ns, faults->delay_high_ns);
	uint64_t wait_ns = RETRANSMIT_MS * NS_PER_MS;

	for (unsigned i = 0; i < RETRANSMITS_MAX && sim_chance(world, faults->lost); i++) {
		sim_count_fault(world, SIM_FAULT_LOST);
		delay_ns += wait_ns;
		wait_ns *= 2;
	}
	if (sim_chance(world, faults->stalled)) {
		sim_count_fault(world, SIM_FAULT_STALLED);
		delay_ns += rng_between(&world->rng, 0, faults->stall_ns);
	}
	return delay_ns;
}

/* ---- the life of a connection ---- */

static void free_segments(struct sim_end *end)
{
	while (end->first != NULL) {
		struct sim_segment *segment = end->first;

		end->first = segment->next;
		free(segment);
	}
}

void sim_connection_release(struct sim_connection *connection)
{
	struct sim_world *world = connection->world;

	if (--connection->references > 0)
		return;
	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		world->connections = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	free_segments(&connection->ends[0]);
	free_segments(&connection->ends[1]);
	free(connection);
}

static void wake_end(struct sim_end *end)
{
	if (end->socket != NULL)
		sim_wake(end->socket);
}

static void fail_end(struct sim_end *end, int failure)
{
	if (end->failure != 0 || end->closed)
		return;
	end->failure = failure;
	wake_end(end);
}

/* ---- dead peers ---- */

static void run_watch(struct sim_event *event)
{
	struct sim_watch *watch = (struct sim_watch *)event;
	struct sim_connection *connection = watch->connection;
	struct sim_end *end = &connection->ends[watch->end];

	end->watch_runs = false;
	if ((connection->silent || connection_blocked_ns(connection) > 0) && !end->closed && end->failure == 0) {
		sim_world_note(connection->world, "connection %llu: side %u finds its peer dead",
		               (unsigned long long)connection->id, watch->end);
		fail_end(end, ETIMEDOUT);
		/* This side forgets the connection, and tells nobody: the other side finds out by itself. */
		sim_network_silence(connection);
	}
	sim_connection_release(connection);
}

static void watch_peer(struct sim_connection *connection, unsigned side)
{
	struct sim_world *world = connection->world;
	struct sim_end *end = &connection->ends[side];
	uint64_t wait_ns = rng_between(&world->rng, FIND_DEAD_LOW_S * 1000, FIND_DEAD_HIGH_S * 1000) * NS_PER_MS;

	if (end->watch_runs || end->closed || end->severed)
		return;
	connection->watches[side].connection = connection;
	connection->watches[side].end = side;
	if (!sim_schedule(world, &connection->watches[side].event, world->now_ns + wait_ns, run_watch))
		return;
	end->watch_runs = true;
	connection->references++;
}

void sim_network_silence(struct sim_connection *connection)
{
	connection->silent = true;
	watch_peer(connection, 0);
	watch_peer(connection, 1);
}

void sim_network_partitioned(struct sim_world *world, const struct sim_loop *a, const struct sim_loop *b)
{
	for (struct sim_connection *connection = world->connections; connection != NULL;
	     connection = connection->next) {
		const struct sim_loop *first = connection->ends[0].loop, *second = connection->ends[1].loop;

		if ((first == a && (second == b || b == NULL)) || (second == a && (first == b || b == NULL))) {
			watch_peer(connection, 0);
			watch_peer(connection, 1);
		}
	}
}

/* ---- segments ---- */

static void forget_segment(struct sim_connection *connection, struct sim_segment *segment)
{
	struct sim_end *end = &connection->ends[segment->to];
	struct sim_segment **place = &end->first;
	struct sim_segment *before = NULL;

	while (*place != segment) {
		before = *place;
		place = &(*place)->next;
	}
	*place = segment->next;
	if (end->last == segment)
		end->last = before;
	end->unread_bytes -= segment->length - segment->read;
	free(segment);
}

/* Something that stops here: the connection is cut, or the segment is the one that a reset takes the place of. */
static bool is_cut_here(struct sim_connection *connection, struct sim_end *end, struct sim_segment *segment)
{
	struct sim_world *world = connection->world;

	if (end->will_cut && end->cut_after_bytes < segment->length) {
		end->unread_bytes -= segment->length - (size_t)end->cut_after_bytes;
		segment->length = (size_t)end->cut_after_bytes;
		segment->arrived = true;
		end->will_cut = false;
		if (end->cut_silently) {
			sim_network_silence(connection);
		} else {
			fail_end(end, ECONNRESET);
			fail_end(&connection->ends[!segment->to], ECONNRESET);
		}
		sim_world_note(world, "connection %llu is cut", (unsigned long long)connection->id);
		return true;
	}
	if (end->will_cut)
		end->cut_after_bytes -= segment->length;
	if (sim_chance(world, world->faults.reset)) {
		sim_count_fault(world, SIM_FAULT_RESET);
		sim_world_note(world, "connection %llu is reset", (unsigned long long)connection->id);
		fail_end(&connection->ends[0], ECONNRESET);
		fail_end(&connection->ends[1], ECONNRESET);
		return true;
	}
	if (sim_chance(world, world->faults.silent)) {
		sim_count_fault(world, SIM_FAULT_SILENT);
		sim_world_note(world, "connection %llu dies silently", (unsigned long long)connection->id);
		sim_network_silence(connection);
		return true;
	}
	return false;
}

static void run_segment(struct sim_event *event)
{
	struct sim_segment *segment = (struct sim_segment *)event;
	struct sim_connection *connection = segment->connection;
	struct sim_world *world = connection->world;
	struct sim_end *end = &connection->ends[segment->to];
	uint64_t blocked_ns = connection_blocked_ns(connection);

	if (blocked_ns > 0 && !connection->silent && !end->closed) {
		uint64_t again_ns = blocked_ns + rng_between(&world->rng, 1, RETRANSMIT_MS) * NS_PER_MS;

		/* Those behind it stay behind it. */
		if (end->last_arrival_ns < again_ns)
			end->last_arrival_ns = again_ns;
		else
			again_ns = ++end->last_arrival_ns;
		if (sim_schedule(world, event, again_ns, run_segment))
			return;
	}
	if (end->closed) {
		bool had_bytes = segment->length > 0;

		if (had_bytes)
			sim_network_reset(connection, !segment->to);
		forget_segment(connection, segment);
	} else if (connection->silent || end->failure != 0 || is_cut_here(connection, end, segment)) {
		if (!segment->arrived || segment->length == 0)
			forget_segment(connection, segment);
	} else if (segment->kind == SIM_SEGMENT_RESET) {
		forget_segment(connection, segment);
		fail_end(end, ECONNRESET);
	} else {
		segment->arrived = true;
		wake_end(end);
	}
	sim_connection_release(connection);
}

static bool queue_segment(struct sim_connection *connection, unsigned to, const char *data, size_t length,
                          enum sim_segment_kind kind)
{
	struct sim_world *world = connection->world;
	struct sim_end *end = &connection->ends[to];
	struct sim_segment *segment = malloc(sizeof *segment + length);
	uint64_t time_ns = world->now_ns + pick_delay_ns(world);

	if (segment == NULL)
		return false;
	*segment = (struct sim_segment){ .connection = connection, .to = to, .kind = kind, .length = length };
	if (length > 0)
		memcpy(segment->data, data, length);
	if (time_ns < end->last_arrival_ns)
		time_ns = end->last_arrival_ns;
	end->last_arrival_ns = time_ns;
	if (!sim_schedule(world, &segment->event, time_ns, run_segment)) {
		free(segment);
		return false;
	}
	connection->references++;
	if (end->last != NULL)
		end->last->next = segment;
	else
		end->first = segment;
	end->last = segment;
	end->unread_bytes += length;
	return true;
}

void sim_network_hurry(struct sim_end *end, uint64_t now_ns)
{
	uint64_t latest_ns = now_ns + RETRANSMIT_MS * NS_PER_MS;

	end->will_cut = false;
	for (struct sim_segment *segment = end->first; segment != NULL; segment = segment->next) {
		if (segment->arrived || segment->event.time_ns <= latest_ns)
			continue;
		segment->event.time_ns = latest_ns++;
		end->last_arrival_ns = segment->event.time_ns;
	}
}

size_t sim_network_send(struct sim_connection *connection, unsigned from, const void *data, size_t length)
{
	struct sim_world *world = connection->world;
	struct sim_end *peer = &connection->ends[!from];
	size_t room = peer->unread_bytes < SIM_WINDOW_BYTES ? SIM_WINDOW_BYTES - peer->unread_bytes : 0;
	const char *bytes = data;
	size_t left;

	if (length > room)
		length = room;
	if (length == 0)
		return 0;
	sim_world_note(world, "%s sends %zu on connection %llu", connection->ends[from].loop->name, length,
	               (unsigned long long)connection->id);
	sim_hash_bytes(world, data, length);
	if (connection->silent)
		watch_peer(connection, from);
	left = length;
	for (unsigned i = 1; i < PIECES_MAX && left > 1 && sim_chance(world, world->faults.split); i++) {
		size_t piece = (size_t)rng_between(&world->rng, 1, left);

		sim_count_fault(world, SIM_FAULT_SPLIT);
		if (!queue_segment(connection, !from, bytes, piece, SIM_SEGMENT_BYTES))
			return length - left;
		bytes += piece;
		left -= piece;
	}
	return queue_segment(connection, !from, bytes, left, SIM_SEGMENT_BYTES) ? length : length - left;
}

void sim_network_reset(struct sim_connection *connection, unsigned side)
{
	(void)queue_segment(connection, side, NULL, 0, SIM_SEGMENT_RESET);
}

void sim_network_send_end(struct sim_connection *connection, unsigned from)
{
	struct sim_end *end = &connection->ends[from];

	if (end->end_sent || !end->connected || end->failure != 0)
		return;
	end->end_sent = true;
	(void)queue_segment(connection, !from, NULL, 0, SIM_SEGMENT_END);
}

size_t sim_network_read(struct sim_connection *connection, unsigned side, void *data, size_t size)
{
	struct sim_world *world = connection->world;
	struct sim_end *end = &connection->ends[side];
	struct sim_segment *segment;
	size_t length = 0;

	if (size > 1 && end->first != NULL && sim_chance(world, world->faults.single_bytes)) {
		sim_count_fault(world, SIM_FAULT_SINGLE_BYTE);
		size = 1;
	}
	while (length < size && (segment = end->first) != NULL && segment->arrived &&
	       segment->kind == SIM_SEGMENT_BYTES) {
		size_t part = segment->length - segment->read;

		if (part > size - length)
			part = size - length;
		memcpy((char *)data + length, segment->data + segment->read, part);
		segment->read += part;
		length += part;
		end->unread_bytes -= part;
		if (segment->read < segment->length)
			break;
		end->first = segment->next;
		if (end->first == NULL)
			end->last = NULL;
		free(segment);
		if (sim_chance(world, world->faults.unmerged)) {
			sim_count_fault(world, SIM_FAULT_UNMERGED);
			break;
		}
	}
	if (length > 0)
		wake_end(&connection->ends[!side]); /* there is room again */
	return length;
}

/* ---- beginning and end ---- */

static struct sim_socket *find_listener(const struct sim_world *world, const struct address *to)
{
	for (struct sim_loop *loop = world->loops; loop != NULL; loop = loop->next) {
		if (loop->crashed)
			continue;
		for (struct sim_socket *socket = loop->sockets; socket != NULL; socket = socket->next)
			if (socket->listens && address_equal(&socket->address, to))
				return socket;
	}
	return NULL;
}

static const struct sim_loop *owner_of_address(const struct sim_world *world, const struct address *to)
{
	for (const struct sim_loop *loop = world->loops; loop != NULL; loop = loop->next) {
		struct address at_port = loop->address;

		at_port.port = to->port;
		if (address_equal(&at_port, to))
			return loop;
	}
	return NULL;
}

static void admit(struct sim_connection *connection, struct sim_socket *listener)
{
	struct sim_end *end = &connection->ends[1];

	end->loop = listener->owner;
	end->address = connection->to;
	end->connected = true;
	end->closed = false;
	connection->references++;
	connection->next_waiting = NULL;
	if (listener->last_waiting != NULL)
		listener->last_waiting->next_waiting = connection;
	else
		listener->first_waiting = connection;
	listener->last_waiting = connection;
	listener->waiting_count++;
	sim_wake(listener);
}

static void run_knock(struct sim_event *event);

static void knock_again(struct sim_connection *connection, uint64_t wait_ns)
{
	if (!sim_schedule(connection->world, &connection->knock.event, connection->world->now_ns + wait_ns, run_knock))
		sim_connection_release(connection);
}

/* The first step, at the other side. */
static void knock_arrives(struct sim_connection *connection)
{
	struct sim_world *world = connection->world;
	struct sim_knock *knock = &connection->knock;
	struct sim_socket *listener = find_listener(world, &connection->to);
	const struct sim_loop *there = listener != NULL ? listener->owner : owner_of_address(world, &connection->to);
	bool lost = blocked_until_ns(world, connection->ends[0].loop, there) > 0 ||
	            (listener != NULL && listener->waiting_count >= SIM_BACKLOG);

	if (lost) {
		if (++knock->attempt < KNOCK_ATTEMPTS) {
			knock_again(connection, (uint64_t)NS_PER_S << (knock->attempt - 1));
			return;
		}
		fail_end(&connection->ends[0], ETIMEDOUT);
		sim_connection_release(connection);
		return;
	}
	knock->step = SIM_KNOCK_ANSWERED;
	if (listener == NULL || sim_chance(world, world->faults.refused_connect)) {
		knock->step = SIM_KNOCK_REFUSED;
		if (listener != NULL)
			sim_count_fault(world, SIM_FAULT_REFUSED_CONNECT);
	} else {
		admit(connection, listener);
	}
	knock_again(connection, pick_delay_ns(world));
}

static void run_knock(struct sim_event *event)
{
	struct sim_knock *knock = (struct sim_knock *)event;
	struct sim_connection *connection = knock->connection;
	struct sim_end *end = &connection->ends[0];

	if (end->closed || end->severed) {
		if (knock->step == SIM_KNOCK_ANSWERED && end->closed)
			fail_end(&connection->ends[1], ECONNRESET);
		sim_connection_release(connection);
		return;
	}
	switch (knock->step) {
	case SIM_KNOCK_ARRIVES:
		knock_arrives(connection);
		return;
	case SIM_KNOCK_ANSWERED:
		end->connected = true;
		sim_world_note(connection->world, "connection %llu: %s to %s", (unsigned long long)connection->id,
		               end->loop->name,
		               connection->ends[1].loop != NULL ? connection->ends[1].loop->name : "?");
		wake_end(end);
		break;
	case SIM_KNOCK_REFUSED:
		fail_end(end, ECONNREFUSED);
		break;
	}
	sim_connection_release(connection);
}

struct sim_connection *sim_network_connect(struct sim_socket *socket, const struct address *from,
                                           const struct address *to)
{
	struct sim_world *world = socket->owner->world;
	struct sim_connection *connection = calloc(1, sizeof *connection);

	if (connection == NULL)
		return NULL;
	connection->world = world;
	connection->id = ++world->next_connection_id;
	connection->to = *to;
	connection->ends[0].socket = socket;
	connection->ends[0].loop = socket->owner;
	connection->ends[0].address = *from;
	connection->ends[1].closed = true; /* until it is there */
	connection->references = 1;        /* the first side's */
	connection->knock.connection = connection;
	connection->next = world->connections;
	if (connection->next != NULL)
		connection->next->previous = connection;
	world->connections = connection;
	if (!sim_schedule(world, &connection->knock.event, world->now_ns + pick_delay_ns(world), run_knock)) {
		sim_connection_release(connection);
		return NULL;
	}
	connection->references++;
	return connection;
}

void sim_network_close(struct sim_connection *connection, unsigned side, bool abort, bool told)
{
	struct sim_end *end = &connection->ends[side];

	bool unread = end->first != NULL && end->first->arrived && end->first->kind == SIM_SEGMENT_BYTES;

	if (told && (abort || unread) && end->failure == 0)
		sim_network_reset(connection, !side);
	else if (told)
		sim_network_send_end(connection, side);
	end->closed = true;
	end->socket = NULL;
	sim_connection_release(connection);
}
