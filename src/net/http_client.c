#include "net/http_client.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/http_client_internal.h"

enum { CLOSE_LINGER_MS = 1000 /* for TLS's closing message */ };

/* ---- connections ---- */

static void release_connection(void *owner)
{
	struct client_connection *connection = owner;

	memory_release(connection->host);
	memory_release(connection);
}

static void unlink_connection(struct client_connection *connection)
{
	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		connection->client->connections = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
}

static void link_connection(struct http_client *client, struct client_connection *connection)
{
	connection->previous = NULL;
	connection->next = client->connections;
	if (client->connections != NULL)
		client->connections->previous = connection;
	client->connections = connection;
}

void client_connection_close(struct client_connection *connection)
{
	struct http_client *client = connection->client;

	if (client == NULL)
		return;
	unlink_connection(connection);
	loop_timer_stop(client->loop, &connection->idle_timer);
	if (connection->stream != NULL && connection->secure && connection->exchange == NULL)
		stream_finish(connection->stream, (uint64_t)CLOSE_LINGER_MS * NS_PER_MS);
	else if (connection->stream != NULL)
		stream_close(connection->stream);
	connection->stream = NULL;
	connection->exchange = NULL;
	connection->client = NULL;
	loop_release_later(client->loop, &connection->garbage, release_connection, connection);
}

static void on_open(void *context)
{
	struct client_connection *connection = context;

	exchange_connected(connection->exchange);
}

static void on_data(void *context, struct slice bytes)
{
	struct client_connection *connection = context;

	if (connection->exchange != NULL)
		exchange_data(connection->exchange, bytes);
	else
		client_connection_close(connection); /* nobody asked for anything */
}

static void on_drained(void *context)
{
	struct client_connection *connection = context;

	if (connection->exchange != NULL)
		exchange_connected(connection->exchange);
}

static void on_close(void *context, const struct error *err)
{
	struct client_connection *connection = context;

	connection->stream = NULL;
	if (connection->exchange != NULL)
		exchange_lost(connection->exchange, err);
	else
		client_connection_close(connection);
}

static const struct stream_handler STREAM_HANDLER = {
	.on_open = on_open,
	.on_data = on_data,
	.on_drained = on_drained,
	.on_close = on_close,
};

static bool is_for(const struct client_connection *connection, const struct http_origin *origin)
{
	return connection->secure == origin->secure && connection->port == origin->port &&
	       strcmp(connection->host, origin->host) == 0;
}

static void idle_late(void *context)
{
	client_connection_close(context);
}

void client_connection_keep(struct client_connection *connection)
{
	struct http_client *client = connection->client;
	struct http_origin origin = { .secure = connection->secure, .port = connection->port };
	size_t idle = 0;

	memcpy(origin.host, connection->host, strlen(connection->host) + 1);
	connection->exchange = NULL;
	for (const struct client_connection *other = client->connections; other != NULL; other = other->next)
		idle += other != connection && other->exchange == NULL && is_for(other, &origin);
	if (connection->stale || idle >= HTTP_IDLE_CONNECTIONS_PER_ORIGIN) {
		client_connection_close(connection);
		return;
	}
	unlink_connection(connection);
	link_connection(client, connection);
	loop_timer_start(client->loop, &connection->idle_timer, (uint64_t)HTTP_IDLE_TIMEOUT_MS * NS_PER_MS, idle_late,
	                 connection);
}

static struct client_connection *find_idle(const struct http_client *client, const struct http_origin *origin)
{
	struct client_connection *connection = client->connections;

	while (connection != NULL && (connection->exchange != NULL || !is_for(connection, origin)))
		connection = connection->next;
	return connection;
}

static struct client_connection *connect_new(struct http_client *client, struct http_exchange *exchange,
                                             struct error *err)
{
	const struct http_origin *origin = &exchange->origin;
	struct client_connection *connection = memory_allocate(sizeof *connection);
	char *host = memory_copy_text(origin->host, strlen(origin->host));
	struct stream_connect_options options = {
		.host = origin->host,
		.port = origin->port,
		.tls = origin->secure ? client->tls : NULL,
		.connect_timeout_ns = exchange->connect_timeout_ns,
	};

