#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "kube/credentials.h"

static const uint64_t START_NS = 7 * (uint64_t)3600 * NS_PER_S;

struct fixture {
	char folder[64];
	int log;
	struct log_sink *sink;
	struct kube_credentials credentials;
};

static int64_t no_time(void *context)
{
	(void)context;
	return 0;
}

static void write_file(const struct fixture *fixture, const char *name, const char *content)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof path, "%s/%s", fixture->folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	(void)fputs(content, file);
	(void)fclose(file);
}

static void remove_file(const struct fixture *fixture, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof path, "%s/%s", fixture->folder, name);
	(void)unlink(path);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	struct error err;

	(void)snprintf(fixture->folder, sizeof fixture->folder, "/tmp/ballast-credentials-XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	fixture->log = fileno(tmpfile());
	fixture->sink = log_sink_create(fixture->log, LOG_FORMAT_JSON, LOG_DEBUG, 65536, no_time, NULL, &err);
	assert_non_null(fixture->sink);
	write_file(fixture, "token", "  one\n");
	write_file(fixture, "ca.crt", "certificate one\n");
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	kube_credentials_destroy(&fixture->credentials);
	log_sink_destroy(fixture->sink, 0);
	remove_file(fixture, "token");
	remove_file(fixture, "ca.crt");
	(void)rmdir(fixture->folder);
	free(fixture);
	return 0;
}

static bool init(struct fixture *fixture, struct error *err)
{
	struct logger logger = { .sink = fixture->sink, .name = "test", .context_json = "" };

	return kube_credentials_init(&fixture->credentials, fixture->folder, &logger, START_NS, err);
}

static void init_well(struct fixture *fixture)
{
	struct error err;

	if (!init(fixture, &err))
		fail_msg("%s", err.text);
}

/* How many lines of the log have the text. */
static int logged(const struct fixture *fixture, const char *text)
{
	char log[16384];
	ssize_t length;
	int count = 0;

	(void)log_flush(fixture->sink);
	length = pread(fixture->log, log, sizeof log - 1, 0);
	assert_true(length >= 0);
	log[length] = '\0';
	for (const char *at = strstr(log, text); at != NULL; at = strstr(at + 1, text))
		count++;
	return count;
}

static void expect_token(const struct fixture *fixture, const char *token)
{
	struct slice found = kube_credentials_token(&fixture->credentials);

	assert_int_equal(found.length, strlen(token));
	assert_memory_equal(found.data, token, found.length);
}

static void expect_ca(const struct fixture *fixture, const char *ca)
{
	struct slice found = kube_credentials_ca(&fixture->credentials);

	assert_int_equal(found.length, strlen(ca));
	if (found.length > 0)
		assert_memory_equal(found.data, ca, found.length);
}

static void the_token_is_trimmed_and_the_ca_taken_as_it_is(void **state)
{
	struct fixture *fixture = *state;

	init_well(fixture);
	expect_token(fixture, "one");
	expect_ca(fixture, "certificate one\n");
	assert_int_equal(logged(fixture, "\"level\""), 0);
}

static void a_missing_token_file_is_an_error_with_the_reference_s_text(void **state)
{
	struct fixture *fixture = *state;
	char text[128];
	struct error err;

	remove_file(fixture, "token");
	assert_false(init(fixture, &err));
	(void)snprintf(text, sizeof text, "open %s/token: no such file or directory", fixture->folder);
	assert_string_equal(err.text, text);
	assert_string_equal(error_root(&err), "no such file or directory");
}

static void an_empty_token_file_is_no_token_until_it_has_one(void **state)
{
	struct fixture *fixture = *state;

	write_file(fixture, "token", " \n");
	init_well(fixture);
	expect_token(fixture, "");
	assert_int_equal(logged(fixture, "read empty token from file"), 1);
	/* No read was successful yet, so every request tries. */
	assert_true(kube_credentials_token_is_due(&fixture->credentials, START_NS));
	assert_false(kube_credentials_reload_token(&fixture->credentials, START_NS));
	assert_int_equal(logged(fixture, "read empty token from file"), 1);
	write_file(fixture, "token", "late");
	assert_true(kube_credentials_reload_token(&fixture->credentials, START_NS));
	expect_token(fixture, "late");
	assert_false(kube_credentials_token_is_due(&fixture->credentials, START_NS));
}

