/*
 * Each handler reads its message, calls the core, and puts what is special to its event into session->output (spec
 * replay 3).
 */
#include "cli/replay_events.h"

#include "agent/core/core_dump.h"
#include "agent/core/metrics_input.h"
#include "agent/core/working_set.h"
#include "cli/replay_convert.h"

bool replay_on_init(struct replay_session *session, struct slice line, struct error *err)
{
	struct core_callbacks callbacks = REPLAY_CALLBACKS;
	struct replay_init init;
	struct vm_info vm;

	if (session->initialised)
		return error_set(err, ERROR_SYNTAX, "init must not occur again");
	if (!replay_init_from_json(line, &session->arena, &init, err) || !replay_read_vm(&init.vm, &vm, err))
		return false;

	const struct replay_revision_source *source = &init.config.revision_source;
	struct core_config config = replay_read_config(&init.config);

	if (source->kind == REPLAY_REVISION_SOURCE_COUNTER && !source->has_initial_revision)
		return error_set(err, ERROR_SYNTAX, "a revision source of kind \"counter\" needs an initialRevision");
	callbacks.context = session;
	core_init(&session->core, &config, &vm, &callbacks);
	revision_source_init(&session->core.revision_source, source->initial_revision);
	session->core.revision_source.silent = source->kind == REPLAY_REVISION_SOURCE_NIL;
	session->initialised = true;
	return true;
}

/* Reads an event that has nothing but its time. */
static bool read_at(struct replay_session *session, struct slice line, int64_t *ret_now_ns, struct error *err)
{
	struct replay_at at;

	return replay_at_from_json(line, &session->arena, &at, err) && replay_read_instant(at.at_ns, ret_now_ns, err);
}

static bool on_next_actions(struct replay_session *session, struct slice line, struct error *err)
{
	struct core_actions actions;
	int64_t now_ns;

	if (!read_at(session, line, &now_ns, err) || !core_next_actions(&session->core, now_ns, &actions, err))
		return false;
	session->output.has_actions = true;
	session->output.actions = replay_write_actions(&actions);
	return true;
}

static bool on_desired_resources(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_desired_resources event;
	struct core_desired desired;
	int64_t now_ns;

	if (!replay_desired_resources_from_json(line, &session->arena, &event, err) ||
	    !replay_read_instant(event.at_ns, &now_ns, err) ||
	    !core_desired_resources(&session->core, now_ns, &desired, err))
		return false;

	bool waits =
		core_desired_wait(&session->core, &desired, event.with_monitor_downscale, &session->output.wait_ns);

	session->output.has_desired = true;
	session->output.desired = replay_write_resources(desired.resources);
	session->output.wait_ns_presence = waits ? JSON_VALUE : JSON_NULL;
	return true;
}

static bool on_debug(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_debug event;

	if (!replay_debug_from_json(line, &session->arena, &event, err))
		return false;
	core_set_debug(&session->core, event.enabled);
	return true;
}

static bool on_updated_vm(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_updated_vm event;
	struct vm_info vm;

	return replay_updated_vm_from_json(line, &session->arena, &event, err) && replay_read_vm(&event.vm, &vm, err) &&
	       core_updated_vm(&session->core, &vm, err);
}

static bool on_update_system_metrics(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_update_system_metrics event;

	if (!replay_update_system_metrics_from_json(line, &session->arena, &event, err))
		return false;

	struct system_metrics metrics = replay_read_system_metrics(&event.metrics);

	core_update_system_metrics(&session->core, &metrics);
	return true;
}

static bool on_update_lfc_metrics(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_update_lfc_metrics event;
	struct lfc_metrics metrics;

	if (!replay_update_lfc_metrics_from_json(line, &session->arena, &event, err))
		return false;
	replay_read_lfc_metrics(&event.metrics, &metrics);
	core_update_lfc_metrics(&session->core, &metrics);
	return true;
}

static bool read_starting_request(struct replay_session *session, struct slice line, int64_t *ret_now_ns,
                                  struct resources *ret_resources, struct error *err)
{
	struct replay_starting_request event;

