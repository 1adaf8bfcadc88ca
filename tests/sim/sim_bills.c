/*
 * What comes over one channel comes in order: batches as they were completed, events as they were submitted (spec
 * reporting S7). So a batch that comes again comes byte for byte, and only if its answer may have been lost: in a storm.
 * Otherwise the events of a drain are numbered one after the other, and windows follow each other without overlap.
 */
#include "sim_bills.h"

#include <string.h>

#include "agent/event_json.h"
#include "base/arena.h"
#include "base/memory.h"
#include "codec/rfc3339.h"
#include "gen/events.gen.h"
#include "sandbox/agent_setup.h"
#include "sim_bills_internal.h"

enum {
	ARENA_BYTES_MAX = 64 * 1024 * 1024,
	DOUBT_S = 5, /* after a storm: answers that were under way in it */
};

struct sim_bills *sim_bills_create(struct simulation *simulation, struct error *err)
{
	struct sim_bills *bills = memory_allocate(sizeof *bills);

	if (bills == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for bills");
		return NULL;
	}
	bills->simulation = simulation;
	return bills;
}

void sim_bills_destroy(struct sim_bills *bills)
{
	while (bills != NULL && bills->lives != NULL) {
		struct sim_life *life = bills->lives;

		bills->lives = life->next;
		for (int i = 0; i < SIM_CHANNELS; i++)
			table_destroy(&life->chains[i].events);
		memory_release(life);
	}
	memory_release(bills);
}

struct sim_bills_counts sim_bills_counts(const struct sim_bills *bills)
{
	return bills->counts;
}

struct sim_life *sim_bills_life(struct sim_bills *bills, struct slice name)
{
	for (struct sim_life *life = bills->lives; life != NULL; life = life->next)
		if (slice_equal_text(name, life->name))
			return life;
	return NULL;
}

/* ---- keys: "STAMP-HOST-n/N" (B13) ---- */

struct key {
	struct slice stamp, host;
	uint64_t number, count;
};

static bool read_key(struct slice text, struct key *ret_key)
{
	size_t dash = text.length, end = 0;
	struct slice rest;

	while (dash > 0 && text.data[dash - 1] != '-')
		dash--;
	while (end < text.length && text.data[end] != 'Z')
		end++;
	if (end + 2 >= dash)
		return false;
	ret_key->stamp = slice_from(text.data, end + 1);
	ret_key->host = slice_from(text.data + end + 2, dash - end - 3);
	rest = slice_from_offset(text, dash);
	return slice_to_u64(slice_take_until(&rest, '/'), &ret_key->number) && slice_to_u64(rest, &ret_key->count);
}

/* ---- billing ---- */

static bool is_active_time(const struct events_billing_event *event)
{
	return slice_equal_text(event->metric, AGENT_SETUP_ACTIVE_METRIC);
}

/* An event's place among those of its life: the next one of its drain, or the first of a later drain. */
static void check_place(struct sim_life *life, struct sim_chain *chain, const struct key *key, int64_t start_ns,
                        int64_t stop_ns)
{
	bool begins = key->number == 1;
	bool follows = chain->begun && key->number == chain->number + 1 && key->count == chain->count &&
	               start_ns == chain->start_wall_ns && stop_ns == chain->stop_wall_ns;

	bool may_drop = life->starved || life->bounded;

	if (may_drop && !begins && stop_ns >= chain->stop_wall_ns)
		return;
	if (begins ? chain->begun && ((chain->number != chain->count && !may_drop) || start_ns < chain->stop_wall_ns)
	           : !follows)
		simulation_broken(life->bills->simulation, "billed-once",
		                  "%s: event %llu of %llu of a window comes behind %llu of %llu of another, or windows "
		                  "overlap by %.3f s",
		                  life->name, (unsigned long long)key->number, (unsigned long long)key->count,
		                  (unsigned long long)chain->number, (unsigned long long)chain->count,
		                  (double)(chain->stop_wall_ns - start_ns) / (double)NS_PER_S);
}

