#include "agent/plugin_protocol.h"

#include <stddef.h>

static const struct {
	const char *name;
	enum plugin_protocol protocol;
} NAMES[] = {
	{ "auto", PLUGIN_PROTOCOL_AUTO }, { "2.0", PLUGIN_PROTOCOL_2_0 }, { "2.1", PLUGIN_PROTOCOL_2_1 },
	{ "3.0", PLUGIN_PROTOCOL_3_0 },   { "4.0", PLUGIN_PROTOCOL_4_0 }, { "5.0", PLUGIN_PROTOCOL_5_0 },
};

enum { NAME_COUNT = sizeof NAMES / sizeof NAMES[0] };

const char *plugin_protocol_name(enum plugin_protocol protocol)
{
	for (size_t i = 0; i < NAME_COUNT; i++) {
		if (NAMES[i].protocol == protocol)
			return NAMES[i].name;
	}
	return "?";
}

bool plugin_protocol_read(struct slice text, enum plugin_protocol *ret_protocol)
{
	for (size_t i = 0; i < NAME_COUNT; i++) {
		if (slice_equal_text(text, NAMES[i].name)) {
			*ret_protocol = NAMES[i].protocol;
			return true;
		}
	}
	return false;
}
