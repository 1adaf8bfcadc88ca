/*
 * A listener counts its connections until their sockets are closed, also those that linger. At the cap, or when the
 * system has no descriptors left, it stops asking for more, so that waiting connections don't wake the loop in vain.
 *
 * It lives until it is closed and its last connection has ended.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "net/limits.h"
#include "net/stream_internal.h"

struct stream_listener {
	struct loop *loop;
	struct socket *socket; /* NULL once closed */
	struct stream_listener_options options;
	stream_accept_callback *callback;
	void *context;
	size_t connections;
	struct stream *handshakes; /* streams not handed over yet */
	struct loop_timer pause;
	struct loop_garbage garbage;
};

static void release_listener(void *owner)
{
	memory_release(owner);
}

static void update_interest(struct stream_listener *listener);

static void pause_over(void *context)
{
	update_interest(context);
}

static void pause_accepting(struct stream_listener *listener)
{
	loop_timer_start(listener->loop, &listener->pause, (uint64_t)NET_ACCEPT_PAUSE_MS * NS_PER_MS, pause_over,
	                 listener);
}

static bool is_full(const struct stream_listener *listener)
{
	return listener->options.max_connections != 0 && listener->connections >= listener->options.max_connections;
}

static void update_interest(struct stream_listener *listener)
{
	bool wants = !is_full(listener) && !loop_timer_running(&listener->pause);
	struct error ignored;

	if (listener->socket == NULL)
		return;
	if (!socket_set_interest(listener->socket, wants ? SOCKET_READ : 0, &ignored))
		pause_accepting(listener); /* then tries again */
}

static void report(struct stream_listener *listener, const struct error *err)
{
	if (listener->options.on_error != NULL)
		listener->options.on_error(listener->context, err);
}

/* ---- streams ---- */

static void handshakes_add(struct stream_listener *listener, struct stream *stream)
{
	stream->previous = NULL;
	stream->next = listener->handshakes;
	if (stream->next != NULL)
		stream->next->previous = stream;
	listener->handshakes = stream;
}

static void handshakes_remove(struct stream_listener *listener, struct stream *stream)
{
	if (stream->previous != NULL)
		stream->previous->next = stream->next;
	else if (listener->handshakes == stream)
		listener->handshakes = stream->next;
	if (stream->next != NULL)
		stream->next->previous = stream->previous;
	stream->next = NULL;
	stream->previous = NULL;
}

void stream_listener_hand_over(struct stream *stream)
{
	struct stream_listener *listener = stream->listener;

	handshakes_remove(listener, stream);
	listener->callback(listener->context, stream);
}

void stream_listener_stream_failed(struct stream *stream, const struct error *err)
{
	report(stream->listener, err);
}

void stream_listener_stream_ended(struct stream *stream)
{
	struct stream_listener *listener = stream->listener;

	stream->listener = NULL;
	handshakes_remove(listener, stream);
	listener->connections--;
	if (listener->socket != NULL)
		update_interest(listener);
	else if (listener->connections == 0)
		loop_release_later(listener->loop, &listener->garbage, release_listener, listener);
}

static bool add_tls(struct stream_listener *listener, struct stream *stream, struct error *err)
{
	struct tls_transport transport = stream_transport(stream);

	if (listener->options.tls == NULL)
		return true;

	struct tls_settings *settings = listener->options.tls(listener->context);

	if (settings == NULL)
		return error_set(err, ERROR_REFUSED, "there is no certificate to show");
	stream->tls = tls_connection_create_server(settings, &stream->peer, &transport, err);
	return stream->tls != NULL;
}

/* Makes a stream of an accepted socket, which it takes in any case. */
static bool admit(struct stream_listener *listener, struct socket *socket, const struct address *peer,
                  struct error *err)
{
	struct stream *stream = stream_create(listener->loop);

	if (stream == NULL) {
		socket_close(socket, false);
		return error_set(err, ERROR_NO_MEMORY, "no memory for a connection");
	}
	stream->socket = socket;
	stream->peer = *peer;
	stream->listener = listener;
	listener->connections++;
	handshakes_add(listener, stream);
	socket_set_handler(socket, &STREAM_SOCKET_HANDLER, stream);
	if (!add_tls(listener, stream, err)) {
		stream_end(stream, false);
		return false;
	}
	stream_connected(stream, listener->options.tls_timeout_ns);
	return true;
}

/* ---- accepting ---- */

static void accept_failed(struct stream_listener *listener, struct error *err)
{
	char text[ADDRESS_TEXT_BYTES];

	address_print(&listener->options.address, text);
	error_wrap(err, "accepting on %s", text);
	pause_accepting(listener);
	report(listener, err);
}

static void accept_ready(void *context)
{
	struct stream_listener *listener = context;

	for (int i = 0; i < NET_TURN_ACCEPTS && listener->socket != NULL && !is_full(listener); i++) {
		struct address peer;
		struct error err;
		enum socket_result result = SOCKET_AGAIN;
		struct socket *socket = socket_accept(listener->socket, &peer, &result, &err);

		if (socket == NULL && result == SOCKET_AGAIN)
			break;
		if (socket == NULL || !admit(listener, socket, &peer, &err)) {
			accept_failed(listener, &err);
			break;
		}
	}
	update_interest(listener);
}

struct stream_listener *stream_listen(struct loop *loop, const struct stream_listener_options *options,
                                      stream_accept_callback *callback, void *context, struct error *err)
{
	static const struct socket_handler HANDLER = { .on_readable = accept_ready, .on_writable = accept_ready };
	struct stream_listener *listener = memory_allocate(sizeof *listener);
	char text[ADDRESS_TEXT_BYTES];

	if (listener == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a listener");
		return NULL;
	}
	*listener =
		(struct stream_listener){ .loop = loop, .options = *options, .callback = callback, .context = context };
	listener->socket = loop_listen(loop, &options->address, &HANDLER, listener, err);
	if (listener->socket == NULL) {
		address_print(&options->address, text);
		error_wrap(err, "listen tcp %s", text);
		memory_release(listener);
		return NULL;
	}
	return listener;
}

bool stream_listener_address(const struct stream_listener *listener, struct address *ret_address)
{
	return listener->socket != NULL && socket_local_address(listener->socket, ret_address);
}

void stream_listener_close(struct stream_listener *listener)
{
	socket_close(listener->socket, false);
	listener->socket = NULL;
	loop_timer_stop(listener->loop, &listener->pause);
	listener->connections++; /* so that ending the last handshake doesn't release the listener under our feet */
	while (listener->handshakes != NULL)
		stream_end(listener->handshakes, false);
	listener->connections--;
	if (listener->connections == 0)
		loop_release_later(listener->loop, &listener->garbage, release_listener, listener);
}
