/*
 * A table of families, bytewise by name as the page has them. A family takes its value from one field of struct
 * figures, and its samples from what it is about: the machine, its cgroups, CPUs, disks, mounts or network interfaces.
 * Activity is all that of the first disk, mount and interface; the others are there and idle, as they mostly are.
 */
#include "sandbox/metrics_page.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/slice.h"

enum {
	KB = 1024,
	PAGE_KB = 1000, /* surroundings 4.1.4: the collector's kB */
	/* Of the kernel's memory: a descriptor of 64 bytes for each 4 KiB page, and code, data and tables. */
	DESCRIPTORS_DIVISOR = 64,
	KERNEL_KB = 98656,
	BUFFERS_KB = 61244,
	RAM_DISKS = 16,
	LOOP_DISKS = 8,
	MORE_DISKS_MAX = RAM_DISKS + LOOP_DISKS,
	/* What one more of each adds, without host names. */
	DISK_FAMILIES = 4,
	DISK_LINE_BYTES = 93,
	MOUNT_FAMILIES = 4,
	MOUNT_LINE_BYTES = 142,
};

enum about {
	ABOUT_MACHINE,
	ABOUT_CGROUPS,
	ABOUT_POSTGRES_CGROUP,
	ABOUT_CPUS,
	ABOUT_DISKS,
	ABOUT_MOUNTS,
	ABOUT_INTERFACES
};

/* Each value of the page by the name of its family, without "host_"; in the order of the page. */
struct figures {
	double boot_time;
	double cgroup_cpu_system_seconds_total, cgroup_cpu_usage_seconds_total, cgroup_cpu_user_seconds_total;
	double cgroup_memory_anon_bytes, cgroup_memory_current_bytes, cgroup_memory_file_bytes;
	double disk_read_bytes_total, disk_reads_completed_total, disk_writes_completed_total, disk_written_bytes_total;
	double filesystem_free_bytes, filesystem_total_bytes, filesystem_used_bytes, filesystem_used_ratio;
	double load1, load15, load5;
	double cpus;
	double memory_active_bytes, memory_available_bytes, memory_buffers_bytes, memory_cached_bytes,
		memory_free_bytes;
	double memory_shared_bytes, memory_total_bytes, memory_used_bytes;
	double network_receive_bytes_total, network_receive_packets_total;
	double network_transmit_bytes_total, network_transmit_packets_total;
	double uptime;
	double nothing;
};

struct family {
	const char *name;
	const char *collector;
	size_t figure;     /* offset in struct figures */
	double idle_value; /* of disks, mounts and interfaces beyond the first */
	enum about about;
	bool is_counter;
};

#define FIGURE(field) offsetof(struct figures, field)

