#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/judge.h"
#include "tests/unit/sandbox/fake_cluster.h"

static const uint64_t SECOND = NS_PER_S;

/* Six VMs and two to be ignored; phases of 8 s; everybody has what phase 0 states. */
struct scene {
	struct sandbox_options options;
	struct workload *workload;
	struct judge judge;
	struct cluster cluster;
};

static void set_all_as_stated(struct scene *scene, unsigned phase)
{
	for (unsigned i = 0; i < 6; i++)
		fake_cluster_set(&scene->cluster, i, workload_phase(scene->workload, i, phase)->expected);
}

static void scene_open(struct scene *scene)
{
	const struct workload_options options = {
		.seed = 7, .vms = 6, .nodes = 3, .speed = 4, .duration_ns = 40 * SECOND
	};
	struct error err;

	*scene = (struct scene){ .cluster = { .vm_count = 8 } };
	scene->workload = workload_create(&options, &err);
	assert_non_null(scene->workload);
	assert_true(judge_init(&scene->judge, scene->workload, &scene->options, &err));
	for (unsigned i = 0; i < 6; i++)
		fake_cluster_set(&scene->cluster, i, scene->workload->vms[i].initial);
	judge_phase_begin(&scene->judge, &scene->cluster, 0, 0);
	set_all_as_stated(scene, 0);
}

static void scene_close(struct scene *scene)
{
	judge_destroy(&scene->judge);
	workload_destroy(scene->workload);
}

/* Everything goes well up to the beginning of the phase. */
static void go_to_phase(struct scene *scene, unsigned phase)
{
	for (unsigned i = scene->judge.phase; i < phase; i++) {
		if (workload_phase(scene->workload, 1, i)->held != 0)
			scene->cluster.vms[1].guest.downscales_denied++;
		judge_phase_end(&scene->judge, &scene->cluster, (i + 1) * 8 * SECOND, true);
		judge_phase_begin(&scene->judge, &scene->cluster, i + 1, (i + 1) * 8 * SECOND);
		set_all_as_stated(scene, i + 1);
	}
	assert_int_equal(scene->judge.sentence_count, 0);
}

