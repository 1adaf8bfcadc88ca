#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cli/replay_session.h"
#include "tests/support/replay_compare.h"
#include "tests/support/vector_file.h"

#define INIT_WITH(source)                                                                                  \
	"{\"event\":\"init\",\"config\":{\"computeUnit\":{\"cpu\":500,\"mem\":2147483648},"                \
	"\"defaultScalingConfig\":{\"loadAverageFractionTarget\":0.8,\"memoryUsageFractionTarget\":0.6,"   \
	"\"memoryTotalFractionTarget\":0.85,\"enableLFCMetrics\":false,\"lfcUseLargestWindow\":false,"     \
	"\"lfcToMemoryRatio\":0.7,\"lfcMinWaitBeforeDownscaleMinutes\":4,\"lfcWindowSizeMinutes\":3,"      \
	"\"cpuStableZoneRatio\":0,\"cpuMixedZoneRatio\":0},"                                               \
	"\"neonvmRetryWait\":6000000000,\"pluginRequestTick\":12000000000,\"pluginRetryWait\":4000000000," \
	"\"pluginDeniedRetryWait\":3000000000,\"monitorDeniedDownscaleCooldown\":9000000000,"              \
	"\"monitorRequestedUpscaleValidPeriod\":15000000000,\"monitorRetryWait\":2500000000,"              \
	"\"revisionSource\":" source "},\"vm\":{\"name\":\"vm-a\",\"namespace\":\"ns\","                   \
	"\"cpu\":{\"min\":500,\"max\":3000,\"use\":500},"                                                  \
	"\"mem\":{\"min\":8,\"max\":48,\"use\":8,\"slotSize\":268435456},"                                 \
	"\"config\":{\"autoMigrationEnabled\":false,\"alwaysMigrate\":false,\"scalingEnabled\":true,"      \
	"\"scalingConfig\":null},\"currentRevision\":null}}"
#define INIT INIT_WITH("{\"kind\":\"counter\",\"initialRevision\":40}")

static struct replay_session session;
static struct buffer answer;

static int begin(void **state)
{
	(void)state;
	replay_session_init(&session);
	buffer_init(&answer, 1 << 20);
	return 0;
}

static int end(void **state)
{
	(void)state;
	replay_session_destroy(&session);
	buffer_destroy(&answer);
	return 0;
}

/* ---- recorded runs ---- */

static struct slice next_line(struct slice *rest)
{
	return slice_take_until(rest, '\n');
}

static void check_run(const char *name)
{
	char file[128];
	char difference[4096];
	size_t input_length;
	size_t output_length;
	struct error err;

	snprintf(file, sizeof file, "data/replay/%s.in.jsonl", name);
	char *input = vector_read_file(file, &input_length);
	snprintf(file, sizeof file, "data/replay/%s.out.jsonl", name);
	char *output = vector_read_file(file, &output_length);
	struct slice input_rest = slice_from(input, input_length);
	struct slice output_rest = slice_from(output, output_length);
	size_t lines = 0;

	begin(NULL);
	while (input_rest.length > 0 && !session.panicked) {
		struct slice line = next_line(&input_rest);

		lines++;
		buffer_clear(&answer);
		if (!replay_session_line(&session, line, &answer, &err))
			fail_msg("%s, line %zu: %s", name, lines, err.text);
		buffer_append_char(&answer, '\0');
		assert_false(answer.failed);
		assert_int_equal(answer.data[answer.length - 2], '\n');
		assert_true(output_rest.length > 0);
		if (!replay_lines_agree(slice_from(answer.data, answer.length - 2), next_line(&output_rest), difference,
		                        sizeof difference))
			fail_msg("%s, line %zu: %s", name, lines, difference);
	}
	assert_int_equal(output_rest.length, 0);
	assert_true(lines > 2);
	end(NULL);
	memory_release(input);
	memory_release(output);
}

