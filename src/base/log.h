/*
 * Structured log: one JSON object (or one line of text) per event, written to a descriptor that may be slow.
 *
 * A line is formatted into a bounded ring and written when the descriptor takes it; a full ring drops the newest line
 * and counts it, so a stuck reader of standard error never stops the program (design section 1.4). The loop calls
 * log_flush when the descriptor is writable. Line format: spec agent-runtime section 3 (level, ts, logger, msg,
 * context, fields).
 *
 * A logger is a small value: a sink, a dotted name, and fields that every line carries. Children are made on the stack
 * or inside objects; they point at their parent's strings, which must outlive them.
 */
#ifndef BALLAST_BASE_LOG_H
#define BALLAST_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_PANIC };

/* LOG_FORMAT_JSON_TIME: as JSON, with "time" in RFC 3339 instead of "ts" (spec extender P10). */
enum log_format { LOG_FORMAT_JSON, LOG_FORMAT_TEXT, LOG_FORMAT_JSON_TIME };

enum log_field_kind {
	LOG_FIELD_TEXT,
	LOG_FIELD_INT,
	LOG_FIELD_UINT,
	LOG_FIELD_FLOAT,
	LOG_FIELD_BOOL,
	LOG_FIELD_DURATION,
	LOG_FIELD_JSON
};

struct log_field {
	const char *key;
	enum log_field_kind kind;
	struct slice text; /* LOG_FIELD_TEXT; LOG_FIELD_JSON: a complete JSON value, put in as it is */
	int64_t integer;   /* LOG_FIELD_INT, _BOOL, and _DURATION in nanoseconds (printed as float seconds) */
	uint64_t unsigned_integer;
	double number;
};

struct log_field log_text(const char *key, const char *value);
struct log_field log_slice(const char *key, struct slice value);
struct log_field log_int(const char *key, int64_t value);
struct log_field log_uint(const char *key, uint64_t value);
struct log_field log_float(const char *key, double value);
struct log_field log_bool(const char *key, bool value);
struct log_field log_duration(const char *key, int64_t nanoseconds);
struct log_field log_json(const char *key, struct slice json);
struct log_field log_error_field(const struct error *err); /* key "error" */

struct log_sink; /* see log_sink_create */

struct logger {
	struct log_sink *sink;
	const char *name;         /* dotted, as in "autoscaler-agent.runner" */
	const char *context_json; /* "" or `"key":value,…` without braces: goes after msg, before the fields */
};

/*
 * Makes a sink for a descriptor it doesn't own. wall_ns gives the time of a line (injected so that simulated runs have
 * simulated stamps). ring_bytes bounds what waits for a slow reader. The process must
 * ignore SIGPIPE.
 */
struct log_sink *log_sink_create(int descriptor, enum log_format format, enum log_level least, size_t ring_bytes,
                                 int64_t (*wall_ns)(void *context), void *context, struct error *err);
/* Tries to write what waits, for at most wait_ms, then frees. */
void log_sink_destroy(struct log_sink *sink, int wait_ms);
/* Writes what can be written without blocking. Returns whether something still waits. */
bool log_flush(struct log_sink *sink);
/*
 * From now on waiting is told whenever a line was written and something waits, so that the caller can see to log_flush.
 * Called from inside log_event; it must not log. NULL: nobody.
 */
void log_sink_tell_waiting(struct log_sink *sink, void (*waiting)(void *context), void *context);
/*
 * Lines dropped so far: the ring was full, memory was short, or the reader went away. The next line that fits is
 * preceded by a warning with their number.
 */
uint64_t log_dropped_lines(const struct log_sink *sink);
int log_descriptor(const struct log_sink *sink);
bool log_enabled(const struct logger *logger, enum log_level level);

/*
 * Writes one line: message, then fields up to one whose key is NULL. A NULL sink drops everything. A panic line is just
 * a line: the caller ends the process. Of more than 32 fields the rest is counted only; of a line over 64 KiB long
 * values are cut. Called through the macros, which put the end mark:
 *
 *	log_warn(&logger, "Relist failed", log_error_field(err), log_int("attempt", 3));
 */
void log_event(const struct logger *logger, enum log_level level, const char *message, ...);

#define LOG_END ((struct log_field){ .key = NULL })

#define log_debug(logger, ...) log_event(logger, LOG_DEBUG, __VA_ARGS__, LOG_END)
#define log_info(logger, ...) log_event(logger, LOG_INFO, __VA_ARGS__, LOG_END)
#define log_warn(logger, ...) log_event(logger, LOG_WARN, __VA_ARGS__, LOG_END)
#define log_error(logger, ...) log_event(logger, LOG_ERROR, __VA_ARGS__, LOG_END)
#define log_panic(logger, ...) log_event(logger, LOG_PANIC, __VA_ARGS__, LOG_END)

#endif
