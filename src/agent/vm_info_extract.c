#include "agent/vm_info_extract.h"

#include "agent/config_decoded.h"
#include "agent/json_cause.h"
#include "base/buffer.h"
#include "codec/quantity.h"
#include "gen/scaling.gen.h"
#include "gen/scaling_a.gen.h"

/* What the size of a VM may be at all (protocols 7.5). */
enum { CPU_MILLI_MIN = 50, CPU_MILLI_MAX = 512000 };

enum { PROBLEMS_TEXT_BYTES = 1024, AMOUNT_TEXT_BYTES = 128 };

/* ---- labels and annotations ---- */

struct slice vm_label(const struct vm_virtual_machine *vm, const char *name)
{
	const struct slice *value = json_pairs_find(vm->metadata.labels, vm->metadata.labels_count, slice_of(name));

	return value != NULL ? *value : slice_from(NULL, 0);
}

bool vm_label_is_true(const struct vm_virtual_machine *vm, const char *name)
{
	return slice_equal_text(vm_label(vm, name), "true");
}

const struct slice *vm_annotation(const struct vm_virtual_machine *vm, const char *name)
{
	return json_pairs_find(vm->metadata.annotations, vm->metadata.annotations_count, slice_of(name));
}

/* How a text begins. */
static const char *letter(enum agent_generation generation, const char *small, const char *capital)
{
	return generation == AGENT_GENERATION_A ? capital : small;
}

/* With the reference's words for what is wrong with the JSON in it. */
static bool fail_annotation(const struct json_reader *reader, enum agent_generation generation, const char *name,
                            struct error *err)
{
	(void)json_cause_restate(reader, false, err);
	return error_wrap(err, "%srror unmarshaling annotation \"%s\"", letter(generation, "e", "E"), name);
}

/* ---- bounds ---- */

bool vm_bounds_read(const struct vm_virtual_machine *vm, enum agent_generation generation, struct arena *arena,
                    struct vm_bounds *ret_bounds, struct error *err)
{
	const struct slice *text = vm_annotation(vm, VM_ANNOTATION_BOUNDS);
	struct scaling_bounds bounds;
	struct json_reader reader;

	if (text == NULL) {
		*ret_bounds = (struct vm_bounds){ .present = false };
		return true;
	}
	if (!json_reader_open(&reader, *text, arena, err) || !scaling_bounds_decode(&reader, &bounds, err) ||
	    !json_reader_finish(&reader, err))
		return fail_annotation(&reader, generation, VM_ANNOTATION_BOUNDS, err);
	*ret_bounds = (struct vm_bounds){
		.present = true,
		.min_cpu_milli = bounds.min.cpu_milli,
		.max_cpu_milli = bounds.max.cpu_milli,
		.min_mem_bytes = (int64_t)bounds.min.mem_bytes,
		.max_mem_bytes = (int64_t)bounds.max.mem_bytes,
	};
	return true;
}

static void begin_problem(struct buffer *problems, const char *which, const char *field)
{
	if (problems->length > 0)
		buffer_append_text(problems, ": ");
	buffer_append_format(problems, "error at .%s.%s: ", which, field);
}

static void check_bound(struct buffer *problems, const char *which, uint32_t cpu_milli, int64_t mem_bytes,
                        uint64_t slot_bytes)
{
	if (cpu_milli == 0) {
		begin_problem(problems, which, "cpu");
		buffer_append_text(problems, "must be set to a non-zero value");
	}
	if (mem_bytes <= 0) {
		begin_problem(problems, which, "mem");
		buffer_append_text(problems, "must be set to a value greater than zero");
	} else if ((uint64_t)mem_bytes % slot_bytes != 0) {
		begin_problem(problems, which, "mem");
		buffer_append_text(problems, "must be divisible by VM memory slot size ");
		bytes_print(slot_bytes, problems);
	}
}

/* Bounds replace minimum and maximum; what is in use stays (7.4). */
static bool apply_bounds(const struct vm_bounds *bounds, enum agent_generation generation, struct vm_info *info,
                         struct error *err)
{
	uint64_t slot_bytes = info->mem.slot_bytes;
	struct buffer problems;
	bool ok;

