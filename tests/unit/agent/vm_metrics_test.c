#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/vm_metrics.h"
#include "base/memory.h"

static struct vm_metrics *create(void)
{
	struct error err;
	struct vm_metrics *metrics = vm_metrics_create(&err);

	assert_non_null(metrics);
	return metrics;
}

static struct vm_gauges sample(void)
{
	return (struct vm_gauges){
		.namespace = SLICE("apps"),
		.name = SLICE("vm-a"),
		.endpoint_id = SLICE("ep-1"),
		.project_id = SLICE("pr-1"),
		.spec_cpu = { 0.25, 2, 0.5 },
		.spec_mem = { 1073741824, 8589934592, 2147483648 },
		.has_status_cpu = true,
		.status_cpu = 0.5,
		.has_autoscaling = true,
		.autoscaling_cpu = { .min = 0.25, .max = 1.5 },
		.autoscaling_mem = { .min = 1073741824, .max = 4294967296 },
		.restart_count = 3,
		.has_extra_ip = true,
	};
}

/* The page without comments. */
static void print(struct vm_metrics *metrics, char *text, size_t size)
{
	struct buffer page;
	struct error err;
	struct slice rest;
	size_t length = 0;

	buffer_init(&page, 1 << 20);
	assert_true(vm_metrics_print(metrics, &page, &err));
	rest = buffer_slice(&page);
	while (rest.length > 0) {
		struct slice line = slice_take_until(&rest, '\n');

		if (line.length > 0 && line.data[0] == '#')
			continue;
		assert_true(length + line.length + 2 < size);
		memcpy(text + length, line.data, line.length);
		length += line.length;
		text[length++] = '\n';
	}
	text[length] = '\0';
	buffer_destroy(&page);
}

static void assert_page(struct vm_metrics *metrics, const char *expected)
{
	char text[8192];

	print(metrics, text, sizeof text);
	assert_string_equal(text, expected);
}

static bool page_has(struct vm_metrics *metrics, const char *line)
{
	char text[8192];

	print(metrics, text, sizeof text);
	return strstr(text, line) != NULL;
}

#define ENDPOINT "endpoint_id=\"ep-1\",project_id=\"pr-1\","
#define VM ",vm_name=\"vm-a\",vm_namespace=\"apps\"} "
#define PLAIN "{" ENDPOINT "vm_name=\"vm-a\",vm_namespace=\"apps\"} "
#define ERRORS                                                         \
	"promhttp_metric_handler_errors_total{cause=\"encoding\"} 0\n" \
	"promhttp_metric_handler_errors_total{cause=\"gathering\"} 0\n"

static void a_vm_has_all_its_gauges(void **state)
{
	struct vm_metrics *metrics = create();
	struct vm_gauges gauges = sample();

	(void)state;
	vm_metrics_show(metrics, &gauges);
	assert_page(metrics, "autoscaling_vm_cpu_cores{" ENDPOINT "value=\"autoscaling_max\"" VM "1.5\n"
	                     "autoscaling_vm_cpu_cores{" ENDPOINT "value=\"autoscaling_min\"" VM "0.25\n"
	                     "autoscaling_vm_cpu_cores{" ENDPOINT "value=\"spec_max\"" VM "2\n"
	                     "autoscaling_vm_cpu_cores{" ENDPOINT "value=\"spec_min\"" VM "0.25\n"
	                     "autoscaling_vm_cpu_cores{" ENDPOINT "value=\"spec_use\"" VM "0.5\n"
	                     "autoscaling_vm_cpu_cores{" ENDPOINT "value=\"status_use\"" VM "0.5\n"
	                     "autoscaling_vm_extra_ip" PLAIN "1\n"
	                     "autoscaling_vm_memory_bytes{" ENDPOINT "value=\"autoscaling_max\"" VM "4294967296\n"
	                     "autoscaling_vm_memory_bytes{" ENDPOINT "value=\"autoscaling_min\"" VM "1073741824\n"
	                     "autoscaling_vm_memory_bytes{" ENDPOINT "value=\"spec_max\"" VM "8589934592\n"
	                     "autoscaling_vm_memory_bytes{" ENDPOINT "value=\"spec_min\"" VM "1073741824\n"
	                     "autoscaling_vm_memory_bytes{" ENDPOINT "value=\"spec_use\"" VM "2147483648\n"
	                     "autoscaling_vm_restart_count" PLAIN "3\n" ERRORS);
	vm_metrics_destroy(metrics);
}

