/*
 * `ballast status`: what an agent is doing, from its state dump.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/status_fetch.h"
#include "cli/status_read.h"
#include "cli/status_table.h"
#include "cli/terminal.h"
#include "codec/duration_text.h"

enum {
	ARENA_BYTES_MAX = 12 * STATUS_DUMP_BYTES_MAX,
	OUTPUT_BYTES_MAX = 2 * STATUS_DUMP_BYTES_MAX,
	DURATION_MAX_S = 3600,
	DURATION_LEAST_MS = 100,
};

struct status_values {
	const char *url, *token_file, *interval, *timeout;
	bool watches, json;
};

static const struct option OPTIONS[] = {
	{ .name = "url",
	  .place = TEXT_OPTION(struct status_values, url),
	  .argument = "URL",
	  .help = "the agent's state dump (default: http://127.0.0.1:10300/)" },
	{ .name = "token-file",
	  .place = TEXT_OPTION(struct status_values, token_file),
	  .argument = "FILE",
	  .help = "file with the bearer token, for an agent that wants one" },
	{ .name = "watch", .place = FLAG_OPTION(struct status_values, watches), .help = "go on, until Ctrl-C" },
	{ .name = "interval",
	  .place = TEXT_OPTION(struct status_values, interval),
	  .argument = "D",
	  .help = "how long --watch waits between two looks, 100ms to 1h (default: 2s)" },
	{ .name = "timeout",
	  .place = TEXT_OPTION(struct status_values, timeout),
	  .argument = "D",
	  .help = "how long the agent may take to answer, 100ms to 1h (default: 5s)" },
	{ .name = "json",
	  .place = FLAG_OPTION(struct status_values, json),
	  .help = "print a JSON object in a line for each VM, instead of a table" },
};

/* How it is shown, and again and again. */
struct view {
	struct status_source source;
	uint64_t interval_ns;
	bool watches, json, redraws;
	unsigned looks;
};

static bool append_json(const struct status *status, struct buffer *out, struct error *err)
{
	struct buffer line;
	bool ok = true;

	buffer_init(&line, OUTPUT_BYTES_MAX);
	for (size_t i = 0; ok && i < status->vm_count; i++) {
		buffer_clear(&line);
		ok = status_line_vm_to_json(&status->vms[i], &line, err);
		terminal_append_clean_json(buffer_slice(&line), out);
		buffer_append_char(out, '\n');
	}
	buffer_destroy(&line);
	return ok;
}

static size_t count_lines(struct slice text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text.length; i++)
		lines += text.data[i] == '\n';
	return lines;
}

/* One column stays free: what fills the last one leaves the cursor on it, or in the next line. */
static void draw_line(struct slice line, size_t columns)
{
	size_t length = 0;

	for (size_t width = 0; length < line.length; length++) {
		width += ((unsigned char)line.data[length] & 0xc0U) != 0x80U;
		if (columns > 0 && width >= columns)
			break;
	}
	(void)printf("%.*s\033[K\n", SLICE_ARGS(slice_from(line.data, length)));
}

/*
 * Replaces what stands on the screen, without a moment in which it is empty. What doesn't fit is left out: long lines are
 * cut, and of too many the last, which sums up, is kept. The cursor has the last row.
 */
static void redraw(struct slice text)
{
	const struct terminal_size size = terminal_size();
	size_t lines = count_lines(text), left_out = 0;
	char more[64];

	if (size.rows > 0 && lines + 1 > size.rows)
		left_out = lines + 2 - size.rows < lines ? lines + 2 - size.rows : lines - 1;
	(void)snprintf(more, sizeof more, "… and %zu more", left_out);
	(void)fputs("\033[H", stdout);
	for (size_t i = 1; i <= lines; i++) {
		struct slice line = slice_take_until(&text, '\n');

		if (i == lines || i + left_out < lines)
			draw_line(line, size.columns);
		else if (i + left_out == lines && size.rows > 3)
			draw_line(slice_of(more), size.columns);
	}
	(void)fputs("\033[J", stdout);
}

static void show_text(const struct view *view, struct slice text)
{
	if (view->redraws) {
		/* Not before: until then, what is on the screen is somebody's, and a complaint would go with it. */
		if (view->looks == 0)
			(void)fputs("\033[2J", stdout);
		redraw(text);
		return;
	}
	if (view->looks > 0 && !view->json)
		(void)fputc('\n', stdout);
	(void)fwrite(text.data, 1, text.length, stdout);
}

