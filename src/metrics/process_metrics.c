#include "metrics/process_metrics.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/slice.h"

enum {
	STAT_BYTES = 65536, /* /proc/stat has a line per CPU before the one that counts here */
	/* Fields of /proc/self/stat, counted from the one behind the name (proc(5) numbers them from 3 there). */
	FIELD_USER_TICKS = 14 - 3,
	FIELD_SYSTEM_TICKS = 15 - 3,
	FIELD_START_TICKS = 22 - 3,
	FIELD_VIRTUAL_BYTES = 23 - 3,
	FIELD_RESIDENT_PAGES = 24 - 3,
	FIELDS = 25 - 3,
};

/* The start of a file of /proc; empty if it can't be read. */
static struct slice read_proc(const char *path, char *room, size_t size)
{
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;

	if (descriptor < 0)
		return (struct slice){ 0 };
	while (length < size) {
		ssize_t got = read(descriptor, room + length, size - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	(void)close(descriptor);
	return slice_from(room, length);
}

/* When the machine started, in seconds since 1970: the line "btime N". */
static bool read_boot_time(uint64_t *ret_seconds)
{
	char room[STAT_BYTES];
	struct slice rest = read_proc("/proc/stat", room, sizeof room);

	while (rest.length > 0) {
		struct slice line = slice_take_until(&rest, '\n');

		if (slice_starts_with(line, SLICE("btime ")))
			return slice_to_u64(slice_from_offset(line, sizeof "btime " - 1), ret_seconds);
	}
	return false;
}

bool process_metrics_init(struct process_metrics *ret_process, struct metrics_registry *registry, struct error *err)
{
	static const struct metrics_family_options families[PROCESS_METRICS_FAMILIES] = {
		[PROCESS_METRICS_CPU] = { METRICS_COUNTER,
		                          "process_cpu_seconds_total",
		                          "User and system CPU time spent, in seconds.",
		                          { NULL },
		                          NULL,
		                          0 },
		[PROCESS_METRICS_RESIDENT] = { METRICS_GAUGE,
		                               "process_resident_memory_bytes",
		                               "Resident memory size in bytes.",
		                               { NULL },
		                               NULL,
		                               0 },
		[PROCESS_METRICS_VIRTUAL] = { METRICS_GAUGE,
		                              "process_virtual_memory_bytes",
		                              "Virtual memory size in bytes.",
		                              { NULL },
		                              NULL,
		                              0 },
		[PROCESS_METRICS_START] = { METRICS_GAUGE,
		                            "process_start_time_seconds",
		                            "Start of the process since the Unix epoch, in seconds.",
		                            { NULL },
		                            NULL,
		                            0 },
		[PROCESS_METRICS_OPEN_FDS] = { METRICS_GAUGE,
		                               "process_open_fds",
		                               "Open file descriptors.",
		                               { NULL },
		                               NULL,
		                               0 },
		[PROCESS_METRICS_MAX_FDS] = { METRICS_GAUGE,
		                              "process_max_fds",
		                              "Most file descriptors that may be open.",
		                              { NULL },
		                              NULL,
		                              0 },
	};

	for (int i = 0; i < PROCESS_METRICS_FAMILIES; i++) {
		ret_process->families[i] = metrics_registry_add(registry, &families[i], err);
		if (ret_process->families[i] == NULL)
			return false;
	}
	ret_process->has_boot_time = read_boot_time(&ret_process->boot_seconds);
	return true;
}

/* The numbers behind the program's name, which stands in parentheses and may hold anything. */
static bool read_own_stat(uint64_t fields[FIELDS])
{
	char room[STAT_BYTES / 16];
	struct slice rest = read_proc("/proc/self/stat", room, sizeof room);
	const char *name_end = rest.length > 0 ? memrchr(rest.data, ')', rest.length) : NULL;

	if (name_end == NULL)
		return false;
	rest = slice_from_offset(rest, (size_t)(name_end - rest.data) + 2);
	for (size_t i = 0; i < FIELDS; i++) {
		struct slice field = slice_take_until(&rest, ' ');

		/* The state is a letter, and some that don't matter here are negative. */
		if (!slice_to_u64(field, &fields[i]))
			fields[i] = 0;
	}
	return true;
}

static void update_from_stat(struct process_metrics *process)
{
	uint64_t fields[FIELDS];
	double ticks_per_second = (double)sysconf(_SC_CLK_TCK);

	if (!read_own_stat(fields))
		return;
	metrics_set(process->families[PROCESS_METRICS_CPU], NULL,
	            (double)(fields[FIELD_USER_TICKS] + fields[FIELD_SYSTEM_TICKS]) / ticks_per_second);
	metrics_set(process->families[PROCESS_METRICS_VIRTUAL], NULL, (double)fields[FIELD_VIRTUAL_BYTES]);
	metrics_set(process->families[PROCESS_METRICS_RESIDENT], NULL,
	            (double)fields[FIELD_RESIDENT_PAGES] * (double)sysconf(_SC_PAGESIZE));
	if (process->has_boot_time)
		metrics_set(process->families[PROCESS_METRICS_START], NULL,
		            (double)process->boot_seconds + (double)fields[FIELD_START_TICKS] / ticks_per_second);
}

static void update_open_files(struct process_metrics *process)
{
	DIR *folder = opendir("/proc/self/fd");
	double count = 0;

	if (folder == NULL)
		return;
	/* One thread, and the folder is nobody else's. */
	/* cppcheck-suppress readdirCalled */
	while (readdir(folder) != NULL)
		count++;
	(void)closedir(folder);
	/* Without "." and "..", and the one that was open for looking. */
	metrics_set(process->families[PROCESS_METRICS_OPEN_FDS], NULL, count - 3);
}

void process_metrics_update(struct process_metrics *process)
{
	struct rlimit limit;

	update_from_stat(process);
	update_open_files(process);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		metrics_set(process->families[PROCESS_METRICS_MAX_FDS], NULL, (double)limit.rlim_cur);
}