static void s1_to_s29_are_answered_as_the_reference_does(void **state)
{
	(void)state;
	for (int i = 1; i <= 29; i++) {
		char name[32];

		snprintf(name, sizeof name, "scenario-%02d", i);
		check_run(name);
	}
}

static void the_worked_example_is_answered_as_the_reference_does(void **state)
{
	(void)state;
	check_run("worked");
}

static void random_histories_are_answered_as_the_reference_does(void **state)
{
	(void)state;
	for (int i = 0; i <= 23; i++) {
		char name[32];

		snprintf(name, sizeof name, "history-%02d", i);
		check_run(name);
	}
}

/* ---- the comparison itself ---- */

static bool agree(const char *actual, const char *expected)
{
	char difference[512] = "";
	bool same = replay_lines_agree(slice_of(actual), slice_of(expected), difference, sizeof difference);

	assert_int_equal(same, difference[0] == '\0');
	return same;
}

static void the_comparison_sees_every_difference_that_counts(void **state)
{
	(void)state;
	assert_true(agree("{\"a\":1,\"b\":[1,{\"c\":\"x\"}]}", "{ \"b\": [1.0, {\"c\": \"\\u0078\"}], \"a\": 1 }"));
	assert_true(agree("{\"a\":0}", "{\"a\":-0}"));
	assert_true(agree("{\"a\":1e+21}", "{\"a\":1000000000000000000000}"));
	assert_true(agree("{\"loadAvg1M\":0.1}", "{\"loadAvg1M\":0.10000000149011612}"));
	assert_true(agree("{\"event\":\"x\",\"panic\":\"y\"}", "{\"event\":\"x\",\"panic\":\"z\"}"));
	assert_true(agree("{\"event\":\"dump\",\"error\":\"y\"}", "{\"event\":\"dump\",\"error\":\"z\"}"));
	assert_false(agree("{\"event\":\"dump\",\"error\":null}", "{\"event\":\"dump\",\"error\":\"z\"}"));
	assert_false(agree("{\"event\":\"dump\",\"error\":\"z\"}", "{\"event\":\"dump\",\"error\":null}"));
	assert_false(agree("{\"a\":1}", "{\"a\":1,\"b\":2}"));
	assert_false(agree("{\"a\":1,\"b\":2}", "{\"a\":1}"));
	assert_false(agree("{\"a\":1,\"c\":2}", "{\"a\":1,\"b\":2}"));
	assert_false(agree("{\"a\":[1,2]}", "{\"a\":[2,1]}"));
	assert_false(agree("{\"a\":[1]}", "{\"a\":{\"x\":1}}"));
	assert_false(agree("{\"a\":9007199254740993}", "{\"a\":9007199254740992}"));
	assert_false(agree("{\"a\":0.1}", "{\"a\":0.10000000149011612}"));
	assert_false(agree("{\"a\":\"1\"}", "{\"a\":1}"));
	assert_false(agree("{\"a\":null}", "{\"a\":\"x\"}"));
	assert_false(agree("{\"a\":\"x\"}", "{\"a\":\"y\"}"));
	assert_false(agree("{\"event\":\"x\"}", "{\"event\":\"x\",\"panic\":\"z\"}"));
#define PARSE_ERROR \
	"{\"event\":\"parseMetrics\",\"error\":\"failed to parse content as prometheus text format: text format parsing error in line "
	assert_true(agree(PARSE_ERROR "12: x\"}", PARSE_ERROR "12: y z\"}"));
	assert_false(agree(PARSE_ERROR "12: x\"}", PARSE_ERROR "1: x\"}"));
	assert_false(agree(PARSE_ERROR "1: x\"}", PARSE_ERROR "12: x\"}"));
}

/* ---- one line at a time ---- */

static struct slice ask(const char *line)
{
	struct error err;

	buffer_clear(&answer);
	if (!replay_session_line(&session, slice_of(line), &answer, &err))
		fail_msg("%s", err.text);
	return buffer_slice(&answer);
}

