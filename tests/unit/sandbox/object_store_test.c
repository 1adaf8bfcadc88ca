#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/loop_epoll.h"
#include "sandbox/object_store.h"

struct fixture {
	struct loop *loop;
	struct object_store *store;
	struct object_observer observer;
	char seen[4096];
	struct arena arena;
};

static const char *const TYPES[] = { "added", "modified", "deleted" };

static void on_change(void *context, const struct object_change *change)
{
	struct fixture *fixture = context;
	size_t used = strlen(fixture->seen);

	(void)snprintf(fixture->seen + used, sizeof fixture->seen - used, "%s %.*s %llu\n", TYPES[change->type],
	               SLICE_ARGS(change->after->name), (unsigned long long)change->after->version);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	struct error err;

	fixture->loop = loop_epoll_create(&err);
	assert_non_null(fixture->loop);
	fixture->store = object_store_create(fixture->loop, &err);
	assert_non_null(fixture->store);
	fixture->observer = (struct object_observer){ .on_change = on_change, .context = fixture };
	object_store_observe(fixture->store, &fixture->observer);
	arena_init(&fixture->arena, (size_t)64 * 1024 * 1024);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	object_store_destroy(fixture->store);
	loop_destroy(fixture->loop);
	arena_destroy(&fixture->arena);
	free(fixture);
	return 0;
}

static struct json_node *parse(struct fixture *fixture, const char *text)
{
	struct json_node *root;
	struct error err;

	if (!json_tree_parse(slice_of(text), &fixture->arena, &root, &err))
		fail_msg("%s: %s", text, err.text);
	return root;
}

static struct stored_object *add(struct fixture *fixture, enum resource resource, const char *text)
{
	struct stored_object *object = NULL;
	struct error err;

	if (!object_store_add(fixture->store, resource_kind(resource), parse(fixture, text), &fixture->arena, &object,
	                      &err))
		fail_msg("%s: %s", text, err.text);
	return object;
}

static struct stored_object *add_vm(struct fixture *fixture, const char *name_space, const char *name)
{
	char text[512];

	(void)snprintf(
		text, sizeof text,
		"{\"spec\":{\"a\":1},\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"labels\":{\"x\":\"y\"}}}",
		name, name_space);
	return add(fixture, RESOURCE_VIRTUAL_MACHINES, text);
}

static struct stored_object *replace(struct fixture *fixture, struct stored_object *current, const char *text)
{
	struct stored_object *object = NULL;
	struct error err;

	if (!object_store_replace(fixture->store, current, parse(fixture, text), &fixture->arena, &object, &err))
		fail_msg("%s: %s", text, err.text);
	return object;
}

static void expect_text(struct fixture *fixture, const struct stored_object *object, const char *pointer,
                        const char *expected)
{
	const struct json_node *node;
	struct json_node *root;
	struct buffer text;
	struct error err;

	assert_true(json_tree_parse(object->text, &fixture->arena, &root, &err));
	node = json_tree_find(root, pointer);
	if (node == NULL && expected == NULL)
		return;
	assert_non_null(node);
	buffer_init(&text, (size_t)1024 * 1024);
	assert_true(json_tree_print(node, &text, &err));
	buffer_append_char(&text, '\0');
	if (expected == NULL)
		fail_msg("%s is %s", pointer, text.data);
	else
		assert_string_equal(text.data, expected);
	buffer_destroy(&text);
}

static void a_new_object_gets_what_the_server_sets(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *vm = add_vm(fixture, "apps", "a");
	struct stored_object *pod = add(fixture, RESOURCE_PODS, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}}");
	struct json_node *root;
	struct error err;

	expect_text(fixture, vm, "/metadata/generation", "1");
	expect_text(fixture, vm, "/metadata/resourceVersion", "\"2\"");
	expect_text(fixture, vm, "/apiVersion", "\"vm.neon.tech/v1\"");
	expect_text(fixture, vm, "/kind", "\"VirtualMachine\"");
	expect_text(fixture, pod, "/metadata/generation", NULL);
	expect_text(fixture, pod, "/metadata/resourceVersion", "\"3\"");
	assert_true(json_tree_parse(vm->text, &fixture->arena, &root, &err));
	assert_int_equal(json_tree_text(json_tree_find(root, "/metadata/uid")).length, 36);
	assert_int_equal(json_tree_text(json_tree_find(root, "/metadata/creationTimestamp")).length,
	                 sizeof "2026-01-01T00:00:00Z" - 1);
	assert_int_equal(vm->label_count, 1);
	assert_string_equal(fixture->seen, "added a 2\nadded p 3\n");
	assert_int_equal(object_store_version(fixture->store), 3);
}

