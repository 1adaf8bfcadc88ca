#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "sandbox/vm_monitor_decision.h"
#include "tests/support/vector_file.h"

static const uint64_t MIB = 1 << 20, MEM_TOTAL_BYTES = UINT64_C(4030112) * 1024;

static bool is_let_through(uint64_t memory_bytes, uint64_t used_bytes)
{
	struct vm_monitor_state state = { .manages_cgroup = true };
	struct buffer status;

	vm_monitor_samples_begin(&state.samples, 0);
	vm_monitor_samples_add(&state.samples, used_bytes, 0);
	vm_monitor_samples_add(&state.samples, used_bytes, 0);
	buffer_init(&status, VM_MONITOR_STATUS_BYTES);

	bool agreed = vm_monitor_downscale(&state, memory_bytes, 0, &status) == VM_MONITOR_AGREED;

	assert_false(status.failed);
	buffer_destroy(&status);
	return agreed;
}

static void check_sizes(const struct vector_row *row)
{
	uint64_t memory = strtoull(row->fields[0], NULL, 10) * MIB;
	uint64_t usable = vm_monitor_usable_bytes(memory);
	char threshold[32];

	assert_int_equal(row->count, 5);
	assert_int_equal(usable, strtoull(row->fields[1], NULL, 10) * MIB);
	snprintf(threshold, sizeof threshold, "%.1f", (double)vm_monitor_threshold_bytes(usable) / (double)MIB);
	assert_string_equal(threshold, row->fields[2]);
	assert_int_equal(vm_monitor_cache_bytes(usable, 0), strtoull(row->fields[3], NULL, 10) * MIB);
	if (strcmp(row->fields[4], "-") == 0) {
		assert_false(is_let_through(memory, 0));
		return;
	}

	uint64_t highest = strtoull(row->fields[4], NULL, 10);

	assert_true(is_let_through(memory, highest));
	assert_false(is_let_through(memory, highest + 1));
}

static void sizes_follow_from_the_memory(void **unused)
{
	(void)unused;
	assert_int_equal(vector_table_walk("vectors/sandbox/monitor_sizes.txt", check_sizes), 7);
}

static struct vm_monitor_state state_managing(const char *what)
{
	struct vm_monitor_state state = {
		.manages_cgroup = strcmp(what, "both") == 0 || strcmp(what, "cgroup") == 0,
		.manages_cache = strcmp(what, "both") == 0 || strcmp(what, "cache") == 0,
		.threshold_bytes = vm_monitor_threshold_bytes(MEM_TOTAL_BYTES),
		.cache_bytes = vm_monitor_cache_bytes(MEM_TOTAL_BYTES, 0),
	};

	vm_monitor_samples_begin(&state.samples, 0);
	return state;
}

static void check_downscale(const struct vector_row *row)
{
	static const char *const VERDICTS[] = { "agreed", "denied", "failed" };
	struct vm_monitor_state state = state_managing(row->fields[1]);
	struct vm_monitor_state before;
	uint64_t memory = strtoull(row->fields[2], NULL, 10);
	uint64_t usable = vm_monitor_usable_bytes(memory);
	struct buffer status;

	assert_int_equal(row->count, 6);
	for (char *at = row->fields[3]; *at != '\0';)
		vm_monitor_samples_add(&state.samples, strtoull(at, &at, 10), 0);
	before = state;
	buffer_init(&status, VM_MONITOR_STATUS_BYTES);

	enum vm_monitor_verdict verdict = vm_monitor_downscale(&state, memory, 0, &status);

	assert_string_equal(VERDICTS[verdict], row->fields[4]);
	if (!slice_equal_text(buffer_slice(&status), row->fields[5]))
		fail_msg("%s: %.*s", row->fields[0], SLICE_ARGS(buffer_slice(&status)));
	buffer_destroy(&status);
	if (verdict == VM_MONITOR_AGREED && state.manages_cgroup)
		assert_int_equal(state.threshold_bytes, vm_monitor_threshold_bytes(usable));
	if (verdict == VM_MONITOR_AGREED && state.manages_cache)
		assert_int_equal(state.cache_bytes, vm_monitor_cache_bytes(usable, 0));
	if (verdict != VM_MONITOR_AGREED)
		assert_memory_equal(&state, &before, sizeof state);
}

static void downscales_are_agreed_to_or_denied_with_the_originals_words(void **unused)
{
	(void)unused;
	assert_int_equal(vector_table_walk("vectors/sandbox/monitor_downscales.txt", check_downscale), 10);
}

static void old_samples_and_a_dead_postgres_fail_a_downscale(void **unused)
{
	struct vm_monitor_state state = state_managing("both");
	struct vm_monitor_state before;
	struct buffer status;

	(void)unused;
	buffer_init(&status, VM_MONITOR_STATUS_BYTES);
	vm_monitor_samples_add(&state.samples, 0, 0);
	vm_monitor_samples_add(&state.samples, 0, NS_PER_S);
	before = state;
	assert_int_equal(vm_monitor_downscale(&state, 2048 * MIB, 6 * (uint64_t)NS_PER_S + 1, &status),
	                 VM_MONITOR_FAILED);
	state.postgres_down = true;
	before.postgres_down = true;
	assert_int_equal(vm_monitor_downscale(&state, 2048 * MIB, 6 * (uint64_t)NS_PER_S, &status), VM_MONITOR_FAILED);
	assert_int_equal(status.length, 0);
	assert_memory_equal(&state, &before, sizeof state);

	state.postgres_down = false;
	assert_int_equal(vm_monitor_downscale(&state, 2048 * MIB, 6 * (uint64_t)NS_PER_S, &status), VM_MONITOR_AGREED);
	buffer_destroy(&status);
}

static void upscales_move_threshold_and_cache_also_downwards(void **unused)
{
	struct vm_monitor_state state = state_managing("both");

	(void)unused;
	assert_true(vm_monitor_upscale(&state, 5120 * MIB)); /* M8 */
	assert_int_equal(state.threshold_bytes, 4267 * MIB);
	assert_int_equal(state.cache_bytes, 3765 * MIB);
	assert_true(vm_monitor_upscale(&state, 512 * MIB));
	assert_int_equal(state.cache_bytes, 141 * MIB);
	state.postgres_down = true;
	assert_false(vm_monitor_upscale(&state, 5120 * MIB));
	assert_int_equal(state.cache_bytes, 141 * MIB);
	state.manages_cache = false;
	assert_true(vm_monitor_upscale(&state, 5120 * MIB));
	assert_int_equal(state.threshold_bytes, 4267 * MIB);
}

static void the_cache_never_exceeds_postgres_own_maximum(void **unused)
{
	(void)unused;
	assert_int_equal(vm_monitor_cache_bytes(3996 * MIB, 1000 * MIB), 1000 * MIB);
	assert_int_equal(vm_monitor_cache_bytes(924 * MIB, 1000 * MIB), 607 * MIB);
	assert_int_equal(vm_monitor_cache_bytes(256 * MIB, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_follow_from_the_memory),
		cmocka_unit_test(downscales_are_agreed_to_or_denied_with_the_originals_words),
		cmocka_unit_test(old_samples_and_a_dead_postgres_fail_a_downscale),
		cmocka_unit_test(upscales_move_threshold_and_cache_also_downwards),
		cmocka_unit_test(the_cache_never_exceeds_postgres_own_maximum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
