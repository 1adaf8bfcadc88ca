/*
 * The objects that the control plane makes itself: a VirtualMachine as it looks in a real cluster, with much that the agent doesn't read, and a
 * scheduler pod (spec surroundings 6).
 */
#ifndef BALLAST_SANDBOX_CONTROL_PLANE_OBJECTS_H
#define BALLAST_SANDBOX_CONTROL_PLANE_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "codec/json_tree.h"
#include "sandbox/control_plane.h"

#define CONTROL_PLANE_SCHEDULER "autoscale-scheduler"

/* Without status. */
bool control_plane_make_vm(const struct control_plane_vm *vm, int64_t wall_ns, struct arena *arena,
                           struct json_node **ret_root, struct error *err);
/* The status of a VM that runs already; to be set in root. */
bool control_plane_set_vm_status(struct json_node *root, const struct control_plane_vm *vm, const char *pod_name,
                                 int64_t wall_ns, struct arena *arena, struct error *err);
bool control_plane_make_scheduler_pod(const char *scheduler_name, const char *pod_name, const char *ip,
                                      const char *node, int64_t wall_ns, struct arena *arena,
                                      struct json_node **ret_root, struct error *err);
/* Sets the status of the Ready condition, which is added if it isn't there. */
bool control_plane_set_ready(struct json_node *pod, bool ready, int64_t wall_ns, struct arena *arena,
                             struct error *err);

/* What the VM has plugged at the beginning. */
uint32_t control_plane_first_cpu_milli(const struct control_plane_vm *vm);
uint64_t control_plane_first_memory(const struct control_plane_vm *vm);

#endif
