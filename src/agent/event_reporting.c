#include "agent/event_reporting.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/event_json.h"
#include "agent/limits.h"
#include "agent/log_form.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "gen/agent_config.gen.h"
#include "report/azure_blob_put.h"
#include "report/http_push.h"
#include "report/report_sink.h"
#include "report/report_transport.h"
#include "report/s3_put.h"

enum { UNKNOWN_HOSTS = 1000 };

/* One of the two subsystems. */
struct sender {
	struct event_reporting *reporting;
	enum agent_sender kind;
	struct logger logger;     /* of its construction; the sink's own are below it */
	const char *events_named; /* as the log speaks of them */
	enum report_key_kind key_kind;
	struct report_sink *sink; /* NULL: not made yet */
	bool finished;
};

struct event_reporting {
	struct event_reporting_options options;
	struct report_transport *transport;
	struct sender billing_sender, scaling_sender;
	struct billing *billing;
	char host_name[AGENT_HOST_NAME_BYTES];
	bool finishing;
	void (*on_finished)(void *context);
	void *context;
};

/* ---- metrics ---- */

static struct agent_metrics *metrics_of(const struct sender *sender)
{
	return sender->reporting->options.metrics;
}

static void on_queue_size(void *context, const char *client, uint64_t events)
{
	const struct sender *sender = context;

	agent_metrics_set_queue_size(metrics_of(sender), sender->kind, client, (double)events);
}

static void on_last_send_duration(void *context, const char *client, double seconds)
{
	const struct sender *sender = context;

	agent_metrics_set_last_send_duration(metrics_of(sender), sender->kind, client, seconds);
}

static void on_send_error(void *context, const char *client, const char *cause)
{
	const struct sender *sender = context;

	agent_metrics_count_send_error(metrics_of(sender), sender->kind, client, cause);
}

static void on_dropped(void *context, const char *client, uint64_t events)
{
	const struct sender *sender = context;

	agent_metrics_count_dropped_events(metrics_of(sender), sender->kind, client, (double)events);
}

/* ---- clients ---- */

/* The clients of one sink on their way to it. */
struct assembly {
	struct sender *sender;
	struct report_sink_client clients[REPORT_CLIENTS_PER_SINK];
	size_t count;
};

/* NULL: it couldn't be made, as err has it from the maker. */
static bool add_client(struct assembly *assembly, struct report_client *client, const struct agent_push_config *push,
                       const char *what, struct log_form *form, struct error *err)
{
	const struct sender *sender = assembly->sender;
	char message[96];

	if (client == NULL)
		return error_wrap(err, "error creating %s client", what);
	assembly->clients[assembly->count++] = (struct report_sink_client){
		.client = client,
		.push_every_ns = push->every_ns,
		.push_timeout_ns = push->request_timeout_ns,
		.max_batch_events = push->max_batch_size,
	};
	(void)snprintf(message, sizeof message, "Created %s client for %s", what, sender->events_named);
	log_info(&sender->logger, message, log_json("config", log_form_value(form)));
	return true;
}

static bool add_http(struct assembly *assembly, const struct agent_http_push_config *config, struct error *err)
{
	const struct http_push_options options = { .url = config->url };
	const struct agent_config_http_client shown = {
		.push_every_seconds = config->push.every_ns / NS_PER_S,
		.push_request_timeout_seconds = config->push.request_timeout_ns / NS_PER_S,
		.max_batch_size = config->push.max_batch_size,
		.url = config->url,
	};
	struct log_form form;
	bool ok;

	if (!config->present)
		return true;
	log_form_begin(&form);
	agent_config_http_client_encode(&form.writer, &shown);
	ok = add_client(assembly, http_push_create(assembly->sender->reporting->transport, &options, err),
	                &config->push, "HTTP", &form, err);
	log_form_end(&form);
	return ok;
}

static bool add_azure_blob(struct assembly *assembly, const struct agent_azure_push_config *config, struct error *err)
{
	const struct azure_blob_put_options options = {
		.endpoint = config->endpoint,
		.container = config->container,
		.layout = { .kind = assembly->sender->key_kind, .prefix = config->prefix_in_container },
	};
	const struct agent_config_azure_blob_client shown = {
		.push_every_seconds = config->push.every_ns / NS_PER_S,
		.push_request_timeout_seconds = config->push.request_timeout_ns / NS_PER_S,
		.max_batch_size = config->push.max_batch_size,
		.container = config->container,
		.endpoint = config->endpoint,
		.prefix_in_container = config->prefix_in_container,
	};
	struct log_form form;
	bool ok;

	if (!config->present)
		return true;
	log_form_begin(&form);
	agent_config_azure_blob_client_encode(&form.writer, &shown);
	ok = add_client(assembly, azure_blob_put_create(assembly->sender->reporting->transport, &options, err),
	                &config->push, "Azure Blob Storage", &form, err);
	log_form_end(&form);
	return ok;
}