static void keys_of_custom_objects_are_sorted_and_those_of_built_in_ones_ordered(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *vm = add(
		fixture, RESOURCE_VIRTUAL_MACHINES,
		"{\"status\":{\"b\":1,\"a\":{\"d\":1,\"c\":2}},\"spec\":{},\"metadata\":{\"namespace\":\"n\",\"name\":\"a\"}}");
	struct stored_object *pod = add(
		fixture, RESOURCE_PODS,
		"{\"status\":{\"z\":1,\"b\":2},\"spec\":{\"y\":1,\"x\":2},\"metadata\":{\"labels\":{\"b\":\"1\",\"a\":\"2\"},\"namespace\":\"n\","
		"\"name\":\"p\"}}");

	assert_true(slice_starts_with(
		vm->text, SLICE("{\"apiVersion\":\"vm.neon.tech/v1\",\"kind\":\"VirtualMachine\",\"metadata\":{"
	                        "\"creationTimestamp\":")));
	assert_true(slice_contains(vm->text, SLICE("\"spec\":{},\"status\":{\"a\":{\"c\":2,\"d\":1},\"b\":1}}")));
	assert_true(slice_starts_with(
		pod->text,
		SLICE("{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\",\"namespace\":\"n\","
	              "\"uid\":")));
	assert_true(slice_contains(
		pod->text,
		SLICE("Z\",\"labels\":{\"a\":\"2\",\"b\":\"1\"}},\"spec\":{\"y\":1,\"x\":2},\"status\":{\"z\":1,"
	              "\"b\":2}}")));
}

static void generation_counts_changes_of_the_spec_alone(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *vm = add_vm(fixture, "apps", "a");

	vm = replace(fixture, vm, "{\"metadata\":{\"labels\":{\"x\":\"z\"}},\"spec\":{\"a\":1},\"status\":{\"s\":1}}");
	expect_text(fixture, vm, "/metadata/generation", "1");
	expect_text(fixture, vm, "/metadata/resourceVersion", "\"3\"");
	vm = replace(fixture, vm, "{\"metadata\":{\"generation\":7},\"spec\":{\"a\":2},\"status\":{\"s\":1}}");
	expect_text(fixture, vm, "/metadata/generation", "2");
	vm = replace(fixture, vm, "{\"metadata\":{},\"spec\":{\"a\":\"2\"}}");
	expect_text(fixture, vm, "/metadata/generation", "3");
}

static void without_a_status_subresource_status_counts_for_generation(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *group =
		add(fixture, RESOURCE_STORAGE_GROUPS, "{\"metadata\":{\"name\":\"g\"},\"status\":{\"phase\":\"\"}}");

	group = replace(fixture, group, "{\"metadata\":{},\"status\":{\"phase\":\"SYNCED\"}}");
	expect_text(fixture, group, "/metadata/generation", "2");
}

static void a_write_that_changes_nothing_is_none(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *vm = add_vm(fixture, "apps", "a");

	assert_ptr_equal(
		replace(fixture, vm,
	                "{\"spec\":{\"a\":1},\"metadata\":{\"labels\":{\"x\":\"y\"},\"resourceVersion\":\"1\"}}"),
		vm);
	assert_int_equal(object_store_version(fixture->store), 2);
	assert_string_equal(fixture->seen, "added a 2\n");
}

static void names_uid_and_birth_cant_be_changed(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *vm = add_vm(fixture, "apps", "a");
	struct stored_object *after =
		replace(fixture, vm,
	                "{\"metadata\":{\"name\":\"b\",\"namespace\":\"c\",\"uid\":\"d\",\"creationTimestamp\":\"e\","
	                "\"deletionTimestamp\":\"f\",\"labels\":{\"x\":\"y\"}},\"spec\":{\"a\":1}}");

	assert_ptr_equal(after, vm);
}

