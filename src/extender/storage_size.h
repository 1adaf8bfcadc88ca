/*
 * Sizes of volumes as people write them, in whole bytes.
 */
#ifndef BALLAST_EXTENDER_STORAGE_SIZE_H
#define BALLAST_EXTENDER_STORAGE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

/*
 * A raw JSON value that holds a Kubernetes quantity (storage_resource_requests.storage): a string or a number; empty or
 * null is 0. Fractions are rounded away from zero, amounts beyond int64 saturate (spec extender G11). ERROR_SYNTAX.
 */
bool storage_size_from_quantity(struct slice raw, int64_t *ret_bytes, struct error *err);

/*
 * An inline volume's `size` attribute, which is no quantity: a decimal number, blanks, a unit of powers of 1024 in any
 * letter case (spec extender L2). Saturates. False if it can't be read.
 */
bool storage_size_from_inline(struct slice text, int64_t *ret_bytes);

#endif
