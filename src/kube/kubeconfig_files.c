/*
 * YAML becomes JSON, line by line, and JSON the generated structs. Values mostly lie where they stand in the JSON, which is
 * how their lines are found.
 */
#include "kube/kubeconfig_files.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "codec/yaml.h"

/* Decoded structs and tokens of the JSON text. */
enum { ARENA_BYTES = 12 * KUBE_CONFIG_BYTES };

/* ---- reading ---- */

static bool decode(struct kubeconfig_file *file, enum json_problem_kind *ret_problem, struct error *err)
{
	struct json_reader reader;
	bool ok = json_reader_open(&reader, buffer_slice(&file->json), &file->arena, err) &&
	          kubeconfig_config_decode(&reader, &file->config, err) && json_reader_finish(&reader, err);

	*ret_problem = reader.problem.kind;
	return ok;
}

/* What begins as JSON may be JSON that is no YAML (escapes of two halves), or YAML in flow style that is no JSON. */
static bool decode_json(struct kubeconfig_file *file, struct slice text, bool *ret_is_json, struct error *err)
{
	struct slice trimmed = slice_trim(text);
	enum json_problem_kind problem = JSON_PROBLEM_RESOURCE;
	bool ok;

	*ret_is_json = false;
	if (trimmed.length == 0 || trimmed.data[0] != '{')
		return false;
	buffer_append_slice(&file->json, text);
	ok = buffer_check(&file->json, "the text", err) && decode(file, &problem, err);
	*ret_is_json = ok || (problem != JSON_PROBLEM_SYNTAX && problem != JSON_PROBLEM_END &&
	                      problem != JSON_PROBLEM_TRAILING);
	return ok;
}

static bool decode_text(struct kubeconfig_file *file, struct slice text, struct error *err)
{
	enum json_problem_kind ignored;
	bool is_json;
	bool ok = decode_json(file, text, &is_json, err);

	if (is_json)
		return ok;
	buffer_destroy(&file->json);
	buffer_init_secret(&file->json, (size_t)2 * KUBE_CONFIG_BYTES);
	arena_reset(&file->arena);
	memset(&file->config, 0, sizeof file->config);
	if (!yaml_to_json(text, &file->json, err))
		return false;
	/* A file with nothing in it. */
	return slice_equal_text(slice_trim(buffer_slice(&file->json)), "null") || decode(file, &ignored, err);
}

static bool read_file(struct kubeconfig_file *file, struct error *err)
{
	struct buffer text;
	int descriptor = file_open(file->path, err);
	bool ok;

	if (descriptor < 0)
		return false;
	buffer_init_secret(&text, KUBE_CONFIG_BYTES);
	ok = file_read_and_close(descriptor, file->path, &text, err) &&
	     (decode_text(file, buffer_slice(&text), err) || error_wrap(err, "%s", file->path));
	buffer_destroy(&text);
	return ok;
}

static bool is_missing(const char *path)
{
	return access(path, F_OK) != 0 && errno == ENOENT;
}

static bool is_known(const struct kubeconfig_files *files, struct slice path)
{
	for (size_t i = 0; i < files->count; i++)
		if (slice_equal_text(path, files->items[i].path))
			return true;
	return false;
}

/* Of several files, some may be missing. */
static bool add_file(struct kubeconfig_files *files, struct slice path, bool may_be_missing, struct error *err)
{
	struct kubeconfig_file *file = &files->items[files->count];

	if (path.length == 0 || is_known(files, path))
		return true;
	if (files->count == KUBE_CONFIG_FILES)
		return error_set(err, ERROR_LIMIT, "over %d kubeconfig files", KUBE_CONFIG_FILES);
	if (path.length >= sizeof file->path)
		return error_set(err, ERROR_LIMIT, "the path of a kubeconfig file is over %d bytes",
		                 KUBE_PATH_BYTES - 1);
	memcpy(file->path, path.data, path.length);
	file->path[path.length] = '\0';
	if (may_be_missing && is_missing(file->path))
		return true;
	buffer_init_secret(&file->json, (size_t)2 * KUBE_CONFIG_BYTES);
	arena_init_secret(&file->arena, ARENA_BYTES);
	files->count++;
	return read_file(file, err);
}

bool kubeconfig_files_read(const char *paths, struct kubeconfig_files *files, struct error *err)
{
	struct slice rest = slice_of(paths);
	bool several = strchr(paths, ':') != NULL && is_missing(paths);

	files->items = memory_allocate(KUBE_CONFIG_FILES * sizeof *files->items);
	if (files->items == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for kubeconfig files");
	if (!several)
		return add_file(files, rest, false, err);
	while (rest.length > 0)
		if (!add_file(files, slice_take_until(&rest, ':'), true, err))
			return false;
	if (files->count == 0)
		return error_set(err, ERROR_SYNTAX, "no such kubeconfig file: %s", paths);
	return true;
}

void kubeconfig_files_close(struct kubeconfig_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		buffer_destroy(&files->items[i].json);
		arena_destroy(&files->items[i].arena);
	}
	memory_release(files->items);
}