static void expect_sentences(const struct scene *scene, const char *const *sentences, size_t count)
{
	assert_int_equal(scene->judge.sentence_count, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(scene->judge.sentences[i], sentences[i]);
}

static void a_run_as_stated_has_no_mismatch(void **state)
{
	(void)state;
	struct scene scene;

	scene_open(&scene);
	go_to_phase(&scene, 4);
	scene.cluster.vms[1].guest.downscales_denied++;
	judge_phase_end(&scene.judge, &scene.cluster, 40 * SECOND, true);
	judge_end(&scene.judge, &scene.cluster);
	expect_sentences(&scene, NULL, 0);
	scene_close(&scene);
}

static void a_wrong_size_at_the_end_of_a_phase_is_told(void **state)
{
	(void)state;
	static const char *const sentences[] = {
		"pine: phase 1 (load for 2 CU): expected 2 CU, has 1 CU",
		"elm: phase 1 (memory for 4 CU): expected 4 CU, has 1000m CPU and 3 slots",
	};
	struct scene scene;

	scene_open(&scene);
	fake_cluster_set(&scene.cluster, 0, 1);
	scene.cluster.vms[2].size.slots = 3;
	judge_phase_end(&scene.judge, &scene.cluster, 8 * SECOND, true);
	expect_sentences(&scene, sentences, 2);
	scene_close(&scene);
}

static void a_held_phase_needs_a_denial_of_its_own(void **state)
{
	(void)state;
	static const char *const sentences[] = {
		"oak: phase 2 (held at 4 CU): the vm-monitor was asked for no downscale that it could deny",
	};
	struct scene scene;

	scene_open(&scene);
	scene.cluster.vms[1].guest.downscales_denied = 3; /* earlier ones don't count */
	go_to_phase(&scene, 1);
	judge_phase_end(&scene.judge, &scene.cluster, 16 * SECOND, true);
	expect_sentences(&scene, sentences, 1);
	scene_close(&scene);
}

static void a_phase_cut_short_is_judged_only_if_there_was_time(void **state)
{
	(void)state;
	static const char *const sentences[] = { "pine: phase 1 (load for 2 CU): expected 2 CU, has 1 CU" };
	struct scene scene;

	scene_open(&scene);
	fake_cluster_set(&scene.cluster, 0, 1);
	judge_phase_end(&scene.judge, &scene.cluster, 8 * SECOND - 1, false);
	expect_sentences(&scene, NULL, 0);
	assert_false(scene.judge.vms[0].judged_before);
	judge_phase_end(&scene.judge, &scene.cluster, 8 * SECOND, false);
	expect_sentences(&scene, sentences, 1);
	assert_true(scene.judge.vms[0].judged_before);
	scene_close(&scene);
}

static void an_outage_excuses_those_it_concerns_for_a_while(void **state)
{
	(void)state;
	static const char *const sentences[] = {
		"oak: phase 1 (load for 4 CU): expected 4 CU, has 1 CU",
		"pine: phase 1 (load for 2 CU): expected 2 CU, has 1 CU",
		"oak: phase 1 (load for 4 CU): expected 4 CU, has 1 CU",
	};
	struct scene scene;

	scene_open(&scene);
	scene.options.outage_count = 1;
	scene.options.outages[0] =
		(struct outage){ .peer = OUTAGE_MONITOR, .vm = 0, .start_ns = 2 * SECOND, .end_ns = 3 * SECOND };
	fake_cluster_set(&scene.cluster, 0, 1);
	fake_cluster_set(&scene.cluster, 1, 1);
	judge_phase_end(&scene.judge, &scene.cluster, 8 * SECOND, true);
	expect_sentences(&scene, sentences, 1);
	judge_phase_end(&scene.judge, &scene.cluster, 11 * SECOND, true);
	expect_sentences(&scene, sentences, 3);
	scene_close(&scene);
}

static void after_a_standstill_vms_get_time_to_settle(void **state)
{
	(void)state;
	static const char *const sentences[] = { "pine: phase 1 (load for 2 CU): expected 2 CU, has 1 CU" };
	struct scene scene;

	scene_open(&scene);
	fake_cluster_set(&scene.cluster, 0, 1);
	judge_disturbed(&scene.judge, 4 * SECOND);
	judge_phase_end(&scene.judge, &scene.cluster, 12 * SECOND - 1, true);
	expect_sentences(&scene, NULL, 0);
	assert_int_equal(scene.judge.judgements, 0);
	judge_phase_end(&scene.judge, &scene.cluster, 12 * SECOND, true);
	expect_sentences(&scene, sentences, 1);
	assert_int_equal(scene.judge.judgements, 6);
	assert_true(scene.judge.vms[1].judged_before);
	judge_phase_void(&scene.judge);
	assert_false(scene.judge.vms[1].judged_before);
	scene_close(&scene);
}

static void an_unsettled_full_node_may_be_shared_out_either_way(void **state)
{
	(void)state;
	static const char *const sentences[] = {
		"cedar: phase 2 (load for 5 CU): has 2 CU, and the full node isn't shared out",
		"maple: phase 2 (load for 6 CU): has 5 CU, and the full node isn't shared out",
	};
	struct scene scene;

	scene_open(&scene);
	scene.options.outage_count = 1;
	scene.options.outages[0] = (struct outage){ .peer = OUTAGE_PLUGIN, .end_ns = 5 * SECOND };
	judge_phase_end(&scene.judge, &scene.cluster, 8 * SECOND, true);
	judge_phase_begin(&scene.judge, &scene.cluster, 1, 8 * SECOND);
	set_all_as_stated(&scene, 1);
	fake_cluster_set(&scene.cluster, 4, 2);
	fake_cluster_set(&scene.cluster, 5, 6);
	judge_phase_end(&scene.judge, &scene.cluster, 16 * SECOND, true);
	expect_sentences(&scene, NULL, 0);

	judge_phase_begin(&scene.judge, &scene.cluster, 1, 8 * SECOND);
	for (unsigned i = 4; i < 6; i++)
		scene.judge.vms[i].judged_before = false;
	fake_cluster_set(&scene.cluster, 5, 5);
	scene.cluster.vms[1].guest.downscales_denied++;
	judge_phase_end(&scene.judge, &scene.cluster, 16 * SECOND, true);
	expect_sentences(&scene, sentences, 2);
	scene_close(&scene);
}

static void patches_are_counted_and_must_stay_within_bounds(void **state)
{
	(void)state;
	static const char *const sentences[] = { "pine: was given 9 CU, and must have between 1 CU and 8 CU",
		                                 "pine: was given 0 CU, and must have between 1 CU and 8 CU" };
	struct scene scene;
	const struct judge_vm *pine;

	scene_open(&scene);
	pine = &scene.judge.vms[0];
	judge_patched(&scene.judge, "pine", 0, cluster_units(1), cluster_units(8), SECOND);
	judge_patched(&scene.judge, "pine", 0, cluster_units(8), cluster_units(9), SECOND);
	judge_patched(&scene.judge, "pine", 0, cluster_units(9), cluster_units(1), SECOND);
	judge_patched(&scene.judge, "pine", 0, cluster_units(1), cluster_units(0), SECOND);
	assert_int_equal(pine->upscales, 2);
	assert_int_equal(pine->downscales, 2);
	expect_sentences(&scene, sentences, 2);
	scene_close(&scene);
}

static void the_time_to_a_new_goal_is_noted_once(void **state)
{
	(void)state;
	struct scene scene;
	const struct judge_vm *pine, *birch;

	scene_open(&scene);
	pine = &scene.judge.vms[0];
	birch = &scene.judge.vms[3];
	judge_patched(&scene.judge, "pine", 0, cluster_units(1), cluster_units(3), SECOND);
	assert_int_equal(pine->times_count, 0);
	judge_patched(&scene.judge, "pine", 0, cluster_units(3), cluster_units(2), 1234567890);
	judge_patched(&scene.judge, "pine", 0, cluster_units(2), cluster_units(1), 2 * SECOND);
	judge_patched(&scene.judge, "pine", 0, cluster_units(1), cluster_units(2), 3 * SECOND);
	assert_int_equal(pine->times_count, 1);
	assert_true(pine->seconds_to_reach_goal[0] == 1.235);
	/* Its goal is what it began with. */
	judge_patched(&scene.judge, "birch", 3, cluster_units(2), cluster_units(3), SECOND);
	assert_int_equal(birch->times_count, 0);
	/* A goal that is met already took no time. */
	fake_cluster_set(&scene.cluster, 0, workload_phase(scene.workload, 0, 1)->expected);
	judge_phase_begin(&scene.judge, &scene.cluster, 1, 8 * SECOND);
	assert_int_equal(pine->times_count, 2);
	assert_true(pine->seconds_to_reach_goal[1] == 0);
	scene_close(&scene);
}

static void disagreement_at_the_end_is_told(void **state)
{
	(void)state;
	static const char *const sentences[] = {
		"pine: the guest has 1 CU, but its spec says 2 CU",
		"oak: the scheduler plugin has 5 CU, but its spec says 4 CU",
		"elm: no agent is connected to the vm-monitor",
		"birch: the vm-monitor believes in 2.00 GiB, but its spec says 3",
		"cedar: 2 patches were refused",
		"maple: the vm-monitor got 1 bad messages",
		"3 requests came without a valid token",
	};
	struct scene scene;

	scene_open(&scene);
	scene.cluster.vms[0].plugged = cluster_units(1);
	scene.cluster.vms[1].permitted = cluster_units(5);
	scene.cluster.vms[2].monitor = GUEST_MONITOR_WAITING;
	scene.cluster.vms[3].monitor_believes_bytes = 2 * WORKLOAD_UNIT_BYTES;
	scene.cluster.vms[4].refused_patches = 2;
	scene.cluster.vms[5].guest.bad_messages = 1;
	scene.cluster.api.unauthorized = 3;
	judge_phase_end(&scene.judge, &scene.cluster, 8 * SECOND, true);
	judge_end(&scene.judge, &scene.cluster);
	expect_sentences(&scene, sentences, 7);
	scene_close(&scene);
}

static void what_is_on_its_way_may_differ_if_the_end_came_early(void **state)
{
	(void)state;
	struct scene scene;

	scene_open(&scene);
	scene.cluster.vms[0].plugged = cluster_units(1);
	scene.cluster.vms[1].monitor_believes_bytes = 0;
	judge_phase_end(&scene.judge, &scene.cluster, 2 * SECOND, false);
	judge_end(&scene.judge, &scene.cluster);
	expect_sentences(&scene, NULL, 0);
	scene_close(&scene);
}

static void a_monitor_that_was_told_nothing_agrees(void **state)
{
	(void)state;
	struct scene scene;

	scene_open(&scene);
	scene.cluster.vms[1].monitor_believes_bytes = 0;
	judge_phase_end(&scene.judge, &scene.cluster, 8 * SECOND, true);
	judge_end(&scene.judge, &scene.cluster);
	expect_sentences(&scene, NULL, 0);
	scene_close(&scene);
}

static void vms_to_be_ignored_must_not_be_touched(void **state)
{
	(void)state;
	static const char *const sentences[] = {
		"other-1: isn't to be scaled, but was patched",
		"other-1: isn't to be scaled, but its vm-monitor was talked to",
		"other-2: isn't to be scaled, but was scraped",
	};
	struct scene scene;

	scene_open(&scene);
	scene.cluster.vms[6].patches = 1;
	scene.cluster.vms[6].guest.connections = 1;
	scene.cluster.vms[7].guest.system_scrapes = 1;
	judge_phase_end(&scene.judge, &scene.cluster, 8 * SECOND, true);
	judge_end(&scene.judge, &scene.cluster);
	expect_sentences(&scene, sentences, 3);
	scene_close(&scene);
}

static void more_mismatches_than_are_kept_are_counted(void **state)
{
	(void)state;
	struct scene scene;

	scene_open(&scene);
	for (int i = 0; i < JUDGE_SENTENCES_MAX + 5; i++)
		judge_mismatch(&scene.judge, "sentence %d", i);
	assert_int_equal(scene.judge.sentence_count, JUDGE_SENTENCES_MAX);
	assert_int_equal(scene.judge.sentences_left_out, 5);
	assert_string_equal(scene.judge.sentences[JUDGE_SENTENCES_MAX - 1], "sentence 999");
	scene_close(&scene);
}

static void a_mismatch_isnt_lost_when_memory_is_short(void **state)
{
	(void)state;
	struct scene scene;

	scene_open(&scene);
	memory_fail_at(1);
	judge_mismatch(&scene.judge, "lost");
	memory_fail_at(0);
	assert_int_equal(scene.judge.sentence_count, 0);
	assert_int_equal(scene.judge.sentences_left_out, 1);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_as_stated_has_no_mismatch),
		cmocka_unit_test(a_wrong_size_at_the_end_of_a_phase_is_told),
		cmocka_unit_test(a_held_phase_needs_a_denial_of_its_own),
		cmocka_unit_test(a_phase_cut_short_is_judged_only_if_there_was_time),
		cmocka_unit_test(an_outage_excuses_those_it_concerns_for_a_while),
		cmocka_unit_test(after_a_standstill_vms_get_time_to_settle),
		cmocka_unit_test(an_unsettled_full_node_may_be_shared_out_either_way),
		cmocka_unit_test(patches_are_counted_and_must_stay_within_bounds),
		cmocka_unit_test(the_time_to_a_new_goal_is_noted_once),
		cmocka_unit_test(disagreement_at_the_end_is_told),
		cmocka_unit_test(what_is_on_its_way_may_differ_if_the_end_came_early),
		cmocka_unit_test(a_monitor_that_was_told_nothing_agrees),
		cmocka_unit_test(vms_to_be_ignored_must_not_be_touched),
		cmocka_unit_test(more_mismatches_than_are_kept_are_counted),
		cmocka_unit_test(a_mismatch_isnt_lost_when_memory_is_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
