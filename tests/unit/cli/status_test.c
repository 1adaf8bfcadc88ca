/* What `ballast status` makes of dumps: the specification's of both generations, and one with everything in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "cli/status_read.h"
#include "cli/status_table.h"
#include "codec/rfc3339.h"

static struct arena arena;
static struct buffer dump, output;
static struct status status;
static struct error err;

static int begin(void **state)
{
	(void)state;
	arena_init(&arena, 16 << 20);
	buffer_init(&dump, 1 << 20);
	buffer_init(&output, 1 << 20);
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_destroy(&arena);
	buffer_destroy(&dump);
	buffer_destroy(&output);
	return 0;
}

static void read_vector(const char *path)
{
	if (!file_read(path, &dump, &err) || !status_read(buffer_slice(&dump), &arena, &status, &err))
		fail_msg("%s: %s", path, err.text);
}

static void check_table(const char *now, const char *expected)
{
	int64_t now_ns = 0;

	assert_true(rfc3339_parse(slice_of(now), &now_ns, &err));
	status_table_append(&status, now_ns, &output);
	buffer_append_char(&output, '\0');
	assert_false(output.failed);
	assert_string_equal(output.data, expected);
}

static void check_json(size_t index, const char *expected)
{
	buffer_clear(&output);
	assert_true(status_line_vm_to_json(&status.vms[index], &output, &err));
	buffer_append_char(&output, '\0');
	assert_string_equal(output.data, expected);
}

static void generation_b_is_read(void **state)
{
	(void)state;
	read_vector("tests/vectors/status/generation_b.json");
	check_table("2025-03-04T05:06:13.5Z",
	            "VM         STATE  USING    GOAL  PERMIT   MONITOR  NOW  LAST ACTION   AGE\n"
	            "apps/vm-a  ok     0.5/2Gi  -     0.5/2Gi  0.5/2Gi  -    plugin asked  5s\n"
	            "1 VM, 0 stuck\n");
	check_json(0, "{\"namespace\":\"apps\",\"name\":\"vm-a\",\"pod\":\"vm-a-x7k2p\",\"endpointID\":\"ep-1\","
	              "\"generation\":\"B\",\"state\":\"ok\",\"stuck\":false,\"restarts\":0,\"answered\":true,"
	              "\"using\":{\"cpuMilli\":500,\"memBytes\":2147483648},\"goal\":null,"
	              "\"permit\":{\"cpuMilli\":500,\"memBytes\":2147483648},\"monitor\":{\"connected\":true,"
	              "\"approved\":{\"cpuMilli\":500,\"memBytes\":2147483648}},\"ongoing\":[],"
	              "\"lastAction\":{\"what\":\"plugin asked\",\"at\":\"2025-03-04T05:06:08Z\"}}");
}

static void generation_a_is_read_and_its_slots_become_bytes(void **state)
{
	(void)state;
	read_vector("tests/vectors/status/generation_a.json");
	check_table("2023-11-29T12:10:00Z",
	            "VM                        STATE  USING  GOAL     PERMIT    MONITOR  NOW                        "
	            "LAST ACTION       AGE\n"
	            "default/compute-calm-sea  ok     1/4Gi  1.5/6Gi  1.25/5Gi  1/4Gi    telling monitor, patching  "
	            "downscale denied  10m\n"
	            "1 VM, 0 stuck\n");
	check_json(0, "{\"namespace\":\"default\",\"name\":\"compute-calm-sea\",\"pod\":\"compute-calm-sea-lx4rk\","
	              "\"endpointID\":\"ep-calm-sea-123456\",\"generation\":\"A\",\"state\":\"ok\",\"stuck\":false,"
	              "\"restarts\":1,\"answered\":true,\"using\":{\"cpuMilli\":1000,\"memBytes\":4294967296},"
	              "\"goal\":{\"cpuMilli\":1500,\"memBytes\":6442450944},"
	              "\"permit\":{\"cpuMilli\":1250,\"memBytes\":5368709120},\"monitor\":{\"connected\":true,"
	              "\"approved\":{\"cpuMilli\":1000,\"memBytes\":4294967296}},"
	              "\"ongoing\":[\"telling monitor\",\"patching\"],"
	              "\"lastAction\":{\"what\":\"downscale denied\",\"at\":\"2023-11-29T12:00:00.8Z\"}}");
}

static void all_that_may_be_in_a_dump_is_shown(void **state)
{
	(void)state;
	read_vector("tests/vectors/status/many_b.json");
	check_table(
		"2025-03-04T08:06:13Z",
		"VM                STATE     USING        GOAL   PERMIT       MONITOR    NOW                              "
		"        LAST ACTION       AGE\n"
		"apps/vm-b         stuck     1.25/2560Mi  1/2Gi  1.25/2560Mi  connected  asking plugin, asking monitor, "
		"patching  downscale denied  3h\n"
		"apps/vm-c         panicked  0.5/2Gi      -      -            -          no answer                        "
		"        -                 -\n"
		"apps/vm-a         ok        0.5/2Gi      -      0.5/2Gi      0.5/2Gi    -                                "
		"        plugin asked      3h\n"
		"other/vm-?[31m-é  ok        -            -      -            away       -                                "
		"        -                 -\n"
		"4 VMs, 1 stuck; the agent is shutting down\n");
	assert_int_equal(status.vms[1].restarts, 2);
	assert_true(status.vms[1].stuck);
	assert_false(status.vms[2].answered);
	assert_true(status.stopped);
}

static void read_text(const char *text, bool is_dump, const char *complaint)
{
	bool ok = status_read(slice_of(text), &arena, &status, &err);

	if (ok != is_dump)
		fail_msg("%s: %s", text, ok ? "it was read" : err.text);
	if (!ok && strstr(err.text, complaint) == NULL)
		fail_msg("%s: %s", text, err.text);
}

static void an_agent_without_vms_has_an_empty_table(void **state)
{
	(void)state;
	read_text("{\"stopped\":false,\"pods\":[]}", true, "");
	assert_int_equal(status.vm_count, 0);
	read_text("{\"pods\":null}", true, "");
	check_table("2025-03-04T05:06:13Z",
	            "VM  STATE  USING  GOAL  PERMIT  MONITOR  NOW  LAST ACTION  AGE\n0 VMs, 0 stuck\n");
}

static void what_is_no_dump_is_refused(void **state)
{
	(void)state;
	read_text("", false, "no state dump");
	read_text("<html>", false, "no state dump");
	read_text("[]", false, "no state dump");
	read_text("{}", false, "it has no \"pods\"");
	read_text("{\"pods\":{}}", false, "field \"pods\"");
	read_text("{\"pods\":[1]}", false, "field \"pods[0]\"");
	read_text("{\"pods\":[]", false, "no state dump");
}

static void amounts_beyond_all_bounds_saturate(void **state)
{
	(void)state;
	read_text("{\"pods\":[{\"status\":{\"vmInfo\":{\"name\":\"x\",\"mem\":{\"use\":18446744073709551615,"
	          "\"slotSize\":\"1Gi\"}}}}]}",
	          true, "");
	assert_true(status.vms[0].has_using);
	assert_true(status.vms[0].using.mem_bytes == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(generation_b_is_read, begin, end),
		cmocka_unit_test_setup_teardown(generation_a_is_read_and_its_slots_become_bytes, begin, end),
		cmocka_unit_test_setup_teardown(all_that_may_be_in_a_dump_is_shown, begin, end),
		cmocka_unit_test_setup_teardown(an_agent_without_vms_has_an_empty_table, begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_dump_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(amounts_beyond_all_bounds_saturate, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
