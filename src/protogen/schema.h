/*
 * What a schema file says, as protogen keeps it between reading and writing. Everything lives in one arena.
 *
 * Lists are in the order of the file, which is also the order of keys in the JSON that generated encoders write.
 */
#ifndef BALLAST_PROTOGEN_SCHEMA_H
#define BALLAST_PROTOGEN_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/* Limits of generated code: one bit per field says whether it was seen. */
enum { SCHEMA_MAX_FIELDS = 64 };

/* Where something stands in a schema file; counted from 1. */
struct schema_place {
	const char *file;
	unsigned line;
	unsigned column;
};

enum schema_type {
	SCHEMA_BOOL,
	SCHEMA_INT32,
	SCHEMA_INT64,
	SCHEMA_UINT32,
	SCHEMA_UINT64,
	SCHEMA_FLOAT,
	SCHEMA_DOUBLE,
	SCHEMA_STRING,
	SCHEMA_BYTES,
	SCHEMA_MESSAGE,
	SCHEMA_ENUM,
	SCHEMA_STRING_MAP, /* map<string, string> */
};

enum schema_label { SCHEMA_SINGLE, SCHEMA_OPTIONAL, SCHEMA_REPEATED };

/* The options of proto/options.proto, in its order. */
enum schema_null { SCHEMA_NULL_UNSET, SCHEMA_NULL_IS_ERROR, SCHEMA_NULL_IS_ABSENT, SCHEMA_NULL_IS_KEPT };

enum schema_format {
	SCHEMA_PLAIN,
	SCHEMA_QUANTITY,
	SCHEMA_MILLI_CPU,
	SCHEMA_RFC3339,
	SCHEMA_RFC3339_NANO,
	SCHEMA_RAW,
	SCHEMA_FLOAT_OR_NAME,
	SCHEMA_QUANTITY_STRING,
	SCHEMA_MILLI_CPU_STRING,
};

enum schema_keys { SCHEMA_EXACT, SCHEMA_ASCII_FOLD };

enum schema_unknown { SCHEMA_IGNORE, SCHEMA_REJECT, SCHEMA_KEEP };

/* How C code learns whether a field was there. */
enum schema_presence {
	SCHEMA_NO_PRESENCE, /* absent reads as zero */
	SCHEMA_HAS,         /* bool has_x */
	SCHEMA_KEPT,        /* enum json_presence x_presence */
};

struct schema_field {
	struct schema_field *next;
	struct schema_place place;
	const char *name;
	const char *comment;  /* lines joined by \n; "" without one */
	const char *trailing; /* comment on the field's own line */
	unsigned long number;
	enum schema_label label;
	enum schema_type type;
	const char *type_name;           /* as written; messages and enums */
	struct schema_message *message;  /* set by schema_resolve */
	struct schema_enum *enumeration; /* likewise */
	const char *json_name;           /* given or derived */
	bool json_name_given;
	enum schema_presence presence; /* set by schema_resolve */

	bool required;
	enum schema_null null;
	bool omit_empty;
	enum schema_format format;
	uint32_t max_items;
	uint32_t max_bytes;
	bool always;
	uint32_t bits;
	bool exact;
};

struct schema_value {
	struct schema_value *next;
	struct schema_place place;
	const char *name;
	const char *comment;
	const char *trailing;
	unsigned long number;
	const char *text; /* how it stands in JSON */
};

struct schema_enum {
	struct schema_enum *next;
	struct schema_place place;
	const char *name;
	const char *full_name;
	const char *c_name;
	const char *comment;
	struct schema_value *values;
};

/* How a message looks; a file's own ones are the defaults of its messages. */
struct schema_rules {
	enum schema_keys keys;
	enum schema_unknown unknown;
	bool last_duplicate_wins;
	bool replace_bad_utf8;
	enum schema_null null;
	bool whole_numbers_from_double;
	const char *same_struct_as; /* NULL: a struct of its own */
};

struct schema_message {
	struct schema_message *next;
	struct schema_place place;
	struct schema_file *file;
	const char *name;
	const char *full_name;               /* "ballast.plugin.AgentRequest" */
	const char *c_name;                  /* "plugin_agent_request" */
	const char *c_struct;                /* the same, unless it shares the struct of another message, */
	struct schema_message *struct_owner; /* which is this one; else NULL */
	const char *variable;                /* "request": what generated functions call one */
	const char *comment;
	struct schema_field *fields;
	unsigned field_count;
	bool printed; /* used while ordering structs */
	bool open;    /* likewise: finds messages that contain themselves */
	struct schema_rules rules;
};

struct schema_file {
	struct schema_file *next;
	const char *path;    /* as given or found in an include folder */
	const char *name;    /* "plugin": the base name without .proto */
	const char *package; /* "ballast.plugin" */
	const char *prefix;  /* "plugin": the package's last part */
	const char *comment; /* before the syntax line */
	struct schema_rules rules;
	struct schema_import *imports;
	struct schema_message *messages; /* nested ones too, before what holds them */
	struct schema_enum *enums;
};

struct schema_import {
	struct schema_import *next;
	struct schema_place place;
	const char *path;
	struct schema_file *file; /* NULL: options.proto, whose meaning is built in */
};

struct schema {
	struct arena *arena;
	struct schema_file *files; /* imported ones before those that import them */
};

/* Fills *err with "file:line:column: text" and returns false. */
bool schema_error(struct schema_place place, struct error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Arena strings; NULL and *err when memory is short. */
const char *schema_text(struct schema *schema, struct slice text, struct error *err);
const char *schema_format(struct schema *schema, struct error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void *schema_allocate(struct schema *schema, size_t size, struct error *err);

/* "AgentRequest" to "agent_request", "PodIP" to "pod_ip". */
const char *schema_snake(struct schema *schema, const char *camel, struct error *err);
/* "compute_unit" to "computeUnit", as proto3 derives JSON names. */
const char *schema_camel(struct schema *schema, const char *snake, struct error *err);
/* Keywords of C17 can't name a field or variable. */
bool schema_is_c_keyword(const char *name);

/*
 * Finds the messages and enums that fields name, derives presence, and checks everything that needs the whole file:
 * unique names and numbers, options that fit their types. The file's imports must have been resolved before.
 */
bool schema_resolve(struct schema *schema, struct schema_file *file, struct error *err);

#endif