/* As long as nobody sets the clock, windows are where they were in truth, and nothing is longer than its window. */
static void check_window(struct sim_life *life, const struct events_billing_event *event, int64_t start_ns,
                         int64_t stop_ns)
{
	double window_s = (double)(stop_ns - start_ns) / (double)NS_PER_S;
	/* What was used up to a drain and is only collected after it goes into the next window (B6). */
	double late_s = SIM_COLLECT_S + life->frozen_s;

	if (stop_ns <= start_ns ||
	    (!life->clock_set && (start_ns < life->begin_wall_ns ||
	                          (is_active_time(event) && (double)event->value > window_s + late_s + 1))))
		simulation_broken(life->bills->simulation, "billed-once",
		                  "%s billed %llu s of %.*s in a window of %.3f s, %.3f s after it began", life->name,
		                  (unsigned long long)event->value, SLICE_ARGS(event->endpoint_id), window_s,
		                  (double)(start_ns - life->begin_wall_ns) / (double)NS_PER_S);
}

static void add_billed(struct sim_life *life, enum sim_channel channel, const struct events_billing_event *event)
{
	struct sim_life_vm *vm = sim_life_vm(life, event->endpoint_id);

	if (vm == NULL) {
		simulation_broken(life->bills->simulation, "billed-once", "%s billed %.*s, which isn't there",
		                  life->name, SLICE_ARGS(event->endpoint_id));
		return;
	}
	if (is_active_time(event)) {
		vm->billed[channel].active_s += (double)event->value;
		life->bills->counts.billed_s += channel == SIM_BILLING_HTTP ? (double)event->value : 0;
	} else {
		vm->billed[channel].cpu_s += (double)event->value;
	}
	sim_life_check_most(life, vm, channel);
}

static bool take_billing_event(struct sim_life *life, enum sim_channel channel,
                               const struct events_billing_event *event, struct error *err)
{
	struct sim_chain *chain = &life->chains[channel];
	int64_t start_ns, stop_ns, stamp_ns;
	struct key key;

	if (!read_key(event->idempotency_key, &key) || !slice_equal_text(key.host, life->name) ||
	    !slice_equal_text(event->type, "incremental"))
		return error_set(err, ERROR_SYNTAX, "the key \"%.*s\"", SLICE_ARGS(event->idempotency_key));
	if (!rfc3339_parse(event->start_time, &start_ns, err) || !rfc3339_parse(event->stop_time, &stop_ns, err) ||
	    !rfc3339_parse(key.stamp, &stamp_ns, err))
		return false;
	if (stamp_ns != stop_ns - stop_ns % (int64_t)NS_PER_US || key.number < 1 || key.number > key.count ||
	    is_active_time(event) != (key.number % 2 == 0))
		return error_set(err, ERROR_SYNTAX, "the key \"%.*s\" of a window to %.*s",
		                 SLICE_ARGS(event->idempotency_key), SLICE_ARGS(event->stop_time));
	check_place(life, chain, &key, start_ns, stop_ns);
	check_window(life, event, start_ns, stop_ns);
	chain->begun = true;
	chain->number = key.number;
	chain->count = key.count;
	chain->start_wall_ns = start_ns;
	chain->stop_wall_ns = stop_ns;
	add_billed(life, channel, event);
	life->bills->counts.billing_events++;
	return true;
}

/* ---- scaling events ---- */

static bool take_scaling_event(struct sim_life *life, enum sim_channel channel, struct slice line, struct error *err)
{
	struct sim_chain *chain = &life->chains[channel];

	if (table_find(&chain->events, line) != NULL)
		simulation_broken(life->bills->simulation, "reported-once", "%s reported again: %.*s", life->name,
		                  SLICE_ARGS(line));
	life->bills->counts.scaling_events++;
	return table_set(&chain->events, line, life) || error_set(err, ERROR_NO_MEMORY, "no memory for an event");
}

/* ---- batches ---- */

static void remember(const struct sim_life *life, struct sim_chain *chain, uint64_t hash)
{
	uint64_t now_ns = simulation_now_ns(life->bills->simulation);
	uint64_t calm_ns = simulation_calm_since_ns(life->bills->simulation);
	const struct sim_options *options = simulation_options(life->bills->simulation);
	unsigned place = chain->batch_count++ % SIM_BATCHES;

	chain->batches[place].hash = hash;
	/* In torture the call or the allocation that fails may be that of the answer. */
	chain->batches[place].in_doubt =
		calm_ns == UINT64_MAX || now_ns < calm_ns + (uint64_t)DOUBT_S * NS_PER_S || options->torture != NULL;
}