static const struct family FAMILIES[] = {
	{ "boot_time", "host", FIGURE(boot_time), 0, ABOUT_MACHINE, false },
	{ "cgroup_cpu_system_seconds_total", "cgroups", FIGURE(cgroup_cpu_system_seconds_total), 0, ABOUT_CGROUPS,
	  true },
	{ "cgroup_cpu_usage_seconds_total", "cgroups", FIGURE(cgroup_cpu_usage_seconds_total), 0, ABOUT_CGROUPS, true },
	{ "cgroup_cpu_user_seconds_total", "cgroups", FIGURE(cgroup_cpu_user_seconds_total), 0, ABOUT_CGROUPS, true },
	{ "cgroup_memory_anon_bytes", "cgroups", FIGURE(cgroup_memory_anon_bytes), 0, ABOUT_POSTGRES_CGROUP, false },
	{ "cgroup_memory_current_bytes", "cgroups", FIGURE(cgroup_memory_current_bytes), 0, ABOUT_POSTGRES_CGROUP,
	  false },
	{ "cgroup_memory_file_bytes", "cgroups", FIGURE(cgroup_memory_file_bytes), 0, ABOUT_POSTGRES_CGROUP, false },
	{ "cpu_seconds_total", "cpu", FIGURE(nothing), 0, ABOUT_CPUS, true },
	{ "disk_read_bytes_total", "disk", FIGURE(disk_read_bytes_total), 0, ABOUT_DISKS, true },
	{ "disk_reads_completed_total", "disk", FIGURE(disk_reads_completed_total), 0, ABOUT_DISKS, true },
	{ "disk_writes_completed_total", "disk", FIGURE(disk_writes_completed_total), 0, ABOUT_DISKS, true },
	{ "disk_written_bytes_total", "disk", FIGURE(disk_written_bytes_total), 0, ABOUT_DISKS, true },
	{ "filesystem_free_bytes", "filesystem", FIGURE(filesystem_free_bytes), 0, ABOUT_MOUNTS, false },
	{ "filesystem_total_bytes", "filesystem", FIGURE(filesystem_total_bytes), 0, ABOUT_MOUNTS, false },
	{ "filesystem_used_bytes", "filesystem", FIGURE(filesystem_used_bytes), 0, ABOUT_MOUNTS, false },
	{ "filesystem_used_ratio", "filesystem", FIGURE(filesystem_used_ratio), NAN, ABOUT_MOUNTS, false },
	{ "load1", "load", FIGURE(load1), 0, ABOUT_MACHINE, false },
	{ "load15", "load", FIGURE(load15), 0, ABOUT_MACHINE, false },
	{ "load5", "load", FIGURE(load5), 0, ABOUT_MACHINE, false },
	{ "logical_cpus", "cpu", FIGURE(cpus), 0, ABOUT_MACHINE, false },
	{ "memory_active_bytes", "memory", FIGURE(memory_active_bytes), 0, ABOUT_MACHINE, false },
	{ "memory_available_bytes", "memory", FIGURE(memory_available_bytes), 0, ABOUT_MACHINE, false },
	{ "memory_buffers_bytes", "memory", FIGURE(memory_buffers_bytes), 0, ABOUT_MACHINE, false },
	{ "memory_cached_bytes", "memory", FIGURE(memory_cached_bytes), 0, ABOUT_MACHINE, false },
	{ "memory_free_bytes", "memory", FIGURE(memory_free_bytes), 0, ABOUT_MACHINE, false },
	{ "memory_shared_bytes", "memory", FIGURE(memory_shared_bytes), 0, ABOUT_MACHINE, false },
	{ "memory_swap_free_bytes", "memory", FIGURE(nothing), 0, ABOUT_MACHINE, false },
	{ "memory_swap_total_bytes", "memory", FIGURE(nothing), 0, ABOUT_MACHINE, false },
	{ "memory_swap_used_bytes", "memory", FIGURE(nothing), 0, ABOUT_MACHINE, false },
	{ "memory_swapped_in_bytes_total", "memory", FIGURE(nothing), 0, ABOUT_MACHINE, true },
	{ "memory_swapped_out_bytes_total", "memory", FIGURE(nothing), 0, ABOUT_MACHINE, true },
	{ "memory_total_bytes", "memory", FIGURE(memory_total_bytes), 0, ABOUT_MACHINE, false },
	{ "memory_used_bytes", "memory", FIGURE(memory_used_bytes), 0, ABOUT_MACHINE, false },
	{ "network_receive_bytes_total", "network", FIGURE(network_receive_bytes_total), 0, ABOUT_INTERFACES, true },
	{ "network_receive_errs_total", "network", FIGURE(nothing), 0, ABOUT_INTERFACES, true },
	{ "network_receive_packets_total", "network", FIGURE(network_receive_packets_total), 0, ABOUT_INTERFACES,
	  true },
	{ "network_transmit_bytes_total", "network", FIGURE(network_transmit_bytes_total), 0, ABOUT_INTERFACES, true },
	{ "network_transmit_errs_total", "network", FIGURE(nothing), 0, ABOUT_INTERFACES, true },
	{ "network_transmit_packets_drop_total", "network", FIGURE(nothing), 0, ABOUT_INTERFACES, true },
	{ "network_transmit_packets_total", "network", FIGURE(network_transmit_packets_total), 0, ABOUT_INTERFACES,
	  true },
	{ "physical_cpus", "cpu", FIGURE(cpus), 0, ABOUT_MACHINE, false },
	{ "uptime", "host", FIGURE(uptime), 0, ABOUT_MACHINE, false },
};

