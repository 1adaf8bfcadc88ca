#include "sandbox/vm_monitor_decision.h"

#include "base/clock.h"
#include "base/json_text.h"

#define MIB_BYTES ((uint64_t)1 << 20)

/* Surroundings 2.4. */
#define RESERVED_BYTES (100 * MIB_BYTES)         /* never usable */
#define BUFFER_BYTES (100 * MIB_BYTES)           /* that must be free below the new threshold */
#define CACHE_LEAST_REST_BYTES (256 * MIB_BYTES) /* without which there is no cache */
static const double THRESHOLD_FRACTION = 0.85;
static const double CACHE_DIVISOR = 1.1;
static const double CACHE_FRACTION = 0.75;

static uint64_t subtract_to_zero(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

uint64_t vm_monitor_usable_bytes(uint64_t memory_bytes)
{
	return subtract_to_zero(memory_bytes, RESERVED_BYTES);
}

uint64_t vm_monitor_threshold_bytes(uint64_t usable_bytes)
{
	return (uint64_t)((double)usable_bytes * THRESHOLD_FRACTION);
}

uint64_t vm_monitor_cache_bytes(uint64_t usable_bytes, uint64_t maximum_bytes)
{
	if (usable_bytes <= CACHE_LEAST_REST_BYTES)
		return 0;

	double by_rest = (double)(usable_bytes - CACHE_LEAST_REST_BYTES) / CACHE_DIVISOR;
	double by_fraction = (double)usable_bytes * CACHE_FRACTION;
	uint64_t bytes = (uint64_t)(by_rest < by_fraction ? by_rest : by_fraction) / MIB_BYTES * MIB_BYTES;

	return maximum_bytes != 0 && bytes > maximum_bytes ? maximum_bytes : bytes;
}

void vm_monitor_samples_begin(struct vm_monitor_samples *samples, uint64_t now_ns)
{
	*samples = (struct vm_monitor_samples){ .newest_ns = now_ns };
}

void vm_monitor_samples_add(struct vm_monitor_samples *samples, uint64_t used_bytes, uint64_t now_ns)
{
	samples->used_bytes[samples->next] = used_bytes;
	samples->next = (samples->next + 1) % VM_MONITOR_SAMPLES;
	if (samples->count < VM_MONITOR_SAMPLES)
		samples->count++;
	samples->newest_ns = now_ns;
}

uint64_t vm_monitor_samples_mean(const struct vm_monitor_samples *samples)
{
	uint64_t sum = 0;

	if (samples->count == 0)
		return 0;
	for (unsigned i = 0; i < samples->count; i++)
		sum += samples->used_bytes[i];
	return sum / samples->count;
}

uint64_t vm_monitor_state_threshold_bytes(const struct vm_monitor_state *state, uint64_t usable_bytes)
{
	uint64_t threshold = vm_monitor_threshold_bytes(usable_bytes);
	uint64_t rest;

	if (!state->late_2023 || !state->manages_cache)
		return threshold;
	rest = subtract_to_zero(usable_bytes, vm_monitor_cache_bytes(usable_bytes, state->cache_maximum_bytes));
	return rest < threshold ? rest : threshold;
}

/* The original counts in 32-bit floats here, and prints them as short as they can be. */
static void append_mib(struct buffer *status, uint64_t bytes)
{
	json_text_append_number(status, (double)((float)bytes / (float)MIB_BYTES), true);
}

static void append_denial(struct buffer *status, uint64_t threshold_bytes, uint64_t used_bytes)
{
	buffer_append_text(status, "calculated memory threshold too low: ");
	append_mib(status, threshold_bytes);
	buffer_append_text(status, " MiB (new threshold) < ");
	append_mib(status, used_bytes);
	buffer_append_text(status, " (current usage) + ");
	append_mib(status, BUFFER_BYTES);
	buffer_append_text(status, " (downscale buffer)");
}

static void append_agreement(struct buffer *status, const struct vm_monitor_state *state, uint64_t cache_bytes,
                             uint64_t threshold_bytes, uint64_t usable_bytes)
{
	if (state->manages_cache) {
		buffer_append_text(status, "set file cache size to ");
		append_mib(status, cache_bytes);
		buffer_append_text(status, " MiB");
	}
	if (state->manages_cache && state->manages_cgroup)
		buffer_append_text(status, "; ");
	if (state->manages_cgroup) {
		buffer_append_text(status, "set cgroup memory threshold from ");
		append_mib(status, state->threshold_bytes);
		buffer_append_text(status, " MiB to ");
		append_mib(status, threshold_bytes);
		buffer_append_text(status, " MiB, of new total ");
		append_mib(status, usable_bytes);
		buffer_append_text(status, " MiB");
	}
}

enum vm_monitor_verdict vm_monitor_downscale(struct vm_monitor_state *state, uint64_t memory_bytes, uint64_t now_ns,
                                             struct buffer *status)
{
	uint64_t usable = vm_monitor_usable_bytes(memory_bytes);
	uint64_t threshold = vm_monitor_state_threshold_bytes(state, usable);
	uint64_t cache = vm_monitor_cache_bytes(usable, state->cache_maximum_bytes);

	if (!state->manages_cgroup && !state->manages_cache) {
		buffer_append_text(status, "monitor is not managing cgroup or file cache");
		return VM_MONITOR_AGREED;
	}
	if (state->manages_cgroup) {
		uint64_t used = vm_monitor_samples_mean(&state->samples);

		if (now_ns - state->samples.newest_ns > (uint64_t)VM_MONITOR_SAMPLES_OLD_S * NS_PER_S)
			return VM_MONITOR_FAILED;
		if (state->samples.count < VM_MONITOR_SAMPLES_LEAST) {
			buffer_append_text(status, "haven't received enough cgroup memory stats yet");
			return VM_MONITOR_DENIED;
		}
		if (threshold < used + BUFFER_BYTES) {
			append_denial(status, threshold, used);
			return VM_MONITOR_DENIED;
		}
	}
	if (state->manages_cache && state->postgres_down)
		return VM_MONITOR_FAILED;
	append_agreement(status, state, cache, threshold, usable);
	state->cache_bytes = cache;
	state->threshold_bytes = threshold;
	return VM_MONITOR_AGREED;
}

bool vm_monitor_upscale(struct vm_monitor_state *state, uint64_t memory_bytes)
{
	uint64_t usable = vm_monitor_usable_bytes(memory_bytes);

	if (state->manages_cache && state->postgres_down)
		return false;
	state->cache_bytes = vm_monitor_cache_bytes(usable, state->cache_maximum_bytes);
	state->threshold_bytes = vm_monitor_state_threshold_bytes(state, usable);
	return true;
}
