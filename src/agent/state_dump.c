#include "agent/state_dump.h"

#include "agent/limits.h"
#include "agent/supervisor_dump_a.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "codec/json_reader.h"
#include "gen/state_dump.gen.h"
#include "net/http_server.h"

/* As the reference's answers are, JSON included. */
static const char CONTENT_TYPE[] = "text/plain; charset=utf-8";

enum { REQUEST_ARENA_BYTES = 32 * AGENT_SERVER_REQUEST_BYTES };

struct state_dump_server {
	struct http_server *http;
	const struct supervisor *supervisor;
	struct admin_token *admin_token;
	enum agent_generation generation;
	struct logger logger;
};

static void answer(const struct state_dump_server *server, struct http_call *call, int status, struct slice body)
{
	log_info(&server->logger, "Responding to request", log_int("status", status));
	http_call_respond(call, status, CONTENT_TYPE, body);
}

/* The body must begin with an object or null; what follows it is ignored (protocols 1.1). */
static bool is_request(struct slice body)
{
	struct arena arena;
	struct json_reader reader;
	struct state_dump_dump_request request;
	struct error ignored;
	bool ok;

	arena_init(&arena, REQUEST_ARENA_BYTES);
	ok = json_reader_open(&reader, body, &arena, &ignored) &&
	     (json_kind_of(body) == JSON_KIND_NULL || state_dump_dump_request_decode(&reader, &request, &ignored));
	arena_destroy(&arena);
	return ok;
}

/* In the shape of the generation (generations 4.8). */
static bool dump(const struct state_dump_server *server, struct arena *arena, struct buffer *json, struct error *err)
{
	struct state_dump_dump dump;
	struct state_dump_a_dump dump_a;

	if (server->generation == AGENT_GENERATION_A)
		return supervisor_dump_a(server->supervisor, arena, &dump_a, err) &&
		       state_dump_a_dump_to_json(&dump_a, json, err);
	return supervisor_dump(server->supervisor, arena, &dump, err) && state_dump_dump_to_json(&dump, json, err);
}

static void answer_dump(const struct state_dump_server *server, struct http_call *call)
{
	struct arena arena;
	struct buffer json;
	struct error err;

	arena_init(&arena, AGENT_DUMP_BYTES);
	buffer_init(&json, AGENT_DUMP_BYTES);
	if (dump(server, &arena, &json, &err)) {
		answer(server, call, 200, buffer_slice(&json));
	} else {
		log_error(&server->logger, "Failed to dump state", log_error_field(&err));
		answer(server, call, 500, slice_of(err.text));
	}
	buffer_destroy(&json);
	arena_destroy(&arena);
}

/* A request that can be read has nothing in it; null stands for one that can't. */
static void log_request(const struct state_dump_server *server, const struct http_call *call, bool readable)
{
	char client[ADDRESS_TEXT_BYTES] = "";
	struct address peer;

	if (http_call_peer(call, &peer))
		address_print(&peer, client);
	log_info(&server->logger, "Received request", log_text("client", client),
	         log_json("request", readable ? SLICE("{}") : SLICE("null")));
}

static void answer_request(const struct state_dump_server *server, struct http_call *call)
{
	bool is_get = slice_equal_text(http_call_method(call), "GET");
	bool readable = is_get && is_request(http_call_body(call));

	log_request(server, call, readable);
	if (!is_get)
		answer(server, call, 405, SLICE("request method must be GET"));
	else if (!readable)
		answer(server, call, 400, SLICE("bad JSON"));
	else
		answer_dump(server, call);
}

static void on_request(void *context, struct http_call *call)
{
	const struct state_dump_server *server = context;

	if (admin_token_admits(server->admin_token, call))
		answer_request(server, call);
}

struct state_dump_server *state_dump_server_start(const struct state_dump_server_options *options, struct error *err)
{
	static const struct http_server_handler handler = { .on_request = on_request };
	const struct http_server_options settings = {
		.address = options->address,
		.max_connections = AGENT_DUMP_CONNECTIONS,
		.max_body_bytes = AGENT_SERVER_REQUEST_BYTES,
		.header_timeout_ns = options->timeout_ns,
		.body_timeout_ns = options->timeout_ns,
		.write_timeout_ns = options->timeout_ns,
	};
	struct state_dump_server *server = memory_allocate(sizeof *server);

	if (server == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the state dump's server");
		return NULL;
	}
	server->supervisor = options->supervisor;
	server->admin_token = options->admin_token;
	server->generation = options->generation;
	server->logger = (struct logger){ .sink = options->log_sink,
		                          .name = "autoscaler-agent.dump-state.http",
		                          .context_json = "" };
	server->http = http_server_start(options->loop, &settings, &handler, server, err);
	if (server->http == NULL) {
		memory_release(server);
		return NULL;
	}
	return server;
}

bool state_dump_server_address(const struct state_dump_server *server, struct address *ret_address)
{
	return http_server_address(server->http, ret_address);
}

void state_dump_server_stop(struct state_dump_server *server)
{
	if (server == NULL)
		return;
	http_server_destroy(server->http);
	memory_release(server);
}
