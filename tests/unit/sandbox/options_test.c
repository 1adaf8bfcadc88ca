#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "sandbox/outage.h"
#include "sandbox/sandbox_options.h"

static const uint64_t SECOND = NS_PER_S;

static bool read(struct sandbox_options *options, struct sandbox_option_texts texts, struct error *err)
{
	options->vms = 6;
	options->nodes = 3;
	return sandbox_options_read(options, &texts, err);
}

static void without_arguments_it_runs_for_a_minute_or_live_without_end(void **state)
{
	(void)state;
	struct sandbox_options options = { .live = false };
	struct sandbox_option_texts none = { .speed = NULL };
	struct error err;

	assert_true(read(&options, none, &err));
	assert_true(options.speed == 4);
	assert_int_equal(options.duration_ns, 60 * SECOND);
	assert_int_equal(sandbox_options_end_ns(&options), 60 * SECOND);
	assert_false(options.stops_agent);
	options = (struct sandbox_options){ .live = true };
	assert_true(read(&options, none, &err));
	assert_int_equal(options.duration_ns, 0);
	assert_int_equal(sandbox_options_end_ns(&options), 0);
}

static void texts_are_read(void **state)
{
	(void)state;
	static const char *const outages[] = { "plugin@10s+10s", "monitor:6@1s500ms+2s", "api@0+1s" };
	struct sandbox_options options = { .live = true };
	struct error err;

	assert_true(read(&options,
	                 (struct sandbox_option_texts){ .speed = "2.5",
	                                                .duration = "1m30s",
	                                                .stop_agent_at = "70s",
	                                                .outages = outages,
	                                                .outage_count = 3 },
	                 &err));
	assert_true(options.speed == 2.5);
	assert_int_equal(options.duration_ns, 90 * SECOND);
	assert_true(options.stops_agent);
	assert_int_equal(sandbox_options_end_ns(&options), 70 * SECOND);
	assert_int_equal(options.outage_count, 3);
	assert_int_equal(options.outages[0].peer, OUTAGE_PLUGIN);
	assert_int_equal(options.outages[0].start_ns, 10 * SECOND);
	assert_int_equal(options.outages[0].end_ns, 20 * SECOND);
	assert_int_equal(options.outages[1].peer, OUTAGE_MONITOR);
	assert_int_equal(options.outages[1].vm, 5);
	assert_int_equal(options.outages[1].end_ns, 3500 * (uint64_t)NS_PER_MS);
	assert_int_equal(options.outages[2].peer, OUTAGE_API);
	assert_int_equal(options.outages[2].start_ns, 0);
}

static void pods_bring_the_extender_with_its_outage_and_its_wait(void **state)
{
	(void)state;
	static const char *const outages[] = { "extender@1s+8s" };
	struct sandbox_options options = { .pods = 3 };
	struct sandbox_option_texts texts = { .wait_for_reservation = "2s", .outages = outages, .outage_count = 1 };
	char text[OUTAGE_PEER_BYTES];
	struct error err;

	assert_true(sandbox_options_read(&options, &texts, &err));
	assert_int_equal(options.wait_for_reservation_ns, 2 * SECOND);
	assert_int_equal(options.outages[0].peer, OUTAGE_EXTENDER);
	outage_print_option(&options.outages[0], text);
	assert_string_equal(text, "extender");
	/* It disturbs no VM. */
	assert_true(outages_leave_settled(options.outages, 1, 0, 9 * SECOND, 8 * SECOND));
	texts.wait_for_reservation = "5s";
	assert_false(sandbox_options_read(&options, &texts, &err));
	assert_string_equal(err.text, "--wait-for-reservation: more than 4 s");
	options.pods = 0;
	assert_false(sandbox_options_read(&options, &texts, &err));
	assert_string_equal(err.text, "--vms: with 0 VMs there must be --pods");
	options.vms = 1;
	assert_false(sandbox_options_read(&options, &texts, &err));
	assert_string_equal(err.text, "--wait-for-reservation: there is no extender without --pods");
	texts.wait_for_reservation = NULL;
	assert_false(sandbox_options_read(&options, &texts, &err));
	assert_string_equal(err.text, "--outage: there is no extender without --pods");
}

