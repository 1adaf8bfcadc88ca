#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "sandbox/pod_workload.h"
#include "sandbox/reservation_planner.h"

enum { ARENA_BYTES = 64 * 1024 * 1024, NAME_BYTES = 40, SEEDS = 40, ORDERS = 5 };

static struct pod_workload *create(uint64_t seed, unsigned pods, unsigned nodes)
{
	struct pod_workload_options options = {
		.seed = seed, .pods = pods, .nodes = nodes, .duration_ns = 40 * (uint64_t)NS_PER_S, .speed = 4
	};
	struct error err;
	struct pod_workload *workload = pod_workload_create(&options, &err);

	assert_non_null(workload);
	return workload;
}

/* ---- a cluster in which pods are placed one by one ---- */

struct cluster {
	const struct pod_workload *workload;
	struct planner_capacity *capacities;
	char (*names)[NAME_BYTES];
	char nodes[26][POD_NODE_BYTES];
	struct slice node_names[26];
	struct arena arena;
};

static void cluster_init(struct cluster *cluster, const struct pod_workload *workload)
{
	cluster->workload = workload;
	cluster->capacities = calloc(workload->drive_count, sizeof *cluster->capacities);
	cluster->names = calloc(workload->drive_count, sizeof *cluster->names);
	arena_init(&cluster->arena, ARENA_BYTES);
	for (unsigned i = 0; i < workload->options.nodes; i++) {
		pod_node_name(cluster->nodes[i], i);
		cluster->node_names[i] = slice_of(cluster->nodes[i]);
	}
	for (size_t i = 0; i < workload->drive_count; i++) {
		const struct drive_plan *drive = &workload->drives[i];

		(void)snprintf(cluster->names[i], NAME_BYTES, "capacity-%04zu", i);
		cluster->capacities[i] = (struct planner_capacity){
			.name = slice_of(cluster->names[i]),
			.node = cluster->node_names[drive->node],
			.group = slice_of(drive->group),
			.type = drive->type,
			.size_bytes = drive->size_bytes,
			.tainted = drive->tainted,
		};
	}
}

static void cluster_destroy(struct cluster *cluster)
{
	free(cluster->capacities);
	free(cluster->names);
	arena_destroy(&cluster->arena);
}

/* Uses up the capacity as the controller does (R8), but for what a new group loses. */
static void use_up(struct planner_capacity *capacity, const struct pod_volume *volume)
{
	if (!storage_type_is_group(volume->type)) {
		assert_true(capacity->size_bytes >= volume->size_bytes);
		capacity->size_bytes = 0;
		return;
	}
	if (capacity->type != volume->type)
		capacity->size_bytes -= 2 * RESERVATION_EXTENT_BYTES;
	capacity->type = volume->type;
	capacity->size_bytes -= volume->size_bytes;
	assert_true(capacity->size_bytes >= 0);
}

/* Whether the pod found a node; any of those that fit. */
static bool place(struct cluster *cluster, const struct pod_plan *pod, struct rng *rng)
{
	struct planner_request requests[POD_VOLUMES_MAX];
	struct planner_input input = { .capacities = cluster->capacities,
		                       .capacity_count = cluster->workload->drive_count,
		                       .requests = requests,
		                       .request_count = pod->volume_count,
		                       .nodes = cluster->node_names,
		                       .node_count = cluster->workload->options.nodes };
	struct planner_plan plan;
	struct error err;
	size_t choice;

	for (unsigned i = 0; i < pod->volume_count; i++)
		requests[i] = (struct planner_request){ .name = slice_of(pod->volumes[i].claim),
			                                .group = slice_of(pod->volumes[i].group),
			                                .type = pod->volumes[i].type,
			                                .size_bytes = pod->volumes[i].size_bytes };
	arena_reset(&cluster->arena);
	assert_true(reservation_plan(&input, &cluster->arena, &plan, &err));
	if (plan.node_count == 0)
		return false;
	choice = (size_t)rng_between(rng, 0, plan.node_count);
	for (unsigned i = 0; i < pod->volume_count; i++)
		use_up(&cluster->capacities[plan.capacities[i * plan.node_count + choice]], &pod->volumes[i]);
	return true;
}