static bool show_dump(const struct view *view, struct slice dump, struct error *err)
{
	struct arena arena;
	struct buffer out;
	struct status status;
	bool ok;

	arena_init(&arena, ARENA_BYTES_MAX);
	buffer_init(&out, OUTPUT_BYTES_MAX);
	ok = status_read(dump, &arena, &status, err) || error_wrap(err, "%s", view->source.url);
	if (ok && view->json)
		ok = append_json(&status, &out, err);
	else if (ok)
		status_table_append(&status, clock_wall_ns(), &out);
	ok = ok && buffer_check(&out, "the table", err);
	if (ok)
		show_text(view, buffer_slice(&out));
	buffer_destroy(&out);
	arena_destroy(&arena);
	return ok;
}

static bool look(const struct view *view, struct error *err)
{
	struct buffer dump;
	bool ok;

	buffer_init(&dump, STATUS_DUMP_BYTES_MAX);
	ok = status_fetch(&view->source, &dump, err) && show_dump(view, buffer_slice(&dump), err);
	buffer_destroy(&dump);
	return ok;
}

static void complain(const struct view *view, const struct error *err)
{
	FILE *out = view->redraws && view->looks > 0 ? stdout : stderr;

	if (out == stdout)
		(void)fputs("\033[H\033[J", stdout);
	else
		(void)fputs("ballast status: ", stderr);
	terminal_print_clean(out, slice_of(err->text));
	(void)fputc('\n', out);
}

/* Once begun, watching outlives an agent that is away for a while. */
static int watch(struct view *view)
{
	const struct timespec pause = { .tv_sec = (time_t)(view->interval_ns / NS_PER_S),
		                        .tv_nsec = (long)(view->interval_ns % NS_PER_S) };
	struct error err;

	for (;; view->looks = 1) {
		if (!look(view, &err)) {
			complain(view, &err);
			if (view->looks == 0)
				return EXIT_FAILED;
		}
		if (fflush(stdout) != 0)
			return EXIT_FAILED; /* told by main */
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
}

/* Sets *ns if the option is given. False after a complaint. */
static bool read_duration(const char *name, const char *text, uint64_t *ns)
{
	int64_t value;
	struct error err;

	if (text == NULL)
		return true;
	if (!duration_parse(slice_of(text), &value, &err)) {
		(void)options_complain(&command_status, "--%s: %s", name, err.text);
		return false;
	}
	if (value < (int64_t)DURATION_LEAST_MS * NS_PER_MS || value > (int64_t)DURATION_MAX_S * NS_PER_S) {
		(void)options_complain(&command_status, "--%s: \"%s\" is not within 100ms and 1h", name, text);
		return false;
	}
	*ns = (uint64_t)value;
	return true;
}

static int run_status(int argc, char **argv)
{
	struct status_values values = { .url = "http://127.0.0.1:10300/" };
	struct view view = { .interval_ns = (uint64_t)2 * NS_PER_S,
		             .source = { .timeout_ns = (uint64_t)5 * NS_PER_S } };
	int rest = 0;
	int status = options_read(&command_status, &values, argc, argv, &rest);
	struct error err;

	if (status != OPTIONS_GO_ON)
		return status;
	if (rest > 0)
		return options_complain(&command_status, "unexpected argument \"%s\"", argv[1]);
	if (!read_duration("interval", values.interval, &view.interval_ns) ||
	    !read_duration("timeout", values.timeout, &view.source.timeout_ns))
		return EXIT_USAGE;
	if (!status_source_init(&view.source, values.url, &err))
		return options_complain(&command_status, "--url: %s", err.text);
	view.source.token_file = values.token_file;
	view.watches = values.watches;
	view.json = values.json;
	view.redraws = view.watches && !view.json && terminal_can_redraw();
	if (view.watches)
		return watch(&view);
	if (look(&view, &err))
		return EXIT_OK;
	complain(&view, &err);
	return EXIT_FAILED;
}

const struct command command_status = {
	.name = "status",
	.summary = "show what an agent is doing with each VM",
	.usage = "[OPTION]...",
	.options = OPTIONS,
	.option_count = sizeof OPTIONS / sizeof OPTIONS[0],
	.before =
		"Reads the state dump of an agent (its configuration must have \"dumpState\"), ours or the reference's, of any\n"
		"generation, and prints a table with a line for each VM. Amounts are CPUs and memory:\n"
		"\n"
		"  STATE        ok, stuck (requests have failed for a while, or the vm-monitor is away), or panicked\n"
		"  USING        what the VirtualMachine has\n"
		"  GOAL         what the agent wants it to have; with generation A, what it last asked the plugin for\n"
		"  PERMIT       what the scheduler plugin last granted\n"
		"  MONITOR      what the vm-monitor last agreed to; \"away\" if it isn't connected\n"
		"  NOW          requests under way\n"
		"  LAST ACTION  the newest event in the dump, and its AGE by this machine's clock\n",
	.after =
		"Exit status: 0; 1 if the agent can't be reached, or answers with something else than a dump (with --watch:\n"
		"the first time); 2 for bad usage.\n",
	.run = run_status,
};
