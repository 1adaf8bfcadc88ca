/*
 * What lives inside the VMs of the cluster: for each that runs, one of the sandbox's guests (metrics page and vm-monitor) on its pod's address.
 */
#ifndef BALLAST_TESTS_KUBE_GUESTS_H
#define BALLAST_TESTS_KUBE_GUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/address.h"
#include "net/loop.h"
#include "sandbox/guest.h"
#include "sandbox/neonvm_controller.h"

/* A VM by its name, also while it doesn't run, and after it was made anew. */
struct vm_part {
	struct vm_part *next;
	struct loop *loop;
	char name[NEONVM_NAME_BYTES];
	char place_ip[ADDRESS_TEXT_BYTES]; /* of its next pod, or "" */
	char pod_ip[ADDRESS_TEXT_BYTES];   /* of its guest, or "" */
	struct guest *guest;               /* NULL: doesn't run */
	uint32_t cpu_milli;                /* plugged */
	uint64_t memory_bytes;
	unsigned demand, held;         /* in units, as in the workload of the sandbox */
	struct guest_counters earlier; /* of guests that have ended */
	unsigned patches;              /* of what its spec uses */
};

struct guests {
	struct loop *loop;
	const char *prefix; /* "127.1.2" */
	unsigned last_host; /* of an address given out */
	struct vm_part *parts;
};

struct vm_part *guests_find(struct guests *guests, struct slice name); /* NULL: no such VM so far */
struct vm_part *guests_find_or_make(struct guests *guests, struct slice name);
/* Sets place_ip to an address that no other VM has. */
void guests_choose_address(struct guests *guests, struct vm_part *part);
/* The VM runs there; "": it doesn't. Its size has been set. */
void vm_part_run(struct vm_part *part, struct slice pod_ip);
void vm_part_set_size(struct vm_part *part, uint32_t cpu_milli, uint64_t memory_bytes);
/* What its load asks for, and how much its monitor insists on (0: nothing). */
void vm_part_set_demand(struct vm_part *part, unsigned units, unsigned held);
struct guest_counters vm_part_counters(const struct vm_part *part);
void guests_destroy(struct guests *guests);

#endif
