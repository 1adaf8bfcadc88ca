#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/loop_epoll.h"
#include "sandbox/live_view.h"
#include "sandbox/object_store.h"
#include "tests/unit/sandbox/fake_cluster.h"

enum { OUTPUT_BYTES = 512 * 1024 };

/* Six VMs, and standard output or standard error in the hands of the test. */
struct scene {
	struct loop *loop;
	struct workload *workload;
	struct cluster cluster;
	struct live_view *view;
	int target; /* the descriptor that was replaced … */
	int saved;  /* … and what it was */
	int reader;
	char output[OUTPUT_BYTES];
};

static struct scene scene;

static void replace(int target, int writer)
{
	scene.target = target;
	scene.saved = dup(target);
	assert_true(scene.saved >= 0);
	assert_true(dup2(writer, target) >= 0);
	close(writer);
}

static void put_back(void)
{
	assert_true(dup2(scene.saved, scene.target) >= 0);
	close(scene.saved);
}

static void open_scene(void)
{
	const struct workload_options options = { .seed = 7, .vms = 6, .nodes = 3, .speed = 4 };
	struct error err;

	memset(&scene, 0, sizeof scene);
	scene.cluster.vm_count = 8;
	scene.loop = loop_epoll_create(&err);
	scene.workload = workload_create(&options, &err);
	assert_non_null(scene.loop);
	assert_non_null(scene.workload);
	for (unsigned i = 0; i < 6; i++)
		fake_cluster_set(&scene.cluster, i, 1);
}

static void open_lines(void)
{
	int ends[2];
	struct error err;

	open_scene();
	assert_int_equal(pipe(ends), 0);
	scene.reader = ends[0];
	replace(STDERR_FILENO, ends[1]);
	scene.view = live_view_create(scene.loop, scene.workload, false, &err);
	assert_non_null(scene.view);
}

/* A terminal with that many columns and rows. */
static void open_terminal(unsigned short columns, unsigned short rows)
{
	const struct winsize size = { .ws_col = columns, .ws_row = rows };
	struct termios settings;
	int writer;
	struct error err;

	open_scene();
	scene.reader = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(scene.reader >= 0);
	assert_int_equal(grantpt(scene.reader), 0);
	assert_int_equal(unlockpt(scene.reader), 0);
	writer = open(ptsname(scene.reader), O_RDWR | O_NOCTTY);
	assert_true(writer >= 0);
	assert_int_equal(ioctl(writer, TIOCSWINSZ, &size), 0);
	assert_int_equal(tcgetattr(writer, &settings), 0);
	cfmakeraw(&settings);
	assert_int_equal(tcsetattr(writer, TCSANOW, &settings), 0);
	replace(STDOUT_FILENO, writer);
	scene.view = live_view_create(scene.loop, scene.workload, true, &err);
	assert_non_null(scene.view);
}

/* Ends the view, and reads all that it wrote behind what is there already. */
static void close_view(void)
{
	size_t length = strlen(scene.output);
	ssize_t got;

	assert_int_equal(fcntl(scene.reader, F_SETFL, O_NONBLOCK), 0);
	live_view_destroy(scene.view);
	put_back();
	while ((got = read(scene.reader, scene.output + length, OUTPUT_BYTES - 1 - length)) > 0)
		length += (size_t)got;
	scene.output[length] = '\0';
}

static void close_scene(void)
{
	close(scene.reader);
	loop_destroy(scene.loop);
	workload_destroy(scene.workload);
}

static void events_are_lines_with_the_time(void **state)
{
	(void)state;
	open_lines();
	live_view_event(scene.view, "before the start");
	live_view_start(scene.view, &scene.cluster);
	live_view_vm_event(scene.view, 1, "patched %u CU → %u CU", 1U, 3U);
	live_view_vm_event(scene.view, 6, "of one to be ignored");
	live_view_event(scene.view, "phase %d: nothing changes", 2);
	close_view();
	assert_string_equal(scene.output, "  0.000s before the start\n"
	                                  "  0.000s oak: patched 1 CU → 3 CU\n"
	                                  "  0.000s other-1: of one to be ignored\n"
	                                  "  0.000s phase 2: nothing changes\n");
	close_scene();
}

