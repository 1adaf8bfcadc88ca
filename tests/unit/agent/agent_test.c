/*
 * The agent as a process: a child runs it against an API server in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/servers.h"
#include "net/loop_epoll.h"
#include "net/stream.h"
#include "net/tls_ca.h"
#include "tests/support/scripted_api.h"
#include "tests/unit/agent/config_file.h"

enum { LOG_BYTES = 1024 * 1024, PATIENCE_TURNS = 4000 };

/* Its ports are fixed, so it needs an address that nothing else uses. */
static const char ADDRESS[] = "127.91.0.3";

static const char EMPTY_VM_LIST[] = "{\"kind\":\"VirtualMachineList\",\"apiVersion\":\"vm.neon.tech/v1\",\"items\":[],"
				    "\"metadata\":{\"resourceVersion\":\"7\"}}";
static const char EMPTY_POD_LIST[] =
	"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[],\"metadata\":{\"resourceVersion\":\"7\"}}";

struct world {
	struct loop *loop;
	struct tls_ca *ca;
	struct tls_settings *tls;
	struct scripted_api *api;
	char folder[64];
	char port[16];
	struct agent_arguments arguments;
	FILE *log_file;
	char *log;
	pid_t child;
};

static void write_file(const struct world *world, const char *name, struct slice content)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof path, "%s/%s", world->folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(content.data, 1, content.length, file), content.length);
	assert_int_equal(fclose(file), 0);
}

static void remove_file(const struct world *world, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof path, "%s/%s", world->folder, name);
	(void)unlink(path);
}

static void make_api(struct world *world)
{
	struct tls_server_options options = { 0 };
	struct tls_ca_request request = { .common_name = "api", .address_count = 1 };
	struct buffer certificate, key;
	struct address address;
	struct error err;

	assert_true(address_parse(SLICE("127.0.0.1"), 0, &address));
	request.addresses = &address;
	world->ca = tls_ca_create(world->loop, "test", &err);
	assert_non_null(world->ca);
	assert_true(tls_ca_issue(world->ca, &request, &certificate, &key, &err));
	options.certificate_pem = buffer_slice(&certificate);
	options.key_pem = buffer_slice(&key);
	world->tls = tls_server_settings_create(world->loop, &options, &err);
	assert_non_null(world->tls);
	buffer_destroy(&certificate);
	buffer_destroy(&key);
	world->api = scripted_api_start(world->loop, world->tls);
	write_file(world, "ca.crt", tls_ca_certificate_pem(world->ca));
	write_file(world, "token", SLICE("secret\n"));
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error err;

	world->loop = loop_epoll_create(&err);
	assert_non_null(world->loop);
	(void)snprintf(world->folder, sizeof world->folder, "/tmp/ballast-agent-XXXXXX");
	assert_non_null(mkdtemp(world->folder));
	make_api(world);
	(void)snprintf(world->port, sizeof world->port, "%u", (unsigned)scripted_api_port(world->api));
	world->log_file = tmpfile();
	assert_non_null(world->log_file);
	assert_int_equal(fcntl(fileno(world->log_file), F_SETFL, O_APPEND), 0);
	world->log = calloc(1, LOG_BYTES);
	world->arguments = (struct agent_arguments){
		.config_path = TESTS_DIR "/data/agent/config-b.json",
		.node_name = "n1",
		.pod_ip = ADDRESS,
		.kubernetes_host = "127.0.0.1",
		.kubernetes_port = world->port,
		.credentials_dir = world->folder,
		.listen_address = ADDRESS,
		.api_qps = AGENT_API_QPS,
		.api_burst = AGENT_API_BURST,
		.log_level = LOG_INFO,
	};
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	if (world->child > 0) {
		(void)kill(world->child, SIGKILL);
		(void)waitpid(world->child, NULL, 0);
	}
	scripted_api_destroy(world->api);
	tls_settings_release(world->tls);
	tls_ca_destroy(world->ca);
	test_loop_spin(world->loop, 5);
	loop_destroy(world->loop);
	remove_file(world, "ca.crt");
	remove_file(world, "token");
	(void)rmdir(world->folder);
	(void)fclose(world->log_file);
	free(world->log);
	free(world);
	return 0;
}

