#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/config.h"
#include "tests/support/vector_file.h"
#include "tests/unit/agent/config_file.h"

/* The vector's PATH becomes the file's. */
static void put_path(const char *text, const char *path, char *ret_text, size_t size)
{
	const char *place = strstr(text, "PATH");

	if (place == NULL)
		snprintf(ret_text, size, "%s", text);
	else
		snprintf(ret_text, size, "%.*s%s%s", (int)(place - text), text, path, place + 4);
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text);

	return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

static void check_error(const struct vector_row *row, const char *path, struct slice error)
{
	char expected[8192];
	char actual[8192];
	bool right;

	put_path(row->fields[2], path, expected, sizeof expected);
	snprintf(actual, sizeof actual, "%.*s", SLICE_ARGS(error));
	/* Two of the reference's texts end in a blank, which the table's fields lose. */
	if (ends_with(actual, "< 2 "))
		strcat(expected, " ");
	if (expected[0] == '~')
		right = strstr(actual, expected + 1) != NULL;
	else if (expected[0] == '$')
		right = ends_with(actual, expected + 1);
	else
		right = strcmp(actual, expected) == 0;
	if (!right)
		fail_msg("%s (line %zu):\n  expected %s\n  found    %s", row->fields[0], row->line, expected, actual);
}

static void check(const struct vector_row *row)
{
	struct config_file *file = config_file_create(row->fields[1]);
	struct arena arena;
	struct agent_config config;
	struct slice error = SLICE("(none)");
	struct error err;

	assert_int_equal(row->count, 3);
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	if (agent_config_load(file->path, &arena, &config, &error, &err)) {
		if (strcmp(row->fields[2], "accepted") != 0)
			fail_msg("%s (line %zu) was accepted", row->fields[0], row->line);
	} else {
		check_error(row, file->path, error);
	}
	arena_destroy(&arena);
	config_file_destroy(file);
}

static void configurations_are_accepted_or_refused_with_the_specified_text(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/agent_config.txt", check) >= 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(configurations_are_accepted_or_refused_with_the_specified_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
