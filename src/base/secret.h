/*
 * What tokens and keys need that other texts don't.
 */
#ifndef BALLAST_BASE_SECRET_H
#define BALLAST_BASE_SECRET_H

#include <stdbool.h>

#include "base/slice.h"

/* As slice_equal, in a time that depends on the lengths alone. */
bool secret_equal(struct slice left, struct slice right);

#endif
