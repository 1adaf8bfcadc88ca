/*
 * A line is read twice: first for its event's name alone, then by the event's handler as the message that it is. What
 * the core says meanwhile comes in through the callbacks.
 *
 * A handler fails either because the line isn't what it should be, or because the core broke an invariant; the error's
 * code tells these apart, and the latter is an answer.
 */
#include "cli/replay_session.h"

#include <string.h>

#include "cli/replay_convert.h"
#include "cli/replay_events.h"
#include "codec/quantity.h"

enum {
	ARENA_BYTES_MAX = 512 << 20, /* tokens are a dozen times a line */
	STATE_BYTES_MAX = 1 << 20,
	METRICS_BYTES_MAX = 1 << 20,
	TEXT_BYTES_MAX = 256,
	HASH_SEED = 1, /* pages come from whoever started us */
};

static const char INFO_TEXT[] = "Calculated desired resources";

/* ---- what the core says ---- */

static void note_warning(void *context, const char *text)
{
	struct replay_session *session = context;
	struct replay_output *output = &session->output;

	if (output->warnings_count < REPLAY_WARNINGS_MAX)
		output->warnings[output->warnings_count++] = slice_of(text);
}

static struct slice copy_text(struct replay_session *session)
{
	struct slice copy = { 0 };

	if (session->text.failed || !arena_copy(&session->arena, buffer_slice(&session->text), &copy))
		session->out_of_memory = true;
	buffer_clear(&session->text);
	return copy;
}

static struct replay_resources_text resources_text(struct replay_session *session, struct resources amount)
{
	struct replay_resources_text text;

	milli_cpu_print(amount.cpu_milli, &session->text);
	text.cpu = copy_text(session);
	bytes_print(amount.mem_bytes, &session->text);
	text.mem = copy_text(session);
	return text;
}

static void note_calculation(void *context, const struct core_calculation *calculation)
{
	struct replay_session *session = context;
	struct replay_output *output = &session->output;

	if (output->infos_count == REPLAY_INFOS_MAX)
		return;
	output->infos[output->infos_count++] = (struct replay_info){
		.msg = slice_of(INFO_TEXT),
		.fields = {
			.current = resources_text(session, calculation->current),
			.target = resources_text(session, calculation->target),
			.target_revision = {
				.value = calculation->target_revision.value,
				.flags = calculation->target_revision.flags,
			},
			.has_lfc = calculation->has_lfc,
			.lfc = {
				.estimate_wss_pages = calculation->lfc.estimate_wss_pages,
				.predicted_next_wss_pages = calculation->lfc.predicted_next_wss_pages,
				.required_cu = calculation->lfc.required_cu,
			},
		},
	};
}

static void note_callback(struct replay_session *session, const struct replay_callback *callback)
{
	struct replay_output *output = &session->output;

	if (output->callbacks_count < REPLAY_CALLBACKS_MAX)
		output->callbacks[output->callbacks_count++] = *callback;
}

static void note_latency(void *context, enum core_latency kind, int64_t latency_ns, uint64_t flags)
{
	static const char *const names[] = {
		[CORE_LATENCY_PLUGIN] = "pluginLatency",
		[CORE_LATENCY_MONITOR] = "monitorLatency",
		[CORE_LATENCY_NEONVM] = "neonvmLatency",
		[CORE_LATENCY_SCALING] = "scalingLatency",
	};

	note_callback(context, &(struct replay_callback){
				       .name = slice_of(names[kind]),
				       .has_latency_ns = true,
				       .latency_ns = latency_ns,
				       .has_flags = true,
				       .flags = flags,
			       });
}

void replay_note_scaling_latency(void *context, int64_t latency_ns, uint64_t flags)
{
	note_latency(context, CORE_LATENCY_SCALING, latency_ns, flags);
}

static struct replay_callback scaling_callback(const char *name, int64_t now_ns, uint32_t current_cu,
                                               uint32_t target_cu)
{
	return (struct replay_callback){
		.name = slice_of(name),
		.has_timestamp_ns = true,
		.timestamp_ns = replay_write_instant(now_ns),
		.has_current_cu = true,
		.current_cu = current_cu,
		.has_target_cu = true,
		.target_cu = target_cu,
	};
}

