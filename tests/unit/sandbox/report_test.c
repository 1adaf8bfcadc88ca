#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/report.h"
#include "tests/unit/sandbox/fake_cluster.h"

static const uint64_t SECOND = NS_PER_S;

enum { ARENA_BYTES = 256 * 1024 };

/* A run of two VMs that ended well, as far as the test doesn't say otherwise. */
struct scene {
	struct sandbox_options options;
	struct workload *workload;
	struct judge judge;
	struct cluster cluster;
	struct report_usage usage;
	struct report report;
	struct buffer text;
};

static void scene_open(struct scene *scene)
{
	const struct workload_options options = {
		.seed = 7, .vms = 2, .nodes = 1, .speed = 4, .duration_ns = 8 * SECOND
	};
	struct error err;

	*scene = (struct scene){
		.cluster = { .vm_count = 3,
		             .api = { .lists = 2, .watches = 3, .patches = 4 },
		             .scheduler = { .requests = 12, .denials = 1, .version = 7 } },
		.usage = { .max_resident_kib = 1536, .cpu_us = 213157 },
	};
	scene->workload = workload_create(&options, &err);
	assert_non_null(scene->workload);
	assert_true(judge_init(&scene->judge, scene->workload, &scene->options, &err));
	fake_cluster_set(&scene->cluster, 0, 1);
	fake_cluster_set(&scene->cluster, 1, 1);
	judge_phase_begin(&scene->judge, &scene->cluster, 0, 0);
	judge_patched(&scene->judge, "pine", 0, cluster_units(1), cluster_units(2), 400 * (uint64_t)NS_PER_MS);
	judge_patched(&scene->judge, "oak", 1, cluster_units(1), cluster_units(4), 1200 * (uint64_t)NS_PER_MS);
	fake_cluster_set(&scene->cluster, 0, 2);
	fake_cluster_set(&scene->cluster, 1, 4);
	for (unsigned i = 0; i < 2; i++) {
		scene->cluster.vms[i].patches = 1;
		scene->cluster.vms[i].guest = (struct guest_counters){
			.connections = 1, .upscales = 2, .downscales_approved = 3, .health_checks = 4
		};
	}
	scene->cluster.vms[1].guest.downscales_denied = 5;
	buffer_init(&scene->text, REPORT_BYTES_MAX);
}

static void gather(struct scene *scene, uint64_t end_ns)
{
	struct error err;

	judge_phase_end(&scene->judge, &scene->cluster, end_ns, end_ns == 8 * SECOND);
	judge_end(&scene->judge, &scene->cluster);
	assert_true(report_init(&scene->report, &scene->judge, &scene->cluster, end_ns, &scene->usage, &err));
	scene->report.message.billing = (struct sandbox_report_billing){ .expected_cpu_seconds = 12.5,
		                                                         .billed_cpu_seconds = 12,
		                                                         .duplicates = 1,
		                                                         .events = 4,
		                                                         .scaling_events = 3 };
}

static void scene_close(struct scene *scene)
{
	report_destroy(&scene->report);
	buffer_destroy(&scene->text);
	judge_destroy(&scene->judge);
	workload_destroy(scene->workload);
}

static void expect_text(struct scene *scene, const char *expected)
{
	buffer_append_char(&scene->text, '\0');
	assert_string_equal(scene->text.data, expected);
}

