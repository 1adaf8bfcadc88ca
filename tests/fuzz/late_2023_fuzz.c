/*
 * Any bytes as what peers of an agent of late 2023 send: a page read by lines, a scheduler plugin's refusal, and its reply.
 * What is read makes sense, what isn't has an explanation, and finding out a version ends.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/limits.h"
#include "agent/plugin_messages.h"
#include "agent/plugin_versions.h"
#include "agent/scrape_lines.h"

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool is_usable(double value)
{
	return isfinite(value) && value >= 0;
}

static void read_page(struct slice page)
{
	static const char *const PREFIXES[] = { "host_", "node_", "" };

	for (size_t i = 0; i < sizeof PREFIXES / sizeof PREFIXES[0]; i++) {
		struct system_metrics metrics;
		struct error err = { .code = ERROR_NONE };

		if (scrape_lines_read(page, PREFIXES[i], &metrics, &err))
			require(is_usable(metrics.load_average_1_min) && is_usable(metrics.load_average_5_min) &&
			        is_usable(metrics.memory_usage_bytes));
		else
			require(err.text[0] != '\0');
	}
}

/* The plugin says the same to everything. */
static void be_refused(struct slice body)
{
	struct plugin_versions versions;
	enum plugin_protocol version;
	char wants[PLUGIN_VERSION_TEXT_BYTES];
	int sends = 1;

	plugin_versions_init(&versions, PLUGIN_PROTOCOL_AUTO, true);
	version = plugin_versions_current(&versions, "uid");
	while (plugin_versions_refused(&versions, "uid", version, body, &version)) {
		require(version >= PLUGIN_PROTOCOL_2_0 && version <= PLUGIN_PROTOCOL_5_0);
		require(plugin_versions_current(&versions, "uid") == version);
		require(++sends <= PLUGIN_VERSIONS_SENDS);
	}
	(void)plugin_versions_read_refusal(body, wants);
}

static void read_reply(struct slice body)
{
	for (enum plugin_protocol version = PLUGIN_PROTOCOL_2_0; version <= PLUGIN_PROTOCOL_5_0; version++) {
		const struct plugin_message_context context = { .version = version, .slot_bytes = 1 << 30 };
		struct plugin_reply reply;
		struct buffer form;
		struct error err = { .code = ERROR_NONE };

		buffer_init(&form, AGENT_SCHEDULER_REPLY_BYTES);
		if (plugin_reply_read(&context, body, &reply, &form, &err))
			require(form.length > 0 &&
			        (version <= PLUGIN_PROTOCOL_2_1 || reply.compute_unit.mem_bytes == 0));
		else
			require(err.text[0] != '\0');
		buffer_destroy(&form);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = slice_from(data, size);

	if (size > AGENT_SCHEDULER_REPLY_BYTES)
		return 0;
	read_page(text);
	be_refused(text);
	read_reply(text);
	return 0;
}
