/*
 * What runners and their supervisor tell Kubernetes of, in words: see kube_event.h. All of these do nothing when
 * nobody wants to know (runner_environment.kube_events is NULL).
 */
#ifndef BALLAST_AGENT_RUNNER_EVENTS_H
#define BALLAST_AGENT_RUNNER_EVENTS_H

#include "agent/core/core.h"
#include "agent/runner.h"
#include "agent/runner_status.h"
#include "base/error.h"

/* A patch has ended; err NULL: well. */
void runner_events_tell_patch(const struct runner_environment *environment, const struct vm_info *vm,
                              const struct core_change_request *request, const struct error *err);
/* The scheduler plugin's answer; told only if it is less than it was asked for. */
void runner_events_tell_permit(const struct runner_environment *environment, const struct vm_info *vm,
                               const struct core_plugin_request *request, struct resources permit);
void runner_events_tell_downscale_denied(const struct runner_environment *environment, const struct vm_info *vm,
                                         const struct core_change_request *request);
/* The connection to the vm-monitor stands, or doesn't; told when a connection that had stood is lost, and is back. */
void runner_events_tell_monitor(const struct runner_environment *environment, struct runner_status *status,
                                bool connected);
void runner_events_tell_restart(const struct runner_environment *environment, const struct runner_status *status);
/* Told when it has become stuck since the last call, or isn't any more. */
void runner_events_tell_state(const struct runner_environment *environment, struct runner_status *status);

#endif
