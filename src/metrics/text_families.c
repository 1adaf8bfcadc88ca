#include "metrics/text_families.h"

#include <string.h>

#include "base/memory.h"

enum { FAMILIES_AT_FIRST = 256 };

void text_families_clear(struct metrics_text_parser *parser)
{
	parser->family_count = 0;
	parser->last_name = (struct slice){ 0 };
	if (parser->slots != NULL)
		memset(parser->slots, 0, parser->slot_count * sizeof parser->slots[0]);
}

/* Names are compared for every line of a page, eight bytes at a time; the C library's memcmp may go byte by byte. */
static bool same_bytes(const char *a, const char *b, size_t length)
{
	uint64_t left;
	uint64_t right;
	size_t i = 0;

	if (length < sizeof left) {
		while (i < length && a[i] == b[i])
			i++;
		return i == length;
	}
	for (; i + sizeof left < length; i += sizeof left) {
		memcpy(&left, a + i, sizeof left);
		memcpy(&right, b + i, sizeof right);
		if (left != right)
			return false;
	}
	/* The last eight, which may overlap those before. */
	memcpy(&left, a + length - sizeof left, sizeof left);
	memcpy(&right, b + length - sizeof right, sizeof right);
	return left == right;
}

static bool same_name(struct slice a, struct slice b)
{
	return a.length == b.length && same_bytes(a.data, b.data, a.length);
}

static bool is_name_character(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || c == '_' || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= ':');
}

const unsigned char *text_families_skip_last(const struct metrics_text_parser *parser, const unsigned char *cursor)
{
	struct slice last = parser->last_name;

	if (last.length == 0 || (size_t)(parser->whole_lines_end - cursor) <= last.length)
		return NULL;
	if (is_name_character(cursor[last.length]) || !same_bytes((const char *)cursor, last.data, last.length))
		return NULL;
	return cursor + last.length;
}

/* Multiply and fold, eight bytes at a time; seeded, so that a page can't choose its slots. */
static uint32_t hash_name(uint64_t seed, struct slice name)
{
	static const uint64_t MULTIPLIER =
		UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio: odd, bits well spread */
	uint64_t hash = seed ^ name.length;
	uint64_t part = 0;
	size_t i = 0;

	for (; i + sizeof part < name.length; i += sizeof part) {
		memcpy(&part, name.data + i, sizeof part);
		hash = (hash ^ part) * MULTIPLIER;
		hash ^= hash >> 32;
	}
	/* The rest: the last eight bytes, which may overlap those before, or all of a short name. */
	if (name.length >= sizeof part) {
		memcpy(&part, name.data + name.length - sizeof part, sizeof part);
	} else {
		for (size_t k = 0; k < name.length; k++)
			part = part << 8 | (unsigned char)name.data[k];
	}
	hash = (hash ^ part) * MULTIPLIER;
	return (uint32_t)(hash >> 32);
}

/* The slot of name, or the free one where it belongs. There is always a free slot. */
static uint32_t *find_slot(const struct metrics_text_parser *parser, struct slice name, uint32_t hash)
{
	uint32_t mask = parser->slot_count - 1;

	for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
		uint32_t *slot = &parser->slots[i];

		if (*slot == 0)
			return slot;

		const struct metrics_text_family *family = &parser->families[*slot - 1];

		if (family->hash == hash && same_name(family->name, name))
			return slot;
	}
}

/* Twice as many families; slots are always twice the families, so that half of them stay free. */
static bool grow(struct metrics_text_parser *parser, struct error *err)
{
	uint32_t capacity = parser->family_capacity == 0 ? FAMILIES_AT_FIRST : 2 * parser->family_capacity;

	if (capacity > METRICS_TEXT_FAMILIES_MAX)
		return error_set(err, ERROR_LIMIT, "more than %d metric families", METRICS_TEXT_FAMILIES_MAX);

	struct metrics_text_family *families = memory_resize(parser->families, capacity * sizeof families[0]);

	if (families == NULL)
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	parser->families = families;

	uint32_t *slots = memory_resize(parser->slots, 2 * (size_t)capacity * sizeof slots[0]);

	if (slots == NULL)
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	parser->slots = slots;
	parser->slot_count = 2 * capacity;
	parser->family_capacity = capacity;

	memset(slots, 0, parser->slot_count * sizeof slots[0]);
	for (uint32_t i = 0; i < parser->family_count; i++)
		*find_slot(parser, families[i].name, families[i].hash) = i + 1;
	return true;
}

static bool ends_with(struct slice name, struct slice suffix)
{
	return name.length > suffix.length &&
	       memcmp(name.data + name.length - suffix.length, suffix.data, suffix.length) == 0;
}

/* A summary or histogram that name without the suffix is; 0 or index + 1. */
static uint32_t find_whole(const struct metrics_text_parser *parser, struct slice name, struct slice suffix,
                           bool of_summary)
{
	if (!ends_with(name, suffix))
		return 0;

	struct slice whole = { .data = name.data, .length = name.length - suffix.length };
	uint32_t found = *find_slot(parser, whole, hash_name(parser->seed, whole));

	if (found == 0)
		return 0;

	enum metrics_text_type type = parser->families[found - 1].type;

	return type == METRICS_TEXT_HISTOGRAM || (of_summary && type == METRICS_TEXT_SUMMARY) ? found : 0;
}

static uint32_t find_family_of_part(const struct metrics_text_parser *parser, struct slice name)
{
	uint32_t found = find_whole(parser, name, SLICE("_count"), true);

	if (found == 0)
		found = find_whole(parser, name, SLICE("_sum"), true);
	if (found == 0)
		found = find_whole(parser, name, SLICE("_bucket"), false);
	return found;
}

static bool add_family(struct metrics_text_parser *parser, struct slice name, uint32_t hash, struct error *err)
{
	if (parser->family_count == parser->family_capacity && !grow(parser, err))
		return false;
	parser->families[parser->family_count] = (struct metrics_text_family){ .name = name, .hash = hash };
	parser->family_count++;
	*find_slot(parser, name, hash) = parser->family_count;
	return true;
}

bool text_families_find(struct metrics_text_parser *parser, struct slice name, uint32_t *ret_index, struct error *err)
{
	if (same_name(name, parser->last_name)) {
		*ret_index = parser->last_family;
		return true;
	}
	uint32_t hash = hash_name(parser->seed, name);
	uint32_t found = parser->slot_count > 0 ? *find_slot(parser, name, hash) : 0;

	if (found == 0 && parser->slot_count > 0)
		found = find_family_of_part(parser, name);
	if (found == 0) {
		if (!add_family(parser, name, hash, err))
			return false;
		found = parser->family_count;
	}
	parser->last_name = name;
	parser->last_family = found - 1;
	*ret_index = found - 1;
	return true;
}
