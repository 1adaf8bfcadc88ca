/*
 * Reads JSON into structs, strictly by RFC 8259, and says exactly where and what is wrong. Generated decoders are its
 * main users; by hand one only opens a text, calls a decoder and finishes:
 *
 *	struct json_reader reader;
 *
 *	if (!json_reader_open(&reader, text, &arena, err) || !plugin_plugin_response_decode(&reader, &response, err) ||
 *	    !json_reader_finish(&reader, err))
 *		return false;
 *
 * The whole value is checked when it is opened (grammar, escapes, depth), so that what a schema ignores is valid too.
 * Nothing is copied: strings are slices of the text, or of the arena where they had escapes. The arena also holds the
 * tokens, 20 bytes each: the limit of an arena should be a dozen times that of the text.
 *
 * Every failing function fills *err with `line 4: field "scaling.computeUnit.mem": …`, and reader->problem with its
 * parts. ERROR_SYNTAX: the text isn't what its schema allows. ERROR_LIMIT: a limit. ERROR_NO_MEMORY: memory, or the
 * arena's limit.
 */
#ifndef BALLAST_CODEC_JSON_READER_H
#define BALLAST_CODEC_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "codec/json_limits.h"
#include "codec/json_problem.h"
#include "codec/rfc3339.h" /* RFC3339_ZERO: what an instant that is null or absent reads as */

/* For fields whose schema keeps absent and null apart. */
enum json_presence { JSON_ABSENT, JSON_NULL, JSON_VALUE };

/* What a raw value is, by its first character. */
enum json_kind {
	JSON_KIND_NONE,
	JSON_KIND_NULL,
	JSON_KIND_BOOL,
	JSON_KIND_NUMBER,
	JSON_KIND_STRING,
	JSON_KIND_ARRAY,
	JSON_KIND_OBJECT
};

/* An entry of a map<string, string>. */
struct json_pair {
	struct slice key;
	struct slice value;
};

/* A key that the schema doesn't know, where it keeps those; the value is raw. */
struct json_member {
	struct slice key;
	struct slice value;
};

/* --- how a message looks (generated) --- */

enum json_null { JSON_NULL_IS_ERROR, JSON_NULL_IS_ABSENT, JSON_NULL_IS_KEPT };

enum json_unknown { JSON_UNKNOWN_IGNORED, JSON_UNKNOWN_REJECTED, JSON_UNKNOWN_KEPT };

struct json_field {
	struct slice key;
	enum json_null null;
	bool required;
	bool exact;         /* the letter case counts although the message's keys fold */
	uint32_t max_items; /* 0: JSON_MAX_ITEMS */
	uint32_t max_bytes; /* 0: no limit of its own */
};

struct json_message {
	const struct json_field *fields;
	size_t field_count; /* at most 64 */
	enum json_unknown unknown;
	bool fold_keys;           /* ASCII letter case of keys doesn't matter; an exact match is preferred */
	bool last_duplicate_wins; /* otherwise a duplicate is an error */
	bool replace_bad_utf8;    /* invalid UTF-8 and lone surrogates become U+FFFD; otherwise they are an error */
	bool null_is_empty;       /* `null` in its place reads as {} */
};

/* --- opening and finishing --- */

struct json_token;

struct json_reader {
	struct slice text;
	struct arena *arena;
	struct json_token *tokens;
	int token_count;
	int position;                       /* index of the token to be read next */
	size_t value_end;                   /* where the value ends in the text */
	size_t bad_text_offset;             /* first invalid UTF-8 or lone surrogate; SIZE_MAX without one */
	bool bad_text_told;                 /* while collecting: it was reported */
	bool any_escape;                    /* is there a backslash at all? */
	const struct json_message *message; /* being read, */
	const struct json_field *field;     /* and its field at hand */
	struct json_problem problem;        /* the first; kind JSON_PROBLEM_NONE without one */
	struct json_problems *problems;     /* NULL unless collecting */
};

/*
 * Prepares to read the first JSON value in text. text must outlive the reader, and text and arena what was decoded.
 * Even when this fails, reader->problem can be read.
 */
bool json_reader_open(struct json_reader *reader, struct slice text, struct arena *arena, struct error *err);

/*
 * As json_reader_open, in collect-all mode: decoders note each problem in *problems, leave the value zero and carry on,
 * so a decoder's true doesn't mean that all was well; json_reader_finish tells. A syntax error is the only problem of
 * its text.
 */
bool json_reader_open_collecting(struct json_reader *reader, struct slice text, struct arena *arena,
                                 struct json_problems *problems, struct error *err);

/*
 * Checks that only blanks follow the value. While collecting, also that there was no problem; *err then holds the first
 * one. Who allows text behind the value doesn't call this; json_reader_rest gives what follows.
 */
