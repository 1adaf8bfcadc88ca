/*
 * The vectors M1 to M16 of surroundings 8.2, over real sockets, with a clock that the test moves; and what they leave
 * out.
 */
#include "tests/unit/sandbox/scene.h"

#include <stdlib.h>

#include "net/websocket.h"
#include "sandbox/vm_monitor.h"
#include "tests/support/vector_file.h"

static const uint64_t MIB = 1 << 20, MEM_TOTAL_BYTES = UINT64_C(4030112) * 1024;

enum { AGENT_MESSAGE_BYTES = 32768 };

/* ---- an agent ---- */

struct agent {
	struct websocket *websocket; /* NULL once it is over */
	unsigned opened, messages, closed;
	struct buffer text; /* the messages, each with a newline */
	int code;
	char reason[128];
	char root[128]; /* why it ended; "" for a clean close */
};

static void agent_on_open(void *context)
{
	((struct agent *)context)->opened++;
}

static void agent_on_message(void *context, struct slice message, bool is_text)
{
	struct agent *agent = context;

	assert_true(is_text);
	agent->messages++;
	buffer_append_slice(&agent->text, message);
	buffer_append_char(&agent->text, '\n');
}

static void agent_on_close(void *context, int code, struct slice reason, const struct error *err)
{
	struct agent *agent = context;

	agent->websocket = NULL;
	agent->closed++;
	agent->code = code;
	snprintf(agent->reason, sizeof agent->reason, "%.*s", SLICE_ARGS(reason));
	snprintf(agent->root, sizeof agent->root, "%s", err == NULL ? "" : error_root(err));
}

/* ---- the scene ---- */

struct scene {
	struct loop *loop;
	struct vm_monitor *monitor;
	struct agent agent, other;
	struct buffer events;
};

static void note_event(void *context, const char *text)
{
	struct scene *scene = context;

	buffer_append_text(&scene->events, text);
	buffer_append_char(&scene->events, '\n');
}

static void start_monitor(struct scene *scene, bool manages)
{
	static const struct vm_monitor_handler HANDLER = { .on_event = note_event };
	struct vm_monitor_options options = { .manages_cgroup = manages,
		                              .manages_cache = manages,
		                              .kernel_memory_bytes = MEM_TOTAL_BYTES };
	struct error err;

	assert_true(address_parse(SLICE("127.0.0.1"), 0, &options.address));
	scene->monitor = vm_monitor_start(scene->loop, &options, &HANDLER, scene, &err);
	if (scene->monitor == NULL)
		fail_msg("%s", err.text);
	vm_monitor_set_used(scene->monitor, 700 * MIB);
}

static int set_up(void **state)
{
	struct scene *scene = memory_allocate(sizeof *scene);
	struct error err;

	assert_non_null(scene);
	scene->loop = loop_epoll_create(&err);
	assert_non_null(scene->loop);
	buffer_init(&scene->events, AGENT_MESSAGE_BYTES);
	buffer_init(&scene->agent.text, AGENT_MESSAGE_BYTES);
	buffer_init(&scene->other.text, AGENT_MESSAGE_BYTES);
	start_monitor(scene, true);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	vm_monitor_destroy(scene->monitor);
	if (scene->agent.websocket != NULL)
		websocket_abort(scene->agent.websocket);
	if (scene->other.websocket != NULL)
		websocket_abort(scene->other.websocket);
	scene_advance(scene->loop, 2000);
	loop_destroy(scene->loop);
	buffer_destroy(&scene->agent.text);
	buffer_destroy(&scene->other.text);
	buffer_destroy(&scene->events);
	memory_release(scene);
	return 0;
}

