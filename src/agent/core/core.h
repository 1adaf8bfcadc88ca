/*
 * The scaling core: one virtual machine's state, the events that change it, and the actions that follow (spec
 * agent-core).
 *
 * Pure: no clock, no sockets, no allocation. Every event is a function; the caller passes the time, then asks for the
 * actions. An action returned has no effect until the matching core_…_starting_request. The struct is copyable by value
 * and owns nothing.
 *
 * Instants are int64_t nanoseconds (see instant.h), "now" of the call. A function that takes an `err` may find what the
 * specification calls FAIL: it returns false with ERROR_INVARIANT, and the core must then be thrown away and made anew.
 */
#ifndef BALLAST_AGENT_CORE_CORE_H
#define BALLAST_AGENT_CORE_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/goal.h"
#include "agent/core/instant.h"
#include "agent/core/resources.h"
#include "agent/core/revision.h"
#include "agent/core/scaling_config.h"
#include "agent/core/vm_info.h"
#include "agent/core/vm_metrics.h"
#include "base/error.h"

/* Spec agent-core 1.6. Durations in nanoseconds. */
struct core_config {
	struct resources compute_unit;
	struct scaling_config default_scaling_config;
	int64_t neonvm_retry_wait_ns;
	int64_t plugin_request_tick_ns; /* the runner has already taken its random 0 … 99 ms off */
	int64_t plugin_retry_wait_ns;
	int64_t plugin_denied_retry_wait_ns;
	int64_t monitor_denied_downscale_cooldown_ns;
	int64_t monitor_requested_upscale_valid_period_ns;
	int64_t monitor_retry_wait_ns;
	/*
	 * A bound that what is in use has already passed counts as what is in use, instead of failing (spec README,
	 * decision 1). The agent sets it; replay doesn't, to stay comparable with the reference.
	 */
	bool clamp_instead_of_fail;

	/*
	 * What the agent of late 2023 decides otherwise (spec generations 3, G1 … G19). All zero: the newest one's way,
	 * which the rest of this header describes.
	 */
	bool compute_unit_from_plugin; /* G1, G2: compute_unit is unused; until a reply has one, use is left alone */
	bool whole_unit_parts;         /* G4, G19, 7: the memory goal is rounded down; no part wraps or isn't finite */
	bool no_metrics_keep;          /* G7: without metrics, use matters only when nothing else is wanted */
	bool downscale_at_once;        /* G12: one request straight to what is desired, instead of unit by unit */
	bool plugin_gate;              /* G14 … G16: the core knows whether there is a scheduler, and which */
	bool plugin_whole_slots;       /* the plugin is asked for whole memory slots, not for odd bytes (2.3) */
	bool capital_texts;            /* errors about replies begin with capitals (2.5) */
	int64_t monitor_downscale_follow_up_wait_ns; /* G11; 0: none */
};

enum core_latency { CORE_LATENCY_PLUGIN, CORE_LATENCY_MONITOR, CORE_LATENCY_NEONVM, CORE_LATENCY_SCALING };

/* What the info log "Calculated desired resources" carries (N-9). */
struct core_calculation {
	struct resources current;
	struct resources target;
	struct revision target_revision;
	bool has_lfc;
	struct goal_lfc_report lfc;
};

/* Any of them may be NULL. They must not call back into the core. */
struct core_callbacks {
	void *context;
	void (*warn)(void *context, const char *text); /* the texts of agent-core 4.7; text is a constant */
	void (*calculated)(void *context, const struct core_calculation *calculation);
	void (*latency)(void *context, enum core_latency kind, int64_t latency_ns, uint64_t flags);
	void (*actual_scaling)(void *context, int64_t now_ns, uint32_t current_cu, uint32_t target_cu);
	void (*hypothetical_scaling)(void *context, int64_t now_ns, uint32_t current_cu, uint32_t goal_cu,
	                             const struct goal_parts *parts);
};

struct core_plugin_state {
	bool alive; /* there is a scheduler; with plugin_gate only */
	bool ongoing_request;
	bool has_last_request; /* the most recently started one */
	int64_t last_request_at_ns;
	struct resources last_request;
	struct optional_instant last_failure_at;
	struct optional_resources permit; /* of the last accepted response */
	struct revision current_revision;
};

enum core_monitor_request { CORE_MONITOR_IDLE, CORE_MONITOR_DOWNSCALE, CORE_MONITOR_UPSCALE };

struct core_requested_upscale {
	bool present;
	bool cpu;
	bool memory;
	int64_t at_ns;
	struct resources base;
};

struct core_denied_downscale {
	bool present;
	int64_t at_ns;
	struct resources current;
	struct resources requested;
};

struct core_monitor_state {
	enum core_monitor_request ongoing;
	struct resources ongoing_requested; /* unless idle */
	struct core_requested_upscale requested_upscale;
	struct core_denied_downscale denied_downscale;
	struct optional_resources approved; /* present: the monitor is active */
	struct optional_instant downscale_failure_at;
	struct optional_instant upscale_failure_at;
	struct revision current_revision;
};

struct core_neonvm_state {
	struct optional_resources ongoing_requested;
	struct optional_instant request_failed_at;
	struct revision_with_time target_revision;
	struct revision current_revision;
};

/* Spec agent-core 2. Read it freely; change it through the functions below only. */
struct core {
	struct core_config config;
	struct core_callbacks callbacks;
	struct resources compute_unit; /* the configured one, or the last one learned; zero: not known yet (G2) */
	bool debug;                    /* no effect on behaviour */
	bool has_metrics;
	bool has_lfc_metrics;
	struct vm_info vm;
	struct core_plugin_state plugin;
	struct core_monitor_state monitor;
	struct core_neonvm_state neonvm;
	struct system_metrics metrics;
	struct revision target_revision;
	struct optional_resources last_desired;
	struct revision_source revision_source;
	struct lfc_metrics lfc_metrics;
};

