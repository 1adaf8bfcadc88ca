#include "kube/client.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "kube/client_internal.h"

static const char UNDEFINED[] =
	"unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined";

static bool set_origin(struct kube_client *client, const struct kube_client_options *options, struct error *err)
{
	struct http_origin *origin = &client->origin;

	if (options->host == NULL || options->host[0] == '\0' || options->port == 0)
		return error_set(err, ERROR_SYNTAX, "%s", UNDEFINED);
	if (strlen(options->host) >= sizeof origin->host)
		return error_set(err, ERROR_LIMIT, "KUBERNETES_SERVICE_HOST is over %d bytes", NET_HOST_BYTES - 1);
	snprintf(origin->host, sizeof origin->host, "%s", options->host);
	origin->port = options->port;
	origin->secure = !options->plain;
	return true;
}

static bool set_authorization(struct kube_client *client, struct error *err)
{
	struct slice token = kube_credentials_token(&client->credentials);

	buffer_clear(&client->authorization);
	if (token.length > 0) {
		buffer_append_text(&client->authorization, "Bearer ");
		buffer_append_slice(&client->authorization, token);
	}
	return buffer_check(&client->authorization, "the Authorization field", err);
}

/*
 * New connections trust these certificates alone; without any, the system's.
 */
static bool trust(struct kube_client *client, struct slice ca, struct error *err)
{
	struct tls_client_options options = {
		.ca_pem = ca,
		.certificate_pem = kube_credentials_certificate(&client->credentials),
		.key_pem = kube_credentials_key(&client->credentials),
		.insecure_skip_verify = client->insecure_skip_verify,
		.server_name = client->server_name,
	};
	struct tls_settings *tls = tls_client_settings_create(client->loop, &options, err);

	if (tls == NULL)
		return false;
	http_client_set_tls(client->http, tls);
	tls_settings_release(tls);
	return true;
}

/* A service account whose CA can't be used goes on with the system's (spec protocols 9.1.2). */
static bool trust_service_account(struct kube_client *client, struct error *err)
{
	struct slice ca = kube_credentials_ca(&client->credentials);

	if (ca.length > 0) {
		if (trust(client, ca, err))
			return true;
		log_error(&client->credentials.logger, "Unable to use the API server's CA certificates",
		          log_text("path", client->credentials.ca_path), log_text("fallback", "the system's"),
		          log_error_field(err));
	}
	return trust(client, (struct slice){ 0 }, err);
}

/* Whether the CA is what can't be used, rather than the client's certificate or key. */
static bool ca_is_bad(struct kube_client *client)
{
	const struct tls_client_options options = { .ca_pem = kube_credentials_ca(&client->credentials) };
	struct error ignored;
	struct tls_settings *tls = tls_client_settings_create(client->loop, &options, &ignored);

	if (tls != NULL)
		tls_settings_release(tls);
	return tls == NULL;
}

/* What can't be used makes a kubeconfig wrong. */
static bool trust_kubeconfig(struct kube_client *client, const struct kubeconfig *kubeconfig, struct error *err)
{
	if (trust(client, kube_credentials_ca(&client->credentials), err))
		return true;
	return error_wrap(err, "%s", ca_is_bad(client) ? kubeconfig->ca.place : kubeconfig->certificate.place);
}

static bool use_service_account(struct kube_client *client, const struct kube_client_options *options,
                                struct error *err)
{
	const char *folder = options->credentials_dir != NULL ? options->credentials_dir : KUBE_CREDENTIALS_DIR;

	return set_origin(client, options, err) &&
	       kube_credentials_init(&client->credentials, folder, &options->logger, loop_now_ns(client->loop), err) &&
	       (!client->origin.secure || trust_service_account(client, err));
}

