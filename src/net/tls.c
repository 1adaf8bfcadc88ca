#include "net/tls.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "net/limits.h"
#include "net/tls_hooks.h"
#include "net/tls_internal.h"

static const char SYSTEM_ROOTS[] = "/etc/ssl/certs/ca-certificates.crt";

/* ---- inputs ---- */

/* The library wants PEM with its NUL. */
static char *copy_pem(struct slice pem, struct error *err)
{
	char *copy = memory_copy_text(pem.data, pem.length);

	if (copy == NULL)
		error_set(err, ERROR_NO_MEMORY, "no memory");
	return copy;
}

static void release_pem(char *copy, size_t length)
{
	if (copy != NULL)
		mbedtls_platform_zeroize(copy, length);
	memory_release(copy);
}

/* Reads certificates. Of those to trust, some may be of kinds we don't know; of our own, none. */
static bool read_certificates(mbedtls_x509_crt *ret_certificates, struct slice pem, bool all, struct error *err)
{
	char *copy;

	if (!slice_contains(pem, SLICE("-----BEGIN CERTIFICATE-----")))
		return error_set(err, ERROR_SYNTAX, "there is no certificate in PEM form");
	copy = copy_pem(pem, err);
	if (copy == NULL)
		return false;

	int result = mbedtls_x509_crt_parse(ret_certificates, (const unsigned char *)copy, pem.length + 1);

	memory_release(copy);
	if (result < 0) {
		tls_error_set_code(err, result, "reading certificates");
		if (err->code != ERROR_NO_MEMORY)
			err->code = ERROR_SYNTAX;
		return false;
	}
	if (result > 0 && all)
		return error_set(err, ERROR_SYNTAX, "%d certificates of the chain can't be read", result);
	return true;
}

static bool read_key(struct tls_settings *settings, struct slice pem, struct error *err)
{
	char *copy;

	if (!slice_contains(pem, SLICE("PRIVATE KEY-----")))
		return error_set(err, ERROR_SYNTAX, "there is no private key in PEM form");
	copy = copy_pem(pem, err);
	if (copy == NULL)
		return false;

	int result = mbedtls_pk_parse_key(&settings->key, (const unsigned char *)copy, pem.length + 1, NULL, 0,
	                                  tls_hooks_random, NULL);

	release_pem(copy, pem.length);
	if (result == MBEDTLS_ERR_PK_PASSWORD_REQUIRED)
		return error_set(err, ERROR_SYNTAX, "the private key is encrypted");
	if (result != 0) {
		tls_error_set_code(err, result, "reading the private key");
		if (err->code != ERROR_NO_MEMORY)
			err->code = ERROR_SYNTAX;
		return false;
	}
	return true;
}

/* Our certificate and key, as `whose` in texts. */
static bool add_identity(struct tls_settings *settings, const char *whose, struct slice certificate, struct slice key,
                         struct error *err)
{
	if (!read_certificates(&settings->chain, certificate, true, err))
		return error_wrap(err, "%s certificate", whose);
	if (!read_key(settings, key, err))
		return error_wrap(err, "%s key", whose);

	int result = mbedtls_pk_check_pair(&settings->chain.pk, &settings->key, tls_hooks_random, NULL);

	if (result != 0 && !tls_error_is_memory(result))
		return error_set(err, ERROR_SYNTAX, "%s key doesn't belong to the certificate", whose);
	if (result == 0)
		result = mbedtls_ssl_conf_own_cert(&settings->config, &settings->chain, &settings->key);

	return result == 0 || tls_error_set_code(err, result, "using the certificate");
}

static bool add_system_roots(struct tls_settings *settings, struct error *err)
{
	struct buffer pem;

	buffer_init(&pem, NET_CA_FILE_BYTES);

	bool added = file_read(SYSTEM_ROOTS, &pem, err) &&
	             read_certificates(&settings->trusted, buffer_slice(&pem), false, err);

	buffer_destroy(&pem);
	return added;
}

static bool add_trust(struct tls_settings *settings, const char *whose, struct slice ca_pem, struct error *err)
{
	bool added = ca_pem.length > 0 ? read_certificates(&settings->trusted, ca_pem, false, err)
	                               : add_system_roots(settings, err);

	if (!added)
		return error_wrap(err, "%s", whose);
	mbedtls_ssl_conf_ca_chain(&settings->config, &settings->trusted, NULL);
	mbedtls_ssl_conf_authmode(&settings->config, MBEDTLS_SSL_VERIFY_REQUIRED);
	return true;
}

/* ---- settings ---- */

static void destroy_settings(struct tls_settings *settings)
{
	tls_sessions_destroy(&settings->sessions);
	mbedtls_ssl_config_free(&settings->config);
	mbedtls_ssl_ticket_free(&settings->tickets);
	mbedtls_x509_crt_free(&settings->trusted);
	mbedtls_x509_crt_free(&settings->chain);
	mbedtls_pk_free(&settings->key);
	memory_release(settings);
}

