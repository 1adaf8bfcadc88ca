#include "extender/health.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "extender/listening.h"
#include "extender/process_limits.h"
#include "extender/readiness_file.h"

static const char TEXT_TYPE[] = "text/plain; charset=utf-8";

struct health {
	struct http_server *http;
	struct health_options options;
	bool stopping;
};

static bool check_file(const struct health *health, struct error *err)
{
	struct buffer content;
	bool ready;

	buffer_init(&content, READINESS_FILE_BYTES);
	ready = file_read(health->options.readiness_path, &content, err) &&
	        readiness_file_check(buffer_slice(&content), slice_of(health->options.node_name), err);
	buffer_destroy(&content);
	return ready;
}

static void answer_ready(const struct health *health, struct http_call *call)
{
	struct error err;

	if (health->stopping)
		http_call_respond(call, 503, TEXT_TYPE, SLICE("stopping"));
	else if (health->options.patching_enabled && !check_file(health, &err))
		http_call_respond(call, 503, TEXT_TYPE, slice_of(err.text));
	else
		http_call_respond(call, 200, TEXT_TYPE, SLICE("ok"));
}

static void on_request(void *context, struct http_call *call)
{
	const struct health *health = context;
	struct slice path = http_call_path(call);

	if (slice_equal_text(path, "/healthz"))
		http_call_respond(call, 200, TEXT_TYPE, SLICE("ok"));
	else if (slice_equal_text(path, "/readyz"))
		answer_ready(health, call);
	else
		listening_answer_not_found(call);
}

static void on_error(void *context, const struct error *err)
{
	const struct health *health = context;

	log_warn(&health->options.logger, "Failed to accept a connection", log_error_field(err));
}

struct health *health_start(const struct health_options *options, struct error *err)
{
	struct health *health = memory_allocate(sizeof *health);

	if (health == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the health port");
		return NULL;
	}
	health->options = *options;
	health->http = listening_start_pages(options->loop, options->address, on_request, on_error, health, err);
	if (health->http == NULL) {
		memory_release(health);
		return NULL;
	}
	return health;
}

bool health_address(const struct health *health, struct address *ret_address)
{
	return http_server_address(health->http, ret_address);
}

void health_set_stopping(struct health *health)
{
	health->stopping = true;
}

void health_stop(struct health *health)
{
	if (health == NULL)
		return;
	http_server_destroy(health->http);
	memory_release(health);
}
