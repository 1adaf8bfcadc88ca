/*
 * The table lives on the terminal's alternate screen, so that what was there before comes back at the end, with the report
 * below it. A frame is written only when the one before is gone.
 */
#include "sandbox/live_view.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/slice.h"

enum {
	WAITING_BYTES_MAX = 256 * 1024,
	CHUNK_BYTES = 4096, /* a pipe that is writable takes so much without blocking (PIPE_BUF) */
	LAST_WAIT_MS = 1000,
	LINE_BYTES = LIVE_VIEW_EVENT_BYTES + 64,
	USUAL_COLUMNS = 80,
	USUAL_ROWS = 24,
	ROWS_BESIDE_VMS = 7,
	ROWS_BESIDE_PODS = 3,
};

static const double SECONDS_PER_MINUTE = 60;

static const char ENTER_SCREEN[] = "\x1b[?1049h\x1b[?25l";
static const char LEAVE_SCREEN[] = "\x1b[?25h\x1b[?1049l";
static const char HOME[] = "\x1b[H";
static const char END_OF_LINE[] = "\x1b[K\r\n";
static const char CLEAR_BELOW[] = "\x1b[J";

struct live_view {
	struct loop *loop;
	const struct workload *workload;
	const struct cluster *cluster; /* NULL before the start */
	bool table;
	int descriptor;
	uint64_t start_ns;
	unsigned phase;
	struct loop_timer timer;
	struct buffer waiting;
	unsigned dropped_lines;
	char outages[LIVE_VIEW_OUTAGES_BYTES];
	char state_url[LIVE_VIEW_URL_BYTES];
	char last_event[LIVE_VIEW_EVENT_BYTES];
	char (*actions)[LIVE_VIEW_ACTION_BYTES]; /* of each VM of the workload */
	const struct pod_cluster *pods;          /* NULL: none */
	char (*pod_actions)[LIVE_VIEW_ACTION_BYTES];
};

/* ---- writing without waiting ---- */

