#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/command.h"
#include "tests/unit/agent/config_file.h"

struct output {
	int status;
	char out[16384];
	char err[16384];
};

/* Sends a descriptor into a new file; returns a copy of what it was. */
static int divert(int descriptor, FILE *file)
{
	int copy = dup(descriptor);

	assert_true(copy >= 0);
	assert_true(dup2(fileno(file), descriptor) >= 0);
	return copy;
}

static void restore(int descriptor, int copy, FILE *file, char *ret_text, size_t size)
{
	ssize_t length;

	assert_true(dup2(copy, descriptor) >= 0);
	close(copy);
	length = pread(fileno(file), ret_text, size - 1, 0);
	assert_true(length >= 0);
	ret_text[length] = '\0';
	fclose(file);
}

static void run(struct output *output, int argc, const char *argument, const char *second)
{
	char name[] = "check-config";
	char first_copy[256];
	char second_copy[256];
	char *argv[] = { name, first_copy, second_copy, NULL };
	FILE *out = tmpfile();
	FILE *err = tmpfile();
	int out_copy;
	int err_copy;

	snprintf(first_copy, sizeof first_copy, "%s", argument);
	snprintf(second_copy, sizeof second_copy, "%s", second);
	argv[argc] = NULL;
	fflush(stdout);
	out_copy = divert(STDOUT_FILENO, out);
	err_copy = divert(STDERR_FILENO, err);
	output->status = command_check_config.run(argc, argv);
	fflush(stdout);
	fflush(stderr);
	restore(STDOUT_FILENO, out_copy, out, output->out, sizeof output->out);
	restore(STDERR_FILENO, err_copy, err, output->err, sizeof output->err);
}

static void a_valid_file_is_ok(void **state)
{
	struct config_file *file = config_file_create("");
	char expected[256];
	struct output output;

	(void)state;
	run(&output, 2, file->path, "");
	snprintf(expected, sizeof expected, "%s: ok, a configuration of generation B\n", file->path);
	assert_int_equal(output.status, EXIT_OK);
	assert_string_equal(output.out, expected);
	assert_string_equal(output.err, "");
	config_file_destroy(file);
}

static void five_mistakes_are_all_named(void **state)
{
	struct config_file *file =
		config_file_create("+ extra = 1; scaling.computeUnit.vCPUs = \"1x\"; monitor.serverPort = \"10301\";"
	                           "scheduler.requestPort = 0; - metrics.lfc.secondsBetweenRequests");
	char expected[2048];
	struct output output;

	(void)state;
	run(&output, 2, file->path, "");
	snprintf(expected, sizeof expected,
	         "%s:1: field \"extra\": unknown key\n"
	         "%s:4: field \"scaling.computeUnit.vCPUs\": quantities must match the regular expression "
	         "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'\n"
	         "%s:32: field \"monitor.serverPort\": expected uint16, found string\n"
	         "%s:46: field \"metrics.lfc.secondsBetweenRequests\": is missing\n"
	         "%s:50: field \"scheduler.requestPort\": cannot be zero\n"
	         "%s: not valid as a configuration of generation B: 5 problems\n",
	         file->path, file->path, file->path, file->path, file->path, file->path);
	assert_int_equal(output.status, EXIT_FAILED);
	assert_string_equal(output.err, expected);
	assert_string_equal(output.out, "");
	config_file_destroy(file);
}

static void text_that_is_no_json_is_named_by_line(void **state)
{
	struct config_file *file = config_file_create("!{\n\"a\":}");
	char expected[256];
	struct output output;

	(void)state;
	run(&output, 2, file->path, "");
	snprintf(expected, sizeof expected, "%s:2: ", file->path);
	assert_int_equal(output.status, EXIT_FAILED);
	assert_memory_equal(output.err, expected, strlen(expected));
	assert_non_null(strstr(output.err, ": 1 problem\n"));
	config_file_destroy(file);
}

/* The same, told of the document as a whole: one problem, not one for every key. */
static void check_document(const char *text, const char *complaint)
{
	char whole[64];
	char expected[512];
	struct output output;

	snprintf(whole, sizeof whole, "!%s", text);

	struct config_file *file = config_file_create(whole);

	run(&output, 2, file->path, "");
	snprintf(expected, sizeof expected, "%s:%s\n%s: not valid as a configuration of generation B: 1 problem\n",
	         file->path, complaint, file->path);
	assert_int_equal(output.status, EXIT_FAILED);
	assert_string_equal(output.err, expected);
	assert_string_equal(output.out, "");
	config_file_destroy(file);
}

static void a_document_of_another_kind_is_one_problem(void **state)
{
	(void)state;
	check_document("null", "1: expected object, found null");
	check_document("\n \n null\n", "3: expected object, found null");
	check_document("\xEF\xBB\xBF{}", "1: starts with a byte order mark, which JSON doesn't allow");
	check_document("[]", "1: expected object, found array");
}

static void a_file_that_is_not_there_fails(void **state)
{
	struct output output;

	(void)state;
	run(&output, 2, "/nowhere/config.json", "");
	assert_int_equal(output.status, EXIT_FAILED);
	assert_string_equal(output.err,
	                    "ballast check-config: error opening config file \"/nowhere/config.json\": open "
	                    "/nowhere/config.json: no such file or directory\n");
}

static void bad_usage_is_told(void **state)
{
	struct output output;

	(void)state;
	run(&output, 1, "", "");
	assert_int_equal(output.status, EXIT_USAGE);
	run(&output, 3, "a", "b");
	assert_int_equal(output.status, EXIT_USAGE);
	run(&output, 3, "--what", "b");
	assert_int_equal(output.status, EXIT_USAGE);
	assert_string_equal(output.out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_valid_file_is_ok),
		cmocka_unit_test(five_mistakes_are_all_named),
		cmocka_unit_test(text_that_is_no_json_is_named_by_line),
		cmocka_unit_test(a_document_of_another_kind_is_one_problem),
		cmocka_unit_test(a_file_that_is_not_there_fails),
		cmocka_unit_test(bad_usage_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
