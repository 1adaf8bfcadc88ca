#include "agent/servers.h"

#include "agent/limits.h"
#include "agent/state_dump.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "net/http_server.h"

static const char PAGE_TYPE[] = "text/plain; version=0.0.4; charset=utf-8; escaping=values";
static const char TEXT_TYPE[] = "text/plain; charset=utf-8";

/* One of the two metrics servers. */
struct metrics_server {
	struct http_server *http;
	struct servers *servers;
	struct logger logger;
	bool (*print)(struct servers *servers, struct buffer *page, struct error *err);
	bool has_probes;
	bool drained;
};

struct servers {
	struct metrics_server agent;
	struct metrics_server vms;
	struct state_dump_server *dump;
	struct admin_token *admin_token;
	struct agent_metrics *metrics;
	struct vm_metrics *vm_metrics;
	bool draining;
	void (*on_drained)(void *context);
	void *drained_context;
};

/* ---- requests ---- */

static bool print_agent_page(struct servers *servers, struct buffer *page, struct error *err)
{
	return agent_metrics_print(servers->metrics, page, err);
}

static bool print_vm_page(struct servers *servers, struct buffer *page, struct error *err)
{
	return vm_metrics_print(servers->vm_metrics, page, err);
}

static void answer_page(struct metrics_server *server, struct http_call *call)
{
	struct buffer page;
	struct error err;

	buffer_init(&page, AGENT_METRICS_PAGE_BYTES);
	if (server->print(server->servers, &page, &err)) {
		http_call_respond(call, 200, PAGE_TYPE, buffer_slice(&page));
	} else {
		log_error(&server->logger, "Failed to make the metrics page", log_error_field(&err));
		http_call_respond(call, 500, TEXT_TYPE, slice_of(err.text));
	}
	buffer_destroy(&page);
}

static void answer_not_found(struct http_call *call)
{
	static const struct http_field fields[] = {
		{ SLICE_INIT("Content-Type"), SLICE_INIT("text/plain; charset=utf-8") },
		{ SLICE_INIT("X-Content-Type-Options"), SLICE_INIT("nosniff") },
	};

	http_call_respond_with(call, 404, (struct http_fields){ fields, 2 }, SLICE("404 page not found\n"));
}

/* Any method will do, as in the reference. */
static void on_request(void *context, struct http_call *call)
{
	struct metrics_server *server = context;
	struct slice path = http_call_path(call);

	if (server->has_probes && slice_equal_text(path, "/livez"))
		http_call_respond(call, 200, TEXT_TYPE, SLICE("ok\n"));
	else if (server->has_probes && slice_equal_text(path, "/readyz"))
		http_call_respond(call, server->servers->draining ? 503 : 200, TEXT_TYPE,
		                  server->servers->draining ? SLICE("stopping\n") : SLICE("ok\n"));
	else if (!admin_token_admits(server->servers->admin_token, call))
		return; /* answered */
	else if (slice_equal_text(path, "/metrics"))
		answer_page(server, call);
	else
		answer_not_found(call);
}

static void on_error(void *context, const struct error *err)
{
	const struct metrics_server *server = context;

	log_warn(&server->logger, "Failed to accept a connection", log_error_field(err));
}

/* ---- start ---- */

static bool find_address(const struct servers_options *options, uint16_t port, struct address *ret_address,
                         struct error *err)
{
	struct slice text = slice_of(options->listen_address);

	if (address_parse(text.length > 0 ? text : SLICE("0.0.0.0"), port, ret_address))
		return true;
	return error_set(err, ERROR_SYNTAX, "\"%.*s\" is no literal IP address", SLICE_ARGS(text));
}

static bool start_metrics(struct metrics_server *server, const struct servers_options *options, uint16_t port,
                          struct error *err)
{
	static const struct http_server_handler handler = { .on_request = on_request };
	struct http_server_options settings = {
		.max_connections = AGENT_METRICS_CONNECTIONS,
		.max_body_bytes = AGENT_SERVER_REQUEST_BYTES,
		.on_error = on_error,
	};

