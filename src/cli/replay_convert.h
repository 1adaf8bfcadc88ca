/*
 * Between the messages of replay and the structs of the core. Instants of replay count from 2000-01-01T00:00:00Z.
 */
#ifndef BALLAST_CLI_REPLAY_CONVERT_H
#define BALLAST_CLI_REPLAY_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/core.h"
#include "base/error.h"
#include "gen/replay.gen.h"

/* ERROR_LIMIT beyond 2^60 ns either way (spec replay 2). */
bool replay_read_instant(int64_t at_ns, int64_t *ret_instant_ns, struct error *err);
bool replay_read_revision(const struct replay_revision *revision, struct revision_with_time *ret_revision,
                          struct error *err);
bool replay_read_vm(const struct replay_vm *vm, struct vm_info *ret_vm, struct error *err);
struct core_config replay_read_config(const struct replay_config *config);
struct resources replay_read_resources(struct replay_resources amount);
struct system_metrics replay_read_system_metrics(const struct replay_system_metrics *metrics);
/* The message has been checked to have at most LFC_WINDOWS_MAX windows. */
void replay_read_lfc_metrics(const struct replay_lfc_metrics *metrics, struct lfc_metrics *ret_metrics);

int64_t replay_write_instant(int64_t instant_ns);
struct replay_resources replay_write_resources(struct resources amount);
struct replay_actions replay_write_actions(const struct core_actions *actions);
struct replay_system_metrics replay_write_system_metrics(const struct system_metrics *metrics);
/* Points at the windows of metrics. */
struct replay_lfc_metrics replay_write_lfc_metrics(struct lfc_metrics *metrics);

#endif
