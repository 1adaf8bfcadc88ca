/*
 * A turn: wait (not at all if a task is queued), run the sockets that are ready, then due timers, then tasks, then free
 * what was closed meanwhile. Timers and tasks that callbacks start belong to the next turn, so that a turn always ends.
 */
#include "net/loop.h"

#include <string.h>

#include "net/loop_internal.h"

void loop_init(struct loop *loop, const struct loop_operations *operations)
{
	*loop = (struct loop){ .operations = operations };
	heap_init(&loop->timers);
}

/* ---- timers ---- */

static void outside_add(struct loop *loop, struct loop_timer *timer, uint64_t key)
{
	timer->node.key = key;
	timer->waits_outside = true;
	timer->previous = NULL;
	timer->next = loop->timers_outside;
	if (timer->next != NULL)
		timer->next->previous = timer;
	loop->timers_outside = timer;
}

static void outside_remove(struct loop *loop, struct loop_timer *timer)
{
	if (timer->previous != NULL)
		timer->previous->next = timer->next;
	else
		loop->timers_outside = timer->next;
	if (timer->next != NULL)
		timer->next->previous = timer->previous;
	timer->next = NULL;
	timer->previous = NULL;
	timer->waits_outside = false;
}

void loop_timer_start(struct loop *loop, struct loop_timer *timer, uint64_t delay_ns, void (*callback)(void *context),
                      void *context)
{
	uint64_t now_ns = loop_now_ns(loop);
	uint64_t key = delay_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + delay_ns;

	loop_timer_stop(loop, timer);
	timer->callback = callback;
	timer->context = context;
	if (!heap_insert(&loop->timers, &timer->node, key))
		outside_add(loop, timer, key);
}

void loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
	if (timer->waits_outside)
		outside_remove(loop, timer);
	else
		heap_remove(&loop->timers, &timer->node);
}

bool loop_timer_running(const struct loop_timer *timer)
{
	return timer->waits_outside || timer->node.position != 0;
}

static uint64_t next_timer_ns(const struct loop *loop)
{
	const struct heap_node *first = heap_first(&loop->timers);
	uint64_t next_ns = first != NULL ? first->key : UINT64_MAX;

	for (const struct loop_timer *timer = loop->timers_outside; timer != NULL; timer = timer->next)
		if (timer->node.key < next_ns)
			next_ns = timer->node.key;
	return next_ns;
}

static struct loop_timer *due_outside(const struct loop *loop)
{
	struct loop_timer *timer = loop->timers_outside;

	while (timer != NULL && timer->node.key > loop->now_ns)
		timer = timer->next;
	return timer;
}

/* A timer that callbacks start has a higher order than `end`, so it isn't run even if it is due at once. */
static void run_timers(struct loop *loop)
{
	uint64_t end = loop->timers.next_order;
	struct loop_timer *timer = due_outside(loop);

	/* One of those outside per turn: they are rare, and one that starts itself anew mustn't hold the turn up. */
	if (timer != NULL) {
		loop_timer_stop(loop, timer);
		timer->callback(timer->context);
	}
	for (;;) {
		struct heap_node *first = heap_first(&loop->timers);

		if (first == NULL || first->key > loop->now_ns || first->order >= end)
			return;
		timer = (struct loop_timer *)first;
		heap_remove(&loop->timers, first);
		timer->callback(timer->context);
	}
}

/* ---- tasks ---- */

static bool task_queued(const struct loop *loop, const struct loop_task *task)
{
	return task->previous != NULL || loop->first_task == task;
}

void loop_run_soon(struct loop *loop, struct loop_task *task, void (*callback)(void *context), void *context)
{
	if (task_queued(loop, task))
		return;
	task->callback = callback;
	task->context = context;
	task->next = NULL;
	task->previous = loop->last_task;
	if (task->previous != NULL)
		task->previous->next = task;
	else
		loop->first_task = task;
	loop->last_task = task;
}

void loop_task_cancel(struct loop *loop, struct loop_task *task)
{
	if (!task_queued(loop, task))
		return;
	if (loop->mark == task)
		loop->mark = task->previous; /* NULL: it was the last one of this turn */
	if (task->previous != NULL)
		task->previous->next = task->next;
	else
		loop->first_task = task->next;
	if (task->next != NULL)
		task->next->previous = task->previous;
	else
		loop->last_task = task->previous;
	task->next = NULL;
	task->previous = NULL;
}

static void run_tasks(struct loop *loop)
{
	struct loop_task *task;

	loop->mark = loop->last_task;
	while (loop->mark != NULL && (task = loop->first_task) != NULL) {
		loop_task_cancel(loop, task); /* moves the mark off the last one */
		task->callback(task->context);
	}
}

/* ---- what ends later ---- */

void loop_release_later(struct loop *loop, struct loop_garbage *garbage, void (*release)(void *owner), void *owner)
{
	garbage->release = release;
	garbage->owner = owner;
	garbage->next = loop->garbage;
	loop->garbage = garbage;
}

static void release_garbage(struct loop *loop)
{
	while (loop->garbage != NULL) {
		struct loop_garbage *garbage = loop->garbage;

		loop->garbage = garbage->next;
		garbage->release(garbage->owner);
	}
}

