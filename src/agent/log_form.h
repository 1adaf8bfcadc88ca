/*
 * JSON values for log lines: amounts, actions and names in the form the reference logs them in, which isn't that of its
 * wire formats (spec agent-core T-7 and 9.2, agent-runtime 3.2 and 3.5).
 *
 *	struct log_form form;
 *
 *	log_form_begin(&form);
 *	log_form_change_request(&form.writer, &action);
 *	log_info(&logger, "Starting NeonVM request", log_json("action", log_form_value(&form)));
 *	log_form_end(&form);
 */
#ifndef BALLAST_AGENT_LOG_FORM_H
#define BALLAST_AGENT_LOG_FORM_H

#include "agent/core/core.h"
#include "agent/vm_event.h"
#include "base/buffer.h"
#include "base/slice.h"
#include "codec/json_writer.h"

struct log_form {
	struct buffer buffer;
	struct json_writer writer;
};

void log_form_begin(struct log_form *form);
/* What was written; `null` if it couldn't be (memory, a NaN). Valid until log_form_end. */
struct slice log_form_value(const struct log_form *form);
void log_form_end(struct log_form *form);

/* {"vCPU":"0.25","mem":"1Gi"} */
void log_form_resources(struct json_writer *writer, struct resources resources);
void log_form_plugin_request(struct json_writer *writer, const struct core_plugin_request *request);
void log_form_change_request(struct json_writer *writer, const struct core_change_request *request);
void log_form_actions(struct json_writer *writer, const struct core_actions *actions);
/* The fields of "Calculated desired resources" are single values; this is its `lfc`. */
void log_form_lfc_report(struct json_writer *writer, const struct goal_lfc_report *report);
void log_form_revision(struct json_writer *writer, struct revision revision);
void log_form_system_metrics(struct json_writer *writer, const struct system_metrics *metrics);
void log_form_lfc_metrics(struct json_writer *writer, const struct lfc_metrics *metrics);
void log_form_vm_info(struct json_writer *writer, const struct vm_info *vm);
void log_form_event(struct json_writer *writer, const struct vm_event *event);

/* Appends `"virtualmachine":{…},"pod":{…}` for a logger's context; without the pod if its name is empty. */
void log_form_append_vm_context(struct buffer *context, struct slice namespace, struct slice vm_name,
                                struct slice pod_name);

#endif
