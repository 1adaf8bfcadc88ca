/*
 * The files that make up a kubeconfig, read and decoded, and what stands in them by name; for kubeconfig.c.
 *
 * Several files count as one, in which the first to name something decides.
 */
#ifndef BALLAST_KUBE_KUBECONFIG_FILES_H
#define BALLAST_KUBE_KUBECONFIG_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "gen/kubeconfig.gen.h"
#include "kube/limits.h"

struct kubeconfig_file {
	char path[KUBE_PATH_BYTES];
	struct buffer json; /* its lines are the file's */
	struct arena arena;
	struct kubeconfig_config config;
};

struct kubeconfig_files {
	struct kubeconfig_file *items;
	size_t count;
};

/* A named item of one of the lists: where it stands. */
struct kubeconfig_entry {
	const struct kubeconfig_file *file;
	const char *kind; /* "cluster", "user", "context" */
	size_t index;
	struct slice name;
};

/*
 * Reads all files that paths names: a single one, which must exist, or several with ':' between, of which one must. A path
 * that holds a ':' itself is taken for a single one if there is such a file. Repeated paths count once. Waits for the writer
 * of a pipe. Close them, whatever the outcome.
 */
bool kubeconfig_files_read(const char *paths, struct kubeconfig_files *files, struct error *err);
void kubeconfig_files_close(struct kubeconfig_files *files);

/*
 * The first that has the name, and where it stands. NULL without one, and when its file has two of the name (as for
 * kubectl), with an error that names the file.
 */
const struct kubeconfig_cluster *kubeconfig_files_cluster(const struct kubeconfig_files *files, struct slice name,
                                                          struct kubeconfig_entry *ret_entry, struct error *err);
const struct kubeconfig_user *kubeconfig_files_user(const struct kubeconfig_files *files, struct slice name,
                                                    struct kubeconfig_entry *ret_entry, struct error *err);
const struct kubeconfig_context *kubeconfig_files_context(const struct kubeconfig_files *files, struct slice name,
                                                          struct kubeconfig_entry *ret_entry, struct error *err);

/*
 * `FILE: line 7: field "users[1].user.client-key"`. value is the field's, as it was decoded; if it is empty, the line is
 * that of the entry's name. A line that isn't known is left out.
 */
void kubeconfig_entry_describe(const struct kubeconfig_entry *entry, const char *field, struct slice value, char *text,
                               size_t size);

#endif