static void objects_that_dont_fit_are_refused(void **state)
{
	static const struct {
		enum resource resource;
		const char *text;
		enum error_code code;
	} CASES[] = {
		{ RESOURCE_PODS, "{\"metadata\":{\"name\":\"p\"}}", ERROR_SYNTAX },
		{ RESOURCE_PODS, "{\"metadata\":{\"namespace\":\"n\"}}", ERROR_SYNTAX },
		{ RESOURCE_NODES, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}}", ERROR_SYNTAX },
		{ RESOURCE_NODES, "{\"metadata\":{\"name\":\"p\",\"labels\":{\"a\":1}}}", ERROR_SYNTAX },
		{ RESOURCE_NODES, "{\"metadata\":{\"name\":\"p\",\"annotations\":[]}}", ERROR_SYNTAX },
		{ RESOURCE_NODES, "{\"metadata\":{\"name\":\"there\"}}", ERROR_REFUSED },
	};
	struct fixture *fixture = *state;

	add(fixture, RESOURCE_NODES, "{\"metadata\":{\"name\":\"there\",\"labels\":null}}");
	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
		struct error err;

		assert_false(object_store_add(fixture->store, resource_kind(CASES[i].resource),
		                              parse(fixture, CASES[i].text), &fixture->arena, NULL, &err));
		assert_int_equal(err.code, CASES[i].code);
	}
	assert_int_equal(object_store_count(fixture->store, resource_kind(RESOURCE_NODES)), 1);
	assert_int_equal(object_store_count(fixture->store, resource_kind(RESOURCE_PODS)), 0);
}

static void objects_are_in_the_order_of_namespace_and_name(void **state)
{
	static const char *const ORDER[] = { "a-b", "b", "a", "c" };
	struct fixture *fixture = *state;
	const struct resource_kind *kind = resource_kind(RESOURCE_VIRTUAL_MACHINES);

	add_vm(fixture, "b", "c");
	add_vm(fixture, "a", "b");
	add_vm(fixture, "b", "a");
	add_vm(fixture, "a", "a-b");
	for (size_t i = 0; i < 4; i++)
		assert_true(slice_equal_text(object_store_at(fixture->store, kind, i)->name, ORDER[i]));
	assert_non_null(object_store_find(fixture->store, kind, SLICE("b"), SLICE("a")));
	assert_null(object_store_find(fixture->store, kind, SLICE("a"), SLICE("a")));
	assert_null(object_store_find(fixture->store, resource_kind(RESOURCE_PODS), SLICE("b"), SLICE("a")));
}

static void an_object_without_finalizers_goes_at_once(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *vm = add_vm(fixture, "apps", "a");
	struct stored_object *last;
	struct error err;
	bool gone;

	assert_true(object_store_delete(fixture->store, vm, &last, &gone, &err));
	assert_true(gone);
	expect_text(fixture, last, "/metadata/resourceVersion", "\"3\"");
	expect_text(fixture, last, "/metadata/deletionTimestamp", NULL);
	assert_string_equal(fixture->seen, "added a 2\ndeleted a 3\n");
	assert_int_equal(object_store_count(fixture->store, resource_kind(RESOURCE_VIRTUAL_MACHINES)), 0);
}

static void an_object_with_finalizers_goes_when_the_last_one_does(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *vm =
		add(fixture, RESOURCE_VIRTUAL_MACHINES,
	            "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"finalizers\":[\"f\",\"g\"]}}");
	struct stored_object *marked;
	struct error err;
	bool gone;

	assert_true(object_store_delete(fixture->store, vm, &marked, &gone, &err));
	assert_false(gone);
	expect_text(fixture, marked, "/metadata/deletionGracePeriodSeconds", "0");
	assert_true(object_store_delete(fixture->store, marked, &vm, &gone, &err));
	assert_ptr_equal(vm, marked);
	vm = replace(fixture, vm, "{\"metadata\":{\"finalizers\":[\"g\"]}}");
	expect_text(fixture, vm, "/metadata/finalizers", "[\"g\"]");
	(void)replace(fixture, vm, "{\"metadata\":{\"finalizers\":[]}}");
	assert_string_equal(fixture->seen, "added a 2\nmodified a 3\nmodified a 4\ndeleted a 5\n");
	assert_int_equal(object_store_count(fixture->store, resource_kind(RESOURCE_VIRTUAL_MACHINES)), 0);
}

static void pods_are_marked_before_they_are_gone(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *pod = add(fixture, RESOURCE_PODS, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}}");
	struct error err;
	bool gone;

	assert_true(object_store_delete(fixture->store, pod, &pod, &gone, &err));
	assert_true(gone);
	expect_text(fixture, pod, "/metadata/deletionGracePeriodSeconds", "30");
	assert_string_equal(fixture->seen, "added p 2\nmodified p 3\ndeleted p 4\n");
}

