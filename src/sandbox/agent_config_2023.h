/*
 * The configuration of an agent of late 2023, for a sandbox of that time.
 */
#ifndef BALLAST_SANDBOX_AGENT_CONFIG_2023_H
#define BALLAST_SANDBOX_AGENT_CONFIG_2023_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "sandbox/generation.h"

/*
 * Appends it as JSON: the values as shipped (spec generations 1.2), all seconds divided by speed, rounded up, at least
 * 1. Without a compute unit. receiver: the address to which billing events go; NULL: without billing.
 */
bool agent_config_2023_write(double speed, const struct sandbox_generation *generation, const char *receiver,
                             struct buffer *out, struct error *err);

#endif
