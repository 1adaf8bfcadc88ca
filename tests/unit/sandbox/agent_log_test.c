#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/agent_log.h"

#define INFO "{\"level\":\"info\",\"msg\":\"fine\"}\n"
#define FAILED "{\"level\":\"error\",\"msg\":\"Scrape failed\",\"error\":\"timeout\"}\n"
#define PANIC "{\"level\":\"panic\",\"msg\":\"Main loop failed\",\"error\":\"no port\"}\n"

static char path[] = "/tmp/agent-log-test-XXXXXX";

static void write_log(const char *text, int times)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	for (int i = 0; i < times; i++)
		assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void what_says_most_of_the_end_is_found(void **state)
{
	(void)state;
	static const struct {
		const char *log, *words; /* NULL: none */
	} rows[] = {
		{ INFO PANIC FAILED INFO, "Main loop failed: no port" },
		{ INFO FAILED "ballast agent: out of memory\n" INFO, "ballast agent: out of memory" },
		{ INFO FAILED "{\"level\":\"error\",\"msg\":\"Plain\"}\n" INFO, "Plain" },
		{ PANIC "Segmentation fault", "Main loop failed: no port" },
		{ "Segmentation fault", "Segmentation fault" },
		{ INFO INFO, NULL },
		{ "{broken\n\n", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char words[AGENT_LOG_WORDS_BYTES] = "";

		write_log(rows[i].log, 1);
		assert_int_equal(agent_log_last_words(path, 0, words), rows[i].words != NULL);
		if (rows[i].words != NULL)
			assert_string_equal(words, rows[i].words);
	}
}

static void what_was_there_before_the_agent_doesnt_count(void **state)
{
	(void)state;
	char words[AGENT_LOG_WORDS_BYTES];

	write_log(PANIC INFO, 1);
	assert_int_equal(agent_log_length(path), strlen(PANIC INFO));
	assert_false(agent_log_last_words(path, strlen(PANIC), words));
	assert_false(agent_log_last_words(path, agent_log_length(path), words));
	assert_true(agent_log_last_words(path, 0, words));
}

static void only_the_end_of_a_long_log_is_read(void **state)
{
	(void)state;
	char words[AGENT_LOG_WORDS_BYTES];
	FILE *file;

	write_log(INFO, 20000); /* begins to be read within a line */
	assert_false(agent_log_last_words(path, 0, words));
	file = fopen(path, "ae");
	assert_non_null(file);
	assert_true(fputs(PANIC, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_true(agent_log_last_words(path, 0, words));
	assert_string_equal(words, "Main loop failed: no port");
}

static void what_is_no_file_has_no_words(void **state)
{
	(void)state;
	char words[AGENT_LOG_WORDS_BYTES];

	assert_int_equal(agent_log_length("/dev/null"), 0);
	assert_false(agent_log_last_words("/dev/null", 0, words));
	assert_false(agent_log_last_words("/nonexistent/log", 0, words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_says_most_of_the_end_is_found),
		cmocka_unit_test(what_was_there_before_the_agent_doesnt_count),
		cmocka_unit_test(only_the_end_of_a_long_log_is_read),
		cmocka_unit_test(what_is_no_file_has_no_words),
	};
	int file = mkstemp(path);
	int failed;

	if (file < 0)
		return 1;
	(void)close(file);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	return failed;
}
