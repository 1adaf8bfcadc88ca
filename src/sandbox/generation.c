#include "sandbox/generation.h"

#include <string.h>

static const char LATE_2023_PLUGIN[] = "v0.19";

const char *sandbox_generation_name(const struct sandbox_generation *generation)
{
	return generation->late_2023 ? "A" : "B";
}

const struct plugin_release *sandbox_generation_plugin(const struct sandbox_generation *generation)
{
	if (generation->plugin != NULL)
		return generation->plugin;
	return generation->late_2023 ? plugin_release_find(LATE_2023_PLUGIN) : plugin_release_newest();
}

uint32_t sandbox_generation_version(const struct sandbox_generation *generation)
{
	enum { VERSION_2_0 = 3 };

	return generation->late_2023 ? VERSION_2_0 : sandbox_generation_plugin(generation)->best;
}

const char *sandbox_generation_prefix(const struct sandbox_generation *generation)
{
	return generation->metrics_prefix != NULL ? generation->metrics_prefix : "host_";
}

static bool read_plugin(struct sandbox_generation *generation, const char *name, struct error *err)
{
	const struct plugin_release *release = plugin_release_find(name);

	if (release == NULL)
		return error_set(
			err, ERROR_SYNTAX,
			"--plugin-protocol: \"%s\" is none of v0.19, v0.21, v0.22, v0.25, v0.27, v0.41, newest", name);
	/* Late 2023's configuration names no compute unit, so the agent can't speak a version that needs one. */
	if (generation->late_2023 && release->unit_rule == PLUGIN_UNIT_ALWAYS)
		return error_set(
			err, ERROR_REFUSED,
			"--plugin-protocol %s: a plugin of that time (%s) refuses requests without a compute unit, "
			"and an agent of generation A learns its compute unit from the plugin",
			name, release->others);
	generation->plugin = release;
	generation->negotiates = true;
	return true;
}

static bool read_prefix(struct sandbox_generation *generation, const char *prefix, struct error *err)
{
	if (strcmp(prefix, "host_") != 0 && strcmp(prefix, "node_") != 0)
		return error_set(err, ERROR_SYNTAX, "--metrics-prefix: \"%s\" is none of host_, node_", prefix);
	if (!generation->late_2023 && strcmp(prefix, "host_") != 0)
		return error_set(
			err, ERROR_REFUSED,
			"--metrics-prefix %s: an agent of generation B knows metrics that begin with host_ only",
			prefix);
	generation->metrics_prefix = prefix;
	return true;
}

bool sandbox_generation_read(struct sandbox_generation *generation, const char *plugin_protocol,
                             const char *metrics_prefix, struct error *err)
{
	return (plugin_protocol == NULL || read_plugin(generation, plugin_protocol, err)) &&
	       (metrics_prefix == NULL || read_prefix(generation, metrics_prefix, err));
}
