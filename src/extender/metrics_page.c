#include "extender/metrics_page.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "extender/listening.h"
#include "extender/process_limits.h"
#include "metrics/registry.h"

struct metrics_page_server {
	struct http_server *http;
	struct metrics_page_options options;
};

void metrics_page_answer(struct extender_metrics *metrics, const struct logger *logger, struct http_call *call)
{
	struct buffer page;
	struct error err;

	buffer_init(&page, EXTENDER_METRICS_PAGE_BYTES);
	if (extender_metrics_print(metrics, &page, &err)) {
		http_call_respond(call, 200, METRICS_CONTENT_TYPE, buffer_slice(&page));
	} else {
		log_error(logger, "Failed to make the metrics page", log_error_field(&err));
		http_call_respond(call, 500, "text/plain; charset=utf-8", slice_of(err.text));
	}
	buffer_destroy(&page);
}

static void on_request(void *context, struct http_call *call)
{
	struct metrics_page_server *server = context;

	if (slice_equal_text(http_call_path(call), server->options.path))
		metrics_page_answer(server->options.metrics, &server->options.logger, call);
	else
		listening_answer_not_found(call);
}

static void on_error(void *context, const struct error *err)
{
	const struct metrics_page_server *server = context;

	log_warn(&server->options.logger, "Failed to accept a connection", log_error_field(err));
}

struct metrics_page_server *metrics_page_start(const struct metrics_page_options *options, struct error *err)
{
	struct metrics_page_server *server = memory_allocate(sizeof *server);

	if (server == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the metrics port");
		return NULL;
	}
	server->options = *options;
	server->http = listening_start_pages(options->loop, options->address, on_request, on_error, server, err);
	if (server->http == NULL) {
		memory_release(server);
		return NULL;
	}
	return server;
}

bool metrics_page_address(const struct metrics_page_server *server, struct address *ret_address)
{
	return http_server_address(server->http, ret_address);
}

void metrics_page_stop(struct metrics_page_server *server)
{
	if (server == NULL)
		return;
	http_server_destroy(server->http);
	memory_release(server);
}
