/*
 * Reading map<string, string>. Duplicates are found by an index over the keys' hashes, so that a large map of a hostile
 * peer costs no more than a small one per key.
 */
#include <string.h>

#include "codec/json_internal.h"

/* Maps up to this size are searched one by one. */
enum { SMALL_MAP = 16 };

struct map {
	struct json_pair *pairs;
	size_t count;
	uint32_t *index; /* open addressing: position + 1 of a pair, or 0; NULL for a small map */
	size_t mask;
};

static bool prepare(struct json_reader *reader, size_t most, struct map *map)
{
	size_t size = 2 * SMALL_MAP;

	*map = (struct map){ 0 };
	map->pairs = arena_allocate_array(reader->arena, most, sizeof *map->pairs);
	if (map->pairs == NULL && most > 0)
		return false;
	if (most <= SMALL_MAP)
		return true;
	while (size < 2 * most)
		size *= 2;
	map->index = arena_allocate_array(reader->arena, size, sizeof *map->index);
	map->mask = size - 1;
	return map->index != NULL;
}

/* The pair of a key; a new one at the end of the map if the key is new. */
static struct json_pair *find_or_add(struct map *map, struct slice key)
{
	size_t slot = map->index != NULL ? (size_t)slice_hash(key) & map->mask : 0;

	if (map->index == NULL) {
		for (size_t i = 0; i < map->count; i++) {
			if (slice_equal(map->pairs[i].key, key))
				return &map->pairs[i];
		}
		return &map->pairs[map->count];
	}
	for (; map->index[slot] != 0; slot = (slot + 1) & map->mask) {
		if (slice_equal(map->pairs[map->index[slot] - 1].key, key))
			return &map->pairs[map->index[slot] - 1];
	}
	map->index[slot] = (uint32_t)map->count + 1;
	return &map->pairs[map->count];
}

static bool read_key(struct json_reader *reader, struct slice *ret_key, struct error *err)
{
	const jsmntok_t *token = json_at(reader);

	*ret_key = json_token_text(reader, token);
	if (json_needs_decoding(reader, token) && !json_decode_string(reader, token, ret_key, err))
		return false;
	reader->position++;
	return true;
}

static bool read_pair(struct json_reader *reader, struct map *map, struct error *err)
{
	struct slice key;
	struct json_pair *pair;
	bool known;

	if (!read_key(reader, &key, err))
		return false;
	pair = find_or_add(map, key);
	known = pair < map->pairs + map->count;
	if (known && !reader->message->last_duplicate_wins) {
		struct json_problem problem = {
			.kind = JSON_PROBLEM_DUPLICATE_KEY,
			.text = "the key stands here for the second time",
		};
		int token = reader->position - 1;

		json_skip(reader);
		return json_fail(reader, token, &problem, err);
	}
	if (!known)
		map->count++;
	*pair = (struct json_pair){ .key = key };
	if (reader->field->null == JSON_NULL_IS_ABSENT && json_is_null(reader, json_at(reader))) {
		reader->position++;
		return true;
	}
	return json_reader_string(reader, &pair->value, err);
}

bool json_reader_string_map(struct json_reader *reader, struct json_pair **ret_pairs, size_t *ret_count,
                            struct error *err)
{
	const jsmntok_t *token = json_at(reader);
	size_t limit = reader->field->max_items != 0 ? reader->field->max_items : JSON_MAX_ITEMS;
	struct map map;

	if (token->type != JSMN_OBJECT)
		return json_fail_type(reader, "map", false, err);
	if ((size_t)token->size > limit)
		return json_fail_value(reader, err, "%d keys are more than %zu", token->size, limit);
	if (!prepare(reader, (size_t)token->size, &map))
		return json_fail_memory(reader, err);
	reader->position++;
	for (int i = 0; i < token->size; i++) {
		if (!read_pair(reader, &map, err))
			return false;
	}
	*ret_pairs = map.pairs;
	*ret_count = map.count;
	return true;
}