/* P59, and "the last good token stays". */
static void the_token_is_due_50_s_after_the_last_successful_read(void **state)
{
	struct fixture *fixture = *state;
	uint64_t later_ns = START_NS + (uint64_t)50 * NS_PER_S;

	init_well(fixture);
	assert_false(kube_credentials_token_is_due(&fixture->credentials, START_NS + (uint64_t)20 * NS_PER_S));
	assert_false(kube_credentials_token_is_due(&fixture->credentials, later_ns - 1));
	assert_true(kube_credentials_token_is_due(&fixture->credentials, later_ns));
	remove_file(fixture, "token");
	assert_false(kube_credentials_reload_token(&fixture->credentials, later_ns));
	assert_true(kube_credentials_token_is_due(&fixture->credentials, later_ns + 1));
	expect_token(fixture, "one");
	assert_false(kube_credentials_reload_token(&fixture->credentials, later_ns + 1));
	assert_int_equal(logged(fixture, "Unable to read the service account token"), 1);
	write_file(fixture, "token", "two");
	assert_true(kube_credentials_reload_token(&fixture->credentials, later_ns + 2));
	expect_token(fixture, "two");
	assert_false(kube_credentials_token_is_due(&fixture->credentials, later_ns + 3));
	assert_true(kube_credentials_token_is_due(&fixture->credentials, later_ns + 2 + (uint64_t)50 * NS_PER_S));
}

static void a_token_of_the_kubeconfig_counts_until_its_token_file_can_be_read(void **state)
{
	struct fixture *fixture = *state;
	const struct logger logger = { .sink = fixture->sink };
	struct kubeconfig config = { .token = { .kind = KUBE_SOURCE_FILE, .place = "config: line 4" } };
	struct error err;
	char expected[2 * KUBE_PATH_BYTES];

	(void)snprintf(config.token.path, sizeof config.token.path, "%s/later", fixture->folder);
	buffer_init(&config.token.text, 64);
	assert_false(kube_credentials_init_from(&fixture->credentials, &config, &logger, START_NS, &err));
	(void)snprintf(expected, sizeof expected, "config: line 4: open %s: no such file or directory",
	               config.token.path);
	assert_string_equal(err.text, expected);

	buffer_append_text(&config.token.text, "inline");
	assert_true(kube_credentials_init_from(&fixture->credentials, &config, &logger, START_NS, &err));
	expect_token(fixture, "inline");
	assert_true(kube_credentials_token_is_due(&fixture->credentials, START_NS));
	write_file(fixture, "later", "second\n");
	assert_true(kube_credentials_reload_token(&fixture->credentials, START_NS));
	expect_token(fixture, "second");
	remove_file(fixture, "later");
	kubeconfig_destroy(&config);
}

static void an_unchanged_token_is_said_to_be_unchanged(void **state)
{
	struct fixture *fixture = *state;

	init_well(fixture);
	write_file(fixture, "token", "one\n\n");
	assert_false(kube_credentials_reload_token(&fixture->credentials, START_NS + 1));
	assert_false(kube_credentials_token_is_due(&fixture->credentials, START_NS + (uint64_t)50 * NS_PER_S));
}

static void a_token_that_could_forge_header_lines_is_refused(void **state)
{
	struct fixture *fixture = *state;

	init_well(fixture);
	write_file(fixture, "token", "two\r\nX-Remote-User: admin");
	assert_false(kube_credentials_reload_token(&fixture->credentials, START_NS));
	expect_token(fixture, "one");
	assert_int_equal(logged(fixture, "can't stand in a header"), 1);
}