	if (connection == NULL || host == NULL)
		error_set(err, ERROR_NO_MEMORY, "no memory for a connection");
	else
		connection->stream = stream_connect(client->loop, &options, &STREAM_HANDLER, connection, err);
	if (connection == NULL || connection->stream == NULL) {
		memory_release(connection);
		memory_release(host);
		return NULL;
	}
	connection->client = client;
	connection->host = host;
	connection->port = origin->port;
	connection->secure = origin->secure;
	link_connection(client, connection);
	return connection;
}

/* Gives the exchange to the connection. False: the request can't be written, the connection is closed. */
static bool write_request(struct client_connection *connection, struct http_exchange *exchange, struct error *err)
{
	size_t length = exchange->request.length;

	stream_set_write_limit(connection->stream, length > NET_STREAM_WRITE_BYTES ? length : NET_STREAM_WRITE_BYTES);
	if (!stream_write(connection->stream, buffer_slice(&exchange->request), err)) {
		client_connection_close(connection);
		return false;
	}
	loop_timer_stop(connection->client->loop, &connection->idle_timer);
	connection->exchange = exchange;
	exchange->connection = connection;
	if (exchange->paused)
		stream_pause(connection->stream);
	return true;
}

bool client_start_exchange(struct http_exchange *exchange, bool may_reuse, struct error *err)
{
	struct http_client *client = exchange->client;
	struct client_connection *connection;

	if (exchange->origin.secure && client->tls == NULL)
		return error_set(err, ERROR_INVARIANT, "https without TLS settings");
	while (may_reuse && (connection = find_idle(client, &exchange->origin)) != NULL) {
		if (!write_request(connection, exchange, err))
			continue;
		connection->reused = true;
		exchange_connected(exchange);
		return true;
	}
	connection = connect_new(client, exchange, err);
	if (connection == NULL || !write_request(connection, exchange, err))
		return false;
	buffer_release(&exchange->request); /* not to be sent again */
	return true;
}

/* ---- requests ---- */

static bool is_one_of(struct slice text, const char *const *texts)
{
	for (; *texts != NULL; texts++)
		if (slice_equal_fold(text, slice_of(*texts)))
			return true;
	return false;
}

static bool check_request(const struct http_request *request, struct error *err)
{
	static const char *const OURS[] = { "Host", "Content-Length", "Transfer-Encoding", "Connection", NULL };

	if (request->origin.host[0] == '\0' ||
	    memchr(request->origin.host, '\0', sizeof request->origin.host) == NULL || request->origin.port == 0)
		return error_set(err, ERROR_SYNTAX, "host or port of the request is missing");
	if (!http_is_host(request->origin.host))
		return error_set(err, ERROR_SYNTAX, "host of the request has a character that hosts can't have");
	if (!http_is_token(request->method))
		return error_set(err, ERROR_SYNTAX, "method of the request is not a token");
	if (!http_is_target(request->target))
		return error_set(err, ERROR_SYNTAX,
		                 "target of the request doesn't begin with \"/\", or has blanks, line ends or \"#\"");
	if (!http_fields_check(request->fields, err))
		return false;
	for (size_t i = 0; i < request->fields.count; i++)
		if (is_one_of(request->fields.items[i].name, OURS))
			return error_set(err, ERROR_SYNTAX, "header field %.*s is the client's to write",
			                 SLICE_ARGS(request->fields.items[i].name));
	return true;
}

static void append_host(struct buffer *text, const struct http_origin *origin)
{
	bool brackets = strchr(origin->host, ':') != NULL;

	buffer_append_format(text, brackets ? "Host: [%s]" : "Host: %s", origin->host);
	if (origin->port != (origin->secure ? 443 : 80))
		buffer_append_format(text, ":%u", origin->port);
	buffer_append_text(text, "\r\n");
}

