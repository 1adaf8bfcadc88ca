/*
 * The part of name lookup that all loops share: a literal address is its own answer, given at the next turn.
 */
#include <string.h>

#include "base/memory.h"
#include "net/limits.h"
#include "net/loop_internal.h"

struct literal_lookup {
	struct lookup lookup; /* must be first */
	struct loop *loop;
	struct address address;
	lookup_callback *callback;
	void *context;
	struct loop_task task;
};

static void literal_cancel(struct lookup *lookup)
{
	struct literal_lookup *literal = (struct literal_lookup *)lookup;

	loop_task_cancel(literal->loop, &literal->task);
	memory_release(literal);
}

static void literal_answer(void *context)
{
	struct literal_lookup literal = *(struct literal_lookup *)context;

	memory_release(context);
	literal.callback(literal.context, &literal.address, 1, NULL);
}

static struct lookup *literal_create(struct loop *loop, const struct address *address, lookup_callback *callback,
                                     void *context, struct error *err)
{
	struct literal_lookup *literal = memory_allocate(sizeof *literal);

	if (literal == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a lookup");
		return NULL;
	}
	*literal = (struct literal_lookup){
		.lookup.cancel = literal_cancel,
		.loop = loop,
		.address = *address,
		.callback = callback,
		.context = context,
	};
	loop_run_soon(loop, &literal->task, literal_answer, literal);
	return &literal->lookup;
}

struct lookup *loop_lookup(struct loop *loop, const char *host, uint16_t port, uint64_t timeout_ns,
                           lookup_callback *callback, void *context, struct error *err)
{
	size_t length = strlen(host);
	struct address address;

	if (length == 0 || length >= NET_HOST_BYTES) {
		error_set(err, ERROR_LIMIT, "host name of %zu bytes is not within 1 and %d", length,
		          NET_HOST_BYTES - 1);
		return NULL;
	}
	if (address_parse(slice_from(host, length), port, &address))
		return literal_create(loop, &address, callback, context, err);
	return loop->operations->lookup(loop, host, port, timeout_ns, callback, context, err);
}

void lookup_cancel(struct lookup *lookup)
{
	lookup->cancel(lookup);
}
