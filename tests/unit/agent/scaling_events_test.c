#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/scaling_events.h"
#include "tests/support/vector_file.h"
#include "tests/unit/agent/agent_fixture.h"

struct world {
	struct agent_metrics *metrics;
	struct scaling_event_sink sink;
	struct scaling_event_source source;
	int events, goals;
	bool refuse;
	struct scaling_event event;
	struct scaling_desired_cu desired;
};

static bool submit(void *context, const struct scaling_event *event, struct error *err)
{
	struct world *world = context;

	if (world->refuse)
		return error_set(err, ERROR_INVARIANT, "can't encode");
	world->events++;
	world->event = *event;
	return true;
}

static void set_desired_cu(void *context, struct slice namespace, struct slice name,
                           const struct scaling_desired_cu *desired)
{
	struct world *world = context;

	assert_true(slice_equal_text(namespace, "apps"));
	assert_true(slice_equal_text(name, "vm-a"));
	world->goals++;
	world->desired = *desired;
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	world->metrics = agent_metrics_recorder_create();
	world->sink =
		(struct scaling_event_sink){ .context = world, .submit = submit, .set_desired_cu = set_desired_cu };
	scaling_events_init(&world->source, &world->sink, world->metrics, 0.25);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	agent_metrics_recorder_destroy(world->metrics);
	free(world);
	return 0;
}

static void goal(struct world *world, uint32_t current_cu, uint32_t goal_cu, const struct goal_parts *parts)
{
	struct error err;

	assert_true(scaling_events_hypothetical(&world->source, 7, SLICE("ep"), SLICE("apps"), SLICE("vm-a"),
	                                        current_cu, goal_cu, parts, &err));
}

static void ty15_conversion_to_milli_units(void **state)
{
	(void)state;
	assert_int_equal(scaling_events_milli_cu(3, 0.25), 750);
	assert_int_equal(scaling_events_milli_cu(3, 0.3333), 1000);
	assert_int_equal(scaling_events_milli_cu(0, 0.25), 0);
	/* Half away from zero. */
	assert_int_equal(scaling_events_milli_cu(1, 0.0005), 1);
}

static void an_actual_event_has_no_parts_and_is_never_held_back(void **state)
{
	struct world *world = *state;
	struct error err;

	for (int i = 0; i < 3; i++)
		assert_true(scaling_events_actual(&world->source, 5, SLICE("ep"), 2, 4, &err));
	assert_int_equal(world->events, 3);
	assert_int_equal(world->event.kind, AGENT_SCALING_EVENT_ACTUAL);
	assert_int_equal(world->event.current_milli_cu, 500);
	assert_int_equal(world->event.target_milli_cu, 1000);
	assert_true(world->event.wall_ns == 5);
	assert_false(world->event.parts.has_cpu);
	assert_int_equal(world->goals, 0);
	assert_true(agent_metrics_recorder_value(world->metrics, "scaling_events_total{kind=\"actual\"}") > 2.5);
}

static void parts_are_in_reported_units(void **state)
{
	struct world *world = *state;
	const struct goal_parts parts = { .has_cpu = true, .has_mem = true, .cpu = 3.5, .mem = 1 };

	goal(world, 2, 4, &parts);
	assert_int_equal(world->events, 1);
	assert_int_equal(world->event.target_milli_cu, 1000);
	assert_true(world->event.parts.cpu > 0.874 && world->event.parts.cpu < 0.876);
	assert_false(world->event.parts.has_lfc);
	assert_true(world->desired.total > 0.99 && world->desired.total < 1.01);
	assert_true(world->desired.parts.mem > 0.249 && world->desired.parts.mem < 0.251);
}

static void a_close_goal_is_held_back_but_shown(void **state)
{
	struct world *world = *state;
	struct goal_parts parts = { .has_cpu = true, .has_mem = true, .cpu = 3, .mem = 1 };

	goal(world, 2, 3, &parts);
	parts.cpu = 3.99; /* 0.2475 away, in reported units */
	goal(world, 2, 3, &parts);
	assert_int_equal(world->events, 1);
	assert_int_equal(world->goals, 2);
	assert_true(agent_metrics_recorder_value(world->metrics, "scaling_events_total{kind=\"hypothetical\"}") < 1.5);
	/* What is held back isn't remembered: the distance counts from the last event made. And 0.25 isn't close. */
	parts.cpu = 4;
	goal(world, 2, 3, &parts);
	assert_int_equal(world->events, 2);
}