static bool make_request(struct buffer *text, const struct http_request *request, struct error *err)
{
	static const char *const WITH_BODY[] = { "POST", "PUT", "PATCH", NULL };

	if (request->body.length > SIZE_MAX / 8)
		return error_set(err, ERROR_LIMIT, "body of the request is over %zu bytes", SIZE_MAX / 8);
	buffer_init_secret(text, HTTP_HEADER_BYTES); /* fields may have credentials */
	buffer_append_slice(text, request->method);
	buffer_append_char(text, ' ');
	buffer_append_slice(text, request->target);
	buffer_append_text(text, " HTTP/1.1\r\n");
	append_host(text, &request->origin);
	http_append_fields(text, request->fields);
	if (request->body.length > 0 || is_one_of(request->method, WITH_BODY))
		buffer_append_format(text, "Content-Length: %zu\r\n", request->body.length);
	if (request->fresh_connection)
		buffer_append_text(text, "Connection: close\r\n");
	buffer_append_text(text, "\r\n");
	text->limit_bytes += request->body.length;
	buffer_append_slice(text, request->body);
	return buffer_check(text, "the request", err);
}

static struct http_exchange *make_exchange(struct http_client *client, const struct http_request *request,
                                           const struct http_handler *handler, void *context, struct error *err)
{
	static const char *const IDEMPOTENT[] = {
		"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", NULL
	}; /* RFC 9110 9.2.2 */
	struct http_exchange *exchange = memory_allocate(sizeof *exchange);

	if (exchange == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a request");
		return NULL;
	}
	*exchange = (struct http_exchange){
		.client = client,
		.handler = *handler,
		.context = context,
		.origin = request->origin,
		.idempotent = is_one_of(request->method, IDEMPOTENT),
		.fresh_connection = request->fresh_connection,
		.max_body_bytes = request->max_body_bytes,
		.connect_timeout_ns = request->connect_timeout_ns,
		.first_byte_timeout_ns = request->first_byte_timeout_ns,
		.idle_timeout_ns = request->idle_timeout_ns,
	};
	http_parser_init_response(&exchange->parser, slice_equal(request->method, SLICE("HEAD")));
	buffer_init(&exchange->body, request->max_body_bytes);
	buffer_init(&exchange->waiting, NET_TURN_READ_BYTES);
	if (!make_request(&exchange->request, request, err)) {
		exchange_release(exchange);
		return NULL;
	}
	return exchange;
}

struct http_exchange *http_client_send(struct http_client *client, const struct http_request *request,
                                       const struct http_handler *handler, void *context, struct error *err)
{
	struct http_exchange *exchange;

	if (!check_request(request, err))
		return NULL;
	exchange = make_exchange(client, request, handler, context, err);
	if (exchange == NULL)
		return NULL;
	if (!client_start_exchange(exchange, !exchange->fresh_connection, err)) {
		exchange_release(exchange);
		return NULL;
	}
	exchange->next = client->exchanges;
	if (client->exchanges != NULL)
		client->exchanges->previous = exchange;
	client->exchanges = exchange;
	exchange_start_total_timer(exchange, request->total_timeout_ns);
	return exchange;
}

/* ---- the client ---- */

struct http_client *http_client_create(struct loop *loop, struct error *err)
{
	struct http_client *client = memory_allocate(sizeof *client);

	if (client == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for an HTTP client");
		return NULL;
	}
	client->loop = loop;
	return client;
}

static void close_idle(struct http_client *client, bool secure_only)
{
	struct client_connection *next;

	for (struct client_connection *connection = client->connections; connection != NULL; connection = next) {
		next = connection->next;
		if (connection->exchange == NULL && (connection->secure || !secure_only))
			client_connection_close(connection);
	}
}

void http_client_set_tls(struct http_client *client, struct tls_settings *tls)
{
	struct tls_settings *old = client->tls;

	client->tls = tls != NULL ? tls_settings_hold(tls) : NULL;
	tls_settings_release(old);
	close_idle(client, true);
	for (struct client_connection *connection = client->connections; connection != NULL;
	     connection = connection->next)
		connection->stale = connection->stale || connection->secure;
}

void http_client_close_idle(struct http_client *client)
{
	close_idle(client, false);
}

static void release_client(void *owner)
{
	memory_release(owner);
}

void http_client_destroy(struct http_client *client)
{
	while (client->exchanges != NULL)
		http_exchange_cancel(client->exchanges);
	while (client->connections != NULL)
		client_connection_close(client->connections);
	tls_settings_release(client->tls);
	client->tls = NULL;
	loop_release_later(client->loop, &client->garbage, release_client, client);
}