	if (!replay_starting_request_from_json(line, &session->arena, &event, err) ||
	    !replay_read_instant(event.at_ns, ret_now_ns, err))
		return false;
	*ret_resources = replay_read_resources(event.resources);
	return true;
}

static bool on_plugin_starting_request(struct replay_session *session, struct slice line, struct error *err)
{
	struct resources resources;
	int64_t now_ns;

	if (!read_starting_request(session, line, &now_ns, &resources, err))
		return false;
	core_plugin_starting_request(&session->core, now_ns, resources);
	return true;
}

/* Answers with an error that is part of the protocol. */
static void answer_error(struct replay_session *session, const struct error *err)
{
	if (arena_copy(&session->arena, slice_of(err->text), &session->output.error))
		session->output.error_presence = JSON_VALUE;
	else
		session->out_of_memory = true;
}

static bool on_plugin_request_successful(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_plugin_request_successful event;
	struct revision_with_time revision;
	int64_t now_ns;

	if (!replay_plugin_request_successful_from_json(line, &session->arena, &event, err) ||
	    !replay_read_instant(event.at_ns, &now_ns, err) ||
	    !replay_read_revision(&event.target_revision, &revision, err))
		return false;
	session->output.error_presence = JSON_NULL;
	if (core_plugin_request_successful(&session->core, now_ns, revision, replay_read_resources(event.permit), err))
		return true;
	if (err->code != ERROR_REFUSED)
		return false;
	answer_error(session, err);
	return true;
}

static bool on_plugin_request_failed(struct replay_session *session, struct slice line, struct error *err)
{
	int64_t now_ns;

	if (!read_at(session, line, &now_ns, err))
		return false;
	core_plugin_request_failed(&session->core, now_ns);
	return true;
}

static bool on_monitor_reset(struct replay_session *session, struct slice line, struct error *err)
{
	(void)line;
	(void)err;
	core_monitor_reset(&session->core);
	return true;
}

static bool on_monitor_active(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_monitor_active event;

	if (!replay_monitor_active_from_json(line, &session->arena, &event, err))
		return false;
	core_monitor_active(&session->core, event.active);
	return true;
}

static bool on_monitor_upscale_requested(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_monitor_upscale_requested event;
	int64_t now_ns;

	return replay_monitor_upscale_requested_from_json(line, &session->arena, &event, err) &&
	       replay_read_instant(event.at_ns, &now_ns, err) &&
	       core_monitor_upscale_requested(&session->core, now_ns, event.resources.cpu, event.resources.memory, err);
}

static bool on_monitor_starting_upscale_request(struct replay_session *session, struct slice line, struct error *err)
{
	struct resources resources;
	int64_t now_ns;

	if (!read_starting_request(session, line, &now_ns, &resources, err))
		return false;
	core_monitor_starting_upscale_request(&session->core, now_ns, resources);
	return true;
}

static bool on_monitor_upscale_request_successful(struct replay_session *session, struct slice line, struct error *err)
{
	int64_t now_ns;

	return read_at(session, line, &now_ns, err) &&
	       core_monitor_upscale_request_successful(&session->core, now_ns, err);
}

static bool on_monitor_upscale_request_failed(struct replay_session *session, struct slice line, struct error *err)
{
	int64_t now_ns;

	if (!read_at(session, line, &now_ns, err))
		return false;
	core_monitor_upscale_request_failed(&session->core, now_ns);
	return true;
}

static bool on_monitor_starting_downscale_request(struct replay_session *session, struct slice line, struct error *err)
{
	struct resources resources;
	int64_t now_ns;

	if (!read_starting_request(session, line, &now_ns, &resources, err))
		return false;
	core_monitor_starting_downscale_request(&session->core, now_ns, resources);
	return true;
}

static bool read_downscale_answer(struct replay_session *session, struct slice line, int64_t *ret_now_ns,
                                  struct revision_with_time *ret_revision, struct error *err)
{
	struct replay_monitor_downscale_answer event;