static void an_edit_changes_an_object_in_place(void **state)
{
	struct fixture *fixture = *state;
	struct object_edit edit;
	struct error err;
	struct stored_object *vm;

	assert_true(object_edit_begin(&edit, add_vm(fixture, "apps", "a"), &err));
	assert_true(json_tree_set_text(&edit.arena, json_tree_find(edit.root, "/spec"), SLICE("b"), SLICE("c")));
	assert_true(object_edit_commit(&edit, fixture->store, &err));
	object_edit_end(&edit);
	object_edit_end(&edit);
	vm = object_store_find(fixture->store, resource_kind(RESOURCE_VIRTUAL_MACHINES), SLICE("apps"), SLICE("a"));
	expect_text(fixture, vm, "/spec", "{\"a\":1,\"b\":\"c\"}");
}

static void expect_snapshot(struct fixture *fixture, uint64_t version, const char *expected)
{
	struct object_snapshot snapshot;
	struct error err;
	char text[256] = "";

	assert_true(object_store_snapshot(fixture->store, resource_kind(RESOURCE_VIRTUAL_MACHINES), version, &snapshot,
	                                  &err));
	for (size_t i = 0; i < snapshot.count; i++) {
		size_t used = strlen(text);

		(void)snprintf(text + used, sizeof text - used, "%.*s@%llu ", SLICE_ARGS(snapshot.objects[i]->name),
		               (unsigned long long)snapshot.objects[i]->version);
	}
	object_snapshot_release(&snapshot);
	object_snapshot_release(&snapshot);
	assert_string_equal(text, expected);
}

static void the_past_can_be_listed(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *b = add_vm(fixture, "n", "b");
	struct stored_object *gone;
	struct error err;
	bool is_gone;

	add_vm(fixture, "n", "d");
	b = replace(fixture, b, "{\"spec\":{\"a\":2}}");
	add_vm(fixture, "n", "a");
	assert_true(object_store_delete(fixture->store, b, &gone, &is_gone, &err));
	add_vm(fixture, "n", "b");
	expect_snapshot(fixture, 1, "");
	expect_snapshot(fixture, 2, "b@2 ");
	expect_snapshot(fixture, 3, "b@2 d@3 ");
	expect_snapshot(fixture, 4, "b@4 d@3 ");
	expect_snapshot(fixture, 5, "a@5 b@4 d@3 ");
	expect_snapshot(fixture, 6, "a@5 d@3 ");
	expect_snapshot(fixture, 7, "a@5 b@7 d@3 ");
	expect_snapshot(fixture, 99, "a@5 b@7 d@3 ");
}

static void history_is_bounded_and_tells_where_it_begins(void **state)
{
	struct fixture *fixture = *state;
	const struct resource_kind *kind = resource_kind(RESOURCE_VIRTUAL_MACHINES);
	struct stored_object *vm = add_vm(fixture, "n", "a");
	size_t count = 0;

	object_store_ignore(&fixture->observer);
	assert_int_equal(object_store_floor(fixture->store, kind), 0);
	for (int i = 0; i < OBJECT_STORE_HISTORY + 10; i++) {
		char text[64];

		(void)snprintf(text, sizeof text, "{\"spec\":{\"a\":%d}}", i + 2);
		vm = replace(fixture, vm, text);
		arena_reset(&fixture->arena);
	}
	/* The first change had version 2; eleven are forgotten. */
	assert_int_equal(object_store_floor(fixture->store, kind), 12);
	assert_int_equal(object_store_change(fixture->store, kind, 0)->after->version, 13);
	while (object_store_change(fixture->store, kind, count) != NULL)
		count++;
	assert_int_equal(count, OBJECT_STORE_HISTORY);
	assert_int_equal(object_store_floor(fixture->store, resource_kind(RESOURCE_PODS)), 0);
}

static void compaction_makes_every_known_version_too_old(void **state)
{
	struct fixture *fixture = *state;
	const struct resource_kind *kind = resource_kind(RESOURCE_VIRTUAL_MACHINES);

	add_vm(fixture, "n", "a");
	object_store_compact(fixture->store);
	assert_int_equal(object_store_version(fixture->store), 3);
	assert_int_equal(object_store_floor(fixture->store, kind), 3);
	assert_null(object_store_change(fixture->store, kind, 0));
	assert_int_equal(add_vm(fixture, "n", "b")->version, 4);
	expect_snapshot(fixture, 3, "a@2 ");
}

static void a_held_object_outlives_the_store(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *vm = stored_object_hold(add_vm(fixture, "n", "a"));

	object_store_destroy(fixture->store);
	fixture->store = NULL;
	assert_true(slice_equal_text(vm->name, "a"));
	stored_object_release(vm);
	stored_object_release(NULL);
}

