#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "metrics/registry.h"

static struct metrics_family *add_family(struct metrics_registry *registry, struct metrics_family_options options)
{
	struct error err;
	struct metrics_family *family = metrics_registry_add(registry, &options, &err);

	assert_non_null(family);
	return family;
}

/* A family with up to three labels; unused ones NULL. */
static struct metrics_family *add_labelled(struct metrics_registry *registry, enum metrics_kind kind, const char *name,
                                           const char *a, const char *b, const char *c)
{
	return add_family(registry, (struct metrics_family_options){ kind, name, "Help.", { a, b, c }, NULL, 0 });
}

static void assert_page(const struct metrics_registry *registry, const char *expected)
{
	struct buffer page;
	struct error err;

	buffer_init(&page, 1 << 20);
	assert_true(metrics_registry_print(registry, &page, &err));
	buffer_append_char(&page, '\0');
	assert_string_equal(page.data, expected);
	buffer_destroy(&page);
}

static struct metrics_registry *create(void)
{
	struct error err;
	struct metrics_registry *registry = metrics_registry_create(&err);

	assert_non_null(registry);
	return registry;
}

static void families_come_by_name_and_series_by_label_values(void **state)
{
	(void)state;
	struct metrics_registry *registry = create();
	struct metrics_family *b = add_labelled(registry, METRICS_COUNTER, "b_total", "code", "method", NULL);
	struct metrics_family *a = add_labelled(registry, METRICS_GAUGE, "a", NULL, NULL, NULL);

	metrics_add(b, (struct slice[]){ SLICE("500"), SLICE("GET") }, 1);
	metrics_add(b, (struct slice[]){ SLICE("200"), SLICE("POST") }, 2);
	metrics_add(b, (struct slice[]){ SLICE("200"), SLICE("GET") }, 0.5);
	metrics_set(a, NULL, -3);
	assert_page(registry, "# HELP a Help.\n# TYPE a gauge\na -3\n"
	                      "# HELP b_total Help.\n# TYPE b_total counter\n"
	                      "b_total{code=\"200\",method=\"GET\"} 0.5\n"
	                      "b_total{code=\"200\",method=\"POST\"} 2\n"
	                      "b_total{code=\"500\",method=\"GET\"} 1\n");
	metrics_registry_destroy(registry);
}

static void a_family_without_series_is_left_out_until_touched(void **state)
{
	(void)state;
	struct metrics_registry *registry = create();
	struct metrics_family *family = add_labelled(registry, METRICS_COUNTER, "x_total", "direction", NULL, NULL);

	assert_page(registry, "");
	metrics_touch(family, (struct slice[]){ SLICE("inc") });
	assert_page(registry, "# HELP x_total Help.\n# TYPE x_total counter\nx_total{direction=\"inc\"} 0\n");
	metrics_remove(family, (struct slice[]){ SLICE("inc") });
	assert_page(registry, "");
	metrics_registry_destroy(registry);
}

static void label_values_are_escaped(void **state)
{
	(void)state;
	struct metrics_registry *registry = create();
	struct metrics_family *family = add_labelled(registry, METRICS_GAUGE, "x", "l", NULL, NULL);

	metrics_set(family, (struct slice[]){ SLICE("a\\b\"c\nd") }, 1);
	assert_page(registry, "# HELP x Help.\n# TYPE x gauge\nx{l=\"a\\\\b\\\"c\\nd\"} 1\n");
	metrics_registry_destroy(registry);
}

static void a_histogram_counts_up_to_and_including_each_bound(void **state)
{
	(void)state;
	static const double bounds[] = { 0.125, 1 };
	struct metrics_registry *registry = create();
	struct metrics_family *family = add_family(registry, (struct metrics_family_options){ .kind = METRICS_HISTOGRAM,
	                                                                                      .name = "h",
	                                                                                      .help = "Help.",
	                                                                                      .labels = { "d" },
	                                                                                      .bounds = bounds,
	                                                                                      .bound_count = 2 });
	struct slice inc[] = { SLICE("inc") };

	metrics_observe(family, inc, 0.125);
	metrics_observe(family, inc, 0.5);
	metrics_observe(family, inc, 4);
	metrics_observe(family, inc, -1);
	assert_page(registry, "# HELP h Help.\n# TYPE h histogram\n"
	                      "h_bucket{d=\"inc\",le=\"0.125\"} 2\nh_bucket{d=\"inc\",le=\"1\"} 3\n"
	                      "h_bucket{d=\"inc\",le=\"+Inf\"} 4\nh_sum{d=\"inc\"} 3.625\nh_count{d=\"inc\"} 4\n");
	assert_float_equal(metrics_value(family, inc), 4, 0);
	metrics_registry_destroy(registry);
}

