#include "sandbox/guest.h"

#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "net/http_server.h"
#include "sandbox/lfc_page.h"
#include "sandbox/metrics_page.h"
#include "sandbox/vm_monitor.h"

enum {
	BODY_BYTES_MAX = 4096, /* of requests, which should have none */
	CPU_MILLI = 1000,
	PAGES_PER_MISS = 4, /* of the cache: one page read in so many of a minute's working set, each second */
};

struct guest {
	struct loop *loop;
	struct guest_handler handler;
	void *context;
	struct guest_options options;
	struct guest_demand demand;
	enum guest_page_fault page_fault;
	struct http_server *system_server;
	struct http_server *lfc_server;
	struct vm_monitor *monitor;
	unsigned system_scrapes, lfc_scrapes;

	/* What adds up while the guest lives. */
	int64_t boot_wall_ns;
	uint64_t counted_ns; /* up to when */
	double busy_cpu_s;
	double lfc_pages_read;
	char host_name[]; /* options.host_name */
};

/* Brings the counters up to now by what the guest has been doing since. */
static void count_up(struct guest *guest)
{
	uint64_t now_ns = loop_now_ns(guest->loop);
	double elapsed_s = (double)(now_ns - guest->counted_ns) / NS_PER_S;
	double cpus = (double)guest->options.cpu_milli / CPU_MILLI;
	double load = guest->demand.load_average_1_min;

	guest->counted_ns = now_ns;
	guest->busy_cpu_s += elapsed_s * (load < cpus ? load : cpus);
	guest->lfc_pages_read += elapsed_s * (double)guest->demand.working_set_pages[0];
}

/* ---- pages ---- */

static struct slice system_type(void)
{
	return SLICE("text/plain; version=0.0.4");
}

static struct slice lfc_type(void)
{
	return SLICE("text/plain; version=0.0.4; charset=utf-8; escaping=values");
}

/* Answers with a page, or as the fault wants it. */
static void respond_page(struct guest *guest, struct http_call *call, struct slice type, const struct buffer *page)
{
	struct slice body = buffer_slice(page);

	if (page->failed || guest->page_fault == GUEST_PAGE_ERROR) {
		http_call_respond(call, 500, "text/plain; charset=utf-8", SLICE(""));
		return;
	}
	if (guest->page_fault == GUEST_PAGE_HANGS)
		return;

	struct buffer text;

	buffer_init(&text, 32);
	buffer_append_format(&text, "%zu", body.length);

	const struct http_field fields[] = {
		{ .name = SLICE("Content-Type"), .value = type },
		{ .name = SLICE("Content-Length"), .value = buffer_slice(&text) },
	};

	if (guest->page_fault == GUEST_PAGE_CUT) {
		http_call_begin(call, 200, (struct http_fields){ .items = fields, .count = 2 });
		(void)http_call_write(call, slice_from(body.data, body.length / 2));
		http_call_abort(call, false);
	} else {
		if (guest->page_fault == GUEST_PAGE_EMPTY)
			body.length = 0;
		http_call_respond_with(call, 200, (struct http_fields){ .items = fields, .count = 1 }, body);
	}
	buffer_destroy(&text);
}

/* Everything but GET /metrics is unknown to both exporters. */
static bool is_scrape(struct http_call *call)
{
	if (slice_equal_text(http_call_path(call), "/metrics") && slice_equal_text(http_call_method(call), "GET"))
		return true;
	http_call_respond(call, 404, NULL, SLICE(""));
	return false;
}