static void dial(struct scene *scene, struct agent *agent)
{
	static const struct websocket_handler HANDLER = { .on_open = agent_on_open,
		                                          .on_message = agent_on_message,
		                                          .on_close = agent_on_close };
	struct websocket_connect_options options = {
		.stream = { .host = "127.0.0.1", .port = vm_monitor_address(scene->monitor).port },
		.path = "/monitor",
		.max_message_bytes = AGENT_MESSAGE_BYTES,
	};
	struct error err;

	agent->opened = agent->messages = agent->closed = 0;
	buffer_clear(&agent->text);
	agent->websocket = websocket_connect(scene->loop, &options, &HANDLER, agent, &err);
	if (agent->websocket == NULL)
		fail_msg("%s", err.text);
	scene_until(scene->loop, agent->opened + agent->closed, 1);
	assert_int_equal(agent->opened, 1);
}

static void send_to(struct agent *agent, const char *text)
{
	struct error err;

	assert_non_null(agent->websocket);
	if (!websocket_send(agent->websocket, slice_of(text), true, &err))
		fail_msg("%s", err.text);
}

/* What came in all, each message on its line. */
static void assert_heard(struct scene *scene, struct agent *agent, unsigned count, const char *text)
{
	scene_until(scene->loop, agent->messages, count);
	scene_settle(scene->loop);
	if (!slice_equal_text(buffer_slice(&agent->text), text))
		fail_msg("heard %.*s", SLICE_ARGS(buffer_slice(&agent->text)));
	buffer_clear(&agent->text);
	agent->messages = 0;
}

static void shake_hands(struct scene *scene, struct agent *agent)
{
	dial(scene, agent);
	send_to(agent, "{\"min\":1,\"max\":1}");
	scene_until(scene->loop, agent->messages, 1);
	assert_true(slice_starts_with(buffer_slice(&agent->text), SLICE("{\"version\":1}\n")));
	buffer_clear(&agent->text);
	agent->messages = 0;
}

/* With enough samples for a decision. */
static void connect_agent(struct scene *scene)
{
	shake_hands(scene, &scene->agent);
	scene_advance(scene->loop, 110);
}

/* The TCP connection ended, and nothing else was said. */
static void assert_dropped(struct scene *scene, struct agent *agent)
{
	scene_until(scene->loop, agent->closed, 1);
	assert_int_equal(agent->messages, 0);
	assert_int_equal(agent->code, WEBSOCKET_ABNORMAL);
	assert_string_equal(agent->root, "EOF");
}

static struct vm_monitor_counters counted(const struct scene *scene)
{
	return vm_monitor_counters(scene->monitor);
}

/* ---- the vectors ---- */

static void m1_handshake_sets_threshold_and_cache(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(vm_monitor_presence(scene->monitor), VM_MONITOR_WAITING);
	dial(scene, &scene->agent);
	assert_int_equal(vm_monitor_presence(scene->monitor), VM_MONITOR_WAITING);
	send_to(&scene->agent, "{\"min\":1,\"max\":1}");
	assert_heard(scene, &scene->agent, 1, "{\"version\":1}\n");
	assert_int_equal(vm_monitor_presence(scene->monitor), VM_MONITOR_CONNECTED);
	assert_int_equal(vm_monitor_threshold_now_bytes(scene->monitor), 3507809484);
	assert_int_equal(vm_monitor_cache_now_bytes(scene->monitor), 2951 * MIB);
	assert_int_equal(vm_monitor_believes_bytes(scene->monitor), 0);
	assert_int_equal(counted(scene).connections, 1);
}

static void m2_no_common_version_is_answered_and_ends_it(void **state)
{
	struct scene *scene = *state;

	dial(scene, &scene->agent);
	send_to(&scene->agent, "{\"min\":0,\"max\":0}");
	assert_heard(
		scene, &scene->agent, 1,
		"{\"error\":\"Received protocol version range <invalid: zero> which does not overlap with v1.0\"}\n");
	assert_dropped(scene, &scene->agent);
	assert_int_equal(counted(scene).connections, 0);
}