static void start_agent(struct world *world)
{
	(void)fflush(NULL);
	world->child = fork();
	assert_true(world->child >= 0);
	if (world->child > 0)
		return;
	(void)dup2(fileno(world->log_file), STDERR_FILENO);
	(void)close_range(3, ~0U, 0);
	_exit(agent_run(&world->arguments));
}

static const char *read_log(struct world *world)
{
	ssize_t length = pread(fileno(world->log_file), world->log, LOG_BYTES - 1, 0);

	assert_true(length >= 0);
	world->log[length] = '\0';
	return world->log;
}

/* Turns the loop until the process has ended; returns its exit status, or minus the signal. */
static int wait_for_end(struct world *world)
{
	int status = 0;

	for (int i = 0; i < PATIENCE_TURNS; i++) {
		if (waitpid(world->child, &status, WNOHANG) == world->child) {
			world->child = 0;
			return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
		}
		test_loop_spin(world->loop, 1);
	}
	fail_msg("the agent goes on:\n%s", read_log(world));
	return 0;
}

static void wait_for_log(struct world *world, const char *part)
{
	for (int i = 0; i < PATIENCE_TURNS && strstr(read_log(world), part) == NULL; i++)
		test_loop_spin(world->loop, 1);
	if (strstr(read_log(world), part) == NULL)
		fail_msg("not logged: %s\nin:\n%s", part, world->log);
}

/* It ends with status 2, and its last line is a panic with these two texts. */
static void check_fatal(struct world *world, const char *message, const char *error)
{
	const char *last;
	char expected[512];

	assert_int_equal(wait_for_end(world), AGENT_EXIT_FATAL);
	(void)snprintf(expected, sizeof expected, "\"msg\":\"%s\",\"error\":\"%s", message, error);
	last = strstr(read_log(world), "{\"level\":\"panic\"");
	if (last == NULL || strstr(last, expected) == NULL)
		fail_msg("no %s in:\n%s", expected, world->log);
	assert_ptr_equal(strchr(last, '\n'), world->log + strlen(world->log) - 1);
}

static void answer_vm_list_and_watch(struct world *world)
{
	struct scripted_request *request = scripted_api_wait(world->api, 1);

	assert_true(slice_starts_with(request->target, SLICE("/apis/vm.neon.tech/v1/virtualmachines")));
	assert_true(slice_equal_text(scripted_field(request, "authorization"), "Bearer secret"));
	scripted_reply(request, 200, "", EMPTY_VM_LIST);
	request = scripted_api_wait(world->api, 2);
	assert_true(slice_contains(request->target, SLICE("watch=true")));
	scripted_begin(request, 200, "");
}

static void answer_pod_list_and_watch(struct world *world)
{
	struct scripted_request *request = scripted_api_wait(world->api, 3);

	assert_true(slice_starts_with(request->target, SLICE("/api/v1/namespaces/kube-system/pods")));
	assert_true(slice_contains(request->target, SLICE("labelSelector=name%3Dautoscale-scheduler")));
	scripted_reply(request, 200, "", EMPTY_POD_LIST);
	scripted_begin(scripted_api_wait(world->api, 4), 200, "");
}

static void run_to_main_loop(struct world *world)
{
	start_agent(world);
	answer_vm_list_and_watch(world);
	answer_pod_list_and_watch(world);
	wait_for_log(world, "\"msg\":\"Entering main loop\"");
}

/* ---- what stops it at the start ---- */

static void t16_only_the_first_missing_variable_is_named(void **state)
{
	struct world *world = *state;

	world->arguments.node_name = NULL;
	world->arguments.pod_ip = NULL;
	start_agent(world);
	check_fatal(world, "Failed to get args from environment", "missing K8S_NODE_NAME in environment\"");
}

static void an_empty_variable_is_missing(void **state)
{
	struct world *world = *state;

	world->arguments.config_path = "";
	start_agent(world);
	check_fatal(world, "Failed to get args from environment", "missing CONFIG_PATH in environment\"");
}

