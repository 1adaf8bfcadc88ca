/*
 * The table tests/vectors/reservation_controller/plans.txt.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "codec/quantity.h"
#include "sandbox/reservation_planner.h"
#include "tests/support/vector_file.h"

enum { ITEMS_MAX = 16, ARENA_BYTES = 1024 * 1024, TEXT_BYTES = 4096 };

struct lists {
	struct planner_capacity capacities[ITEMS_MAX];
	struct planner_request held[ITEMS_MAX], requests[ITEMS_MAX];
	struct slice names[ITEMS_MAX][ITEMS_MAX]; /* of the capacities of what is held */
	struct slice nodes[ITEMS_MAX];
	struct planner_input input;
};

/* The next part of a list, trimmed; false behind the last, and for "-". */
static bool next(struct slice *rest, char separator, struct slice *ret_part)
{
	*ret_part = slice_trim(slice_take_until(rest, separator));
	return ret_part->length > 0 && !slice_equal_text(*ret_part, "-");
}

static int64_t size_of(struct slice text)
{
	struct quantity quantity;
	struct error err;

	if (!quantity_parse(text, &quantity, &err))
		fail_msg("%.*s: %s", SLICE_ARGS(text), err.text);
	return quantity_value(quantity);
}

static enum storage_type type_of(struct slice text)
{
	enum storage_type type = STORAGE_ANY;

	assert_true(storage_type_parse(text, &type));
	return type;
}

static void read_capacities(struct lists *lists, struct slice text)
{
	struct slice item, word;

	while (next(&text, ';', &item)) {
		struct planner_capacity *capacity = &lists->capacities[lists->input.capacity_count++];

		assert_true(next(&item, ' ', &capacity->name));
		assert_true(next(&item, ' ', &capacity->node));
		capacity->type = type_of(slice_take_until(&item, ' '));
		capacity->size_bytes = size_of(slice_take_until(&item, ' '));
		while (next(&item, ' ', &word)) {
			capacity->tainted |= slice_equal_text(word, "tainted");
			if (slice_starts_with(word, SLICE("group=")))
				capacity->group = slice_from_offset(word, strlen("group="));
		}
	}
}

static size_t read_requests(struct lists *lists, struct planner_request *requests, struct slice text)
{
	struct slice item, word;
	size_t count = 0;

	while (next(&text, ';', &item)) {
		struct planner_request *request = &requests[count++];

		assert_true(next(&item, ' ', &request->name));
		request->type = type_of(slice_take_until(&item, ' '));
		request->size_bytes = size_of(slice_take_until(&item, ' '));
		while (next(&item, ' ', &word)) {
			if (slice_starts_with(word, SLICE("group="))) {
				request->group = slice_from_offset(word, strlen("group="));
				continue;
			}
			request->capacities = lists->names[count - 1];
			while (next(&word, ',', &request->capacities[request->capacity_count]))
				request->capacity_count++;
		}
	}
	return count;
}

static void print_plan(const struct planner_input *input, const struct planner_plan *plan, struct buffer *out)
{
	buffer_append_text(out, plan->node_count > 0 ? "RESERVED" : "REJECTED");
	for (size_t i = 0; i < plan->node_count; i++)
		buffer_append_format(out, "%c%.*s", i == 0 ? ' ' : ',', SLICE_ARGS(input->nodes[plan->nodes[i]]));
	for (size_t i = 0; plan->node_count > 0 && i < input->request_count; i++) {
		buffer_append_format(out, "%s %.*s", i == 0 ? ":" : "", SLICE_ARGS(input->requests[i].name));
		for (size_t j = 0; j < plan->node_count; j++)
			buffer_append_format(
				out, "%c%.*s", j == 0 ? '=' : ',',
				SLICE_ARGS(input->capacities[plan->capacities[i * plan->node_count + j]].name));
	}
}

static void use_row(const struct vector_row *row)
{
	struct slice nodes;
	struct lists lists = { .input = { .capacities = lists.capacities,
		                          .held = lists.held,
		                          .requests = lists.requests,
		                          .nodes = lists.nodes } };
	struct planner_plan plan;
	struct arena arena;
	struct buffer text;
	struct error err;

	assert_int_equal(row->count, 7);
	read_capacities(&lists, slice_of(row->fields[1]));
	lists.input.held_count = read_requests(&lists, lists.held, slice_of(row->fields[2]));
	lists.input.request_count = read_requests(&lists, lists.requests, slice_of(row->fields[3]));
	nodes = slice_of(row->fields[4]);
	while (next(&nodes, ',', &lists.nodes[lists.input.node_count]))
		lists.input.node_count++;
	arena_init(&arena, ARENA_BYTES);
	buffer_init(&text, TEXT_BYTES);
	if (strcmp(row->fields[5], "sequential") == 0 && reservation_must_wait(&lists.input)) {
		buffer_append_text(&text, "WAITS");
	} else {
		assert_true(reservation_plan(&lists.input, &arena, &plan, &err));
		print_plan(&lists.input, &plan, &text);
	}
	if (!slice_equal_text(buffer_slice(&text), row->fields[6]))
		fail_msg("line %zu, %s: %.*s instead of %s", row->line, row->fields[0], SLICE_ARGS(buffer_slice(&text)),
		         row->fields[6]);
	buffer_destroy(&text);
	arena_destroy(&arena);
}

static void reservations_are_answered_as_the_table_says(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/reservation_controller/plans.txt", use_row), 24);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(reservations_are_answered_as_the_table_says) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