static void a_write_without_memory_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	const struct resource_kind *kind = resource_kind(RESOURCE_VIRTUAL_MACHINES);
	unsigned long failures = 0;
	struct error err;
	bool ok = false;

	add_vm(fixture, "n", "a");
	for (unsigned long i = 1; !ok; i++) {
		struct json_node *root = parse(
			fixture,
			"{\"metadata\":{\"name\":\"b\",\"namespace\":\"n\",\"labels\":{\"c\":\"d\"}},\"spec\":{}}");
		uint64_t version = object_store_version(fixture->store);

		memory_fail_at(i);
		ok = object_store_add(fixture->store, kind, root, &fixture->arena, NULL, &err);
		memory_fail_at(0);
		if (!ok) {
			failures++;
			assert_int_equal(err.code, ERROR_NO_MEMORY);
			assert_int_equal(object_store_version(fixture->store), version);
			assert_int_equal(object_store_count(fixture->store, kind), 1);
		}
	}
	assert_true(failures > 0);
	assert_string_equal(fixture->seen, "added a 2\nadded b 3\n");
}

static void a_mirrored_object_is_as_the_other_server_has_it(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *vm;
	struct error err;

	assert_true(object_store_mirror(
		fixture->store, resource_kind(RESOURCE_VIRTUAL_MACHINES),
		parse(fixture,
	              "{\"spec\":{},\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"first\",\"resourceVersion\":"
	              "\"700\",\"generation\":9,\"finalizers\":[\"f\"]}}"),
		&fixture->arena, &err));
	vm = object_store_at(fixture->store, resource_kind(RESOURCE_VIRTUAL_MACHINES), 0);
	expect_text(fixture, vm, "/metadata/uid", "\"first\"");
	expect_text(fixture, vm, "/metadata/generation", "9");
	expect_text(fixture, vm, "/metadata/resourceVersion", "\"2\"");
	expect_text(fixture, vm, "/kind", "\"VirtualMachine\"");

	/* What no write of this store's own could do. */
	assert_true(object_store_mirror(
		fixture->store, resource_kind(RESOURCE_VIRTUAL_MACHINES),
		parse(fixture,
	              "{\"spec\":{},\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"second\",\"generation\":4,"
	              "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}"),
		&fixture->arena, &err));
	vm = object_store_at(fixture->store, resource_kind(RESOURCE_VIRTUAL_MACHINES), 0);
	expect_text(fixture, vm, "/metadata/uid", "\"second\"");
	expect_text(fixture, vm, "/metadata/generation", "4");
	expect_text(fixture, vm, "/metadata/deletionTimestamp", "\"2026-01-01T00:00:00Z\"");
	expect_text(fixture, vm, "/metadata/finalizers", NULL);
	assert_string_equal(fixture->seen, "added a 2\nmodified a 3\n");

	assert_false(object_store_mirror(fixture->store, resource_kind(RESOURCE_VIRTUAL_MACHINES),
	                                 parse(fixture, "{\"metadata\":{\"name\":\"b\"}}"), &fixture->arena, &err));
	assert_int_equal(err.code, ERROR_SYNTAX);
	assert_int_equal(object_store_count(fixture->store, resource_kind(RESOURCE_VIRTUAL_MACHINES)), 1);
}

static void a_forgotten_object_goes_whatever_its_finalizers(void **state)
{
	struct fixture *fixture = *state;
	struct stored_object *vm = add(fixture, RESOURCE_VIRTUAL_MACHINES,
	                               "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"finalizers\":[\"f\"]}}");
	struct error err;

	assert_true(object_store_forget(fixture->store, vm, &err));
	assert_int_equal(object_store_count(fixture->store, resource_kind(RESOURCE_VIRTUAL_MACHINES)), 0);
	assert_string_equal(fixture->seen, "added a 2\ndeleted a 3\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_new_object_gets_what_the_server_sets, set_up, tear_down),
		cmocka_unit_test_setup_teardown(keys_of_custom_objects_are_sorted_and_those_of_built_in_ones_ordered,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(generation_counts_changes_of_the_spec_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_status_subresource_status_counts_for_generation, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(a_write_that_changes_nothing_is_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_uid_and_birth_cant_be_changed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(objects_that_dont_fit_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(objects_are_in_the_order_of_namespace_and_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_object_without_finalizers_goes_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_object_with_finalizers_goes_when_the_last_one_does, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(pods_are_marked_before_they_are_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_edit_changes_an_object_in_place, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_mirrored_object_is_as_the_other_server_has_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_forgotten_object_goes_whatever_its_finalizers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_past_can_be_listed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(history_is_bounded_and_tells_where_it_begins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(compaction_makes_every_known_version_too_old, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_held_object_outlives_the_store, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_write_without_memory_changes_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
