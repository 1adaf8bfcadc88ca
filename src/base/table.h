/*
 * A hash table from byte strings to pointers, in insertion order when walked. Keys are copied; values belong to the
 * caller.
 */
#ifndef BALLAST_BASE_TABLE_H
#define BALLAST_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct table_entry {
	char *key; /* NUL-terminated too */
	size_t key_length;
	void *value;
};

struct table {
	struct table_entry *entries; /* in insertion order, with holes (key == NULL) where something was removed */
	size_t *index;
	size_t count;    /* of live entries */
	size_t used;     /* entries in use, holes included */
	size_t capacity; /* of entries */
	size_t index_size;
};

void table_init(struct table *table); /* allocates nothing yet */
void table_destroy(struct table *table);
void *table_find(const struct table *table, struct slice key); /* NULL if absent */
/* Sets or replaces; value must not be NULL. False when memory is short, and then nothing changed. */
bool table_set(struct table *table, struct slice key, void *value);
/* Returns the removed value or NULL. */
void *table_remove(struct table *table, struct slice key);
/*
 * Walks: `for (struct table_entry *e = table_next(&t, NULL); e != NULL; e = table_next(&t, e))`. Removing the entry at
 * hand is allowed while walking; adding isn't.
 */
struct table_entry *table_next(const struct table *table, const struct table_entry *previous);

#endif