static void m3_a_bad_or_late_first_message_ends_it_silently(void **state)
{
	struct scene *scene = *state;
	struct error err;

	dial(scene, &scene->agent);
	send_to(&scene->agent, "{\"min\":2,\"max\":1}");
	assert_dropped(scene, &scene->agent);
	assert_int_equal(counted(scene).bad_messages, 1);

	dial(scene, &scene->agent);
	assert_true(websocket_send(scene->agent.websocket, SLICE("{\"min\":1,\"max\":1}"), false, &err));
	assert_dropped(scene, &scene->agent);
	assert_int_equal(counted(scene).bad_messages, 2);

	dial(scene, &scene->agent);
	scene_advance(scene->loop, 3990);
	assert_int_equal(scene->agent.closed, 0);
	scene_advance(scene->loop, 20);
	assert_dropped(scene, &scene->agent);
	assert_int_equal(counted(scene).bad_messages, 2);
}

static void m4_a_health_check_is_answered(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	send_to(&scene->agent, "{\"content\":{},\"type\":\"HealthCheck\",\"id\":2}");
	assert_heard(scene, &scene->agent, 1, "{\"type\":\"HealthCheck\",\"id\":2}\n");
	assert_int_equal(counted(scene).health_checks, 1);
}

static void m5_a_downscale_is_agreed_to(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	send_to(&scene->agent,
	        "{\"content\":{\"target\":{\"cpu\":0.5,\"mem\":2147483648}},\"type\":\"DownscaleRequest\",\"id\":4}");
	assert_heard(
		scene, &scene->agent, 1,
		"{\"type\":\"DownscaleResult\",\"Ok\":true,\"Status\":\"set file cache size to 1461 MiB; set cgroup memory "
		"threshold from 3345.3079 MiB to 1655.8 MiB, of new total 1948 MiB\",\"id\":4}\n");
	assert_int_equal(vm_monitor_believes_bytes(scene->monitor), 2048 * MIB);
	assert_true(vm_monitor_believes_cpus(scene->monitor) == 0.5);
	assert_int_equal(vm_monitor_cache_now_bytes(scene->monitor), 1461 * MIB);
	assert_int_equal(counted(scene).downscales_approved, 1);
}

static void m6_a_downscale_is_denied_and_changes_nothing(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	send_to(&scene->agent,
	        "{\"content\":{\"target\":{\"cpu\":0.25,\"mem\":1073741824}},\"type\":\"DownscaleRequest\",\"id\":6}");
	assert_heard(
		scene, &scene->agent, 1,
		"{\"type\":\"DownscaleResult\",\"Ok\":false,\"Status\":\"calculated memory threshold too low: 785.4 MiB (new "
		"threshold) < 700 (current usage) + 100 (downscale buffer)\",\"id\":6}\n");
	assert_int_equal(vm_monitor_believes_bytes(scene->monitor), 0);
	assert_int_equal(vm_monitor_threshold_now_bytes(scene->monitor), 3507809484);
	assert_int_equal(counted(scene).downscales_denied, 1);
	assert_true(
		slice_contains(buffer_slice(&scene->events), SLICE("denied downscale to 1024 MiB: calculated memory")));
}

static void m7_the_limit_is_exact(void **state)
{
	struct scene *scene = *state;

	vm_monitor_set_used(scene->monitor, 718693991);
	connect_agent(scene);
	send_to(&scene->agent,
	        "{\"content\":{\"target\":{\"cpu\":0.25,\"mem\":1073741824}},\"type\":\"DownscaleRequest\",\"id\":6}");
	scene_until(scene->loop, counted(scene).downscales_denied, 1);
	vm_monitor_set_used(scene->monitor, 718693990);
	scene_advance(scene->loop, 510); /* until no older sample counts */
	send_to(&scene->agent,
	        "{\"content\":{\"target\":{\"cpu\":0.25,\"mem\":1073741824}},\"type\":\"DownscaleRequest\",\"id\":8}");
	scene_until(scene->loop, counted(scene).downscales_approved, 1);
	assert_int_equal(vm_monitor_threshold_now_bytes(scene->monitor), 823551590);
}