/* Writes what the descriptor takes within wait_ms. */
static void flush(struct live_view *view, int wait_ms)
{
	struct pollfd ready = { .fd = view->descriptor, .events = POLLOUT };

	while (view->waiting.length > 0 && poll(&ready, 1, wait_ms) == 1) {
		size_t length = view->waiting.length < CHUNK_BYTES ? view->waiting.length : CHUNK_BYTES;
		ssize_t written = write(view->descriptor, view->waiting.data, length);

		if (written < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (written <= 0) {
			buffer_clear(&view->waiting); /* nobody reads any more */
			return;
		}
		buffer_consume(&view->waiting, (size_t)written);
	}
}

static void put_line(struct live_view *view, const char *line)
{
	size_t length = strlen(line);

	flush(view, 0);
	if (view->waiting.length + length + LINE_BYTES > WAITING_BYTES_MAX) {
		view->dropped_lines++;
		return;
	}
	if (view->dropped_lines > 0) {
		buffer_append_format(&view->waiting, "(%u lines left out)\n", view->dropped_lines);
		view->dropped_lines = 0;
	}
	buffer_append(&view->waiting, line, length);
	if (view->waiting.failed)
		buffer_clear(&view->waiting);
	flush(view, 0);
}

/* ---- the table ---- */

/* Appends the line; if it is longer than that many columns, "…" stands for what doesn't fit. */
static void append_cut(struct buffer *out, const char *line, unsigned columns)
{
	struct slice rest = slice_of(line);
	size_t kept = 0; /* bytes of all columns but the last */

	for (unsigned column = 0; column < columns && rest.length > 0; column++) {
		uint32_t code_point;
		size_t bytes = slice_utf8_next(rest, &code_point);

		if (bytes == 0)
			break;
		if (column + 1 < columns)
			kept += bytes;
		rest = slice_from_offset(rest, bytes);
	}
	if (rest.length > 0)
		buffer_append_format(out, "%.*s…", (int)kept, line);
	else
		buffer_append_text(out, line);
	buffer_append_text(out, END_OF_LINE);
}

/* In compute units; CPU and memory apart where they differ. */
static void print_units(struct cluster_size size, char text[CLUSTER_SIZE_TEXT_BYTES])
{
	if (cluster_size_equal(size, cluster_units(size.slots)))
		(void)snprintf(text, CLUSTER_SIZE_TEXT_BYTES, "%u", size.slots);
	else
		(void)snprintf(text, CLUSTER_SIZE_TEXT_BYTES, "%g/%u", (double)size.cpu_milli / WORKLOAD_UNIT_CPU_MILLI,
		               size.slots);
}

static void draw_vm(struct live_view *view, unsigned vm, unsigned columns)
{
	static const char *const monitors[] = { "down", "waiting", "connected" };
	struct cluster_vm_state state = cluster_vm_state(view->cluster, vm);
	const struct workload_vm *planned = &view->workload->vms[vm];
	char using[CLUSTER_SIZE_TEXT_BYTES], goal[CLUSTER_SIZE_TEXT_BYTES], permitted[CLUSTER_SIZE_TEXT_BYTES];
	char line[LINE_BYTES];

	print_units(state.size, using);
	print_units(cluster_units(workload_phase(view->workload, vm, view->phase)->expected), goal);
	print_units(state.permitted, permitted);
	(void)snprintf(line, sizeof line, "%-12s %-11s %6s %5s %9s  %-9s  %s", planned->name,
	               workload_kind_name(planned->kind), using, goal, permitted, monitors[state.monitor],
	               view->actions[vm]);
	append_cut(&view->waiting, line, columns);
}

static void draw_head(struct live_view *view, unsigned columns)
{
	double elapsed_s = (double)(loop_now_ns(view->loop) - view->start_ns) / NS_PER_S;
	char line[LINE_BYTES], phases[32] = "";

	if (view->workload->phase_count > 0)
		(void)snprintf(phases, sizeof phases, " of %u", view->workload->phase_count);
	(void)snprintf(line, sizeof line, "ballast sandbox  %.1f s  phase %u%s  speed %g  seed %llu  Ctrl-C ends",
	               elapsed_s, view->phase + 1, phases, view->workload->options.speed,
	               (unsigned long long)view->workload->options.seed);
	append_cut(&view->waiting, line, columns);
	append_cut(&view->waiting, "using, goal, permitted: in CU (1 CU = 0.25 vCPU, 1 GiB); CPU/memory if they differ",
	           columns);
	line[0] = '\0';
	if (view->outages[0] != '\0')
		(void)snprintf(line, sizeof line, "away: %s", view->outages);
	else if (view->state_url[0] != '\0')
		(void)snprintf(line, sizeof line, "see also: ballast status --watch --url %s", view->state_url);
	append_cut(&view->waiting, line, columns);
	(void)snprintf(line, sizeof line, "%-12s %-11s %6s %5s %9s  %-9s  %s", "VM", "workload", "using", "goal",
	               "permitted", "monitor", "last action");
	append_cut(&view->waiting, line, columns);
}

static void draw_pod(struct live_view *view, unsigned pod, unsigned columns)
{
	struct pod_cluster_state state = pod_cluster_state(view->pods, pod);
	const struct pod_plan *plan = &pod_cluster_workload(view->pods)->pods[pod];
	char line[LINE_BYTES], seconds[16] = "-";

	if (state.bound)
		(void)snprintf(seconds, sizeof seconds, "%.1f", state.seconds_to_bind);
	(void)snprintf(line, sizeof line, "%-15s %7u %-8s %-9s %5u %7s  %s", plan->name, plan->volume_count,
	               plan->fits ? "bound" : "pending", state.bound ? state.node : "-", state.filter_calls, seconds,
	               view->pod_actions[pod]);
	append_cut(&view->waiting, line, columns);
}

/* Into so many rows. */
static void draw_pods(struct live_view *view, unsigned rows, unsigned columns)
{
	unsigned count = pod_cluster_workload(view->pods)->pod_count;
	struct pod_cluster_counters counters = pod_cluster_counters(view->pods);
	double per_minute =
		counters.busy_seconds > 0 ? counters.placed * SECONDS_PER_MINUTE / counters.busy_seconds : 0;
	char line[LINE_BYTES];

	(void)snprintf(line, sizeof line, "pods: %u bound, %.1f per minute, %u filter calls; promised twice: %u",
	               counters.scheduler.bound, per_minute, counters.scheduler.filter_calls, counters.promised_twice);
	append_cut(&view->waiting, line, columns);
	(void)snprintf(line, sizeof line, "%-15s %7s %-8s %-9s %5s %7s  %s", "pod", "volumes", "expected", "node",
	               "calls", "seconds", "last action");
	append_cut(&view->waiting, line, columns);
	for (unsigned i = 0; i < count && i < rows; i++)
		draw_pod(view, i, columns);
	if (count > rows) {
		(void)snprintf(line, sizeof line, "and %u more pod%s", count - rows, count - rows == 1 ? "" : "s");
		append_cut(&view->waiting, line, columns);
	}
}

static void draw(void *context)
{
	struct live_view *view = context;
	unsigned vms = view->workload->options.vms;
	struct winsize size;
	unsigned columns = USUAL_COLUMNS, rows = USUAL_ROWS, shown, pod_rows = 0;
	char line[LINE_BYTES];

	loop_timer_start(view->loop, &view->timer, NS_PER_S / LIVE_VIEW_REDRAWS_PER_S, draw, view);
	flush(view, 0);
	if (!view->table || view->waiting.length > 0)
		return;
	if (ioctl(view->descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
		columns = size.ws_col;
		rows = size.ws_row;
	}
	shown = rows > ROWS_BESIDE_VMS ? rows - ROWS_BESIDE_VMS : 1;
	/* Half of the room is for pods, and what VMs leave. */
	if (view->pods != NULL) {
		pod_rows = shown > ROWS_BESIDE_PODS ? shown - ROWS_BESIDE_PODS : 1;
		shown = vms < (pod_rows + 1) / 2 ? vms : (pod_rows + 1) / 2;
		pod_rows = pod_rows > shown ? pod_rows - shown : 1;
	}
	buffer_append_text(&view->waiting, HOME);
	draw_head(view, columns);
	for (unsigned i = 0; i < vms && i < shown; i++)
		draw_vm(view, i, columns);
	if (vms > shown) {
		(void)snprintf(line, sizeof line, "and %u more VM%s", vms - shown, vms - shown == 1 ? "" : "s");
		append_cut(&view->waiting, line, columns);
	}
	if (view->pods != NULL)
		draw_pods(view, pod_rows, columns);
	append_cut(&view->waiting, view->last_event, columns);
	buffer_append_text(&view->waiting, CLEAR_BELOW);
	if (view->waiting.failed)
		buffer_clear(&view->waiting);
	flush(view, 0);
}

/* ---- events ---- */

void live_view_vm_event(struct live_view *view, unsigned vm, const char *format, ...)
{
	double elapsed_s = (double)(loop_now_ns(view->loop) - view->start_ns) / NS_PER_S;
	char text[LIVE_VIEW_ACTION_BYTES];
	char line[LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (vm < view->workload->options.vms)
		memcpy(view->actions[vm], text, sizeof text);
	if (view->table)
		return;
	(void)snprintf(line, sizeof line, "%7.3fs %s: %s\n", elapsed_s, cluster_vm_name(view->cluster, vm), text);
	put_line(view, line);
}

void live_view_pod_event(struct live_view *view, unsigned pod, const char *format, ...)
{
	double elapsed_s = (double)(loop_now_ns(view->loop) - view->start_ns) / NS_PER_S;
	char line[LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(view->pod_actions[pod], sizeof view->pod_actions[pod], format, arguments);
	va_end(arguments);
	if (view->table)
		return;
	(void)snprintf(line, sizeof line, "%7.3fs %s: %s\n", elapsed_s,
	               pod_cluster_workload(view->pods)->pods[pod].name, view->pod_actions[pod]);
	put_line(view, line);
}

void live_view_event(struct live_view *view, const char *format, ...)
{
	double elapsed_s = view->cluster == NULL ? 0 : (double)(loop_now_ns(view->loop) - view->start_ns) / NS_PER_S;
	char line[LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(view->last_event, sizeof view->last_event, format, arguments);
	va_end(arguments);
	if (view->table)
		return;
	(void)snprintf(line, sizeof line, "%7.3fs %s\n", elapsed_s, view->last_event);
	put_line(view, line);
}

/* ---- life ---- */

struct live_view *live_view_create(struct loop *loop, const struct workload *workload, bool table, struct error *err)
{
	struct live_view *view = memory_allocate(sizeof *view);

	if (view != NULL) {
		view->actions = memory_allocate(workload->options.vms * sizeof *view->actions);
		if (view->actions == NULL) {
			memory_release(view);
			view = NULL;
		}
	}
	if (view == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory for the view");
		return NULL;
	}
	view->loop = loop;
	view->workload = workload;
	view->table = table;
	view->descriptor = table ? STDOUT_FILENO : STDERR_FILENO;
	buffer_init(&view->waiting, WAITING_BYTES_MAX);
	return view;
}

bool live_view_show_pods(struct live_view *view, const struct pod_cluster *pods, struct error *err)
{
	view->pod_actions = memory_allocate(pod_cluster_workload(pods)->pod_count * sizeof *view->pod_actions);
	if (view->pod_actions == NULL)
		return error_set(err, ERROR_NO_MEMORY, "out of memory for the view");
	view->pods = pods;
	return true;
}

void live_view_start(struct live_view *view, const struct cluster *cluster)
{
	view->start_ns = loop_now_ns(view->loop);
	view->cluster = cluster;
	if (view->table)
		buffer_append_text(&view->waiting, ENTER_SCREEN);
	flush(view, 0);
	draw(view);
}

void live_view_suspend(struct live_view *view)
{
	if (!view->table || view->cluster == NULL)
		return;
	buffer_append_text(&view->waiting, LEAVE_SCREEN);
	flush(view, LAST_WAIT_MS);
}

void live_view_resume(struct live_view *view)
{
	if (!view->table || view->cluster == NULL)
		return;
	buffer_append_text(&view->waiting, ENTER_SCREEN);
	flush(view, 0);
	draw(view);
}

void live_view_set_phase(struct live_view *view, unsigned phase)
{
	view->phase = phase;
}

void live_view_set_outages(struct live_view *view, const char *peers)
{
	(void)snprintf(view->outages, sizeof view->outages, "%s", peers);
}

void live_view_set_state_url(struct live_view *view, const char *url)
{
	if (view->state_url[0] == '\0')
		(void)snprintf(view->state_url, sizeof view->state_url, "%s", url);
}

void live_view_destroy(struct live_view *view)
{
	if (view == NULL)
		return;
	loop_timer_stop(view->loop, &view->timer);
	if (view->table && view->cluster != NULL) {
		buffer_append_text(&view->waiting, LEAVE_SCREEN);
	}
	flush(view, LAST_WAIT_MS);
	buffer_destroy(&view->waiting);
	memory_release(view->actions);
	memory_release(view->pod_actions);
	memory_release(view);
}