/* ---- looking up ---- */

/* A list of any of the three kinds. */
struct list {
	const char *kind;
	const void *items; /* each begins with its name */
	size_t count;
	size_t item_bytes;
};

static struct slice name_at(const struct list *list, size_t index)
{
	const void *item = (const char *)list->items + index * list->item_bytes;

	return *(const struct slice *)item;
}

/* The first item of the name, from `at` on. */
static size_t find_name(const struct list *list, size_t at, struct slice name)
{
	while (at < list->count && !slice_equal(name_at(list, at), name))
		at++;
	return at;
}

/* False at once if there are two of the name, which leaves open who is meant; without one, *ret_index is the count. */
static bool find_in(const struct kubeconfig_file *file, const struct list *list, struct slice name,
                    struct kubeconfig_entry *ret_entry, size_t *ret_index, struct error *err)
{
	size_t at = find_name(list, 0, name);

	*ret_index = at;
	if (at >= list->count)
		return true;
	*ret_entry =
		(struct kubeconfig_entry){ .file = file, .kind = list->kind, .index = at, .name = name_at(list, at) };
	if (find_name(list, at + 1, name) < list->count)
		return error_set(err, ERROR_SYNTAX, "%s: there are two %ss \"%.*s\"", file->path, list->kind,
		                 SLICE_ARGS(name));
	return true;
}

static void report_missing(const struct kubeconfig_files *files, const char *kind, struct slice name, struct error *err)
{
	(void)error_set(err, ERROR_SYNTAX, "%s: there is no %s \"%.*s\"", files->items[0].path, kind, SLICE_ARGS(name));
}

const struct kubeconfig_cluster *kubeconfig_files_cluster(const struct kubeconfig_files *files, struct slice name,
                                                          struct kubeconfig_entry *ret_entry, struct error *err)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct kubeconfig_config *config = &files->items[i].config;
		const struct list list = { "cluster", config->clusters, config->clusters_count,
			                   sizeof *config->clusters };
		size_t index;

		if (!find_in(&files->items[i], &list, name, ret_entry, &index, err))
			return NULL;
		if (index < list.count)
			return &config->clusters[index].cluster;
	}
	report_missing(files, "cluster", name, err);
	return NULL;
}

const struct kubeconfig_user *kubeconfig_files_user(const struct kubeconfig_files *files, struct slice name,
                                                    struct kubeconfig_entry *ret_entry, struct error *err)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct kubeconfig_config *config = &files->items[i].config;
		const struct list list = { "user", config->users, config->users_count, sizeof *config->users };
		size_t index;

		if (!find_in(&files->items[i], &list, name, ret_entry, &index, err))
			return NULL;
		if (index < list.count)
			return &config->users[index].user;
	}
	report_missing(files, "user", name, err);
	return NULL;
}

const struct kubeconfig_context *kubeconfig_files_context(const struct kubeconfig_files *files, struct slice name,
                                                          struct kubeconfig_entry *ret_entry, struct error *err)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct kubeconfig_config *config = &files->items[i].config;
		const struct list list = { "context", config->contexts, config->contexts_count,
			                   sizeof *config->contexts };
		size_t index;

		if (!find_in(&files->items[i], &list, name, ret_entry, &index, err))
			return NULL;
		if (index < list.count)
			return &config->contexts[index].context;
	}
	report_missing(files, "context", name, err);
	return NULL;
}

/* ---- places ---- */

/* 0 if the value isn't where the file has it: it was decoded elsewhere, or isn't there. */
static size_t line_of(const struct kubeconfig_file *file, struct slice value)
{
	struct slice json = buffer_slice(&file->json);
	uintptr_t begin = (uintptr_t)json.data, at = (uintptr_t)value.data;
	size_t line = 1;

	if (value.length == 0 || json.length == 0 || at < begin || at - begin >= json.length)
		return 0;
	for (size_t i = 0; i < at - begin; i++)
		line += json.data[i] == '\n';
	return line;
}

void kubeconfig_entry_describe(const struct kubeconfig_entry *entry, const char *field, struct slice value, char *text,
                               size_t size)
{
	size_t line = line_of(entry->file, value);
	char line_text[32] = "";

	if (line == 0)
		line = line_of(entry->file, entry->name);
	if (line > 0)
		(void)snprintf(line_text, sizeof line_text, "line %zu: ", line);
	(void)snprintf(text, size, "%s: %sfield \"%ss[%zu].%s.%s\"", entry->file->path, line_text, entry->kind,
	               entry->index, entry->kind, field);
}
