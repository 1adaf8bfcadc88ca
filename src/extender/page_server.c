#include "extender/page_server.h"

#include "extender/process_limits.h"

struct http_server *page_server_start(struct loop *loop, struct address address,
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

	return http_server_start(loop, &settings, &handler, context, err);
}

void page_server_answer_not_found(struct http_call *call)
{
	static const struct http_field FIELDS[] = {
		{ SLICE_INIT("Content-Type"), SLICE_INIT("text/plain; charset=utf-8") },
		{ SLICE_INIT("X-Content-Type-Options"), SLICE_INIT("nosniff") },
	};

	http_call_respond_with(call, 404, (struct http_fields){ FIELDS, 2 }, SLICE("404 page not found\n"));
}
