/*
 * Versions of the scheduler plugin's protocol, and `scheduler.protocolVersion`, which chooses one (spec generations 2.1,
 * 2.7).
 */
#ifndef BALLAST_AGENT_PLUGIN_PROTOCOL_H
#define BALLAST_AGENT_PLUGIN_PROTOCOL_H

#include <stdbool.h>

#include "base/slice.h"

/* A version's value is its number on the wire ("protoVersion"). From 4.0 on, memory is in bytes instead of slots. */
enum plugin_protocol {
	PLUGIN_PROTOCOL_AUTO = 0, /* to be found out for each scheduler */
	PLUGIN_PROTOCOL_2_0 = 3,
	PLUGIN_PROTOCOL_2_1 = 4,
	PLUGIN_PROTOCOL_3_0 = 5,
	PLUGIN_PROTOCOL_4_0 = 6,
	PLUGIN_PROTOCOL_5_0 = 7,
};

/* How a configuration file writes it: "auto", "2.0"; static. */
const char *plugin_protocol_name(enum plugin_protocol protocol);
/* From a configuration file; false for anything that isn't one of the names. */
bool plugin_protocol_read(struct slice text, enum plugin_protocol *ret_protocol);

#endif
