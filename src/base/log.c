/*
 * What waits lies in one block as whole lines, [start, end); when the room behind it is too small it moves to the
 * front. A write happens only after poll has said that the descriptor takes something, and is at most PIPE_BUF bytes: a
 * pipe then never blocks, although the descriptor stays in blocking mode (it may be shared with a shell, whom
 * O_NONBLOCK would surprise). Writes end at a line's end where they can, so that several writers to one pipe don't cut
 * into each other's lines.
 *
 * SIGPIPE must be ignored in the process; a reader that went away then shows as an error, and what waits is given up.
 */
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_line.h"
#include "base/memory.h"

enum {
	LINE_LIMIT_BYTES = 65536,
	LINE_KEPT_BYTES = 4096, /* the line's buffer is given back after a longer line */
	CUT_VALUE_BYTES = 1024, /* what remains of a value in a line that would be too long */
	FIELDS_MOST = 32,
	WRITE_MOST_BYTES = PIPE_BUF,
};

struct log_sink {
	int descriptor;
	enum log_format format;
	enum log_level least;
	int64_t (*wall_ns)(void *context);
	void *context;
	void (*waiting)(void *context);
	void *waiting_context;
	struct buffer line;
	char *ring;
	size_t ring_bytes;
	size_t start, end;
	uint64_t dropped_lines;
	uint64_t untold_lines; /* dropped, and no line says so yet */
};

/* ---- fields ---- */

struct log_field log_text(const char *key, const char *value)
{
	return log_slice(key, slice_of(value));
}

struct log_field log_slice(const char *key, struct slice value)
{
	return (struct log_field){ .key = key, .kind = LOG_FIELD_TEXT, .text = value };
}

struct log_field log_int(const char *key, int64_t value)
{
	return (struct log_field){ .key = key, .kind = LOG_FIELD_INT, .integer = value };
}

struct log_field log_uint(const char *key, uint64_t value)
{
	return (struct log_field){ .key = key, .kind = LOG_FIELD_UINT, .unsigned_integer = value };
}

struct log_field log_float(const char *key, double value)
{
	return (struct log_field){ .key = key, .kind = LOG_FIELD_FLOAT, .number = value };
}

struct log_field log_bool(const char *key, bool value)
{
	return (struct log_field){ .key = key, .kind = LOG_FIELD_BOOL, .integer = value };
}

struct log_field log_duration(const char *key, int64_t nanoseconds)
{
	return (struct log_field){ .key = key, .kind = LOG_FIELD_DURATION, .integer = nanoseconds };
}

struct log_field log_json(const char *key, struct slice json)
{
	return (struct log_field){ .key = key, .kind = LOG_FIELD_JSON, .text = json };
}

struct log_field log_error_field(const struct error *err)
{
	return log_text("error", err->text);
}

/* ---- the sink ---- */

struct log_sink *log_sink_create(int descriptor, enum log_format format, enum log_level least, size_t ring_bytes,
                                 int64_t (*wall_ns)(void *context), void *context, struct error *err)
{
	struct log_sink *sink = memory_allocate(sizeof *sink);
	char *ring = memory_allocate(ring_bytes);

	if (sink == NULL || ring == NULL) {
		memory_release(sink);
		memory_release(ring);
		error_set(err, ERROR_NO_MEMORY, "no memory for a log of %zu bytes", ring_bytes);
		return NULL;
	}
	*sink = (struct log_sink){
		.descriptor = descriptor,
		.format = format,
		.least = least,
		.wall_ns = wall_ns,
		.context = context,
		.ring = ring,
		.ring_bytes = ring_bytes,
	};
	buffer_init(&sink->line, LINE_LIMIT_BYTES);
	return sink;
}

static void drop_line(struct log_sink *sink)
{
	sink->dropped_lines++;
	sink->untold_lines++;
}

/* Nobody will ever read what waits. */
static void give_up(struct log_sink *sink)
{
	for (size_t i = sink->start; i < sink->end; i++) {
		if (sink->ring[i] == '\n')
			drop_line(sink);
	}
	sink->start = sink->end = 0;
}

enum readiness { TAKES, FULL, BROKEN };

static enum readiness wait_until_ready(int descriptor, int wait_ms)
{
	struct pollfd poll_fd = { .fd = descriptor, .events = POLLOUT };
	int count = poll(&poll_fd, 1, wait_ms);

	if (count <= 0)
		return FULL; /* also when a signal came; the next flush tries again */
	if ((poll_fd.revents & POLLOUT) != 0)
		return TAKES;
	return BROKEN;
}

/* Up to the last line that ends within one write; part of a line if that is longer. */
static size_t next_write_length(const struct log_sink *sink)
{
	size_t waiting = sink->end - sink->start;
	const char *newline;

	if (waiting <= WRITE_MOST_BYTES)
		return waiting;
	newline = memrchr(sink->ring + sink->start, '\n', WRITE_MOST_BYTES);
	return newline != NULL ? (size_t)(newline - (sink->ring + sink->start)) + 1 : WRITE_MOST_BYTES;
}

