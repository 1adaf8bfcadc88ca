#include "sandbox/event_keys.h"

#include "base/buffer.h"
#include "base/memory.h"

enum { DRAIN_NAME_BYTES = 1024 };

struct drain {
	size_t count, seen;
	uint64_t contents[]; /* a hash of each event; 0: it hasn't come */
};

void event_keys_init(struct event_keys *keys)
{
	*keys = (struct event_keys){ .missing_of_forgotten = 0 };
	table_init(&keys->drains);
}

void event_keys_destroy(struct event_keys *keys)
{
	for (struct table_entry *entry = table_next(&keys->drains, NULL); entry != NULL;
	     entry = table_next(&keys->drains, entry))
		memory_release(entry->value);
	table_destroy(&keys->drains);
}

static void forget_oldest(struct event_keys *keys)
{
	struct table_entry *oldest = table_next(&keys->drains, NULL);
	struct drain *drain = oldest->value;

	keys->missing_of_forgotten += drain->count - drain->seen;
	(void)table_remove(&keys->drains, slice_from(oldest->key, oldest->key_length));
	memory_release(drain);
}

/* "STAMP-HOST-n/N": the host may have dashes, too. */
static bool split(struct slice key, struct slice *ret_drain, uint64_t *ret_number, uint64_t *ret_count)
{
	size_t dash = key.length;
	struct slice rest;

	while (dash > 0 && key.data[dash - 1] != '-')
		dash--;
	if (dash < 2)
		return false;
	rest = slice_from_offset(key, dash);
	*ret_drain = slice_from(key.data, dash - 1);
	return slice_to_u64(slice_take_until(&rest, '/'), ret_number) && slice_to_u64(rest, ret_count) &&
	       *ret_number > 0 && *ret_number <= *ret_count && *ret_count <= EVENT_KEYS_OF_DRAIN;
}

static struct drain *add_drain(struct event_keys *keys, struct slice name, size_t count)
{
	struct drain *drain = memory_allocate(sizeof *drain + count * sizeof drain->contents[0]);

	if (drain == NULL)
		return NULL;
	drain->count = count;
	if (!table_set(&keys->drains, name, drain)) {
		memory_release(drain);
		return NULL;
	}
	if (keys->drains.count > EVENT_KEYS_DRAINS)
		forget_oldest(keys);
	return drain;
}

static struct drain *find_or_add(struct event_keys *keys, struct slice name, size_t count)
{
	struct drain *drain = NULL;
	struct buffer full;

	buffer_init(&full, DRAIN_NAME_BYTES);
	buffer_append_format(&full, "%.*s/%zu", SLICE_ARGS(name), count);
	if (!full.failed) {
		drain = table_find(&keys->drains, buffer_slice(&full));
		if (drain == NULL)
			drain = add_drain(keys, buffer_slice(&full), count);
	}
	buffer_destroy(&full);
	return drain;
}

bool event_keys_see(struct event_keys *keys, struct slice key, struct slice content, enum event_sight *ret_sight,
                    struct error *err)
{
	uint64_t number = 0, count = 0;
	uint64_t hash = slice_hash(content) | 1;
	struct drain *drain;
	struct slice name;

	if (!split(key, &name, &number, &count))
		return error_set(err, ERROR_SYNTAX, "\"%.*s\" is no idempotency key", SLICE_ARGS(key));
	drain = find_or_add(keys, name, (size_t)count);
	if (drain == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a key");
	if (drain->contents[number - 1] == 0) {
		drain->contents[number - 1] = hash;
		drain->seen++;
		*ret_sight = EVENT_NEW;
	} else {
		*ret_sight = drain->contents[number - 1] == hash ? EVENT_REPEATED : EVENT_CHANGED;
	}
	return true;
}

size_t event_keys_missing(const struct event_keys *keys)
{
	size_t missing = keys->missing_of_forgotten;

	for (struct table_entry *entry = table_next(&keys->drains, NULL); entry != NULL;
	     entry = table_next(&keys->drains, entry)) {
		const struct drain *drain = entry->value;

		missing += drain->count - drain->seen;
	}
	return missing;
}
