/*
 * The sandbox's control plane: a simulated Kubernetes API server (HTTPS, bearer tokens, list, watch, create, update, patch, delete) over an object
 * store, and the NeonVM controller and webhook behind it (spec surroundings sections 3 and 5).
 *
 * The rest of the sandbox adds VMs, pods and other objects, is told when a VM was patched or its guest was resized, and reads counters. It never
 * looks at what the agent says of itself. In-process peers (a reservation controller, a scheduler) may work on the object store directly.
 *
 * VMs are known by their names alone: no two in the sandbox have the same. Functions that take one answer false, with *err where there is
 * one, if there is no such VM.
 */
#ifndef BALLAST_SANDBOX_CONTROL_PLANE_H
#define BALLAST_SANDBOX_CONTROL_PLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "net/address.h"
#include "net/loop.h"
#include "sandbox/api_access.h"
#include "sandbox/api_server.h"
#include "sandbox/object_store.h"

struct control_plane;

/* How a VM begins. Text is copied. */
struct control_plane_vm {
	const char *name_space;
	const char *name;
	const char *node;
	const char *pod_name; /* NULL: a random one, as the original makes it */
	const char *pod_ip;
	const char *endpoint_id;    /* label neon/endpoint-id, or NULL */
	const char *project_id;     /* label neon/project-id, or NULL */
	const char *scheduler_name; /* NULL: "autoscale-scheduler" */
	bool autoscaling;           /* label autoscaling.neon.tech/enabled */
	/*
	 * Begins without a status, and with nothing plugged: started from Pending as a new VM is. Otherwise it runs already, and pod_name and what
	 * follows slot_bytes apart from the annotations has a meaning.
	 */
	bool starts;
	uint32_t cpu_min_milli, cpu_max_milli, cpu_use_milli;
	uint16_t slots_min, slots_max, slots_use;
	uint64_t slot_bytes;
	const char *bounds_annotation; /* JSON, or NULL */
	const char *config_annotation;
	/* A VM half-scaled by an earlier agent: spec.targetRevision and status.currentRevision (values 0: absent); pending: spec.use differs from what
	 * is plugged, and the controller goes on scaling. */
	int64_t target_revision, current_revision;
	uint64_t target_flags, current_flags;
	uint32_t plugged_cpu_milli; /* 0: as used */
	uint16_t plugged_slots;     /* 0: as used */
};

enum { CONTROL_PLANE_PHASE_BYTES = 16 };

/* What is true of a VM now. */
struct control_plane_vm_state {
	uint32_t cpu_use_milli; /* spec */
	uint16_t slots_use;
	uint32_t cpu_plugged_milli; /* the guest has; status may be a pass behind */
	uint64_t memory_plugged_bytes;
	bool scaling; /* phase Scaling */
	char phase[CONTROL_PLANE_PHASE_BYTES];
	int64_t target_revision, current_revision;
	unsigned restarts;
	unsigned patches;         /* accepted patches that changed cpus.use or memorySlots.use */
	unsigned refused_patches; /* webhook or schema */
};

/* Each may be NULL. Handlers may call anything below but control_plane_destroy. Texts are valid during the call. */
struct control_plane_handler {
	/* An accepted patch changed the wanted size. Comes after the answer. */
	void (*on_patched)(void *context, const char *name, uint32_t old_cpu_milli, uint16_t old_slots,
	                   uint32_t new_cpu_milli, uint16_t new_slots);
	/* The guest has other resources than before; settled: phase is Running, and they are those of the spec. */
	void (*on_resized)(void *context, const char *name, uint32_t cpu_milli, uint64_t memory_bytes, bool settled);
	void (*on_phase)(void *context, const char *name, const char *phase);
};

struct control_plane_options {
	struct address address; /* port 0: a free one */
	const char
		*token; /* the agent's bearer token; it has the rights of the agent as deployed (spec protocols 9.4) */
	const char *user;              /* "system:serviceaccount:kube-system:autoscaler-agent" for error texts */
	bool late_2023;                /* the NeonVM controller is of that time */
	double speed;                  /* divides the typical times of the controller */
	uint64_t bookmark_interval_ns; /* 0: a minute */
	bool plain;                    /* HTTP without TLS; there is no CA then */
};

struct control_plane_counters {
	unsigned lists, watches, patches; /* answered with 200 */
	unsigned unauthorized;            /* 401, and 403 for want of rights */
	unsigned rejected;                /* everything else that was refused */
};

