#include "agent/monitor_client.h"

#include "agent/log_form.h"

#define MONITOR_LOGGER "autoscaler-agent.runner.vm-monitor"

static void connect_now(struct monitor_client *client);

static struct logger own_logger(const struct monitor_client *client)
{
	return (struct logger){ .sink = client->log_sink, .name = MONITOR_LOGGER, .context_json = client->log_context };
}

static struct log_field task_field(void)
{
	return log_text("taskName", "vm-monitor reconnection loop");
}

/* ---- connecting ---- */

static void on_retry(void *context)
{
	struct monitor_client *client = context;
	struct logger logger = own_logger(client);

	log_info(&logger, "Retrying connection to vm-monitor", task_field(), log_text("addr", client->connection.url));
	connect_now(client);
}

static void on_retry_at_once(void *context)
{
	connect_now(context);
}

/* 11.1.2: attempts begin at least the configured time apart. */
static void schedule_next(struct monitor_client *client)
{
	struct logger logger = own_logger(client);
	uint64_t elapsed_ns = loop_now_ns(client->loop) - client->attempt_started_ns;
	uint64_t apart_ns = client->config->connection_retry_min_wait_ns;
	struct log_field address = log_text("addr", client->connection.url);

	if (elapsed_ns > apart_ns) {
		log_info(&logger, "Immediately retrying connection to vm-monitor", task_field(), address,
		         log_duration("totalTime", (int64_t)elapsed_ns));
		loop_timer_start(client->loop, &client->retry, 0, on_retry_at_once, client);
		return;
	}
	log_info(&logger, "Connection to vm-monitor was not live for long, retrying after delay", task_field(), address,
	         log_duration("delay", (int64_t)(apart_ns - elapsed_ns)),
	         log_duration("totalTime", (int64_t)elapsed_ns));
	loop_timer_start(client->loop, &client->retry, apart_ns - elapsed_ns, on_retry, client);
}

/* The connection is gone: first everybody learns that, then those that wait for replies are let go (decision 14). */
static void reset(struct monitor_client *client)
{
	struct logger logger = own_logger(client);

	monitor_health_stop(&client->health);
	client->handler.on_disconnected(client->handler.context);
	log_info(&logger, "Reset previous vm-monitor connection", task_field());
	monitor_connection_fail_calls(&client->connection);
}

static void after_end(struct monitor_client *client)
{
	reset(client);
	schedule_next(client);
}

static void on_end(void *context, const struct error *err)
{
	struct monitor_client *client = context;
	struct logger logger = own_logger(client);

	if (client->health.running)
		log_error(&logger, "Dispatcher for vm-monitor connection exited due to error", task_field(),
		          log_error_field(err));
	else
		log_error(&logger, "Failed to connect to vm-monitor", task_field(),
		          log_text("addr", client->connection.url), log_error_field(err));
	after_end(client);
}

static void on_active(void *context)
{
	struct monitor_client *client = context;
	struct logger logger = own_logger(client);

	client->handler.on_connected(client->handler.context);
	log_info(&logger, "Connected to vm-monitor", task_field(), log_text("addr", client->connection.url));
	monitor_health_start(&client->health);
}

static void on_upscale_request(void *context)
{
	struct monitor_client *client = context;

	client->handler.on_upscale_requested(client->handler.context);
}

static void on_healthy(void *context)
{
	struct monitor_client *client = context;

	client->handler.on_contact(client->handler.context);
}

static void on_unhealthy(void *context, const struct error *reason)
{
	struct monitor_client *client = context;
	struct logger logger = own_logger(client);

	monitor_connection_close(&client->connection, WEBSOCKET_INTERNAL_ERROR, slice_of(reason->text));
	log_error(&logger, "Dispatcher for vm-monitor connection exited due to error", task_field(),
	          log_error_field(reason));
	after_end(client);
}

static void connect_now(struct monitor_client *client)
{
	client->attempt_started_ns = loop_now_ns(client->loop);
	monitor_connection_start(&client->connection);
}

