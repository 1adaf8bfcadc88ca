/*
 * kubeconfig files, as kubectl reads them: where the API server is, and how to be known to it.
 *
 * Several files (as $KUBECONFIG lists them) count as one, in which the first to name something decides; files that don't
 * exist are passed over. Paths in a file are relative to its folder. What we can't do is refused by name: exec and auth-provider
 * plugins, user name and password, impersonation, proxies; so is what leaves open what is meant: two items of one name,
 * certificates to trust beside insecure-skip-tls-verify.
 */
#ifndef BALLAST_KUBE_KUBECONFIG_H
#define BALLAST_KUBE_KUBECONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "kube/limits.h"
#include "net/limits.h"

enum kube_source_kind { KUBE_SOURCE_NONE, KUBE_SOURCE_INLINE, KUBE_SOURCE_FILE };

/* Something that stands in the kubeconfig itself, or in a file that may be replaced while we run. */
struct kube_source {
	enum kube_source_kind kind;
	char path[KUBE_PATH_BYTES]; /* of a file */
	struct buffer
		text; /* inline; decoded. Of a token file: what counts while the file can't be read; may be empty */
	char place[KUBE_PLACE_BYTES]; /* for messages: `FILE: line 7: field "users[1].user.client-key"` */
};

struct kubeconfig {
	bool secure; /* https */
	char host[NET_HOST_BYTES];
	uint16_t port;
	char path_prefix[KUBE_PATH_BYTES]; /* before every path, without a slash at its end; usually empty */
	char server_name[NET_HOST_BYTES];  /* tls-server-name, or empty */
	bool insecure_skip_verify;
	struct kube_source ca;          /* none: the system's */
	struct kube_source token;       /* at most one of token … */
	struct kube_source certificate; /* … and certificate with key is usual; both are allowed */
	struct kube_source key;
};

/*
 * Reads the current context of the file or files: paths is one path, or several with ':' between (kubeconfig_files.h). False
 * with a sentence that names file, line and field. On success *ret is to be destroyed.
 */
bool kubeconfig_load(const char *paths, struct kubeconfig *ret, struct error *err);
void kubeconfig_destroy(struct kubeconfig *kubeconfig); /* also fine on a zeroed one */

#endif
