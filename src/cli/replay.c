/*
 * `ballast replay`: lines in, lines out, each answer written before the next line is looked at (spec replay 1).
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

enum {
	LINE_BYTES_MAX = 16 << 20,
	READ_BYTES = 64 << 10,
};

enum reading { READING_GOES_ON, READING_IS_DONE, READING_FAILED };

struct replay {
	struct replay_session session;
	struct buffer input;
	struct buffer answer;
	int descriptor;
	size_t line; /* of the input, from 1 */
};

static bool write_all(struct slice data, struct error *err)
{
	while (data.length > 0) {
		ssize_t written = write(STDOUT_FILENO, data.data, data.length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return error_set_errno(err, errno, "writing an answer");
		data = slice_from_offset(data, (size_t)written);
	}
	return true;
}

static bool answer_line(struct replay *replay, struct slice line, struct error *err)
{
	replay->line++;
	if (slice_trim(line).length == 0)
		return true;
	buffer_clear(&replay->answer);
	if (!replay_session_line(&replay->session, line, &replay->answer, err))
		return error_wrap(err, "input line %zu", replay->line);
	return write_all(buffer_slice(&replay->answer), err);
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
		buffer_check(&replay->input, "input line", err);
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

	while (reading == READING_GOES_ON && !replay->session.panicked) {
		reading = read_more(replay, err);
		if (reading == READING_FAILED || !answer_lines(replay, reading == READING_IS_DONE, err))
			return false;
	}
	return true;
}

/* Malformed input is the caller's mistake, as a wrong option would be. */
static int exit_status_of(const struct error *err)
{
	return err->code == ERROR_SYNTAX || err->code == ERROR_LIMIT ? EXIT_USAGE : EXIT_FAILED;
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
	buffer_init(&replay->answer, LINE_BYTES_MAX);
	replay->descriptor = descriptor;

	if (!run(replay, &err)) {
		fprintf(stderr, "ballast replay: %s\n", err.text);
		status = exit_status_of(&err);
	}
	buffer_destroy(&replay->input);
	buffer_destroy(&replay->answer);
	replay_session_destroy(&replay->session);
	memory_release(replay);
	return status;
}

static int run_replay(int argc, char **argv)
{
	int rest;
	int status = options_read(&command_replay, NULL, 0, argc, argv, &rest);

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
		fprintf(stderr, "ballast replay: %s\n", err.text);
		return EXIT_FAILED;
	}
	status = replay_descriptor(descriptor);
	close(descriptor);
	return status;
}

const struct command command_replay = {
	.name = "replay",
	.summary = "drive the scaling core from JSON lines",
	.help = "Usage: ballast replay [FILE]\n"
		"\n"
		"Reads one event per line from FILE, or from standard input, and answers each with one line on standard\n"
		"output: what the scaling core of the agent does and says. The first event must be \"init\". The core's\n"
		"state changes by events only; no clock runs and nothing is sent anywhere.\n"
		"\n"
		"Exit status: 0 at the end of the input, or after the core has broken an invariant (key \"panic\" in the\n"
		"last line); 2 when a line isn't an event; 1 when reading or writing fails.\n"
		"\n"
		"Options:\n"
		"      --help       show this text\n"
		"      --version    show the version\n",
	.run = run_replay,
};