/* A page under way. */
struct writer {
	struct buffer *out;
	const struct metrics_page *page;
	struct figures figures;
	unsigned cpus;
	unsigned more_disks, more_mounts;
};

/* ---- values ---- */

static uint64_t subtract_to_zero(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static double page_bytes(uint64_t kb)
{
	return (double)(kb * PAGE_KB);
}

static double whole(double value)
{
	return floor(value);
}

static double in_hundredths(double value)
{
	return floor(value * 100) / 100;
}

static double in_millionths(double value)
{
	return floor(value * 1e6) / 1e6;
}

uint64_t metrics_page_kernel_kb(uint64_t memory_bytes)
{
	uint64_t kb = memory_bytes / KB;

	return subtract_to_zero(kb - kb / DESCRIPTORS_DIVISOR, KERNEL_KB);
}

static void set_memory(struct figures *figures, const struct metrics_page *page)
{
	uint64_t total = metrics_page_kernel_kb(page->memory_bytes);
	uint64_t used = smaller((page->memory_used_bytes + PAGE_KB / 2) / PAGE_KB, total);
	uint64_t cached = smaller((page->memory_cached_bytes + PAGE_KB / 2) / PAGE_KB, total);
	uint64_t available = total - used;
	uint64_t buffers = smaller(BUFFERS_KB, available);
	uint64_t free_kb = subtract_to_zero(available, cached + buffers);

	figures->memory_total_bytes = page_bytes(total);
	figures->memory_available_bytes = page_bytes(available);
	figures->memory_cached_bytes = page_bytes(cached);
	figures->memory_buffers_bytes = page_bytes(buffers);
	figures->memory_free_bytes = page_bytes(free_kb);
	figures->memory_used_bytes = page_bytes(subtract_to_zero(total, free_kb + cached + buffers));
	figures->memory_active_bytes = page_bytes(used + cached / 4);
	figures->memory_shared_bytes = page_bytes(used / 8);
}

static void set_activity(struct figures *figures, const struct metrics_page *page, double uptime_s)
{
	double busy_s = page->busy_cpu_s;

	figures->cgroup_cpu_usage_seconds_total = in_millionths(busy_s);
	figures->cgroup_cpu_user_seconds_total = in_millionths(busy_s * 0.77);
	figures->cgroup_cpu_system_seconds_total = in_millionths(busy_s * 0.23);
	figures->cgroup_memory_anon_bytes = (double)page->anonymous_bytes;
	figures->cgroup_memory_file_bytes = (double)page->memory_cached_bytes;
	figures->cgroup_memory_current_bytes = (double)(page->anonymous_bytes + page->memory_cached_bytes);
	figures->disk_reads_completed_total = whole(busy_s * 23) + 211;
	figures->disk_read_bytes_total = figures->disk_reads_completed_total * 24576;
	figures->disk_writes_completed_total = whole(busy_s * 49 + uptime_s);
	figures->disk_written_bytes_total = figures->disk_writes_completed_total * 28672;
	figures->network_receive_packets_total = whole(busy_s * 44 + uptime_s * 2);
	figures->network_receive_bytes_total = figures->network_receive_packets_total * 229;
	figures->network_transmit_packets_total = whole(busy_s * 41 + uptime_s * 2);
	figures->network_transmit_bytes_total = figures->network_transmit_packets_total * 582;
}

static void set_figures(struct figures *figures, const struct metrics_page *page, unsigned cpus)
{
	int64_t up_ns = page->wall_ns > page->boot_wall_ns ? page->wall_ns - page->boot_wall_ns : 0;

	*figures = (struct figures){
		.boot_time = floor((double)page->boot_wall_ns / NS_PER_S),
		.uptime = in_hundredths((double)up_ns / NS_PER_S),
		.filesystem_total_bytes = 8350298112,
		.filesystem_free_bytes = 5872025600,
		.filesystem_used_bytes = 2036334592,
		.filesystem_used_ratio = (double)(2036334592.0F / (2036334592.0F + 5872025600.0F)),
		.load1 = (double)(float)page->load_average_1_min,
		.load5 = (double)(float)page->load_average_5_min,
		.load15 = (double)(float)page->load_average_15_min,
		.cpus = cpus,
	};
	set_memory(figures, page);
	set_activity(figures, page, figures->uptime);
}

/* ---- samples ---- */

static void append_escaped(struct buffer *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\\' || *text == '"')
			buffer_append_char(out, '\\');
		if (*text == '\n')
			buffer_append_text(out, "\\n");
		else
			buffer_append_char(out, *text);
	}
}

