/*
 * A configuration file for tests: the shipped one, edited (tests/vectors/agent_config.txt has the notation).
 */
#ifndef BALLAST_TESTS_CONFIG_FILE_H
#define BALLAST_TESTS_CONFIG_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONFIG_FILE_BYTES = 64 * 1024 };

struct config_file {
	char text[CONFIG_FILE_BYTES];
	char path[64];
};

static void config_file_replace(struct config_file *file, char *from, char *to, const char *by)
{
	char tail[CONFIG_FILE_BYTES];

	assert_true(strlen(file->text) + strlen(by) < sizeof file->text);
	strcpy(tail, to);
	strcpy(from, by);
	strcat(file->text, tail);
}

/* Behind the value that begins at text. */
static char *config_file_value_end(char *text)
{
	int depth = 0;

	for (bool quoted = false; *text != '\0'; text++) {
		if (*text == '"')
			quoted = !quoted;
		if (quoted)
			continue;
		if (*text == '{' || *text == '[')
			depth++;
		if (depth == 0 && (*text == ',' || *text == '}' || *text == '\n'))
			return text;
		if (*text == '}' || *text == ']')
			depth--;
	}
	fail_msg("the value has no end");
	return text;
}

/* The key that a path ends with; keys of the same name stand behind the sections they are in. */
static char *config_file_key(struct config_file *file, const char *path)
{
	char *at = file->text;
	char names[128];

	snprintf(names, sizeof names, "%s", path);
	for (char *name = strtok(names, "."); name != NULL; name = strtok(NULL, ".")) {
		char quoted[128];

		snprintf(quoted, sizeof quoted, "\"%s\":", name);
		at = strstr(at, quoted);
		assert_non_null(at);
		at++;
	}
	return at - 1;
}

static void config_file_drop(struct config_file *file, const char *path)
{
	char *key = config_file_key(file, path);
	char *end = config_file_value_end(strchr(key, ':') + 1);

	if (*end == ',') {
		config_file_replace(file, key, end + 1, "");
		return;
	}
	while (*key != ',')
		key--;
	config_file_replace(file, key, end, "");
}

static void config_file_set(struct config_file *file, const char *path, const char *value)
{
	char *start = strchr(config_file_key(file, path), ':') + 2;

	config_file_replace(file, start, config_file_value_end(start), value);
}

static void config_file_add(struct config_file *file, const char *path, const char *key, const char *value)
{
	char *start = strchr(path[0] != '\0' ? config_file_key(file, path) : file->text, '{') + 1;
	char member[512];

	snprintf(member, sizeof member, "\"%s\": %s,", key, value);
	config_file_replace(file, start, start, member);
}

static void config_file_rename(struct config_file *file, const char *path, const char *name)
{
	char *key = config_file_key(file, path) + 1;

	config_file_replace(file, key, strchr(key, '"'), name);
}

static void config_file_edit(struct config_file *file, char *edit)
{
	char *mark;

	edit += strspn(edit, " ");
	if (edit[0] == '!')
		strcpy(file->text, edit + 1);
	else if (strncmp(edit, ">>", 2) == 0)
		strcat(file->text, strcmp(edit + 2, "   \\n") == 0 ? "   \n" : edit + 2);
	else if (edit[0] == '-')
		config_file_drop(file, edit + 2);
	else if ((mark = strstr(edit, "+ ")) != NULL) {
		char *value = strstr(mark, " = ");

		*value = '\0';
		*(mark > edit ? mark - 1 : mark) = '\0';
		config_file_add(file, edit, mark + 2, value + 3);
	} else if ((mark = strstr(edit, " > ")) != NULL) {
		*mark = '\0';
		config_file_rename(file, edit, mark + 3);
	} else {
		mark = strstr(edit, " = ");
		assert_non_null(mark);
		*mark = '\0';
		config_file_set(file, edit, mark + 3);
	}
}

static void config_file_write(struct config_file *file)
{
	int descriptor;

	strcpy(file->path, "/tmp/ballast-config-XXXXXX");
	descriptor = mkstemp(file->path);
	assert_true(descriptor >= 0);
	assert_int_equal(write(descriptor, file->text, strlen(file->text)), (ssize_t)strlen(file->text));
	close(descriptor);
}

/* Edits of a file under tests/ are separated by ';'. The result is written; config_file_destroy removes it. */
static inline struct config_file *config_file_create_from(const char *sample, const char *edits)
{
	struct config_file *file = calloc(1, sizeof *file);
	char path[256];
	FILE *shipped;
	char *copy = strdup(edits);
	char *rest = copy;

	snprintf(path, sizeof path, TESTS_DIR "/%s", sample);
	shipped = fopen(path, "r");
	assert_non_null(shipped);
	assert_true(fread(file->text, 1, sizeof file->text - 1, shipped) > 0);
	fclose(shipped);
	for (char *edit = strsep(&rest, ";"); edit != NULL; edit = strsep(&rest, ";")) {
		if (edit[strspn(edit, " ")] != '\0')
			config_file_edit(file, edit);
	}
	free(copy);
	config_file_write(file);
	return file;
}

static inline struct config_file *config_file_create(const char *edits)
{
	return config_file_create_from("data/agent/config-b.json", edits);
}

static void config_file_destroy(struct config_file *file)
{
	unlink(file->path);
	free(file);
}

#endif