	return replay_monitor_downscale_answer_from_json(line, &session->arena, &event, err) &&
	       replay_read_instant(event.at_ns, ret_now_ns, err) &&
	       replay_read_revision(&event.target_revision, ret_revision, err);
}

static bool on_monitor_downscale_request_allowed(struct replay_session *session, struct slice line, struct error *err)
{
	struct revision_with_time revision;
	int64_t now_ns;

	return read_downscale_answer(session, line, &now_ns, &revision, err) &&
	       core_monitor_downscale_request_allowed(&session->core, now_ns, revision, err);
}

static bool on_monitor_downscale_request_denied(struct replay_session *session, struct slice line, struct error *err)
{
	struct revision_with_time revision;
	int64_t now_ns;

	return read_downscale_answer(session, line, &now_ns, &revision, err) &&
	       core_monitor_downscale_request_denied(&session->core, now_ns, revision, err);
}

static bool on_monitor_downscale_request_failed(struct replay_session *session, struct slice line, struct error *err)
{
	int64_t now_ns;

	if (!read_at(session, line, &now_ns, err))
		return false;
	core_monitor_downscale_request_failed(&session->core, now_ns);
	return true;
}

static bool on_neonvm_starting_request(struct replay_session *session, struct slice line, struct error *err)
{
	struct resources resources;
	int64_t now_ns;

	return read_starting_request(session, line, &now_ns, &resources, err) &&
	       core_neonvm_starting_request(&session->core, now_ns, resources, err);
}

static bool on_neonvm_request_successful(struct replay_session *session, struct slice line, struct error *err)
{
	int64_t now_ns;

	return read_at(session, line, &now_ns, err) && core_neonvm_request_successful(&session->core, now_ns, err);
}

static bool on_neonvm_request_failed(struct replay_session *session, struct slice line, struct error *err)
{
	int64_t now_ns;

	if (!read_at(session, line, &now_ns, err))
		return false;
	core_neonvm_request_failed(&session->core, now_ns);
	return true;
}

static bool on_dump(struct replay_session *session, struct slice line, struct error *err)
{
	struct state_dump_state state;
	struct error encoding;

	(void)line;
	if (!core_dump(&session->core, &session->arena, &state, err))
		return false;
	if (state_dump_state_to_json(&state, &session->state, &encoding)) {
		session->output.state = buffer_slice(&session->state);
		session->output.error_presence = JSON_NULL;
	} else {
		session->output.state = SLICE("null");
		answer_error(session, &encoding);
	}
	return true;
}

static bool on_revision_source_next(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_revision_source_next event;
	int64_t now_ns;

	if (!replay_revision_source_next_from_json(line, &session->arena, &event, err) ||
	    !replay_read_instant(event.at_ns, &now_ns, err))
		return false;

	struct revision next = revision_source_next(&session->core.revision_source, now_ns, event.flags);

	session->output.has_revision = true;
	session->output.revision = (struct replay_revision_value){ .value = next.value, .flags = next.flags };
	return true;
}

static bool on_revision_source_observe(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_revision_source_observe event;
	struct revision_with_time revision;
	struct error observation;
	int64_t now_ns;

	if (!replay_revision_source_observe_from_json(line, &session->arena, &event, err) ||
	    !replay_read_instant(event.at_ns, &now_ns, err) || !replay_read_revision(&event.revision, &revision, err))
		return false;
	session->output.error_presence = JSON_NULL;
	if (!revision_source_observe(&session->core.revision_source, now_ns, revision.revision,
	                             replay_note_scaling_latency, session, &observation))
		answer_error(session, &observation);
	return true;
}

/* Only the text of a page may be wrong; being short of memory is our own trouble. */
static bool answer_parse_error(struct replay_session *session, struct error *err)
{
	if (err->code == ERROR_NO_MEMORY)
		return false;
	session->output.metrics = SLICE("null");
	answer_error(session, err);
	return true;
}

static bool answer_system_page(struct replay_session *session, struct slice page, struct error *err)
{
	struct system_metrics metrics;

	if (!metrics_input_read_system(&session->parser, page, METRICS_INPUT_AS_IS, &metrics, err))
		return answer_parse_error(session, err);

	struct replay_system_metrics written = replay_write_system_metrics(&metrics);

	return replay_system_metrics_to_json(&written, &session->metrics, err);
}

