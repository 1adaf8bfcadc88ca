/*
 * YAML becomes JSON, JSON the generated structs; then three lookups by name (context, its cluster, its user), each through
 * the files in their order.
 */
#include "kube/kubeconfig.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/memory.h"
#include "codec/yaml.h"
#include "gen/kubeconfig.gen.h"
#include "net/base64.h"
#include "net/http_client.h"

/* Decoded structs and tokens of the JSON text. */
enum { ARENA_BYTES = 12 * KUBE_CONFIG_BYTES };

struct file {
	char path[KUBE_PATH_BYTES];
	struct buffer json;
	struct arena arena;
	struct kubeconfig_config config;
};

struct files {
	struct file *items;
	size_t count;
};

/* ---- reading ---- */

/* Lines of the JSON text would say nothing of the file's. */
static bool decode(struct file *file, struct error *err)
{
	struct slice json = buffer_slice(&file->json);
	struct json_reader reader;

	if (slice_equal_text(json, "null"))
		return true;
	if (json_reader_open(&reader, json, &file->arena, err) &&
	    kubeconfig_config_decode(&reader, &file->config, err) && json_reader_finish(&reader, err))
		return true;
	if (reader.problem.path[0] != '\0')
		error_set(err, ERROR_SYNTAX, "field \"%s\": %s", reader.problem.path, reader.problem.text);
	return false;
}

static bool read_file(struct file *file, struct error *err)
{
	struct buffer text;
	bool ok;

	buffer_init_secret(&text, KUBE_CONFIG_BYTES);
	ok = file_read(file->path, &text, err);
	if (ok)
		ok = (yaml_to_json(buffer_slice(&text), &file->json, err) && decode(file, err)) ||
		     error_wrap(err, "%s", file->path);
	buffer_destroy(&text);
	return ok;
}

static void close_file(struct file *file)
{
	buffer_destroy(&file->json);
	arena_destroy(&file->arena);
}

static void close_files(struct files *files)
{
	for (size_t i = 0; i < files->count; i++)
		close_file(&files->items[i]);
	memory_release(files->items);
}

static bool file_exists(const char *path)
{
	FILE *file = fopen(path, "re");

	if (file != NULL)
		(void)fclose(file);
	return file != NULL;
}

/* Of several files, some may be missing; a single one may not. */
static bool read_files(const char *paths, struct files *files, struct error *err)
{
	struct slice rest = slice_of(paths);
	bool several = memchr(rest.data, ':', rest.length) != NULL;

	files->items = memory_allocate(KUBE_CONFIG_FILES * sizeof *files->items);
	if (files->items == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for kubeconfig files");
	while (rest.length > 0) {
		struct slice path = slice_take_until(&rest, ':');
		struct file *file = &files->items[files->count];

		if (path.length == 0)
			continue;
		if (files->count == KUBE_CONFIG_FILES)
			return error_set(err, ERROR_LIMIT, "over %d kubeconfig files", KUBE_CONFIG_FILES);
		if (path.length >= sizeof file->path)
			return error_set(err, ERROR_LIMIT, "the path of a kubeconfig file is over %d bytes",
			                 KUBE_PATH_BYTES - 1);
		memcpy(file->path, path.data, path.length);
		file->path[path.length] = '\0';
		if (several && !file_exists(file->path))
			continue;
		buffer_init_secret(&file->json, (size_t)2 * KUBE_CONFIG_BYTES);
		arena_init_secret(&file->arena, ARENA_BYTES);
		files->count++;
		if (!read_file(file, err))
			return false;
	}
	if (files->count == 0)
		return error_set(err, ERROR_SYNTAX, "no such kubeconfig file: %s", paths);
	return true;
}

/* ---- looking up ---- */

static struct slice current_context(const struct files *files)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->items[i].config.current_context.length > 0)
			return files->items[i].config.current_context;
	return SLICE("");
}

static const struct kubeconfig_context *find_context(const struct files *files, struct slice name)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct kubeconfig_config *config = &files->items[i].config;

		for (size_t j = 0; j < config->contexts_count; j++)
			if (slice_equal(config->contexts[j].name, name))
				return &config->contexts[j].context;
	}
	return NULL;
}