static void the_pod_address_is_required_though_unused(void **state)
{
	struct world *world = *state;

	world->arguments.pod_ip = "";
	start_agent(world);
	check_fatal(world, "Failed to get args from environment", "missing K8S_POD_IP in environment\"");
}

static void a_config_file_that_is_not_there(void **state)
{
	struct world *world = *state;

	world->arguments.config_path = "/nowhere/config.json";
	start_agent(world);
	check_fatal(world, "Failed to read config", "error opening config file \\\"/nowhere/config.json\\\": open ");
	assert_non_null(strstr(world->log,
	                       "\"msg\":\"Got environment args\",\"args\":{\"ConfigPath\":\"/nowhere/config.json\","
	                       "\"K8sNodeName\":\"n1\",\"K8sPodIP\":\"127.91.0.3\"}"));
}

static void no_api_server_in_the_environment(void **state)
{
	struct world *world = *state;

	world->arguments.kubernetes_host = NULL;
	start_agent(world);
	check_fatal(
		world, "Failed to get in-cluster K8s config",
		"unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be "
		"defined\"");
	assert_non_null(strstr(world->log, "\"msg\":\"Got config\",\"config\":{"));
}

static void a_missing_token(void **state)
{
	struct world *world = *state;

	remove_file(world, "token");
	start_agent(world);
	check_fatal(world, "Failed to get in-cluster K8s config", "open ");
}

static void a_refused_first_list_of_vms(void **state)
{
	struct world *world = *state;

	start_agent(world);
	scripted_reply(
		scripted_api_wait(world->api, 1), 403, "content-type: application/json\r\n",
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"you may not\",\"code\":403}");
	check_fatal(world, "Main loop failed", "error starting VM watcher: initial list failed: ");
	assert_non_null(strstr(world->log, "you may not"));
	assert_int_equal(scripted_api_request_count(world->api), 1);
}

static void a_refused_first_watch_of_schedulers(void **state)
{
	struct world *world = *state;

	start_agent(world);
	answer_vm_list_and_watch(world);
	scripted_reply(scripted_api_wait(world->api, 3), 200, "", EMPTY_POD_LIST);
	scripted_reply(scripted_api_wait(world->api, 4), 404, "", "");
	check_fatal(world, "Main loop failed", "starting scheduler watch server: initial watch failed: ");
}

static void on_stream(void *context, struct stream *stream)
{
	(void)context;
	stream_close(stream);
}

static void a_port_that_is_taken(void **state)
{
	struct world *world = *state;
	struct stream_listener_options options = { .max_connections = 1 };
	struct stream_listener *listener;
	struct error err;

	assert_true(address_parse(slice_of(ADDRESS), SERVERS_METRICS_PORT, &options.address));
	listener = stream_listen(world->loop, &options, on_stream, NULL, &err);
	assert_non_null(listener);
	start_agent(world);
	answer_vm_list_and_watch(world);
	answer_pod_list_and_watch(world);
	check_fatal(world, "Main loop failed",
	            "error starting prometheus metrics server: error listening on TCP port 9100: ");
	stream_listener_close(listener);
}

/* ---- running, and its end ---- */

static void it_starts_in_order_and_ends_on_sigterm(void **state)
{
	struct world *world = *state;
	static const char *const LINES[] = {
		"\"msg\":\"Got environment args\"",       "\"msg\":\"Got config\"",
		"\"logger\":\"autoscaler-agent.vm-watch", "\"logger\":\"autoscaler-agent.watch-schedulers",
		"\"msg\":\"Entering main loop\"",         "\"msg\":\"Main loop returned without issue. Exiting.\"",
	};
	const char *at;

	run_to_main_loop(world);
	assert_int_equal(kill(world->child, SIGTERM), 0);
	assert_int_equal(wait_for_end(world), AGENT_EXIT_OK);
	at = read_log(world);
	for (size_t i = 0; i < sizeof LINES / sizeof LINES[0]; i++) {
		const char *found = strstr(at, LINES[i]);

		if (found == NULL)
			fail_msg("not logged, or not in order: %s\nin:\n%s", LINES[i], world->log);
		at = found;
	}
	assert_ptr_equal(strchr(at, '\n'), world->log + strlen(world->log) - 1);
	assert_null(strstr(world->log, "\"level\":\"error\""));
	assert_null(strstr(world->log, "\"level\":\"warn\"")); /* no clients, no warning of them */
}

