/*
 * Parts of the sandbox that work without a network, while each allocation fails once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "report/gzip_packer.h"
#include "sandbox/agent_setup.h"
#include "sandbox/gunzip.h"
#include "sandbox/json_patch.h"
#include "tests/support/failing_calls.h"

enum { ARENA_BYTES = 1024 * 1024 };

/* What can't be done for want of memory is a lack of resources, not a fault of the patch. */
static bool apply_patches(void *context, struct error *err)
{
	struct json_node *root;
	struct arena arena;
	bool ok;

	(void)context;
	arena_init(&arena, ARENA_BYTES);
	ok = json_tree_parse(SLICE("{\"a\":{\"b\":[1,2]},\"c\":\"x\"}"), &arena, &root, err);
	if (ok) {
		enum json_patch_outcome outcome = json_patch_apply(
			SLICE("[{\"op\":\"replace\",\"path\":\"/a/b/0\",\"value\":{\"n\":\"\\u00e4\"}},{\"op\":\"add\","
		              "\"path\":\"/a~1d\",\"value\":[3]},{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/e\"},"
		              "{\"op\":\"remove\",\"path\":\"/c\"}]"),
			root, &arena, err);

		if (outcome == JSON_PATCH_DONE)
			outcome = json_merge_patch_apply(SLICE("{\"a\":{\"b\":null,\"new\":{\"deep\":1}}}"), root,
			                                 &arena, err);
		ok = outcome == JSON_PATCH_DONE;
		if (ok)
			assert_non_null(json_tree_find(root, "/a/new/deep"));
		else
			assert_int_equal(outcome, JSON_PATCH_RESOURCE);
	}
	arena_destroy(&arena);
	return ok;
}

static bool pack_and_unpack(void *context, struct error *err)
{
	struct gzip_packer *packer = gzip_packer_create(err);
	struct buffer packed, out;
	bool ok;

	(void)context;
	if (packer == NULL)
		return false;
	buffer_init(&packed, ARENA_BYTES);
	buffer_init(&out, ARENA_BYTES);
	ok = gzip_packer_add(packer, SLICE("a text"), SLICE("\n"), &packed, err) &&
	     gzip_packer_finish(packer, &packed, err) && gunzip(buffer_slice(&packed), &out, err);
	if (ok)
		assert_true(slice_equal_text(buffer_slice(&out), "a text\n"));
	gzip_packer_destroy(packer);
	buffer_destroy(&packed);
	buffer_destroy(&out);
	return ok;
}

/* Nothing of a folder that couldn't be filled stays: see remove_folder. */
static bool make_folder_for_agent(void *context, struct error *err)
{
	static const struct sandbox_generation NEWEST = { .late_2023 = false };
	struct agent_setup setup;

	(void)context;
	if (!agent_setup_create(&setup, 1, &NEWEST, NULL, "token", SLICE("ca"), err))
		return false;
	agent_setup_remove(&setup);
	return true;
}

static void each_failed_allocation_is_an_error(void **state)
{
	static const struct torture_case CASES[] = {
		{ "patches", apply_patches, 30 },
		{ "gzip", pack_and_unpack, 5 },
		{ "folder of an agent", make_folder_for_agent, 2 },
	};

	(void)state;
	torture_each_case(CASES, sizeof CASES / sizeof CASES[0], NULL);
}

static char folder[] = "/tmp/ballast-sandbox-torture-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) != NULL ? setenv("TMPDIR", folder, 1) : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder); /* fails if something was left behind */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_failed_allocation_is_an_error) };

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
