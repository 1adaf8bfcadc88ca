/*
 * Any bytes for any generated decoder: the first line names it (a name that isn't one chooses by its length), the rest
 * is the document. What was decoded and written must read back, and written again be the same text. The list of decoders
 * is made by the build from gen/.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "documents_includes.h"

enum { MAX_BYTES = 256 * 1024, OUT_BYTES = 4 * 1024 * 1024, ARENA_BYTES = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* A round through one kind of document: false if the text isn't one. */
#define DOCUMENT(name, type)                                                                \
	static bool read_##name(struct slice text, struct arena *arena, struct buffer *out) \
	{                                                                                   \
		struct type value;                                                          \
		struct error err;                                                           \
                                                                                            \
		if (!name##_from_json(text, arena, &value, &err)) {                         \
			require(err.code == ERROR_SYNTAX || err.code == ERROR_LIMIT);       \
			return false;                                                       \
		}                                                                           \
		return name##_to_json(&value, out, &err);                                   \
	}
#include "documents_list.h"
#undef DOCUMENT

static const struct reader {
	const char *name;
	bool (*read)(struct slice text, struct arena *arena, struct buffer *out);
} READERS[] = {
#define DOCUMENT(name, type) { #name, read_##name },
#include "documents_list.h"
#undef DOCUMENT
};

enum { READER_COUNT = sizeof READERS / sizeof READERS[0] };

/* Of the other schemas some documents are only ever written, in a form that their own decoders don't take. */
static bool must_read_back(const char *name)
{
	static const char *const PREFIXES[] = { "agent_config_", "kube_",    "monitor_",    "plugin_",
		                                "pod_",          "scaling_", "state_dump_", "vm_" };

	for (size_t i = 0; i < sizeof PREFIXES / sizeof PREFIXES[0]; i++)
		if (strncmp(name, PREFIXES[i], strlen(PREFIXES[i])) == 0)
			return true;
	return false;
}

/*
 * A negative quantity is taken for the unsigned number of the same bits, as the reference does (spec protocols 3). That is
 * printed, but is over what a quantity may be when it is read.
 */
static bool may_change(struct slice text)
{
	return slice_contains(text, SLICE("-"));
}

static const struct reader *choose(struct slice name)
{
	for (size_t i = 0; i < READER_COUNT; i++)
		if (slice_equal_text(name, READERS[i].name))
			return &READERS[i];
	return &READERS[name.length % READER_COUNT];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size > 0 && size <= MAX_BYTES ? memchr(data, '\n', size) : NULL;
	const struct reader *reader;
	struct slice text;
	struct arena arena;
	struct buffer first;
	struct buffer second;

	if (end == NULL)
		return 0;
	reader = choose(slice_from(data, (size_t)(end - data)));
	text = slice_from(end + 1, size - (size_t)(end + 1 - data));
	arena_init(&arena, ARENA_BYTES);
	buffer_init(&first, OUT_BYTES);
	buffer_init(&second, OUT_BYTES);
	if (reader->read(text, &arena, &first)) {
		bool reads = reader->read(buffer_slice(&first), &arena, &second);

		require(reads || may_change(text) || !must_read_back(reader->name));
		require(!reads || may_change(text) || slice_equal(buffer_slice(&first), buffer_slice(&second)));
	}
	buffer_destroy(&first);
	buffer_destroy(&second);
	arena_destroy(&arena);
	return 0;
}