/* A batch that was taken before: whoever sent it again mustn't know that it came. */
static bool is_repeated(struct sim_life *life, struct sim_chain *chain, uint64_t hash)
{
	for (unsigned i = 0; i < SIM_BATCHES && i < chain->batch_count; i++) {
		if (chain->batches[i].hash != hash)
			continue;
		if (!chain->batches[i].in_doubt)
			simulation_broken(life->bills->simulation,
			                  chain->events.count > 0 ? "reported-once" : "billed-once",
			                  "%s sent a batch again whose answer can't have been lost", life->name);
		life->bills->counts.repeated_batches++;
		return true;
	}
	return false;
}

/* The events of a batch, one by one: of lines, or of an array that was read before. */
struct batch {
	struct slice lines;
	struct events_billing_batch array;
	size_t next;
	struct arena arena;
};

static bool begin(struct batch *batch, enum sim_channel channel, struct slice content, struct error *err)
{
	*batch = (struct batch){ .lines = content };
	arena_init(&batch->arena, ARENA_BYTES_MAX);
	if (channel == SIM_BILLING_HTTP)
		return events_billing_batch_from_json(content, &batch->arena, &batch->array, err) &&
		       (batch->array.events_count > 0 || error_set(err, ERROR_SYNTAX, "an empty batch"));
	return (content.length > 0 && content.data[content.length - 1] == '\n') ||
	       error_set(err, ERROR_SYNTAX, "an object that doesn't end with a line");
}

/* False at the end, or with *err. */
static bool next_billing(struct batch *batch, enum sim_channel channel, struct events_billing_event *ret_event,
                         struct error *err)
{
	err->code = ERROR_NONE;
	if (channel != SIM_BILLING_HTTP)
		return batch->lines.length > 0 && events_billing_event_from_json(slice_take_until(&batch->lines, '\n'),
		                                                                 &batch->arena, ret_event, err);
	if (batch->next == batch->array.events_count)
		return false;
	*ret_event = batch->array.events[batch->next++];
	return true;
}

static bool take_billing(struct sim_bills *bills, enum sim_channel channel, uint64_t hash, struct batch *batch,
                         struct error *err)
{
	struct sim_life *life = NULL;
	struct events_billing_event event;
	struct key key;

	while (next_billing(batch, channel, &event, err)) {
		if (life == NULL) {
			life = read_key(event.idempotency_key, &key) ? sim_bills_life(bills, key.host) : NULL;
			if (life == NULL)
				return error_set(err, ERROR_SYNTAX, "the key \"%.*s\"",
				                 SLICE_ARGS(event.idempotency_key));
			if (is_repeated(life, &life->chains[channel], hash))
				return true;
		}
		if (!take_billing_event(life, channel, &event, err))
			return false;
		life->chains[channel].delivered++;
	}
	if (err->code == ERROR_NONE && life != NULL)
		remember(life, &life->chains[channel], hash);
	return err->code == ERROR_NONE;
}

static bool take_scaling(struct sim_bills *bills, enum sim_channel channel, uint64_t hash, struct batch *batch,
                         struct error *err)
{
	struct sim_life *life = NULL;

	while (batch->lines.length > 0) {
		struct slice line = slice_take_until(&batch->lines, '\n');
		struct events_scaling_event event;

		if (!events_scaling_event_from_json(line, &batch->arena, &event, err))
			return false;
		if (life == NULL) {
			life = sim_bills_life(bills, event.region);
			if (life == NULL)
				return error_set(err, ERROR_SYNTAX, "the region \"%.*s\"", SLICE_ARGS(event.region));
			if (is_repeated(life, &life->chains[channel], hash))
				return true;
		}
		if (!take_scaling_event(life, channel, line, err))
			return false;
		life->chains[channel].delivered++;
	}
	remember(life, &life->chains[channel], hash);
	return true;
}

bool sim_bills_take(struct sim_bills *bills, enum sim_channel channel, struct slice whole, struct slice content,
                    struct error *err)
{
	struct batch batch;
	bool ok = begin(&batch, channel, content, err);

	if (ok)
		ok = channel < SIM_BILLING_CHANNELS ? take_billing(bills, channel, slice_hash(whole), &batch, err)
		                                    : take_scaling(bills, channel, slice_hash(whole), &batch, err);
	arena_destroy(&batch.arena);
	bills->counts.batches += ok;
	return ok;
}