/* Labels stand sorted by name: what comes before "host", the host, and what comes after it. */
static const char *prefix_of(const struct metrics_page *page)
{
	return page->prefix != NULL ? page->prefix : "host_";
}

static void append_sample(struct writer *writer, const struct family *family, const char *before, const char *after,
                          double value)
{
	struct buffer *out = writer->out;

	buffer_append_format(out, "%s%s{%s,host=\"", prefix_of(writer->page), family->name, before);
	append_escaped(out, writer->page->host_name);
	buffer_append_format(out, "\"%s} ", after);
	if (!json_text_append_number(out, value, false))
		buffer_append_text(out, "NaN");
	buffer_append_format(out, " %lld\n", (long long)(writer->page->wall_ns / NS_PER_MS));
}

enum { LABELS_BYTES = 128 };

static void append_cpu(struct writer *writer, const struct family *family, unsigned cpu)
{
	double busy_s = writer->page->busy_cpu_s / writer->cpus;
	double waiting_s = in_hundredths(busy_s * 0.02);
	double user_s = in_hundredths(busy_s * 0.75);
	double system_s = in_hundredths(busy_s * 0.23);
	double idle_s = fmax(writer->figures.uptime - user_s - system_s - waiting_s, 0);
	const struct {
		const char *name;
		double value;
	} modes[] = {
		{ "idle", in_hundredths(idle_s) },
		{ "io_wait", waiting_s },
		{ "nice", 0 },
		{ "system", system_s },
		{ "user", user_s },
	};
	char before[LABELS_BYTES], after[LABELS_BYTES];

	snprintf(before, sizeof before, "collector=\"%s\",cpu=\"%u\"", family->collector, cpu);
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		snprintf(after, sizeof after, ",mode=\"%s\"", modes[i].name);
		append_sample(writer, family, before, after, modes[i].value);
	}
}

static void append_cgroup(struct writer *writer, const struct family *family, const char *cgroup, double value)
{
	char before[LABELS_BYTES];

	snprintf(before, sizeof before, "cgroup=\"%s\",collector=\"%s\"", cgroup, family->collector);
	append_sample(writer, family, before, "", value);
}

static void append_device(struct writer *writer, const struct family *family, const char *device, unsigned number,
                          double value)
{
	char before[LABELS_BYTES];

	snprintf(before, sizeof before, "collector=\"%s\",device=\"%s%u\"", family->collector, device, number);
	append_sample(writer, family, before, "", value);
}

