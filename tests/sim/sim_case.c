#include "sim_case.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { LINE_BYTES = 512, EVENTS_MAX = 1000000 };

static const char *const KINDS[] = { "phase", "storm", "hit", "calm", "check" };

/* ---- how bad storms may be ---- */

static const char *const STORMS[] = { "none", "light", "heavy" };

const char *sim_storm_name(enum sim_storm storm)
{
	return STORMS[storm];
}

bool sim_storm_of(const char *name, enum sim_storm *ret_storm)
{
	for (unsigned i = 0; i < sizeof STORMS / sizeof STORMS[0]; i++) {
		if (strcmp(name, STORMS[i]) == 0) {
			*ret_storm = (enum sim_storm)i;
			return true;
		}
	}
	return false;
}

/* ---- events ---- */

/* The C library's memory: whoever counts blocks of the product's must not see these. */
void sim_case_add(struct sim_case *record, const struct sim_event *event)
{
	if (record->count == record->capacity) {
		size_t capacity = record->capacity == 0 ? 64 : 2 * record->capacity;
		struct sim_event *events =
			capacity > EVENTS_MAX ? NULL : realloc(record->events, capacity * sizeof *events);

		if (events == NULL) {
			record->failed = true;
			return;
		}
		record->events = events;
		record->capacity = capacity;
	}
	record->events[record->count++] = *event;
}

void sim_case_destroy(struct sim_case *record)
{
	free(record->events);
	*record = (struct sim_case){ .seed = 0 };
}

/* ---- writing ---- */

static void write_event(FILE *file, const struct sim_event *event)
{
	(void)fprintf(file, "%" PRIu64 ".%03" PRIu64 " %s", event->at_ns / NS_PER_S,
	              event->at_ns % NS_PER_S / NS_PER_MS, KINDS[event->kind]);
	if (event->kind == SIM_EVENT_HIT)
		(void)fprintf(file, " %s %s", event->actor, event->misfortune);
	if (event->kind <= SIM_EVENT_HIT)
		(void)fprintf(file, " %" PRIu64, event->number);
	(void)fprintf(file, "\n");
}

bool sim_case_write(const struct sim_case *record, const char *path, const char *comment, struct error *err)
{
	FILE *file = record->failed ? NULL : fopen(path, "we");

	if (file == NULL)
		return error_set_errno(err, record->failed ? ENOMEM : errno, path);
	(void)fprintf(file, "# %s\nrun seed %" PRIu64 " vms %u pods %u nodes %u faults %s memory %d tls %d\n", comment,
	              record->seed, record->vms, record->pods, record->nodes, sim_storm_name(record->storm),
	              record->memory, record->tls);
	for (size_t i = 0; i < record->count; i++)
		write_event(file, &record->events[i]);
	return fclose(file) == 0 || error_set_errno(err, errno, path);
}

/* ---- reading ---- */

static bool read_event(const char *line, struct sim_event *ret_event)
{
	struct sim_event event = { 0 };
	char kind[16], rest[LINE_BYTES];
	double seconds;
	int fields;

	// NOLINTNEXTLINE(cert-err34-c): a number that is none makes fewer fields
	fields = sscanf(line, "%lf %15s %511[^\n]", &seconds, kind, rest);
	if (fields < 2 || seconds < 0 || seconds > 1e9)
		return false;
	event.at_ns = (uint64_t)llround(seconds * 1000) * NS_PER_MS;
	while (event.kind <= SIM_EVENT_CHECK && strcmp(kind, KINDS[event.kind]) != 0)
		event.kind++;
	if (event.kind > SIM_EVENT_CHECK)
		return false;
	// NOLINTBEGIN(cert-err34-c): likewise
	if (event.kind == SIM_EVENT_HIT &&
	    (fields < 3 || sscanf(rest, "%31s %31s %" SCNu64, event.actor, event.misfortune, &event.number) != 3))
		return false;
	if (event.kind < SIM_EVENT_HIT && (fields < 3 || sscanf(rest, "%" SCNu64, &event.number) != 1))
		return false;
	// NOLINTEND(cert-err34-c)
	*ret_event = event;
	return true;
}

static bool read_run(const char *line, struct sim_case *record)
{
	char storm[8];
	int memory, tls;

	// NOLINTNEXTLINE(cert-err34-c): likewise
	if (sscanf(line, "run seed %" SCNu64 " vms %u pods %u nodes %u faults %7s memory %d tls %d", &record->seed,
	           &record->vms, &record->pods, &record->nodes, storm, &memory, &tls) != 7 ||
	    !sim_storm_of(storm, &record->storm))
		return false;
	record->memory = memory != 0;
	record->tls = tls != 0;
	return record->vms > 0 || record->pods > 0;
}

static bool read_line(const char *line, struct sim_case *record)
{
	struct sim_event event;

	if (line[0] == '#' || line[0] == '\n')
		return true;
	if (strncmp(line, "run ", 4) == 0)
		return read_run(line, record);
	if ((record->vms == 0 && record->pods == 0) || !read_event(line, &event) ||
	    (record->count > 0 && event.at_ns < record->events[record->count - 1].at_ns))
		return false;
	sim_case_add(record, &event);
	return !record->failed;
}

bool sim_case_read(const char *path, struct sim_case *ret_case, struct error *err)
{
	FILE *file = fopen(path, "re");
	struct sim_case record = { .seed = 0 };
	char line[LINE_BYTES];
	unsigned number = 0;
	bool ok = true;

	if (file == NULL)
		return error_set_errno(err, errno, path);
	while (ok && fgets(line, sizeof line, file) != NULL) {
		number++;
		ok = read_line(line, &record);
	}
	(void)fclose(file);
	if (!ok) {
		sim_case_destroy(&record);
		return error_set(err, ERROR_SYNTAX, "%s: line %u can't be understood", path, number);
	}
	*ret_case = record;
	return true;
}

/* ---- making it small ---- */

/* Without some of the events. False if there is no memory, or the invariant holds then: they stay. */
static bool do_without(struct sim_case *record, size_t first, size_t count, const char *broken,
                       bool (*breaks)(void *context, const struct sim_case *play, const char *broken), void *context)
{
	struct sim_case fewer = *record;

	fewer.events = malloc(record->count * sizeof *fewer.events);
	if (fewer.events == NULL)
		return false;
	fewer.capacity = record->count;
	fewer.count = record->count - count;
	memcpy(fewer.events, record->events, first * sizeof *fewer.events);
	memcpy(fewer.events + first, record->events + first + count, (fewer.count - first) * sizeof *fewer.events);
	if (!breaks(context, &fewer, broken)) {
		free(fewer.events);
		return false;
	}
	free(record->events);
	*record = fewer;
	return true;
}

void sim_case_shrink(struct sim_case *record, const char *broken,
                     bool (*breaks)(void *context, const struct sim_case *play, const char *broken), void *context)
{
	for (size_t lot = record->count / 2; lot > 0; lot /= 2) {
		size_t first = 0;

		while (first < record->count) {
			size_t count = first + lot < record->count ? lot : record->count - first;

			if (!do_without(record, first, count, broken, breaks, context))
				first += lot;
		}
	}
}
