#include "sandbox/faults.h"

#include "base/clock.h"

struct fault {
	const char *name;
	const char *what;
	enum fault_target target;
	/* Of a thousand requests; or, of those that come by themselves, seconds between two, on average. */
	unsigned light, heavy;
};

static const struct fault TABLE[FAULT_COUNT] = {
	[FAULT_API_ERROR] = { "api-error", "the Kubernetes API answers 500", FAULTS_OF_API_READS, 5, 50 },
	[FAULT_API_TOO_MANY] = { "api-too-many", "the Kubernetes API answers 429", FAULTS_OF_API_READS, 10, 50 },
	[FAULT_API_CONFLICT] = { "api-conflict", "an update or patch is answered 409", FAULTS_OF_API_WRITES, 20, 80 },
	[FAULT_API_SLOW] = { "api-slow", "a request takes 0.2 to 0.8 s", FAULTS_OF_API_READS, 20, 80 },
	[FAULT_API_CLOSED] = { "api-closed", "the connection is reset instead of an answer", FAULTS_OF_API_READS, 5,
	                       40 },
	[FAULT_API_WATCHES_CUT] = { "api-watches-cut", "all watches are cut", FAULTS_OF_TIME, 10, 4 },
	[FAULT_API_EXPIRED] = { "api-expired", "likewise, and they must list anew (410)", FAULTS_OF_TIME, 20, 8 },
	[FAULT_PLUGIN_ERROR] = { "plugin-error", "the scheduler plugin answers 500", FAULTS_OF_PLUGIN, 10, 80 },
	[FAULT_PLUGIN_SLOW] = { "plugin-slow", "a request takes 0.2 to 0.8 s longer", FAULTS_OF_PLUGIN, 20, 80 },
	[FAULT_PLUGIN_CLOSED] = { "plugin-closed", "the connection is reset instead of an answer", FAULTS_OF_PLUGIN, 10,
	                          50 },
	[FAULT_MONITOR_CLOSED] = { "monitor-closed", "a vm-monitor starts anew", FAULTS_OF_TIME, 15, 3 },
	[FAULT_MONITOR_SLOW] = { "monitor-slow", "a vm-monitor's work takes 0.2 to 0.8 s", FAULTS_OF_TIME, 10, 3 },
	[FAULT_SCHEDULER_GIVES_UP] = { "scheduler-gives-up", "kube-scheduler hangs up within 40 ms",
	                               FAULTS_OF_SCHEDULER, 20, 100 },
	[FAULT_EXTENDER_KILLED] = { "extender-killed", "the extender dies, and starts anew", FAULTS_OF_TIME, 0, 10 },
};

enum { THOUSAND = 1000 };

static unsigned rate(const struct faults *faults, enum fault_kind kind)
{
	if (faults->level == FAULTS_NONE)
		return 0;
	return faults->level == FAULTS_LIGHT ? TABLE[kind].light : TABLE[kind].heavy;
}

void faults_init(struct faults *faults, enum fault_level level, uint64_t seed)
{
	*faults = (struct faults){ .level = level };
	rng_seed(&faults->rng, seed);
}

/* A write may meet whatever a read may. */
static bool concerns(enum fault_kind kind, enum fault_target target)
{
	return TABLE[kind].target == target ||
	       (target == FAULTS_OF_API_WRITES && TABLE[kind].target == FAULTS_OF_API_READS);
}

enum fault_kind faults_draw(struct faults *faults, enum fault_target target)
{
	uint64_t drawn, passed = 0;

	if (faults->level == FAULTS_NONE || faults->suspended || target == FAULTS_OF_TIME)
		return FAULT_NONE;
	drawn = rng_between(&faults->rng, 0, THOUSAND);
	for (size_t i = 0; i < FAULT_COUNT; i++) {
		if (!concerns((enum fault_kind)i, target))
			continue;
		passed += rate(faults, (enum fault_kind)i);
		if (drawn < passed) {
			faults->counts[i]++;
			return (enum fault_kind)i;
		}
	}
	return FAULT_NONE;
}

uint64_t faults_next_ns(struct faults *faults, enum fault_kind kind)
{
	unsigned seconds = TABLE[kind].target == FAULTS_OF_TIME ? rate(faults, kind) : 0;

	if (seconds == 0)
		return 0;
	/* From half the average to one and a half. */
	return seconds * (uint64_t)NS_PER_S / 2 + rng_between(&faults->rng, 0, seconds * (uint64_t)NS_PER_S) + 1;
}

bool faults_happen(struct faults *faults, enum fault_kind kind)
{
	if (faults->level == FAULTS_NONE || faults->suspended)
		return false;
	faults->counts[kind]++;
	return true;
}

bool faults_comes_by_itself(enum fault_kind kind)
{
	return TABLE[kind].target == FAULTS_OF_TIME;
}

uint64_t faults_slow_ns(struct faults *faults)
{
	return rng_between(&faults->rng, FAULT_SLOW_MS_MIN, FAULT_SLOW_MS_MAX) * NS_PER_MS;
}

const char *fault_name(enum fault_kind kind)
{
	return TABLE[kind].name;
}

static void print_rate(struct buffer *out, const struct fault *fault, unsigned value)
{
	if (value == 0)
		buffer_append_format(out, "%11s", "never");
	else if (fault->target == FAULTS_OF_TIME)
		buffer_append_format(out, " %5s %2u s", "each", value);
	else
		buffer_append_format(out, "%9u ‰", value);
}

void faults_print_table(struct buffer *out)
{
	for (size_t i = 0; i < FAULT_COUNT; i++) {
		buffer_append_format(out, "  %-19s", TABLE[i].name);
		print_rate(out, &TABLE[i], TABLE[i].light);
		print_rate(out, &TABLE[i], TABLE[i].heavy);
		buffer_append_format(out, "  %s\n", TABLE[i].what);
	}
}
