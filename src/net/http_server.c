#include "net/http_server.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/http_server_internal.h"

/* ---- connections ---- */

static void tell_drained(void *context)
{
	struct http_server *server = context;
	void (*on_drained)(void *) = server->on_drained;

	loop_timer_stop(server->loop, &server->drain_timer);
	server->on_drained = NULL;
	if (on_drained != NULL)
		on_drained(server->drained_context);
}

void server_remove_connection(struct server_connection *connection)
{
	struct http_server *server = connection->server;

	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		server->connections = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	server->connection_count--;
	connection->server = NULL;
	if (server->draining && server->connection_count == 0)
		loop_run_soon(server->loop, &server->drained_task, tell_drained, server);
}

static void accepted(void *context, struct stream *stream)
{
	server_connection_start(context, stream);
}

size_t http_server_connection_count(const struct http_server *server)
{
	return server->connection_count;
}

/* ---- start ---- */

static struct tls_settings *ask_for_tls(void *context)
{
	struct http_server *server = context;

	return server->tls(server->context);
}

static void tell_error(void *context, const struct error *err)
{
	struct http_server *server = context;

	if (server->on_error != NULL)
		server->on_error(server->context, err);
}

static uint64_t timeout_or(uint64_t timeout_ns, uint64_t default_ms)
{
	return timeout_ns != 0 ? timeout_ns : default_ms * NS_PER_MS;
}

struct http_server *http_server_start(struct loop *loop, const struct http_server_options *options,
                                      const struct http_server_handler *handler, void *context, struct error *err)
{
	struct http_server *server = memory_allocate(sizeof *server);
	struct stream_listener_options listener_options = {
		.address = options->address,
		.tls = options->tls != NULL ? ask_for_tls : NULL,
		.max_connections = options->max_connections > 0 ? options->max_connections : HTTP_SERVER_CONNECTIONS,
		.on_error = tell_error,
	};

	if (server == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for an HTTP server");
		return NULL;
	}
	*server = (struct http_server){
		.loop = loop,
		.handler = *handler,
		.context = context,
		.tls = options->tls,
		.on_error = options->on_error,
		.max_body_bytes = options->max_body_bytes,
		.header_timeout_ns = timeout_or(options->header_timeout_ns, HTTP_SERVER_HEADER_TIMEOUT_MS),
		.body_timeout_ns = timeout_or(options->body_timeout_ns, HTTP_SERVER_BODY_TIMEOUT_MS),
		.idle_timeout_ns = timeout_or(options->idle_timeout_ns, HTTP_SERVER_IDLE_TIMEOUT_MS),
		.write_timeout_ns = timeout_or(options->write_timeout_ns, HTTP_SERVER_WRITE_TIMEOUT_MS),
	};
	server->listener = stream_listen(loop, &listener_options, accepted, server, err);
	if (server->listener == NULL) {
		memory_release(server);
		return NULL;
	}
	return server;
}

bool http_server_address(const struct http_server *server, struct address *ret_address)
{
	return server->listener != NULL && stream_listener_address(server->listener, ret_address);
}

/* ---- end ---- */

static void stop_listening(struct http_server *server)
{
	if (server->listener != NULL)
		stream_listener_close(server->listener);
	server->listener = NULL;
}

static void drain_late(void *context)
{
	struct http_server *server = context;

	while (server->connections != NULL)
		server_connection_end(server->connections, END_FINISH, true);
}

void http_server_drain(struct http_server *server, uint64_t timeout_ns, void (*on_drained)(void *context),
                       void *context)
{
	struct server_connection *next;

	stop_listening(server);
	server->draining = true;
	server->on_drained = on_drained;
	server->drained_context = context;
	for (struct server_connection *connection = server->connections; connection != NULL; connection = next) {
		next = connection->next;
		if (server_connection_is_idle(connection))
			server_connection_end(connection, END_FINISH, false);
	}
	if (server->connection_count == 0)
		loop_run_soon(server->loop, &server->drained_task, tell_drained, server);
	else
		loop_timer_start(server->loop, &server->drain_timer, timeout_ns, drain_late, server);
}

static void release_server(void *owner)
{
	memory_release(owner);
}

void http_server_destroy(struct http_server *server)
{
	stop_listening(server);
	while (server->connections != NULL)
		server_connection_end(server->connections, END_CLOSE, false);
	loop_timer_stop(server->loop, &server->drain_timer);
	loop_task_cancel(server->loop, &server->drained_task);
	loop_release_later(server->loop, &server->garbage, release_server, server);
}