static void json_has_everything_in_one_line(void **state)
{
	(void)state;
	struct scene scene;
	struct error err;

	scene_open(&scene);
	gather(&scene, 8 * SECOND);
	assert_true(report_print_json(&scene.report, &scene.text, &err));
	expect_text(
		&scene,
		"{\"generation\":\"B\",\"seed\":7,\"durationSeconds\":8,\"speed\":4,\"nodes\":1,\"phases\":1,"
		"\"ignoredVMs\":1,\"vms\":["
		"{\"name\":\"pine\",\"workload\":\"ramp\",\"minCU\":1,\"maxCU\":8,\"finalCU\":2,"
		"\"expectedFinalCU\":2,\"judged\":true,\"patches\":1,\"upscales\":1,\"downscales\":0,"
		"\"deniedDownscales\":0,\"secondsToReachGoal\":[0.4],"
		"\"goals\":[{\"phase\":1,\"expectedCU\":2,\"secondsToReachGoal\":0.4}]},"
		"{\"name\":\"oak\",\"workload\":\"held\",\"minCU\":1,\"maxCU\":8,\"finalCU\":4,"
		"\"expectedFinalCU\":4,\"judged\":true,\"patches\":1,\"upscales\":1,\"downscales\":0,"
		"\"deniedDownscales\":5,\"secondsToReachGoal\":[1.2],"
		"\"goals\":[{\"phase\":1,\"expectedCU\":4,\"secondsToReachGoal\":1.2}]}],"
		"\"scheduler\":{\"requests\":12,\"denials\":1,\"protocolVersion\":\"5.0\"},"
		"\"monitor\":{\"connections\":2,\"upscales\":4,\"downscales\":6,\"healthChecks\":8},"
		"\"api\":{\"lists\":2,\"watches\":3,\"patches\":4},"
		"\"agent\":{\"maxResidentKiB\":1536,\"cpuSeconds\":0.213157},\"outages\":[],"
		"\"billing\":{\"expectedCpuSeconds\":12.5,\"billedCpuSeconds\":12,\"duplicates\":1,\"lost\":0,"
		"\"events\":4,\"scalingEvents\":3,\"vms\":[]},\"mismatches\":[],\"pods\":[],"
		"\"capacity\":{\"promisedTwice\":0,\"reserved\":0,\"rejected\":0,\"volumes\":0,\"refusedVolumes\":0},"
		"\"faults\":[]}\n");
	scene_close(&scene);
}

static void json_reads_back_with_its_mismatches(void **state)
{
	(void)state;
	struct scene scene;
	struct sandbox_report_report message;
	struct arena arena;
	struct error err;

	scene_open(&scene);
	fake_cluster_set(&scene.cluster, 0, 1);
	for (int i = 0; i < JUDGE_SENTENCES_MAX; i++)
		judge_mismatch(&scene.judge, "a \"quoted\" sentence");
	gather(&scene, 8 * SECOND);
	assert_true(report_print_json(&scene.report, &scene.text, &err));
	arena_init(&arena, 16 * REPORT_BYTES_MAX);
	assert_true(sandbox_report_report_from_json(slice_trim(buffer_slice(&scene.text)), &arena, &message, &err));
	assert_int_equal(message.mismatches_count, JUDGE_SENTENCES_MAX + 1);
	assert_true(slice_equal_text(message.mismatches[0], "a \"quoted\" sentence"));
	assert_true(slice_equal_text(message.mismatches[JUDGE_SENTENCES_MAX], "there were more mismatches"));
	assert_true(message.vms[0].final_cu == 1);
	assert_int_equal(message.vms[0].expected_final_cu, 2);
	arena_destroy(&arena);
	scene_close(&scene);
}

static void text_is_a_table(void **state)
{
	(void)state;
	struct scene scene;
	struct error err;

	scene_open(&scene);
	gather(&scene, 8 * SECOND);
	assert_true(report_print_text(&scene.report, &scene.text, &err));
	expect_text(
		&scene,
		"ballast sandbox: 2 VMs on 1 node, seed 7, speed 4, 8.0 s, 1 phase\n"
		"\n"
		"VM           workload    range  final  goal judged  patches   up  down  denied  phase: seconds to its goal\n"
		"pine         ramp          1-8      2     2 yes           1    1     0       0  1: 0.4\n"
		"oak          held          1-8      4     4 yes           1    1     0       5  1: 1.2\n"
		"\n"
		"scheduler plugin  12 requests, 1 denial\n"
		"vm-monitors       2 connections, 4 upscales, 6 downscales, 8 health checks\n"
		"Kubernetes API    2 lists, 3 watches, 4 patches\n"
		"agent             1.5 MiB resident, 0.21 s of CPU\n"
		"billing           12 of 12.5 CPU-seconds used, 1 duplicate, 0 lost; 3 scaling events\n"
		"left alone        1 VM not to be scaled\n"
		"\n"
		"Everything went as the workload states it.\n");
	scene_close(&scene);
}

static void text_ends_with_the_mismatches(void **state)
{
	(void)state;
	static const char end[] = "\n1 mismatch:\n  pine: phase 1 (load for 2 CU): expected 2 CU, has 1 CU\n";
	struct scene scene;
	struct error err;

	scene_open(&scene);
	fake_cluster_set(&scene.cluster, 0, 1);
	gather(&scene, 8 * SECOND);
	assert_true(report_print_text(&scene.report, &scene.text, &err));
	assert_true(scene.text.length > strlen(end));
	assert_memory_equal(scene.text.data + scene.text.length - strlen(end), end, strlen(end));
	scene_close(&scene);
}