	if (!bounds->present)
		return true;
	buffer_init(&problems, PROBLEMS_TEXT_BYTES);
	check_bound(&problems, "min", bounds->min_cpu_milli, bounds->min_mem_bytes, slot_bytes);
	check_bound(&problems, "max", bounds->max_cpu_milli, bounds->max_mem_bytes, slot_bytes);
	ok = buffer_check(&problems, "what is wrong with the scaling bounds", err);
	if (ok && problems.length > 0)
		ok = error_set(err, ERROR_SYNTAX, "%sad scaling bounds in annotation \"%s\": %.*s",
		               letter(generation, "b", "B"), VM_ANNOTATION_BOUNDS, SLICE_ARGS(buffer_slice(&problems)));
	buffer_destroy(&problems);
	if (!ok)
		return false;
	info->cpu.min_milli = bounds->min_cpu_milli;
	info->cpu.max_milli = bounds->max_cpu_milli;
	info->mem.min_slots = (uint16_t)((uint64_t)bounds->min_mem_bytes / slot_bytes);
	info->mem.max_slots = (uint16_t)((uint64_t)bounds->max_mem_bytes / slot_bytes);
	return true;
}

/* ---- scaling config ---- */

static bool decode_config(struct json_reader *reader, enum agent_generation generation,
                          struct scaling_config *ret_config, struct error *err)
{
	struct scaling_scaling_config decoded;
	struct scaling_a_scaling_config of_a;

	if (generation == AGENT_GENERATION_B) {
		if (!scaling_scaling_config_decode(reader, &decoded, err))
			return false;
		*ret_config = config_decoded_scaling(&decoded);
		return true;
	}
	if (!scaling_a_scaling_config_decode(reader, &of_a, err))
		return false;
	*ret_config = (struct scaling_config){
		.has_load_average_fraction_target = of_a.has_load_average_fraction_target,
		.load_average_fraction_target = of_a.load_average_fraction_target,
		.has_memory_usage_fraction_target = of_a.has_memory_usage_fraction_target,
		.memory_usage_fraction_target = of_a.memory_usage_fraction_target,
	};
	return true;
}

static bool apply_config(const struct vm_virtual_machine *vm, enum agent_generation generation, struct arena *arena,
                         struct vm_info *info, struct error *err)
{
	const struct slice *text = vm_annotation(vm, VM_ANNOTATION_CONFIG);
	struct json_reader reader;

	if (text == NULL)
		return true;
	if (!json_reader_open(&reader, *text, arena, err) ||
	    !decode_config(&reader, generation, &info->scaling_config, err) || !json_reader_finish(&reader, err))
		return fail_annotation(&reader, generation, VM_ANNOTATION_CONFIG, err);
	info->has_scaling_config = true;
	if (!scaling_config_validate(&info->scaling_config, false, err))
		return error_wrap(err, "%sad scaling config in annotation \"%s\"", letter(generation, "b", "B"),
		                  VM_ANNOTATION_CONFIG);
	return true;
}

/* ---- sizes ---- */

static bool check_cpu(uint32_t cpu_milli, const char *which, struct error *err)
{
	if (cpu_milli < CPU_MILLI_MIN)
		return error_set(err, ERROR_SYNTAX, "%s resources are invalid: VCPU is smaller than 0.05", which);
	if (cpu_milli > CPU_MILLI_MAX)
		return error_set(err, ERROR_SYNTAX, "%s resources are invalid: VCPU is bigger than 512", which);
	return true;
}

static bool check_order(struct resources min, struct resources max, struct error *err)
{
	struct buffer min_text;
	struct buffer max_text;

	if (!resources_has_greater(min, max))
		return true;
	buffer_init(&min_text, AMOUNT_TEXT_BYTES);
	buffer_init(&max_text, AMOUNT_TEXT_BYTES);
	resources_print(min, &min_text);
	resources_print(max, &max_text);
	error_set(err, ERROR_SYNTAX, "min resources %.*s has field greater than maximum %.*s",
	          SLICE_ARGS(buffer_slice(&min_text)), SLICE_ARGS(buffer_slice(&max_text)));
	buffer_destroy(&min_text);
	buffer_destroy(&max_text);
	return false;
}

static bool check_sizes(const struct vm_info *info, struct error *err)
{
	return check_cpu(info->cpu.min_milli, "min", err) && check_cpu(info->cpu.max_milli, "max", err) &&
	       check_order(vm_info_min(info), vm_info_max(info), err);
}

