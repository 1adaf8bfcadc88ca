/*
 * How we are known to the API server, and how it is known to us: a bearer token, the certificates to trust, a client
 * certificate. They come from the service account's folder (spec protocols 9.1.1 … 9.1.3) or from a kubeconfig; those in files
 * are replaced now and then while we run.
 *
 * What can't be read, is empty or can't be used leaves the last good one in place, and is logged once until it is
 * good again.
 */
#ifndef BALLAST_KUBE_CREDENTIALS_H
#define BALLAST_KUBE_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "kube/kubeconfig.h"
#include "kube/limits.h"

struct kube_credentials {
	/* Empty paths: there is no such file to be read again. */
	char token_path[KUBE_PATH_BYTES];
	char ca_path[KUBE_PATH_BYTES];
	char certificate_path[KUBE_PATH_BYTES];
	char key_path[KUBE_PATH_BYTES];
	struct buffer token;            /* trimmed */
	struct buffer ca;               /* the file as it was last read; empty: never */
	struct buffer certificate, key; /* the client's; both empty: none */
	uint64_t token_read_ns;
	bool token_read;                                     /* token_read_ns says when */
	bool token_failing, ca_failing, certificate_failing; /* it was logged */
	struct logger logger;
};

/*
 * Reads both files. A token file that can't be opened is an error with the text of protocols 9.1.1; an empty one
 * isn't (there is no token until it has one), nor is a missing CA (kube_credentials_ca is empty then). The logger's
 * strings must outlive it.
 */
bool kube_credentials_init(struct kube_credentials *credentials, const char *folder, const struct logger *logger,
                           uint64_t now_ns, struct error *err);
/* The same from a kubeconfig. Here whatever is named must be readable, but for a token file beside a token. */
bool kube_credentials_init_from(struct kube_credentials *credentials, const struct kubeconfig *kubeconfig,
                                const struct logger *logger, uint64_t now_ns, struct error *err);
void kube_credentials_destroy(struct kube_credentials *credentials); /* also fine on a zeroed one */

/* Whether the last successful read of the token is KUBE_TOKEN_MAX_AGE_S or more ago. */
bool kube_credentials_token_is_due(const struct kube_credentials *credentials, uint64_t now_ns);
/* Reads the token again. Returns whether it is another one now. */
bool kube_credentials_reload_token(struct kube_credentials *credentials, uint64_t now_ns);
/* Reads the CA file again. Returns whether its content is another one now. */
bool kube_credentials_reload_ca(struct kube_credentials *credentials);
/* Reads the client's certificate and key again. Returns whether either is another one now. */
bool kube_credentials_reload_certificate(struct kube_credentials *credentials);

/* Valid until the next reload. */
struct slice kube_credentials_token(const struct kube_credentials *credentials);
struct slice kube_credentials_ca(const struct kube_credentials *credentials);
struct slice kube_credentials_certificate(const struct kube_credentials *credentials);
struct slice kube_credentials_key(const struct kube_credentials *credentials);

#endif
