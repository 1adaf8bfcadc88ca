/*
 * The pods of a sandbox run, and the disks of its nodes: what there is, what each pod asks for, when it comes, and whether it fits.
 *
 * A pure function of the options: the same seed always gives the same. It is made so that the outcome doesn't depend on the order in which
 * pods are placed, nor on which of the fitting nodes is chosen: the disks form stocks, told apart by type, storage group and size, and a pod's
 * volumes fit on the disks of one stock only. A stock has a set of disks, on one node, for each of its pods and one to spare (but for the
 * tight one, which has none to spare, and whose further pods come when it is used up). So whether a pod fits follows from what was planted,
 * never from what the extender does.
 */
#ifndef BALLAST_SANDBOX_POD_WORKLOAD_H
#define BALLAST_SANDBOX_POD_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sandbox/storage_type.h"

enum {
	PODS_MAX = 500,
	POD_VOLUMES_MAX = 3,
	POD_DRIVES_PER_POD_MAX = 4,
	POD_NAME_BYTES = 32,
	POD_CLAIM_BYTES = 48,
	POD_NODE_BYTES = 16,
};

#define POD_NAME_SPACE "shop"

enum pod_kind {
	POD_PAIR,      /* two volumes on two kinds of disks, of a storage group */
	POD_TOO_LARGE, /* one of its volumes is larger than any disk */
	POD_LOGICAL,   /* a logical volume in a group that is there */
	POD_EPHEMERAL, /* a generic ephemeral volume, of a storage group */
	POD_REBORN,    /* at first too large; then deleted, and made again by the same name with a smaller claim */
	POD_PLAIN,     /* no volumes of ours */
	POD_ANY,       /* any whole disk */
	POD_TIGHT,     /* as many as there are disks */
	POD_EXCESS,    /* comes when those have all disks */
	POD_NO_TYPE,   /* a type of storage that no node has */
	POD_LEFTOVER,  /* an earlier pod of its name, with a smaller claim, left its reservation behind */
	POD_SCRATCH,   /* two logical volumes on disks that aren't volume groups yet */
	POD_NO_GROUP,  /* a storage group that no disk belongs to */
	POD_DISK,
	POD_FLASH,
	POD_BULK, /* three volumes of three types */
	POD_KIND_COUNT,
};

struct pod_volume {
	char claim[POD_CLAIM_BYTES];
	enum storage_type type; /* of its StorageClass */
	int64_t size_bytes;
	const char *group; /* storage group; "" for none */
	bool ephemeral;    /* the claim is made for the pod, and named POD-VOLUME */
};

struct pod_plan {
	char name[POD_NAME_BYTES];
	enum pod_kind kind;
	bool fits;
	uint64_t start_ns;      /* when it comes, since the start of the run */
	bool after_tight;       /* … but not before all tight pods are bound */
	uint64_t again_ns;      /* POD_REBORN: when it is made again */
	int64_t too_large_size; /* POD_REBORN: of its first claim */
	struct pod_volume volumes[POD_VOLUMES_MAX];
	unsigned volume_count;
};

/* An AvailableCapacity, and the disk or the volume group below it. */
struct drive_plan {
	unsigned node;
	enum storage_type type; /* of a volume group, if it is one already */
	int64_t size_bytes;
	const char *group;
	bool tainted;
	bool leftover; /* what the reservation of POD_LEFTOVER is for */
};

struct pod_workload_options {
	uint64_t seed;
	unsigned pods;
	unsigned nodes;
	uint64_t duration_ns; /* 0: endless */
	double speed;
};

struct pod_workload {
	struct pod_workload_options options;
	uint64_t settle_ns; /* within this a pod that fits must be bound */
	struct drive_plan *drives;
	size_t drive_count;
	unsigned pod_count;
	struct pod_plan pods[]; /* of options.pods */
};

/* The ranges of the options are the caller's to check. Fails without memory only. */
struct pod_workload *pod_workload_create(const struct pod_workload_options *options, struct error *err);
void pod_workload_destroy(struct pod_workload *workload); /* NULL is fine */

/* "pair", "too-large", … */
const char *pod_kind_name(enum pod_kind kind);
/* "node-a" for 0. */
void pod_node_name(char name[POD_NODE_BYTES], unsigned node);
/* "bm-hdd" for HDD and so on. */
const char *pod_class_name(enum storage_type type);

#endif
