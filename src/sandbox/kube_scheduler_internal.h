/*
 * What the parts of the stand-in scheduler share: kube_scheduler.c (the queue, and the course of an attempt), kube_scheduler_calls.c (the extender's
 * protocol), kube_scheduler_pod.c (pods, claims and nodes in the store).
 */
#ifndef BALLAST_SANDBOX_KUBE_SCHEDULER_INTERNAL_H
#define BALLAST_SANDBOX_KUBE_SCHEDULER_INTERNAL_H

#include "base/arena.h"
#include "net/http_client.h"
#include "sandbox/kube_scheduler.h"

enum scheduled_state {
	SCHEDULED_WAITING,    /* in the queue, until due */
	SCHEDULED_ATTEMPTING, /* the one at a time */
	SCHEDULED_BINDING,    /* has its node; volumes are being made */
	SCHEDULED_BOUND,
};

struct scheduled_pod {
	struct scheduled_pod *next;
	char name_space[KUBE_SCHEDULER_NAME_BYTES];
	char name[KUBE_SCHEDULER_NAME_BYTES];
	enum scheduled_state state;
	bool gone; /* deleted while it was being attempted */
	uint64_t due_ns;
	uint64_t bind_until_ns;
	unsigned failures; /* in a row */
	struct kube_scheduler_pod seen;
};

struct node_choice {
	struct slice name, text; /* text: the object */
	int64_t score;
};

/* An attempt under way. Everything lies in the arena. */
struct attempt {
	struct arena arena;
	struct scheduled_pod *pod; /* NULL: there is none */
	struct slice pod_text;
	struct node_choice *nodes; /* that are feasible so far */
	size_t node_count;
	struct http_exchange *exchange;
	uint64_t started_ns; /* of the exchange */
};

struct kube_scheduler {
	struct loop *loop;
	struct kube_scheduler_options options;
	struct kube_scheduler_handler handler;
	void *context;
	struct object_observer observer;
	struct http_client *client;
	struct scheduled_pod *pods;
	struct attempt attempt;
	struct loop_timer timer; /* to the next pod that is due */
	struct loop_task task;   /* looks at pods that are being bound */
	struct kube_scheduler_counters counters;
};

/* ---- kube_scheduler_pod.c ---- */

enum claims_state {
	CLAIMS_BOUND,
	CLAIMS_PENDING, /* all have the node they need */
	CLAIMS_FAILED,  /* one lost its node, or is gone */
};

/* Reads the pod and the nodes it may go to. False with a sentence why it can't be tried. */
bool scheduler_pod_begin(const struct kube_scheduler *scheduler, struct attempt *attempt, struct error *err);
/* Gives the pod's claims their node (U11). */
bool scheduler_pod_select_node(struct kube_scheduler *scheduler, const struct scheduled_pod *pod, struct error *err);
enum claims_state scheduler_pod_claims(struct kube_scheduler *scheduler, const struct scheduled_pod *pod);
/* Takes the node from claims that aren't bound. */
void scheduler_pod_unselect_node(struct kube_scheduler *scheduler, const struct scheduled_pod *pod);
/* Binds it, and it runs at once. */
bool scheduler_pod_bind(struct kube_scheduler *scheduler, const struct scheduled_pod *pod, struct error *err);
/* An event of the pod; one that repeats is counted. */
void scheduler_pod_tell(struct kube_scheduler *scheduler, const struct scheduled_pod *pod, const char *reason,
                        const char *message);

/* ---- kube_scheduler_calls.c ---- */

/* Both go on with scheduler_filtered or scheduler_prioritized, later. */
bool scheduler_call_filter(struct kube_scheduler *scheduler, struct error *err);
bool scheduler_call_prioritize(struct kube_scheduler *scheduler, struct error *err);

/* ---- kube_scheduler.c ---- */

/* The attempt's nodes are those that the extender left; failure not NULL: the call failed, and they are as they were. */
void scheduler_filtered(struct kube_scheduler *scheduler, const struct error *failure);
/* Scores are in the nodes, if there are any. */
void scheduler_prioritized(struct kube_scheduler *scheduler);

#endif