static const struct kubeconfig_cluster *find_cluster(const struct files *files, struct slice name,
                                                     const struct file **ret_file)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct kubeconfig_config *config = &files->items[i].config;

		*ret_file = &files->items[i];
		for (size_t j = 0; j < config->clusters_count; j++)
			if (slice_equal(config->clusters[j].name, name))
				return &config->clusters[j].cluster;
	}
	return NULL;
}

static const struct kubeconfig_user *find_user(const struct files *files, struct slice name,
                                               const struct file **ret_file)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct kubeconfig_config *config = &files->items[i].config;

		*ret_file = &files->items[i];
		for (size_t j = 0; j < config->users_count; j++)
			if (slice_equal(config->users[j].name, name))
				return &config->users[j].user;
	}
	return NULL;
}

/* ---- taking over ---- */

/* A path in a kubeconfig is relative to the kubeconfig's folder. */
static bool take_path(const struct file *file, const char *field, struct slice path, struct kube_source *source,
                      struct error *err)
{
	const char *slash = strrchr(file->path, '/');
	int folder = path.data[0] == '/' || slash == NULL ? 0 : (int)(slash - file->path + 1);
	int length = snprintf(source->path, sizeof source->path, "%.*s%.*s", folder, file->path, SLICE_ARGS(path));

	if (length < 0 || (size_t)length >= sizeof source->path || strlen(source->path) != (size_t)length)
		return error_set(err, ERROR_LIMIT, "%s: field \"%s\": the path is over %d bytes, or no path",
		                 file->path, field, KUBE_PATH_BYTES - 1);
	source->kind = KUBE_SOURCE_FILE;
	return true;
}

static bool take_base64(const struct file *file, const char *field, struct slice data, struct kube_source *source,
                        struct error *err)
{
	struct error cause;

	if (!base64_decode(data, &source->text, &cause))
		return error_set(err, cause.code, "%s: field \"%s\" is no base64", file->path, field);
	source->kind = KUBE_SOURCE_INLINE;
	return true;
}

/* Data wins over a file, as for kubectl. */
static bool take_pem(const struct file *file, const char *field, struct slice path, struct slice data,
                     struct kube_source *source, struct error *err)
{
	char data_field[64];

	buffer_init_secret(&source->text, KUBE_CA_BYTES);
	(void)snprintf(data_field, sizeof data_field, "%s-data", field);
	if (data.length > 0)
		return take_base64(file, data_field, data, source, err);
	if (path.length > 0)
		return take_path(file, field, path, source, err);
	return true;
}

static bool take_server(const struct file *file, const struct kubeconfig_cluster *cluster, struct kubeconfig *ret,
                        struct error *err)
{
	struct http_origin origin;
	struct slice path;

	if (!http_url_parse(cluster->server, &origin, &path, err))
		return error_wrap(err, "%s: field \"server\"", file->path);
	while (path.length > 0 && path.data[path.length - 1] == '/')
		path.length--;
	if (path.length >= sizeof ret->path_prefix || memchr(path.data, '?', path.length) != NULL)
		return error_set(err, ERROR_SYNTAX, "%s: field \"server\": \"%.*s\" can't stand before a path",
		                 file->path, SLICE_ARGS(path));
	memcpy(ret->path_prefix, path.data, path.length);
	memcpy(ret->host, origin.host, sizeof ret->host);
	ret->port = origin.port;
	ret->secure = origin.secure;
	return true;
}

static bool take_cluster(const struct file *file, const struct kubeconfig_cluster *cluster, struct kubeconfig *ret,
                         struct error *err)
{
	if (cluster->proxy_url.length > 0)
		return error_set(err, ERROR_SYNTAX, "%s: field \"proxy-url\": proxies aren't supported", file->path);
	if (cluster->tls_server_name.length >= sizeof ret->server_name)
		return error_set(err, ERROR_LIMIT, "%s: field \"tls-server-name\" is over %d bytes", file->path,
		                 NET_HOST_BYTES - 1);
	if (cluster->tls_server_name.length > 0)
		memcpy(ret->server_name, cluster->tls_server_name.data, cluster->tls_server_name.length);
	ret->insecure_skip_verify = cluster->insecure_skip_tls_verify;
	return take_server(file, cluster, ret, err) &&
	       take_pem(file, "certificate-authority", cluster->certificate_authority,
	                cluster->certificate_authority_data, &ret->ca, err);
}

