/*
 * The stocks, and why no pod of one can use a disk of another:
 *
 *	disks    HDD of 100 to 200 GiB                 HDD or any disk, 70 to 100 GiB
 *	flash    SSD of 40 to 60 GiB                   SSD, up to 40 GiB (any disk asks for more)
 *	logical  HDD volume groups of 700 GiB          300 to 330 GiB each: more than any HDD has
 *	others   disks of a storage group, which only their own pods ask for
 */
#include "sandbox/pod_workload.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "sandbox/kube_scheduler.h"

#define GIB (INT64_C(1) << 30)

enum {
	TOO_LARGE_GIB = 5000,
	TAINTED_GIB = 10000,
	SETTLE_SCALED_S = 24, /* divided by the speed; as for VMs */
	SETTLE_FIXED_S = 4,
	SETTLE_POD_MS = 150, /* for each pod: the extender asks the API 20 times a second at most */
	ENDLESS_SPAN_S = 60,
	START_MS = 500,
	MS_PER_S = 1000,
	AT_START_PERCENT = 70,
};

static const char *const KIND_NAMES[POD_KIND_COUNT] = {
	[POD_PAIR] = "pair",         [POD_TOO_LARGE] = "too-large",
	[POD_LOGICAL] = "logical",   [POD_EPHEMERAL] = "scratchpad",
	[POD_REBORN] = "reborn",     [POD_PLAIN] = "plain",
	[POD_ANY] = "any",           [POD_TIGHT] = "tight",
	[POD_EXCESS] = "excess",     [POD_NO_TYPE] = "no-type",
	[POD_LEFTOVER] = "leftover", [POD_SCRATCH] = "scratch",
	[POD_NO_GROUP] = "no-group", [POD_DISK] = "disk",
	[POD_FLASH] = "flash",       [POD_BULK] = "bulk",
};

static const char *const CLASS_NAMES[STORAGE_TYPE_COUNT] = {
	[STORAGE_HDD] = "bm-hdd",
	[STORAGE_SSD] = "bm-ssd",
	[STORAGE_NVME] = "bm-nvme",
	[STORAGE_HDD_GROUP] = "bm-hddlvg",
	[STORAGE_SSD_GROUP] = "bm-ssdlvg",
	[STORAGE_NVME_GROUP] = "bm-nvmelvg",
	[STORAGE_SYSTEM_GROUP] = "bm-syslvg",
	[STORAGE_ANY] = "bm-any",
};

const char *pod_kind_name(enum pod_kind kind)
{
	return KIND_NAMES[kind];
}

void pod_node_name(char name[POD_NODE_BYTES], unsigned node)
{
	(void)snprintf(name, POD_NODE_BYTES, "node-%c", (char)('a' + node));
}

const char *pod_class_name(enum storage_type type)
{
	return CLASS_NAMES[type];
}

static int64_t draw_gib(struct rng *rng, unsigned low, unsigned high)
{
	return (int64_t)rng_between(rng, low, (uint64_t)high + 1) * GIB;
}

/* ---- pods ---- */

static void add_volume(struct pod_plan *pod, enum storage_type type, const char *group, int64_t size_bytes)
{
	struct pod_volume *volume = &pod->volumes[pod->volume_count];

	char name[POD_NAME_BYTES];

	memcpy(name, pod->name, sizeof name);
	*volume = (struct pod_volume){ .type = type, .size_bytes = size_bytes, .group = group };
	(void)snprintf(volume->claim, sizeof volume->claim, "%s-data%u", name, pod->volume_count);
	pod->volume_count++;
}

static void plan_misfit(struct pod_plan *pod, struct rng *rng)
{
	pod->fits = false;
	if (pod->kind == POD_NO_TYPE) {
		add_volume(pod, STORAGE_SYSTEM_GROUP, "", draw_gib(rng, 1, 10));
	} else if (pod->kind == POD_NO_GROUP) {
		add_volume(pod, STORAGE_HDD, "nowhere", draw_gib(rng, 1, 10));
	} else if (pod->kind == POD_EXCESS) {
		add_volume(pod, STORAGE_NVME, "tight", draw_gib(rng, 100, 200));
		pod->after_tight = true;
	} else {
		add_volume(pod, STORAGE_SSD, "", draw_gib(rng, 10, 40));
		add_volume(pod, STORAGE_HDD, "", TOO_LARGE_GIB * GIB);
	}
}

