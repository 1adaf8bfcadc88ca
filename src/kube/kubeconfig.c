/*
 * Three lookups by name through the files (context, its cluster, its user); then what is found is checked and taken over.
 */
#include "kube/kubeconfig.h"

#include <stdio.h>
#include <string.h>

#include "kube/kubeconfig_files.h"
#include "net/base64.h"
#include "net/http_client.h"

/* ---- taking over ---- */

static bool refuse(const struct kubeconfig_entry *entry, const char *field, struct slice value, const char *why,
                   struct error *err)
{
	char place[KUBE_PLACE_BYTES];

	kubeconfig_entry_describe(entry, field, value, place, sizeof place);
	return error_set(err, ERROR_SYNTAX, "%s: %s", place, why);
}

static bool has_nul(struct slice text)
{
	return memchr(text.length > 0 ? text.data : "", '\0', text.length) != NULL;
}

/* A path in a kubeconfig is relative to the kubeconfig's folder. */
static bool take_path(const struct kubeconfig_entry *entry, const char *field, struct slice path,
                      struct kube_source *source, struct error *err)
{
	const char *slash = strrchr(entry->file->path, '/');
	int folder = path.data[0] == '/' || slash == NULL ? 0 : (int)(slash - entry->file->path + 1);
	int length =
		snprintf(source->path, sizeof source->path, "%.*s%.*s", folder, entry->file->path, SLICE_ARGS(path));

	if (has_nul(path) || length < 0 || (size_t)length >= sizeof source->path)
		return refuse(entry, field, path, "the path is too long, or no path", err);
	source->kind = KUBE_SOURCE_FILE;
	return true;
}

static bool take_base64(const struct kubeconfig_entry *entry, const char *field, struct slice data,
                        struct kube_source *source, struct error *err)
{
	struct error cause;

	if (!base64_decode(data, &source->text, &cause)) {
		(void)refuse(entry, field, data, cause.code == ERROR_SYNTAX ? "this is no base64" : cause.text, err);
		err->code = cause.code;
		return false;
	}
	source->kind = KUBE_SOURCE_INLINE;
	return true;
}

/* Data wins over a file, as kubectl says. */
static bool take_pem(const struct kubeconfig_entry *entry, const char *field, struct slice path, struct slice data,
                     struct kube_source *source, struct error *err)
{
	char data_field[64];

	buffer_init_secret(&source->text, KUBE_CA_BYTES);
	(void)snprintf(data_field, sizeof data_field, "%s%s", field, data.length > 0 ? "-data" : "");
	kubeconfig_entry_describe(entry, data_field, data.length > 0 ? data : path, source->place,
	                          sizeof source->place);
	if (data.length > 0)
		return take_base64(entry, data_field, data, source, err);
	if (path.length > 0)
		return take_path(entry, field, path, source, err);
	return true;
}

static bool take_server(const struct kubeconfig_entry *entry, const struct kubeconfig_cluster *cluster,
                        struct kubeconfig *ret, struct error *err)
{
	struct http_origin origin;
	struct slice path;
	struct error cause;

	if (cluster->server.length == 0)
		return refuse(entry, "server", cluster->server, "missing or empty", err);
	if (!http_url_parse(cluster->server, &origin, &path, &cause))
		return refuse(entry, "server", cluster->server, cause.text, err);
	while (path.length > 0 && path.data[path.length - 1] == '/')
		path.length--;
	if (path.length >= sizeof ret->path_prefix || memchr(path.data, '?', path.length) != NULL)
		return refuse(entry, "server", cluster->server,
		              "what follows the host can't stand before the path of a request", err);
	memcpy(ret->path_prefix, path.data, path.length);
	memcpy(ret->host, origin.host, sizeof ret->host);
	ret->port = origin.port;
	ret->secure = origin.secure;
	return true;
}

static bool take_cluster(const struct kubeconfig_entry *entry, const struct kubeconfig_cluster *cluster,
                         struct kubeconfig *ret, struct error *err)
{
	const struct slice name = cluster->tls_server_name;
	bool has_ca = cluster->certificate_authority.length > 0 || cluster->certificate_authority_data.length > 0;

	if (cluster->proxy_url.length > 0)
		return refuse(entry, "proxy-url", cluster->proxy_url, "proxies aren't supported", err);
	if (name.length >= sizeof ret->server_name || has_nul(name))
		return refuse(entry, "tls-server-name", name, "too long, or no name", err);
	if (name.length > 0)
		memcpy(ret->server_name, name.data, name.length);
	ret->insecure_skip_verify = cluster->insecure_skip_tls_verify;
	if (ret->insecure_skip_verify && has_ca) /* likewise kubectl: one of the two isn't meant */
		return refuse(entry, "insecure-skip-tls-verify", SLICE(""),
		              "it can't be true where a certificate-authority stands", err);
	return take_server(entry, cluster, ret, err) &&
	       take_pem(entry, "certificate-authority", cluster->certificate_authority,
	                cluster->certificate_authority_data, &ret->ca, err);
}

