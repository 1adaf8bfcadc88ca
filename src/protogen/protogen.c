#include "protogen/protogen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "protogen/emit.h"
#include "protogen/parser.h"

enum {
	MAX_FILE_BYTES = 1024 * 1024,
	MAX_OUTPUT_BYTES = 16 * 1024 * 1024,
	MAX_ARENA_BYTES = 64 * 1024 * 1024,
	MAX_IMPORT_DEPTH = 16,
	MAX_FOLDERS = 16,
	PATH_SIZE = 4096,
};

static const char USAGE[] = "usage: protogen --out DIR [--include DIR]... FILE.proto...\n";

static bool read_file(const char *path, struct buffer *text, struct error *err)
{
	FILE *file = fopen(path, "rb");

	if (file == NULL)
		return error_set_errno(err, errno, path);
	for (;;) {
		char *room = buffer_reserve(text, 65536);
		size_t length;

		if (room == NULL)
			break;
		length = fread(room, 1, 65536, file);
		buffer_advance(text, length);
		if (length == 0)
			break;
	}

	bool failed = ferror(file) != 0;

	fclose(file);
	if (failed)
		return error_set(err, ERROR_SYSTEM, "%s: can't be read", path);
	return buffer_check(text, path, err);
}

static struct schema_file *load(struct schema *schema, const char *path, const char *const *folders, int depth,
                                struct error *err);

static bool exists(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0;
}

/* Where an imported file is: beside the importing one, or in an include folder. */
static const char *find_import(struct schema *schema, const struct schema_import *import, const char *const *folders,
                               struct error *err)
{
	char path[PATH_SIZE];
	const char *slash = strrchr(import->place.file, '/');
	int folder_length = slash != NULL ? (int)(slash - import->place.file) + 1 : 0;

	snprintf(path, sizeof path, "%.*s%s", folder_length, import->place.file, import->path);
	if (exists(path))
		return schema_text(schema, slice_of(path), err);
	for (const char *const *folder = folders; *folder != NULL; folder++) {
		snprintf(path, sizeof path, "%s/%s", *folder, import->path);
		if (exists(path))
			return schema_text(schema, slice_of(path), err);
	}
	schema_error(import->place, err, "import \"%s\" isn't in any include folder", import->path);
	return NULL;
}

static bool load_imports(struct schema *schema, struct schema_file *file, const char *const *folders, int depth,
                         struct error *err)
{
	for (struct schema_import *import = file->imports; import != NULL; import = import->next) {
		const char *path;

		if (strcmp(import->path, "options.proto") == 0)
			continue;
		if (depth >= MAX_IMPORT_DEPTH)
			return schema_error(import->place, err, "imports go deeper than %d files, or in a circle",
			                    MAX_IMPORT_DEPTH);
		path = find_import(schema, import, folders, err);
		if (path == NULL)
			return false;
		import->file = load(schema, path, folders, depth + 1, err);
		if (import->file == NULL)
			return false;
	}
	return true;
}

/* Reads and resolves a file and what it imports, each once. */
static struct schema_file *load(struct schema *schema, const char *path, const char *const *folders, int depth,
                                struct error *err)
{
	struct buffer text;
	struct slice copy;
	struct schema_file *file;
	struct schema_file **last = &schema->files;

	for (file = schema->files; file != NULL; file = file->next) {
		if (strcmp(file->path, path) == 0)
			return file;
	}
	buffer_init(&text, MAX_FILE_BYTES);

	bool read = read_file(path, &text, err);

	if (read && !arena_copy(schema->arena, buffer_slice(&text), &copy))
		read = error_set(err, ERROR_NO_MEMORY, "out of memory");
	buffer_destroy(&text);
	if (!read)
		return NULL;
	file = parser_read(schema, path, copy, err);
	if (file == NULL || !load_imports(schema, file, folders, depth, err) || !schema_resolve(schema, file, err))
		return NULL;
	while (*last != NULL)
		last = &(*last)->next;
	*last = file;
	return file;
}

bool protogen_generate(const char *path, const char *const *include_folders, struct buffer *header,
                       struct buffer *source, struct error *err)
{
	struct arena arena;
	struct schema schema = { .arena = &arena };
	struct schema_file *file;
	bool ok = false;

	arena_init(&arena, MAX_ARENA_BYTES);
	file = load(&schema, path, include_folders, 0, err);
	if (file == NULL || !emit_header(file, header, err))
		goto out;
	emit_source(file, source);
	ok = buffer_check(header, "the header", err) && buffer_check(source, "the source", err);
out:
	arena_destroy(&arena);
	return ok;
}

/* An unchanged file is left alone, so that a rebuild doesn't follow. */
static bool write_file(const char *path, struct slice text, struct error *err)
{
	struct buffer old;
	struct error ignored;
	bool same;
	FILE *file;

	buffer_init(&old, MAX_OUTPUT_BYTES);
	same = exists(path) && read_file(path, &old, &ignored) && slice_equal(buffer_slice(&old), text);
	buffer_destroy(&old);
	if (same)
		return true;
	file = fopen(path, "wb");
	if (file == NULL)
		return error_set_errno(err, errno, path);

	bool written = fwrite(text.data, 1, text.length, file) == text.length;

	if (fclose(file) != 0 || !written)
		return error_set(err, ERROR_SYSTEM, "%s: can't be written", path);
	return true;
}

static bool generate_files(const char *path, const char *out_folder, const char *const *folders, struct error *err)
{
	struct buffer header;
	struct buffer source;
	char out[PATH_SIZE];
	const char *base = strrchr(path, '/');
	int length;
	bool ok;

	base = base != NULL ? base + 1 : path;
	length = (int)(strrchr(base, '.') != NULL ? strrchr(base, '.') - base : (long)strlen(base));
	buffer_init(&header, MAX_OUTPUT_BYTES);
	buffer_init(&source, MAX_OUTPUT_BYTES);
	ok = protogen_generate(path, folders, &header, &source, err);
	snprintf(out, sizeof out, "%s/%.*s.gen.h", out_folder, length, base);
	ok = ok && write_file(out, buffer_slice(&header), err);
	snprintf(out, sizeof out, "%s/%.*s.gen.c", out_folder, length, base);
	ok = ok && write_file(out, buffer_slice(&source), err);
	buffer_destroy(&header);
	buffer_destroy(&source);
	return ok;
}

static int usage(const char *problem)
{
	fprintf(stderr, "protogen: %s\n%s", problem, USAGE);
	return 2;
}

int protogen_run(int argc, char **argv)
{
	const char *folders[MAX_FOLDERS + 1] = { NULL };
	size_t folder_count = 0;
	const char *out_folder = NULL;
	int first_file = 1;

	for (; first_file + 1 < argc && argv[first_file][0] == '-'; first_file += 2) {
		if (strcmp(argv[first_file], "--out") == 0)
			out_folder = argv[first_file + 1];
		else if (strcmp(argv[first_file], "--include") != 0)
			return usage("unknown option");
		else if (folder_count == MAX_FOLDERS)
			return usage("too many include folders");
		else
			folders[folder_count++] = argv[first_file + 1];
	}
	if (out_folder == NULL)
		return usage("--out is missing");
	if (first_file >= argc)
		return usage("no schema file given");
	for (int i = first_file; i < argc; i++) {
		struct error err;

		if (!generate_files(argv[i], out_folder, folders, &err)) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
	}
	return 0;
}
