/*
 * What the VirtualMachine's schema does to a write (spec surroundings 3.1 step 2, 3.2.1, 5.6): fills in defaults, and refuses with 422 what
 * isn't of its type or range.
 */
#ifndef BALLAST_SANDBOX_VM_SCHEMA_H
#define BALLAST_SANDBOX_VM_SCHEMA_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "codec/json_tree.h"
#include "sandbox/api_errors.h"

enum { VM_SLOTS_MIN = 1, VM_SLOTS_MAX = 512 }; /* spec protocols 9.2.3 */

bool vm_schema_set_defaults(struct json_node *root, struct arena *arena, struct error *err);
/* False with *ret_error. */
bool vm_schema_check(const struct json_node *root, struct arena *arena, struct api_error *ret_error);

#endif
