/*
 * Open addressing with linear probing. The index holds 1-based places in the entries (0: never used); an index that
 * leads to a hole counts as occupied by something else, so removal needs no marks. When the entries are used up, both
 * arrays are made anew without the holes, bigger or smaller as the live entries need; the index has twice as many
 * places as the entries.
 */
#include "base/table.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"

enum { LEAST_CAPACITY = 8 };

void table_init(struct table *table)
{
	*table = (struct table){ 0 };
}

void table_destroy(struct table *table)
{
	for (size_t i = 0; i < table->used; i++)
		memory_release(table->entries[i].key);
	memory_release(table->entries);
	memory_release(table->index);
	*table = (struct table){ 0 };
}

static struct table_entry *find_entry(const struct table *table, struct slice key)
{
	if (table->count == 0)
		return NULL;

	size_t mask = table->index_size - 1;

	for (size_t at = slice_hash(key) & mask; table->index[at] != 0; at = (at + 1) & mask) {
		struct table_entry *entry = &table->entries[table->index[at] - 1];

		if (entry->key != NULL && slice_equal(key, slice_from(entry->key, entry->key_length)))
			return entry;
	}
	return NULL;
}

void *table_find(const struct table *table, struct slice key)
{
	struct table_entry *entry = find_entry(table, key);

	return entry != NULL ? entry->value : NULL;
}

/* The caller made sure that there is room and that the key isn't in. */
static void append_entry(struct table *table, struct table_entry entry)
{
	size_t mask = table->index_size - 1;
	size_t at = slice_hash(slice_from(entry.key, entry.key_length)) & mask;

	while (table->index[at] != 0)
		at = (at + 1) & mask;
	table->entries[table->used++] = entry;
	table->index[at] = table->used;
	table->count++;
}

static bool rebuild(struct table *table)
{
	struct table fresh = { .capacity = LEAST_CAPACITY };

	/* At least a quarter of the places is free afterwards, so that the next rebuild is far away. */
	while (table->count >= fresh.capacity / 4 * 3) {
		if (fresh.capacity > SIZE_MAX / 4 / sizeof(struct table_entry))
			return false;
		fresh.capacity *= 2;
	}
	fresh.index_size = 2 * fresh.capacity;
	fresh.entries = memory_resize(NULL, fresh.capacity * sizeof(struct table_entry));
	fresh.index = memory_allocate(fresh.index_size * sizeof(size_t));
	if (fresh.entries == NULL || fresh.index == NULL) {
		memory_release(fresh.entries);
		memory_release(fresh.index);
		return false;
	}
	for (size_t i = 0; i < table->used; i++) {
		if (table->entries[i].key != NULL)
			append_entry(&fresh, table->entries[i]);
	}
	memory_release(table->entries);
	memory_release(table->index);
	*table = fresh;
	return true;
}

bool table_set(struct table *table, struct slice key, void *value)
{
	struct table_entry *entry = find_entry(table, key);

	if (entry != NULL) {
		entry->value = value;
		return true;
	}

	char *copy = memory_copy_text(key.data, key.length);

	if (copy == NULL)
		return false;
	if (table->used == table->capacity && !rebuild(table)) {
		memory_release(copy);
		return false;
	}
	append_entry(table, (struct table_entry){ .key = copy, .key_length = key.length, .value = value });
	return true;
}

void *table_remove(struct table *table, struct slice key)
{
	struct table_entry *entry = find_entry(table, key);

	if (entry == NULL)
		return NULL;

	void *value = entry->value;

	memory_release(entry->key);
	*entry = (struct table_entry){ 0 };
	table->count--;
	return value;
}

struct table_entry *table_next(const struct table *table, const struct table_entry *previous)
{
	size_t at = previous != NULL ? (size_t)(previous - table->entries) + 1 : 0;

	for (; at < table->used; at++) {
		if (table->entries[at].key != NULL)
			return &table->entries[at];
	}
	return NULL;
}