static void check_answer(const char *line, const char *expected)
{
	struct slice text = ask(line);

	if (!slice_equal_text(text, expected))
		fail_msg("%.*sis not\n%s", SLICE_ARGS(text), expected);
}

#define SAID "\"warnings\":[],\"infos\":[],\"callbacks\":[]}\n"

static void values_that_no_scenario_has_are_written_as_specified(void **state)
{
	(void)state;
	check_answer(INIT, "{\"n\":0,\"event\":\"init\"," SAID);
	check_answer("{\"event\":\"revsourceNext\",\"at\":1000,\"flags\":3}",
	             "{\"n\":1,\"event\":\"revsourceNext\",\"revision\":{\"value\":41,\"flags\":3}," SAID);
	check_answer(
		"{\"event\":\"revsourceObserve\",\"at\":500,\"revision\":{\"value\":41,\"flags\":1}}",
		"{\"n\":2,\"event\":\"revsourceObserve\",\"error\":null,\"warnings\":[],\"infos\":[],\"callbacks\":["
		"{\"name\":\"scalingLatency\",\"latency\":-500,\"flags\":1}]}\n");
	check_answer(
		"{\"event\":\"revsourceObserve\",\"at\":500,\"revision\":{\"value\":42,\"flags\":1,\"updatedAt\":null}}",
		"{\"n\":3,\"event\":\"revsourceObserve\",\"error\":\"revision is in the future\"," SAID);
	check_answer(
		"{\"event\":\"estimateWss\",\"series\":[1,2,\"NaN\"],\"maxAllowedIncreaseFactor\":3,\"initialOffset\":2,"
		"\"windowSize\":3}",
		"{\"n\":4,\"event\":\"estimateWss\",\"value\":\"NaN\"," SAID);
	check_answer("{\"event\":\"projectNextHighest\",\"series\":[1,2],\"projectLen\":\"Inf\"}",
	             "{\"n\":5,\"event\":\"projectNextHighest\",\"value\":\"Inf\"," SAID);
	check_answer("{\"event\":\"projectNextHighest\",\"series\":[1,2],\"projectLen\":0.1}",
	             "{\"n\":6,\"event\":\"projectNextHighest\",\"value\":2.1," SAID);
	check_answer("{\"event\":\"debug\",\"enabled\":true,\"at\":\"whatever\",\"else\":{}}",
	             "{\"n\":7,\"event\":\"debug\"," SAID);
}

static void a_state_that_cannot_be_written_is_an_answer(void **state)
{
	(void)state;
	ask(INIT);
	assert_true(slice_equal_text(replay_value_of(ask("{\"event\":\"dump\"}"), "error"), "null"));
	ask("{\"event\":\"updateSystemMetrics\",\"metrics\":{\"loadAverage1Min\":\"NaN\",\"loadAverage5Min\":0,"
	    "\"memoryUsageBytes\":0,\"memoryCachedBytes\":0}}");

	struct slice dump = ask("{\"event\":\"dump\"}");

	assert_true(slice_equal_text(replay_value_of(dump, "state"), "null"));
	assert_int_equal(replay_value_of(dump, "error").data[0], '"');
	/* And the next line isn't hurt. */
	ask("{\"event\":\"updateSystemMetrics\",\"metrics\":{\"loadAverage1Min\":1,\"loadAverage5Min\":0,"
	    "\"memoryUsageBytes\":0,\"memoryCachedBytes\":0}}");
	assert_true(slice_equal_text(replay_value_of(ask("{\"event\":\"dump\"}"), "error"), "null"));
}