static void a_run_in_which_nothing_was_judged_says_so(void **state)
{
	(void)state;
	struct scene scene;
	struct error err;

	scene_open(&scene);
	gather(&scene, 2 * SECOND);
	assert_false(scene.report.message.vms[0].judged);
	assert_true(report_print_text(&scene.report, &scene.text, &err));
	assert_true(slice_contains(buffer_slice(&scene.text),
	                           SLICE("pine         ramp          1-8      2     2 no            1    1")));
	assert_true(slice_contains(buffer_slice(&scene.text), SLICE("\nEnded before anything could be judged.\n")));
	assert_false(slice_contains(buffer_slice(&scene.text), SLICE("Everything went")));
	scene_close(&scene);
}

/* The second phase states other sizes, which nobody gets. */
static void a_goal_that_wasnt_reached_is_null(void **state)
{
	(void)state;
	struct scene scene;
	struct error err;

	scene_open(&scene);
	judge_phase_end(&scene.judge, &scene.cluster, 8 * SECOND, true);
	judge_phase_begin(&scene.judge, &scene.cluster, 1, 8 * SECOND);
	gather(&scene, 9 * SECOND);
	assert_int_equal(scene.report.message.vms[0].goals_count, 2);
	assert_int_equal(scene.report.message.vms[0].goals[1].phase, 2);
	assert_int_equal(scene.report.message.vms[0].goals[1].expected_cu,
	                 workload_phase(scene.workload, 0, 1)->expected);
	assert_false(scene.report.message.vms[0].goals[1].has_seconds_to_reach_goal);
	assert_true(report_print_json(&scene.report, &scene.text, &err));
	assert_true(slice_contains(buffer_slice(&scene.text), SLICE("\"secondsToReachGoal\":null}]")));
	buffer_clear(&scene.text);
	assert_true(report_print_text(&scene.report, &scene.text, &err));
	assert_true(slice_contains(buffer_slice(&scene.text), SLICE("  1: 0.4, 2: -\n")));
	scene_close(&scene);
}

static void outages_are_told(void **state)
{
	(void)state;
	struct scene scene;
	struct error err;

	scene_open(&scene);
	scene.options.outage_count = 2;
	scene.options.outages[0] =
		(struct outage){ .peer = OUTAGE_MONITOR, .vm = 1, .start_ns = SECOND / 2, .end_ns = 2 * SECOND };
	scene.options.outages[1] = (struct outage){ .peer = OUTAGE_API, .start_ns = SECOND, .end_ns = 3 * SECOND };
	gather(&scene, 8 * SECOND);
	assert_true(report_print_json(&scene.report, &scene.text, &err));
	assert_true(slice_contains(buffer_slice(&scene.text),
	                           SLICE("\"outages\":[{\"peer\":\"monitor:2\",\"startSeconds\":0.5,\"endSeconds\":2},"
	                                 "{\"peer\":\"api\",\"startSeconds\":1,\"endSeconds\":3}],")));
	buffer_clear(&scene.text);
	assert_true(report_print_text(&scene.report, &scene.text, &err));
	assert_true(slice_contains(buffer_slice(&scene.text),
	                           SLICE("\noutages           monitor:2 from 0.5 s to 2 s, api from 1 s to 3 s\n")));
	scene_close(&scene);
}

static void running_out_of_memory_is_an_error(void **state)
{
	(void)state;
	for (unsigned long n = 1; n <= 3; n++) {
		struct scene scene;
		struct error err;

		scene_open(&scene);
		memory_fail_at(n);
		assert_false(report_init(&scene.report, &scene.judge, &scene.cluster, SECOND, &scene.usage, &err));
		memory_fail_at(0);
		assert_int_equal(err.code, ERROR_NO_MEMORY);
		scene_close(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_has_everything_in_one_line),
		cmocka_unit_test(json_reads_back_with_its_mismatches),
		cmocka_unit_test(text_is_a_table),
		cmocka_unit_test(text_ends_with_the_mismatches),
		cmocka_unit_test(a_run_in_which_nothing_was_judged_says_so),
		cmocka_unit_test(a_goal_that_wasnt_reached_is_null),
		cmocka_unit_test(outages_are_told),
		cmocka_unit_test(running_out_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
