/*
 * Files are read whole and compared with what is held: they are small, and a comparison of the content can't be
 * fooled by the kubelet's exchanges of symbolic links or by equal time stamps.
 */
#include "kube/credentials.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"

enum { WHITE_SPACE_BYTES = 4096 }; /* around a token */

/* A token goes into a header line as it is: anything but visible ASCII there would let a file write other headers. */
static bool token_is_clean(struct slice token)
{
	for (size_t i = 0; i < token.length; i++)
		if (token.data[i] <= ' ' || token.data[i] > '~')
			return false;
	return true;
}

static bool read_token(const char *path, struct buffer *ret_token, struct error *err)
{
	struct buffer content;
	struct slice token;
	bool ok = false;

	buffer_init_secret(&content, KUBE_TOKEN_BYTES + WHITE_SPACE_BYTES);
	if (!file_read(path, &content, err))
		goto out;
	token = slice_trim(buffer_slice(&content));
	if (token.length == 0) {
		error_set(err, ERROR_SYNTAX, "read empty token from file \"%s\"", path);
		goto out;
	}
	if (!token_is_clean(token)) {
		error_set(err, ERROR_SYNTAX, "the token in %s has characters that can't stand in a header", path);
		goto out;
	}
	buffer_append_slice(ret_token, token);
	ok = buffer_check(ret_token, path, err);
out:
	buffer_destroy(&content);
	return ok;
}

static bool has_content(const struct buffer *content, const char *path, struct error *err)
{
	if (content->length == 0)
		return error_set(err, ERROR_SYNTAX, "%s is empty", path);
	return true;
}

/* Takes over `read` if it differs from `held`; frees what is left over. */
static bool exchange(struct buffer *held, struct buffer *read)
{
	bool differs = !slice_equal(buffer_slice(held), buffer_slice(read));

	if (differs) {
		struct buffer old = *held;

		*held = *read;
		*read = old;
	}
	buffer_destroy(read);
	return differs;
}

static bool load_token(struct kube_credentials *credentials, uint64_t now_ns, bool *ret_changed, struct error *err)
{
	struct buffer token;

	buffer_init_secret(&token, KUBE_TOKEN_BYTES);
	if (!read_token(credentials->token_path, &token, err)) {
		buffer_destroy(&token);
		return false;
	}
	*ret_changed = exchange(&credentials->token, &token);
	credentials->token_read = true;
	credentials->token_read_ns = now_ns;
	credentials->token_failing = false;
	return true;
}

static void report_token(struct kube_credentials *credentials, const struct error *err)
{
	if (!credentials->token_failing)
		log_warn(&credentials->logger, "Unable to read the service account token",
		         log_text("path", credentials->token_path), log_error_field(err));
	credentials->token_failing = true;
}

static bool set_paths(struct kube_credentials *credentials, const char *folder, struct error *err)
{
	int token_length = snprintf(credentials->token_path, sizeof credentials->token_path, "%s/token", folder);
	int ca_length = snprintf(credentials->ca_path, sizeof credentials->ca_path, "%s/ca.crt", folder);

	if (token_length < 0 || ca_length < 0 || token_length >= KUBE_PATH_BYTES || ca_length >= KUBE_PATH_BYTES)
		return error_set(err, ERROR_LIMIT, "the path of the service account folder is over %d bytes",
		                 KUBE_PATH_BYTES);
	return true;
}

static void set_up(struct kube_credentials *credentials, const struct logger *logger)
{
	*credentials = (struct kube_credentials){ .logger = *logger };
	buffer_init_secret(&credentials->token, KUBE_TOKEN_BYTES);
	buffer_init(&credentials->ca, KUBE_CA_BYTES);
	buffer_init(&credentials->certificate, KUBE_CA_BYTES);
	buffer_init_secret(&credentials->key, KUBE_CA_BYTES);
}

bool kube_credentials_init(struct kube_credentials *credentials, const char *folder, const struct logger *logger,
                           uint64_t now_ns, struct error *err)
{
	bool changed;

	set_up(credentials, logger);
	if (!set_paths(credentials, folder, err))
		return false;
	if (!load_token(credentials, now_ns, &changed, err)) {
		if (err->code != ERROR_SYNTAX) {
			kube_credentials_destroy(credentials);
			return false;
		}
		report_token(credentials, err);
	}
	kube_credentials_reload_ca(credentials);
	return true;
}

/* Inline text is taken over, a file is read for the first time. */
static bool take_source(const struct kube_source *source, char path[KUBE_PATH_BYTES], struct buffer *content,
                        struct error *err)
{
	if (source->kind == KUBE_SOURCE_FILE) {
		memcpy(path, source->path, KUBE_PATH_BYTES);
		return (file_read(path, content, err) && has_content(content, path, err)) ||
		       error_wrap(err, "%s", source->place);
	}
	buffer_append_slice(content, buffer_slice(&source->text));
	return buffer_check(content, "credentials of the kubeconfig", err);
}

