/*
 * A guest: what lives inside one VM of the sandbox, on an address of its own in 127.0.0.0/8: the system metrics page,
 * the LFC page and the vm-monitor (spec surroundings sections 2 and 4).
 *
 * The workload says what the guest does (load, memory); the control plane says what it has (size). Pages and the
 * monitor's answers follow from both. The guest counts what the agent did, for the report.
 */
#ifndef BALLAST_SANDBOX_GUEST_H
#define BALLAST_SANDBOX_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/address.h"
#include "net/loop.h"

struct guest;

enum guest_monitor_state { GUEST_MONITOR_DOWN, GUEST_MONITOR_WAITING, GUEST_MONITOR_CONNECTED };

/* What the guest does at the moment. Zero at the start: an idle VM without LFC. */
struct guest_demand {
	double load_average_1_min, load_average_5_min; /* the page shows them as 32-bit floats */
	/*
	 * What total − available on the page comes to, rounded to 1000; never more than the page's total, which is
	 * less than what is plugged.
	 */
	uint64_t memory_used_bytes;
	uint64_t memory_cached_bytes; /* rounded and limited likewise */
	uint64_t cgroup_used_bytes;   /* anonymous memory the monitor sees (surroundings 2.4) */
	/* LFC windows of 1, 2, … 60 minutes, in 8 KiB pages; all 0: no LFC page (500). */
	uint64_t working_set_pages[60];
};

struct guest_options {
	const char *host_name;  /* "vm-pine-x7k2p"; copied */
	struct address address; /* port ignored */
	uint16_t metrics_port, lfc_port, monitor_port;
	uint32_t cpu_milli; /* plugged at start */
	uint64_t memory_bytes;
	const char *metrics_prefix; /* of names on the system page; NULL: "host_". Must outlive the guest */
	bool late_2023;             /* the vm-monitor is of that time */
	unsigned
		page_padding_kb; /* about this much more on the system page, which has 10 kB: real ones have up to 68 */
};

struct guest_counters {
	unsigned connections; /* good handshakes */
	unsigned upscales;    /* UpscaleNotification answered */
	unsigned downscales_approved, downscales_denied;
	unsigned health_checks;
	unsigned upscale_requests; /* sent by the monitor */
	unsigned system_scrapes, lfc_scrapes;
	unsigned bad_messages; /* anything the real monitor would drop the connection for */
};

/* What can be wrong with a guest's pages: either page, until set otherwise. */
enum guest_page_fault {
	GUEST_PAGE_GOOD,
	GUEST_PAGE_EMPTY, /* 200, and nothing: before the collector's first round */
	GUEST_PAGE_ERROR, /* 500 */
	GUEST_PAGE_HANGS, /* no answer */
	GUEST_PAGE_CUT,   /* ends in the middle, with the connection */
};

/* What can be wrong with its monitor. Zero: nothing. */
struct guest_monitor_faults {
	bool postgres_down;   /* connections end after a good handshake; down- and upscales get InternalError */
	bool sampling_stalls; /* after 5 s downscales get InternalError */
	uint32_t work_ms;     /* that each message takes */
};

struct guest_handler {
	/* One line for the live view: "denied downscale to 1024 MiB: …". May be NULL. Must not change the guest. */
	void (*on_event)(void *context, struct guest *guest, const char *text);
	/* A port of the guest couldn't accept a connection: descriptors are short, say. May be NULL. */
	void (*on_accept_error)(void *context, const struct error *err);
};

struct guest *guest_start(struct loop *loop, const struct guest_options *options, const struct guest_handler *handler,
                          void *context, struct error *err);
void guest_set_demand(struct guest *guest, const struct guest_demand *demand);
/* The hypervisor plugged or unplugged. */
void guest_set_size(struct guest *guest, uint32_t cpu_milli, uint64_t memory_bytes);
/* CONNECTED: the agent's handshake was good and its connection stands. */
enum guest_monitor_state guest_monitor_state(const struct guest *guest);
/* The memory of the last granted upscale or approved downscale on this connection; 0 before the first. */
uint64_t guest_monitor_believes_bytes(const struct guest *guest);
double guest_monitor_believes_cpus(const struct guest *guest); /* of the same message */
struct guest_counters guest_counters(const struct guest *guest);
/* An outage: false drops the connection, and the port refuses, until true. */
void guest_set_monitor_available(struct guest *guest, bool available);
void guest_set_monitor_faults(struct guest *guest, const struct guest_monitor_faults *faults);
void guest_set_page_fault(struct guest *guest, enum guest_page_fault fault);
const char *guest_host_name(const struct guest *guest);
void guest_destroy(struct guest *guest); /* NULL is fine */

#endif
