#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"

enum { FILE_BYTES = 40000 }; /* more than one read takes */

static int make_file(void **state)
{
	static char path[64];
	FILE *file;
	int descriptor;

	snprintf(path, sizeof path, "/tmp/file_test.XXXXXX");
	descriptor = mkstemp(path);
	file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
	if (file == NULL)
		return -1;
	for (int i = 0; i < FILE_BYTES; i++)
		putc('a' + i % 26, file);
	*state = path;
	return fclose(file);
}

static int remove_file(void **state)
{
	return unlink(*state);
}

static void a_file_is_appended_whole(void **state)
{
	struct buffer content;
	struct error err;

	buffer_init(&content, 2 + FILE_BYTES); /* not a byte more than it takes */
	buffer_append_text(&content, "> ");
	assert_true(file_read(*state, &content, &err));
	assert_int_equal(content.length, 2 + FILE_BYTES);
	assert_memory_equal(content.data, "> abc", 5);
	for (int i = 0; i < FILE_BYTES; i++)
		assert_int_equal(content.data[2 + i], 'a' + i % 26);
	buffer_destroy(&content);
}

static void a_file_over_the_limit_is_an_error_that_names_it(void **state)
{
	char expected[128];
	struct buffer content;
	struct error err;

	snprintf(expected, sizeof expected, "%s is over %d bytes", (const char *)*state, FILE_BYTES - 1);
	buffer_init(&content, FILE_BYTES - 1);
	assert_false(file_read(*state, &content, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, expected);
	buffer_destroy(&content);

	buffer_init(&content, FILE_BYTES);
	assert_false(file_read("/dev/zero", &content, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	buffer_destroy(&content);
}

static void what_the_system_refuses_is_told_in_its_words(void **state)
{
	struct buffer content;
	struct error err;

	(void)state;
	buffer_init(&content, FILE_BYTES);
	assert_false(file_read("/nonexistent/file", &content, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_string_equal(err.text, "open /nonexistent/file: no such file or directory");
	assert_string_equal(error_root(&err), "no such file or directory");
	assert_false(file_read("/tmp", &content, &err));
	assert_string_equal(err.text, "read /tmp: is a directory");
	buffer_destroy(&content);
}

/* Writes to the pipe in two steps, late both times. */
static pid_t start_late_writer(const char *path)
{
	pid_t writer = fork();

	if (writer == 0) {
		usleep(20000);

		FILE *file = fopen(path, "w");

		if (file == NULL)
			_exit(1);
		setbuf(file, NULL);
		fputs("first ", file);
		usleep(20000);
		fputs("second", file);
		_exit(fclose(file) == 0 ? 0 : 1);
	}
	assert_true(writer > 0);
	return writer;
}

static void a_pipe_is_waited_for_only_in_two_steps(void **state)
{
	char path[128];
	struct buffer content;
	struct error err;
	int status;

	snprintf(path, sizeof path, "%s.pipe", (const char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0);
	buffer_init(&content, FILE_BYTES);
	assert_true(file_read(path, &content, &err)); /* nobody writes: it would hang */
	assert_int_equal(content.length, 0);

	pid_t writer = start_late_writer(path);
	int descriptor = file_open(path, &err);

	assert_true(descriptor >= 0);
	assert_true(file_read_and_close(descriptor, path, &content, &err));
	assert_true(slice_equal_text(buffer_slice(&content), "first second"));
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_int_equal(status, 0);
	buffer_destroy(&content);
	assert_int_equal(unlink(path), 0);
}

static void without_memory_it_says_so_and_leaks_no_descriptor(void **state)
{
	int free_descriptor = dup(0);
	struct buffer content;
	struct error err;

	close(free_descriptor);
	buffer_init(&content, FILE_BYTES);
	memory_fail_at(1);
	assert_false(file_read(*state, &content, &err));
	memory_fail_at(0);
	assert_int_equal(err.code, ERROR_NO_MEMORY);
	buffer_destroy(&content);

	int descriptor = dup(0);

	assert_int_equal(descriptor, free_descriptor);
	close(descriptor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_appended_whole),
		cmocka_unit_test(a_file_over_the_limit_is_an_error_that_names_it),
		cmocka_unit_test(what_the_system_refuses_is_told_in_its_words),
		cmocka_unit_test(a_pipe_is_waited_for_only_in_two_steps),
		cmocka_unit_test(without_memory_it_says_so_and_leaks_no_descriptor),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