static bool take_token(struct kube_credentials *credentials, const struct kube_source *source, uint64_t now_ns,
                       struct error *err)
{
	struct slice token = buffer_slice(&source->text);
	bool changed;

	if (source->kind == KUBE_SOURCE_FILE) {
		memcpy(credentials->token_path, source->path, KUBE_PATH_BYTES);
		if (load_token(credentials, now_ns, &changed, err))
			return true;
		if (token.length == 0)
			return error_wrap(err, "%s", source->place);
		report_token(credentials, err);
	}
	if (!token_is_clean(token))
		return error_set(err, ERROR_SYNTAX, "%s: the token has characters that can't stand in a header",
		                 source->place);
	buffer_append_slice(&credentials->token, token);
	return buffer_check(&credentials->token, "the token", err);
}

bool kube_credentials_init_from(struct kube_credentials *credentials, const struct kubeconfig *kubeconfig,
                                const struct logger *logger, uint64_t now_ns, struct error *err)
{
	set_up(credentials, logger);
	if (take_token(credentials, &kubeconfig->token, now_ns, err) &&
	    take_source(&kubeconfig->ca, credentials->ca_path, &credentials->ca, err) &&
	    take_source(&kubeconfig->certificate, credentials->certificate_path, &credentials->certificate, err) &&
	    take_source(&kubeconfig->key, credentials->key_path, &credentials->key, err))
		return true;
	kube_credentials_destroy(credentials);
	return false;
}

void kube_credentials_destroy(struct kube_credentials *credentials)
{
	buffer_destroy(&credentials->token);
	buffer_destroy(&credentials->ca);
	buffer_destroy(&credentials->certificate);
	buffer_destroy(&credentials->key);
}

bool kube_credentials_token_is_due(const struct kube_credentials *credentials, uint64_t now_ns)
{
	if (credentials->token_path[0] == '\0')
		return false;
	if (!credentials->token_read)
		return true;
	return now_ns - credentials->token_read_ns >= (uint64_t)KUBE_TOKEN_MAX_AGE_S * NS_PER_S;
}

bool kube_credentials_reload_token(struct kube_credentials *credentials, uint64_t now_ns)
{
	struct error err;
	bool changed = false;

	if (credentials->token_path[0] == '\0')
		return false;
	if (!load_token(credentials, now_ns, &changed, &err)) {
		report_token(credentials, &err);
		return false;
	}
	return changed;
}

bool kube_credentials_reload_ca(struct kube_credentials *credentials)
{
	struct buffer ca;
	struct error err;

	if (credentials->ca_path[0] == '\0')
		return false;
	buffer_init(&ca, KUBE_CA_BYTES);
	if (!file_read(credentials->ca_path, &ca, &err) || !has_content(&ca, credentials->ca_path, &err)) {
		if (!credentials->ca_failing)
			log_error(
				&credentials->logger, "Unable to read the API server's CA certificates",
				log_text("path", credentials->ca_path),
				log_text("fallback", credentials->ca.length > 0 ? "those read before" : "the system's"),
				log_error_field(&err));
		credentials->ca_failing = true;
		buffer_destroy(&ca);
		return false;
	}
	credentials->ca_failing = false;
	return exchange(&credentials->ca, &ca);
}

/* Certificate and key are replaced one after the other: a pair that doesn't fit is refused later, and read again. */
static bool reload(struct kube_credentials *credentials, const char *path, struct buffer *held)
{
	struct buffer content;
	struct error err;

	buffer_init_secret(&content, KUBE_CA_BYTES);
	if (!file_read(path, &content, &err) || !has_content(&content, path, &err)) {
		if (!credentials->certificate_failing)
			log_warn(&credentials->logger, "Unable to read the client certificate or its key",
			         log_text("path", path), log_error_field(&err));
		credentials->certificate_failing = true;
		buffer_destroy(&content);
		return false;
	}
	credentials->certificate_failing = false;
	return exchange(held, &content);
}

bool kube_credentials_reload_certificate(struct kube_credentials *credentials)
{
	bool changed = false;

	if (credentials->certificate_path[0] != '\0')
		changed |= reload(credentials, credentials->certificate_path, &credentials->certificate);
	if (credentials->key_path[0] != '\0')
		changed |= reload(credentials, credentials->key_path, &credentials->key);
	return changed;
}

struct slice kube_credentials_token(const struct kube_credentials *credentials)
{
	return buffer_slice(&credentials->token);
}

struct slice kube_credentials_ca(const struct kube_credentials *credentials)
{
	return buffer_slice(&credentials->ca);
}

struct slice kube_credentials_certificate(const struct kube_credentials *credentials)
{
	return buffer_slice(&credentials->certificate);
}

struct slice kube_credentials_key(const struct kube_credentials *credentials)
{
	return buffer_slice(&credentials->key);
}