static void m8_an_upscale_is_confirmed(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	send_to(&scene->agent,
	        "{\"content\":{\"granted\":{\"cpu\":1.25,\"mem\":5368709120}},\"type\":\"UpscaleNotification\",\"id\":8}");
	assert_heard(scene, &scene->agent, 1, "{\"type\":\"UpscaleConfirmation\",\"id\":8}\n");
	assert_int_equal(vm_monitor_threshold_now_bytes(scene->monitor), 4267 * MIB);
	assert_int_equal(vm_monitor_cache_now_bytes(scene->monitor), 3765 * MIB);
	assert_int_equal(vm_monitor_believes_bytes(scene->monitor), 5120 * MIB);
	assert_int_equal(counted(scene).upscales, 1);
}

static void m9_more_memory_is_asked_for_once_a_second(void **state)
{
	struct scene *scene = *state;
	uint64_t last_ms;

	vm_monitor_set_used(scene->monitor, 3500 * MIB);
	dial(scene, &scene->agent);
	send_to(&scene->agent, "{\"min\":1,\"max\":1}");
	assert_heard(scene, &scene->agent, 2, "{\"version\":1}\n{\"type\":\"UpscaleRequest\",\"id\":3}\n");
	last_ms = scene_ms();
	for (unsigned id = 5; id <= 9; id += 2) {
		char expected[64];

		while (scene->agent.messages == 0 && scene_ms() < last_ms + 2000)
			scene_advance(scene->loop, SCENE_STEP_MS);
		assert_in_range(scene_ms() - last_ms, 1000, 1100 + SCENE_STEP_MS);
		last_ms = scene_ms();
		snprintf(expected, sizeof expected, "{\"type\":\"UpscaleRequest\",\"id\":%u}\n", id);
		assert_heard(scene, &scene->agent, 1, expected);
	}
	assert_int_equal(counted(scene).upscale_requests, 4);

	send_to(&scene->agent,
	        "{\"content\":{\"granted\":{\"cpu\":1.25,\"mem\":5368709120}},\"type\":\"UpscaleNotification\",\"id\":8}");
	assert_heard(scene, &scene->agent, 1, "{\"type\":\"UpscaleConfirmation\",\"id\":8}\n");
	scene_advance(scene->loop, 3000);
	assert_int_equal(scene->agent.messages, 0);
}

static void m10_the_first_100_ms_deny(void **state)
{
	struct scene *scene = *state;

	shake_hands(scene, &scene->agent);
	scene_advance(scene->loop, 50);
	send_to(&scene->agent,
	        "{\"content\":{\"target\":{\"cpu\":0.5,\"mem\":2147483648}},\"type\":\"DownscaleRequest\",\"id\":4}");
	assert_heard(
		scene, &scene->agent, 1,
		"{\"type\":\"DownscaleResult\",\"Ok\":false,\"Status\":\"haven't received enough cgroup memory stats "
		"yet\",\"id\":4}\n");
	scene_advance(scene->loop, 60);
	send_to(&scene->agent,
	        "{\"content\":{\"target\":{\"cpu\":0.5,\"mem\":2147483648}},\"type\":\"DownscaleRequest\",\"id\":6}");
	scene_until(scene->loop, counted(scene).downscales_approved, 1);
}

static void m11_a_dead_postgres_fails_work_and_new_connections(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	vm_monitor_set_faults(scene->monitor, &(struct vm_monitor_faults){ .postgres_down = true });
	send_to(&scene->agent,
	        "{\"content\":{\"target\":{\"cpu\":0.5,\"mem\":2147483648}},\"type\":\"DownscaleRequest\",\"id\":10}");
	assert_heard(scene, &scene->agent, 1,
	             "{\"type\":\"InternalError\",\"error\":\"failed to downscale\",\"id\":10}\n");
	send_to(&scene->agent,
	        "{\"content\":{\"granted\":{\"cpu\":1,\"mem\":5368709120}},\"type\":\"UpscaleNotification\",\"id\":12}");
	assert_heard(scene, &scene->agent, 1,
	             "{\"type\":\"InternalError\",\"error\":\"failed to handle upscale\",\"id\":12}\n");
	assert_int_equal(vm_monitor_believes_bytes(scene->monitor), 0);
	assert_int_equal(counted(scene).internal_errors, 2);

	/* A good handshake, then a lost connection. */
	dial(scene, &scene->other);
	send_to(&scene->other, "{\"min\":1,\"max\":1}");
	assert_heard(scene, &scene->other, 1, "{\"version\":1}\n");
	assert_dropped(scene, &scene->other);
}