static bool add_s3(struct assembly *assembly, const struct agent_s3_push_config *config, struct error *err)
{
	const struct s3_put_options options = {
		.bucket = config->bucket,
		.region = config->region,
		.endpoint = config->endpoint,
		.layout = { .kind = assembly->sender->key_kind, .prefix = config->prefix_in_bucket },
	};
	const struct agent_config_s3_client shown = {
		.push_every_seconds = config->push.every_ns / NS_PER_S,
		.push_request_timeout_seconds = config->push.request_timeout_ns / NS_PER_S,
		.max_batch_size = config->push.max_batch_size,
		.bucket = config->bucket,
		.region = config->region,
		.endpoint = config->endpoint,
		.prefix_in_bucket = config->prefix_in_bucket,
	};
	struct log_form form;
	bool ok;

	if (!config->present)
		return true;
	log_form_begin(&form);
	agent_config_s3_client_encode(&form.writer, &shown);
	ok = add_client(assembly, s3_put_create(assembly->sender->reporting->transport, &options, err), &config->push,
	                "S3", &form, err);
	log_form_end(&form);
	return ok;
}

/* The sink takes the clients, also when it can't be made. */
static bool make_sink(struct assembly *assembly, struct error *err)
{
	struct sender *sender = assembly->sender;
	const struct report_sink_options options = {
		.sending = sender->kind == AGENT_SENDER_BILLING &&
		                           sender->reporting->options.config->generation == AGENT_GENERATION_A
		                   ? REPORT_SEND_AT_TICKS
		                   : REPORT_SEND_BATCHES,
		.queue_events = sender->reporting->options.queue_events,
		.queue_bytes = sender->reporting->options.queue_bytes,
		.metrics = { .context = sender,
		             .queue_size = on_queue_size,
		             .last_send_duration = on_last_send_duration,
		             .send_error = on_send_error,
		             .dropped = on_dropped },
		.logger = sender->logger,
	};

	for (size_t i = 0; i < assembly->count; i++)
		agent_metrics_count_dropped_events(metrics_of(sender), sender->kind, assembly->clients[i].client->name,
		                                   0);
	sender->sink =
		report_sink_create(sender->reporting->options.loop, &options, assembly->clients, assembly->count, err);
	return sender->sink != NULL;
}

static void give_up_clients(struct assembly *assembly)
{
	for (size_t i = 0; i < assembly->count; i++)
		report_client_destroy(assembly->clients[i].client);
}

/* ---- making it ---- */

/* W5; whoever has no name still bills (generations 4.10). */
static void read_host_name(struct event_reporting *reporting)
{
	const char *given = reporting->options.host_name;
	char *name = reporting->host_name;

	if (given != NULL && given[0] != '\0') {
		(void)snprintf(name, sizeof reporting->host_name, "%s", given);
		return;
	}
	if (gethostname(name, sizeof reporting->host_name - 1) == 0 && name[0] != '\0')
		return;
	(void)snprintf(name, sizeof reporting->host_name, "unknown-%u",
	               (unsigned)rng_between(loop_rng(reporting->options.loop), 0, UNKNOWN_HOSTS));
}

static bool make_scaling_sink(struct event_reporting *reporting, struct error *err)
{
	const struct agent_config *config = reporting->options.config;
	struct assembly assembly = { .sender = &reporting->scaling_sender };

	if (!add_azure_blob(&assembly, &config->scaling_events_azure_blob, err) ||
	    !add_s3(&assembly, &config->scaling_events_s3, err)) {
		give_up_clients(&assembly);
		return false;
	}
	return make_sink(&assembly, err);
}

struct event_reporting *event_reporting_create(const struct event_reporting_options *options, struct error *err)
{
	struct event_reporting *reporting = memory_allocate(sizeof *reporting);
	const struct report_environment environment = report_environment_of_process();