static void a_dump_shows_the_state(void **state)
{
	(void)state;
	ask(INIT);

	struct slice dump = replay_value_of(ask("{\"event\":\"dump\"}"), "state");

	assert_true(slice_equal_text(replay_value_of(dump, "Debug"), "false"));
	assert_true(slice_equal_text(replay_value_of(dump, "LastDesiredResources"), "null"));
	assert_true(slice_equal_text(replay_value_of(dump, "NeonVM"),
	                             "{\"LastSuccess\":null,\"OngoingRequested\":null,\"RequestFailedAt\":null,"
	                             "\"TargetRevision\":{\"revision\":{\"value\":0,\"flags\":0},\"updatedAt\":null},"
	                             "\"CurrentRevision\":{\"value\":0,\"flags\":0}}"));
	assert_true(slice_equal_text(replay_value_of(dump, "VM"),
	                             "{\"name\":\"vm-a\",\"namespace\":\"ns\","
	                             "\"cpu\":{\"min\":\"500m\",\"max\":3,\"use\":\"500m\"},"
	                             "\"mem\":{\"min\":8,\"max\":48,\"use\":8,\"slotSize\":\"256Mi\"},"
	                             "\"config\":{\"autoMigrationEnabled\":false,\"alwaysMigrate\":false,"
	                             "\"scalingEnabled\":true}}"));
}

static void a_silent_revision_source_gives_zero(void **state)
{
	(void)state;
	ask(INIT_WITH("{\"kind\":\"nil\"}"));
	check_answer("{\"event\":\"revsourceNext\",\"at\":0,\"flags\":3}",
	             "{\"n\":1,\"event\":\"revsourceNext\",\"revision\":{\"value\":0,\"flags\":0}," SAID);
	check_answer("{\"event\":\"revsourceObserve\",\"at\":0,\"revision\":{\"value\":99,\"flags\":0}}",
	             "{\"n\":2,\"event\":\"revsourceObserve\",\"error\":null," SAID);
}

static void pages_are_read_from_strings(void **state)
{
	(void)state;
	ask(INIT);
	check_answer(
		"{\"event\":\"parseMetrics\",\"kind\":\"lfc\",\"content\":\""
		"# TYPE lfc_hits gauge\\nlfc_hits NaN\\n# TYPE lfc_misses gauge\\nlfc_misses 2\\n"
		"# TYPE lfc_writes gauge\\nlfc_writes -1\\n# TYPE lfc_approximate_working_set_size_windows gauge\\n"
		"lfc_approximate_working_set_size_windows{duration_seconds=\\\"60\\\"} 3\\n\"}",
		"{\"n\":1,\"event\":\"parseMetrics\",\"metrics\":{\"cacheHitsTotal\":\"NaN\",\"cacheMissesTotal\":2,"
		"\"cacheWritesTotal\":-1,\"approximateWorkingSetSizeBuckets\":[3]},\"error\":null," SAID);
	check_answer(
		"{\"event\":\"parseMetrics\",\"kind\":\"system\",\"content\":\"x\"}",
		"{\"n\":2,\"event\":\"parseMetrics\",\"metrics\":null,\"error\":\"failed to parse content as prometheus "
		"text format: text format parsing error in line 1: unexpected end of input stream\"," SAID);
}

static void a_broken_invariant_ends_the_run_with_an_answer(void **state)
{
	(void)state;
	ask(INIT);
	check_answer(
		"{\"event\":\"neonvmRequestSuccessful\",\"at\":1}",
		"{\"n\":1,\"event\":\"neonvmRequestSuccessful\",\"panic\":\"a NeonVM request succeeded that was never "
		"started\"," SAID);
	assert_true(session.panicked);
}

static void check_refused(const char *line, const char *text)
{
	struct error err;

	buffer_clear(&answer);
	assert_false(replay_session_line(&session, slice_of(line), &answer, &err));
	if (strstr(err.text, text) == NULL)
		fail_msg("\"%s\" isn't in \"%s\"", text, err.text);
	assert_true(err.code == ERROR_SYNTAX || err.code == ERROR_LIMIT);
	assert_int_equal(answer.length, 0);
	assert_false(session.panicked);
}

