#include "agent/scrape.h"

#include <stdio.h>
#include <string.h>

#include "agent/core/metrics_input.h"
#include "agent/log_form.h"
#include "agent/quoted.h"
#include "agent/scrape_lines.h"
#include "agent/url_text.h"
#include "base/clock.h"

static const char METRICS_PATH[] = "/metrics";

static void begin_round(void *context);

static const char *kind_name(enum scrape_kind kind)
{
	return kind == SCRAPE_SYSTEM ? "system" : "LFC";
}

const char *scrape_task_name(enum scrape_kind kind)
{
	return kind == SCRAPE_SYSTEM ? "get system metrics" : "get LFC metrics";
}

static struct log_field task_field(const struct scrape *scrape)
{
	return log_text("taskName", scrape_task_name(scrape->kind));
}

static bool is_active(const struct scrape *scrape)
{
	return scrape->handler.is_active == NULL || scrape->handler.is_active(scrape->handler.context);
}

/*
 * The pause counts from the end of a request (8.2). It is a little longer or shorter each time, so that loops that
 * happen to run in step drift apart. A peer can't tell that from the reference: there, too, the time between two
 * requests varies with what they take.
 */
static void pause_before_next(struct scrape *scrape)
{
	uint64_t pause_ns = scrape->config->seconds_between_requests * NS_PER_S;
	uint64_t jitter_ns = pause_ns / 100 * SCRAPE_JITTER_PERCENT;

	pause_ns = rng_between(loop_rng(scrape->loop), pause_ns - jitter_ns, pause_ns + jitter_ns + 1);
	loop_timer_start(scrape->loop, &scrape->timer, pause_ns, begin_round, scrape);
}

static void log_failure(const struct scrape *scrape, const struct error *err)
{
	log_error(&scrape->logger, "Error making metrics request", task_field(scrape), log_error_field(err));
}

/* "error making request to "http://10.0.0.5:9100/metrics": ", then what the client says. */
static void wrap_request_error(const struct scrape *scrape, struct error *err)
{
	char url[URL_TEXT_BYTES];
	struct buffer quoted;

	url_text(url, "http", scrape->host, scrape->config->port, METRICS_PATH);
	quoted_init(&quoted, slice_of(url));
	error_wrap(err, "error making request to %.*s", SLICE_ARGS(buffer_slice(&quoted)));
	buffer_destroy(&quoted);
}

static bool read_system(struct scrape *scrape, struct slice page, struct system_metrics *ret_system, struct error *err)
{
	if (scrape->lenient_prefix != NULL)
		return scrape_lines_read(page, scrape->lenient_prefix, ret_system, err);
	return metrics_input_read_system(scrape->parser, page, METRICS_INPUT_REJECT_UNUSABLE, ret_system, err);
}

/* In the reference's words: those of late 2023 where its way of reading is used, too. */
static const char *words(const struct scrape *scrape, const char *late_2023, const char *newest)
{
	return scrape->lenient_prefix != NULL ? late_2023 : newest;
}

static bool read_page(struct scrape *scrape, struct slice page, struct error *err)
{
	struct system_metrics system;
	struct lfc_metrics lfc;
	struct log_form form;

	log_form_begin(&form);
	if (scrape->kind == SCRAPE_SYSTEM) {
		if (!read_system(scrape, page, &system, err))
			goto failed;
		log_form_system_metrics(&form.writer, &system);
	} else {
		if (!metrics_input_read_lfc(scrape->parser, page, METRICS_INPUT_REJECT_UNUSABLE, &lfc, err))
			goto failed;
		log_form_lfc_metrics(&form.writer, &lfc);
	}
	log_info(&scrape->logger, "Updated metrics", task_field(scrape), log_json("metrics", log_form_value(&form)));
	log_form_end(&form);
	if (scrape->kind == SCRAPE_SYSTEM)
		scrape->handler.on_system(scrape->handler.context, &system);
	else
		scrape->handler.on_lfc(scrape->handler.context, &lfc);
	return true;
failed:
	log_form_end(&form);
	return error_wrap(err, "%s",
	                  words(scrape, "Error reading metrics from prometheus output",
	                        "error parsing metrics from prometheus output"));
}