static void on_system_request(void *context, struct http_call *call)
{
	struct guest *guest = context;
	const struct guest_demand *demand = &guest->demand;
	struct buffer out;

	if (!is_scrape(call))
		return;
	guest->system_scrapes++;
	count_up(guest);
	buffer_init(&out, METRICS_PAGE_BYTES_MAX);
	metrics_page_append(
		&(struct metrics_page){
			.host_name = guest->host_name,
			.boot_wall_ns = guest->boot_wall_ns,
			.wall_ns = loop_wall_ns(guest->loop),
			.cpu_milli = guest->options.cpu_milli,
			.memory_bytes = guest->options.memory_bytes,
			.load_average_1_min = demand->load_average_1_min,
			.load_average_5_min = demand->load_average_5_min,
			.load_average_15_min = demand->load_average_5_min,
			.memory_used_bytes = demand->memory_used_bytes,
			.memory_cached_bytes = demand->memory_cached_bytes,
			.anonymous_bytes = demand->cgroup_used_bytes,
			.busy_cpu_s = guest->busy_cpu_s,
			.prefix = guest->options.metrics_prefix,
			.padding_kb = guest->options.page_padding_kb,
		},
		&out);
	respond_page(guest, call, system_type(), &out);
	buffer_destroy(&out);
}

static bool has_working_set(const struct guest_demand *demand)
{
	for (size_t i = 0; i < LFC_PAGE_WINDOWS; i++)
		if (demand->working_set_pages[i] != 0)
			return true;
	return false;
}

static void on_lfc_request(void *context, struct http_call *call)
{
	struct guest *guest = context;
	struct lfc_page page;
	struct buffer out;

	if (!is_scrape(call))
		return;
	guest->lfc_scrapes++;
	if (!has_working_set(&guest->demand)) {
		http_call_respond(call, 500, "text/plain; charset=utf-8",
		                  SLICE("No metrics gathered, 1 error(s) occurred:\n"
		                        "* [from Gatherer #1] dial tcp 127.0.0.1:5432: connect: connection refused"));
		return;
	}
	count_up(guest);
	page.cache_limit_bytes = vm_monitor_cache_now_bytes(guest->monitor);
	memcpy(page.window_pages, guest->demand.working_set_pages, sizeof page.window_pages);
	page.hits = (uint64_t)guest->lfc_pages_read;
	page.misses = page.hits / PAGES_PER_MISS;
	page.writes = page.misses;
	buffer_init(&out, LFC_PAGE_BYTES_MAX);
	lfc_page_append(&page, &out);
	respond_page(guest, call, lfc_type(), &out);
	buffer_destroy(&out);
}

/* ---- life ---- */

/* A scrape that hung was given up; there is nothing to free. */
static void on_abort(void *context, struct http_call *call)
{
	(void)context;
	(void)call;
}

static void on_monitor_event(void *context, const char *text)
{
	struct guest *guest = context;

	if (guest->handler.on_event != NULL)
		guest->handler.on_event(guest->context, guest, text);
}

static void on_accept_error(void *context, const struct error *err)
{
	const struct guest *guest = context;

	if (guest->handler.on_accept_error != NULL)
		guest->handler.on_accept_error(guest->context, err);
}

static struct http_server *serve(struct guest *guest, uint16_t port, void (*on_request)(void *, struct http_call *),
                                 struct error *err)
{
	struct http_server_handler handler = { .on_request = on_request, .on_abort = on_abort };
	struct http_server_options options = { .address = guest->options.address,
		                               .max_body_bytes = BODY_BYTES_MAX,
		                               .on_error = on_accept_error };

	options.address.port = port;
	return http_server_start(guest->loop, &options, &handler, guest, err);
}

/* MemTotal. */
static uint64_t kernel_bytes(const struct guest *guest)
{
	return metrics_page_kernel_kb(guest->options.memory_bytes) * 1024;
}

static struct vm_monitor *start_monitor(struct guest *guest, struct error *err)
{
	static const struct vm_monitor_handler HANDLER = { .on_event = on_monitor_event,
		                                           .on_accept_error = on_accept_error };
	struct vm_monitor_options options = {
		.address = guest->options.address,
		.manages_cgroup = true,
		.manages_cache = true,
		.late_2023 = guest->options.late_2023,
		.kernel_memory_bytes = kernel_bytes(guest),
	};

	options.address.port = guest->options.monitor_port;
	return vm_monitor_start(guest->loop, &options, &HANDLER, guest, err);
}