static void m12_messages_that_do_not_fit_end_it(void **state)
{
	static const char *const BAD[] = { "{\"type\":\"HealthCheck\",\"id\":12}",
		                           "{\"content\":{},\"type\":\"Nope\",\"id\":12}", "{" };
	struct scene *scene = *state;

	for (unsigned i = 0; i < 3; i++) {
		connect_agent(scene);
		send_to(&scene->agent, BAD[i]);
		assert_dropped(scene, &scene->agent);
		assert_int_equal(counted(scene).bad_messages, i + 1);
		assert_int_equal(vm_monitor_presence(scene->monitor), VM_MONITOR_WAITING);
	}
}

static void m13_a_second_client_ends_the_first(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	send_to(&scene->agent,
	        "{\"content\":{\"granted\":{\"cpu\":1,\"mem\":5368709120}},\"type\":\"UpscaleNotification\",\"id\":2}");
	scene_until(scene->loop, counted(scene).upscales, 1);
	scene_settle(scene->loop);
	scene->agent.messages = 0;
	dial(scene, &scene->other);
	assert_dropped(scene, &scene->agent);
	assert_int_equal(vm_monitor_presence(scene->monitor), VM_MONITOR_WAITING);

	send_to(&scene->other, "{\"min\":1,\"max\":1}");
	assert_heard(scene, &scene->other, 1, "{\"version\":1}\n");
	/* Nothing is left of what the first had told. */
	assert_int_equal(vm_monitor_threshold_now_bytes(scene->monitor), 3507809484);
	assert_int_equal(vm_monitor_believes_bytes(scene->monitor), 0);
	assert_int_equal(counted(scene).connections, 2);
}

static struct scene *upgrade_scene;

static void check_refused_upgrade(const struct vector_block *block)
{
	struct scene *scene = upgrade_scene;
	struct raw_client client;
	char answer[256];

	raw_client_ask(&client, scene->loop, "127.0.0.1", vm_monitor_address(scene->monitor).port, block->input);
	snprintf(answer, sizeof answer, "%d%s%s", raw_client_status(&client),
	         *raw_client_body(&client) == '\0' ? "" : "\n", raw_client_body(&client));
	if (strcmp(answer, block->expected) != 0)
		fail_msg("%s: %s", block->name, answer);
	if (raw_client_status(&client) == 405)
		assert_true(raw_client_head_has(&client, "allow: GET,HEAD"));
	raw_client_end(&client);
	assert_int_equal(scene->agent.closed, 0);
	assert_int_equal(vm_monitor_presence(scene->monitor), VM_MONITOR_CONNECTED);
}

static void m14_wrong_upgrades_are_refused_and_disturb_nobody(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	upgrade_scene = scene;
	assert_int_equal(vector_blocks_walk("vectors/sandbox/monitor_upgrades.txt", check_refused_upgrade), 8);
	send_to(&scene->agent, "{\"content\":{},\"type\":\"HealthCheck\",\"id\":2}");
	assert_heard(scene, &scene->agent, 1, "{\"type\":\"HealthCheck\",\"id\":2}\n");
}

