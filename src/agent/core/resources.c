#include "agent/core/resources.h"

#include "codec/quantity.h"

enum { TEXT_BYTES_MAX = 128 }; /* two numbers of at most 20 digits and what is around them */

struct optional_resources resources_some(struct resources value)
{
	return (struct optional_resources){ .present = true, .value = value };
}

bool resources_equal(struct resources a, struct resources b)
{
	return a.cpu_milli == b.cpu_milli && a.mem_bytes == b.mem_bytes;
}

bool resources_has_greater(struct resources a, struct resources b)
{
	return a.cpu_milli > b.cpu_milli || a.mem_bytes > b.mem_bytes;
}

bool resources_has_less(struct resources a, struct resources b)
{
	return resources_has_greater(b, a);
}

struct resources resources_min(struct resources a, struct resources b)
{
	return (struct resources){
		.cpu_milli = a.cpu_milli < b.cpu_milli ? a.cpu_milli : b.cpu_milli,
		.mem_bytes = a.mem_bytes < b.mem_bytes ? a.mem_bytes : b.mem_bytes,
	};
}

struct resources resources_max(struct resources a, struct resources b)
{
	return (struct resources){
		.cpu_milli = a.cpu_milli > b.cpu_milli ? a.cpu_milli : b.cpu_milli,
		.mem_bytes = a.mem_bytes > b.mem_bytes ? a.mem_bytes : b.mem_bytes,
	};
}

struct resources resources_add(struct resources a, struct resources b)
{
	return (struct resources){ .cpu_milli = a.cpu_milli + b.cpu_milli, .mem_bytes = a.mem_bytes + b.mem_bytes };
}

struct resources resources_subtract(struct resources a, struct resources b)
{
	return (struct resources){
		.cpu_milli = a.cpu_milli > b.cpu_milli ? a.cpu_milli - b.cpu_milli : 0,
		.mem_bytes = a.mem_bytes > b.mem_bytes ? a.mem_bytes - b.mem_bytes : 0,
	};
}

struct resources resources_multiply(struct resources unit, uint16_t factor)
{
	return (struct resources){
		.cpu_milli = (uint32_t)((uint64_t)unit.cpu_milli * factor),
		.mem_bytes = unit.mem_bytes * factor,
	};
}

struct resources resources_multiply_saturating(struct resources unit, uint32_t factor)
{
	struct resources product;

	if (__builtin_mul_overflow(unit.cpu_milli, factor, &product.cpu_milli))
		product.cpu_milli = UINT32_MAX;
	if (__builtin_mul_overflow(unit.mem_bytes, factor, &product.mem_bytes))
		product.mem_bytes = UINT64_MAX;
	return product;
}

bool resources_check_unit(struct resources unit, struct error *err)
{
	if (unit.cpu_milli == 0 || unit.mem_bytes == 0)
		return error_set(err, ERROR_INVARIANT,
		                 "division by zero: a compute unit has neither zero CPU nor zero memory");
	return true;
}

bool resources_divide(struct resources amount, struct resources unit, struct resources_quotient *ret_quotient,
                      struct error *err)
{
	if (!resources_check_unit(unit, err))
		return false;

	uint16_t by_cpu = (uint16_t)(amount.cpu_milli / unit.cpu_milli);
	uint16_t by_mem = (uint16_t)(amount.mem_bytes / unit.mem_bytes);
	bool exact = amount.cpu_milli % unit.cpu_milli == 0 && amount.mem_bytes % unit.mem_bytes == 0;
	bool whole = exact && by_cpu == by_mem;

	*ret_quotient = (struct resources_quotient){ .whole = whole, .units = whole ? by_cpu : 0 };
	return true;
}

bool resources_validate_nonzero(struct resources amount, struct error *err)
{
	if (amount.cpu_milli == 0)
		return error_set(err, ERROR_REFUSED, "vCPUs must be non-zero");
	if (amount.mem_bytes == 0)
		return error_set(err, ERROR_REFUSED, "mem must be non-zero");
	return true;
}

void resources_print(struct resources amount, struct buffer *out)
{
	buffer_append_text(out, "{VCPU:");
	milli_cpu_print(amount.cpu_milli, out);
	buffer_append_text(out, " Mem:");
	bytes_print(amount.mem_bytes, out);
	buffer_append_text(out, "}");
}

static bool fail_bound(const char *name, struct resources bound, const char *relation, struct resources current,
                       struct error *err)
{
	struct buffer text;

	buffer_init(&text, 2 * TEXT_BYTES_MAX);
	resources_print(bound, &text);
	buffer_append_format(&text, " has field %s than current=", relation);
	resources_print(current, &text);
	error_set(err, ERROR_INVARIANT, "clamp called with invalid arguments: %s=%.*s", name,
	          SLICE_ARGS(buffer_slice(&text)));
	buffer_destroy(&text);
	return false;
}

bool resources_clamp(struct resources current, struct resources desired, struct optional_resources lower,
                     struct optional_resources upper, bool lenient, struct resources *ret_clamped, struct error *err)
{
	if (lenient) {
		lower.value = resources_min(lower.value, current);
		upper.value = resources_max(upper.value, current);
	}
	if (lower.present && resources_has_greater(lower.value, current))
		return fail_bound("lower bound", lower.value, "greater", current, err);
	if (upper.present && resources_has_less(upper.value, current))
		return fail_bound("upper bound", upper.value, "less", current, err);

	/* What moves down is stopped by the lower bound alone, what moves up by the upper one. */
	struct resources floor = lower.present ? resources_max(desired, lower.value) : desired;
	struct resources ceiling = upper.present ? resources_min(desired, upper.value) : desired;

	*ret_clamped = (struct resources){
		.cpu_milli = desired.cpu_milli < current.cpu_milli ? floor.cpu_milli : ceiling.cpu_milli,
		.mem_bytes = desired.mem_bytes < current.mem_bytes ? floor.mem_bytes : ceiling.mem_bytes,
	};
	return true;
}