static void a_token_of_16_kib_is_taken_and_a_longer_one_refused(void **state)
{
	struct fixture *fixture = *state;
	static char token[KUBE_TOKEN_BYTES + 2];

	init_well(fixture);
	memset(token, 'x', KUBE_TOKEN_BYTES);
	write_file(fixture, "token", token);
	assert_true(kube_credentials_reload_token(&fixture->credentials, START_NS));
	expect_token(fixture, token);
	token[KUBE_TOKEN_BYTES] = 'y';
	write_file(fixture, "token", token);
	assert_false(kube_credentials_reload_token(&fixture->credentials, START_NS));
	token[KUBE_TOKEN_BYTES] = '\0';
	expect_token(fixture, token);
}

static void the_ca_changes_with_its_content_alone(void **state)
{
	struct fixture *fixture = *state;

	init_well(fixture);
	write_file(fixture, "ca.crt", "certificate one\n");
	assert_false(kube_credentials_reload_ca(&fixture->credentials));
	write_file(fixture, "ca.crt", "certificate two\n");
	assert_true(kube_credentials_reload_ca(&fixture->credentials));
	expect_ca(fixture, "certificate two\n");
}

static void a_ca_that_goes_missing_stays_and_is_logged_once(void **state)
{
	struct fixture *fixture = *state;

	init_well(fixture);
	remove_file(fixture, "ca.crt");
	assert_false(kube_credentials_reload_ca(&fixture->credentials));
	assert_false(kube_credentials_reload_ca(&fixture->credentials));
	expect_ca(fixture, "certificate one\n");
	assert_int_equal(logged(fixture, "Unable to read the API server's CA certificates"), 1);
	assert_int_equal(logged(fixture, "those read before"), 1);
	write_file(fixture, "ca.crt", "");
	assert_false(kube_credentials_reload_ca(&fixture->credentials));
	expect_ca(fixture, "certificate one\n");
}

static void a_ca_missing_from_the_start_is_none_and_logged(void **state)
{
	struct fixture *fixture = *state;

	remove_file(fixture, "ca.crt");
	init_well(fixture);
	expect_ca(fixture, "");
	assert_int_equal(logged(fixture, "\"fallback\":\"the system's\""), 1);
	write_file(fixture, "ca.crt", "certificate one\n");
	assert_true(kube_credentials_reload_ca(&fixture->credentials));
	expect_ca(fixture, "certificate one\n");
}

/* The kubelet exchanges a symbolic link to the folder that has the files. */
static void files_behind_exchanged_links_are_found(void **state)
{
	struct fixture *fixture = *state;
	char target[128];
	char path[128];

	init_well(fixture);
	(void)snprintf(path, sizeof path, "%s/token", fixture->folder);
	(void)snprintf(target, sizeof target, "%s/token.2", fixture->folder);
	write_file(fixture, "token.2", "two");
	remove_file(fixture, "token");
	assert_int_equal(symlink(target, path), 0);
	assert_true(kube_credentials_reload_token(&fixture->credentials, START_NS));
	expect_token(fixture, "two");
	remove_file(fixture, "token.2");
}

static void a_folder_with_too_long_a_path_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct logger logger = { .sink = fixture->sink, .name = "test", .context_json = "" };
	char folder[KUBE_PATH_BYTES + 1];
	struct error err;

	memset(folder, 'a', sizeof folder - 1);
	folder[sizeof folder - 1] = '\0';
	assert_false(kube_credentials_init(&fixture->credentials, folder, &logger, START_NS, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_token_is_trimmed_and_the_ca_taken_as_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_missing_token_file_is_an_error_with_the_reference_s_text, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(an_empty_token_file_is_no_token_until_it_has_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_token_is_due_50_s_after_the_last_successful_read, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(a_token_of_the_kubeconfig_counts_until_its_token_file_can_be_read,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_unchanged_token_is_said_to_be_unchanged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_token_that_could_forge_header_lines_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_token_of_16_kib_is_taken_and_a_longer_one_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_ca_changes_with_its_content_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_ca_that_goes_missing_stays_and_is_logged_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_ca_missing_from_the_start_is_none_and_logged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_behind_exchanged_links_are_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_folder_with_too_long_a_path_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("credentials", tests, NULL, NULL);
}