static void m15_a_close_frame_is_echoed(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	websocket_close(scene->agent.websocket, 1000, SLICE("normal exit"));
	scene_until(scene->loop, scene->agent.closed, 1);
	assert_int_equal(scene->agent.code, 1000);
	assert_string_equal(scene->agent.reason, "normal exit");
	assert_string_equal(scene->agent.root, "");
	assert_int_equal(vm_monitor_presence(scene->monitor), VM_MONITOR_WAITING);
	assert_int_equal(counted(scene).bad_messages, 0);
}

static void m16_with_nothing_to_manage_it_agrees(void **state)
{
	struct scene *scene = *state;

	vm_monitor_destroy(scene->monitor);
	start_monitor(scene, false);
	shake_hands(scene, &scene->agent);
	send_to(&scene->agent,
	        "{\"content\":{\"target\":{\"cpu\":0.5,\"mem\":1048576}},\"type\":\"DownscaleRequest\",\"id\":2}");
	assert_heard(scene, &scene->agent, 1,
	             "{\"type\":\"DownscaleResult\",\"Ok\":true,\"Status\":\"monitor is not managing cgroup or file "
	             "cache\",\"id\":2}\n");
}

/* ---- beyond the vectors ---- */

static void a_connection_replaced_in_its_set_up_still_says_its_version(void **state)
{
	struct scene *scene = *state;

	dial(scene, &scene->agent);
	shake_hands(scene, &scene->other);
	assert_int_equal(scene->agent.closed, 0);
	send_to(&scene->agent, "{\"min\":1,\"max\":1}");
	assert_heard(scene, &scene->agent, 1, "{\"version\":1}\n");
	assert_dropped(scene, &scene->agent);
	assert_int_equal(vm_monitor_presence(scene->monitor), VM_MONITOR_CONNECTED);

	send_to(&scene->other, "{\"content\":{},\"type\":\"HealthCheck\",\"id\":2}");
	assert_heard(scene, &scene->other, 1, "{\"type\":\"HealthCheck\",\"id\":2}\n");
}

static void stalled_sampling_fails_downscales_after_5_s(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	vm_monitor_set_faults(scene->monitor, &(struct vm_monitor_faults){ .sampling_stalls = true });
	scene_advance(scene->loop, 4900);
	send_to(&scene->agent,
	        "{\"content\":{\"target\":{\"cpu\":0.5,\"mem\":2147483648}},\"type\":\"DownscaleRequest\",\"id\":2}");
	scene_until(scene->loop, counted(scene).downscales_approved, 1);
	scene_advance(scene->loop, 200);
	scene_settle(scene->loop);
	buffer_clear(&scene->agent.text);
	scene->agent.messages = 0;
	send_to(&scene->agent,
	        "{\"content\":{\"target\":{\"cpu\":0.5,\"mem\":1073741824}},\"type\":\"DownscaleRequest\",\"id\":4}");
	assert_heard(scene, &scene->agent, 1,
	             "{\"type\":\"InternalError\",\"error\":\"failed to downscale\",\"id\":4}\n");
}

static void messages_wait_for_the_one_in_work(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	vm_monitor_set_faults(scene->monitor, &(struct vm_monitor_faults){ .work_ms = 200 });
	send_to(&scene->agent,
	        "{\"content\":{\"granted\":{\"cpu\":1,\"mem\":5368709120}},\"type\":\"UpscaleNotification\",\"id\":2}");
	send_to(&scene->agent, "{\"content\":{},\"type\":\"HealthCheck\",\"id\":4}");
	scene_advance(scene->loop, 50);
	send_to(&scene->agent, "{\"content\":{},\"type\":\"HealthCheck\",\"id\":6}");
	scene_advance(scene->loop, 140);
	assert_int_equal(scene->agent.messages, 0);
	scene_advance(scene->loop, 20);
	assert_heard(scene, &scene->agent, 1, "{\"type\":\"UpscaleConfirmation\",\"id\":2}\n");
	scene_advance(scene->loop, 180);
	assert_int_equal(scene->agent.messages, 0);
	scene_advance(scene->loop, 220);
	assert_heard(scene, &scene->agent, 2,
	             "{\"type\":\"HealthCheck\",\"id\":4}\n{\"type\":\"HealthCheck\",\"id\":6}\n");
}