static void plan_several(struct pod_plan *pod, struct rng *rng)
{
	if (pod->kind == POD_PAIR) {
		add_volume(pod, STORAGE_HDD, "pair", draw_gib(rng, 60, 100));
		add_volume(pod, STORAGE_SSD, "pair", draw_gib(rng, 20, 50));
	} else if (pod->kind == POD_SCRATCH) {
		add_volume(pod, STORAGE_SSD_GROUP, "scratch", draw_gib(rng, 20, 24));
		add_volume(pod, STORAGE_SSD_GROUP, "scratch", draw_gib(rng, 20, 24));
	} else {
		add_volume(pod, STORAGE_HDD, "bulk", draw_gib(rng, 100, 200));
		add_volume(pod, STORAGE_ANY, "bulk", draw_gib(rng, 30, 50));
		add_volume(pod, STORAGE_NVME_GROUP, "bulk", draw_gib(rng, 5, 10));
	}
}

static void plan_volumes(struct pod_plan *pod, struct rng *rng)
{
	pod->fits = true;
	switch (pod->kind) {
	case POD_PLAIN:
		break;
	case POD_LOGICAL:
		add_volume(pod, STORAGE_HDD_GROUP, "", draw_gib(rng, 300, 330));
		break;
	case POD_EPHEMERAL:
		add_volume(pod, STORAGE_NVME, "fast", draw_gib(rng, 100, 400));
		pod->volumes[0].ephemeral = true;
		break;
	case POD_ANY:
		add_volume(pod, STORAGE_ANY, "", draw_gib(rng, 70, 100));
		break;
	case POD_DISK:
	case POD_REBORN:
		add_volume(pod, STORAGE_HDD, "", draw_gib(rng, 70, 100));
		break;
	case POD_TIGHT:
		add_volume(pod, STORAGE_NVME, "tight", draw_gib(rng, 100, 200));
		break;
	case POD_LEFTOVER:
		add_volume(pod, STORAGE_HDD, "attic", draw_gib(rng, 50, 80));
		break;
	case POD_FLASH:
		add_volume(pod, STORAGE_SSD, "", draw_gib(rng, 10, 40));
		break;
	case POD_PAIR:
	case POD_SCRATCH:
	case POD_BULK:
		plan_several(pod, rng);
		break;
	default:
		plan_misfit(pod, rng);
		break;
	}
}

/* Most come at once, the rest in the first third of the run. */
static void plan_times(struct pod_plan *pod, const struct pod_workload_options *options, struct rng *rng)
{
	uint64_t span_ns = (options->duration_ns > 0 ? options->duration_ns : (uint64_t)ENDLESS_SPAN_S * NS_PER_S) / 3;
	uint64_t later_ns = rng_between(rng, 0, span_ns);

	pod->start_ns = (uint64_t)START_MS * NS_PER_MS;
	if (rng_between(rng, 0, 100) >= AT_START_PERCENT && pod->kind != POD_REBORN && pod->kind != POD_LEFTOVER)
		pod->start_ns += later_ns;
	if (pod->kind == POD_REBORN) {
		pod->again_ns = pod->start_ns + span_ns / 2;
		pod->too_large_size = TOO_LARGE_GIB * GIB;
	}
}

static void plan_pod(struct pod_workload *workload, unsigned index)
{
	struct pod_plan *pod = &workload->pods[index];
	struct rng rng;

	/* A generator of its own: one pod more changes nothing for the others. */
	rng_seed(&rng, workload->options.seed * PODS_MAX + index);
	pod->kind = (enum pod_kind)(index % POD_KIND_COUNT);
	(void)snprintf(pod->name, sizeof pod->name, "%s-%u", KIND_NAMES[pod->kind], index / POD_KIND_COUNT + 1);
	plan_volumes(pod, &rng);
	plan_times(pod, &workload->options, &rng);
}

/* ---- disks ---- */

static void add_drive(struct pod_workload *workload, unsigned node, enum storage_type type, const char *group,
                      int64_t size_bytes)
{
	workload->drives[workload->drive_count++] =
		(struct drive_plan){ .node = node, .type = type, .group = group, .size_bytes = size_bytes };
}

/* The disks of one node that serve one pod of the kind (logical: two of them). */
static void add_set(struct pod_workload *workload, enum pod_kind kind, unsigned node, struct rng *rng)
{
	switch (kind) {
	case POD_DISK:
		add_drive(workload, node, STORAGE_HDD, "", draw_gib(rng, 100, 200));
		break;
	case POD_FLASH:
		add_drive(workload, node, STORAGE_SSD, "", draw_gib(rng, 40, 60));
		break;
	case POD_LOGICAL:
		add_drive(workload, node, STORAGE_HDD_GROUP, "", 700 * GIB);
		break;
	case POD_EPHEMERAL:
		add_drive(workload, node, STORAGE_NVME, "fast", draw_gib(rng, 400, 800));
		break;
	case POD_TIGHT:
		add_drive(workload, node, STORAGE_NVME, "tight", draw_gib(rng, 200, 400));
		break;
	case POD_LEFTOVER:
		add_drive(workload, node, STORAGE_HDD, "attic", draw_gib(rng, 80, 100));
		break;
	case POD_SCRATCH:
		add_drive(workload, node, STORAGE_SSD, "scratch", draw_gib(rng, 100, 110));
		break;
	case POD_PAIR:
		add_drive(workload, node, STORAGE_HDD, "pair", draw_gib(rng, 100, 120));
		add_drive(workload, node, STORAGE_SSD, "pair", draw_gib(rng, 50, 60));
		break;
	case POD_BULK:
		/* Whatever takes any disk takes the small one, which is too small for the other. */
		add_drive(workload, node, STORAGE_HDD, "bulk", draw_gib(rng, 50, 60));
		add_drive(workload, node, STORAGE_HDD, "bulk", draw_gib(rng, 200, 250));
		add_drive(workload, node, STORAGE_NVME_GROUP, "bulk", 12 * GIB);
		break;
	default:
		break;
	}
}