static void append_disks(struct writer *writer, const struct family *family, double value)
{
	char before[LABELS_BYTES];

	snprintf(before, sizeof before, "collector=\"%s\",device=\"vda\"", family->collector);
	append_sample(writer, family, before, "", value);
	for (unsigned i = 0; i < writer->more_disks; i++)
		append_device(writer, family, i < RAM_DISKS ? "ram" : "loop", i < RAM_DISKS ? i : i - RAM_DISKS,
		              family->idle_value);
}

static void append_mount(struct writer *writer, const struct family *family, const char *device,
                         const char *file_system, const char *point, double value)
{
	char before[LABELS_BYTES], after[LABELS_BYTES];

	snprintf(before, sizeof before, "collector=\"%s\",device=\"%s\",filesystem=\"%s\"", family->collector, device,
	         file_system);
	snprintf(after, sizeof after, ",mountpoint=\"%s\"", point);
	append_sample(writer, family, before, after, value);
}

static void append_mounts(struct writer *writer, const struct family *family, double value)
{
	append_mount(writer, family, "/dev/root", "ext4", "/", value);
	append_mount(writer, family, "proc", "proc", "/proc", family->idle_value);
	for (unsigned i = 0; i < writer->more_mounts; i++) {
		char point[LABELS_BYTES / 2];

		snprintf(point, sizeof point, "/run/credentials/%u", i);
		append_mount(writer, family, "tmpfs", "tmpfs", point, family->idle_value);
	}
}

static void append_family(struct writer *writer, const struct family *family)
{
	double value;
	char before[LABELS_BYTES];

	memcpy(&value, (const char *)&writer->figures + family->figure, sizeof value);
	buffer_append_format(writer->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix_of(writer->page), family->name,
	                     family->name, prefix_of(writer->page), family->name,
	                     family->is_counter ? "counter" : "gauge");
	switch (family->about) {
	case ABOUT_MACHINE:
		snprintf(before, sizeof before, "collector=\"%s\"", family->collector);
		append_sample(writer, family, before, "", value);
		break;
	case ABOUT_CGROUPS:
		append_cgroup(writer, family, "/", value);
		append_cgroup(writer, family, "neon-postgres", in_millionths(value * 0.7));
		break;
	case ABOUT_POSTGRES_CGROUP:
		append_cgroup(writer, family, "neon-postgres", value);
		break;
	case ABOUT_CPUS:
		for (unsigned i = 0; i < writer->cpus; i++)
			append_cpu(writer, family, i);
		break;
	case ABOUT_DISKS:
		append_disks(writer, family, value);
		break;
	case ABOUT_MOUNTS:
		append_mounts(writer, family, value);
		break;
	case ABOUT_INTERFACES:
		append_device(writer, family, "eth", 0, value);
		break;
	}
}

static void choose_padding(struct writer *writer)
{
	size_t host_bytes = strlen(writer->page->host_name);
	unsigned padding_kb = writer->page->padding_kb;
	size_t wanted =
		(size_t)(padding_kb < METRICS_PAGE_PADDING_KB_MAX ? padding_kb : METRICS_PAGE_PADDING_KB_MAX) * KB;
	size_t disk_bytes = DISK_FAMILIES * (DISK_LINE_BYTES + host_bytes);
	size_t mount_bytes = MOUNT_FAMILIES * (MOUNT_LINE_BYTES + host_bytes);

	writer->more_disks = (unsigned)smaller(wanted / disk_bytes, MORE_DISKS_MAX);
	writer->more_mounts = (unsigned)((wanted - writer->more_disks * disk_bytes) / mount_bytes);
}

void metrics_page_append(const struct metrics_page *page, struct buffer *out)
{
	struct writer writer = { .out = out, .page = page };

	writer.cpus = page->cpu_milli <= 1000 ? 1 : (page->cpu_milli + 999) / 1000;
	set_figures(&writer.figures, page, writer.cpus);
	choose_padding(&writer);
	for (size_t i = 0; i < sizeof FAMILIES / sizeof FAMILIES[0]; i++)
		append_family(&writer, &FAMILIES[i]);
}