static void a_replaced_connection_still_answers_the_message_in_work(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	vm_monitor_set_faults(scene->monitor, &(struct vm_monitor_faults){ .work_ms = 200 });
	send_to(&scene->agent, "{\"content\":{},\"type\":\"HealthCheck\",\"id\":4}");
	scene_advance(scene->loop, 50);
	shake_hands(scene, &scene->other);
	assert_int_equal(scene->agent.closed, 0);
	scene_advance(scene->loop, 160);
	assert_heard(scene, &scene->agent, 1, "{\"type\":\"HealthCheck\",\"id\":4}\n");
	assert_dropped(scene, &scene->agent);
}

static void binary_messages_and_complaints_get_no_answer(void **state)
{
	struct scene *scene = *state;
	struct error err;

	connect_agent(scene);
	assert_true(websocket_send(scene->agent.websocket, SLICE("{"), false, &err));
	assert_true(websocket_ping(scene->agent.websocket, SLICE("x"), &err));
	send_to(&scene->agent, "{\"content\":{\"error\":\"?\"},\"type\":\"InvalidMessage\",\"id\":3}");
	send_to(&scene->agent, "{\"content\":{},\"type\":\"HealthCheck\",\"id\":2}");
	assert_heard(scene, &scene->agent, 1, "{\"type\":\"HealthCheck\",\"id\":2}\n");
	assert_int_equal(counted(scene).bad_messages, 0);
}

static const char UPGRADE[] =
	"GET /monitor HTTP/1.1\r\nHost: g\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

