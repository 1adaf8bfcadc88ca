/*
 * The vm-monitor's side of the protocol with the agent: reading what the agent sends as strictly as the original does,
 * and printing what it answers (spec surroundings 2.2.3, 2.3).
 */
#ifndef BALLAST_SANDBOX_VM_MONITOR_MESSAGES_H
#define BALLAST_SANDBOX_VM_MONITOR_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

enum {
	VM_MONITOR_ANSWER_BYTES = 2048, /* the longest message that it sends */
};

/* The agent's first message: which versions of the protocol it speaks. */
struct vm_monitor_range {
	uint16_t min, max;
};

/* False for anything that the original would drop the connection for. */
bool vm_monitor_read_range(struct slice text, struct vm_monitor_range *ret_range);
/* Appends the answer; whether there is a version that both speak. */
bool vm_monitor_answer_range(const struct vm_monitor_range *range, struct buffer *out);

enum vm_monitor_request_kind {
	VM_MONITOR_HEALTH_CHECK,
	VM_MONITOR_DOWNSCALE,
	VM_MONITOR_UPSCALE,
	VM_MONITOR_COMPLAINT, /* InvalidMessage, InternalError: no answer */
};

struct vm_monitor_request {
	enum vm_monitor_request_kind kind;
	uint64_t id;
	uint64_t memory_bytes; /* of a downscale and an upscale */
	double cpus;           /* likewise; a real one doesn't look at them */
};

/* False for anything that the original would drop the connection for. */
bool vm_monitor_read_request(struct slice text, struct vm_monitor_request *ret_request);

/* Each appends one message. */
void vm_monitor_write_message(struct buffer *out, struct slice type, uint64_t id);
void vm_monitor_write_downscale_result(struct buffer *out, bool agreed, struct slice status, uint64_t id);
void vm_monitor_write_internal_error(struct buffer *out, struct slice text, uint64_t id);

#endif
