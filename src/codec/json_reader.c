/*
 * A text is read in three passes: json_scan checks it and counts tokens, jsmn makes the tokens, and decoders walk them
 * in order. A token knows where its value ends in the text, which is how an object knows that it is over and how a
 * value that nobody wants is skipped.
 */
#include "codec/json_reader.h"

#include <stdio.h>
#include <string.h>

#include "codec/json_internal.h"

/* --- opening and finishing --- */

static bool fail_scan(struct json_reader *reader, const struct json_scan *scan, struct error *err)
{
	struct json_problem problem = { .kind = scan->problem, .offset = scan->problem_offset };

	snprintf(problem.text, sizeof problem.text, "%s", scan->problem_text);
	json_fail(reader, -1, &problem, err);
	return false;
}

bool json_reader_open_collecting(struct json_reader *reader, struct slice text, struct arena *arena,
                                 struct json_problems *problems, struct error *err)
{
	struct json_scan scan;

	*reader = (struct json_reader){ .text = text, .arena = arena, .problems = problems };
	if (problems != NULL)
		*problems = (struct json_problems){ 0 };
	json_scan(text, &scan);
	if (scan.problem != JSON_PROBLEM_NONE)
		return fail_scan(reader, &scan, err);
	reader->tokens = arena_allocate_raw(arena, (size_t)scan.token_count, sizeof *reader->tokens);
	if (reader->tokens == NULL)
		return json_fail_memory(reader, err);
	if (!json_tokenize(text, &scan, reader->tokens))
		return error_set(err, ERROR_INVARIANT, "the tokenizer refuses JSON that was checked");
	reader->token_count = scan.token_count;
	reader->value_end = scan.value_end;
	reader->any_escape = scan.any_escape;
	reader->bad_text_offset = scan.bad_text_offset;
	return true;
}

bool json_reader_open(struct json_reader *reader, struct slice text, struct arena *arena, struct error *err)
{
	return json_reader_open_collecting(reader, text, arena, NULL, err);
}

struct slice json_reader_rest(const struct json_reader *reader)
{
	return slice_from_offset(reader->text, reader->value_end);
}

bool json_reader_finish(struct json_reader *reader, struct error *err)
{
	struct slice rest = slice_trim(json_reader_rest(reader));

	if (rest.length > 0) {
		struct json_problem problem = {
			.kind = JSON_PROBLEM_TRAILING,
			.offset = (size_t)(rest.data - reader->text.data),
			.text = "something follows the value",
		};

		if (!json_fail(reader, -1, &problem, err))
			return false;
	}
	if (reader->problem.kind != JSON_PROBLEM_NONE) {
		char text[sizeof reader->problem.path + sizeof reader->problem.text + 64];

		json_problem_describe(&reader->problem, text, sizeof text);
		return error_set(err, ERROR_SYNTAX, "%s", text);
	}
	return true;
}

enum json_kind json_kind_of(struct slice raw)
{
	raw = slice_trim(raw);
	if (raw.length == 0)
		return JSON_KIND_NONE;
	switch (raw.data[0]) {
	case '{':
		return JSON_KIND_OBJECT;
	case '[':
		return JSON_KIND_ARRAY;
	case '"':
		return JSON_KIND_STRING;
	case 't':
	case 'f':
		return JSON_KIND_BOOL;
	case 'n':
		return JSON_KIND_NULL;
	default:
		return JSON_KIND_NUMBER;
	}
}

const struct slice *json_pairs_find(const struct json_pair *pairs, size_t count, struct slice key)
{
	for (size_t i = count; i > 0; i--) {
		if (slice_equal(pairs[i - 1].key, key))
			return &pairs[i - 1].value;
	}
	return NULL;
}

/* --- walking --- */

void json_skip(struct json_reader *reader)
{
	int end = json_at(reader)->end;

	reader->position++;
	while (reader->position < reader->token_count && json_at(reader)->start < end)
		reader->position++;
}

/* Bad text anywhere in a strict message is an error, also where the schema ignores it. */
static bool check_text(struct json_reader *reader, const struct json_message *message, const jsmntok_t *token,
                       struct error *err)
{
	struct json_problem problem = {
		.kind = JSON_PROBLEM_VALUE,
		.offset = reader->bad_text_offset,
		.text = "invalid UTF-8 or half a surrogate pair",
	};

	if (message->replace_bad_utf8 || reader->bad_text_told || reader->bad_text_offset < (size_t)token->start ||
	    reader->bad_text_offset >= (size_t)token->end)
		return true;
	reader->bad_text_told = true;
	return json_fail(reader, -1, &problem, err);
}

struct json_object json_object_begin(struct json_reader *reader, const struct json_message *message, struct error *err)
{
	const jsmntok_t *token = json_at(reader);
	struct json_object object = { .message = message, .token = reader->position };

	if (token->type == JSMN_OBJECT) {
		object.end = token->end;
		object.ok = check_text(reader, message, token, err);
		reader->position++;
	} else if (message->null_is_empty && json_is_null(reader, token)) {
		object.ok = true;
		reader->position++;
	} else {
		object.skipped = true;
		object.ok = json_fail_type(reader, "object", false, err);
	}
	return object;
}

/* Index of the field that a key names, or -1. Keys tend to come in order, so the search begins behind the last one. */
static int find_field(const struct json_object *object, struct slice key)
{
	const struct json_message *message = object->message;
	int count = (int)message->field_count;
	int index = object->expected;

	for (int i = 0; i < count; i++, index++) {
		if (index >= count)
			index = 0;
		const struct slice *wanted = &message->fields[index].key;

		if (wanted->length == key.length &&
		    (key.length == 0 || memcmp(wanted->data, key.data, key.length) == 0))
			return index;
	}
	if (!message->fold_keys)
		return -1;
	for (index = 0; index < count; index++) {
		if (!message->fields[index].exact && slice_equal_fold(message->fields[index].key, key))
			return index;
	}
	return -1;
}