struct guest *guest_start(struct loop *loop, const struct guest_options *options, const struct guest_handler *handler,
                          void *context, struct error *err)
{
	size_t name_bytes = strlen(options->host_name) + 1;
	struct guest *guest = memory_allocate(sizeof *guest + name_bytes);

	if (guest == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for guest %s", options->host_name);
		return NULL;
	}
	guest->loop = loop;
	guest->handler = *handler;
	guest->context = context;
	guest->options = *options;
	memcpy(guest->host_name, options->host_name, name_bytes);
	guest->options.host_name = guest->host_name;
	guest->boot_wall_ns = loop_wall_ns(loop);
	guest->counted_ns = loop_now_ns(loop);

	guest->monitor = start_monitor(guest, err);
	if (guest->monitor == NULL)
		goto fail;
	guest->system_server = serve(guest, options->metrics_port, on_system_request, err);
	if (guest->system_server == NULL)
		goto fail;
	guest->lfc_server = serve(guest, options->lfc_port, on_lfc_request, err);
	if (guest->lfc_server == NULL)
		goto fail;
	return guest;

fail:
	error_wrap(err, "guest %s", options->host_name);
	guest_destroy(guest);
	return NULL;
}

void guest_destroy(struct guest *guest)
{
	if (guest == NULL)
		return;
	guest->handler.on_event = NULL;
	vm_monitor_destroy(guest->monitor);
	if (guest->system_server != NULL)
		http_server_destroy(guest->system_server);
	if (guest->lfc_server != NULL)
		http_server_destroy(guest->lfc_server);
	memory_release(guest);
}

/* ---- the owner's calls ---- */

void guest_set_demand(struct guest *guest, const struct guest_demand *demand)
{
	count_up(guest);
	guest->demand = *demand;
	vm_monitor_set_used(guest->monitor, demand->cgroup_used_bytes);
}

void guest_set_size(struct guest *guest, uint32_t cpu_milli, uint64_t memory_bytes)
{
	count_up(guest);
	guest->options.cpu_milli = cpu_milli;
	guest->options.memory_bytes = memory_bytes;
	vm_monitor_set_kernel_memory(guest->monitor, kernel_bytes(guest));
}

enum guest_monitor_state guest_monitor_state(const struct guest *guest)
{
	switch (vm_monitor_presence(guest->monitor)) {
	case VM_MONITOR_CONNECTED:
		return GUEST_MONITOR_CONNECTED;
	case VM_MONITOR_WAITING:
		return GUEST_MONITOR_WAITING;
	default:
		return GUEST_MONITOR_DOWN;
	}
}

uint64_t guest_monitor_believes_bytes(const struct guest *guest)
{
	return vm_monitor_believes_bytes(guest->monitor);
}

double guest_monitor_believes_cpus(const struct guest *guest)
{
	return vm_monitor_believes_cpus(guest->monitor);
}

struct guest_counters guest_counters(const struct guest *guest)
{
	struct vm_monitor_counters monitor = vm_monitor_counters(guest->monitor);

	return (struct guest_counters){
		.connections = monitor.connections,
		.upscales = monitor.upscales,
		.downscales_approved = monitor.downscales_approved,
		.downscales_denied = monitor.downscales_denied,
		.health_checks = monitor.health_checks,
		.upscale_requests = monitor.upscale_requests,
		.system_scrapes = guest->system_scrapes,
		.lfc_scrapes = guest->lfc_scrapes,
		.bad_messages = monitor.bad_messages,
	};
}

void guest_set_monitor_available(struct guest *guest, bool available)
{
	vm_monitor_set_available(guest->monitor, available);
}

void guest_set_monitor_faults(struct guest *guest, const struct guest_monitor_faults *faults)
{
	vm_monitor_set_faults(guest->monitor, &(struct vm_monitor_faults){ .postgres_down = faults->postgres_down,
	                                                                   .sampling_stalls = faults->sampling_stalls,
	                                                                   .work_ms = faults->work_ms });
}

void guest_set_page_fault(struct guest *guest, enum guest_page_fault fault)
{
	guest->page_fault = fault;
}

const char *guest_host_name(const struct guest *guest)
{
	return guest->host_name;
}
