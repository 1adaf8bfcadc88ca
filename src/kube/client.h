/*
 * Requests to the Kubernetes API server: base URL and credentials, token bucket, retries, typed errors (spec
 * protocols section 9).
 *
 * In-cluster credentials live in a folder (token, ca.crt) and rotate: both are read again by the first request 50 s
 * or more after the last successful read of the token, and at once after a 401, which is then repeated if the token
 * has changed; the CA also after a broken connection, since a new one is noticed by handshakes that fail. What can't
 * be read or used leaves the last good one in place. Files that a kubeconfig names are treated likewise.
 */
#ifndef BALLAST_KUBE_CLIENT_H
#define BALLAST_KUBE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "base/token_bucket.h"
#include "net/loop.h"

struct kube_client;
struct kube_call;

struct kube_client_options {
	const char *host; /* KUBERNETES_SERVICE_HOST: name or literal address, no brackets */
	uint16_t port;
	const char *credentials_dir; /* the usual one, or BALLAST_SERVICEACCOUNT_DIR; NULL: KUBE_CREDENTIALS_DIR */
	const char *kubeconfig;      /* a kubeconfig, or several with ':' between, in place of these three; or NULL */
	const char *user_agent;
	struct logger logger; /* for unreadable CA and token files; its strings must outlive the client */
	bool plain;           /* HTTP without TLS: for tests only, nothing in the product sets it */
};

#define KUBE_CREDENTIALS_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/*
 * Reads the credentials. Without kubeconfig, host or port, and when there is no token file, errors have the texts of protocols
 * 9.1.1.
 */
struct kube_client *kube_client_create(struct loop *loop, const struct kube_client_options *options, struct error *err);
/* Cancels every call without callbacks. Allowed inside a callback of a call. NULL is fine. */
void kube_client_destroy(struct kube_client *client);

/* Everything is copied but the limiter, which must outlive the call. */
struct kube_request {
	struct slice method;       /* "GET", "PATCH", "POST", "PUT" */
	struct slice path;         /* "/apis/vm.neon.tech/v1/virtualmachines" */
	struct slice query;        /* escaped, without '?'; may be empty */
	struct slice content_type; /* with a body */
	struct slice body;
	struct token_bucket *limiter; /* NULL: not limited */
	uint64_t timeout_ns;          /* over everything, waiting for the limiter and retries included; 0: none */
	uint64_t answer_timeout_ns;   /* from the request sent to the head of the reply, for each try; 0: none */
	uint64_t idle_timeout_ns;     /* between bytes of the body; 0: none */
	size_t max_body_bytes;        /* of a 2xx reply */
	bool watch; /* a stream: 200 alone is success, time-outs before the head are retried, it takes nobody's turn */
	const char *verb;     /* for error texts: "patch", "get" (also for lists and watches, as the reference's) */
	const char *resource; /* "virtualmachines.vm.neon.tech" */
	struct slice name;    /* of the object, or empty */
};

struct kube_handler {
	/* Body bytes of a reply that is a success, as they come; NULL: collected for on_done. */
	void (*on_body)(void *context, struct slice bytes);
	/* The head of a success came (a watch is open). May be NULL. */
	void (*on_open)(void *context);
	/*
	 * err NULL: status is 200 … 206 and body is there (if collected). Otherwise the text's root is the Status
	 * message (or the sentence of protocols 9.3.3), or a transport root (agent-runtime 0.5), or "rate: Wait(n=1)
	 * would exceed context deadline"; status is that of the refusal, or of a success whose body broke off, else
	 * 0. The call is gone afterwards: it isn't to be cancelled in here, while in the other two it may be.
	 */
	void (*on_done)(void *context, int status, struct slice body, const struct error *err);
};

/*
 * Starts a call; no callback comes from inside. 429 and 5xx with Retry-After, and broken GETs, are retried inside as
 * protocols 9.3.2 says, as long as nothing of a success was handed on. NULL with *err if it can't start.
 */
struct kube_call *kube_client_send(struct kube_client *client, const struct kube_request *request,
                                   const struct kube_handler *handler, void *context, struct error *err);
void kube_call_cancel(struct kube_call *call);
/* Inside on_done: what the last reply's Retry-After asked for, or 0. */
uint64_t kube_call_retry_after_ns(const struct kube_call *call);
/* Inside on_done: the body of a refusal, as far as it was kept (KUBE_ERROR_BODY_BYTES); mostly a Status. */
struct slice kube_call_refusal(const struct kube_call *call);

#endif
