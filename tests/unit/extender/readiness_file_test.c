#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "extender/readiness_file.h"

#define NOT_FOUND "node cp-1 is not found in extenders status list"
#define NOT_BOOL(found) "yaml: line 3: field \"nodes[0].restarted\": expected bool, found " found
#define NOT_RESTARTED "kube-scheduler ks-1 is not restarted after patching"

struct file_case {
	const char *text;
	const char *message; /* NULL: ready */
};

static void check(const struct file_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct error err;
		bool ready = readiness_file_check(slice_of(cases[i].text), SLICE("cp-1"), &err);

		if (ready && cases[i].message != NULL)
			fail_msg("ready by: %s", cases[i].text);
		if (!ready && cases[i].message == NULL)
			fail_msg("%s, by: %s", err.text, cases[i].text);
		if (!ready)
			assert_string_equal(err.text, cases[i].message);
	}
}

static void the_first_item_of_the_name_decides(void **state)
{
	static const struct file_case CASES[] = {
		{ "nodes:\n    - node_name: cp-1\n      kube_scheduler: ks-1\n      restarted: true\n", NULL },
		{ "nodes:\n    - node_name: cp-1\n      kube_scheduler: ks-1\n      restarted: false\n",
		  NOT_RESTARTED },
		{ "nodes:\n    - node_name: cp-1\n      kube_scheduler: ks-1\n", NOT_RESTARTED },
		{ "nodes:\n- node_name: cp-1\n  kube_scheduler: ks-1\n  restarted: false\n"
		  "- node_name: cp-1\n  restarted: true\n",
		  NOT_RESTARTED },
		{ "nodes:\n- node_name: cp-2\n  restarted: false\n- node_name: cp-1\n  restarted: true\n", NULL },
		{ "nodes:\n- node_name: cp-2\n  restarted: true\n", NOT_FOUND },
		{ "nodes:\n- node_name: cp-11\n  restarted: true\n", NOT_FOUND },
		{ "", NOT_FOUND },
		{ "nodes: []\n", NOT_FOUND },
		{ "nodes:\n", NOT_FOUND },
		{ "nodes: ~\n", NOT_FOUND },
		{ "other: 1\n", NOT_FOUND },
		{ "nodes:\n-\n- node_name: cp-1\n  restarted: on\n", NULL },
	};

	(void)state;
	check(CASES, sizeof CASES / sizeof CASES[0]);
}

static void scalars_may_be_written_in_several_ways(void **state)
{
	static const struct file_case CASES[] = {
		{ "nodes:\n- node_name: \"cp-1\"\n  restarted: yes\n", NULL },
		{ "nodes:\n- node_name: 'cp-1'\n  restarted: ON # now\n", NULL },
		{ "nodes:\n- restarted: Yes\n  node_name: cp-1   # the first\n", NULL },
		{ "nodes:\n- node_name: cp-1\n  restarted: TRUE\n", NULL },
		{ "nodes:\n- node_name: cp-1\n  kube_scheduler: ks-1\n  restarted: off\n", NOT_RESTARTED },
		{ "nodes:\n- node_name: cp-1\n  kube_scheduler: ks-1\n  restarted: No\n", NOT_RESTARTED },
		{ "nodes:\n- node_name: cp-1\n  kube_scheduler: ks-1\n  restarted: ~\n", NOT_RESTARTED },
		{ "nodes:\n- node_name: cp-1\n  restarted: tRUE\n", NOT_BOOL("string") },
		{ "nodes:\n- node_name: cp-1\n  restarted: \"true\"\n", NOT_BOOL("string") },
		{ "nodes:\n- node_name: cp-1\n  restarted: 1\n", NOT_BOOL("number") },
		{ "nodes:\n- node_name: 'it''s'\n- node_name: cp-1\n  restarted: true\n", NULL },
	};

	(void)state;
	check(CASES, sizeof CASES / sizeof CASES[0]);
}

