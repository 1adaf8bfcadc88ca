/*
 * A stand-in for the vm-monitor in a VM (spec surroundings section 2): one agent at a time over a websocket, downscales
 * agreed or denied by what the VM uses, and requests for more when it uses too much. There is neither a cgroup nor a
 * Postgres behind it: the owner says what they would say.
 */
#ifndef BALLAST_SANDBOX_VM_MONITOR_H
#define BALLAST_SANDBOX_VM_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/address.h"
#include "net/loop.h"

struct vm_monitor;

enum {
	VM_MONITOR_SETUP_MS = 4000,                  /* from the upgrade to the end of the set-up */
	VM_MONITOR_ASK_AGAIN_MS = 1000,              /* between requests for more, at least */
	VM_MONITOR_MESSAGE_BYTES = 16 * 1024 * 1024, /* of the agent's; beyond, the connection is dropped */
	VM_MONITOR_WAITING_BYTES = 1024 * 1024,      /* that may wait while it works; beyond, likewise */
	VM_MONITOR_CONNECTIONS = 64,                 /* that are served or being replaced; more upgrades get 503 */
	VM_MONITOR_REOPEN_MS = 50,                   /* between attempts to listen again */
};

struct vm_monitor_options {
	struct address address; /* port 0: a free one, kept until the end */
	bool manages_cgroup, manages_cache;
	bool late_2023;               /* see vm_monitor_decision.h */
	uint64_t kernel_memory_bytes; /* what the kernel reports as MemTotal */
	uint64_t cache_maximum_bytes; /* Postgres' own; 0: none */
};

/* What can be wrong with it. Zero: nothing. */
struct vm_monitor_faults {
	bool postgres_down;   /* set-ups fail after the handshake, work on the cache fails */
	bool sampling_stalls; /* no more samples of the cgroup */
	uint32_t work_ms;     /* that each message takes; the others wait */
};

struct vm_monitor_counters {
	unsigned connections; /* good handshakes */
	unsigned upscales;    /* UpscaleNotification answered */
	unsigned downscales_approved, downscales_denied;
	unsigned internal_errors;
	unsigned health_checks;
	unsigned upscale_requests; /* sent */
	unsigned bad_messages;     /* anything the connection was dropped for, late first messages aside */
};

struct vm_monitor_handler {
	/* One line for the live view. May be NULL. Must not change the monitor. */
	void (*on_event)(void *context, const char *text);
	/* It couldn't accept a connection. May be NULL. */
	void (*on_accept_error)(void *context, const struct error *err);
};

enum vm_monitor_presence { VM_MONITOR_DOWN, VM_MONITOR_WAITING, VM_MONITOR_CONNECTED };

struct vm_monitor *vm_monitor_start(struct loop *loop, const struct vm_monitor_options *options,
                                    const struct vm_monitor_handler *handler, void *context, struct error *err);
void vm_monitor_destroy(struct vm_monitor *monitor); /* NULL is fine */
struct address vm_monitor_address(const struct vm_monitor *monitor);

/* The cgroup's anonymous memory, from the next sample on. */
void vm_monitor_set_used(struct vm_monitor *monitor, uint64_t used_bytes);
/* From the next connection on. */
void vm_monitor_set_kernel_memory(struct vm_monitor *monitor, uint64_t bytes);
void vm_monitor_set_faults(struct vm_monitor *monitor, const struct vm_monitor_faults *faults);
/* False cuts all connections and refuses new ones; true listens again on the same port, as soon as that is possible. */
void vm_monitor_set_available(struct vm_monitor *monitor, bool available);

/* CONNECTED: an agent's handshake was good and its connection stands. */
enum vm_monitor_presence vm_monitor_presence(const struct vm_monitor *monitor);
/* The memory of the last upscale or agreed downscale on this connection; 0 before the first. */
uint64_t vm_monitor_believes_bytes(const struct vm_monitor *monitor);
/* The vCPUs of that same message: a real one doesn't look at them. */
double vm_monitor_believes_cpus(const struct vm_monitor *monitor);
/* The threshold on this connection; 0 without one. */
uint64_t vm_monitor_threshold_now_bytes(const struct vm_monitor *monitor);
/* The cache's size. Postgres keeps it when the connection ends. */
uint64_t vm_monitor_cache_now_bytes(const struct vm_monitor *monitor);
struct vm_monitor_counters vm_monitor_counters(const struct vm_monitor *monitor);

#endif