static void the_receiver_may_be_away_at_the_end(void **state)
{
	(void)state;
	static const char *const outages[] = { "receiver@20s+10s" };
	struct sandbox_options options = { .live = false };
	struct sandbox_option_texts texts = {
		.duration = "40s", .stop_agent_at = "25s", .outages = outages, .outage_count = 1
	};
	struct error err;
	char text[OUTAGE_PEER_BYTES];
	char words[64];

	assert_true(read(&options, texts, &err));
	assert_int_equal(options.outages[0].peer, OUTAGE_RECEIVER);
	outage_print_option(&options.outages[0], text);
	assert_string_equal(text, "receiver");
	outage_print_peer(&options.outages[0], words, sizeof words);
	assert_string_equal(words, "event receiver");
	/* It keeps no VM from its size. */
	assert_true(outages_leave_settled(options.outages, 1, 0, 25 * SECOND, 8 * SECOND));
}

static void the_grace_period_is_the_agents_own_or_as_given(void **state)
{
	(void)state;
	struct sandbox_options options = { .live = false };
	struct error err;

	assert_true(read(&options, (struct sandbox_option_texts){ .grace = NULL }, &err));
	assert_null(options.grace);
	assert_int_equal(options.grace_ns, 25 * SECOND);
	assert_true(read(&options, (struct sandbox_option_texts){ .grace = "1500ms" }, &err));
	assert_string_equal(options.grace, "1500ms");
	assert_int_equal(options.grace_ns, 1500 * (uint64_t)NS_PER_MS);
	assert_false(read(&options, (struct sandbox_option_texts){ .grace = "25h" }, &err));
	assert_string_equal(err.text, "--grace: \"25h\" is more than 24h");
	assert_false(read(&options, (struct sandbox_option_texts){ .grace = "soon" }, &err));
}

static void an_agent_may_be_stopped_at_once(void **state)
{
	(void)state;
	struct sandbox_options options = { .live = false };
	struct error err;

	assert_true(read(&options, (struct sandbox_option_texts){ .stop_agent_at = "0" }, &err));
	assert_true(options.stops_agent);
	assert_int_equal(sandbox_options_end_ns(&options), 0);
}