static struct tls_settings *create_settings(struct loop *loop, int endpoint, struct error *err)
{
	struct tls_settings *settings = memory_allocate(sizeof *settings);

	if (settings == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for TLS settings");
		return NULL;
	}
	settings->loop = loop;
	settings->references = 1;
	table_init(&settings->sessions);
	mbedtls_ssl_config_init(&settings->config);
	mbedtls_ssl_ticket_init(&settings->tickets);
	mbedtls_x509_crt_init(&settings->trusted);
	mbedtls_x509_crt_init(&settings->chain);
	mbedtls_pk_init(&settings->key);

	int result = mbedtls_ssl_config_defaults(&settings->config, endpoint, MBEDTLS_SSL_TRANSPORT_STREAM,
	                                         MBEDTLS_SSL_PRESET_DEFAULT);

	if (result != 0) {
		tls_error_set_code(err, result, "TLS settings");
		destroy_settings(settings);
		return NULL;
	}
	mbedtls_ssl_conf_rng(&settings->config, tls_hooks_random, NULL);
	mbedtls_ssl_conf_min_tls_version(&settings->config, MBEDTLS_SSL_VERSION_TLS1_2);
	mbedtls_ssl_conf_max_tls_version(&settings->config, MBEDTLS_SSL_VERSION_TLS1_3);
	return settings;
}

static bool set_up_client(struct tls_settings *settings, const struct tls_client_options *options, struct error *err)
{
	static const char *PROTOCOLS[] = { "http/1.1", NULL };
	int result = mbedtls_ssl_conf_alpn_protocols(&settings->config, PROTOCOLS);

	if (result != 0)
		return tls_error_set_code(err, result, "TLS settings");
	mbedtls_ssl_conf_session_tickets(&settings->config, MBEDTLS_SSL_SESSION_TICKETS_ENABLED);
	mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(&settings->config,
	                                                         MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED);
	if (options->server_name != NULL)
		(void)snprintf(settings->server_name, sizeof settings->server_name, "%s", options->server_name);
	if (options->insecure_skip_verify)
		mbedtls_ssl_conf_authmode(&settings->config, MBEDTLS_SSL_VERIFY_NONE);
	else if (!add_trust(settings, "certificates to trust", options->ca_pem, err))
		return false;
	return options->certificate_pem.length == 0 ||
	       add_identity(settings, "client", options->certificate_pem, options->key_pem, err);
}

static bool set_up_server(struct tls_settings *settings, const struct tls_server_options *options, struct error *err)
{
	int result = mbedtls_ssl_ticket_setup(&settings->tickets, tls_hooks_random, NULL, MBEDTLS_CIPHER_AES_256_GCM,
	                                      NET_TLS_TICKET_LIFETIME_S);

	if (result != 0)
		return tls_error_set_code(err, result, "TLS tickets");
	mbedtls_ssl_conf_session_tickets_cb(&settings->config, mbedtls_ssl_ticket_write, mbedtls_ssl_ticket_parse,
	                                    &settings->tickets);
	mbedtls_ssl_conf_new_session_tickets(&settings->config, 1);
	if (options->client_ca_pem.length > 0 &&
	    !add_trust(settings, "certificates to trust clients by", options->client_ca_pem, err))
		return false;
	return add_identity(settings, "server", options->certificate_pem, options->key_pem, err);
}

struct tls_settings *tls_client_settings_create(struct loop *loop, const struct tls_client_options *options,
                                                struct error *err)
{
	struct loop *before = tls_hooks_enter(loop);
	struct tls_settings *settings =
		tls_hooks_install(err) ? create_settings(loop, MBEDTLS_SSL_IS_CLIENT, err) : NULL;

	if (settings != NULL && !set_up_client(settings, options, err)) {
		destroy_settings(settings);
		settings = NULL;
	}
	tls_hooks_leave(before);
	return settings;
}

struct tls_settings *tls_server_settings_create(struct loop *loop, const struct tls_server_options *options,
                                                struct error *err)
{
	struct loop *before = tls_hooks_enter(loop);
	struct tls_settings *settings =
		tls_hooks_install(err) ? create_settings(loop, MBEDTLS_SSL_IS_SERVER, err) : NULL;

	if (settings != NULL && !set_up_server(settings, options, err)) {
		destroy_settings(settings);
		settings = NULL;
	}
	tls_hooks_leave(before);
	return settings;
}

struct tls_settings *tls_settings_hold(struct tls_settings *settings)
{
	settings->references++;
	return settings;
}

void tls_settings_release(struct tls_settings *settings)
{
	if (settings != NULL && --settings->references == 0)
		destroy_settings(settings);
}

void tls_settings_limit_to_1_2(struct tls_settings *settings)
{
	mbedtls_ssl_conf_max_tls_version(&settings->config, MBEDTLS_SSL_VERSION_TLS1_2);
}