static void what_a_vm_no_longer_has_goes(void **state)
{
	struct vm_metrics *metrics = create();
	struct vm_gauges gauges = sample();

	(void)state;
	vm_metrics_show(metrics, &gauges);
	gauges.has_autoscaling = false;
	gauges.has_status_cpu = false;
	gauges.has_extra_ip = false;
	gauges.spec_cpu.use = 1;
	vm_metrics_show(metrics, &gauges);
	assert_false(page_has(metrics, "autoscaling_min"));
	assert_false(page_has(metrics, "autoscaling_max"));
	assert_false(page_has(metrics, "status_use"));
	assert_true(page_has(metrics, "autoscaling_vm_extra_ip" PLAIN "0\n"));
	assert_true(page_has(metrics, "value=\"spec_use\"" VM "1\n"));
	vm_metrics_destroy(metrics);
}

static void new_labels_replace_the_old_series_but_those_of_desired_cu(void **state)
{
	struct vm_metrics *metrics = create();
	struct vm_gauges gauges = sample();
	const struct scaling_desired_cu desired = { .total = 2, .parts = { .has_cpu = true, .cpu = 1.5 } };

	(void)state;
	vm_metrics_show(metrics, &gauges);
	vm_metrics_set_desired_cu(metrics, gauges.namespace, gauges.name, &desired);
	gauges.endpoint_id = SLICE("");
	gauges.has_autoscaling = false;
	vm_metrics_show(metrics, &gauges);
	vm_metrics_set_desired_cu(metrics, gauges.namespace, gauges.name, &(struct scaling_desired_cu){ .total = 3 });
	assert_false(page_has(metrics, "autoscaling_vm_cpu_cores{" ENDPOINT));
	assert_false(page_has(metrics, "autoscaling_vm_restart_count" PLAIN));
	assert_true(page_has(metrics, "autoscaling_vm_restart_count{endpoint_id=\"\",project_id=\"pr-1\","));
	assert_true(page_has(metrics, "autoscaling_vm_desired_cu{component=\"total\"," ENDPOINT "vm_name"));
	assert_true(page_has(metrics,
	                     "autoscaling_vm_desired_cu{component=\"total\",endpoint_id=\"\",project_id=\"pr-1\","
	                     "vm_name=\"vm-a\",vm_namespace=\"apps\"} 3\n"));
	/* They go with the VM. */
	vm_metrics_forget(metrics, gauges.namespace, gauges.name);
	assert_page(metrics, ERRORS);
	vm_metrics_destroy(metrics);
}

static void a_part_that_becomes_unknown_loses_its_series(void **state)
{
	struct vm_metrics *metrics = create();
	struct vm_gauges gauges = sample();
	struct scaling_desired_cu desired = {
		.total = 2,
		.parts = { .has_cpu = true, .cpu = 1.5, .has_mem = true, .mem = 0.75, .has_lfc = true, .lfc = 0 }
	};

	(void)state;
	vm_metrics_show(metrics, &gauges);
	vm_metrics_set_desired_cu(metrics, gauges.namespace, gauges.name, &desired);
	assert_true(page_has(metrics, "autoscaling_vm_desired_cu{component=\"cpu\"," ENDPOINT "vm_name=\"vm-a\","
	                              "vm_namespace=\"apps\"} 1.5\n"));
	assert_true(page_has(metrics, "{component=\"mem\"," ENDPOINT "vm_name=\"vm-a\",vm_namespace=\"apps\"} 0.75\n"));
	assert_true(page_has(metrics, "{component=\"lfc\"," ENDPOINT "vm_name=\"vm-a\",vm_namespace=\"apps\"} 0\n"));
	desired.parts.has_lfc = false;
	vm_metrics_set_desired_cu(metrics, gauges.namespace, gauges.name, &desired);
	assert_false(page_has(metrics, "component=\"lfc\""));
	assert_true(page_has(metrics, "component=\"mem\""));
	vm_metrics_destroy(metrics);
}

static void desired_cu_is_shown_of_known_vms_only(void **state)
{
	struct vm_metrics *metrics = create();
	struct vm_gauges gauges = sample();
	const struct scaling_desired_cu desired = { .total = 2 };

	(void)state;
	vm_metrics_set_desired_cu(metrics, gauges.namespace, gauges.name, &desired);
	assert_page(metrics, ERRORS);
	vm_metrics_show(metrics, &gauges);
	vm_metrics_set_desired_cu(metrics, SLICE("other"), gauges.name, &desired);
	assert_false(page_has(metrics, "desired_cu"));
	vm_metrics_forget(metrics, gauges.namespace, gauges.name);
	vm_metrics_set_desired_cu(metrics, gauges.namespace, gauges.name, &desired);
	assert_page(metrics, ERRORS);
	vm_metrics_destroy(metrics);
}

static void forgetting_one_vm_leaves_the_others(void **state)
{
	struct vm_metrics *metrics = create();
	struct vm_gauges first = sample();
	struct vm_gauges second = sample();

	(void)state;
	second.namespace = SLICE("vm-a");
	second.name = SLICE("apps");
	vm_metrics_show(metrics, &first);
	vm_metrics_show(metrics, &second);
	vm_metrics_forget(metrics, first.namespace, first.name);
	assert_false(page_has(metrics, "vm_name=\"vm-a\""));
	assert_true(page_has(metrics, "vm_name=\"apps\",vm_namespace=\"vm-a\"} "));
	vm_metrics_destroy(metrics);
}

