/*
 * Any bytes as a VirtualMachine, as a configuration file (of either generation), and as a stream for the splitter. Checked: no bad access;
 * what the scan passes, jsmn tokenizes; what was decoded and written reads back as the same; values don't depend on how
 * they are fed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config.h"
#include "codec/json_splitter.h"
#include "gen/agent_config.gen.h"
#include "gen/vm.gen.h"

enum { MAX_BYTES = 1024 * 1024, ARENA_BYTES = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
	if (!condition)
		abort();
}

static bool write_vm(const struct vm_virtual_machine *vm, struct buffer *text)
{
	struct error err;

	buffer_init(text, MAX_BYTES);
	return vm_virtual_machine_to_json(vm, text, &err);
}

/* What was read and written, read and written again, is the same text. */
static void fuzz_vm(struct slice text)
{
	struct arena arena;
	struct vm_virtual_machine vm;
	struct buffer first;
	struct buffer second = { 0 };
	struct error err;

	arena_init(&arena, ARENA_BYTES);
	if (!vm_virtual_machine_from_json(text, &arena, &vm, &err)) {
		check(err.code != ERROR_INVARIANT);
		arena_destroy(&arena);
		return;
	}
	if (write_vm(&vm, &first)) {
		bool reads = vm_virtual_machine_from_json(buffer_slice(&first), &arena, &vm, &err);

		/*
		 * A negative quantity is taken for the unsigned number of the same bits, as the reference does (spec
		 * protocols 3), and is then over what is read.
		 */
		check(reads || slice_contains(text, SLICE("-")));
		check(!reads || write_vm(&vm, &second));
		check(!reads || slice_contains(text, SLICE("-")) ||
		      slice_equal(buffer_slice(&first), buffer_slice(&second)));
	}
	buffer_destroy(&first);
	buffer_destroy(&second);
	arena_destroy(&arena);
}

/* Reading strictly and collecting find the same first problem. */
static void fuzz_config(struct slice text)
{
	struct arena arena;
	struct json_problems problems;
	struct json_reader strict;
	struct json_reader collecting;
	struct agent_config_config config;
	struct error err;
	bool fine;
	bool fine_again;

	arena_init(&arena, ARENA_BYTES);
	fine = json_reader_open(&strict, text, &arena, &err) && agent_config_config_decode(&strict, &config, &err) &&
	       json_reader_finish(&strict, &err);
	fine_again = json_reader_open_collecting(&collecting, text, &arena, &problems, &err) &&
	             agent_config_config_decode(&collecting, &config, &err) && json_reader_finish(&collecting, &err);
	check(fine == fine_again);
	check(fine == (problems.count == 0));
	if (!fine)
		check(memcmp(&strict.problem, &problems.items[0], sizeof strict.problem) == 0);
	arena_destroy(&arena);
}

/* By whichever schema it follows: a report, unless memory is short. */
static void fuzz_config_report(struct slice text)
{
	struct agent_config_report report;
	struct arena arena;
	struct error err;

	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	check(agent_config_check_text(text, &arena, &report, &err));
	check((report.key_of_a == NULL) == (report.key_of_b == NULL));
	/* A mixture is never valid. */
	check(report.key_of_a == NULL || report.count > 0);
	arena_destroy(&arena);
}

static bool gather(void *context, struct slice value, struct error *err)
{
	(void)err;
	buffer_append_slice(context, value);
	buffer_append_char(context, '\n');
	return true;
}

/* The values of text, fed in two pieces; whether the stream was sound. */
static bool split(enum json_splitter_mode mode, struct slice text, size_t cut, struct buffer *values)
{
	struct json_splitter splitter;
	struct slice envelope;
	struct error err;
	bool ok;

	buffer_init(values, 4 * MAX_BYTES);
	json_splitter_init(&splitter, mode, SLICE("items"), MAX_BYTES, MAX_BYTES, gather, values);
	ok = json_splitter_feed(&splitter, slice_from(text.data, cut), &err) &&
	     json_splitter_feed(&splitter, slice_from_offset(text, cut), &err) &&
	     json_splitter_finish(&splitter, &envelope, &err);
	if (ok)
		gather(values, envelope, &err);
	json_splitter_destroy(&splitter);
	return ok;
}

static void fuzz_splitter(enum json_splitter_mode mode, struct slice text)
{
	struct buffer whole;
	struct buffer cut;
	size_t middle = text.length > 0 ? (unsigned char)text.data[0] % (text.length + 1) : 0;

	check(split(mode, text, text.length, &whole) == split(mode, text, middle, &cut));
	check(slice_equal(buffer_slice(&whole), buffer_slice(&cut)));
	buffer_destroy(&whole);
	buffer_destroy(&cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size);

	if (size > MAX_BYTES)
		return 0;
	fuzz_vm(text);
	fuzz_config(text);
	fuzz_config_report(text);
	fuzz_splitter(JSON_SPLITTER_VALUES, text);
	fuzz_splitter(JSON_SPLITTER_LIST, text);
	return 0;
}
