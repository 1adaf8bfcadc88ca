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

/* A service account whose CA can't be used goes on with the system's (spec protocols 9.1.2); a kubeconfig is wrong then. */
static bool trust_at_first(struct kube_client *client, bool from_kubeconfig, struct error *err)
{
	struct slice ca = kube_credentials_ca(&client->credentials);

	if (from_kubeconfig)
		return trust(client, ca, err) || error_wrap(err, "the kubeconfig's certificates");
	if (ca.length > 0) {
		if (trust(client, ca, err))
			return true;
		log_error(&client->credentials.logger, "Unable to use the API server's CA certificates",
		          log_text("path", client->credentials.ca_path), log_text("fallback", "the system's"),
		          log_error_field(err));
	}
	return trust(client, (struct slice){ 0 }, err);
}

static bool use_service_account(struct kube_client *client, const struct kube_client_options *options,
                                struct error *err)
{
	const char *folder = options->credentials_dir != NULL ? options->credentials_dir : KUBE_CREDENTIALS_DIR;

	return set_origin(client, options, err) &&
	       kube_credentials_init(&client->credentials, folder, &options->logger, loop_now_ns(client->loop), err);
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
	                                err);
	kubeconfig_destroy(&kubeconfig);
	return ok;
}

struct kube_client *kube_client_create(struct loop *loop, const struct kube_client_options *options, struct error *err)
{
	struct kube_client *client = memory_allocate(sizeof *client);
	bool from_kubeconfig = options->kubeconfig != NULL;

	if (client == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the Kubernetes client");
		return NULL;
	}
	client->loop = loop;
	buffer_init_secret(&client->authorization, KUBE_TOKEN_BYTES + sizeof "Bearer ");
	if (!(from_kubeconfig ? use_kubeconfig(client, options, err) : use_service_account(client, options, err)) ||
	    !set_authorization(client, err))
		goto fail;
	client->user_agent = memory_copy_text(options->user_agent, strlen(options->user_agent));
	if (client->user_agent == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the Kubernetes client");
		goto fail;
	}
	client->http = http_client_create(loop, err);
	if (client->http == NULL || (client->origin.secure && !trust_at_first(client, from_kubeconfig, err)))
		goto fail;
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

void kube_client_refresh_ca(struct kube_client *client)
{
	struct error err;
	bool changed;

	if (!client->origin.secure)
		return;
	changed = kube_credentials_reload_ca(&client->credentials);
	changed |= kube_credentials_reload_certificate(&client->credentials);
	if (!changed)
		return;
	if (trust(client, kube_credentials_ca(&client->credentials), &err))
		log_info(&client->credentials.logger, "The API server's CA certificates have changed",
		         log_text("path", client->credentials.ca_path));
	else
		log_error(&client->credentials.logger, "Unable to use the API server's new CA certificates",
		          log_text("path", client->credentials.ca_path), log_text("fallback", "those used before"),
		          log_error_field(&err));
}

void kube_client_refresh(struct kube_client *client, bool now)
{
	uint64_t now_ns = loop_now_ns(client->loop);
	struct error err;

	if (!now && !kube_credentials_token_is_due(&client->credentials, now_ns))
		return;
	kube_client_refresh_ca(client);
	if (!kube_credentials_reload_token(&client->credentials, now_ns))
		return;
	client->token_number++;
	if (!set_authorization(client, &err))
		log_error(&client->credentials.logger, "Unable to use the service account token",
		          log_error_field(&err));
}
