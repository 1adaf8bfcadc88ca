/*
 * What a kubeconfig's token leaves in memory: nothing, once the kubeconfig is gone. The test looks for it in all that the
 * process may write to, freed blocks too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kube/kubeconfig.h"

enum {
	TOKEN_BYTES = 200, /* as long as real ones, more or less: allocators write over the first few of a block */
	PART_BYTES = 48,   /* this much of it in a row is a find */
	CHUNK_BYTES = 1 << 16,
	REGION_BYTES_MAX = 256 << 20, /* a sanitizer's shadow is larger */
};

/* The token, made from what stands nowhere as it is. */
static char token_byte(size_t index)
{
	return (char)('a' + (index * 7 + index / 26 * 3) % 26);
}

static bool starts_here(const char *bytes, size_t from)
{
	for (size_t i = 0; i < PART_BYTES; i++)
		if (bytes[i] != token_byte(from + i))
			return false;
	return true;
}

/* How often the token's middle is there: a block's beginning may have been written over since. */
static size_t count_in(const char *bytes, size_t length)
{
	const char *end = bytes + length, *at = bytes;
	size_t count = 0;

	while (at + PART_BYTES <= end) {
		at = memchr(at, token_byte(TOKEN_BYTES / 2), (size_t)(end - at) - PART_BYTES + 1);
		if (at == NULL)
			break;
		count += starts_here(at++, TOKEN_BYTES / 2);
	}
	return count;
}

static size_t count_in_region(int memory, uintptr_t from, uintptr_t to)
{
	static char chunk[CHUNK_BYTES]; /* away from the heap, as itself it isn't looked at */
	size_t count = 0;

	for (uintptr_t at = from; at < to; at += CHUNK_BYTES - PART_BYTES) {
		size_t wanted = to - at < CHUNK_BYTES ? to - at : CHUNK_BYTES;
		ssize_t length;

		if (at + wanted > (uintptr_t)chunk && at < (uintptr_t)chunk + CHUNK_BYTES)
			continue; /* what was read before would be found again */
		length = pread(memory, chunk, wanted, (off_t)at);
		count += length > 0 ? count_in(chunk, (size_t)length) : 0;
	}
	return count;
}

static size_t count_in_memory(void)
{
	FILE *maps = fopen("/proc/self/maps", "r"), *memory = fopen("/proc/self/mem", "r");
	char line[1024], mode[5];
	uintptr_t from, to;
	size_t count = 0;

	assert_non_null(maps);
	assert_non_null(memory);
	while (fgets(line, sizeof line, maps) != NULL)
		if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) == 3 && mode[0] == 'r' && mode[1] == 'w' &&
		    to - from <= REGION_BYTES_MAX)
			count += count_in_region(fileno(memory), from, to);
	(void)fclose(memory);
	(void)fclose(maps);
	return count;
}

static void write_kubeconfig(const char *path, const char *quote)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	(void)setvbuf(file, NULL, _IONBF, 0);
	(void)fprintf(file,
	              "clusters: [{name: c, cluster: {server: 'https://a'}}]\n"
	              "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
	              "users:\n- name: u\n  user:\n    token: %s",
	              quote);
	for (size_t i = 0; i < TOKEN_BYTES; i++)
		(void)fputc(token_byte(i), file);
	(void)fprintf(file, "%s\n", quote);
	(void)fclose(file);
}

static void of_a_token_nothing_stays_behind(void **state)
{
	static const char *const QUOTES[] = { "", "\"", "'" };
	char path[] = "/tmp/ballast-kubeconfig-XXXXXX";
	int descriptor = mkstemp(path);

	(void)state;
	assert_true(descriptor >= 0);
	(void)close(descriptor);
	for (size_t i = 0; i < sizeof QUOTES / sizeof *QUOTES; i++) {
		struct kubeconfig config;
		struct error err = { 0 };

		write_kubeconfig(path, QUOTES[i]);
		if (!kubeconfig_load(path, &config, &err))
			fail_msg("%s", err.text);
		assert_int_equal(config.token.text.length, TOKEN_BYTES);
		assert_int_equal(count_in_memory(), 1);
		kubeconfig_destroy(&config);
		assert_int_equal(count_in_memory(), 0);
	}
	(void)unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_a_token_nothing_stays_behind),
	};

	return cmocka_run_group_tests_name("kubeconfig_memory", tests, NULL, NULL);
}
