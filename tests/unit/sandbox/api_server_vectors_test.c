/*
 * The tables tests/vectors/sandbox/{selectors,vm_refusals}.txt.
 */
#include "plane_fixture.h"

#include "sandbox/label_selector.h"
#include "tests/support/vector_file.h"

/* ---- selectors ---- */

/* "a=1,b=2" as labels. */
static struct stored_object labelled(char *text, struct json_pair *pairs, size_t size)
{
	struct stored_object object = { .kind = resource_kind(RESOURCE_PODS), .labels = pairs };
	struct slice rest = slice_of(text);

	while (rest.length > 0 && object.label_count < size) {
		struct slice value = slice_take_until(&rest, ',');
		struct slice key = slice_take_until(&value, '=');

		pairs[object.label_count++] = (struct json_pair){ key, value };
	}
	return object;
}

static void use_selector(const struct vector_row *row)
{
	const char *text = strcmp(row->fields[0], "(empty)") == 0 ? "" : row->fields[0];
	struct json_pair pairs[8];
	struct stored_object object = labelled(row->fields[1], pairs, 8);
	struct selector selector = { 0 };
	struct arena arena;
	struct error err;

	arena_init(&arena, (size_t)1024 * 1024);
	if (!selector_parse_labels(&selector, slice_of(text), &arena, &err)) {
		if (strcmp(err.text, row->fields[2]) != 0)
			fail_msg("line %zu: \"%s\" instead of \"%s\"", row->line, err.text, row->fields[2]);
	} else {
		const char *outcome = selector_matches(&selector, &object) ? "match" : "no";

		if (strcmp(outcome, row->fields[2]) != 0)
			fail_msg("line %zu: %s instead of %s", row->line, outcome, row->fields[2]);
		assert_int_equal(selector_is_empty(&selector), text[0] == '\0');
	}
	arena_destroy(&arena);
}

static void label_selectors_match_and_fail_as_the_api_servers(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/sandbox/selectors.txt", use_selector), 36);
}

/* ---- refusals ---- */

static struct plane_fixture *shared;
static unsigned refused;

static void use_refusal(const struct vector_row *row)
{
	struct plane_fixture *fixture = shared;
	struct reply before = get(fixture, PINE);
	struct reply reply = patch(fixture, PINE, row->fields[0]);
	struct slice message = json_tree_text(json_tree_find(reply.root, "/message"));
	int status = atoi(row->fields[1]);
	char expected[2048];

	if (reply.status != status)
		fail_msg("line %zu: %d instead of %d: %.*s", row->line, reply.status, status, SLICE_ARGS(message));
	if (status == 200)
		return;
	refused++;
	(void)snprintf(expected, sizeof expected, "%s%s",
	               status == 422 ? "VirtualMachine.vm.neon.tech \"pine\" is invalid: "
	                             : "admission webhook \"vvirtualmachine.kb.io\" denied the request: ",
	               row->fields[2]);
	if (!slice_equal_text(message, expected))
		fail_msg("line %zu: \"%.*s\" instead of \"%s\"", row->line, SLICE_ARGS(message), expected);
	expect_json(reply.root, "/reason", status == 422 ? "\"Invalid\"" : "\"Forbidden\"");
	assert_int_equal(json_tree_find(reply.root, "/details") != NULL, status == 422);
	if (status == 422)
		expect_json(reply.root, "/details/kind", "\"VirtualMachine\"");
	/* Nothing was stored. */
	reply = get(fixture, PINE);
	assert_true(json_tree_equal(before.root, reply.root));
	fixture->told[0] = '\0';
}

static void schema_and_webhook_refuse_in_their_own_words(void **state)
{
	struct control_plane_vm_state vm;

	shared = *state;
	refused = 0;
	add_pine(shared);
	pass_ms(shared, 500);
	assert_int_equal(vector_table_walk("vectors/sandbox/vm_refusals.txt", use_refusal), 43);
	assert_true(control_plane_vm_state(shared->plane, "pine", &vm));
	assert_int_equal(vm.refused_patches, refused);
	assert_int_equal(vm.patches, 0);
	assert_int_equal(control_plane_counters(shared->plane).rejected, refused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(label_selectors_match_and_fail_as_the_api_servers),
		cmocka_unit_test_setup_teardown(schema_and_webhook_refuse_in_their_own_words, plane_set_up,
		                                plane_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
