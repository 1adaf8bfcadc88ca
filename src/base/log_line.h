/*
 * The text of one log line (spec agent-runtime section 3.1); the sink in log.c decides what becomes of it.
 */
#ifndef BALLAST_BASE_LOG_LINE_H
#define BALLAST_BASE_LOG_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/log.h"

struct log_line {
	enum log_level level;
	int64_t wall_ns;
	const char *name;
	const char *context_json;
	struct slice message;
	const struct log_field *fields;
	size_t field_count;
	bool rfc3339;             /* JSON: "time":"2025-03-04T05:06:07.123Z" instead of "ts":1700000000.123456 */
	size_t value_limit_bytes; /* longer texts are cut, longer JSON values are replaced by a text that says so */
};

/*
 * Appends the line and its newline. JSON:
 * {"level":"info","ts":1700000000.123456,"logger":"autoscaler-agent.runner","msg":"…",<context>,<fields>}
 */
void log_line_append_json(struct buffer *out, const struct log_line *line);

/* Appends "2025-03-04T05:06:07.123Z INFO  autoscaler-agent.runner  message  key=value key=value" and a newline. */
void log_line_append_text(struct buffer *out, const struct log_line *line);

#endif