static bool answer_lfc_page(struct replay_session *session, struct slice page, struct error *err)
{
	struct lfc_metrics metrics;

	if (!metrics_input_read_lfc(&session->parser, page, METRICS_INPUT_AS_IS, &metrics, err))
		return answer_parse_error(session, err);

	struct replay_lfc_metrics written = replay_write_lfc_metrics(&metrics);

	return replay_lfc_metrics_to_json(&written, &session->metrics, err);
}

static bool on_parse_metrics(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_parse_metrics event;

	if (!replay_parse_metrics_from_json(line, &session->arena, &event, err))
		return false;
	session->output.error_presence = JSON_NULL;
	if (event.kind == REPLAY_METRICS_SYSTEM ? !answer_system_page(session, event.content, err)
	                                        : !answer_lfc_page(session, event.content, err))
		return false;
	if (session->output.error_presence == JSON_NULL)
		session->output.metrics = buffer_slice(&session->metrics);
	return true;
}

static bool on_estimate_wss(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_estimate_wss event;

	if (!replay_estimate_wss_from_json(line, &session->arena, &event, err))
		return false;
	session->output.has_value = true;
	return working_set_estimate(event.series, event.series_count, event.max_allowed_increase_factor,
	                            event.initial_offset, event.window_size, &session->output.value, err);
}

static bool on_project_next_highest(struct replay_session *session, struct slice line, struct error *err)
{
	struct replay_project_next_highest event;

	if (!replay_project_next_highest_from_json(line, &session->arena, &event, err))
		return false;
	session->output.has_value = true;
	return working_set_project_next_highest(event.series, event.series_count, event.project_length,
	                                        &session->output.value, err);
}

static const struct {
	const char *name;
	replay_event_handler *handler;
} EVENTS[] = {
	{ "nextActions", on_next_actions },
	{ "init", replay_on_init },
	{ "desiredResources", on_desired_resources },
	{ "debug", on_debug },
	{ "updatedVM", on_updated_vm },
	{ "updateSystemMetrics", on_update_system_metrics },
	{ "updateLFCMetrics", on_update_lfc_metrics },
	{ "pluginStartingRequest", on_plugin_starting_request },
	{ "pluginRequestSuccessful", on_plugin_request_successful },
	{ "pluginRequestFailed", on_plugin_request_failed },
	{ "monitorReset", on_monitor_reset },
	{ "monitorActive", on_monitor_active },
	{ "monitorUpscaleRequested", on_monitor_upscale_requested },
	{ "monitorStartingUpscaleRequest", on_monitor_starting_upscale_request },
	{ "monitorUpscaleRequestSuccessful", on_monitor_upscale_request_successful },
	{ "monitorUpscaleRequestFailed", on_monitor_upscale_request_failed },
	{ "monitorStartingDownscaleRequest", on_monitor_starting_downscale_request },
	{ "monitorDownscaleRequestAllowed", on_monitor_downscale_request_allowed },
	{ "monitorDownscaleRequestDenied", on_monitor_downscale_request_denied },
	{ "monitorDownscaleRequestFailed", on_monitor_downscale_request_failed },
	{ "neonvmStartingRequest", on_neonvm_starting_request },
	{ "neonvmRequestSuccessful", on_neonvm_request_successful },
	{ "neonvmRequestFailed", on_neonvm_request_failed },
	{ "dump", on_dump },
	{ "revsourceNext", on_revision_source_next },
	{ "revsourceObserve", on_revision_source_observe },
	{ "parseMetrics", on_parse_metrics },
	{ "estimateWss", on_estimate_wss },
	{ "projectNextHighest", on_project_next_highest },
};

replay_event_handler *replay_events_find(struct slice name)
{
	for (size_t i = 0; i < sizeof EVENTS / sizeof EVENTS[0]; i++)
		if (slice_equal_text(name, EVENTS[i].name))
			return EVENTS[i].handler;
	return NULL;
}