static void members_that_are_not_known_are_passed_over(void **state)
{
	static const struct file_case CASES[] = {
		{ "---\n# status\napiVersion: v1\nmore:\n  deep:\n    - a\n    - b: c\nlist:\n- x\n- y\nnodes:\n"
		  "- node_name: cp-1\n  labels:\n    a: b\n  taints:\n  - c\n  ports: [1, {a: b}]\n  restarted: true\nend: {}\n",
		  NULL },
	};

	(void)state;
	check(CASES, sizeof CASES / sizeof CASES[0]);
}

static void flow_style_is_as_good(void **state)
{
	static const struct file_case CASES[] = {
		{ "{\"nodes\":[{\"node_name\":\"cp-1\",\"restarted\":true}]}", NULL },
		{ "{nodes: [{node_name: cp-2}, {node_name: cp-1, restarted: yes,}], other: [[]]}\n", NULL },
		{ "nodes: [ {node_name: cp-1,\n  restarted: true} ] # all\n", NULL },
		{ "nodes:\n- {node_name: cp-1, kube_scheduler: ks-1, restarted: false}\n", NOT_RESTARTED },
		{ "nodes:\n- {node_name: cp-2}\n- node_name: cp-1\n  restarted: true\n", NULL },
		{ "{}", NOT_FOUND },
		{ "# nothing\n\n", NOT_FOUND },
		{ "# nothing\n---\nnull\n", NOT_FOUND },
	};

	(void)state;
	check(CASES, sizeof CASES / sizeof CASES[0]);
}

static void what_is_wrong_is_told_with_its_place(void **state)
{
	static const struct file_case CASES[] = {
		{ "nodes: 5\n", "yaml: line 1: field \"nodes\": expected array, found number" },
		{ "nodes: {a: b}\n", "yaml: line 1: field \"nodes\": expected array, found object" },
		{ "nodes: [5]\n", "yaml: line 1: field \"nodes[0]\": expected object, found number" },
		{ "nodes:\n- node_name: cp-1\n  node_name: cp-2\n",
		  "yaml: line 3: field \"nodes[0].node_name\": the key stands here for the second time" },
		{ "just text\n", "yaml: line 1: expected object, found string" },
		{ "nodes: [\n", "yaml: line 2: did not find expected node content" },
		{ "nodes:\n- node_name: cp-1\n restarted: true\n", "yaml: line 3: did not find expected key" },
		{ "nodes:\n- node_name: \"cp-1\n", "yaml: line 3: found unexpected end of stream" },
		{ "nodes:\n- node_name: \"a\" b\n", "yaml: line 2: did not find expected key" },
		{ "nodes:\n- *a\n", "yaml: line 2: an alias (*name), which isn't supported" },
		{ "a: 1\n---\nb: 2\n", "yaml: line 2: a second document" },
		{ "\xff-", "yaml: line 1: byte 0: invalid leading UTF-8 octet" },
	};

	(void)state;
	check(CASES, sizeof CASES / sizeof CASES[0]);
}

/* Whatever is cut off, changed or repeated: an answer, and no read outside. */
static void any_text_gets_an_answer(void **state)
{
	static const char TEXT[] =
		"---\nnodes: # x\n- node_name: 'cp-1'\n  restarted: \"a\\\"b\"\n- {a: [b, c], d: e}\n";
	static const char MARKS[] = "-:{}[]\"'\n #,&x";
	struct error err;

	(void)state;
	for (size_t length = 0; length < sizeof TEXT; length++) {
		for (size_t at = 0; at < length; at++) {
			for (size_t mark = 0; mark < sizeof MARKS; mark++) {
				char *copy = malloc(length);

				assert_non_null(copy);
				memcpy(copy, TEXT, length);
				copy[at] = MARKS[mark];
				assert_false(readiness_file_check(slice_from(copy, length), SLICE("cp-9"), &err));
				assert_true(strlen(err.text) > 0);
				free(copy);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_item_of_the_name_decides),
		cmocka_unit_test(scalars_may_be_written_in_several_ways),
		cmocka_unit_test(members_that_are_not_known_are_passed_over),
		cmocka_unit_test(flow_style_is_as_good),
		cmocka_unit_test(what_is_wrong_is_told_with_its_place),
		cmocka_unit_test(any_text_gets_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
