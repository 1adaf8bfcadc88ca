#include "report/report_transport.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "report/limits.h"
#include "report/secret.h"

struct report_transport {
	struct loop *loop;
	struct report_environment environment;
	struct http_client *http;
	bool trusts; /* has TLS settings */
};

struct report_call {
	struct report_transport *transport;
	struct http_exchange *exchange;
	report_call_done *done;
	void *context;
	struct buffer body;
	int status; /* of the reply, once its head is there */
};

/* ---- transport ---- */

static const char *process_variable(void *context, const char *name)
{
	(void)context;
	return getenv(name); // NOLINT(concurrency-mt-unsafe): nothing of ours changes the environment
}

struct report_environment report_environment_of_process(void)
{
	return (struct report_environment){ .get = process_variable };
}

const char *report_environment_get(const struct report_environment *environment, const char *name)
{
	const char *value = environment->get(environment->context, name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

struct report_transport *report_transport_create(struct loop *loop, const struct report_environment *environment,
                                                 struct error *err)
{
	struct report_transport *transport = memory_allocate(sizeof *transport);

	if (transport == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for sending events");
		return NULL;
	}
	*transport = (struct report_transport){ .loop = loop, .environment = *environment };
	transport->http = http_client_create(loop, err);
	if (transport->http == NULL) {
		memory_release(transport);
		return NULL;
	}
	return transport;
}

void report_transport_destroy(struct report_transport *transport)
{
	if (transport == NULL)
		return;
	http_client_destroy(transport->http);
	memory_release(transport);
}

struct loop *report_transport_loop(const struct report_transport *transport)
{
	return transport->loop;
}

const struct report_environment *report_transport_environment(const struct report_transport *transport)
{
	return &transport->environment;
}

void report_append_authority(struct buffer *out, const struct http_origin *origin)
{
	const bool brackets = strchr(origin->host, ':') != NULL;

	buffer_append_format(out, brackets ? "[%s]" : "%s", origin->host);
	if (origin->port != (origin->secure ? 443 : 80))
		buffer_append_format(out, ":%u", (unsigned)origin->port);
}

/* Reads the certificates to trust, unless that is done. */
static bool trust(struct report_transport *transport, struct error *err)
{
	const char *path = report_environment_get(&transport->environment, "SSL_CERT_FILE");
	struct tls_client_options options = { 0 };
	struct tls_settings *settings;
	struct buffer pem;

	if (transport->trusts)
		return true;
	buffer_init(&pem, REPORT_CA_FILE_BYTES);
	if (path != NULL && !file_read(path, &pem, err)) {
		buffer_destroy(&pem);
		return error_wrap(err, "reading SSL_CERT_FILE");
	}
	options.ca_pem = buffer_slice(&pem);
	settings = tls_client_settings_create(transport->loop, &options, err);
	buffer_destroy(&pem);
	if (settings == NULL)
		return error_wrap(err, "no certificates to trust");
	http_client_set_tls(transport->http, settings);
	tls_settings_release(settings);
	transport->trusts = true;
	return true;
}

/* ---- calls ---- */

static void release_call(struct report_call *call)
{
	buffer_destroy(&call->body); /* there are credentials in some */
	memory_release(call);
}

static void conclude(struct report_call *call, const struct report_reply *reply, const struct error *err)
{
	report_call_done *done = call->done;
	void *context = call->context;

	done(context, reply, err);
	release_call(call);
}

static void on_head(void *context, const struct http_response *response)
{
	struct report_call *call = context;

	call->status = response->status;
}

static void on_body(void *context, struct slice bytes)
{
	struct report_call *call = context;
	const size_t room = call->body.limit_bytes - call->body.length;

	/* Nothing beyond the limit is of interest, but reading on keeps the connection. */
	buffer_append_slice(&call->body, slice_from(bytes.data, bytes.length < room ? bytes.length : room));
}

static void on_done(void *context, const struct http_response *response, const struct error *err)
{
	struct report_call *call = context;
	struct report_reply reply = { 0 };

	if (response == NULL) {
		conclude(call, NULL, err);
		return;
	}
	reply.status = response->status;
	reply.fields = response->fields;
	reply.body = buffer_slice(&call->body);
	reply.complete = err == NULL && call->body.length < call->body.limit_bytes;
	conclude(call, &reply, NULL);
}

struct report_call *report_call_start(struct report_transport *transport, const struct http_request *request,
                                      report_call_done *done, void *context, struct error *err)
{
	static const struct http_handler HANDLER = { .on_head = on_head, .on_body = on_body, .on_done = on_done };
	struct http_request limited = *request;
	struct report_call *call;

	if (request->origin.secure && !trust(transport, err))
		return NULL;
	call = memory_allocate(sizeof *call);
	if (call == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a request");
		return NULL;
	}
	*call = (struct report_call){ .transport = transport, .done = done, .context = context };
	if (!secret_buffer_init(&call->body, REPORT_REPLY_BYTES, err))
		goto failed;
	limited.max_body_bytes = REPORT_REPLY_SKIPPED_BYTES;
	call->exchange = http_client_send(transport->http, &limited, &HANDLER, call, err);
	if (call->exchange == NULL)
		goto failed;
	return call;
failed:
	release_call(call);
	return NULL;
}

int report_call_status(const struct report_call *call)
{
	return call != NULL ? call->status : 0;
}

void report_call_cancel(struct report_call *call)
{
	if (call == NULL)
		return;
	http_exchange_cancel(call->exchange);
	release_call(call);
}