static bool refuse_unsupported(const struct file *file, const struct kubeconfig_user *user, struct error *err)
{
	const struct {
		const char *field;
		bool present;
		const char *advice;
	} fields[] = {
		{ "exec", user->exec.length > 0,
		  "plugins aren't run; use a token, a token file or a client certificate" },
		{ "auth-provider", user->auth_provider.length > 0,
		  "providers aren't supported; use a token, a token file or a client certificate" },
		{ "username", user->username.length > 0, "Kubernetes knows no passwords any more; use a token" },
		{ "as", user->act_as.length > 0, "impersonation isn't supported" },
	};

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (fields[i].present)
			return error_set(err, ERROR_SYNTAX, "%s: field \"%s\": %s", file->path, fields[i].field,
			                 fields[i].advice);
	return true;
}

static bool take_user(const struct file *file, const struct kubeconfig_user *user, struct kubeconfig *ret,
                      struct error *err)
{
	struct slice token = slice_trim(user->token);

	if (!refuse_unsupported(file, user, err))
		return false;
	buffer_init_secret(&ret->token.text, KUBE_TOKEN_BYTES);
	if (user->token_file.length > 0) { /* wins over a token, as for kubectl */
		if (!take_path(file, "tokenFile", user->token_file, &ret->token, err))
			return false;
	} else if (token.length > 0) {
		buffer_append_slice(&ret->token.text, token);
		if (!buffer_check(&ret->token.text, "the token", err))
			return error_wrap(err, "%s", file->path);
		ret->token.kind = KUBE_SOURCE_INLINE;
	}
	if (!take_pem(file, "client-certificate", user->client_certificate, user->client_certificate_data,
	              &ret->certificate, err) ||
	    !take_pem(file, "client-key", user->client_key, user->client_key_data, &ret->key, err))
		return false;
	if ((ret->certificate.kind == KUBE_SOURCE_NONE) != (ret->key.kind == KUBE_SOURCE_NONE))
		return error_set(err, ERROR_SYNTAX, "%s: fields \"client-certificate\" and \"client-key\" go together",
		                 file->path);
	return true;
}

static bool take_context(const struct files *files, struct kubeconfig *ret, struct error *err)
{
	const char *first = files->items[0].path;
	struct slice name = current_context(files);
	const struct kubeconfig_context *context = find_context(files, name);
	const struct kubeconfig_cluster *cluster;
	const struct kubeconfig_user *user;
	const struct file *file;

	if (name.length == 0)
		return error_set(err, ERROR_SYNTAX, "%s: field \"current-context\" is missing or empty", first);
	if (context == NULL)
		return error_set(err, ERROR_SYNTAX, "%s: there is no context \"%.*s\"", first, SLICE_ARGS(name));
	cluster = find_cluster(files, context->cluster, &file);
	if (cluster == NULL)
		return error_set(err, ERROR_SYNTAX, "%s: context \"%.*s\": there is no cluster \"%.*s\"", first,
		                 SLICE_ARGS(name), SLICE_ARGS(context->cluster));
	if (!take_cluster(file, cluster, ret, err))
		return false;
	if (context->user.length == 0)
		return true;
	user = find_user(files, context->user, &file);
	if (user == NULL)
		return error_set(err, ERROR_SYNTAX, "%s: context \"%.*s\": there is no user \"%.*s\"", first,
		                 SLICE_ARGS(name), SLICE_ARGS(context->user));
	return take_user(file, user, ret, err);
}

bool kubeconfig_load(const char *paths, struct kubeconfig *ret, struct error *err)
{
	struct files files = { 0 };
	struct kubeconfig kubeconfig = { 0 };
	bool ok = read_files(paths, &files, err) && take_context(&files, &kubeconfig, err);

	close_files(&files);
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
