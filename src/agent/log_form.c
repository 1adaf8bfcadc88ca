#include "agent/log_form.h"

#include "agent/core/core_dump.h"
#include "agent/limits.h"
#include "codec/quantity.h"

enum { SCALAR_TEXT_BYTES = 64, VM_INFO_ARENA_BYTES = 16 * 1024 };

void log_form_begin(struct log_form *form)
{
	buffer_init(&form->buffer, AGENT_LOG_FIELD_BYTES);
	json_writer_init(&form->writer, &form->buffer);
	form->writer.escape_html = false;
}

struct slice log_form_value(const struct log_form *form)
{
	if (form->buffer.failed || form->writer.not_a_number || form->buffer.length == 0)
		return SLICE("null");
	return buffer_slice(&form->buffer);
}

void log_form_end(struct log_form *form)
{
	buffer_destroy(&form->buffer);
}

static void write_key(struct json_writer *writer, const char *key)
{
	json_writer_key(writer, slice_of(key));
}

static void write_text(struct json_writer *writer, const char *key, const char *text)
{
	write_key(writer, key);
	json_writer_string(writer, slice_of(text));
}

static void write_double(struct json_writer *writer, const char *key, double value)
{
	write_key(writer, key);
	json_writer_double(writer, value);
}

void log_form_resources(struct json_writer *writer, struct resources resources)
{
	struct buffer text;

	buffer_init(&text, SCALAR_TEXT_BYTES);
	json_writer_object_begin(writer);
	write_key(writer, "vCPU");
	milli_cpu_print(resources.cpu_milli, &text);
	json_writer_string(writer, buffer_slice(&text));
	buffer_clear(&text);
	write_key(writer, "mem");
	bytes_print(resources.mem_bytes, &text);
	json_writer_string(writer, buffer_slice(&text));
	json_writer_object_end(writer);
	buffer_destroy(&text);
}

static void write_resources(struct json_writer *writer, const char *key, struct resources resources)
{
	write_key(writer, key);
	log_form_resources(writer, resources);
}

void log_form_plugin_request(struct json_writer *writer, const struct core_plugin_request *request)
{
	json_writer_object_begin(writer);
	if (request->last_permit.present) {
		write_resources(writer, "lastPermit", request->last_permit.value);
	} else {
		write_key(writer, "lastPermit");
		json_writer_null(writer);
	}
	write_resources(writer, "target", request->target);
	write_key(writer, "metrics");
	if (request->has_metrics) {
		json_writer_object_begin(writer);
		write_key(writer, "loadAvg1M");
		json_writer_float(writer, request->load_average_1_min);
		json_writer_object_end(writer);
	} else {
		json_writer_null(writer);
	}
	json_writer_object_end(writer);
}

void log_form_change_request(struct json_writer *writer, const struct core_change_request *request)
{
	json_writer_object_begin(writer);
	write_resources(writer, "current", request->current);
	write_resources(writer, "target", request->target);
	json_writer_object_end(writer);
}

static void write_change_request(struct json_writer *writer, const char *key, bool present,
                                 const struct core_change_request *request)
{
	write_key(writer, key);
	if (present)
		log_form_change_request(writer, request);
	else
		json_writer_null(writer);
}

void log_form_actions(struct json_writer *writer, const struct core_actions *actions)
{
	json_writer_object_begin(writer);
	write_key(writer, "wait");
	if (actions->has_wait) {
		json_writer_object_begin(writer);
		write_double(writer, "duration", (double)actions->wait_ns / 1e9);
		json_writer_object_end(writer);
	} else {
		json_writer_null(writer);
	}
	write_key(writer, "pluginRequest");
	if (actions->has_plugin_request)
		log_form_plugin_request(writer, &actions->plugin_request);
	else
		json_writer_null(writer);
	write_change_request(writer, "neonvmRequest", actions->has_neonvm_request, &actions->neonvm_request);
	write_change_request(writer, "monitorDownscale", actions->has_monitor_downscale, &actions->monitor_downscale);
	write_change_request(writer, "monitorUpscale", actions->has_monitor_upscale, &actions->monitor_upscale);
	json_writer_object_end(writer);
}