static void event_clients_are_made_at_their_places_in_the_start(void **state)
{
	struct world *world = *state;
#define PUSH "\"pushEverySeconds\":1,\"pushRequestTimeoutSeconds\":1,\"maxBatchSize\":1"
#define AZURE "\"azureBlob\":{" PUSH ",\"endpoint\":\"e\",\"container\":\"c\",\"prefixInContainer\":\"p\"}"
#define S3 "\"s3\":{" PUSH ",\"bucket\":\"b\",\"region\":\"r\",\"prefixInBucket\":\"p\"}"
	struct config_file *config = config_file_create("billing.clients = {\"http\":{" PUSH
	                                                ",\"url\":\"http://127.0.0.1/\"}," AZURE "," S3 "};"
	                                                "scalingEvents.clients = {" AZURE "," S3 "}");
	static const char *const LINES[] = {
		"\"msg\":\"Created Azure Blob Storage client for scaling events\"",
		"\"msg\":\"Created S3 client for scaling events\"",
		"\"logger\":\"autoscaler-agent.prometheus.global\"",
		"\"msg\":\"Created HTTP client for billing events\"",
		"\"msg\":\"Created Azure Blob Storage client for billing events\"",
		"\"msg\":\"Created S3 client for billing events\"",
		"\"msg\":\"Entering main loop\"",
	};
	const char *at;

	world->arguments.config_path = config->path;
	run_to_main_loop(world);
	at = read_log(world);
	for (size_t i = 0; i < sizeof LINES / sizeof LINES[0]; i++) {
		at = strstr(at, LINES[i]);
		if (at == NULL)
			fail_msg("not logged, or not in order: %s\nin:\n%s", LINES[i], world->log);
	}
	assert_null(strstr(world->log, "\"level\":\"warn\""));
	config_file_destroy(config);
}

static void an_event_client_that_cant_be_made_is_fatal(void **state)
{
	struct world *world = *state;
	struct config_file *config = config_file_create("billing.clients = {" S3 "}");

	world->arguments.config_path = config->path;
	(void)setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere", 1);
	(void)unsetenv("AWS_ROLE_ARN");
	start_agent(world);
	(void)unsetenv("AWS_WEB_IDENTITY_TOKEN_FILE");
	answer_vm_list_and_watch(world);
	answer_pod_list_and_watch(world);
	check_fatal(world, "Main loop failed", "error creating billing metrics collector: error creating S3 client: ");
	config_file_destroy(config);
}

static void a_second_sigterm_changes_nothing(void **state)
{
	struct world *world = *state;

	run_to_main_loop(world);
	assert_int_equal(kill(world->child, SIGTERM), 0);
	assert_int_equal(kill(world->child, SIGTERM), 0);
	assert_int_equal(wait_for_end(world), AGENT_EXIT_OK);
	assert_null(strstr(strstr(read_log(world), "Main loop returned"), "\n{"));
}

static void sigterm_during_the_start_is_an_orderly_end_too(void **state)
{
	struct world *world = *state;

	start_agent(world);
	(void)scripted_api_wait(world->api, 1);
	assert_int_equal(kill(world->child, SIGTERM), 0);
	assert_int_equal(wait_for_end(world), AGENT_EXIT_OK);
	assert_non_null(strstr(read_log(world), "Main loop returned without issue. Exiting."));
}

static void sigint_is_an_orderly_end_too(void **state)
{
	struct world *world = *state;

	run_to_main_loop(world);
	assert_int_equal(kill(world->child, SIGINT), 0);
	assert_int_equal(wait_for_end(world), AGENT_EXIT_OK);
	assert_non_null(strstr(read_log(world), "Main loop returned without issue. Exiting."));
}

