#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/vm_info_extract.h"
#include "tests/support/vector_file.h"

enum { ARENA_BYTES = 1 << 20 };

struct sample {
	struct vm_virtual_machine vm;
	struct json_pair annotations[2];
};

static void change(struct sample *sample, char *text)
{
	struct vm_guest *guest = &sample->vm.spec.guest;
	struct json_pair *annotation = &sample->annotations[sample->vm.metadata.annotations_count];
	unsigned long long number;

	if (strncmp(text, "bounds", 6) == 0 || strncmp(text, "config", 6) == 0) {
		*annotation = (struct json_pair){
			.key = slice_of(text[0] == 'b' ? VM_ANNOTATION_BOUNDS : VM_ANNOTATION_CONFIG),
			.value = slice_of(text[6] == '\0' ? "" : text + 7),
		};
		sample->vm.metadata.annotations_count++;
	} else if (sscanf(text, "slotsize %llu", &number) == 1) {
		guest->memory_slot_size_bytes = number;
	} else if (sscanf(text, "slots %d/%d/%d", &guest->memory_slots.min, &guest->memory_slots.max,
	                  &guest->memory_slots.use) != 3) {
		assert_int_equal(sscanf(text, "cpus %u/%u/%u", &guest->cpus.min_milli, &guest->cpus.max_milli,
		                        &guest->cpus.use_milli),
		                 3);
	}
}

static void make_sample(struct sample *sample, char *changes)
{
	*sample = (struct sample){
		.vm = { .metadata = { .name = SLICE("vm-a"), .namespace = SLICE("apps") },
		        .spec.guest = { .cpus = { 250, 2000, 500 },
		                        .memory_slots = { 1, 8, 2 },
		                        .memory_slot_size_bytes = 1 << 30 } },
	};
	sample->vm.metadata.annotations = sample->annotations;
	while (changes != NULL && strcmp(changes, "&") != 0) {
		char *next = strstr(changes, " & ");

		if (next != NULL)
			*next = '\0';
		change(sample, changes);
		changes = next != NULL ? next + 3 : NULL;
	}
}

static void describe(const struct vm_info *info, enum vm_info_oddity oddity, char *text, size_t size)
{
	snprintf(text, size, "ok cpu %u/%u/%u slots %u/%u/%u%s%s", info->cpu.min_milli, info->cpu.max_milli,
	         info->cpu.use_milli, info->mem.min_slots, info->mem.max_slots, info->mem.use_slots,
	         oddity != VM_INFO_FINE ? " " : "", vm_info_oddity_text(oddity));
}

static void check(const struct vector_row *row)
{
	static const char prefix[] = "error extracting VM info: ";
	struct sample sample;
	struct arena arena;
	struct vm_info info;
	enum vm_info_oddity oddity;
	struct error err;
	char actual[2048];

	assert_int_equal(row->count, 3);
	make_sample(&sample, row->fields[1]);
	arena_init(&arena, ARENA_BYTES);
	if (vm_info_extract(&sample.vm, &arena, &info, &oddity, &err)) {
		describe(&info, oddity, actual, sizeof actual);
	} else {
		assert_memory_equal(err.text, prefix, sizeof prefix - 1);
		snprintf(actual, sizeof actual, "%s", err.text + sizeof prefix - 1);
	}
	if (row->fields[2][0] == '~' ? strstr(actual, row->fields[2] + 1) == NULL : strcmp(actual, row->fields[2]) != 0)
		fail_msg("%s (line %zu):\n  expected %s\n  found    %s", row->fields[0], row->line, row->fields[2],
		         actual);
	arena_destroy(&arena);
}

static void vms_give_the_specified_info_or_error(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/agent_vm_info.txt", check) >= 33);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(vms_give_the_specified_info_or_error) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