void log_form_lfc_report(struct json_writer *writer, const struct goal_lfc_report *report)
{
	json_writer_object_begin(writer);
	write_double(writer, "estimateWssPages", report->estimate_wss_pages);
	write_double(writer, "predictedNextWssPages", report->predicted_next_wss_pages);
	write_double(writer, "requiredCU", report->required_cu);
	json_writer_object_end(writer);
}

void log_form_revision(struct json_writer *writer, struct revision revision)
{
	json_writer_object_begin(writer);
	write_key(writer, "value");
	json_writer_int(writer, revision.value);
	write_key(writer, "flags");
	json_writer_uint(writer, revision.flags);
	json_writer_object_end(writer);
}

void log_form_system_metrics(struct json_writer *writer, const struct system_metrics *metrics)
{
	json_writer_object_begin(writer);
	write_double(writer, "LoadAverage1Min", metrics->load_average_1_min);
	write_double(writer, "LoadAverage5Min", metrics->load_average_5_min);
	write_double(writer, "MemoryUsageBytes", metrics->memory_usage_bytes);
	write_double(writer, "MemoryCachedBytes", metrics->memory_cached_bytes);
	json_writer_object_end(writer);
}

void log_form_lfc_metrics(struct json_writer *writer, const struct lfc_metrics *metrics)
{
	json_writer_object_begin(writer);
	write_double(writer, "CacheHitsTotal", metrics->cache_hits_total);
	write_double(writer, "CacheMissesTotal", metrics->cache_misses_total);
	write_double(writer, "CacheWritesTotal", metrics->cache_writes_total);
	write_key(writer, "ApproximateworkingSetSizeBuckets");
	json_writer_array_begin(writer);
	for (uint32_t i = 0; i < metrics->window_count; i++)
		json_writer_double(writer, metrics->window_pages[i]);
	json_writer_array_end(writer);
	json_writer_object_end(writer);
}

static void write_namespaced_name(struct buffer *buffer, const char *key, struct slice namespace, struct slice name)
{
	struct json_writer writer;

	buffer_append_char(buffer, '"');
	buffer_append_text(buffer, key);
	buffer_append_text(buffer, "\":");
	json_writer_init(&writer, buffer);
	writer.escape_html = false;
	json_writer_object_begin(&writer);
	write_key(&writer, "namespace");
	json_writer_string(&writer, namespace);
	write_key(&writer, "name");
	json_writer_string(&writer, name);
	json_writer_object_end(&writer);
}

void log_form_append_vm_context(struct buffer *context, struct slice namespace, struct slice vm_name,
                                struct slice pod_name)
{
	write_namespaced_name(context, "virtualmachine", namespace, vm_name);
	if (pod_name.length == 0)
		return;
	buffer_append_char(context, ',');
	write_namespaced_name(context, "pod", namespace, pod_name);
}

void log_form_event(struct json_writer *writer, const struct vm_event *event)
{
	json_writer_object_begin(writer);
	write_text(writer, "kind", vm_event_kind_name(event->kind));
	write_key(writer, "podName");
	json_writer_string(writer, event->pod_name);
	write_key(writer, "podIP");
	json_writer_string(writer, event->pod_ip);
	write_key(writer, "endpointID");
	json_writer_string(writer, event->endpoint_id);
	write_key(writer, "vmInfo");
	log_form_vm_info(writer, event->vm_info);
	json_writer_object_end(writer);
}

void log_form_vm_info(struct json_writer *writer, const struct vm_info *vm)
{
	struct scaling_vm_info message;
	struct arena arena;
	struct error err;

	arena_init(&arena, VM_INFO_ARENA_BYTES);
	if (core_dump_vm(vm, &arena, &message, &err))
		scaling_vm_info_encode(writer, &message);
	else
		json_writer_null(writer);
	arena_destroy(&arena);
}
