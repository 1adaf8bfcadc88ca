#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/address_block.h"
#include "sandbox/agent_setup.h"

enum { TEXT_BYTES = 8192 };

static const struct sandbox_generation NEWEST = { .late_2023 = false };

static char folder[] = "/tmp/ballast-agent-setup-test-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	return setenv("TMPDIR", folder, 1);
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder); /* fails if a test left something behind */
}

static void load(double speed, struct arena *arena, struct agent_config *ret_config)
{
	struct agent_setup setup;
	struct slice text;
	char path[AGENT_SETUP_PATH_BYTES + 16];
	struct error err;

	assert_true(agent_setup_create(&setup, speed, &NEWEST, NULL, "t", SLICE("c"), &err));
	(void)snprintf(path, sizeof path, "%s/config.json", setup.folder);
	arena_init(arena, AGENT_CONFIG_ARENA_BYTES);
	if (!agent_config_load(path, arena, ret_config, &text, &err))
		fail_msg("%s", err.text);
	agent_setup_remove(&setup);
}

static void at_speed_1_it_is_the_shipped_configuration(void **state)
{
	(void)state;
	struct arena ours_arena, shipped_arena;
	struct agent_config ours, shipped;
	struct slice text;
	struct error err;

	load(1, &ours_arena, &ours);
	arena_init(&shipped_arena, AGENT_CONFIG_ARENA_BYTES);
	assert_true(agent_config_load(TESTS_DIR "/data/agent/config-b.json", &shipped_arena, &shipped, &text, &err));
	assert_int_equal(ours.json.length, shipped.json.length);
	assert_memory_equal(ours.json.data, shipped.json.data, ours.json.length);
	arena_destroy(&ours_arena);
	arena_destroy(&shipped_arena);
}

static void speed_divides_seconds_and_rounds_them_up(void **state)
{
	(void)state;
	static const uint64_t second = NS_PER_S;
	struct arena arena;
	struct agent_config config;

	load(4, &arena, &config);
	assert_int_equal(config.refresh_state_interval_ns, 2 * second);
	assert_int_equal(config.monitor.connection_timeout_ns, second);
	assert_int_equal(config.monitor.max_health_check_failures_ns, 8 * second);
	assert_int_equal(config.system_metrics.seconds_between_requests, 2);
	assert_int_equal(config.lfc_metrics.seconds_between_requests, 4);
	assert_int_equal(config.neonvm.request_timeout_ns, 3 * second);
	assert_int_equal(config.neonvm.max_failed_requests.interval_ns, 30 * second);
	assert_int_equal(config.neonvm.max_failed_requests.threshold, 2);
	arena_destroy(&arena);
	load(100, &arena, &config);
	assert_int_equal(config.system_metrics.seconds_between_requests, 1);
	assert_int_equal(config.monitor.response_timeout_ns, second);
	arena_destroy(&arena);
	load(0.5, &arena, &config);
	assert_int_equal(config.system_metrics.seconds_between_requests, 10);
	arena_destroy(&arena);
}

static void expect_file(const struct agent_setup *setup, const char *name, const char *content)
{
	char path[AGENT_SETUP_PATH_BYTES + 64], text[TEXT_BYTES];
	FILE *file;
	size_t length;

	(void)snprintf(path, sizeof path, "%s/%s", setup->folder, name);
	file = fopen(path, "r");
	assert_non_null(file);
	length = fread(text, 1, sizeof text - 1, file);
	text[length] = '\0';
	fclose(file);
	assert_string_equal(text, content);
}

static void with_a_receiver_events_go_there(void **state)
{
	(void)state;
	struct agent_setup setup;
	struct arena arena;
	struct agent_config config;
	struct slice text;
	char path[AGENT_SETUP_PATH_BYTES + 16];
	struct error err;

	assert_true(agent_setup_create(&setup, 4, &NEWEST, "127.1.2.3", "t", SLICE("c"), &err));
	(void)snprintf(path, sizeof path, "%s/config.json", setup.folder);
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	if (!agent_config_load(path, &arena, &config, &text, &err))
		fail_msg("%s", err.text);
	assert_true(config.billing.http.present);
	assert_true(slice_equal_text(config.billing.http.url, "http://127.1.2.3:8080/v1"));
	assert_int_equal(config.billing.http.push.every_ns, UINT64_C(3) * NS_PER_S);
	assert_true(config.scaling_events_s3.present);
	assert_true(slice_equal_text(config.scaling_events_s3.endpoint, "http://127.1.2.3:8080"));
	assert_false(config.billing.s3.present || config.billing.azure_blob.present);
	arena_destroy(&arena);
	agent_setup_remove(&setup);
}