static void lines_that_are_no_events_are_refused(void **state)
{
	(void)state;
	check_refused("{\"event\":\"monitorReset\"}", "the first event must be init");
	check_refused(INIT_WITH("{\"kind\":\"other\",\"initialRevision\":4}"), "kind");
	check_refused(INIT_WITH("{\"kind\":\"counter\"}"), "initialRevision");
	ask(INIT);
	check_refused(INIT, "init must not occur again");
	check_refused("{\"event\":\"nextAction\",\"at\":0}", "unknown event \"nextAction\"");
	check_refused("{\"at\":0}", "event");
	check_refused("{\"event\":\"nextActions\"}", "at");
	check_refused("{\"event\":\"nextActions\",\"at\":\"0\"}", "at");
	check_refused("{\"event\":\"nextActions\",\"at\":0.5}", "at");
	check_refused("{\"event\":\"nextActions\",\"at\":1152921504606846976}", "2^60");
	check_refused("{\"event\":\"nextActions\",\"at\":-1152921504606846976}", "2^60");
	check_refused("{\"event\":\"nextActions\",\"at\":0,\"at\":0}", "at");
	check_refused("{\"event\":\"nextActions\",\"at\":0} x", "");
	check_refused("{\"event\":\"nextActions\",\"at\":0", "");
	check_refused("[]", "");
	check_refused("nextActions", "");
	check_refused("{\"event\":\"pluginStartingRequest\",\"at\":0,\"resources\":{\"cpu\":-1,\"mem\":1}}",
	              "resources.cpu");
	check_refused("{\"event\":\"pluginStartingRequest\",\"at\":0,\"resources\":{\"cpu\":4294967296,\"mem\":1}}",
	              "resources.cpu");
	check_refused("{\"event\":\"pluginStartingRequest\",\"at\":0,\"resources\":{\"cpu\":1}}", "resources.mem");
	check_refused("{\"event\":\"debug\",\"enabled\":1}", "enabled");
	check_refused("{\"event\":\"parseMetrics\",\"kind\":\"lfc\",\"content\":\"\xff\"}", "UTF-8");
	check_refused("{\"event\":\"projectNextHighest\",\"series\":[1,\"nan\"],\"projectLen\":1}", "series");
	/* None of them counted. */
	check_answer("{\"event\":\"monitorReset\"}", "{\"n\":1,\"event\":\"monitorReset\"," SAID);
}

static void being_short_of_memory_is_no_answer(void **state)
{
	(void)state;
	struct error err;
	unsigned long step = 1;

	for (;; step++) {
		end(NULL);
		begin(NULL);
		memory_fail_at(step);

		bool ok = replay_session_line(&session, SLICE(INIT), &answer, &err) &&
		          replay_session_line(&session, SLICE("{\"event\":\"nextActions\",\"at\":0}"), &answer, &err) &&
		          replay_session_line(&session, SLICE("{\"event\":\"dump\"}"), &answer, &err);

		memory_fail_at(0);
		if (ok)
			break;
		assert_int_equal(err.code, ERROR_NO_MEMORY);
	}
	assert_true(step > 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s1_to_s29_are_answered_as_the_reference_does),
		cmocka_unit_test(the_worked_example_is_answered_as_the_reference_does),
		cmocka_unit_test(random_histories_are_answered_as_the_reference_does),
		cmocka_unit_test(the_comparison_sees_every_difference_that_counts),
		cmocka_unit_test_setup_teardown(values_that_no_scenario_has_are_written_as_specified, begin, end),
		cmocka_unit_test_setup_teardown(a_state_that_cannot_be_written_is_an_answer, begin, end),
		cmocka_unit_test_setup_teardown(a_dump_shows_the_state, begin, end),
		cmocka_unit_test_setup_teardown(a_silent_revision_source_gives_zero, begin, end),
		cmocka_unit_test_setup_teardown(pages_are_read_from_strings, begin, end),
		cmocka_unit_test_setup_teardown(a_broken_invariant_ends_the_run_with_an_answer, begin, end),
		cmocka_unit_test_setup_teardown(lines_that_are_no_events_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(being_short_of_memory_is_no_answer, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