	if (reporting == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory");
		goto failed;
	}
	reporting->options = *options;
	reporting->billing_sender = (struct sender){
		.reporting = reporting,
		.kind = AGENT_SENDER_BILLING,
		.logger = { .sink = options->log_sink, .name = "autoscaler-agent.billing", .context_json = "" },
		.events_named = "billing events",
		.key_kind = REPORT_KEY_BILLING,
	};
	reporting->scaling_sender = (struct sender){
		.reporting = reporting,
		.kind = AGENT_SENDER_SCALING_EVENTS,
		.logger = { .sink = options->log_sink, .name = "autoscaler-agent.scalingevents", .context_json = "" },
		.events_named = "scaling events",
		.key_kind = REPORT_KEY_SCALING_EVENTS,
	};
	read_host_name(reporting);
	reporting->transport = report_transport_create(options->loop, &environment, err);
	if (reporting->transport != NULL && make_scaling_sink(reporting, err))
		return reporting;
failed:
	error_wrap(err, "error creating scaling events reporter");
	event_reporting_destroy(reporting);
	return NULL;
}

static void submit_billing_event(void *context, struct slice json)
{
	const struct event_reporting *reporting = context;

	report_sink_submit(reporting->billing_sender.sink, json);
}

static bool make_billing_sink(struct event_reporting *reporting, struct error *err)
{
	const struct agent_billing_config *config = &reporting->options.config->billing;
	struct assembly assembly = { .sender = &reporting->billing_sender };

	if (!add_http(&assembly, &config->http, err) || !add_azure_blob(&assembly, &config->azure_blob, err) ||
	    !add_s3(&assembly, &config->s3, err)) {
		give_up_clients(&assembly);
		return false;
	}
	return make_sink(&assembly, err);
}

bool event_reporting_start_billing(struct event_reporting *reporting, const struct billing_source *source,
                                   struct error *err)
{
	const struct billing_options options = {
		.loop = reporting->options.loop,
		.config = &reporting->options.config->billing,
		.host_name = slice_of(reporting->host_name),
		.source = *source,
		.metrics = reporting->options.metrics,
		.log_sink = reporting->options.log_sink,
		.submit = submit_billing_event,
		.submit_context = reporting,
	};

	if (!reporting->options.config->billing.present)
		return true;
	if (!make_billing_sink(reporting, err))
		return error_wrap(err, "error creating billing metrics collector");
	reporting->billing = billing_start(&options, err);
	return reporting->billing != NULL || error_wrap(err, "error creating billing metrics collector");
}

/* ---- events ---- */

bool event_reporting_submit_scaling_event(void *context, const struct scaling_event *event, struct error *err)
{
	const struct event_reporting *reporting = context;
	struct buffer json;
	bool ok;

	buffer_init(&json, AGENT_EVENT_BYTES);
	ok = scaling_event_print_json(event, reporting->options.config->scaling_events_region_name, &json, err);
	if (ok)
		report_sink_submit(reporting->scaling_sender.sink, buffer_slice(&json));
	buffer_destroy(&json);
	return ok;
}

bool event_reporting_progress(const struct event_reporting *reporting, enum agent_sender kind, const char *client,
                              struct report_progress *ret_progress)
{
	const struct sender *sender =
		kind == AGENT_SENDER_BILLING ? &reporting->billing_sender : &reporting->scaling_sender;

	return sender->sink != NULL && report_sink_progress(sender->sink, client, ret_progress);
}

/* ---- the end ---- */

static void on_sink_finished(void *context)
{
	struct sender *sender = context;
	struct event_reporting *reporting = sender->reporting;

	sender->finished = true;
	if (reporting->scaling_sender.finished &&
	    (reporting->billing_sender.finished || reporting->billing_sender.sink == NULL))
		reporting->on_finished(reporting->context);
}

void event_reporting_finish(struct event_reporting *reporting, void (*on_finished)(void *context), void *context)
{
	struct sender *billing = &reporting->billing_sender;
	struct sender *scaling = &reporting->scaling_sender;

	if (reporting->finishing)
		return;
	reporting->finishing = true;
	reporting->on_finished = on_finished;
	reporting->context = context;
	if (reporting->billing != NULL)
		billing_finish(reporting->billing);
	report_sink_finish(scaling->sink, reporting->options.grace_ns, on_sink_finished, scaling);
	if (billing->sink != NULL)
		report_sink_finish(billing->sink, reporting->options.grace_ns, on_sink_finished, billing);
}

void event_reporting_destroy(struct event_reporting *reporting)
{
	if (reporting == NULL)
		return;
	billing_destroy(reporting->billing);
	report_sink_destroy(reporting->billing_sender.sink);
	report_sink_destroy(reporting->scaling_sender.sink);
	report_transport_destroy(reporting->transport);
	memory_release(reporting);
}