void monitor_client_start(struct monitor_client *client, const struct monitor_client *settings)
{
	struct logger logger;

	*client = *settings;
	client->stopped = false;
	client->retry = (struct loop_timer){ 0 };
	logger = own_logger(client);
	const struct monitor_connection connection = {
		.loop = client->loop,
		.config = client->config,
		.metrics = client->metrics,
		.host = client->host,
		.capital_texts = client->capital_texts,
		.handler = { .context = client,
		             .on_active = on_active,
		             .on_end = on_end,
		             .on_upscale_request = on_upscale_request },
		.logger = { .sink = client->log_sink,
		            .name = MONITOR_LOGGER ".message-handler",
		            .context_json = client->log_context },
	};
	const struct monitor_health health = {
		.loop = client->loop,
		.config = client->config,
		.connection = &client->connection,
		.handler = { .context = client, .on_success = on_healthy, .on_unhealthy = on_unhealthy },
		.logger = { .sink = client->log_sink,
		            .name = MONITOR_LOGGER ".health-checks",
		            .context_json = client->log_context },
	};

	monitor_connection_init(&client->connection, &connection);
	monitor_health_init(&client->health, &health);
	log_info(&logger, "Connecting to vm-monitor", task_field(), log_text("addr", client->connection.url));
	connect_now(client);
}

void monitor_client_stop(struct monitor_client *client)
{
	if (client->stopped)
		return;
	client->stopped = true;
	loop_timer_stop(client->loop, &client->retry);
	monitor_connection_close(&client->connection, WEBSOCKET_NORMAL, SLICE("normal exit"));
	reset(client);
}

bool monitor_client_connected(const struct monitor_client *client)
{
	return client->connection.state == MONITOR_ACTIVE;
}

size_t monitor_client_waiting_calls(const struct monitor_client *client)
{
	size_t count = 0;

	for (size_t i = 0; i < AGENT_MONITOR_CALLS; i++)
		count += client->connection.calls[i].id != 0;
	return count;
}

/* ---- downscale and upscale ---- */

static void write_response(struct log_form *form, const struct monitor_message *reply)
{
	struct slice status = reply->status;

	if (status.length > AGENT_MONITOR_STATUS_BYTES)
		status.length = AGENT_MONITOR_STATUS_BYTES;
	json_writer_object_begin(&form->writer);
	json_writer_key(&form->writer, SLICE("Ok"));
	json_writer_bool(&form->writer, reply->ok);
	json_writer_key(&form->writer, SLICE("Status"));
	json_writer_string(&form->writer, status);
	json_writer_object_end(&form->writer);
}

static void downscale_failed(struct monitor_client *client, const struct error *err)
{
	/* On errors, not on denials (11.7.1). */
	agent_metrics_count_full_denial(client->metrics, AGENT_DIRECTION_DEC);
	client->handler.on_downscale_done(client->handler.context, false, SLICE(""), err);
}

static void on_downscale_reply(void *context, const struct monitor_message *reply, const struct error *failure)
{
	struct monitor_client *client = context;
	struct log_form form;
	struct error err;

	if (failure != NULL) {
		downscale_failed(client, failure);
		return;
	}
	/* The reference's runner breaks here; a failed request does less harm (11.4.5). */
	if (reply->type != MONITOR_DOWNSCALE_RESULT) {
		error_set(&err, ERROR_SYNTAX, "expected DownscaleResult from vm-monitor but got %s",
		          monitor_type_name(reply->type));
		downscale_failed(client, &err);
		return;
	}
	if (reply->ok)
		agent_metrics_count_change(client->metrics, AGENT_CHANGE_MONITOR_APPROVED, client->downscale_current,
		                           client->downscale_target);
	log_form_begin(&form);
	write_response(&form, reply);
	client->handler.on_downscale_done(client->handler.context, reply->ok, log_form_value(&form), NULL);
	log_form_end(&form);
}

static void on_upscale_reply(void *context, const struct monitor_message *reply, const struct error *err)
{
	struct monitor_client *client = context;

	(void)reply; /* any answer will do (11.4.3) */
	if (err == NULL)
		agent_metrics_count_change(client->metrics, AGENT_CHANGE_MONITOR_APPROVED, client->upscale_current,
		                           client->upscale_target);
	client->handler.on_upscale_done(client->handler.context, err);
}

void monitor_client_downscale(struct monitor_client *client, struct resources current, struct resources target)
{
	client->downscale_current = current;
	client->downscale_target = target;
	agent_metrics_count_change(client->metrics, AGENT_CHANGE_MONITOR_REQUESTED, current, target);
	monitor_connection_call(&client->connection, MONITOR_DOWNSCALE_REQUEST, target, on_downscale_reply, client);
}

void monitor_client_upscale(struct monitor_client *client, struct resources current, struct resources target)
{
	client->upscale_current = current;
	client->upscale_target = target;
	agent_metrics_count_change(client->metrics, AGENT_CHANGE_MONITOR_REQUESTED, current, target);
	monitor_connection_call(&client->connection, MONITOR_UPSCALE_NOTIFICATION, target, on_upscale_reply, client);
}