/* ---- a log that isn't taken, and one that is ---- */

/* Gives the agent a pipe of one page for its log: one line is in it, the next must wait. */
static int start_with_narrow_log(struct world *world)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_not_equal(fcntl(ends[1], F_SETPIPE_SZ, 4096), -1);
	assert_int_not_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), -1);
	(void)fclose(world->log_file);
	world->log_file = fdopen(ends[1], "w");
	assert_non_null(world->log_file);
	start_agent(world);
	return ends[0];
}

/* Turns the loop and reads on until the part has come. */
static void read_until(struct world *world, int reader, const char *part)
{
	size_t length = strlen(world->log);

	for (int i = 0; i < PATIENCE_TURNS && strstr(world->log, part) == NULL; i++) {
		ssize_t count = read(reader, world->log + length, LOG_BYTES - 1 - length);

		if (count > 0)
			length += (size_t)count;
		world->log[length] = '\0';
		test_loop_spin(world->loop, 1);
	}
	if (strstr(world->log, part) == NULL)
		fail_msg("not logged: %s\nin:\n%s", part, world->log);
}

static void a_slow_reader_of_the_log_stops_nothing_and_gets_all_in_the_end(void **state)
{
	struct world *world = *state;
	int reader = start_with_narrow_log(world);

	/* Nobody reads, and it goes on all the same, as far as the main loop. */
	answer_vm_list_and_watch(world);
	answer_pod_list_and_watch(world);
	test_loop_spin(world->loop, 50);
	read_until(world, reader, "\"msg\":\"Entering main loop\"");
	assert_non_null(strstr(world->log, "\"msg\":\"Got config\""));
	assert_null(strstr(world->log, "log lines dropped"));
	assert_int_equal(kill(world->child, SIGTERM), 0);
	read_until(world, reader, "\"msg\":\"Main loop returned without issue. Exiting.\"}\n");
	assert_int_equal(wait_for_end(world), AGENT_EXIT_OK);
	(void)close(reader);
}

/* How often it has gone to sleep so far. */
static long sleeps(const struct world *world)
{
	static const char FIELD[] = "\nvoluntary_ctxt_switches:";
	char path[64], text[8192];
	const char *field;
	size_t length;
	FILE *file;

	(void)snprintf(path, sizeof path, "/proc/%d/status", (int)world->child);
	file = fopen(path, "r");
	assert_non_null(file);
	length = fread(text, 1, sizeof text - 1, file);
	text[length] = '\0';
	(void)fclose(file);
	field = strstr(text, FIELD);
	assert_non_null(field);
	return strtol(field + sizeof FIELD - 1, NULL, 10);
}

static void nothing_wakes_an_agent_without_vms(void **state)
{
	struct world *world = *state;
	long before;

	run_to_main_loop(world);
	test_loop_spin(world->loop, 300);
	before = sleeps(world);
	test_loop_spin(world->loop, 1000);
	assert_in_range(sleeps(world) - before, 0, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(t16_only_the_first_missing_variable_is_named),
		TEST(an_empty_variable_is_missing),
		TEST(the_pod_address_is_required_though_unused),
		TEST(a_config_file_that_is_not_there),
		TEST(no_api_server_in_the_environment),
		TEST(a_missing_token),
		TEST(a_refused_first_list_of_vms),
		TEST(a_refused_first_watch_of_schedulers),
		TEST(a_port_that_is_taken),
		TEST(it_starts_in_order_and_ends_on_sigterm),
		TEST(event_clients_are_made_at_their_places_in_the_start),
		TEST(an_event_client_that_cant_be_made_is_fatal),
		TEST(a_second_sigterm_changes_nothing),
		TEST(sigterm_during_the_start_is_an_orderly_end_too),
		TEST(sigint_is_an_orderly_end_too),
		TEST(a_slow_reader_of_the_log_stops_nothing_and_gets_all_in_the_end),
		TEST(nothing_wakes_an_agent_without_vms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
