/*
 * `ballast replay`: lines in, lines out (spec replay 1). Answers to lines that came together leave together, but all of them
 * before more input is waited for: whoever writes the next line only after having read an answer gets it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/replay_session.h"
#include "cli/terminal.h"

enum {
	LINE_BYTES_MAX = 16 << 20,
	READ_BYTES = 64 << 10,
	WRITE_BYTES = 64 << 10, /* of answers, before they are written in any case */
};

enum reading { READING_GOES_ON, READING_IS_DONE, READING_FAILED };

struct replay {
	struct replay_session session;
	struct buffer input;
	struct buffer answers; /* not written yet */
	int descriptor;
	size_t line; /* of the input, from 1 */
};

static bool write_answers(struct replay *replay, struct error *err)
{
	struct slice data = buffer_slice(&replay->answers);

	while (data.length > 0) {
		ssize_t written = write(STDOUT_FILENO, data.data, data.length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return error_set_errno(err, errno, "writing an answer");
		data = slice_from_offset(data, (size_t)written);
	}
	buffer_clear(&replay->answers);
	return true;
}

/* Puts the number of the input's line before what is wrong with it, in place of the place in its JSON: always line 1. */
static bool fail_at_line(size_t line, struct error *err)
{
	static const char JSON_LINE[] = "line 1: ";
	struct error inner = *err;
	const char *text = inner.text;

	if (strncmp(text, JSON_LINE, sizeof JSON_LINE - 1) == 0)
		text += sizeof JSON_LINE - 1;
	return error_set(err, inner.code, "input line %zu: %s", line, text);
}

static bool answer_line(struct replay *replay, struct slice line, struct error *err)
{
	size_t before = replay->answers.length;

	replay->line++;
	if (slice_trim(line).length == 0)
		return true;
	if (!replay_session_line(&replay->session, line, &replay->answers, err)) {
		replay->answers.length = before; /* no half an answer */
		return fail_at_line(replay->line, err);
	}
	return replay->answers.length < WRITE_BYTES || write_answers(replay, err);
}

/* Answers all whole lines of the input and drops them; with at_end, also one that has no newline. */
static bool answer_lines(struct replay *replay, bool at_end, struct error *err)
{
	struct slice rest = buffer_slice(&replay->input);

	while (rest.length > 0 && !replay->session.panicked) {
		const char *newline = memchr(rest.data, '\n', rest.length);

		if (newline == NULL && !at_end)
			break;

		size_t length = newline != NULL ? (size_t)(newline - rest.data) : rest.length;

		if (!answer_line(replay, slice_from(rest.data, length), err))
			return false;
		rest = slice_from_offset(rest, length + (newline != NULL ? 1 : 0));
	}
	buffer_consume(&replay->input, replay->input.length - rest.length);
	return true;
}

static enum reading read_more(struct replay *replay, struct error *err)
{
	char *room = buffer_reserve(&replay->input, READ_BYTES);

	if (room == NULL) {
		buffer_check(&replay->input, "input", err);
		if (err->code == ERROR_LIMIT)
			error_set(err, ERROR_LIMIT, "input line %zu is over %d bytes", replay->line + 1,
			          LINE_BYTES_MAX);
		return READING_FAILED;
	}

	ssize_t got = read(replay->descriptor, room, READ_BYTES);

	if (got < 0 && errno == EINTR)
		return READING_GOES_ON;
	if (got < 0) {
		error_set_errno(err, errno, "reading the input");
		return READING_FAILED;
	}
	buffer_advance(&replay->input, (size_t)got);
	return got == 0 ? READING_IS_DONE : READING_GOES_ON;
}

static bool run(struct replay *replay, struct error *err)
{
	enum reading reading = READING_GOES_ON;
	struct error unwritten;

	while (reading == READING_GOES_ON && !replay->session.panicked) {
		reading = read_more(replay, err);
		if (reading == READING_FAILED)
			return false;
		if (!answer_lines(replay, reading == READING_IS_DONE, err)) {
			write_answers(
				replay,
				&unwritten); /* those before the line that is wrong; that error is the one to tell */
			return false;
		}
		if (!write_answers(replay, err))
			return false;
	}
	return true;
}

/* Malformed input is the caller's mistake, as a wrong option would be. */
static int exit_status_of(const struct error *err)
{
	return err->code == ERROR_SYNTAX || err->code == ERROR_LIMIT ? EXIT_USAGE : EXIT_FAILED;
}

static void complain(const struct error *err)
{
	(void)fputs("ballast replay: ", stderr);
	terminal_print_clean(stderr, slice_of(err->text));
	(void)fputc('\n', stderr);
}

static int replay_descriptor(int descriptor)
{
	struct replay *replay = memory_allocate(sizeof *replay);
	int status = EXIT_OK;
	struct error err;

	if (replay == NULL) {
		fputs("ballast replay: out of memory\n", stderr);
		return EXIT_FAILED;
	}
	replay_session_init(&replay->session);
	buffer_init(&replay->input, LINE_BYTES_MAX + READ_BYTES);
	buffer_init(&replay->answers, LINE_BYTES_MAX + WRITE_BYTES);
	replay->descriptor = descriptor;

	if (!run(replay, &err)) {
		complain(&err);
		status = exit_status_of(&err);
	}
	buffer_destroy(&replay->input);
	buffer_destroy(&replay->answers);
	replay_session_destroy(&replay->session);
	memory_release(replay);
	return status;
}

static int run_replay(int argc, char **argv)
{
	int rest;
	int status = options_read(&command_replay, NULL, argc, argv, &rest);

	if (status != OPTIONS_GO_ON)
		return status;
	if (rest > 1)
		return options_complain(&command_replay, "one FILE at most");
	if (rest == 0 || strcmp(argv[1], "-") == 0)
		return replay_descriptor(STDIN_FILENO);

	int descriptor = open(argv[1], O_RDONLY | O_CLOEXEC);
	struct error err;

	if (descriptor < 0) {
		error_set_errno(&err, errno, argv[1]);
		complain(&err);
		return EXIT_FAILED;
	}
	status = replay_descriptor(descriptor);
	close(descriptor);
	return status;
}

const struct command command_replay = {
	.name = "replay",
	.summary = "drive the scaling core from JSON lines",
	.usage = "[FILE]",
	.operand = OPERAND_FILE,
	.before =
		"Reads events, one JSON object per line, from FILE (\"-\" or none: standard input) and answers each with one\n"
		"line on standard output: what the agent's scaling core does and says. The core's state changes by events\n"
		"only; no clock runs and nothing is sent anywhere. Two events:\n"
		"\n"
		"  {\"event\":\"monitorActive\",\"active\":true}\n"
		"  {\"event\":\"nextActions\",\"at\":5000000000}\n"
		"\n"
		"The first event must be \"init\", with the core's configuration and the VM. proto/replay.proto declares\n"
		"every event and the answer, tests/data/replay has whole runs.\n",
	.after =
		"Exit status: 0 at the end of the input, or after the core has broken an invariant (key \"panic\" in the last\n"
		"line); 1 if reading or writing fails; 2 for bad usage, or if a line isn't an event.\n",
	.run = run_replay,
};