/* Bodies were quoted in late 2023; the guest's bytes don't get into a log line as they are. */
static void describe_refusal(const struct scrape *scrape, const struct http_response *response, struct error *err)
{
	struct buffer quoted;

	if (scrape->lenient_prefix == NULL) {
		error_set(err, ERROR_REFUSED, "unsuccessful response status %d", response->status);
		return;
	}
	quoted_init(&quoted, response->body);
	error_set(err, ERROR_REFUSED, "Unsuccessful response status %d: %.*s", response->status,
	          SLICE_ARGS(buffer_slice(&quoted)));
	buffer_destroy(&quoted);
}

static void on_done(void *context, const struct http_response *response, const struct error *failure)
{
	struct scrape *scrape = context;
	struct error err;

	scrape->exchange = NULL;
	pause_before_next(scrape);
	if (failure != NULL) {
		err = *failure;
		wrap_request_error(scrape, &err);
		log_failure(scrape, &err);
	} else if (response->status != 200) {
		describe_refusal(scrape, response, &err);
		log_failure(scrape, &err);
	} else if (!read_page(scrape, response->body, &err)) {
		log_failure(scrape, &err);
	}
}

static void fail_request(struct scrape *scrape, struct error *err)
{
	wrap_request_error(scrape, err);
	log_failure(scrape, err);
	pause_before_next(scrape);
}

static void send_request(struct scrape *scrape)
{
	static const struct http_handler HANDLER = { .on_done = on_done };
	struct http_request request = {
		.origin = { .port = scrape->config->port },
		.method = SLICE("GET"),
		.target = slice_of(METRICS_PATH),
		.total_timeout_ns = scrape->config->request_timeout_ns,
		.max_body_bytes = AGENT_SCRAPE_PAGE_BYTES,
		.fresh_connection = true,
	};
	struct error err;

	/* No time at all, not no limit (generations 1.2). */
	if (request.total_timeout_ns == 0) {
		error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
		fail_request(scrape, &err);
		return;
	}
	memcpy(request.origin.host, scrape->host, sizeof scrape->host);
	scrape->exchange = http_client_send(scrape->http, &request, &HANDLER, scrape, &err);
	if (scrape->exchange == NULL)
		fail_request(scrape, &err);
}

static void begin_round(void *context)
{
	struct scrape *scrape = context;
	bool active = is_active(scrape);

	if (active != scrape->was_active) {
		if (active)
			log_info(&scrape->logger, "VM is now active for LFC metrics requests", task_field(scrape));
		else
			log_info(&scrape->logger, "VM is no longer active for LFC metrics requests",
			         task_field(scrape));
	}
	scrape->was_active = active;
	if (active)
		send_request(scrape);
	else
		pause_before_next(scrape);
}

void scrape_start(struct scrape *scrape, const struct scrape_options *options)
{
	/*
	 * The reference draws whole seconds (8.1), so that all its VMs fall on as many instants as the interval has
	 * seconds. Anywhere in between, a request is as welcome to its VM, and the node's load is even.
	 */
	uint64_t most_ns = options->config->first_at_once ? 1 : options->config->seconds_between_requests * NS_PER_S;
	uint64_t delay_ns = rng_between(loop_rng(options->loop), 0, most_ns);
	char message[96];

	*scrape = (struct scrape){
		.loop = options->loop,
		.http = options->http,
		.parser = options->parser,
		.config = options->config,
		.kind = options->kind,
		.lenient_prefix = options->lenient_prefix,
		.handler = options->handler,
		.logger = options->logger,
	};
	(void)snprintf(scrape->host, sizeof scrape->host, "%s", options->pod_ip);
	scrape->was_active = is_active(scrape);
	if (scrape->was_active && !options->config->first_at_once) {
		(void)snprintf(message, sizeof message,
		               "Sleeping for random delay before making first %s metrics request",
		               kind_name(scrape->kind));
		log_info(&scrape->logger, message, task_field(scrape), log_duration("delay", (int64_t)delay_ns));
	}
	loop_timer_start(scrape->loop, &scrape->timer, delay_ns, begin_round, scrape);
}

void scrape_stop(struct scrape *scrape)
{
	loop_timer_stop(scrape->loop, &scrape->timer);
	if (scrape->exchange != NULL)
		http_exchange_cancel(scrape->exchange);
	scrape->exchange = NULL;
}
