#include "extender/listening.h"

#include <string.h>

#include "extender/process_limits.h"

static bool is_any_ipv6(const struct address *address)
{
	static const uint8_t ANY[16];

	return address->is_ipv6 && memcmp(address->bytes, ANY, sizeof ANY) == 0;
}

struct http_server *listening_start(struct loop *loop, const struct http_server_options *options,
                                    const struct http_server_handler *handler, void *context, struct error *err)
{
	struct http_server *server = http_server_start(loop, options, handler, context, err);
	struct http_server_options settings = *options;

	if (server != NULL || !is_any_ipv6(&options->address))
		return server;
	settings.address = (struct address){ .port = options->address.port };
	return http_server_start(loop, &settings, handler, context, err);
}

struct http_server *listening_start_pages(struct loop *loop, struct address address,
                                          void (*on_request)(void *context, struct http_call *call),
                                          void (*on_error)(void *context, const struct error *err), void *context,
                                          struct error *err)
{
	const struct http_server_handler handler = { .on_request = on_request };
	const struct http_server_options settings = {
		.address = address,
		.max_connections = EXTENDER_PAGE_CONNECTIONS,
		.max_body_bytes = EXTENDER_PAGE_REQUEST_BYTES,
		.on_error = on_error,
	};

	return listening_start(loop, &settings, &handler, context, err);
}

void listening_answer_not_found(struct http_call *call)
{
	static const struct http_field FIELDS[] = {
		{ SLICE_INIT("Content-Type"), SLICE_INIT("text/plain; charset=utf-8") },
		{ SLICE_INIT("X-Content-Type-Options"), SLICE_INIT("nosniff") },
	};

	http_call_respond_with(call, 404, (struct http_fields){ FIELDS, 2 }, SLICE("404 page not found\n"));
}