static void matching_series_are_removed_by_any_label(void **state)
{
	(void)state;
	struct metrics_registry *registry = create();
	struct metrics_family *family = add_labelled(registry, METRICS_GAUGE, "x", "a", "b", "c");
	size_t indexes[] = { 0, 2 };

	metrics_set(family, (struct slice[]){ SLICE("1"), SLICE("x"), SLICE("3") }, 1);
	metrics_set(family, (struct slice[]){ SLICE("1"), SLICE("y"), SLICE("3") }, 1);
	metrics_set(family, (struct slice[]){ SLICE("1"), SLICE("x"), SLICE("") }, 7);
	metrics_remove_matching(family, indexes, (struct slice[]){ SLICE("1"), SLICE("3") }, 2);
	assert_int_equal(metrics_series_count(family), 1);
	assert_float_equal(metrics_value(family, (struct slice[]){ SLICE("1"), SLICE("x"), SLICE("") }), 7, 0);
	metrics_registry_destroy(registry);
}

static void a_name_can_be_taken_once(void **state)
{
	(void)state;
	struct metrics_registry *registry = create();
	struct metrics_family_options options = { .kind = METRICS_GAUGE, .name = "x", .help = "X." };
	struct error err;

	add_family(registry, options);
	assert_null(metrics_registry_add(registry, &options, &err));
	assert_string_equal(err.text, "metrics family x exists already");
	metrics_registry_destroy(registry);
}

static void values_that_are_not_finite_have_their_names(void **state)
{
	(void)state;
	struct metrics_registry *registry = create();
	struct metrics_family *family = add_labelled(registry, METRICS_GAUGE, "x", NULL, NULL, NULL);

	metrics_set(family, NULL, (double)NAN);
	assert_page(registry, "# HELP x Help.\n# TYPE x gauge\nx NaN\n");
	metrics_set(family, NULL, -(double)INFINITY);
	assert_page(registry, "# HELP x Help.\n# TYPE x gauge\nx -Inf\n");
	metrics_registry_destroy(registry);
}

static void labels_too_long_to_keep_lose_the_series_only(void **state)
{
	(void)state;
	static char text[8192];
	struct metrics_registry *registry = create();
	struct metrics_family *family = add_labelled(registry, METRICS_COUNTER, "x", "l", NULL, NULL);

	memset(text, 'a', sizeof text);
	metrics_add(family, (struct slice[]){ slice_from(text, sizeof text) }, 1);
	assert_int_equal(metrics_series_count(family), 0);
	metrics_registry_destroy(registry);
}

static bool fill_and_print(void)
{
	struct error err;
	struct buffer page;
	struct metrics_registry *registry = metrics_registry_create(&err);
	struct metrics_family_options options = {
		.kind = METRICS_COUNTER, .name = "x", .help = "X.", .labels = { "l" }
	};
	bool complete = false;

	buffer_init(&page, 1 << 20);
	if (registry == NULL)
		return false;

	struct metrics_family *family = metrics_registry_add(registry, &options, &err);

	if (family != NULL) {
		metrics_add(family, (struct slice[]){ SLICE("1") }, 1);
		metrics_add(family, (struct slice[]){ SLICE("2") }, 1);
		complete = metrics_registry_print(registry, &page, &err) && metrics_series_count(family) == 2;
	}
	buffer_destroy(&page);
	metrics_registry_destroy(registry);
	return complete;
}

static void every_failed_allocation_is_survived(void **state)
{
	(void)state;
	unsigned long n = 1;

	for (;; n++) {
		memory_fail_at(n);
		bool complete = fill_and_print();
		bool reached = memory_allocation_count() >= n;

		memory_fail_at(0);
		if (!reached) {
			assert_true(complete);
			break;
		}
	}
	assert_true(n > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(families_come_by_name_and_series_by_label_values),
		cmocka_unit_test(a_family_without_series_is_left_out_until_touched),
		cmocka_unit_test(label_values_are_escaped),
		cmocka_unit_test(a_histogram_counts_up_to_and_including_each_bound),
		cmocka_unit_test(matching_series_are_removed_by_any_label),
		cmocka_unit_test(a_name_can_be_taken_once),
		cmocka_unit_test(values_that_are_not_finite_have_their_names),
		cmocka_unit_test(labels_too_long_to_keep_lose_the_series_only),
		cmocka_unit_test(every_failed_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
