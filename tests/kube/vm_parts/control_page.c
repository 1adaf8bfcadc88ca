#include "control_page.h"

#include "base/memory.h"
#include "die.h"
#include "net/http_server.h"

enum { BODY_BYTES = 4096, STATE_BYTES = 1024 * 1024, ARENA_BYTES = 256 * 1024 };

struct control_page {
	struct http_server *server;
	struct control_page_handler handler;
	void *context;
};

static void answer_state(const struct control_page *page, struct http_call *call)
{
	struct json_writer writer;
	struct buffer text;

	buffer_init(&text, STATE_BYTES);
	json_writer_init(&writer, &text);
	page->handler.print_state(page->context, &writer);
	http_call_respond(call, text.failed ? 500 : 200, "application/json", buffer_slice(&text));
	buffer_destroy(&text);
}

static void on_request(void *context, struct http_call *call)
{
	const struct control_page *page = context;
	struct json_node *arguments;
	struct arena arena;
	struct error err;

	if (slice_equal_text(http_call_method(call), "GET")) {
		answer_state(page, call);
		return;
	}
	arena_init(&arena, ARENA_BYTES);
	if (json_tree_parse(http_call_body(call), &arena, &arguments, &err) &&
	    page->handler.on_command(page->context, slice_from_offset(http_call_path(call), 1), arguments, &err))
		http_call_respond(call, 200, "application/json", SLICE("{}"));
	else
		http_call_respond(call, 400, "text/plain", slice_of(err.text));
	arena_destroy(&arena);
}

struct control_page *control_page_start(struct loop *loop, const struct address *address,
                                        const struct control_page_handler *handler, void *context)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request };
	struct http_server_options options = { .address = *address, .max_body_bytes = BODY_BYTES };
	struct control_page *page = memory_allocate(sizeof *page);
	struct error err;

	if (page == NULL)
		die("no memory for a page");
	page->handler = *handler;
	page->context = context;
	page->server = http_server_start(loop, &options, &HANDLER, page, &err);
	if (page->server == NULL)
		die("%s", err.text);
	return page;
}

void control_page_destroy(struct control_page *page)
{
	http_server_destroy(page->server);
	memory_release(page);
}