static void the_upgrade_is_answered_in_lower_case(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;

	raw_client_begin(&client, scene->loop, "127.0.0.1", vm_monitor_address(scene->monitor).port);
	raw_client_send(&client, slice_of(UPGRADE));
	scene_until(scene->loop, client.received.length, 1);
	scene_settle(scene->loop);
	buffer_append_char(&client.received, '\0');
	assert_int_equal(raw_client_status(&client), 101);
	assert_true(raw_client_head_has(&client, "connection: upgrade"));
	assert_true(raw_client_head_has(&client, "upgrade: websocket"));
	assert_true(raw_client_head_has(&client, "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
	raw_client_end(&client);
}

static void broken_frames_end_it_without_a_close_frame(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;
	struct buffer bytes;
	size_t head_length;

	/* A ping, to see that frames right behind the request are read; then a text frame without a mask. */
	buffer_init(&bytes, 4096);
	buffer_append_text(&bytes, UPGRADE);
	buffer_append(&bytes, "\x89\x80\x01\x02\x03\x04", 6);
	raw_client_begin(&client, scene->loop, "127.0.0.1", vm_monitor_address(scene->monitor).port);
	raw_client_send(&client, buffer_slice(&bytes));
	scene_until(scene->loop, client.received.length, 1);
	scene_advance(scene->loop, 20);
	raw_client_send(&client, slice_from("\x81\x02{}", 4));
	scene_until(scene->loop, client.closed, 1);
	assert_true(client.clean);
	head_length = client.received.length - 2;
	assert_memory_equal(client.received.data + head_length - 4, "\r\n\r\n", 4);
	assert_memory_equal(client.received.data + head_length, "\x8a\x00", 2); /* the pong, and nothing after it */
	raw_client_end(&client);
	buffer_destroy(&bytes);
	assert_int_equal(counted(scene).bad_messages, 1);
}

static void an_outage_cuts_and_refuses_until_it_is_over(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;

	connect_agent(scene);
	vm_monitor_set_available(scene->monitor, false);
	vm_monitor_set_available(scene->monitor, false);
	assert_int_equal(vm_monitor_presence(scene->monitor), VM_MONITOR_DOWN);
	assert_dropped(scene, &scene->agent);
	raw_client_begin(&client, scene->loop, "127.0.0.1", vm_monitor_address(scene->monitor).port);
	assert_int_equal(client.opened, 0);
	raw_client_end(&client);

	vm_monitor_set_available(scene->monitor, true);
	scene_advance(scene->loop, VM_MONITOR_REOPEN_MS);
	assert_int_equal(vm_monitor_presence(scene->monitor), VM_MONITOR_WAITING);
	connect_agent(scene);
	assert_int_equal(counted(scene).connections, 2);
}

static void the_kernels_memory_counts_for_the_next_connection(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	vm_monitor_set_kernel_memory(scene->monitor, 1000 * MIB);
	assert_int_equal(vm_monitor_threshold_now_bytes(scene->monitor), 3507809484);
	shake_hands(scene, &scene->other);
	assert_int_equal(vm_monitor_threshold_now_bytes(scene->monitor), 850 * MIB);
}

static void thousands_of_connections_leave_nothing_behind(void **state)
{
	struct scene *scene = *state;

	for (int i = 0; i < 1000; i++) {
		shake_hands(scene, &scene->agent);
		websocket_abort(scene->agent.websocket);
		scene->agent.websocket = NULL;
	}
	scene_advance(scene->loop, 20);
	assert_int_equal(counted(scene).connections, 1000);
	assert_int_equal(vm_monitor_presence(scene->monitor), VM_MONITOR_WAITING);
}

static void without_memory_nothing_breaks(void **state)
{
	struct scene *scene = *state;

	for (unsigned long n = 1; n < 60; n++) {
		struct raw_client client;

		raw_client_begin(&client, scene->loop, "127.0.0.1", vm_monitor_address(scene->monitor).port);
		scene_settle(scene->loop);
		raw_client_send(&client, slice_of(UPGRADE));
		memory_fail_at(n);
		/* {"min":1,"max":1}, masked with zeros */
		raw_client_send(&client, slice_from("\x81\x91\0\0\0\0{\"min\":1,\"max\":1}", 23));
		scene_advance(scene->loop, 110);
		memory_fail_at(0);
		raw_client_end(&client);
		scene_advance(scene->loop, 10);
	}
	scene_advance(scene->loop, 5000);
	connect_agent(scene);
}

#define scene_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(m1_handshake_sets_threshold_and_cache),
		scene_test(m2_no_common_version_is_answered_and_ends_it),
		scene_test(m3_a_bad_or_late_first_message_ends_it_silently),
		scene_test(m4_a_health_check_is_answered),
		scene_test(m5_a_downscale_is_agreed_to),
		scene_test(m6_a_downscale_is_denied_and_changes_nothing),
		scene_test(m7_the_limit_is_exact),
		scene_test(m8_an_upscale_is_confirmed),
		scene_test(m9_more_memory_is_asked_for_once_a_second),
		scene_test(m10_the_first_100_ms_deny),
		scene_test(m11_a_dead_postgres_fails_work_and_new_connections),
		scene_test(m12_messages_that_do_not_fit_end_it),
		scene_test(m13_a_second_client_ends_the_first),
		scene_test(m14_wrong_upgrades_are_refused_and_disturb_nobody),
		scene_test(m15_a_close_frame_is_echoed),
		scene_test(m16_with_nothing_to_manage_it_agrees),
		scene_test(a_connection_replaced_in_its_set_up_still_says_its_version),
		scene_test(stalled_sampling_fails_downscales_after_5_s),
		scene_test(messages_wait_for_the_one_in_work),
		scene_test(a_replaced_connection_still_answers_the_message_in_work),
		scene_test(binary_messages_and_complaints_get_no_answer),
		scene_test(the_upgrade_is_answered_in_lower_case),
		scene_test(broken_frames_end_it_without_a_close_frame),
		scene_test(an_outage_cuts_and_refuses_until_it_is_over),
		scene_test(the_kernels_memory_counts_for_the_next_connection),
		scene_test(thousands_of_connections_leave_nothing_behind),
		scene_test(without_memory_nothing_breaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