static bool refuse_unsupported(const struct kubeconfig_entry *entry, const struct kubeconfig_user *user,
                               struct error *err)
{
	static const char PASSWORDS[] = "Kubernetes knows no passwords any more; use a token";
	static const char IMPERSONATION[] = "impersonation isn't supported";
	const struct {
		const char *field;
		struct slice value;
		const char *advice;
	} fields[] = {
		{ "exec", user->exec, "plugins aren't run; use a token, a token file or a client certificate" },
		{ "auth-provider", user->auth_provider,
		  "providers aren't supported; use a token, a token file or a client certificate" },
		{ "username", user->username, PASSWORDS },
		{ "password", user->password, PASSWORDS },
		{ "as", user->act_as, IMPERSONATION },
		{ "as-uid", user->act_as_uid, IMPERSONATION },
		{ "as-groups", user->act_as_groups, IMPERSONATION },
		{ "as-user-extra", user->act_as_user_extra, IMPERSONATION },
	};

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (fields[i].value.length > 0 && !slice_equal_text(fields[i].value, "[]"))
			return refuse(entry, fields[i].field, fields[i].value, fields[i].advice, err);
	return true;
}

/* A token file wins over a token, as for kubectl; the token is for the time in which the file can't be read. */
static bool take_token(const struct kubeconfig_entry *entry, const struct kubeconfig_user *user,
                       struct kube_source *source, struct error *err)
{
	struct slice token = slice_trim(user->token);
	bool is_file = user->token_file.length > 0;

	buffer_init_secret(&source->text, KUBE_TOKEN_BYTES);
	kubeconfig_entry_describe(entry, is_file ? "tokenFile" : "token", is_file ? user->token_file : user->token,
	                          source->place, sizeof source->place);
	buffer_append_slice(&source->text, token);
	if (!buffer_check(&source->text, "the token", err))
		return error_wrap(err, "%s", source->place);
	if (is_file)
		return take_path(entry, "tokenFile", user->token_file, source, err);
	if (token.length > 0)
		source->kind = KUBE_SOURCE_INLINE;
	return true;
}

static bool take_user(const struct kubeconfig_entry *entry, const struct kubeconfig_user *user, struct kubeconfig *ret,
                      struct error *err)
{
	bool has_key;

	if (!refuse_unsupported(entry, user, err) || !take_token(entry, user, &ret->token, err) ||
	    !take_pem(entry, "client-certificate", user->client_certificate, user->client_certificate_data,
	              &ret->certificate, err) ||
	    !take_pem(entry, "client-key", user->client_key, user->client_key_data, &ret->key, err))
		return false;
	has_key = ret->key.kind != KUBE_SOURCE_NONE;
	if ((ret->certificate.kind != KUBE_SOURCE_NONE) != has_key)
		return refuse(entry, has_key ? "client-certificate" : "client-key", SLICE(""),
		              "missing; \"client-certificate\" and \"client-key\" go together", err);
	return true;
}

static struct slice current_context(const struct kubeconfig_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->items[i].config.current_context.length > 0)
			return files->items[i].config.current_context;
	return SLICE("");
}

static bool take_context(const struct kubeconfig_files *files, struct kubeconfig *ret, struct error *err)
{
	struct slice name = current_context(files);
	const struct kubeconfig_context *context;
	const struct kubeconfig_cluster *cluster;
	const struct kubeconfig_user *user;
	struct kubeconfig_entry entry;

	if (name.length == 0)
		return error_set(err, ERROR_SYNTAX, "%s: field \"current-context\" is missing or empty",
		                 files->items[0].path);
	context = kubeconfig_files_context(files, name, &entry, err);
	if (context == NULL)
		return false;
	cluster = kubeconfig_files_cluster(files, context->cluster, &entry, err);
	if (cluster == NULL)
		return error_wrap(err, "context \"%.*s\"", SLICE_ARGS(name));
	if (!take_cluster(&entry, cluster, ret, err))
		return false;
	if (context->user.length == 0)
		return true;
	user = kubeconfig_files_user(files, context->user, &entry, err);
	if (user == NULL)
		return error_wrap(err, "context \"%.*s\"", SLICE_ARGS(name));
	return take_user(&entry, user, ret, err);
}

bool kubeconfig_load(const char *paths, struct kubeconfig *ret, struct error *err)
{
	struct kubeconfig_files files = { 0 };
	struct kubeconfig kubeconfig = { 0 };
	bool ok = kubeconfig_files_read(paths, &files, err) && take_context(&files, &kubeconfig, err);

	kubeconfig_files_close(&files);
	if (ok)
		*ret = kubeconfig;
	else
		kubeconfig_destroy(&kubeconfig);
	return ok;
}

void kubeconfig_destroy(struct kubeconfig *kubeconfig)
{
	buffer_destroy(&kubeconfig->ca.text);
	buffer_destroy(&kubeconfig->token.text);
	buffer_destroy(&kubeconfig->certificate.text);
	buffer_destroy(&kubeconfig->key.text);
}