static void place_all_in_some_order(const struct pod_workload *workload, struct rng *rng)
{
	unsigned order[PODS_MAX];
	struct cluster cluster;

	cluster_init(&cluster, workload);
	for (unsigned i = 0; i < workload->pod_count; i++) {
		unsigned j = (unsigned)rng_between(rng, 0, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	/* Those that come when the tight ones have all disks are last. */
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < workload->pod_count; i++) {
			const struct pod_plan *pod = &workload->pods[order[i]];

			if (pod->after_tight != (round == 1))
				continue;
			if (place(&cluster, pod, rng) != pod->fits)
				fail_msg("seed %llu, %u pods on %u nodes: %s %s",
				         (unsigned long long)workload->options.seed, workload->pod_count,
				         workload->options.nodes, pod->name, pod->fits ? "found no room" : "fits");
		}
	}
	cluster_destroy(&cluster);
}

static void pods_fit_in_any_order_and_on_any_of_the_fitting_nodes(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct pod_workload *workload = create(seed, 4 + (unsigned)seed * 3, 1 + (unsigned)seed % 7);
		struct rng rng;

		rng_seed(&rng, seed);
		for (unsigned i = 0; i < ORDERS; i++)
			place_all_in_some_order(workload, &rng);
		pod_workload_destroy(workload);
	}
}

static void one_seed_gives_one_workload(void **state)
{
	(void)state;
	struct pod_workload *a = create(3, 20, 5), *b = create(3, 20, 5), *c = create(4, 20, 5);
	bool differs = false;

	for (unsigned i = 0; i < a->pod_count; i++) {
		assert_memory_equal(&a->pods[i], &b->pods[i], sizeof a->pods[i]);
		differs |= a->pods[i].volumes[0].size_bytes != c->pods[i].volumes[0].size_bytes;
	}
	assert_true(differs);
	assert_int_equal(a->drive_count, b->drive_count);
	pod_workload_destroy(a);
	pod_workload_destroy(b);
	pod_workload_destroy(c);
}

static void pods_fit_or_not_by_their_kind(void **state)
{
	(void)state;
	struct pod_workload *workload = create(1, 2 * POD_KIND_COUNT, 3);

	for (unsigned i = 0; i < workload->pod_count; i++) {
		enum pod_kind kind = workload->pods[i].kind;

		assert_int_equal(kind, i % POD_KIND_COUNT);
		assert_int_equal(workload->pods[i].fits, kind != POD_TOO_LARGE && kind != POD_EXCESS &&
		                                                 kind != POD_NO_TYPE && kind != POD_NO_GROUP);
		assert_int_equal(workload->pods[i].volume_count,
		                 kind == POD_PLAIN                                                  ? 0
		                 : kind == POD_BULK                                                 ? 3
		                 : kind == POD_PAIR || kind == POD_SCRATCH || kind == POD_TOO_LARGE ? 2
		                                                                                    : 1);
	}
	pod_workload_destroy(workload);
}

static void everything_comes_in_the_first_half_of_the_run(void **state)
{
	(void)state;
	struct pod_workload *workload = create(9, 64, 4);

	for (unsigned i = 0; i < workload->pod_count; i++) {
		assert_true(workload->pods[i].start_ns < 20 * (uint64_t)NS_PER_S);
		assert_true(workload->pods[i].again_ns < 20 * (uint64_t)NS_PER_S);
		assert_int_equal(workload->pods[i].again_ns > workload->pods[i].start_ns,
		                 workload->pods[i].kind == POD_REBORN);
	}
	pod_workload_destroy(workload);
}

static void without_memory_there_is_no_workload(void **state)
{
	(void)state;
	const struct pod_workload_options options = { .pods = 3, .nodes = 2, .speed = 1 };
	struct error err;

	for (unsigned long i = 1; i <= 2; i++) {
		memory_fail_at(i);
		assert_null(pod_workload_create(&options, &err));
		assert_int_equal(err.code, ERROR_NO_MEMORY);
	}
	memory_fail_at(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods_fit_in_any_order_and_on_any_of_the_fitting_nodes),
		cmocka_unit_test(one_seed_gives_one_workload),
		cmocka_unit_test(pods_fit_or_not_by_their_kind),
		cmocka_unit_test(everything_comes_in_the_first_half_of_the_run),
		cmocka_unit_test(without_memory_there_is_no_workload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
