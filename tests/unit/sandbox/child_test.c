#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/loop_epoll.h"
#include "sandbox/child_process.h"

enum { DEADLINE_S = 10, OUTPUT_BYTES = 1024 };

struct scene {
	struct loop *loop;
	FILE *output;
	struct child_exit how;
	unsigned exits;
	struct child_process *to_destroy; /* from inside the callback */
};

static void on_exit_of_child(void *context, const struct child_exit *how)
{
	struct scene *scene = context;

	scene->how = *how;
	scene->exits++;
	child_process_destroy(scene->to_destroy);
	loop_stop(scene->loop);
}

static void on_deadline(void *context)
{
	(void)context;
	fail_msg("the child didn't end");
}

static void scene_open(struct scene *scene)
{
	struct error err;

	*scene = (struct scene){ .loop = loop_epoll_create(&err), .output = tmpfile() };
	assert_non_null(scene->loop);
	assert_non_null(scene->output);
}

static void scene_close(struct scene *scene)
{
	loop_destroy(scene->loop);
	fclose(scene->output);
}

static struct child_process *start(struct scene *scene, const char *path, const char *script)
{
	const char *const arguments[] = { "sh", "-c", script, NULL };
	const char *const environment[] = { "FRUIT=plum", "EMPTY=", NULL };
	struct child_options options = {
		.path = path, .arguments = arguments, .environment = environment, .output = fileno(scene->output)
	};
	struct error err;
	struct child_process *child = child_process_start(scene->loop, &options, on_exit_of_child, scene, &err);

	assert_non_null(child);
	return child;
}

static void run_until_exit(struct scene *scene)
{
	struct loop_timer deadline = { .callback = NULL };
	struct error err;

	loop_timer_start(scene->loop, &deadline, (uint64_t)DEADLINE_S * NS_PER_S, on_deadline, NULL);
	assert_true(loop_run(scene->loop, &err));
	loop_timer_stop(scene->loop, &deadline);
	assert_int_equal(scene->exits, 1);
}

/* Runs a script to its end. */
static void run_script(struct scene *scene, const char *script)
{
	struct child_process *child = start(scene, "/bin/sh", script);

	assert_true(child_process_running(child));
	run_until_exit(scene);
	assert_false(child_process_running(child));
	child_process_signal(child, SIGKILL); /* nobody there: no harm to whoever has that id now */
	child_process_destroy(child);
}

static void expect_output(struct scene *scene, const char *expected)
{
	char text[OUTPUT_BYTES];
	size_t length;

	rewind(scene->output);
	length = fread(text, 1, sizeof text - 1, scene->output);
	text[length] = '\0';
	assert_string_equal(text, expected);
}