/* Whose disks a pod uses; POD_PLAIN: none's. */
static enum pod_kind stock_of(const struct pod_plan *pod)
{
	if (!pod->fits)
		return POD_PLAIN;
	return pod->kind == POD_ANY || pod->kind == POD_REBORN ? POD_DISK : pod->kind;
}

static unsigned count_pods(const struct pod_workload *workload, enum pod_kind stock)
{
	unsigned pods = 0;

	for (unsigned i = 0; i < workload->pod_count; i++)
		pods += stock_of(&workload->pods[i]) == stock;
	return pods;
}

/*
 * A reservation sets a disk aside on every node that has one, until its pod's next attempt: when disks get few, others of the stock are rejected
 * meanwhile, so that one pod gets its disk each time.
 */
static uint64_t settle_ns(const struct pod_workload *workload)
{
	double speed = workload->options.speed, scaled_s;
	unsigned most = count_pods(workload, POD_DISK); /* the largest stock */

	scaled_s = SETTLE_SCALED_S + (double)most * KUBE_SCHEDULER_BACKOFF_MAX_MS / MS_PER_S;
	return (uint64_t)((scaled_s / speed + SETTLE_FIXED_S) * NS_PER_S) +
	       (uint64_t)workload->pod_count * SETTLE_POD_MS * NS_PER_MS;
}

static void stock_up(struct pod_workload *workload, enum pod_kind kind, struct rng *rng)
{
	unsigned pods = count_pods(workload, kind), sets;

	sets = kind == POD_TIGHT ? pods : pods + 1;
	for (unsigned i = 0; i < sets; i++)
		add_set(workload, kind, (unsigned)rng_between(rng, 0, workload->options.nodes), rng);
}

static void plan_drives(struct pod_workload *workload)
{
	static const enum pod_kind stocks[] = { POD_DISK,     POD_FLASH,   POD_LOGICAL, POD_EPHEMERAL, POD_TIGHT,
		                                POD_LEFTOVER, POD_SCRATCH, POD_PAIR,    POD_BULK };
	struct rng rng;

	rng_seed(&rng, workload->options.seed * PODS_MAX + PODS_MAX - 1);
	for (size_t i = 0; i < sizeof stocks / sizeof stocks[0]; i++)
		stock_up(workload, stocks[i], &rng);
	/* It would do for what is too large for all others. */
	add_drive(workload, (unsigned)rng_between(&rng, 0, workload->options.nodes), STORAGE_HDD, "",
	          TAINTED_GIB * GIB);
	workload->drives[workload->drive_count - 1].tainted = true;
	add_drive(workload, (unsigned)rng_between(&rng, 0, workload->options.nodes), STORAGE_HDD, "attic", 10 * GIB);
	workload->drives[workload->drive_count - 1].leftover = true;
}

/* ---- the whole ---- */

struct pod_workload *pod_workload_create(const struct pod_workload_options *options, struct error *err)
{
	struct pod_workload *workload = memory_allocate(sizeof *workload + options->pods * sizeof workload->pods[0]);

	if (workload != NULL) {
		/* A set has up to three disks, and there is one set to spare in each stock. */
		size_t most = ((size_t)options->pods + POD_KIND_COUNT) * POD_DRIVES_PER_POD_MAX;

		workload->drives = memory_allocate(most * sizeof *workload->drives);
		if (workload->drives == NULL) {
			memory_release(workload);
			workload = NULL;
		}
	}
	if (workload == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory for the workload of pods");
		return NULL;
	}
	workload->options = *options;
	workload->pod_count = options->pods;
	for (unsigned i = 0; i < options->pods; i++)
		plan_pod(workload, i);
	plan_drives(workload);
	workload->settle_ns = settle_ns(workload);
	return workload;
}

void pod_workload_destroy(struct pod_workload *workload)
{
	if (workload == NULL)
		return;
	memory_release(workload->drives);
	memory_release(workload);
}