	if (find_address(options, port, &settings.address, err))
		server->http = http_server_start(options->loop, &settings, &handler, server, err);
	if (server->http == NULL)
		return error_wrap(err, "error starting prometheus metrics server: error listening on TCP port %u",
		                  port);
	log_info(&server->logger, "Listening", log_uint("port", port));
	return true;
}

static bool start_dump(struct servers *servers, const struct servers_options *options, struct error *err)
{
	struct state_dump_server_options settings = {
		.loop = options->loop,
		.timeout_ns = options->dump.timeout_ns,
		.supervisor = options->supervisor,
		.generation = options->dump.generation,
		.log_sink = options->log_sink,
		.admin_token = options->admin_token,
	};
	struct logger logger = { .sink = options->log_sink, .name = "autoscaler-agent.dump-state", .context_json = "" };
	char text[ADDRESS_TEXT_BYTES];

	if (!options->dump.present)
		return true;
	if (!find_address(options, options->dump.port, &settings.address, err))
		return error_wrap(err, "error starting dump state server: error binding to port %u",
		                  options->dump.port);
	address_print(&settings.address, text);
	servers->dump = state_dump_server_start(&settings, err);
	if (servers->dump == NULL)
		return error_wrap(err, "error starting dump state server: error binding to %s", text);
	log_info(&logger, "Listening", log_uint("port", options->dump.port));
	return true;
}

struct servers *servers_start(const struct servers_options *options, struct error *err)
{
	struct servers *servers = memory_allocate(sizeof *servers);

	if (servers == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for servers");
		return NULL;
	}
	servers->metrics = options->metrics;
	servers->vm_metrics = options->vm_metrics;
	servers->admin_token = options->admin_token;
	servers->agent = (struct metrics_server){
		.servers = servers,
		.logger = { .sink = options->log_sink,
		            .name = "autoscaler-agent.prometheus.global",
		            .context_json = "" },
		.print = print_agent_page,
		.has_probes = true,
	};
	servers->vms = (struct metrics_server){
		.servers = servers,
		.logger = { .sink = options->log_sink,
		            .name = "autoscaler-agent.prometheus.per-vm",
		            .context_json = "" },
		.print = print_vm_page,
	};
	if (!start_metrics(&servers->agent, options, options->metrics_port, err) ||
	    !start_metrics(&servers->vms, options, options->vm_metrics_port, err) ||
	    !start_dump(servers, options, err)) {
		servers_destroy(servers);
		return NULL;
	}
	return servers;
}

bool servers_address(const struct servers *servers, enum server_kind kind, struct address *ret_address)
{
	switch (kind) {
	case SERVER_METRICS:
		return http_server_address(servers->agent.http, ret_address);
	case SERVER_VM_METRICS:
		return http_server_address(servers->vms.http, ret_address);
	case SERVER_DUMP:
		break;
	}
	return servers->dump != NULL && state_dump_server_address(servers->dump, ret_address);
}

/* ---- end ---- */

static void on_one_drained(void *context)
{
	struct metrics_server *server = context;
	struct servers *servers = server->servers;

	server->drained = true;
	if (servers->agent.drained && servers->vms.drained)
		servers->on_drained(servers->drained_context);
}

void servers_drain(struct servers *servers, uint64_t timeout_ns, void (*on_drained)(void *context), void *context)
{
	servers->draining = true;
	servers->on_drained = on_drained;
	servers->drained_context = context;
	http_server_drain(servers->agent.http, timeout_ns, on_one_drained, &servers->agent);
	http_server_drain(servers->vms.http, timeout_ns, on_one_drained, &servers->vms);
}

static void destroy_http(struct http_server *http)
{
	if (http != NULL)
		http_server_destroy(http);
}

void servers_destroy(struct servers *servers)
{
	if (servers == NULL)
		return;
	destroy_http(servers->agent.http);
	destroy_http(servers->vms.http);
	state_dump_server_stop(servers->dump);
	memory_release(servers);
}