static enum vm_info_oddity oddity_of(const struct vm_info *info)
{
	if (resources_has_less(vm_info_using(info), vm_info_min(info)))
		return VM_INFO_USE_BELOW_MIN;
	if (resources_has_greater(vm_info_using(info), vm_info_max(info)))
		return VM_INFO_USE_ABOVE_MAX;
	return VM_INFO_FINE;
}

const char *vm_info_oddity_text(enum vm_info_oddity oddity)
{
	switch (oddity) {
	case VM_INFO_FINE:
		break;
	case VM_INFO_USE_BELOW_MIN:
		return "Current usage has field less than minimum";
	case VM_INFO_USE_ABOVE_MAX:
		return "Current usage has field greater than maximum";
	}
	return "";
}

/* ---- all together ---- */

/* Generation A's types have no defaults: names the first field that isn't there. */
static bool check_presence(const struct vm_guest *guest, struct error *err)
{
	const struct {
		bool present;
		const char *field;
	} fields[] = {
		{ guest->cpus.has_min_milli, "cpus.min" },          { guest->cpus.has_max_milli, "cpus.max" },
		{ guest->cpus.has_use_milli, "cpus.use" },          { guest->memory_slots.has_min, "memorySlots.min" },
		{ guest->memory_slots.has_max, "memorySlots.max" }, { guest->memory_slots.has_use, "memorySlots.use" },
	};

	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		if (!fields[i].present)
			return error_set(err, ERROR_SYNTAX, "expected non-nil field .spec.guest.%s", fields[i].field);
	}
	return true;
}

static bool begin_info(const struct vm_virtual_machine *vm, enum agent_generation generation, struct vm_info *ret_info,
                       struct error *err)
{
	const struct vm_guest *guest = &vm->spec.guest;

	if (generation == AGENT_GENERATION_A && !check_presence(guest, err))
		return false;
	*ret_info = (struct vm_info){
		.cpu = { .min_milli = guest->cpus.min_milli,
		         .max_milli = guest->cpus.max_milli,
		         .use_milli = guest->cpus.use_milli },
		.mem = { .min_slots = (uint16_t)guest->memory_slots.min,
		         .max_slots = (uint16_t)guest->memory_slots.max,
		         .use_slots = (uint16_t)guest->memory_slots.use,
		         .slot_bytes = guest->memory_slot_size_bytes },
		.auto_migration_enabled = vm_label_is_true(vm, VM_LABEL_AUTO_MIGRATION),
		.always_migrate = vm_label_is_true(vm, VM_LABEL_ALWAYS_MIGRATE),
		.scaling_enabled = vm_label_is_true(vm, VM_LABEL_ENABLED),
		.has_current_revision = vm->status.has_current_revision && generation == AGENT_GENERATION_B,
	};
	if (ret_info->has_current_revision) {
		const struct scaling_revision_with_time *revision = &vm->status.current_revision;

		ret_info->current_revision.revision.value = revision->revision.value;
		ret_info->current_revision.revision.flags = revision->revision.flags;
		ret_info->current_revision.updated_at_ns = revision->updated_at_ns;
	}
	if (ret_info->mem.slot_bytes == 0)
		return error_set(err, ERROR_SYNTAX, "the size of memory slots (spec.guest.memorySlotSize) is zero");
	return vm_info_set_name(ret_info, vm->metadata.namespace, vm->metadata.name, err);
}

bool vm_info_extract(const struct vm_virtual_machine *vm, enum agent_generation generation, struct arena *arena,
                     struct vm_info *ret_info, enum vm_info_oddity *ret_oddity, struct error *err)
{
	struct vm_info info;
	struct vm_bounds bounds;

	if (!begin_info(vm, generation, &info, err) || !vm_bounds_read(vm, generation, arena, &bounds, err) ||
	    !apply_bounds(&bounds, generation, &info, err) || !apply_config(vm, generation, arena, &info, err) ||
	    !check_sizes(&info, err))
		return error_wrap(err, "%srror extracting VM info", letter(generation, "e", "E"));
	*ret_info = info;
	*ret_oddity = oddity_of(&info);
	return true;
}