bool log_flush(struct log_sink *sink)
{
	while (sink->start < sink->end) {
		enum readiness readiness = wait_until_ready(sink->descriptor, 0);

		if (readiness == FULL)
			return true;

		ssize_t written = readiness == BROKEN
		                          ? -1
		                          : write(sink->descriptor, sink->ring + sink->start, next_write_length(sink));

		if (written > 0) {
			sink->start += (size_t)written;
		} else if (readiness == BROKEN || (written < 0 && errno != EINTR && errno != EAGAIN)) {
			give_up(sink);
		} else {
			return true;
		}
	}
	sink->start = sink->end = 0;
	return false;
}

void log_sink_destroy(struct log_sink *sink, int wait_ms)
{
	if (sink == NULL)
		return;

	uint64_t deadline_ns = clock_monotonic_ns() + (uint64_t)(wait_ms > 0 ? wait_ms : 0) * NS_PER_MS;

	while (log_flush(sink)) {
		uint64_t now_ns = clock_monotonic_ns();

		if (now_ns >= deadline_ns)
			break;
		wait_until_ready(sink->descriptor, (int)((deadline_ns - now_ns) / NS_PER_MS) + 1);
	}
	buffer_destroy(&sink->line);
	memory_release(sink->ring);
	memory_release(sink);
}

void log_sink_tell_waiting(struct log_sink *sink, void (*waiting)(void *context), void *context)
{
	sink->waiting = waiting;
	sink->waiting_context = context;
}

uint64_t log_dropped_lines(const struct log_sink *sink)
{
	return sink->dropped_lines;
}

int log_descriptor(const struct log_sink *sink)
{
	return sink->descriptor;
}

bool log_enabled(const struct logger *logger, enum log_level level)
{
	return logger->sink != NULL && level >= logger->sink->least;
}

/* ---- lines ---- */

static void append_line(struct log_sink *sink, const struct log_line *line)
{
	struct log_line stamped = *line;

	stamped.rfc3339 = sink->format == LOG_FORMAT_JSON_TIME;
	if (sink->format == LOG_FORMAT_TEXT)
		log_line_append_text(&sink->line, &stamped);
	else
		log_line_append_json(&sink->line, &stamped);
}

/* A line of our own, named by the root of the logger's name ("autoscaler-agent"). */
static void append_dropped_notice(struct log_sink *sink, const struct log_line *next)
{
	struct log_field lines = log_uint("lines", sink->untold_lines);
	char root[64];
	size_t length = strcspn(next->name, ".");

	if (length >= sizeof root)
		length = sizeof root - 1;
	memcpy(root, next->name, length);
	root[length] = '\0';

	struct log_line notice = {
		.level = LOG_WARN,
		.wall_ns = next->wall_ns,
		.name = root,
		.context_json = "",
		.message = SLICE("log lines dropped"),
		.fields = &lines,
		.field_count = 1,
		.value_limit_bytes = CUT_VALUE_BYTES,
	};

	append_line(sink, &notice);
}

static bool format_line(struct log_sink *sink, const struct log_line *line)
{
	buffer_clear(&sink->line);
	if (sink->untold_lines > 0)
		append_dropped_notice(sink, line);
	append_line(sink, line);
	return !sink->line.failed;
}

/* True if the formatted line now waits in the ring. */
static bool enqueue(struct log_sink *sink)
{
	size_t length = sink->line.length;
	size_t waiting = sink->end - sink->start;

	if (length > sink->ring_bytes - waiting)
		return false;
	if (length > sink->ring_bytes - sink->end) {
		memmove(sink->ring, sink->ring + sink->start, waiting);
		sink->start = 0;
		sink->end = waiting;
	}
	memcpy(sink->ring + sink->end, sink->line.data, length);
	sink->end += length;
	return true;
}

static void write_line(struct log_sink *sink, struct log_line *line)
{
	bool formatted = format_line(sink, line);

	if (!formatted && !sink->line.no_memory) {
		line->value_limit_bytes = CUT_VALUE_BYTES;
		formatted = format_line(sink, line);
	}
	if (formatted && enqueue(sink))
		sink->untold_lines = 0;
	else
		drop_line(sink);
	if (sink->line.capacity > LINE_KEPT_BYTES || sink->line.failed)
		buffer_release(&sink->line);
	if (log_flush(sink) && sink->waiting != NULL)
		sink->waiting(sink->waiting_context);
}

void log_event(const struct logger *logger, enum log_level level, const char *message, ...)
{
	struct log_field fields[FIELDS_MOST];
	size_t count = 0, left_out = 0;
	va_list arguments;

	if (!log_enabled(logger, level))
		return;

	va_start(arguments, message);
	for (;;) {
		struct log_field field = va_arg(arguments, struct log_field);

		if (field.key == NULL)
			break;
		if (count < FIELDS_MOST)
			fields[count++] = field;
		else
			left_out++;
	}
	va_end(arguments);
	if (left_out > 0)
		fields[FIELDS_MOST - 1] = log_uint("fieldsLeftOut", left_out + 1);

	struct log_line line = {
		.level = level,
		.wall_ns = logger->sink->wall_ns(logger->sink->context),
		.name = logger->name != NULL ? logger->name : "",
		.context_json = logger->context_json != NULL ? logger->context_json : "",
		.message = slice_of(message),
		.fields = fields,
		.field_count = count,
		.value_limit_bytes = SIZE_MAX,
	};

	write_line(logger->sink, &line);
}
