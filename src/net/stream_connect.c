/*
 * Lookup, then each address in turn. Every attempt gets an equal share of the time that is left (but not a tiny one),
 * so that an address that swallows packets doesn't use up what a good one would need. What is reported is the first
 * failure, as in Go.
 */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/limits.h"
#include "net/stream_internal.h"

struct stream_connector {
	char host[NET_HOST_BYTES];
	char server_name[NET_HOST_BYTES];
	uint16_t port;
	struct tls_settings *tls;
	uint64_t tls_timeout_ns;
	uint64_t deadline_ns;
	bool has_local;
	struct address local;
	struct lookup *lookup;
	struct address addresses[NET_LOOKUP_ADDRESSES];
	size_t count;
	size_t next;
	bool has_failure;
	struct error failure; /* the first */
};

void stream_connector_destroy(struct stream_connector *connector)
{
	if (connector == NULL)
		return;
	if (connector->lookup != NULL)
		lookup_cancel(connector->lookup);
	tls_settings_release(connector->tls);
	memory_release(connector);
}

static void try_next(struct stream *stream);

static void note_failure(struct stream_connector *connector, const struct error *err)
{
	char text[ADDRESS_TEXT_BYTES];

	if (connector->has_failure)
		return;
	connector->has_failure = true;
	connector->failure = *err;
	address_print(&connector->addresses[connector->next], text);
	error_wrap(&connector->failure, "dial tcp %s", text);
}

/* The attempt at hand has failed. */
static void attempt_failed(struct stream *stream, const struct error *err)
{
	loop_timer_stop(stream->loop, &stream->timer);
	if (stream->socket != NULL)
		socket_close(stream->socket, false);
	stream->socket = NULL;
	note_failure(stream->connector, err);
	stream->connector->next++;
	try_next(stream);
}

static void attempt_late(void *context)
{
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
	attempt_failed(context, &err);
}

static bool add_tls(struct stream *stream, struct error *err)
{
	struct stream_connector *connector = stream->connector;
	struct tls_transport transport = stream_transport(stream);

	if (connector->tls == NULL)
		return true;
	stream->tls =
		tls_connection_create_client(connector->tls, connector->server_name, connector->port, &transport, err);
	return stream->tls != NULL;
}

static void attempt_over(void *context)
{
	struct stream *stream = context;
	struct stream_connector *connector = stream->connector;
	struct error err;

	if (!socket_connect_result(stream->socket, &err)) {
		attempt_failed(stream, &err);
		return;
	}
	loop_timer_stop(stream->loop, &stream->timer);
	stream->peer = connector->addresses[connector->next];
	socket_set_handler(stream->socket, &STREAM_SOCKET_HANDLER, stream);
	if (!add_tls(stream, &err)) {
		stream_fail(stream, &err);
		return;
	}

	uint64_t tls_timeout_ns = connector->tls_timeout_ns;

	stream->connector = NULL;
	stream_connector_destroy(connector);
	stream_connected(stream, tls_timeout_ns);
}

static const struct socket_handler CONNECT_HANDLER = { .on_readable = attempt_over, .on_writable = attempt_over };

/* How long the attempt at hand may take. */
static uint64_t attempt_share_ns(const struct stream_connector *connector, uint64_t now_ns)
{
	const uint64_t least_ns = (uint64_t)NET_CONNECT_ATTEMPT_MS * NS_PER_MS;
	uint64_t left_ns = connector->deadline_ns > now_ns ? connector->deadline_ns - now_ns : 0;
	uint64_t share_ns = left_ns / (connector->count - connector->next);

	if (share_ns < least_ns)
		share_ns = least_ns;
	return share_ns < left_ns ? share_ns : left_ns;
}

static void try_next(struct stream *stream)
{
	struct stream_connector *connector = stream->connector;
	struct error err;

	for (; connector->next < connector->count; connector->next++) {
		uint64_t share_ns = attempt_share_ns(connector, loop_now_ns(stream->loop));

		if (share_ns == 0) {
			error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
			note_failure(connector, &err);
			break;
		}
		stream->socket =
			loop_connect(stream->loop, &connector->addresses[connector->next],
		                     connector->has_local ? &connector->local : NULL, &CONNECT_HANDLER, stream, &err);
		if (stream->socket != NULL) {
			loop_timer_start(stream->loop, &stream->timer, share_ns, attempt_late, stream);
			return;
		}
		note_failure(connector, &err);
	}
	err = connector->failure;
	stream_fail(stream, &err);
}

static void looked_up(void *context, const struct address *addresses, size_t count, const struct error *err)
{
	struct stream *stream = context;
	struct stream_connector *connector = stream->connector;

	connector->lookup = NULL;
	if (count == 0) {
		struct error failure = *err;

		error_wrap(&failure, "dial tcp");
		stream_fail(stream, &failure);
		return;
	}
	connector->count = count < NET_LOOKUP_ADDRESSES ? count : NET_LOOKUP_ADDRESSES;
	memcpy(connector->addresses, addresses, connector->count * sizeof addresses[0]);
	try_next(stream);
}

static bool copy_name(char copy[NET_HOST_BYTES], const char *name, struct error *err)
{
	size_t length = strlen(name);

	if (length == 0 || length >= NET_HOST_BYTES)
		return error_set(err, ERROR_LIMIT, "host name of %zu bytes is not within 1 and %d", length,
		                 NET_HOST_BYTES - 1);
	memcpy(copy, name, length + 1);
	return true;
}

static struct stream_connector *create_connector(const struct stream_connect_options *options, uint64_t deadline_ns,
                                                 struct error *err)
{
	struct stream_connector *connector = memory_allocate(sizeof *connector);

	if (connector == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a connection");
		return NULL;
	}
	if (!copy_name(connector->host, options->host, err) ||
	    !copy_name(connector->server_name, options->server_name != NULL ? options->server_name : options->host,
	               err)) {
		memory_release(connector);
		return NULL;
	}
	connector->port = options->port;
	connector->tls_timeout_ns = options->tls_timeout_ns;
	connector->deadline_ns = deadline_ns;
	if (options->tls != NULL)
		connector->tls = tls_settings_hold(options->tls);
	if (options->local != NULL) {
		connector->has_local = true;
		connector->local = *options->local;
	}
	return connector;
}

struct stream *stream_connect(struct loop *loop, const struct stream_connect_options *options,
                              const struct stream_handler *handler, void *context, struct error *err)
{
	uint64_t timeout_ns = options->connect_timeout_ns;
	struct stream *stream = stream_create(loop);

	if (stream == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a connection");
		return NULL;
	}
	if (timeout_ns == 0)
		timeout_ns = (uint64_t)NET_CONNECT_TIMEOUT_MS * NS_PER_MS;
	buffer_init_secret(&stream->output, SIZE_MAX); /* what we ask others, we may have to show a token for */
	stream_set_handler(stream, handler, context);
	stream->state = STREAM_CONNECTING;
	stream->connector = create_connector(options, loop_now_ns(loop) + timeout_ns, err);
	if (stream->connector == NULL)
		goto fail;
	stream->connector->lookup = loop_lookup(loop, options->host, options->port, timeout_ns, looked_up, stream, err);
	if (stream->connector->lookup == NULL)
		goto fail;
	return stream;
fail:
	stream_end(stream, false);
	return NULL;
}
