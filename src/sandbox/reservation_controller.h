/*
 * A stand-in for the reservation part of csi-baremetal's controller and operator (spec extender 13, R1 … R6, and D6): watches reservations in
 * the store, plans each that is REQUESTED, one at a time in the order of their coming, and writes RESERVED or REJECTED. Each minute it removes
 * those whose pod is gone or runs.
 *
 * The original's times are divided by speed.
 */
#ifndef BALLAST_SANDBOX_RESERVATION_CONTROLLER_H
#define BALLAST_SANDBOX_RESERVATION_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/loop.h"
#include "sandbox/object_store.h"

enum {
	RESERVATION_REACTION_MS = 100,    /* from a change to its plan */
	RESERVATION_FAST_DELAY_MS = 1500, /* between attempts of one that must wait (R2) … */
	RESERVATION_SLOW_DELAY_MS = 12000,
	RESERVATION_FAST_ATTEMPTS = 30, /* … and how many of them are fast */
	RESERVATION_SWEEP_MS = 60000,
};

struct reservation_controller;

struct reservation_controller_options {
	struct object_store *store; /* must outlive the controller */
	double speed;
	bool parallel; /* reservations of logical volumes don't wait for each other (R2 is off) */
};

struct reservation_counters {
	unsigned reserved, rejected; /* answers */
	unsigned waits;              /* attempts put off in sequential mode */
	unsigned swept;
};

struct reservation_controller *reservation_controller_create(struct loop *loop,
                                                             const struct reservation_controller_options *options,
                                                             struct error *err);
void reservation_controller_destroy(struct reservation_controller *controller); /* NULL is fine */
struct reservation_counters reservation_controller_counters(const struct reservation_controller *controller);

#endif
