#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/billing_slices.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tests/support/vector_file.h"

enum { TEXT_BYTES = 4096 };

struct told {
	struct buffer text;
	unsigned usages; /* of this drain */
};

static void tell(void *context, const struct billing_usage *usage)
{
	struct told *told = context;

	buffer_append_text(&told->text, told->usages++ > 0 ? ", " : "");
	if (usage->endpoint_id.length == 0)
		buffer_append_text(&told->text, "\"\"");
	buffer_append_format(&told->text, "%.*s %llu/%llu", SLICE_ARGS(usage->endpoint_id),
	                     (unsigned long long)usage->cpu_seconds, (unsigned long long)usage->active_seconds);
}

static void drain(struct billing_slices *slices, struct told *told)
{
	size_t count = billing_slices_count(slices);

	if (told->text.length > 0)
		buffer_append_text(&told->text, "; ");
	told->usages = 0;
	billing_slices_drain(slices, tell, told);
	assert_int_equal(told->usages, count);
	assert_int_equal(billing_slices_count(slices), 0);
	if (count == 0)
		buffer_append_text(&told->text, "none");
}

/* "12.0005" */
static uint64_t ns_of(const char *text)
{
	char *rest;
	uint64_t ns = strtoull(text, &rest, 10) * NS_PER_S;
	uint64_t digit = NS_PER_S;

	for (rest += *rest == '.'; *rest != '\0'; rest++) {
		digit /= 10;
		ns += (uint64_t)(*rest - '0') * digit;
	}
	return ns;
}

/* "u/ep=1000" */
static void see(struct billing_slices *slices, char *text)
{
	struct slice rest = slice_of(text);
	struct slice vm = slice_take_until(&rest, '=');
	struct slice endpoint = vm;
	struct slice uid = slice_take_until(&endpoint, '/');
	uint64_t milli;
	struct error err;

	if (memchr(vm.data, '/', vm.length) == NULL)
		endpoint = uid;
	assert_true(slice_to_u64(rest, &milli));
	assert_true(billing_slices_see(slices, uid, endpoint, (uint32_t)milli, &err));
}

static void collect(struct billing_slices *slices, char *step)
{
	char *vms = strchr(step, ':');
	char *place;

	assert_non_null(vms);
	*vms++ = '\0';
	billing_slices_begin(slices, ns_of(step));
	for (char *vm = strtok_r(vms, ",", &place); vm != NULL; vm = strtok_r(NULL, ",", &place)) {
		if (strcmp(vm, "-") != 0)
			see(slices, vm);
	}
}

static void check(const struct vector_row *row)
{
	struct billing_slices slices;
	struct told told = { .usages = 0 };
	char *place;

	assert_int_equal(row->count, 3);
	billing_slices_init(&slices);
	buffer_init(&told.text, TEXT_BYTES);
	for (char *step = strtok_r(row->fields[1], " ", &place); step != NULL; step = strtok_r(NULL, " ", &place)) {
		if (strcmp(step, "drain") == 0)
			drain(&slices, &told);
		else
			collect(&slices, step);
	}
	if (!slice_equal_text(buffer_slice(&told.text), row->fields[2]))
		fail_msg("%s (line %zu):\n  expected %s\n  found    %.*s", row->fields[0], row->line, row->fields[2],
		         SLICE_ARGS(buffer_slice(&told.text)));
	buffer_destroy(&told.text);
	billing_slices_destroy(&slices);
}

static void vectors(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/billing/slices.txt", check) > 30);
}

static void see_ep(struct billing_slices *slices, uint64_t at_ns, uint32_t milli)
{
	struct error err;

	billing_slices_begin(slices, at_ns);
	assert_true(billing_slices_see(slices, SLICE("u"), SLICE("ep"), milli, &err));
}

static void add_up(void *context, const struct billing_usage *usage)
{
	uint64_t *sums = context;

	sums[0] += usage->cpu_seconds;
	sums[1] += usage->active_seconds;
}