static void running_out_of_memory_leaves_no_series_behind(void **state)
{
	struct vm_gauges gauges = sample();
	unsigned long step = 0;
	bool ok = false;

	(void)state;
	while (!ok) {
		struct error err;
		struct vm_metrics *metrics;

		memory_fail_at(++step);
		metrics = vm_metrics_create(&err);
		if (metrics != NULL) {
			vm_metrics_show(metrics, &gauges);
			gauges.endpoint_id = slice_equal_text(gauges.endpoint_id, "") ? SLICE("ep-1") : SLICE("");
			vm_metrics_show(metrics, &gauges);
			ok = memory_allocation_count() < step;
			memory_fail_at(0);
			vm_metrics_forget(metrics, gauges.namespace, gauges.name);
			assert_false(page_has(metrics, "vm-a"));
		}
		memory_fail_at(0);
		vm_metrics_destroy(metrics);
		assert_true(step < 1000);
	}
	assert_true(step > 10);
}

/* ---- late 2023 (generations 4.7) ---- */

#define RESOURCE(resource, value)                                                                \
	"autoscaling_vm_resources{endpoint_id=\"ep-1\",resource=\"" resource "\",value=\"" value \
	"\",vm_name=\"vm-a\",vm_namespace=\"apps\"} "
#define NO_ERRORS                                                      \
	"promhttp_metric_handler_errors_total{cause=\"encoding\"} 0\n" \
	"promhttp_metric_handler_errors_total{cause=\"gathering\"} 0\n"

static struct vm_metrics *create_late_2023(void)
{
	struct error err;
	struct vm_metrics *metrics = vm_metrics_create_late_2023(&err);

	assert_non_null(metrics);
	return metrics;
}

/* M11; where the vector spells 1.073741824e+09, pages of ours say 1073741824, the same number (as in generation B). */
static void m11_in_late_2023_there_is_one_family(void **state)
{
	struct vm_metrics *metrics = create_late_2023();
	struct vm_gauges gauges = sample();

	(void)state;
	gauges.has_status_cpu = false;
	gauges.has_status_mem = true;
	gauges.status_mem = 3221225472;
	vm_metrics_show(metrics, &gauges);
	assert_page(
		metrics,
		RESOURCE("cpu", "max") "2\n" RESOURCE("cpu", "min") "0.25\n" RESOURCE("cpu", "spec_use") "0.5\n" RESOURCE("mem", "max") "8589934592\n" RESOURCE(
			"mem",
			"min") "1073741824\n" RESOURCE("mem",
	                                               "spec_use") "2147483648\n" RESOURCE("mem",
	                                                                                   "status_use") "3221225472\n" NO_ERRORS);
	vm_metrics_forget(metrics, SLICE("apps"), SLICE("vm-a"));
	assert_page(metrics, NO_ERRORS);
	vm_metrics_destroy(metrics);
}

static void in_late_2023_series_that_no_longer_occur_go(void **state)
{
	struct vm_metrics *metrics = create_late_2023();
	struct vm_gauges gauges = sample();
	const struct scaling_desired_cu desired = { .total = 3 };

	(void)state;
	vm_metrics_show(metrics, &gauges);
	assert_true(page_has(metrics, RESOURCE("cpu", "status_use") "0.5"));
	gauges.has_status_cpu = false;
	gauges.spec_cpu.use = 0; /* the spec doesn't say */
	vm_metrics_show(metrics, &gauges);
	assert_false(page_has(metrics, RESOURCE("cpu", "status_use") "0.5"));
	assert_false(page_has(metrics, RESOURCE("cpu", "spec_use") "0.5"));
	gauges.endpoint_id = SLICE("");
	vm_metrics_show(metrics, &gauges);
	assert_false(page_has(metrics, RESOURCE("cpu", "min") "0.25"));
	/* Of the newest only. */
	vm_metrics_set_desired_cu(metrics, SLICE("apps"), SLICE("vm-a"), &desired);
	assert_false(page_has(metrics, "autoscaling_vm_desired_cu"));
	vm_metrics_destroy(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vm_has_all_its_gauges),
		cmocka_unit_test(what_a_vm_no_longer_has_goes),
		cmocka_unit_test(new_labels_replace_the_old_series_but_those_of_desired_cu),
		cmocka_unit_test(a_part_that_becomes_unknown_loses_its_series),
		cmocka_unit_test(desired_cu_is_shown_of_known_vms_only),
		cmocka_unit_test(forgetting_one_vm_leaves_the_others),
		cmocka_unit_test(m11_in_late_2023_there_is_one_family),
		cmocka_unit_test(in_late_2023_series_that_no_longer_occur_go),
		cmocka_unit_test(running_out_of_memory_leaves_no_series_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