static bool fail_key(struct json_reader *reader, enum json_problem_kind kind, struct slice key, const char *text,
                     struct error *err)
{
	struct json_problem problem = { .kind = kind };
	int token = reader->position - 1; /* the key's */

	snprintf(problem.found, sizeof problem.found, "%.*s", SLICE_ARGS(key));
	snprintf(problem.text, sizeof problem.text, "%s", text);
	json_skip(reader);
	return json_fail(reader, token, &problem, err);
}

/* Room for one more unknown member; doubles as powers of two are passed. */
static bool keep_unknown(struct json_reader *reader, struct json_object *object, struct slice key, struct error *err)
{
	size_t count = object->unknown_count;

	if ((count & (count - 1)) == 0) {
		struct json_member *larger =
			arena_allocate_array(reader->arena, count > 0 ? 2 * count : 1, sizeof *larger);

		if (larger == NULL)
			return json_fail_memory(reader, err);
		if (count > 0)
			memcpy(larger, object->unknown, count * sizeof *larger);
		object->unknown = larger;
	}
	object->unknown[count].key = key;
	reader->field = NULL;
	if (!json_reader_raw(reader, &object->unknown[count].value, err))
		return false;
	object->unknown_count++;
	return true;
}

static bool pass_unknown(struct json_reader *reader, struct json_object *object, struct slice key, struct error *err)
{
	switch (object->message->unknown) {
	case JSON_UNKNOWN_REJECTED:
		return fail_key(reader, JSON_PROBLEM_UNKNOWN_KEY, key, "unknown key", err);
	case JSON_UNKNOWN_KEPT:
		return keep_unknown(reader, object, key, err);
	case JSON_UNKNOWN_IGNORED:
		break;
	}
	json_skip(reader);
	return true;
}

bool json_object_next(struct json_reader *reader, struct json_object *object, struct error *err)
{
	const struct json_message *message = object->message;

	while (object->ok && reader->position < reader->token_count && json_at(reader)->start < object->end) {
		const jsmntok_t *token = json_at(reader);
		struct slice key = json_token_text(reader, token);

		reader->message = message;
		reader->field = NULL;
		if (json_needs_decoding(reader, token) && !json_decode_string(reader, token, &key, err)) {
			object->ok = false;
			return false;
		}
		reader->position++;

		int index = find_field(object, key);

		if (index < 0) {
			object->ok = pass_unknown(reader, object, key, err);
			continue;
		}

		const struct json_field *field = &message->fields[index];
		uint64_t bit = (uint64_t)1 << index;

		if ((object->seen & bit) != 0 && !message->last_duplicate_wins) {
			object->ok = fail_key(reader, JSON_PROBLEM_DUPLICATE_KEY, key,
			                      "the key stands here for the second time", err);
			continue;
		}
		object->expected = index + 1;
		if (field->null == JSON_NULL_IS_ABSENT && json_is_null(reader, json_at(reader))) {
			reader->position++;
			continue;
		}
		object->seen |= bit;
		object->field = index;
		reader->field = field;
		return true;
	}
	return false;
}

static bool fail_missing(struct json_reader *reader, const struct json_object *object, const struct json_field *field,
                         struct error *err)
{
	struct json_problem problem = { .kind = JSON_PROBLEM_MISSING_KEY, .text = "required but missing" };

	json_problem_place(reader, object->token, field->key, &problem);
	return json_fail(reader, object->token, &problem, err);
}

bool json_object_end(struct json_reader *reader, struct json_object *object, struct error *err)
{
	const struct json_message *message = object->message;

	if (!object->ok || object->skipped)
		return object->ok;
	for (size_t i = 0; i < message->field_count; i++) {
		if (!message->fields[i].required || (object->seen >> i & 1) != 0)
			continue;
		if (!fail_missing(reader, object, &message->fields[i], err))
			return false;
	}
	return true;
}

struct json_array json_array_begin(struct json_reader *reader, size_t item_size, struct error *err)
{
	const jsmntok_t *token = json_at(reader);
	struct json_array array = {
		.ok = true,
		.null_is_zero = reader->field != NULL && reader->field->null == JSON_NULL_IS_ABSENT,
	};
	size_t limit =
		reader->field != NULL && reader->field->max_items != 0 ? reader->field->max_items : JSON_MAX_ITEMS;

	if (token->type != JSMN_ARRAY) {
		array.ok = json_fail_type(reader, "array", false, err);
		return array;
	}
	if ((size_t)token->size > limit) {
		array.ok = json_fail_value(reader, err, "%d items are more than %zu", token->size, limit);
		return array;
	}
	array.items = arena_allocate_array(reader->arena, (size_t)token->size, item_size);
	if (array.items == NULL && token->size > 0) {
		array.ok = json_fail_memory(reader, err);
		return array;
	}
	array.count = (size_t)token->size;
	reader->position++;
	return array;
}

bool json_array_next(struct json_reader *reader, struct json_array *array)
{
	while (array->ok && array->next < array->count) {
		array->index = array->next++;
		if (!array->null_is_zero || !json_is_null(reader, json_at(reader)))
			return true;
		reader->position++;
	}
	return false;
}

enum json_presence json_reader_presence(struct json_reader *reader)
{
	if (!json_is_null(reader, json_at(reader)))
		return JSON_VALUE;
	reader->position++;
	return JSON_NULL;
}
