#include "sandbox/agent_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/slice.h"
#include "codec/json_tree.h"

enum { LINE_ARENA_BYTES = 1024 * 1024 };

uint64_t agent_log_length(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
}

/* How much a line says of the end. */
enum weight { WEIGHT_NONE, WEIGHT_ERROR, WEIGHT_PLAIN, WEIGHT_PANIC };

/* Fills ret_words only if the line weighs at least as much as `least`. */
static enum weight weigh(struct slice line, enum weight least, char ret_words[AGENT_LOG_WORDS_BYTES])
{
	enum weight weight = WEIGHT_NONE;
	struct slice message = line, detail = { 0 };
	struct json_node *root;
	struct arena arena;
	struct error err;

	if (line.length == 0)
		return WEIGHT_NONE;
	arena_init(&arena, LINE_ARENA_BYTES);
	if (line.data[0] != '{') {
		weight = WEIGHT_PLAIN;
	} else if (json_tree_parse(line, &arena, &root, &err)) {
		struct slice level = json_tree_text(json_tree_member(root, SLICE("level")));

		if (slice_equal_text(level, "panic"))
			weight = WEIGHT_PANIC;
		else if (slice_equal_text(level, "error"))
			weight = WEIGHT_ERROR;
		message = json_tree_text(json_tree_member(root, SLICE("msg")));
		detail = json_tree_text(json_tree_member(root, SLICE("error")));
	}
	if (weight != WEIGHT_NONE && weight >= least)
		(void)snprintf(ret_words, AGENT_LOG_WORDS_BYTES, "%.*s%s%.*s", SLICE_ARGS(message),
		               detail.length > 0 ? ": " : "", SLICE_ARGS(detail));
	arena_destroy(&arena);
	return weight;
}

static bool search(struct slice text, char ret_words[AGENT_LOG_WORDS_BYTES])
{
	enum weight most = WEIGHT_NONE;

	while (text.length > 0) {
		enum weight weight = weigh(slice_take_until(&text, '\n'), most, ret_words);

		if (weight > most)
			most = weight;
	}
	return most != WEIGHT_NONE;
}

bool agent_log_last_words(const char *path, uint64_t offset, char ret_words[AGENT_LOG_WORDS_BYTES])
{
	uint64_t length = agent_log_length(path);
	bool cut = length > offset + AGENT_LOG_TAIL_BYTES;
	struct slice text = { .length = 0 };
	bool found = false;
	char *tail;
	ssize_t got;
	int file;

	if (length <= offset)
		return false;
	if (cut)
		offset = length - AGENT_LOG_TAIL_BYTES;
	file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file < 0)
		return false;
	tail = memory_allocate(AGENT_LOG_TAIL_BYTES);
	got = tail == NULL ? -1 : pread(file, tail, AGENT_LOG_TAIL_BYTES, (off_t)offset);
	if (got > 0) {
		text = (struct slice){ .data = tail, .length = (size_t)got };
		if (cut)
			(void)slice_take_until(&text, '\n'); /* part of a line */
		found = search(text, ret_words);
	}
	memory_release(tail);
	(void)close(file);
	return found;
}