void loop_leftover_add(struct loop *loop, struct loop_leftover *leftover, void (*end)(void *owner), void *owner)
{
	leftover->end = end;
	leftover->owner = owner;
	leftover->previous = NULL;
	leftover->next = loop->leftovers;
	if (leftover->next != NULL)
		leftover->next->previous = leftover;
	loop->leftovers = leftover;
}

void loop_leftover_remove(struct loop *loop, struct loop_leftover *leftover)
{
	if (leftover->previous != NULL)
		leftover->previous->next = leftover->next;
	else if (loop->leftovers == leftover)
		loop->leftovers = leftover->next;
	if (leftover->next != NULL)
		leftover->next->previous = leftover->previous;
	leftover->next = NULL;
	leftover->previous = NULL;
}

/* ---- running ---- */

uint64_t loop_due_ns(const struct loop *loop)
{
	return loop->first_task != NULL || loop->stopping ? 0 : next_timer_ns(loop);
}

bool loop_turn(struct loop *loop, struct error *err)
{
	loop->turns++;
	loop->now_ns = loop->operations->monotonic_ns(loop);
	loop->in_turn = true;
	if (!loop->operations->wait(loop, loop_due_ns(loop), err)) {
		loop->in_turn = false;
		return false;
	}
	loop->now_ns = loop->operations->monotonic_ns(loop);
	run_timers(loop);
	run_tasks(loop);
	loop->in_turn = false;
	release_garbage(loop);
	return true;
}

bool loop_run(struct loop *loop, struct error *err)
{
	while (!loop->stopping)
		if (!loop_turn(loop, err))
			return false;
	loop->stopping = false;
	return true;
}

void loop_stop(struct loop *loop)
{
	loop->stopping = true;
}

uint64_t loop_turn_count(const struct loop *loop)
{
	return loop->turns;
}

void loop_destroy(struct loop *loop)
{
	if (loop == NULL)
		return;
	while (loop->leftovers != NULL)
		loop->leftovers->end(loop->leftovers->owner);
	if (loop->operations->close != NULL)
		loop->operations->close(loop);
	release_garbage(loop);
	heap_destroy(&loop->timers);
	loop->operations->destroy(loop);
}

/* ---- what the implementation does ---- */

uint64_t loop_now_ns(const struct loop *loop)
{
	return loop->in_turn ? loop->now_ns : loop->operations->monotonic_ns(loop);
}

int64_t loop_wall_ns(const struct loop *loop)
{
	return loop->operations->wall_ns(loop);
}

struct rng *loop_rng(struct loop *loop)
{
	return &loop->rng;
}

bool loop_random(struct loop *loop, void *data, size_t length)
{
	return loop->operations->random(loop, data, length);
}

struct socket *loop_connect(struct loop *loop, const struct address *address, const struct address *local,
                            const struct socket_handler *handler, void *context, struct error *err)
{
	return loop->operations->connect(loop, address, local, handler, context, err);
}

struct socket *loop_listen(struct loop *loop, const struct address *address, const struct socket_handler *handler,
                           void *context, struct error *err)
{
	return loop->operations->listen(loop, address, handler, context, err);
}

struct loop_watch *loop_watch_descriptor(struct loop *loop, int descriptor, unsigned interest,
                                         void (*callback)(void *context), void *context, struct error *err)
{
	if (loop->operations->watch == NULL) {
		error_set(err, ERROR_SYSTEM, "this loop can't watch descriptors");
		return NULL;
	}
	return loop->operations->watch(loop, descriptor, interest, callback, context, err);
}

void loop_watch_stop(struct loop_watch *watch)
{
	if (watch != NULL)
		watch->stop(watch);
}

bool socket_connect_result(struct socket *socket, struct error *err)
{
	return socket->operations->connect_result(socket, err);
}

struct socket *socket_accept(struct socket *listener, struct address *ret_peer, enum socket_result *ret_result,
                             struct error *err)
{
	return listener->operations->accept(listener, ret_peer, ret_result, err);
}

void socket_set_handler(struct socket *socket, const struct socket_handler *handler, void *context)
{
	socket->handler = *handler;
	socket->context = context;
}

bool socket_set_interest(struct socket *socket, unsigned interest, struct error *err)
{
	return socket->operations->set_interest(socket, interest, err);
}

enum socket_result socket_read(struct socket *socket, void *data, size_t size, size_t *ret_length, struct error *err)
{
	return socket->operations->read(socket, data, size, ret_length, err);
}

enum socket_result socket_write(struct socket *socket, const void *data, size_t length, size_t *ret_written,
                                struct error *err)
{
	return socket->operations->write(socket, data, length, ret_written, err);
}

void socket_shutdown_write(struct socket *socket)
{
	socket->operations->shutdown_write(socket);
}

bool socket_local_address(const struct socket *socket, struct address *ret_address)
{
	return socket->operations->local_address(socket, ret_address);
}

void socket_close(struct socket *socket, bool abort)
{
	socket->operations->close(socket, abort);
}