static void sums_over_many_drains_are_right_within_half_a_second(void **state)
{
	const uint64_t step_ns = 999937331; /* a ticker that is never exact */
	struct billing_slices slices;
	uint64_t sums[2] = { 0, 0 };
	double used_s = 0;
	uint64_t now_ns = 0;
	uint32_t milli = 250;

	(void)state;
	billing_slices_init(&slices);
	see_ep(&slices, now_ns, milli);
	for (unsigned i = 1; i <= 10000; i++) {
		uint32_t next = 250 * (1 + i * 7 % 11);

		now_ns += step_ns;
		used_s += (double)step_ns / 1e9 * (next < milli ? next : milli) / 1000;
		milli = next;
		see_ep(&slices, now_ns, milli);
		if (i % 3 == 0)
			billing_slices_drain(&slices, add_up, sums);
	}
	billing_slices_drain(&slices, add_up, sums);
	assert_true((double)sums[0] > used_s - 0.51 && (double)sums[0] < used_s + 0.51);
	assert_int_equal(sums[1], (now_ns + NS_PER_S / 2) / NS_PER_S);
	billing_slices_destroy(&slices);
}

static void a_vm_that_went_is_forgotten(void **state)
{
	struct billing_slices slices;
	uint64_t sums[2] = { 0, 0 };

	(void)state;
	billing_slices_init(&slices);
	see_ep(&slices, 0, 1000);
	see_ep(&slices, 1400000000, 1000);
	billing_slices_drain(&slices, add_up, sums);
	for (unsigned i = 0; i < BILLING_REMAINDER_DRAINS; i++) {
		assert_int_equal(slices.vms.count, 1);
		billing_slices_begin(&slices, (uint64_t)(2 + i) * NS_PER_S);
		billing_slices_drain(&slices, add_up, sums);
	}
	billing_slices_begin(&slices, UINT64_C(100) * NS_PER_S);
	billing_slices_drain(&slices, add_up, sums);
	assert_int_equal(slices.vms.count, 0);
	assert_int_equal(sums[0], 1);
	billing_slices_destroy(&slices);
}

static void a_clock_that_goes_back_bills_nothing(void **state)
{
	struct billing_slices slices;
	uint64_t sums[2] = { 0, 0 };

	(void)state;
	billing_slices_init(&slices);
	see_ep(&slices, UINT64_C(9) * NS_PER_S, 1000);
	see_ep(&slices, UINT64_C(5) * NS_PER_S, 1000);
	see_ep(&slices, UINT64_C(10) * NS_PER_S, 1000);
	billing_slices_drain(&slices, add_up, sums);
	assert_int_equal(sums[0], 1);
	billing_slices_destroy(&slices);
}

static void without_memory_a_vm_counts_as_not_seen(void **state)
{
	struct billing_slices slices;
	uint64_t sums[2] = { 0, 0 };
	struct error err;
	bool seen;
	unsigned failures = 0;

	(void)state;
	billing_slices_init(&slices);
	for (unsigned i = 1; i < 20; i++) {
		billing_slices_begin(&slices, i * (uint64_t)NS_PER_S);
		memory_fail_at(i);
		seen = billing_slices_see(&slices, SLICE("u"), SLICE("ep"), 1000, &err);
		memory_fail_at(0);
		if (!seen)
			assert_int_equal(err.code, ERROR_NO_MEMORY);
		failures += !seen;
	}
	assert_true(failures > 0 && failures < 10);
	billing_slices_drain(&slices, add_up, sums);
	assert_true(sums[0] >= 18 - 2 * failures && sums[0] < 18);
	billing_slices_destroy(&slices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors),
		cmocka_unit_test(sums_over_many_drains_are_right_within_half_a_second),
		cmocka_unit_test(a_vm_that_went_is_forgotten),
		cmocka_unit_test(a_clock_that_goes_back_bills_nothing),
		cmocka_unit_test(without_memory_a_vm_counts_as_not_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
