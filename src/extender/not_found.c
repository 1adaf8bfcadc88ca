#include "extender/not_found.h"

void not_found_answer(struct http_call *call)
{
	static const struct http_field FIELDS[] = {
		{ SLICE_INIT("Content-Type"), SLICE_INIT("text/plain; charset=utf-8") },
		{ SLICE_INIT("X-Content-Type-Options"), SLICE_INIT("nosniff") },
	};

	http_call_respond_with(call, 404, (struct http_fields){ FIELDS, 2 }, SLICE("404 page not found\n"));
}