static bool use_kubeconfig(struct kube_client *client, const struct kube_client_options *options, struct error *err)
{
	struct kubeconfig kubeconfig;
	bool ok;

	if (!kubeconfig_load(options->kubeconfig, &kubeconfig, err))
		return false;
	memcpy(client->origin.host, kubeconfig.host, sizeof client->origin.host);
	client->origin.port = kubeconfig.port;
	client->origin.secure = kubeconfig.secure;
	memcpy(client->path_prefix, kubeconfig.path_prefix, sizeof client->path_prefix);
	memcpy(client->server_name, kubeconfig.server_name, sizeof client->server_name);
	client->insecure_skip_verify = kubeconfig.insecure_skip_verify;
	if (kubeconfig.secure && kubeconfig.insecure_skip_verify)
		log_warn(
			&options->logger,
			"The kubeconfig says insecure-skip-tls-verify: whoever is on the way to the API server can read "
			"our token and answer in its place",
			log_text("host", client->origin.host));
	ok = kube_credentials_init_from(&client->credentials, &kubeconfig, &options->logger, loop_now_ns(client->loop),
	                                err) &&
	     (!client->origin.secure || trust_kubeconfig(client, &kubeconfig, err));
	kubeconfig_destroy(&kubeconfig);
	return ok;
}

struct kube_client *kube_client_create(struct loop *loop, const struct kube_client_options *options, struct error *err)
{
	struct kube_client *client = memory_allocate(sizeof *client);
	if (client == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the Kubernetes client");
		return NULL;
	}
	client->loop = loop;
	buffer_init_secret(&client->authorization, KUBE_TOKEN_BYTES + sizeof "Bearer ");
	client->http = http_client_create(loop, err);
	if (client->http == NULL ||
	    !(options->kubeconfig != NULL ? use_kubeconfig(client, options, err)
	                                  : use_service_account(client, options, err)) ||
	    !set_authorization(client, err))
		goto fail;
	client->user_agent = memory_copy_text(options->user_agent, strlen(options->user_agent));
	if (client->user_agent == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the Kubernetes client");
		goto fail;
	}
	return client;
fail:
	kube_client_destroy(client);
	return NULL;
}

void kube_client_destroy(struct kube_client *client)
{
	if (client == NULL)
		return;
	client->closing = true;
	while (client->first_call != NULL)
		kube_call_cancel(client->first_call);
	if (client->http != NULL)
		http_client_destroy(client->http);
	kube_credentials_destroy(&client->credentials);
	buffer_destroy(&client->authorization);
	memory_release(client->user_agent);
	memory_release(client);
}

/* Returns whether new connections are made in another way now. */
static bool refresh_certificates(struct kube_client *client)
{
	const struct kube_credentials *credentials = &client->credentials;
	struct error err;
	bool ca_changed, changed;

	if (!client->origin.secure)
		return false;
	ca_changed = kube_credentials_reload_ca(&client->credentials);
	changed = kube_credentials_reload_certificate(&client->credentials);
	if (!ca_changed && !changed)
		return false;
	if (!trust(client, kube_credentials_ca(credentials), &err)) {
		log_error(&credentials->logger,
		          ca_changed ? "Unable to use the API server's new CA certificates"
		                     : "Unable to use the new client certificate",
		          log_text("path", ca_changed ? credentials->ca_path : credentials->certificate_path),
		          log_text("fallback", "those used before"), log_error_field(&err));
		return false;
	}
	if (ca_changed)
		log_info(&credentials->logger, "The API server's CA certificates have changed",
		         log_text("path", credentials->ca_path));
	if (changed)
		log_info(&credentials->logger, "The client certificate has changed",
		         log_text("path", credentials->certificate_path));
	return true;
}

void kube_client_refresh_ca(struct kube_client *client)
{
	(void)refresh_certificates(client);
}

void kube_client_refresh(struct kube_client *client, bool now)
{
	uint64_t now_ns = loop_now_ns(client->loop);
	struct error err;

	if (!now && !kube_credentials_token_is_due(&client->credentials, now_ns))
		return;
	if (refresh_certificates(client))
		client->token_number++;
	if (!kube_credentials_reload_token(&client->credentials, now_ns))
		return;
	client->token_number++;
	if (!set_authorization(client, &err))
		log_error(&client->credentials.logger, "Unable to use the service account token",
		          log_error_field(&err));
}