static void the_exit_status_and_what_it_used_are_told(void **state)
{
	(void)state;
	struct scene scene;

	scene_open(&scene);
	run_script(&scene, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3");
	assert_false(scene.how.signalled);
	assert_int_equal(scene.how.status, 3);
	assert_true(scene.how.max_resident_kib > 100);
	assert_true(scene.how.cpu_us > 0);
	scene_close(&scene);
}

static void a_signal_that_ended_it_is_told(void **state)
{
	(void)state;
	struct scene scene;
	struct child_process *child;

	scene_open(&scene);
	child = start(&scene, "/bin/sh", "read never; exec sleep 60");
	child_process_signal(child, SIGTERM);
	run_until_exit(&scene);
	assert_true(scene.how.signalled);
	assert_int_equal(scene.how.status, SIGTERM);
	child_process_destroy(child);
	scene_close(&scene);
}

static void it_has_the_environment_it_was_given_and_nothing_else(void **state)
{
	(void)state;
	struct scene scene;

	setenv("SANDBOX_TEST_LEAK", "1", 1);
	scene_open(&scene);
	run_script(&scene, "echo \"$FRUIT $EMPTY ${SANDBOX_TEST_LEAK-none} ${HOME-none}\"");
	expect_output(&scene, "plum  none none\n");
	scene_close(&scene);
	unsetenv("SANDBOX_TEST_LEAK");
}

static void both_outputs_go_to_the_file_and_input_is_empty(void **state)
{
	(void)state;
	struct scene scene;

	scene_open(&scene);
	run_script(&scene, "echo out; echo errors >&2; read -r line || echo end");
	expect_output(&scene, "out\nerrors\nend\n");
	scene_close(&scene);
}

static void signals_that_this_process_blocks_or_ignores_reach_it(void **state)
{
	(void)state;
	struct scene scene;
	struct child_process *child;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	scene_open(&scene);
	child = start(&scene, "/bin/sh", "sleep 60");
	child_process_signal(child, SIGINT);
	run_until_exit(&scene);
	assert_true(scene.how.signalled);
	assert_int_equal(scene.how.status, SIGINT);
	child_process_destroy(child);
	scene_close(&scene);
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
}

/* The script does nothing about the signal, and isn't ended by it. */
static void a_signal_to_end_can_wait_until_the_program_is_ready(void **state)
{
	(void)state;
	static const char *const arguments[] = { "sh", "-c", "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; exit 6",
		                                 NULL };
	static const char *const environment[] = { NULL };
	static const int signals[] = { SIGTERM, SIGINT };

	for (size_t i = 0; i < 2; i++) {
		struct scene scene;
		struct child_options options = {
			.path = "/bin/sh", .arguments = arguments, .environment = environment, .end_signals_wait = true
		};
		struct child_process *child;
		struct error err;

		scene_open(&scene);
		options.output = fileno(scene.output);
		child = child_process_start(scene.loop, &options, on_exit_of_child, &scene, &err);
		assert_non_null(child);
		child_process_signal(child, signals[i]);
		run_until_exit(&scene);
		assert_false(scene.how.signalled);
		assert_int_equal(scene.how.status, 6);
		child_process_destroy(child);
		scene_close(&scene);
	}
}

static void it_has_a_process_group_of_its_own(void **state)
{
	(void)state;
	struct scene scene;
	struct child_process *child;
	char expected[32];

	scene_open(&scene);
	/* Fields of stat: pid, (name), state, ppid, pgrp. */
	child = start(&scene, "/bin/sh", "read -r pid name state parent group rest </proc/self/stat; echo \"$group\"");
	(void)snprintf(expected, sizeof expected, "%d\n", child_process_id(child));
	run_until_exit(&scene);
	expect_output(&scene, expected);
	child_process_destroy(child);
	scene_close(&scene);
}

static void a_program_that_cant_be_executed_exits_with_127(void **state)
{
	(void)state;
	struct scene scene;
	struct child_process *child;

	scene_open(&scene);
	child = start(&scene, "/nonexistent/program", "");
	run_until_exit(&scene);
	assert_int_equal(scene.how.status, 127);
	child_process_destroy(child);
	scene_close(&scene);
}

static void destroying_it_ends_the_process_and_calls_back_no_more(void **state)
{
	(void)state;
	struct scene scene;
	struct child_process *child;
	pid_t pid;
	struct error err;

	scene_open(&scene);
	child = start(&scene, "/bin/sh", "sleep 60");
	pid = child_process_id(child);
	assert_int_equal(kill(pid, 0), 0);
	child_process_destroy(child);
	assert_int_equal(kill(pid, 0), -1);
	loop_stop(scene.loop);
	assert_true(loop_run(scene.loop, &err));
	assert_int_equal(scene.exits, 0);
	scene_close(&scene);
}

static void it_may_be_destroyed_while_its_end_is_told(void **state)
{
	(void)state;
	struct scene scene;

	scene_open(&scene);
	scene.to_destroy = start(&scene, "/bin/sh", "exit 0");
	run_until_exit(&scene);
	assert_int_equal(scene.how.status, 0);
	scene_close(&scene);
}

static void an_end_is_told_even_if_it_closed_what_it_inherited(void **state)
{
	(void)state;
	struct scene scene;

	scene_open(&scene);
	run_script(&scene, "for d in 3 4 5 6 7 8 9; do eval \"exec $d>&-\"; done; sleep 0.1; exit 5");
	assert_int_equal(scene.how.status, 5);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_exit_status_and_what_it_used_are_told),
		cmocka_unit_test(a_signal_that_ended_it_is_told),
		cmocka_unit_test(it_has_the_environment_it_was_given_and_nothing_else),
		cmocka_unit_test(both_outputs_go_to_the_file_and_input_is_empty),
		cmocka_unit_test(signals_that_this_process_blocks_or_ignores_reach_it),
		cmocka_unit_test(a_signal_to_end_can_wait_until_the_program_is_ready),
		cmocka_unit_test(it_has_a_process_group_of_its_own),
		cmocka_unit_test(a_program_that_cant_be_executed_exits_with_127),
		cmocka_unit_test(destroying_it_ends_the_process_and_calls_back_no_more),
		cmocka_unit_test(it_may_be_destroyed_while_its_end_is_told),
		cmocka_unit_test(an_end_is_told_even_if_it_closed_what_it_inherited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
