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
	enum agent_generation generation;
	struct vm_virtual_machine vm;
	struct json_pair annotations[2];
};

static void drop(struct vm_guest *guest, const char *field)
{
	struct vm_guest_cpus *cpus = &guest->cpus;
	struct vm_guest_memory_slots *slots = &guest->memory_slots;
	bool of_cpu = strncmp(field, "cpus.", 5) == 0;
	const char *which = strchr(field, '.') + 1;

	if (strcmp(which, "min") == 0)
		*(of_cpu ? &cpus->has_min_milli : &slots->has_min) = false;
	else if (strcmp(which, "max") == 0)
		*(of_cpu ? &cpus->has_max_milli : &slots->has_max) = false;
	else
		*(of_cpu ? &cpus->has_use_milli : &slots->has_use) = false;
}

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
	} else if (strncmp(text, "without ", 8) == 0) {
		drop(guest, text + 8);
	} else if (sscanf(text, "slotsize %llu", &number) == 1) {
		guest->memory_slot_size_bytes = number;
	} else if (sscanf(text, "slots %d/%d/%d", &guest->memory_slots.min, &guest->memory_slots.max,
	                  &guest->memory_slots.use) != 3) {
		assert_int_equal(sscanf(text, "cpus %u/%u/%u", &guest->cpus.min_milli, &guest->cpus.max_milli,
		                        &guest->cpus.use_milli),
		                 3);
	}
}

static void make_sample(struct sample *sample, enum agent_generation generation, char *changes)
{
	*sample = (struct sample){
		.generation = generation,
		.vm = { .metadata = { .name = SLICE("vm-a"), .namespace = SLICE("apps") },
		        .spec.guest = { .cpus = { true, 250, true, 2000, true, 500 },
		                        .memory_slots = { true, 1, true, 8, true, 2 },
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

/* What generation A takes of the scaling annotation. */
static void describe_overrides(const struct scaling_config *overrides, char *text, size_t size)
{
	size_t length = strlen(text);

	assert_false(overrides->has_enable_lfc_metrics || overrides->has_memory_total_fraction_target ||
	             overrides->has_lfc_use_largest_window);
	if (overrides->has_load_average_fraction_target)
		length += (size_t)snprintf(text + length, size - length, " load %g",
		                           overrides->load_average_fraction_target);
	if (overrides->has_memory_usage_fraction_target)
		snprintf(text + length, size - length, " memory %g", overrides->memory_usage_fraction_target);
}

static void check(const struct vector_row *row, enum agent_generation generation)
{
	const char *prefix =
		generation == AGENT_GENERATION_A ? "Error extracting VM info: " : "error extracting VM info: ";
	struct sample sample;
	struct arena arena;
	struct vm_info info;
	enum vm_info_oddity oddity;
	struct error err;
	char actual[2048];

	assert_int_equal(row->count, 3);
	make_sample(&sample, generation, row->fields[1]);
	arena_init(&arena, ARENA_BYTES);
	if (vm_info_extract(&sample.vm, sample.generation, &arena, &info, &oddity, &err)) {
		describe(&info, oddity, actual, sizeof actual);
		if (generation == AGENT_GENERATION_A)
			describe_overrides(&info.scaling_config, actual, sizeof actual);
	} else {
		assert_memory_equal(err.text, prefix, strlen(prefix));
		snprintf(actual, sizeof actual, "%s", err.text + strlen(prefix));
		/* One of the texts ends in a blank, which the table's fields lose. */
		if (strlen(actual) == strlen(row->fields[2]) + 1 && actual[strlen(actual) - 1] == ' ')
			actual[strlen(actual) - 1] = '\0';
	}
	if (row->fields[2][0] == '~' ? strstr(actual, row->fields[2] + 1) == NULL : strcmp(actual, row->fields[2]) != 0)
		fail_msg("%s (line %zu):\n  expected %s\n  found    %s", row->fields[0], row->line, row->fields[2],
		         actual);
	arena_destroy(&arena);
}

static void check_b(const struct vector_row *row)
{
	check(row, AGENT_GENERATION_B);
}

static void check_a(const struct vector_row *row)
{
	check(row, AGENT_GENERATION_A);
}

static void vms_give_the_specified_info_or_error(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/agent_vm_info.txt", check_b) >= 33);
}

static void vms_give_what_generation_a_makes_of_them(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/generations/vm_info.txt", check_a) >= 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vms_give_the_specified_info_or_error),
		cmocka_unit_test(vms_give_what_generation_a_makes_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
