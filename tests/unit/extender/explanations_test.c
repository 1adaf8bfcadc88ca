/* What people get to read: why a volume isn't requested, why a node isn't taken, why a pod waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "extender/capacity_requests.h"
#include "extender/node_id.h"
#include "extender/reservations.h"
#include "extender/slice_set.h"

enum { TEXT_BYTES = 4096 };

static void check_note(struct volume_note note, const char *sentence, bool worth_logging)
{
	struct buffer text;

	buffer_init(&text, TEXT_BYTES);
	volume_note_print(&note, &text);
	buffer_append_char(&text, '\0');
	assert_string_equal(text.data, sentence);
	assert_int_equal(volume_note_is_worth_logging(&note), worth_logging);
	buffer_destroy(&text);
}

static void each_volume_has_its_sentence(void **state)
{
	struct volume_note note = { .volume = SLICE("data"), .claim = SLICE("data-0"), .class_name = SLICE("fast") };

	(void)state;
	note.verdict = VOLUME_REQUESTED;
	check_note(note, "volume \"data\" (claim \"data-0\") is requested", false);
	note.verdict = VOLUME_BOUND;
	check_note(note, "volume \"data\" (claim \"data-0\") is passed over: the claim is bound", false);
	note.verdict = VOLUME_LOST;
	check_note(note, "volume \"data\" (claim \"data-0\") is passed over: the claim has lost its volume", true);
	note.verdict = VOLUME_FOREIGN_CLASS;
	check_note(note,
	           "volume \"data\" (claim \"data-0\") is passed over: storage class \"fast\" has another provisioner",
	           true);
	note.verdict = VOLUME_NO_CLASS;
	check_note(note, "volume \"data\" (claim \"data-0\") is passed over: it names no storage class", true);
	note.verdict = VOLUME_CLAIM_MISSING;
	check_note(note, "volume \"data\" (claim \"data-0\") has to wait: there is no such claim yet", true);
	note.verdict = VOLUME_CLASS_UNKNOWN;
	check_note(note, "volume \"data\" (claim \"data-0\") has to wait: there is no storage class \"fast\"", true);
	note.claim = SLICE("");
	note.verdict = VOLUME_OTHER_KIND;
	check_note(note, "volume \"data\" is of a kind that needs no capacity", false);
	note.verdict = VOLUME_FOREIGN_DRIVER;
	check_note(note, "volume \"data\" is passed over: it has another driver", false);
	note.verdict = VOLUME_REQUESTED;
	note.bad_size = true;
	check_note(note, "volume \"data\" is requested though its attribute size is missing or no size: size 0", true);
	note.bad_storage_type = true;
	check_note(note, "volume \"data\" is requested though its attribute storageType is missing: any type, size 0",
	           true);
}

static bool find_claim(void *context, struct slice namespace, struct slice name, struct claim_view *ret_claim)
{
	(void)context;
	(void)namespace;
	*ret_claim = (struct claim_view){ .has_class_name = true, .class_name = SLICE("hdd") };
	return !slice_equal_text(name, "missing");
}

static bool find_class(void *context, struct slice name, struct class_view *ret_class)
{
	(void)context;
	*ret_class = (struct class_view){ .provisioner = SLICE("ours") };
	return slice_equal_text(name, "hdd");
}

static void the_walk_ends_with_the_volume_that_has_to_wait(void **state)
{
	const struct extender_settings settings = { .provisioner = SLICE("ours") };
	const struct storage_view view = { NULL, find_claim, find_class, NULL };
	struct extender_pod_volume volumes[] = {
		{ .name = SLICE("a"),
		  .has_persistent_volume_claim = true,
		  .persistent_volume_claim = { .claim_name = SLICE("there") } },
		{ .name = SLICE("b"),
		  .has_persistent_volume_claim = true,
		  .persistent_volume_claim = { .claim_name = SLICE("missing") } },
		{ .name = SLICE("c") },
	};
	struct extender_pod pod = { .spec = { .volumes = volumes, .volumes_count = 3 } };
	struct capacity_plan plan;
	struct arena arena;
	struct error err;

	(void)state;
	arena_init(&arena, TEXT_BYTES);
	assert_true(capacity_plan_make(&settings, &view, &pod, &arena, &plan, &err));
	assert_int_equal(plan.outcome, CAPACITY_RETRY);
	assert_int_equal(plan.note_count, 2);
	assert_int_equal(plan.notes[0].verdict, VOLUME_REQUESTED);
	assert_int_equal(plan.notes[1].verdict, VOLUME_CLAIM_MISSING);
	assert_true(slice_equal_text(plan.notes[1].claim, "missing"));
	arena_destroy(&arena);
}

static void check_reason(const struct extender_settings *settings, enum node_id_outcome outcome, const char *sentence,
                         bool is_error)
{
	struct buffer text;

	buffer_init(&text, TEXT_BYTES);
	node_id_print_reason(settings, outcome, &text);
	buffer_append_char(&text, '\0');
	assert_string_equal(text.data, sentence);
	assert_int_equal(node_id_is_error(outcome), is_error);
	buffer_destroy(&text);
}

static void each_node_without_an_id_has_its_sentence(void **state)
{
	struct extender_settings settings = {
		.use_node_annotation = true,
		.use_external_annotation = true,
		.node_id_annotation = SLICE("corp/id"),
		.node_selector = SLICE("a=b=c"),
	};

	(void)state;
	check_reason(&settings, NODE_ID_FOUND, "", false);
	check_reason(&settings, NODE_ID_NOT_SELECTED, "node doesn't have the label a=b=c that local volumes need",
	             false);
	check_reason(&settings, NODE_ID_BAD_SELECTOR, "the extender's node selector \"a=b=c\" isn't key=value", false);
	check_reason(&settings, NODE_ID_ANNOTATION_EMPTY, "node's annotation corp/id is empty", false);
	check_reason(&settings, NODE_ID_NO_UID, "node has no uid", true);
	check_reason(&settings, NODE_ID_NO_ANNOTATION, "node doesn't have the annotation corp/id with its id", true);
	check_reason(&settings, NODE_ID_NO_ANNOTATION_KEY, "the extender isn't told which annotation has the node's id",
	             true);
	check_reason(&settings, NODE_ID_UNKNOWN_NODE, "node isn't known to the extender yet", true);
}

static void each_decision_has_its_sentence(void **state)
{
	(void)state;
	for (int i = RESERVATION_IS_NEW; i <= RESERVATION_STATUS_UNKNOWN; i++) {
		const char *sentence = reservation_reason_text((enum reservation_reason)i);

		assert_true(strlen(sentence) > 5);
		for (int j = RESERVATION_IS_NEW; j < i; j++)
			assert_string_not_equal(sentence, reservation_reason_text((enum reservation_reason)j));
	}
}

static void failures_that_pass_are_told_from_those_that_stay(void **state)
{
	static const int PASSING[] = { 0, 408, 409, 410, 429, 500, 502, 503, 504 };
	static const int STAYING[] = { 400, 401, 403, 404, 405, 415, 422 };

	(void)state;
	for (size_t i = 0; i < sizeof PASSING / sizeof PASSING[0]; i++)
		assert_true(reservation_failure_passes(PASSING[i]));
	for (size_t i = 0; i < sizeof STAYING / sizeof STAYING[0]; i++)
		assert_false(reservation_failure_passes(STAYING[i]));
}

static void names_of_reservations_are_bounded(void **state)
{
	struct extender_pod pod = { .metadata = { .name = SLICE("web"), .namespace = SLICE("shop") } };
	struct error err;
	char name[9] = "";

	(void)state;
	assert_true(reservation_name(&pod, name, sizeof name, &err));
	assert_string_equal(name, "shop-web");
	pod.metadata.name = SLICE("webs");
	assert_false(reservation_name(&pod, name, sizeof name, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(name, "shop-web");
}

static void a_set_of_slices_has_what_was_added(void **state)
{
	const struct slice texts[] = { SLICE("a"), SLICE(""), SLICE("b"), SLICE("a") };
	struct slice_set set;
	struct arena arena;

	(void)state;
	arena_init(&arena, TEXT_BYTES);
	assert_true(slice_set_make(&set, &arena, 4));
	assert_false(slice_set_has(&set, SLICE("")));
	assert_true(slice_set_add(&set, &texts[0]));
	assert_true(slice_set_add(&set, &texts[1]));
	assert_true(slice_set_add(&set, &texts[2]));
	assert_false(slice_set_add(&set, &texts[3]));
	assert_true(slice_set_has(&set, SLICE("")));
	assert_true(slice_set_has(&set, SLICE("b")));
	assert_false(slice_set_has(&set, SLICE("c")));
	arena_destroy(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_volume_has_its_sentence),
		cmocka_unit_test(the_walk_ends_with_the_volume_that_has_to_wait),
		cmocka_unit_test(each_node_without_an_id_has_its_sentence),
		cmocka_unit_test(each_decision_has_its_sentence),
		cmocka_unit_test(failures_that_pass_are_told_from_those_that_stay),
		cmocka_unit_test(names_of_reservations_are_bounded),
		cmocka_unit_test(a_set_of_slices_has_what_was_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