bool json_reader_finish(struct json_reader *reader, struct error *err);
struct slice json_reader_rest(const struct json_reader *reader);

enum json_kind json_kind_of(struct slice raw);
/* Last one wins. NULL if the key isn't there. */
const struct slice *json_pairs_find(const struct json_pair *pairs, size_t count, struct slice key);

/* --- walking (generated decoders) --- */

/* An object under way. `ok` is set by whoever reads the field at hand. */
struct json_object {
	const struct json_message *message;
	int token;     /* the object's own */
	int end;       /* offset */
	int field;     /* index in message->fields of the field at hand */
	int expected;  /* where the search for the next key begins */
	uint64_t seen; /* one bit per field */
	bool skipped;  /* wasn't an object; noted while collecting */
	bool ok;
	struct json_member *unknown; /* JSON_UNKNOWN_KEPT */
	size_t unknown_count;
};

/*
 *	struct json_object object = json_object_begin(reader, &MESSAGE, err);
 *
 *	while (json_object_next(reader, &object, err)) {
 *		switch (object.field) {
 *		case FIELD_NAME:
 *			object.ok = json_reader_string(reader, &vm.name, err);
 *	…
 *	if (!json_object_end(reader, &object, err))
 *		return false;
 */
struct json_object json_object_begin(struct json_reader *reader, const struct json_message *message, struct error *err);
bool json_object_next(struct json_reader *reader, struct json_object *object, struct error *err);
bool json_object_end(struct json_reader *reader, struct json_object *object, struct error *err);

/* An array under way, with room for all its items, which are zeroed. */
struct json_array {
	void *items;
	size_t count;
	size_t index; /* of the item at hand */
	size_t next;
	bool null_is_zero; /* as the field's null is absent */
	bool ok;
};

struct json_array json_array_begin(struct json_reader *reader, size_t item_size, struct error *err);
bool json_array_next(struct json_reader *reader, struct json_array *array);

/* JSON_NULL, having read it, or JSON_VALUE, having read nothing. */
enum json_presence json_reader_presence(struct json_reader *reader);

/*
 * Each reads one value. Integers are exact: a fraction, an exponent, a sign on an unsigned one or a value out of range
 * is a wrong type, as it is to the reference.
 */
bool json_reader_bool(struct json_reader *reader, bool *ret_value, struct error *err);
bool json_reader_int16(struct json_reader *reader, int16_t *ret_value, struct error *err);
bool json_reader_int32(struct json_reader *reader, int32_t *ret_value, struct error *err);
bool json_reader_int64(struct json_reader *reader, int64_t *ret_value, struct error *err);
bool json_reader_uint16(struct json_reader *reader, uint16_t *ret_value, struct error *err);
bool json_reader_uint32(struct json_reader *reader, uint32_t *ret_value, struct error *err);
bool json_reader_uint64(struct json_reader *reader, uint64_t *ret_value, struct error *err);
/*
 * Any number, through a double, its fraction cut off; what doesn't fit reads as agent-core section 0 says (ids of
 * vm-monitor).
 */
bool json_reader_whole_number(struct json_reader *reader, uint64_t *ret_value, struct error *err);
bool json_reader_double(struct json_reader *reader, double *ret_value, struct error *err);
bool json_reader_float(struct json_reader *reader, float *ret_value, struct error *err);
/* A number or one of the strings "NaN", "Inf", "-Inf". */
bool json_reader_double_or_name(struct json_reader *reader, double *ret_value, struct error *err);
bool json_reader_float_or_name(struct json_reader *reader, float *ret_value, struct error *err);
bool json_reader_string(struct json_reader *reader, struct slice *ret_value, struct error *err);
/* The value as it stands in the text; with replace_bad_utf8, bad UTF-8 in it is replaced. */
bool json_reader_raw(struct json_reader *reader, struct slice *ret_value, struct error *err);
/* Quantities, as strings or bare numbers (protocols 3): bytes, and milli-CPU modulo 2^32. */
bool json_reader_quantity(struct json_reader *reader, uint64_t *ret_bytes, struct error *err);
bool json_reader_milli_cpu(struct json_reader *reader, uint32_t *ret_milli, struct error *err);
/* RFC 3339, as nanoseconds since 1970. */
bool json_reader_instant(struct json_reader *reader, int64_t *ret_ns, struct error *err);
/* A string that must be one of count texts; gives its index. */
bool json_reader_choice(struct json_reader *reader, const struct slice *texts, size_t count, size_t *ret_index,
                        struct error *err);
bool json_reader_string_map(struct json_reader *reader, struct json_pair **ret_pairs, size_t *ret_count,
                            struct error *err);

#endif