/* Makes its CA and certificate at start. Everything runs on the loop. */
struct control_plane *control_plane_start(struct loop *loop, const struct control_plane_options *options,
                                          const struct control_plane_handler *handler, void *context,
                                          struct error *err);
void control_plane_destroy(struct control_plane *plane); /* NULL is fine */
bool control_plane_address(const struct control_plane *plane, struct address *ret_address);
struct slice control_plane_ca_pem(const struct control_plane *plane); /* valid as long as the plane */
struct control_plane_counters control_plane_counters(const struct control_plane *plane);
/* Another token with rights of its own (rules must outlive the plane), or an end to one. */
bool control_plane_grant(struct control_plane *plane, const char *token, const char *user, const struct api_rule *rules,
                         size_t rule_count, struct error *err);
bool control_plane_revoke(struct control_plane *plane, const char *token);

/* ---- VMs ---- */

bool control_plane_add_vm(struct control_plane *plane, const struct control_plane_vm *vm, struct error *err);
bool control_plane_vm_state(const struct control_plane *plane, const char *name,
                            struct control_plane_vm_state *ret_state);
/* Writes a VM's annotation, as the scheduler plugin does (surroundings 1.4.1). An empty value with data NULL removes it. */
bool control_plane_annotate_vm(struct control_plane *plane, const char *name, struct slice key, struct slice value,
                               struct error *err);
/* Its runner pod fails; the VM starts anew, with the same address (surroundings 3.6.2). */
bool control_plane_restart_vm(struct control_plane *plane, const char *name, struct error *err);
bool control_plane_delete_vm(struct control_plane *plane, const char *name, struct error *err);
/* Starts a live migration as soon as the VM is Running (3.6.3). */
bool control_plane_migrate_vm(struct control_plane *plane, const char *name, const char *node, const char *pod_ip,
                              struct error *err);
/* How the guest gives memory back: bytes_per_s in unscaled time (0: at once), and never below floor_bytes (0: as far as asked). */
bool control_plane_set_shrink(struct control_plane *plane, const char *name, uint64_t floor_bytes,
                              uint64_t bytes_per_s);
/* While QEMU can't be reached, the controller does and writes nothing (3.4.6). */
bool control_plane_set_vm_reachable(struct control_plane *plane, const char *name, bool reachable);

/* ---- pods and other objects ---- */

/* A ready scheduler pod (label name=scheduler_name) in kube-system with that IP. */
bool control_plane_add_scheduler_pod(struct control_plane *plane, const char *scheduler_name, const char *pod_name,
                                     const char *ip, const char *node, struct error *err);
/* Flips the Ready condition of a pod. */
bool control_plane_set_pod_ready(struct control_plane *plane, const char *name_space, const char *name, bool ready,
                                 struct error *err);
/* Creates the object, of any kind that the API server knows, or replaces it whole, status included. json says apiVersion, kind and names. */
bool control_plane_put(struct control_plane *plane, struct slice json, struct error *err);
/* Removes an object, or marks it as deleted if it has finalizers. name_space "" for kinds without. */
bool control_plane_remove(struct control_plane *plane, enum resource resource, const char *name_space, const char *name,
                          struct error *err);
struct object_store *control_plane_store(struct control_plane *plane);

/* ---- faults ---- */

/* An outage: connections are cut and new ones refused until it is available again, on the same port. Objects stay. */
void control_plane_set_available(struct control_plane *plane, bool available);
/* Makes all resource versions up to now expire, so that the next watch from an old one gets 410. */
void control_plane_compact(struct control_plane *plane);
/* How that is said; at first API_EXPIRY_CACHE. */
void control_plane_set_expiry(struct control_plane *plane, enum api_expiry expiry);
/* The next count requests that aren't watches get 429. */
void control_plane_refuse_next(struct control_plane *plane, unsigned count);
/* The next count requests, watches too, get this status: 409, 410, 500, 503 or 504. */
void control_plane_fail_next(struct control_plane *plane, unsigned count, int status);
/* Requests meet these faults from now on; they must outlive the plane. NULL: none. */
void control_plane_set_faults(struct control_plane *plane, struct faults *faults);
/* Ends all watches: cleanly as by a timeout, or by cutting their connections. */
void control_plane_end_watches(struct control_plane *plane, bool cleanly);
/* While the webhook can't be reached, writes of VMs get 500. */
void control_plane_set_webhook_available(struct control_plane *plane, bool available);

#endif
