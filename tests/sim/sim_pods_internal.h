/*
 * What the files of the storage side share: sim_pods.c makes it, sim_pods_lives.c lets pods come and go, sim_pods_disks.c
 * gives back what deleted pods used, sim_pods_faults.c has its misfortunes, sim_pods_checks.c its invariants.
 */
#ifndef BALLAST_TESTS_SIM_SIM_PODS_INTERNAL_H
#define BALLAST_TESTS_SIM_SIM_PODS_INTERNAL_H

#include "sandbox/capacity_watch.h"
#include "sandbox/faults.h"
#include "sandbox/kube_scheduler.h"
#include "sandbox/pod_workload.h"
#include "sandbox/reservation_controller.h"
#include "sandbox/volume_provisioner.h"
#include "sim_pods.h"

enum {
	SIM_VARIANTS = 4, /* of each pod's sizes */
	SIM_DRIVES_AWAY = 4,
	SIM_DRIVE_BYTES = 2048,
	SIM_PODS_RECOVER_S = 75, /* after the last fault reservations of pods that are gone have been swept */
	SIM_PODS_SWEEP_S = 65,
};

/* A pod of the workload, in its present life or between two. */
struct sim_pod {
	bool exists;
	bool too_large; /* POD_REBORN: it asks for more than there is */
	const struct pod_plan *plan;
	uint64_t created_ns, deleted_ns;
	uint64_t known_ns; /* see struct sim_asked */
	bool bound;
	bool ever_bound; /* a claim of its, in this life or an earlier one */
	bool unchecked;  /* the extender was not asked about the node that it got */
	uint64_t bound_ns, waited_ns;
	char node[KUBE_SCHEDULER_NAME_BYTES];
};

/* An AvailableCapacity that was taken away. */
struct sim_drive_away {
	bool away;
	char text[SIM_DRIVE_BYTES];
};

struct sim_pods {
	struct simulation *simulation;
	struct sim_pods_mode mode;
	struct pod_workload *variants[SIM_VARIANTS]; /* of the same pods, with other sizes; the first has the disks */
	struct loop *api_loop, *scheduler_loop, *controller_loop;
	struct sim_api api;
	struct object_store *store;
	struct capacity_watch *watch;
	struct object_observer observer; /* of claims */
	struct sim_answers *answers;
	struct kube_scheduler *scheduler;          /* NULL: away */
	struct reservation_controller *controller; /* likewise … */
	struct volume_provisioner *provisioner;    /* … with it */
	double controller_speed;
	struct faults faults;
	uint64_t scheduler_back_ns, controller_back_ns;
	uint64_t meddle_until_ns, meddled_ns; /* somebody writes to all reservations all the time */
	uint64_t last_deletion_ns;
	uint64_t changed_ns;           /* claims or volumes, by the simulation itself */
	const struct sim_pod *hasty;   /* a volume of its was made just now, and its reservation is about to get lost */
	const struct sim_pod *curious; /* likewise, and somebody is about to ask for it */
	struct sim_drive_away drives[SIM_DRIVES_AWAY];
	char token[48];
	struct sim_pods_counts counts;
	unsigned pod_count;
	struct sim_pod pods[];
};

bool sim_pod_fits(const struct sim_pod *pod);
/* The world is as the extender knows it, or must know it: nothing has gone wrong for SIM_KNOWN_S. */
bool sim_pods_is_known(const struct sim_pods *pods, uint64_t since_ns);

/* ---- sim_pods.c ---- */

bool sim_pods_start_scheduler(struct sim_pods *pods, struct error *err);
void sim_pods_stop_scheduler(struct sim_pods *pods, enum sim_crash how);
bool sim_pods_start_controller(struct sim_pods *pods, double speed, struct error *err);
void sim_pods_stop_controller(struct sim_pods *pods);

/* ---- sim_pods_lives.c ---- */

void sim_pods_begin_phase(void *context, struct simulation *simulation, unsigned phase);
void sim_pods_live(struct sim_pods *pods);
void sim_pods_delete(struct sim_pods *pods, struct sim_pod *pod);
/* Of the object store: which claims get bound. */
void sim_pods_on_change(void *context, const struct object_change *change);
/* Of the stand-in scheduler. */
void sim_pods_on_bound(void *context, struct slice name_space, struct slice name, const char *node);
void sim_pods_on_unschedulable(void *context, struct slice name_space, struct slice name, const char *why);
/* Of sim_answers_handler. */
bool sim_pods_asked_of(void *context, struct slice name, struct sim_asked *ret_asked);
struct sim_pod *sim_pods_find(struct sim_pods *pods, struct slice name);

/* ---- sim_pods_disks.c ---- */

/* Volumes whose claims are gone go as well, some of them now, and give back what they used. */
void sim_pods_release_volumes(struct sim_pods *pods);
/* A disk that nobody uses isn't there any more. */
void sim_pods_take_drive(struct sim_pods *pods, struct rng *rng);
void sim_pods_bring_drives_back(struct sim_pods *pods);
/* Some disk is tainted, or all are fine. */
void sim_pods_taint(struct sim_pods *pods, struct rng *rng);
void sim_pods_untaint(struct sim_pods *pods);

/* ---- sim_pods_faults.c ---- */

extern const char *const SIM_PODS_MISFORTUNES[];
void sim_pods_strike(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng);
void sim_pods_calm(void *context, struct simulation *simulation);
/* What has been away for its time comes back; who meddles meddles. */
void sim_pods_go_on(struct sim_pods *pods);

/* ---- sim_pods_checks.c ---- */

void sim_pods_check(void *context, struct simulation *simulation);
void sim_pods_check_second(void *context, struct simulation *simulation);
void sim_pods_check_settled(void *context, struct simulation *simulation);

#endif
