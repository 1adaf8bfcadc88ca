/*
 * Every generated decoder and encoder, over every kept document, while each allocation fails once. The list of decoders is
 * made by the build from gen/; the documents are those of the fuzzer, each below a line that names its decoder.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "documents_includes.h"
#include "tests/support/failing_calls.h"
#include "tests/support/vector_file.h"

enum { ARENA_BYTES = 64 * 1024 * 1024, OUT_BYTES = 4 * 1024 * 1024, PATH_BYTES = 512 };

struct document {
	struct slice text;
	bool is_good;  /* the decoder takes it: to be seen without failures */
	char *written; /* what the encoder makes of it; NULL before the first run */
};

/* With less memory than it wanted it must be the same text. */
static bool check_written(struct document *document, const struct buffer *out)
{
	if (document->written == NULL)
		document->written = strndup(out->data, out->length); /* not counted */
	assert_true(slice_equal(slice_of(document->written), buffer_slice(out)));
	return true;
}

/*
 * A round through one kind of document. What the decoder doesn't take counts as gone well, as long as it says so; the
 * encoder's memory is asked for as well.
 */
#define DOCUMENT(name, type)                                                            \
	static bool torture_##name(void *context, struct error *err)                    \
	{                                                                               \
		struct document *document = context;                                    \
		struct arena arena;                                                     \
		struct buffer out;                                                      \
		struct type value;                                                      \
		bool ok;                                                                \
                                                                                        \
		arena_init(&arena, ARENA_BYTES);                                        \
		buffer_init(&out, OUT_BYTES);                                           \
		torture_mark(&value, sizeof value);                                     \
		ok = name##_from_json(document->text, &arena, &value, err);             \
		document->is_good = ok;                                                 \
		if (ok)                                                                 \
			ok = name##_to_json(&value, &out, err);                         \
		else                                                                    \
			assert_true(torture_untouched(&value, sizeof value));           \
		ok = ok ? check_written(document, &out) : err->code != ERROR_NO_MEMORY; \
		buffer_destroy(&out);                                                   \
		arena_destroy(&arena);                                                  \
		return ok;                                                              \
	}
#include "documents_list.h"
#undef DOCUMENT

static const struct {
	const char *name;
	torture_function *function;
} DECODERS[] = {
#define DOCUMENT(name, type) { #name, torture_##name },
#include "documents_list.h"
#undef DOCUMENT
};

enum { DECODERS_COUNT = sizeof DECODERS / sizeof DECODERS[0] };

static struct torture_count sum;
static unsigned documents, pairs;

/* By its own decoder, or by all of them if the first line names none. */
static void torture_document(const char *content, size_t length)
{
	struct slice rest = slice_from(content, length);
	struct slice name = slice_take_until(&rest, '\n');
	struct document document = { .text = rest };

	documents++;
	for (size_t i = 0; i < DECODERS_COUNT; i++) {
		struct torture_count count;

		document.is_good = false;
		if (!slice_equal_text(name, DECODERS[i].name))
			continue;
		count = torture_each_allocation(DECODERS[i].function, &document);
		/* The last run was without a failure. */
		pairs += document.is_good ? 1 : 0;
		sum.points += count.points;
		sum.errors += count.errors;
	}
	free(document.written);
}

static void each_failed_allocation_is_an_error(void **state)
{
	DIR *folder = opendir(TESTS_DIR "/fuzz/corpus/documents");
	const struct dirent *entry;

	(void)state;
	assert_non_null(folder);
	while ((entry = readdir(folder)) != NULL) {
		char path[PATH_BYTES];
		size_t length;
		char *content;

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof path, "fuzz/corpus/documents/%s", entry->d_name);
		content = vector_read_file(path, &length);
		torture_document(content, length);
		memory_release(content);
	}
	closedir(folder);
	print_message("%u documents, %u of them good: %lu failing allocations, %lu errors\n", documents, pairs,
	              sum.points, sum.errors);
	assert_true(pairs >= 40 && sum.points >= 100);
}

static void every_decoder_needs_memory_for_its_tokens(void **state)
{
	struct document document = { .text = SLICE("{\"unknown\":[\"\\u0041\"]}") };

	(void)state;
	for (size_t i = 0; i < DECODERS_COUNT; i++) {
		if (torture_each_allocation(DECODERS[i].function, &document).errors < 1)
			fail_msg("%s doesn't tell", DECODERS[i].name);
		free(document.written);
		document.written = NULL;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failed_allocation_is_an_error),
		cmocka_unit_test(every_decoder_needs_memory_for_its_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
