/*
 * Cells are made twice: once to learn how wide the columns are, once to be shown.
 */
#include "cli/status_table.h"

#include <inttypes.h>

#include "base/clock.h"
#include "cli/terminal.h"

enum {
	COLUMN_COUNT = 9,
	CELL_BYTES_MAX = 4096,
	GAP = 2,
	NAME_WIDTH_MAX = 253, /* of Kubernetes' names; what is longer is none, and would push all else aside */
};

static const char *const HEADINGS[COLUMN_COUNT] = {
	"VM", "STATE", "USING", "GOAL", "PERMIT", "MONITOR", "NOW", "LAST ACTION", "AGE",
};

static size_t width_of(struct slice text)
{
	size_t width = 0;

	for (size_t i = 0; i < text.length; i++)
		width += ((unsigned char)text.data[i] & 0xc0U) != 0x80U; /* not the rest of a character */
	return width;
}

static void append_clean(struct slice text, struct buffer *out)
{
	size_t length = 0;

	for (size_t width = 0; length < text.length; length++) {
		width += ((unsigned char)text.data[length] & 0xc0U) != 0x80U;
		if (width > NAME_WIDTH_MAX)
			break;
	}
	terminal_append_clean(slice_from(text.data, length), out);
	if (length < text.length)
		buffer_append_text(out, "…");
}

static void append_bytes(uint64_t bytes, struct buffer *out)
{
	static const char *const UNITS[] = { "", "Ki", "Mi", "Gi" };
	size_t unit = 0;

	while (unit < 3 && bytes > 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	buffer_append_format(out, "%" PRIu64 "%s", bytes, UNITS[unit]);
}

static void append_amount(bool is_there, const struct status_line_amount *amount, struct buffer *out)
{
	uint32_t rest = amount->cpu_milli % 1000, digits = 3;

	if (!is_there) {
		buffer_append_char(out, '-');
		return;
	}
	buffer_append_format(out, "%" PRIu32, amount->cpu_milli / 1000);
	for (; rest > 0 && rest % 10 == 0; rest /= 10)
		digits--;
	if (rest > 0)
		buffer_append_format(out, ".%0*" PRIu32, (int)digits, rest);
	buffer_append_char(out, '/');
	append_bytes(amount->mem_bytes, out);
}

static void append_age(int64_t since_ns, int64_t now_ns, struct buffer *out)
{
	int64_t seconds = now_ns > since_ns ? now_ns / NS_PER_S - since_ns / NS_PER_S : 0;

	if (seconds < 120)
		buffer_append_format(out, "%" PRId64 "s", seconds);
	else if (seconds < 7200)
		buffer_append_format(out, "%" PRId64 "m", seconds / 60);
	else
		buffer_append_format(out, "%" PRId64 "h", seconds / 3600);
}

static void append_monitor(const struct status_line_vm *vm, struct buffer *out)
{
	if (!vm->answered)
		buffer_append_char(out, '-');
	else if (!vm->monitor.connected)
		buffer_append_text(out, "away");
	else if (vm->monitor.has_approved)
		append_amount(true, &vm->monitor.approved, out);
	else
		buffer_append_text(out, "connected");
}

static void append_ongoing(const struct status_line_vm *vm, struct buffer *out)
{
	if (!vm->answered)
		buffer_append_text(out, "no answer");
	else if (vm->ongoing_count == 0)
		buffer_append_char(out, '-');
	for (size_t i = 0; i < vm->ongoing_count; i++) {
		buffer_append_text(out, i > 0 ? ", " : "");
		append_clean(vm->ongoing[i], out);
	}
}

static void append_cell(const struct status_line_vm *vm, size_t column, int64_t now_ns, struct buffer *out)
{
	switch (column) {
	case 0:
		append_clean(vm->namespace, out);
		buffer_append_char(out, '/');
		append_clean(vm->name, out);
		break;
	case 1:
		append_clean(vm->state.length > 0 ? vm->state : SLICE("-"), out);
		break;
	case 2:
		append_amount(vm->has_using, &vm->using, out);
		break;
	case 3:
		append_amount(vm->has_goal, &vm->goal, out);
		break;
	case 4:
		append_amount(vm->has_permit, &vm->permit, out);
		break;
	case 5:
		append_monitor(vm, out);
		break;
	case 6:
		append_ongoing(vm, out);
		break;
	case 7:
		append_clean(vm->has_last_action ? vm->last_action.what : SLICE("-"), out);
		break;
	default:
		if (vm->has_last_action)
			append_age(vm->last_action.at_ns, now_ns, out);
		else
			buffer_append_char(out, '-');
	}
}

static void append_padded(struct slice cell, size_t width, bool is_last, struct buffer *out)
{
	buffer_append_slice(out, cell);
	for (size_t i = width_of(cell); !is_last && i < width + GAP; i++)
		buffer_append_char(out, ' ');
	if (is_last)
		buffer_append_char(out, '\n');
}

void status_table_append(const struct status *status, int64_t now_ns, struct buffer *out)
{
	size_t widths[COLUMN_COUNT], stuck = 0;
	struct buffer cell;

	buffer_init(&cell, CELL_BYTES_MAX);
	for (size_t column = 0; column < COLUMN_COUNT; column++) {
		widths[column] = width_of(slice_of(HEADINGS[column]));
		for (size_t i = 0; i < status->vm_count; i++) {
			buffer_clear(&cell);
			append_cell(&status->vms[i], column, now_ns, &cell);
			if (width_of(buffer_slice(&cell)) > widths[column])
				widths[column] = width_of(buffer_slice(&cell));
		}
	}
	for (size_t column = 0; column < COLUMN_COUNT; column++)
		append_padded(slice_of(HEADINGS[column]), widths[column], column + 1 == COLUMN_COUNT, out);
	for (size_t i = 0; i < status->vm_count; i++) {
		stuck += status->vms[i].stuck;
		for (size_t column = 0; column < COLUMN_COUNT; column++) {
			buffer_clear(&cell);
			append_cell(&status->vms[i], column, now_ns, &cell);
			append_padded(buffer_slice(&cell), widths[column], column + 1 == COLUMN_COUNT, out);
		}
	}
	buffer_append_format(out, "%zu VM%s, %zu stuck%s\n", status->vm_count, status->vm_count == 1 ? "" : "s", stuck,
	                     status->stopped ? "; the agent is shutting down" : "");
	buffer_destroy(&cell);
}