static void note_actual_scaling(void *context, int64_t now_ns, uint32_t current_cu, uint32_t target_cu)
{
	struct replay_callback callback = scaling_callback("actualScaling", now_ns, current_cu, target_cu);

	note_callback(context, &callback);
}

static void note_hypothetical_scaling(void *context, int64_t now_ns, uint32_t current_cu, uint32_t goal_cu,
                                      const struct goal_parts *parts)
{
	struct replay_callback callback = scaling_callback("hypotheticalScaling", now_ns, current_cu, goal_cu);

	callback.has_parts = true;
	callback.parts = (struct replay_parts){
		.has_cpu = parts->has_cpu,
		.cpu = parts->cpu,
		.has_mem = parts->has_mem,
		.mem = parts->mem,
		.has_lfc = parts->has_lfc,
		.lfc = parts->lfc,
	};
	note_callback(context, &callback);
}

const struct core_callbacks REPLAY_CALLBACKS = {
	.warn = note_warning,
	.calculated = note_calculation,
	.latency = note_latency,
	.actual_scaling = note_actual_scaling,
	.hypothetical_scaling = note_hypothetical_scaling,
};

/* ---- lines ---- */

void replay_session_init(struct replay_session *session)
{
	memset(session, 0, sizeof *session);
	metrics_text_parser_init(&session->parser, HASH_SEED);
	arena_init(&session->arena, ARENA_BYTES_MAX);
	buffer_init(&session->state, STATE_BYTES_MAX);
	buffer_init(&session->metrics, METRICS_BYTES_MAX);
	buffer_init(&session->text, TEXT_BYTES_MAX);
}

void replay_session_destroy(struct replay_session *session)
{
	metrics_text_parser_destroy(&session->parser);
	arena_destroy(&session->arena);
	buffer_destroy(&session->state);
	buffer_destroy(&session->metrics);
	buffer_destroy(&session->text);
}

static void begin_line(struct replay_session *session)
{
	arena_reset(&session->arena);
	buffer_clear(&session->state);
	buffer_clear(&session->metrics);
	session->out_of_memory = false;
	session->output = (struct replay_output){
		.n = session->events,
		.warnings = session->warnings,
		.infos = session->infos,
		.callbacks = session->callbacks,
	};
}

/* What was said before the failure stays, what the event would have given goes (spec replay 4). */
static void answer_panic(struct replay_session *session, const struct error *err)
{
	struct replay_output *output = &session->output;

	session->panicked = true;
	*output = (struct replay_output){
		.n = output->n,
		.event = output->event,
		.has_panic = true,
		.panic = slice_of(err->text),
		.warnings = output->warnings,
		.warnings_count = output->warnings_count,
		.infos = output->infos,
		.infos_count = output->infos_count,
		.callbacks = output->callbacks,
		.callbacks_count = output->callbacks_count,
	};
}

static bool carry_out(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_event event;

	if (!replay_event_from_json(line, &session->arena, &event, err))
		return false;

	replay_event_handler *handler = replay_events_find(event.event);

	if (handler == NULL)
		return error_set(err, ERROR_SYNTAX, "unknown event \"%.*s\"", SLICE_ARGS(event.event));
	if (!session->initialised && handler != replay_on_init)
		return error_set(err, ERROR_SYNTAX, "the first event must be init");
	session->output.event = event.event;
	return handler(session, line, err);
}

bool replay_session_line(struct replay_session *session, struct slice line, struct buffer *out, struct error *err)
{
	size_t start = out->length;

	begin_line(session);
	if (!carry_out(session, line, err)) {
		if (err->code != ERROR_INVARIANT)
			return false;
		answer_panic(session, err);
	}
	if (session->out_of_memory)
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	if (!replay_output_to_json(&session->output, out, err)) {
		out->length = start;
		return false;
	}
	buffer_append_char(out, '\n');
	session->events++;
	return buffer_check(out, "replay answer", err);
}