/* Copies what it is given. The revision source starts at the VM's current revision, or 0; see core.revision_source. */
void core_init(struct core *ret_core, const struct core_config *config, const struct vm_info *vm,
               const struct core_callbacks *callbacks);

/* What the core believes to be in use: the VM's at core_init, then what NeonVM requests succeeded with. */
struct resources core_using(const struct core *core);
/* The defaults with the VM's overrides, as of now. */
struct scaling_config core_scaling_config(const struct core *core);

/* ---- events: spec agent-core 3 ---- */

/* E-1. The incoming `use` values are ignored. */
bool core_updated_vm(struct core *core, const struct vm_info *vm, struct error *err);
/*
 * What is in use isn't what the core believes, and that isn't a matter of time: somebody else changed it, or a request
 * that had been given up was carried out late. From now on that amount counts as in use. There must be no NeonVM request
 * under way. Not in the specification, where a core goes on with what it believes until it is made anew.
 */
bool core_correct_using(struct core *core, struct resources using, struct error *err);
void core_update_system_metrics(struct core *core, const struct system_metrics *metrics);
void core_update_lfc_metrics(struct core *core, const struct lfc_metrics *metrics);
void core_set_debug(struct core *core, bool enabled);

void core_plugin_starting_request(struct core *core, int64_t now_ns, struct resources resources);
/*
 * E-7. False with ERROR_REFUSED and the texts of E-7 when the permit isn't acceptable: it then counts as a failed
 * request, and the core lives on. False with ERROR_INVARIANT when no request was ever started.
 */
bool core_plugin_request_successful(struct core *core, int64_t now_ns, struct revision_with_time target_revision,
                                    struct resources permit, struct error *err);
/*
 * The same with the compute unit that the reply named, zero for none. With compute_unit_from_plugin it takes the place
 * of the last one; if it has a zero, or the permit isn't acceptable, neither is kept (generations 2.5).
 */
bool core_plugin_request_answered(struct core *core, int64_t now_ns, struct revision_with_time target_revision,
                                  struct resources permit, struct resources compute_unit, struct error *err);
void core_plugin_request_failed(struct core *core, int64_t now_ns);
/*
 * G14, G15, with plugin_gate only: another scheduler is the one to ask, or there is none. What was asked of the last
 * one is forgotten; permit and compute unit stay.
 */
void core_plugin_scheduler_changed(struct core *core, bool present);

void core_monitor_reset(struct core *core);
void core_monitor_active(struct core *core, bool active);
bool core_monitor_upscale_requested(struct core *core, int64_t now_ns, bool cpu, bool memory, struct error *err);
void core_monitor_starting_upscale_request(struct core *core, int64_t now_ns, struct resources resources);
bool core_monitor_upscale_request_successful(struct core *core, int64_t now_ns, struct error *err);
void core_monitor_upscale_request_failed(struct core *core, int64_t now_ns);
void core_monitor_starting_downscale_request(struct core *core, int64_t now_ns, struct resources resources);
bool core_monitor_downscale_request_allowed(struct core *core, int64_t now_ns,
                                            struct revision_with_time target_revision, struct error *err);
bool core_monitor_downscale_request_denied(struct core *core, int64_t now_ns, struct revision_with_time target_revision,
                                           struct error *err);
void core_monitor_downscale_request_failed(struct core *core, int64_t now_ns);

bool core_neonvm_starting_request(struct core *core, int64_t now_ns, struct resources resources, struct error *err);
bool core_neonvm_request_successful(struct core *core, int64_t now_ns, struct error *err);
void core_neonvm_request_failed(struct core *core, int64_t now_ns);

/* ---- decisions: spec agent-core 4 ---- */

struct core_plugin_request {
	struct optional_resources last_permit;
	struct resources target;
	bool has_metrics;
	float load_average_1_min; /* T-13 */
	float load_average_5_min; /* this and the next: for versions before 5.0 (generations 2.2) */
	float memory_usage_bytes;
	struct revision_with_time target_revision;
};

/* A NeonVM or monitor request. */
struct core_change_request {
	struct resources current;
	struct resources target;
	struct revision_with_time target_revision;
};

struct core_actions {
	bool has_wait;
	bool has_plugin_request;
	bool has_neonvm_request;
	bool has_monitor_upscale;
	bool has_monitor_downscale;
	int64_t wait_ns; /* > 0: ask again then, if nothing happened before */
	struct core_plugin_request plugin_request;
	struct core_change_request neonvm_request;
	struct core_change_request monitor_upscale;
	struct core_change_request monitor_downscale;
};

/* N-1. Changes the state: see agent-core, pitfall 1. */
bool core_next_actions(struct core *core, int64_t now_ns, struct core_actions *ret_actions, struct error *err);

/* The first step of core_next_actions, alone (4.2). */
struct core_desired {
	struct resources resources;
	bool upscale_affects; /* a requested upscale raised the result */
	bool denied_affects;  /* a denied downscale did */
	int64_t upscale_remaining_ns;
	int64_t denied_remaining_ns;
};

bool core_desired_resources(struct core *core, int64_t now_ns, struct core_desired *ret_desired, struct error *err);
/* N-10. False when there is nothing to wait for. has_monitor_downscale: whether the action set has one. */
bool core_desired_wait(const struct core *core, const struct core_desired *desired, bool has_monitor_downscale,
                       int64_t *ret_wait_ns);

#endif
