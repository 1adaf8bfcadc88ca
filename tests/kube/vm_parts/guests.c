#include "guests.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "die.h"
#include "sandbox/agent_setup.h"
#include "sandbox/demand.h"

enum { FIRST_HOST = 10, LAST_HOST = 250, PAGE_PADDING_KB = 20 };

struct vm_part *guests_find(struct guests *guests, struct slice name)
{
	for (struct vm_part *part = guests->parts; part != NULL; part = part->next) {
		if (slice_equal_text(name, part->name))
			return part;
	}
	return NULL;
}

struct vm_part *guests_find_or_make(struct guests *guests, struct slice name)
{
	struct vm_part *part = guests_find(guests, name);

	if (part != NULL)
		return part;
	part = memory_allocate(sizeof *part);
	if (part == NULL)
		die("no memory for a VM");
	part->loop = guests->loop;
	(void)snprintf(part->name, sizeof part->name, "%.*s", SLICE_ARGS(name));
	part->demand = 1;
	part->next = guests->parts;
	guests->parts = part;
	return part;
}

static bool is_taken(const struct guests *guests, const char *address)
{
	for (const struct vm_part *part = guests->parts; part != NULL; part = part->next) {
		if (strcmp(part->place_ip, address) == 0 || strcmp(part->pod_ip, address) == 0)
			return true;
	}
	return false;
}

void guests_choose_address(struct guests *guests, struct vm_part *part)
{
	char address[ADDRESS_TEXT_BYTES];

	for (unsigned i = FIRST_HOST; i <= LAST_HOST; i++) {
		guests->last_host = guests->last_host < LAST_HOST && guests->last_host >= FIRST_HOST
		                            ? guests->last_host + 1
		                            : FIRST_HOST;
		(void)snprintf(address, sizeof address, "%s.%u", guests->prefix, guests->last_host);
		if (!is_taken(guests, address)) {
			memcpy(part->place_ip, address, sizeof address);
			return;
		}
	}
	die("there are too many VMs");
}

/* ---- one guest ---- */

static void add_up(struct guest_counters *sum, struct guest_counters more)
{
	sum->connections += more.connections;
	sum->upscales += more.upscales;
	sum->downscales_approved += more.downscales_approved;
	sum->downscales_denied += more.downscales_denied;
	sum->health_checks += more.health_checks;
	sum->upscale_requests += more.upscale_requests;
	sum->system_scrapes += more.system_scrapes;
	sum->lfc_scrapes += more.lfc_scrapes;
	sum->bad_messages += more.bad_messages;
}

static void apply_demand(struct vm_part *part)
{
	const struct workload_phase phase = { .cause = WORKLOAD_CAUSE_LOAD,
		                              .demand = part->demand,
		                              .held = part->held };
	struct guest_demand demand = demand_of_phase(&phase, part->memory_bytes);

	if (part->guest != NULL)
		guest_set_demand(part->guest, &demand);
}

static void on_event(void *context, struct guest *guest, const char *text)
{
	const struct vm_part *part = context;

	(void)guest;
	(void)printf("%s: %s\n", part->name, text);
}

static void stop(struct vm_part *part)
{
	if (part->guest == NULL)
		return;
	add_up(&part->earlier, guest_counters(part->guest));
	guest_destroy(part->guest);
	part->guest = NULL;
	part->pod_ip[0] = '\0';
}

void vm_part_run(struct vm_part *part, struct slice pod_ip)
{
	static const struct guest_handler HANDLER = { .on_event = on_event };
	struct guest_options options = {
		.host_name = part->name,
		.metrics_port = AGENT_SETUP_SYSTEM_PORT,
		.lfc_port = AGENT_SETUP_LFC_PORT,
		.monitor_port = AGENT_SETUP_MONITOR_PORT,
		.cpu_milli = part->cpu_milli,
		.memory_bytes = part->memory_bytes,
		.page_padding_kb = PAGE_PADDING_KB,
	};
	struct error err;

	if (part->guest != NULL && slice_equal_text(pod_ip, part->pod_ip))
		return;
	stop(part);
	if (pod_ip.length == 0)
		return;
	(void)snprintf(part->pod_ip, sizeof part->pod_ip, "%.*s", SLICE_ARGS(pod_ip));
	if (!address_parse(pod_ip, 0, &options.address))
		die("VM %s: \"%s\" is no address", part->name, part->pod_ip);
	part->guest = guest_start(part->loop, &options, &HANDLER, part, &err);
	if (part->guest == NULL)
		die("VM %s: %s", part->name, err.text);
	apply_demand(part);
}

void vm_part_set_size(struct vm_part *part, uint32_t cpu_milli, uint64_t memory_bytes)
{
	part->cpu_milli = cpu_milli;
	part->memory_bytes = memory_bytes;
	if (part->guest != NULL)
		guest_set_size(part->guest, cpu_milli, memory_bytes);
	apply_demand(part);
}

void vm_part_set_demand(struct vm_part *part, unsigned units, unsigned held)
{
	part->demand = units;
	part->held = held;
	apply_demand(part);
}

struct guest_counters vm_part_counters(const struct vm_part *part)
{
	struct guest_counters sum = part->earlier;

	if (part->guest != NULL)
		add_up(&sum, guest_counters(part->guest));
	return sum;
}

void guests_destroy(struct guests *guests)
{
	while (guests->parts != NULL) {
		struct vm_part *part = guests->parts;

		guests->parts = part->next;
		stop(part);
		memory_release(part);
	}
}
