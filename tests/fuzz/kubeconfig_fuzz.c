/*
 * Any text as a kubeconfig, or two with a NUL between, through the loader; what it gives is used to make a client.
 *
 * Checked: what was loaded can be used in a request and is the same the second time; what wasn't has a reason that names
 * the file.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "kube/client.h"
#include "kube/kubeconfig.h"
#include "net/http_message.h"
#include "net/loop_sim.h"

enum { MAX_BYTES = 64 * 1024, PATH_BYTES = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* A file in memory, the same one each time; a path that nothing in it can be relative to. */
static void put_file(int *descriptor, struct slice text, char path[PATH_BYTES])
{
	if (*descriptor < 0)
		*descriptor = memfd_create("kubeconfig", MFD_CLOEXEC);
	require(*descriptor >= 0 && ftruncate(*descriptor, 0) == 0);
	require(pwrite(*descriptor, text.data, text.length, 0) == (ssize_t)text.length);
	(void)snprintf(path, PATH_BYTES, "/proc/self/fd/%d", *descriptor);
}

static void check_source(const struct kube_source *source)
{
	require(source->kind != KUBE_SOURCE_FILE || source->path[0] == '/');
	require(source->kind != KUBE_SOURCE_NONE || source->text.length == 0);
}

static void check_equal(const struct kube_source *source, const struct kube_source *again)
{
	require(source->kind == again->kind && strcmp(source->path, again->path) == 0);
	require(slice_equal(buffer_slice(&source->text), buffer_slice(&again->text)));
}

static bool load(const char *paths)
{
	struct kubeconfig first, second;
	struct error err = { .code = ERROR_NONE };

	if (!kubeconfig_load(paths, &first, &err)) {
		require(err.code != ERROR_NONE && strstr(err.text, "/proc/self/fd/") != NULL);
		return false;
	}
	require(http_is_host(first.host) && first.port != 0);
	require(first.path_prefix[0] == '\0' || http_is_target(slice_of(first.path_prefix)));
	check_source(&first.ca);
	check_source(&first.token);
	check_source(&first.certificate);
	check_source(&first.key);
	require((first.certificate.kind == KUBE_SOURCE_NONE) == (first.key.kind == KUBE_SOURCE_NONE));
	require(kubeconfig_load(paths, &second, &err));
	require(strcmp(first.host, second.host) == 0 && first.port == second.port && first.secure == second.secure);
	check_equal(&first.ca, &second.ca);
	check_equal(&first.token, &second.token);
	check_equal(&first.certificate, &second.certificate);
	check_equal(&first.key, &second.key);
	kubeconfig_destroy(&first);
	kubeconfig_destroy(&second);
	return true;
}

static void make_client(const char *paths)
{
	static const struct address ADDRESS = { .bytes = { 10, 0, 0, 1 } };
	const struct kube_client_options options = { .kubeconfig = paths, .user_agent = "fuzz" };
	struct error err = { .code = ERROR_NONE };
	struct sim_world *world = sim_world_create(1, INT64_C(1700000000) * NS_PER_S, &err);
	struct loop *loop = world != NULL ? loop_sim_create(world, "client", &ADDRESS, &err) : NULL;
	struct kube_client *client;

	require(loop != NULL);
	client = kube_client_create(loop, &options, &err);
	require(client != NULL || err.text[0] != '\0');
	kube_client_destroy(client);
	loop_destroy(loop);
	sim_world_destroy(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int descriptors[2] = { -1, -1 };
	const uint8_t *end = size > 0 && size <= MAX_BYTES ? memchr(data, '\0', size) : NULL;
	size_t first = end != NULL ? (size_t)(end - data) : size;
	char paths[2 * PATH_BYTES];

	if (size == 0 || size > MAX_BYTES)
		return 0;
	put_file(&descriptors[0], slice_from(data, first), paths);
	if (end != NULL) {
		strcat(paths, ":");
		put_file(&descriptors[1], slice_from(end + 1, size - first - 1), paths + strlen(paths));
	}
	if (load(paths))
		make_client(paths);
	return 0;
}