static void another_target_makes_an_event_however_close_the_parts(void **state)
{
	struct world *world = *state;
	const struct goal_parts parts = { .has_cpu = true, .has_mem = true, .cpu = 3, .mem = 1 };

	goal(world, 2, 3, &parts);
	goal(world, 2, 4, &parts);
	assert_int_equal(world->events, 2);
	/* Another current amount doesn't. */
	goal(world, 3, 4, &parts);
	assert_int_equal(world->events, 2);
}

static void a_part_that_comes_or_goes_makes_an_event(void **state)
{
	struct world *world = *state;
	struct goal_parts parts = { .has_cpu = true, .has_mem = true, .cpu = 3, .mem = 1 };

	goal(world, 2, 3, &parts);
	parts.has_lfc = true;
	goal(world, 2, 3, &parts);
	assert_int_equal(world->events, 2);
	parts.has_lfc = false;
	goal(world, 2, 3, &parts);
	assert_int_equal(world->events, 3);
}

static struct world *limited;

static struct goal_parts parts_of(const struct vector_row *row)
{
	struct goal_parts parts = { .has_cpu = true, .has_mem = true };

	parts.cpu = vector_number(row->fields[2]);
	parts.mem = vector_number(row->fields[3]);
	parts.has_lfc = strcmp(row->fields[4], "-") != 0;
	if (parts.has_lfc)
		parts.lfc = vector_number(row->fields[4]);
	return parts;
}

static void check_limiter(const struct vector_row *row)
{
	int before = limited->events;
	struct goal_parts parts;

	if (strcmp(row->fields[0], "restart") == 0) {
		scaling_events_init(&limited->source, &limited->sink, limited->metrics, 0.25);
		return;
	}
	assert_int_equal(row->count, 7);
	parts = parts_of(row);
	goal(limited, (uint32_t)atoi(row->fields[0]), (uint32_t)atoi(row->fields[1]), &parts);
	if ((limited->events > before) != (strcmp(row->fields[5], "yes") == 0))
		fail_msg("line %zu: %s", row->line, row->fields[6]);
}

static void tv27_which_events_are_sent(void **state)
{
	limited = *state;
	assert_int_equal(vector_table_walk("vectors/billing/limiter.txt", check_limiter), 9);
}

static void an_event_that_cannot_be_encoded_is_an_error(void **state)
{
	struct world *world = *state;
	const struct goal_parts parts = { .has_cpu = true, .cpu = __builtin_inf() };
	struct error err;

	world->refuse = true;
	assert_false(scaling_events_hypothetical(&world->source, 7, SLICE(""), SLICE("apps"), SLICE("vm-a"), 1, 0,
	                                         &parts, &err));
	assert_string_equal(err.text, "can't encode");
}

static void without_a_sink_events_are_only_counted(void **state)
{
	struct world *world = *state;
	const struct goal_parts parts = { .has_cpu = true, .cpu = 1 };

	world->sink = (struct scaling_event_sink){ 0 };
	goal(world, 1, 1, &parts);
	assert_true(agent_metrics_recorder_value(world->metrics, "scaling_events_total{kind=\"hypothetical\"}") > 0.5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ty15_conversion_to_milli_units),
		TEST(an_actual_event_has_no_parts_and_is_never_held_back),
		TEST(parts_are_in_reported_units),
		TEST(a_close_goal_is_held_back_but_shown),
		TEST(another_target_makes_an_event_however_close_the_parts),
		TEST(a_part_that_comes_or_goes_makes_an_event),
		TEST(tv27_which_events_are_sent),
		TEST(an_event_that_cannot_be_encoded_is_an_error),
		TEST(without_a_sink_events_are_only_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
