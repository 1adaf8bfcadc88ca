/*
 * Runs a fuzz target over kept inputs, without a fuzzer: every file in the folders and files named as arguments, and
 * always the empty input. Linked with a NAME_fuzz.c in builds that aren't fuzzing builds. A folder that doesn't exist
 * holds no inputs.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int failures;
static int inputs;

static void complain(const char *path, const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", path, what, strerror(errno));
	failures++;
}

/* The copy is exactly as long as the input, so that a sanitizer sees each byte read beyond it. */
static void run_file(const char *path, size_t size)
{
	uint8_t *data = malloc(size > 0 ? size : 1);
	FILE *file = fopen(path, "rb");

	if (data == NULL || file == NULL || fread(data, 1, size, file) != size) {
		complain(path, "reading");
	} else {
		fprintf(stderr, "%s\n", path); /* the last line tells which input crashed */
		(void)LLVMFuzzerTestOneInput(data, size);
		inputs++;
	}
	if (file != NULL)
		(void)fclose(file);
	free(data);
}

static void run_path(const char *path);

static void run_folder(const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, alphasort);

	if (count < 0) {
		complain(path, "listing");
		return;
	}
	for (int i = 0; i < count; i++) {
		char inner[4096];

		if (entries[i]->d_name[0] != '.') {
			if ((size_t)snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name) < sizeof inner)
				run_path(inner);
			else
				failures++;
		}
		free(entries[i]);
	}
	free(entries);
}

static void run_path(const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0) {
		if (errno != ENOENT)
			complain(path, "looking at");
	} else if (S_ISDIR(status.st_mode)) {
		run_folder(path);
	} else {
		run_file(path, (size_t)status.st_size);
	}
}

int main(int argc, char **argv)
{
	(void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++)
		run_path(argv[i]);
	printf("%d inputs, %d failures\n", inputs, failures);
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