static void nonsense_is_refused_with_the_option_named(void **state)
{
	(void)state;
	static const struct {
		const char *speed, *duration, *stop_agent_at, *outage, *text;
	} rows[] = {
		{ .speed = "0", .text = "--speed: \"0\" is not a number from 0.1 to 100" },
		{ .speed = "fast", .text = "--speed: \"fast\" is not a number from 0.1 to 100" },
		{ .speed = "4x", .text = "--speed: \"4x\" is not a number from 0.1 to 100" },
		{ .speed = "nan", .text = "--speed: \"nan\" is not a number from 0.1 to 100" },
		{ .duration = "0", .text = "--duration: it must be longer than nothing" },
		{ .duration = "-8s", .text = "--duration: \"-8s\" is not within 0 and 30 days" },
		{ .duration = "7s", .text = "--duration: at 6 VMs and speed 4 a run takes at least 8.0 s" },
		{ .duration = "800h", .text = "--duration: \"800h\" is not within 0 and 30 days" },
		{ .stop_agent_at = "61s", .text = "--stop-agent-at: the run has ended by then" },
		{ .outage = "plugin@10s", .text = "--outage: \"plugin@10s\" isn't PEER@START+LENGTH" },
		{ .outage = "plugin+10s", .text = "--outage: \"plugin+10s\" isn't PEER@START+LENGTH" },
		{ .outage = "disk@10s+1s",
		  .text = "--outage: \"disk\" is none of plugin, api, extender, receiver, monitor:N" },
		{ .outage = "monitor@10s+1s",
		  .text = "--outage: \"monitor\" is none of plugin, api, extender, receiver, monitor:N" },
		{ .outage = "monitor:0@10s+1s",
		  .text = "--outage: \"monitor:0\" is none of plugin, api, extender, receiver, monitor:N" },
		{ .outage = "monitor:7@10s+1s", .text = "--outage: there is no VM 7, only 6" },
		{ .outage = "api@-1s+1s", .text = "--outage: start: \"-1s\" is negative" },
		{ .outage = "api@1s+0s", .text = "--outage: length: an outage of no time" },
		{ .outage = "api@1s+9999h", .text = "--outage: length: \"9999h\" is more than 30 days" },
		{ .outage = "api@42s+11s",
		  .text = "--outage: an outage must have ended 8.0 s before the end of the run" },
		{ .outage = "api@20s+5s",
		  .stop_agent_at = "32s",
		  .text = "--outage: an outage must have ended 8.0 s before the end of the run" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct sandbox_options options = { .live = false };
		struct sandbox_option_texts texts = {
			.speed = rows[i].speed,
			.duration = rows[i].duration,
			.stop_agent_at = rows[i].stop_agent_at,
			.outages = &rows[i].outage,
			.outage_count = rows[i].outage != NULL ? 1 : 0,
		};
		struct error err;

		assert_false(read(&options, texts, &err));
		assert_string_equal(err.text, rows[i].text);
	}
}

static void many_vms_need_a_longer_run(void **state)
{
	(void)state;
	struct sandbox_options options = { .vms = 500, .nodes = 3 };
	struct sandbox_option_texts texts = { .duration = "8s" };
	struct error err;

	assert_false(sandbox_options_read(&options, &texts, &err));
	assert_string_equal(err.text, "--duration: at 500 VMs and speed 4 a run takes at least 31.0 s");
	texts.duration = "31s";
	assert_true(sandbox_options_read(&options, &texts, &err));
	/* What is named is enough also where it had to be rounded. */
	options.vms = 1;
	texts = (struct sandbox_option_texts){ .duration = "9s", .speed = "3.3" };
	assert_false(sandbox_options_read(&options, &texts, &err));
	assert_string_equal(err.text, "--duration: at 1 VM and speed 3.3 a run takes at least 9.3 s");
	texts.duration = "9.3s";
	assert_true(sandbox_options_read(&options, &texts, &err));
}

static void too_many_outages_are_refused(void **state)
{
	(void)state;
	const char *outages[OUTAGES_MAX + 1];
	struct sandbox_options options = { .live = false };
	struct error err;

	for (int i = 0; i <= OUTAGES_MAX; i++)
		outages[i] = "api@1s+1s";
	assert_true(
		read(&options, (struct sandbox_option_texts){ .outages = outages, .outage_count = OUTAGES_MAX }, &err));
	assert_false(read(&options,
	                  (struct sandbox_option_texts){ .outages = outages, .outage_count = OUTAGES_MAX + 1 }, &err));
	assert_string_equal(err.text, "--outage: more than 32");
}

static void a_vm_is_settled_only_long_enough_after_an_outage_that_concerns_it(void **state)
{
	(void)state;
	const struct outage outages[] = {
		{ .peer = OUTAGE_MONITOR, .vm = 1, .start_ns = 10 * SECOND, .end_ns = 12 * SECOND },
		{ .peer = OUTAGE_API, .start_ns = 30 * SECOND, .end_ns = 31 * SECOND },
	};
	static const struct {
		unsigned vm;
		uint64_t at_s;
		bool settled;
	} rows[] = {
		{ 1, 10, true },                                    /* just before it begins */
		{ 1, 11, false },                                   /* in it */
		{ 1, 19, false }, { 1, 20, true }, { 0, 11, true }, /* another VM's */
		{ 0, 32, false },                                   /* everybody's */
		{ 1, 38, false }, { 0, 39, true },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_int_equal(outages_leave_settled(outages, 2, rows[i].vm, rows[i].at_s * SECOND, 8 * SECOND),
		                 rows[i].settled);
}

static void peers_have_names_for_people(void **state)
{
	(void)state;
	const struct outage outages[] = { { .peer = OUTAGE_PLUGIN },
		                          { .peer = OUTAGE_MONITOR, .vm = 1 },
		                          { .peer = OUTAGE_API } };
	static const char *const names[] = { "scheduler plugin", "vm-monitor of VM 2", "Kubernetes API" };
	char text[64];

	for (size_t i = 0; i < 3; i++) {
		outage_print_peer(&outages[i], text, sizeof text);
		assert_string_equal(text, names[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_arguments_it_runs_for_a_minute_or_live_without_end),
		cmocka_unit_test(texts_are_read),
		cmocka_unit_test(pods_bring_the_extender_with_its_outage_and_its_wait),
		cmocka_unit_test(the_receiver_may_be_away_at_the_end),
		cmocka_unit_test(the_grace_period_is_the_agents_own_or_as_given),
		cmocka_unit_test(an_agent_may_be_stopped_at_once),
		cmocka_unit_test(nonsense_is_refused_with_the_option_named),
		cmocka_unit_test(many_vms_need_a_longer_run),
		cmocka_unit_test(too_many_outages_are_refused),
		cmocka_unit_test(a_vm_is_settled_only_long_enough_after_an_outage_that_concerns_it),
		cmocka_unit_test(peers_have_names_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
