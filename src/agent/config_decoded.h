/*
 * From a configuration file's own shape, and from annotations, to what the agent works with.
 */
#ifndef BALLAST_AGENT_CONFIG_DECODED_H
#define BALLAST_AGENT_CONFIG_DECODED_H

#include "agent/config.h"
#include "agent/core/scaling_config.h"
#include "gen/agent_config.gen.h"
#include "gen/agent_config_a.gen.h"
#include "gen/scaling.gen.h"

/* Seconds of a file, at most AGENT_CONFIG_SECONDS_MAX. */
uint64_t config_decoded_nanoseconds(uint64_t seconds);
/* Of a file that was found to be valid; otherwise: for a file that doesn't say. */
enum plugin_protocol config_decoded_protocol(bool present, struct slice text, enum plugin_protocol otherwise);
/* Whether requests may have to be made in a version that counts memory in slots. */
bool config_decoded_says_slots(enum plugin_protocol protocol);

/* Of a configuration file, an annotation, or a line of replay. */
struct scaling_config config_decoded_scaling(const struct scaling_scaling_config *decoded);

/*
 * Everything of a file that was found to be valid, except the `json` of the result. Strings stay where the decoder put
 * them, but for the scheduler's name, of which the arena gets a copy that ends in NUL. False when memory is short.
 */
bool config_decoded_convert(const struct agent_config_config *decoded, struct arena *arena,
                            struct agent_config *ret_config, struct error *err);
bool config_decoded_convert_a(const struct agent_config_a_config *decoded, struct arena *arena,
                              struct agent_config *ret_config, struct error *err);

#endif
