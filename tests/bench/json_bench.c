/*
 * How fast a list of VirtualMachines becomes typed objects: the whole list at once, and item by item from the splitter
 * as the agent does it. The items are those of a real list, repeated. Prints one JSON object; megabytes are 10^6 bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/json_splitter.h"
#include "gen/kube.gen.h"
#include "gen/vm.gen.h"

enum {
	VM_COUNT = 5000,
	ROUNDS = 20,
	FEED_BYTES = 16 * 1024,
	MAX_BYTES = 64 * 1024 * 1024,
	MAX_ITEM_BYTES = 1024 * 1024,
	ARENA_FACTOR = 16,
};

static void die(const char *what)
{
	fprintf(stderr, "json_bench: %s\n", what);
	exit(1);
}

static void read_file(const char *path, struct buffer *text)
{
	FILE *file = fopen(path, "rb");
	size_t length;

	if (file == NULL)
		die(path);
	do {
		char *room = buffer_reserve(text, 65536);

		if (room == NULL)
			die("out of memory");
		length = fread(room, 1, 65536, file);
		buffer_advance(text, length);
	} while (length > 0);
	fclose(file);
}

/* VM_COUNT items, taken in turn from the list in `text`. */
static void make_list(struct slice text, struct buffer *list)
{
	struct arena arena;
	struct kube_list small;
	struct error err;

	arena_init(&arena, MAX_BYTES);
	if (!kube_list_from_json(text, &arena, &small, &err))
		die(err.text);
	buffer_append_text(list, "{\"apiVersion\":\"vm.neon.tech/v1\",\"items\":[");
	for (size_t i = 0; i < VM_COUNT; i++) {
		if (i > 0)
			buffer_append_char(list, ',');
		buffer_append_slice(list, small.items[i % small.items_count]);
	}
	buffer_append_text(
		list,
		"],\"kind\":\"VirtualMachineList\",\"metadata\":{\"continue\":\"\",\"resourceVersion\":\"381\"}}\n");
	arena_destroy(&arena);
	if (!buffer_check(list, "the list", &err))
		die(err.text);
}

/* All at once: the tokens of the whole list alone are 30 MB, so this also measures the machine's memory. */
static void decode_whole(struct slice list)
{
	struct arena arena;
	struct vm_virtual_machine_list vms;
	struct error err;

	arena_init(&arena, (size_t)ARENA_FACTOR * MAX_BYTES);
	if (!vm_virtual_machine_list_from_json(list, &arena, &vms, &err))
		die(err.text);
	if (vms.items_count != VM_COUNT)
		die("items are missing");
	arena_destroy(&arena);
}

static bool decode_item(void *context, struct slice value, struct error *err)
{
	struct arena *arena = context;
	struct vm_virtual_machine vm;

	arena_reset(arena);
	return vm_virtual_machine_from_json(value, arena, &vm, err);
}

static bool ignore_item(void *context, struct slice value, struct error *err)
{
	(void)context;
	(void)value;
	(void)err;
	return true;
}

static void split(struct slice list, json_splitter_callback *callback, void *context)
{
	struct json_splitter splitter;
	struct slice envelope;
	struct error err;

	json_splitter_init(&splitter, JSON_SPLITTER_LIST, SLICE("items"), MAX_ITEM_BYTES, MAX_ITEM_BYTES, callback,
	                   context);
	for (size_t at = 0; at < list.length; at += FEED_BYTES) {
		size_t length = list.length - at < FEED_BYTES ? list.length - at : FEED_BYTES;

		if (!json_splitter_feed(&splitter, slice_from(list.data + at, length), &err))
			die(err.text);
	}
	if (!json_splitter_finish(&splitter, &envelope, &err))
		die(err.text);
	if (splitter.count != VM_COUNT)
		die("items are missing");
	json_splitter_destroy(&splitter);
}

static void split_only(struct slice list)
{
	split(list, ignore_item, NULL);
}

static void split_and_decode(struct slice list)
{
	struct arena arena;

	arena_init(&arena, (size_t)ARENA_FACTOR * MAX_ITEM_BYTES);
	split(list, decode_item, &arena);
	arena_destroy(&arena);
}

/* Processor time: others may want the machine too. */
static uint64_t processor_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Megabytes per second of the best of a few rounds. */
static double measure(void (*run)(struct slice list), struct slice list)
{
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start_ns = processor_ns();
		uint64_t took_ns;

		run(list);
		took_ns = processor_ns() - start_ns;
		if (took_ns < best_ns)
			best_ns = took_ns;
	}
	return (double)list.length * 1000 / (double)best_ns;
}

int main(void)
{
	struct buffer text;
	struct buffer list;

	buffer_init(&text, MAX_BYTES);
	buffer_init(&list, MAX_BYTES);
	read_file(TESTS_DIR "/data/kube/vm-list.json", &text);
	make_list(buffer_slice(&text), &list);

	struct slice whole = buffer_slice(&list);

	printf("{\"bench\":\"json\",\"vms\":%d,\"bytes\":%zu,\"decode_list_mb_per_s\":%.0f,\"split_mb_per_s\":%.0f,"
	       "\"split_and_decode_mb_per_s\":%.0f}\n",
	       VM_COUNT, whole.length, measure(decode_whole, whole), measure(split_only, whole),
	       measure(split_and_decode, whole));
	buffer_destroy(&text);
	buffer_destroy(&list);
	return 0;
}