static void a_reader_that_is_too_slow_misses_lines_and_is_told(void **state)
{
	(void)state;
	enum { LINES = 8000, LINE_BYTES = 100 }; /* far more than a pipe and the buffer hold */
	const char *left_out;
	char text[LINE_BYTES];
	size_t length = 0;
	ssize_t got;

	open_lines();
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	for (int i = 0; i < LINES; i++)
		live_view_event(scene.view, "%s", text);
	/* It reads again; each event brings more of what waited. */
	assert_int_equal(fcntl(scene.reader, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 10; i++) {
		while ((got = read(scene.reader, scene.output + length, OUTPUT_BYTES - 1 - length)) > 0)
			length += (size_t)got;
		live_view_event(scene.view, "late %d", i);
	}
	close_view();
	left_out = strstr(scene.output, " lines left out)\n");
	assert_non_null(left_out);
	assert_non_null(strstr(left_out, "  0.000s late 9\n"));
	close_scene();
}

/* The last frame, up to where the screen is left. */
static char *last_frame(void)
{
	char *frame = scene.output;
	char *end = strstr(scene.output, "\x1b[?25h\x1b[?1049l");

	assert_non_null(end);
	assert_string_equal(end, "\x1b[?25h\x1b[?1049l");
	*end = '\0';
	for (char *next = frame; (next = strstr(next, "\x1b[H")) != NULL; next += 3)
		frame = next + 3;
	return frame;
}

static void a_terminal_shows_a_table(void **state)
{
	(void)state;
	char *frame;

	open_terminal(100, 30);
	live_view_event(scene.view, "started");
	fake_cluster_set(&scene.cluster, 0, 2);
	scene.cluster.vms[1].permitted = cluster_units(3);
	scene.cluster.vms[1].size = (struct cluster_size){ 750, 2 };
	scene.cluster.vms[1].monitor = GUEST_MONITOR_DOWN;
	live_view_vm_event(scene.view, 1, "patched");
	live_view_set_outages(scene.view, "scheduler plugin");
	live_view_start(scene.view, &scene.cluster);
	close_view();
	assert_memory_equal(scene.output, "\x1b[?1049h\x1b[?25l\x1b[H", 17);
	frame = last_frame();
	assert_string_equal(
		frame, "ballast sandbox  0.0 s  phase 1  speed 4  seed 7  Ctrl-C ends\x1b[K\r\n"
		       "using, goal, permitted: in CU (1 CU = 0.25 vCPU, 1 GiB); CPU/memory if they differ\x1b[K\r\n"
		       "away: scheduler plugin\x1b[K\r\n"
		       "VM           workload     using  goal permitted  monitor    last action\x1b[K\r\n"
		       "pine         ramp             2     2         2  connected  \x1b[K\r\n"
		       "oak          held           3/2     4         3  down       patched\x1b[K\r\n"
		       "elm          memory           1     4         1  connected  \x1b[K\r\n"
		       "birch        takeover         1     3         1  connected  \x1b[K\r\n"
		       "cedar        full-first       1     5         1  connected  \x1b[K\r\n"
		       "maple        full-second      1     1         1  connected  \x1b[K\r\n"
		       "started\x1b[K\r\n"
		       "\x1b[J");
	close_scene();
}

static void a_terminal_says_where_the_first_agents_state_is_unless_something_is_away(void **state)
{
	(void)state;

	open_terminal(100, 30);
	live_view_set_state_url(scene.view, "http://127.0.0.5:10300/");
	live_view_set_state_url(scene.view, "http://127.0.0.6:10300/");
	live_view_start(scene.view, &scene.cluster);
	close_view();
	assert_non_null(
		strstr(last_frame(),
	               "differ\x1b[K\r\nsee also: ballast status --watch --url http://127.0.0.5:10300/\x1b[K\r\nVM "));
	close_scene();
	open_terminal(100, 30);
	live_view_set_state_url(scene.view, "http://127.0.0.5:10300/");
	live_view_set_outages(scene.view, "scheduler plugin");
	live_view_start(scene.view, &scene.cluster);
	close_view();
	assert_non_null(strstr(last_frame(), "differ\x1b[K\r\naway: scheduler plugin\x1b[K\r\nVM "));
	close_scene();
}

static void no_pod_event(void *context, unsigned pod, const char *text)
{
	(void)context;
	(void)pod;
	(void)text;
}

static void no_mismatch(void *context, const char *text)
{
	(void)context;
	(void)text;
}

static void pods_are_shown_below_vms_and_each_gets_half_of_the_room(void **state)
{
	(void)state;
	static const struct pod_cluster_handler HANDLER = { .on_pod = no_pod_event, .on_mismatch = no_mismatch };
	const struct pod_workload_options workload_options = { .pods = 20, .nodes = 2, .speed = 4 };
	struct pod_cluster_options options = { .extender = { .port = 1 } };
	struct pod_workload *workload;
	struct pod_cluster *pods;
	struct object_store *store;
	struct error err;
	char *frame;

	open_terminal(100, 18);
	workload = pod_workload_create(&workload_options, &err);
	store = object_store_create(scene.loop, &err);
	assert_non_null(workload);
	assert_non_null(store);
	options.workload = workload;
	options.store = store;
	pods = pod_cluster_create(scene.loop, &options, &HANDLER, NULL, &err);
	assert_non_null(pods);
	assert_true(live_view_show_pods(scene.view, pods, &err));
	live_view_pod_event(scene.view, 1, "waits: %s", "why");
	live_view_start(scene.view, &scene.cluster);
	close_view();
	frame = last_frame();
	assert_non_null(strstr(frame, "birch        takeover"));
	assert_null(strstr(frame, "cedar        full-first"));
	assert_non_null(strstr(frame, "and 2 more VMs\x1b[K\r\n"
	                              "pods: 0 bound, 0.0 per minute, 0 filter calls; promised twice: 0\x1b[K\r\n"
	                              "pod             volumes expected node      calls seconds  last action\x1b[K\r\n"
	                              "pair-1                2 bound    -             0       -  \x1b[K\r\n"
	                              "too-large-1           2 pending  -             0       -  waits: why\x1b[K\r\n"
	                              "logical-1             1 bound    -             0       -  \x1b[K\r\n"
	                              "scratchpad-1          1 bound    -             0       -  \x1b[K\r\n"
	                              "and 16 more pods\x1b[K\r\n"));
	pod_cluster_destroy(pods);
	object_store_destroy(store);
	pod_workload_destroy(workload);
	close_scene();
}

static void a_small_terminal_gets_less_of_it(void **state)
{
	(void)state;
	char *frame;

	open_terminal(20, 10);
	live_view_vm_event(scene.view, 0, "…");
	live_view_start(scene.view, &scene.cluster);
	close_view();
	frame = last_frame();
	assert_string_equal(frame, "ballast sandbox  0.…\x1b[K\r\n"
	                           "using, goal, permit…\x1b[K\r\n"
	                           "\x1b[K\r\n"
	                           "VM           worklo…\x1b[K\r\n"
	                           "pine         ramp  …\x1b[K\r\n"
	                           "oak          held  …\x1b[K\r\n"
	                           "elm          memory…\x1b[K\r\n"
	                           "and 3 more VMs\x1b[K\r\n"
	                           "\x1b[K\r\n"
	                           "\x1b[J");
	close_scene();
}

static void the_terminal_is_as_it_was_while_the_process_is_stopped(void **state)
{
	(void)state;
	static const char left[] = "\x1b[J\x1b[?25h\x1b[?1049l";
	size_t length = 0;
	ssize_t got;

	open_terminal(80, 24);
	live_view_start(scene.view, &scene.cluster);
	live_view_suspend(scene.view);
	while (strstr(scene.output, left) == NULL) { /* fails by the test's time limit */
		got = read(scene.reader, scene.output + length, OUTPUT_BYTES - 1 - length);
		assert_true(got > 0);
		length += (size_t)got;
	}
	assert_int_equal(strlen(strstr(scene.output, left)), strlen(left));
	memset(scene.output, 0, sizeof scene.output);
	live_view_resume(scene.view);
	close_view();
	assert_memory_equal(scene.output, "\x1b[?1049h\x1b[?25l\x1b[H", 17);
	assert_non_null(strstr(last_frame(), "pine"));
	close_scene();
}

static void it_is_redrawn_as_time_goes_by(void **state)
{
	(void)state;
	unsigned frames = 0;
	struct error err;

	open_terminal(80, 24);
	live_view_start(scene.view, &scene.cluster);
	while (frames < 3) {
		ssize_t got;

		assert_true(loop_turn(scene.loop, &err));
		got = read(scene.reader, scene.output, OUTPUT_BYTES - 1);
		assert_true(got > 0);
		frames++;
	}
	memset(scene.output, 0, sizeof scene.output);
	live_view_set_phase(scene.view, 1);
	assert_true(loop_turn(scene.loop, &err));
	close_view();
	assert_non_null(strstr(last_frame(), "phase 2"));
	close_scene();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_lines_with_the_time),
		cmocka_unit_test(a_reader_that_is_too_slow_misses_lines_and_is_told),
		cmocka_unit_test(a_terminal_shows_a_table),
		cmocka_unit_test(a_terminal_says_where_the_first_agents_state_is_unless_something_is_away),
		cmocka_unit_test(pods_are_shown_below_vms_and_each_gets_half_of_the_room),
		cmocka_unit_test(a_small_terminal_gets_less_of_it),
		cmocka_unit_test(the_terminal_is_as_it_was_while_the_process_is_stopped),
		cmocka_unit_test(it_is_redrawn_as_time_goes_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
