/*
 * Beside the counts by id it is known how many ids have each count; so the maximum follows: adding raises it by at most
 * one, and when the last id with that many loses a Volume, it is now among those with one fewer.
 */
#include "extender/volume_counts.h"

#include <string.h>

#include "base/memory.h"

struct count {
	size_t volumes;
};

void volume_counts_init(struct volume_counts *counts)
{
	*counts = (struct volume_counts){ 0 };
	table_init(&counts->by_id);
}

void volume_counts_destroy(struct volume_counts *counts)
{
	for (struct table_entry *entry = table_next(&counts->by_id, NULL); entry != NULL;
	     entry = table_next(&counts->by_id, entry))
		memory_release(entry->value);
	table_destroy(&counts->by_id);
	memory_release(counts->ids_with);
	counts->ids_with = NULL;
	counts->ids_with_size = counts->most = 0;
}

void volume_counts_clear(struct volume_counts *counts)
{
	volume_counts_destroy(counts);
	volume_counts_init(counts);
}

/* So that an id may have this many. */
static bool make_room(struct volume_counts *counts, size_t volumes)
{
	size_t size = counts->ids_with_size > 0 ? 2 * counts->ids_with_size : 16;
	size_t *larger;

	if (volumes < counts->ids_with_size)
		return true;
	larger = memory_resize(counts->ids_with, size * sizeof *larger);
	if (larger == NULL)
		return false;
	memset(larger + counts->ids_with_size, 0, (size - counts->ids_with_size) * sizeof *larger);
	counts->ids_with = larger;
	counts->ids_with_size = size;
	return true;
}

static struct count *add_id(struct volume_counts *counts, struct slice id)
{
	struct count *count = memory_allocate(sizeof *count);

	if (count != NULL && !table_set(&counts->by_id, id, count)) {
		memory_release(count);
		return NULL;
	}
	return count;
}

bool volume_counts_add(struct volume_counts *counts, struct slice id, struct error *err)
{
	struct count *count = table_find(&counts->by_id, id);

	if (!make_room(counts, counts->most + 1))
		return error_set(err, ERROR_NO_MEMORY, "no memory to count volumes");
	if (count == NULL)
		count = add_id(counts, id);
	if (count == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory to count volumes");
	if (count->volumes > 0)
		counts->ids_with[count->volumes]--;
	count->volumes++;
	counts->ids_with[count->volumes]++;
	if (count->volumes > counts->most)
		counts->most = count->volumes;
	return true;
}

void volume_counts_remove(struct volume_counts *counts, struct slice id)
{
	struct count *count = table_find(&counts->by_id, id);

	if (count == NULL)
		return;
	counts->ids_with[count->volumes]--;
	if (count->volumes == counts->most && counts->ids_with[count->volumes] == 0)
		counts->most--;
	count->volumes--;
	if (count->volumes > 0)
		counts->ids_with[count->volumes]++;
	else
		memory_release(table_remove(&counts->by_id, id));
}

size_t volume_counts_of(const struct volume_counts *counts, struct slice id)
{
	const struct count *count = table_find(&counts->by_id, id);

	return count != NULL ? count->volumes : 0;
}

size_t volume_counts_most(const struct volume_counts *counts)
{
	return counts->most;
}
