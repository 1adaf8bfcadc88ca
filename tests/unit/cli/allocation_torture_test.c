/*
 * What the subcommands make: replay's answers, status's table, help, the manual page and completions, while each
 * allocation fails once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/command.h"
#include "cli/completion_script.h"
#include "cli/help_text.h"
#include "cli/man_page.h"
#include "cli/replay_session.h"
#include "cli/status_read.h"
#include "cli/status_table.h"
#include "tests/support/failing_calls.h"
#include "tests/support/vector_file.h"

enum { OUT_BYTES = 1 << 20, ARENA_BYTES = 16 << 20 };

/* A line that can't be carried out leaves no part of an answer. */
static bool replay(void *context, struct error *err)
{
	static size_t usual_length;
	struct slice rest = slice_of(context);
	struct replay_session session;
	struct buffer out;
	bool ok = true;

	replay_session_init(&session);
	buffer_init(&out, OUT_BYTES);
	while (ok && rest.length > 0) {
		size_t length = out.length;

		ok = replay_session_line(&session, slice_take_until(&rest, '\n'), &out, err);
		if (!ok)
			assert_int_equal(out.length, length);
	}
	if (ok && usual_length == 0)
		usual_length = out.length;
	if (ok)
		assert_int_equal(out.length, usual_length);
	replay_session_destroy(&session);
	buffer_destroy(&out);
	return ok;
}

static bool show_status(void *context, struct error *err)
{
	static size_t usual_length;
	struct arena arena;
	struct buffer out;
	struct status status;
	bool ok;

	arena_init(&arena, ARENA_BYTES);
	buffer_init(&out, OUT_BYTES);
	torture_mark(&status, sizeof status);
	ok = status_read(slice_of(context), &arena, &status, err);
	if (ok) {
		status_table_append(&status, 0, &out);
		ok = buffer_check(&out, "the table", err);
		if (ok && usual_length == 0)
			usual_length = out.length;
		if (ok)
			assert_int_equal(out.length, usual_length);
	} else {
		assert_true(torture_untouched(&status, sizeof status));
	}
	buffer_destroy(&out);
	arena_destroy(&arena);
	return ok;
}

static bool check(struct buffer *out, struct error *err)
{
	bool ok = buffer_check(out, "the text", err);

	buffer_destroy(out);
	return ok;
}

static bool print_texts(void *context, struct error *err)
{
	static void (*const APPEND[])(struct buffer * out) = { man_page_append, completion_script_append_bash,
		                                               completion_script_append_zsh,
		                                               completion_script_append_fish };
	static size_t usual_lengths[sizeof APPEND / sizeof APPEND[0]];
	struct buffer out;
	bool ok = true;

	(void)context;
	for (size_t i = 0; ok && i < sizeof APPEND / sizeof APPEND[0]; i++) {
		buffer_init(&out, OUT_BYTES);
		APPEND[i](&out);
		if (usual_lengths[i] == 0)
			usual_lengths[i] = out.length;
		if (!out.failed && out.length != usual_lengths[i])
			fail_msg("text %zu is cut, and nobody is told (%zu for %zu)", i, out.length, usual_lengths[i]);
		ok = check(&out, err);
	}
	if (ok) {
		buffer_init(&out, OUT_BYTES);
		help_text_append(&command_agent, &out);
		help_text_append(&command_extender, &out);
		ok = check(&out, err);
	}
	return ok;
}

/* The head of a recorded run is enough. */
static void cut_behind_lines(char *text, unsigned lines)
{
	while (lines-- > 0 && (text = strchr(text, '\n')) != NULL)
		text++;
	if (text != NULL)
		*text = '\0';
}

static void each_failed_allocation_is_an_error(void **state)
{
	static const struct torture_case REPLAY = { "replay", replay, 10 };
	static const struct torture_case STATUS = { "status", show_status, 10 };
	static const struct torture_case TEXTS = { "texts", print_texts, 20 };
	size_t length;
	char *run = vector_read_file("data/replay/scenario-02.in.jsonl", &length);
	char *dump = vector_read_file("vectors/status/many_b.json", &length);

	(void)state;
	cut_behind_lines(run, 20);
	torture_each_case(&REPLAY, 1, run);
	torture_each_case(&STATUS, 1, dump);
	torture_each_case(&TEXTS, 1, NULL);
	memory_release(run);
	memory_release(dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_failed_allocation_is_an_error) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