static void the_folder_has_the_service_account_and_is_private(void **state)
{
	(void)state;
	struct agent_setup setup;
	struct stat status;
	struct error err;

	assert_true(agent_setup_create(&setup, 4, &NEWEST, NULL, "secret", SLICE("-----BEGIN"), &err));
	assert_int_equal(stat(setup.folder, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
	expect_file(&setup, "serviceaccount/token", "secret");
	expect_file(&setup, "serviceaccount/ca.crt", "-----BEGIN");
	expect_file(&setup, "serviceaccount/namespace", "kube-system");
	agent_setup_remove(&setup);
	assert_string_equal(setup.folder, "");
	agent_setup_remove(&setup);
}

static void a_folder_that_cant_be_made_is_an_error(void **state)
{
	(void)state;
	struct agent_setup setup = { .folder = "untouched" };
	struct error err;

	setenv("TMPDIR", "/nonexistent", 1);
	assert_false(agent_setup_create(&setup, 4, &NEWEST, NULL, "t", SLICE("c"), &err));
	setenv("TMPDIR", folder, 1);
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_string_equal(setup.folder, "untouched");
	/* Short of memory, what was made so far goes again. */
	memory_fail_at(1);
	assert_false(agent_setup_create(&setup, 4, &NEWEST, NULL, "t", SLICE("c"), &err));
	memory_fail_at(0);
	assert_int_equal(err.code, ERROR_NO_MEMORY);
}

static void the_environment_is_that_of_the_pod(void **state)
{
	(void)state;
	const struct agent_setup setup = { .folder = "/run/x" };
	const struct agent_place place = { .node = "node-b", .address = "127.70.1.4", .api_address = "127.70.1.1" };
	static const char *const expected[] = {
		"K8S_NODE_NAME=node-b",
		"K8S_POD_IP=127.70.1.4",
		"KUBERNETES_SERVICE_HOST=127.70.1.1",
		"AWS_ACCESS_KEY_ID=ballast",
		"AWS_SECRET_ACCESS_KEY=sandbox",
		"KUBERNETES_SERVICE_PORT=6443",
		"CONFIG_PATH=/run/x/config.json",
		"BALLAST_SERVICEACCOUNT_DIR=/run/x/serviceaccount",
	};
	struct agent_environment environment;

	agent_setup_fill_environment(&setup, &place, &environment);
	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
		assert_string_equal(environment.variables[i], expected[i]);
	assert_null(environment.variables[sizeof expected / sizeof expected[0]]);
}

static void logs_are_appended_or_lie_in_the_folder(void **state)
{
	(void)state;
	struct agent_setup setup;
	char path[AGENT_SETUP_PATH_BYTES + 16];
	struct error err;
	int log;

	assert_true(agent_setup_create(&setup, 4, &NEWEST, NULL, "t", SLICE("c"), &err));
	(void)snprintf(path, sizeof path, "%s/shared", setup.folder);
	for (int i = 0; i < 2; i++) {
		log = agent_setup_open_log(&setup, "node-a", path, &err);
		assert_true(log >= 0);
		assert_int_equal(write(log, "line\n", 5), 5);
		close(log);
	}
	expect_file(&setup, "shared", "line\nline\n");
	log = agent_setup_open_log(&setup, "node-a", NULL, &err);
	assert_true(log >= 0);
	close(log);
	expect_file(&setup, "node-a.log", "");
	assert_int_equal(agent_setup_open_log(&setup, "node-a", "/nonexistent/log", &err), -1);
	assert_int_equal(err.code, ERROR_SYSTEM);
	agent_setup_remove(&setup);
}

/* ---- addresses ---- */

static void two_blocks_never_share_an_address(void **state)
{
	(void)state;
	struct address_block a, b, c;
	struct error err;

	assert_true(address_block_take(&a, 600, 77, &err));
	assert_int_equal(a.parts, 3);
	assert_true(address_block_take(&b, 10, 77, &err));
	assert_int_equal(b.parts, 1);
	/* The same choice found it taken. */
	assert_true(a.second != b.second || b.third < a.third || b.third >= a.third + 3);
	address_block_give_back(&a);
	assert_true(address_block_take(&c, 10, 77, &err));
	assert_int_equal(c.second, a.second);
	assert_int_equal(c.third, a.third);
	address_block_give_back(&b);
	address_block_give_back(&c);
	address_block_give_back(&c);
}

static void addresses_spill_into_the_next_part(void **state)
{
	(void)state;
	const struct address_block block = { .second = 70, .third = 9, .parts = 2 };
	static const struct {
		unsigned index;
		const char *text;
	} rows[] = {
		{ 0, "127.70.9.1:53" },
		{ 249, "127.70.9.250:53" },
		{ 250, "127.70.10.1:53" },
		{ 499, "127.70.10.250:53" },
	};
	char text[ADDRESS_TEXT_BYTES];

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct address address = address_block_at(&block, rows[i].index, 53);

		address_print(&address, text);
		assert_string_equal(text, rows[i].text);
	}
}

static void too_many_addresses_are_refused(void **state)
{
	(void)state;
	struct address_block block;
	struct error err;

	assert_false(address_block_take(&block, ADDRESS_BLOCK_PARTS_MAX * ADDRESS_BLOCK_HOSTS + 1, 1, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_speed_1_it_is_the_shipped_configuration),
		cmocka_unit_test(speed_divides_seconds_and_rounds_them_up),
		cmocka_unit_test(with_a_receiver_events_go_there),
		cmocka_unit_test(the_folder_has_the_service_account_and_is_private),
		cmocka_unit_test(a_folder_that_cant_be_made_is_an_error),
		cmocka_unit_test(the_environment_is_that_of_the_pod),
		cmocka_unit_test(logs_are_appended_or_lie_in_the_folder),
		cmocka_unit_test(two_blocks_never_share_an_address),
		cmocka_unit_test(addresses_spill_into_the_next_part),
		cmocka_unit_test(too_many_addresses_are_refused),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
