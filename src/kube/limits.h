/*
 * The Kubernetes client's limits, all in one place (design section 1.6). Reaching one is an error with a message.
 */
#ifndef BALLAST_KUBE_LIMITS_H
#define BALLAST_KUBE_LIMITS_H

enum {
	KUBE_PATH_BYTES = 1024,              /* of a credentials file, with its NUL */
	KUBE_PLACE_BYTES = 512,              /* "FILE: line N: field …" in messages; longer ones are cut */
	KUBE_TOKEN_BYTES = 16 * 1024,        /* bound service-account tokens have about 1 kB */
	KUBE_CA_BYTES = 1024 * 1024,         /* a bundle of a few hundred certificates */
	KUBE_CONFIG_BYTES = 8 * 1024 * 1024, /* a kubeconfig file; those of many clusters have inline certificates */
	KUBE_CONFIG_FILES = 16,              /* listed in $KUBECONFIG */
	KUBE_TOKEN_MAX_AGE_S = 50,           /* spec protocols 9.1.3 */
	KUBE_CALLS = 65536,                  /* calls under way or waiting, of one client */
	KUBE_REQUESTS_IN_FLIGHT = 32, /* connections used at once, watches apart; the others wait for their turn */
	KUBE_REQUEST_TEXT_BYTES = 64 * 1024,   /* target, fields and names of one request */
	KUBE_REQUEST_BODY_BYTES = 1536 * 1024, /* what the server's store takes (etcd) */
	KUBE_ERROR_BODY_BYTES = 64 * 1024,     /* of an error reply; the rest is not kept */
	KUBE_ERROR_TEXT_BYTES = 2048,          /* of an error reply that is plain text; the rest is not quoted */
	KUBE_RETRIES = 10,                     /* spec protocols 9.3.2 */
	KUBE_RETRY_BROKEN_MS = 1000,           /* after a broken GET: spec protocols 9.3.2 */
	KUBE_RETRY_AFTER_MAX_S = 300,          /* a Retry-After above is taken for this */

	WATCH_STORE_ELEMENT_BYTES =
		4 * 1024 * 1024, /* one listed object or watch event; etcd holds no object above 1.5 MiB */
	WATCH_STORE_ENVELOPE_BYTES = 64 * 1024,      /* a list without its elements */
	WATCH_STORE_PAGE_BYTES = 1024 * 1024 * 1024, /* one page of a list */
	WATCH_STORE_OBJECTS = 1000000,               /* in a list */
	WATCH_STORE_TEXT_BYTES = 8 * 1024, /* a resourceVersion or a continue token, or a query made of them */
	WATCH_STORE_LIST_RESTARTS = 3,     /* of one list whose continue token expired */
	WATCH_STORE_ANSWER_TIMEOUT_S = 90, /* until a list's head is there; servers cut such requests after 60 s */
	WATCH_STORE_OPEN_TIMEOUT_S = 30,   /* until a watch's head is there; servers flush it at once */
	WATCH_STORE_LIST_IDLE_S = 60,      /* between bytes of a list */
	WATCH_STORE_WATCH_MIN_S = 300,     /* timeoutSeconds of a watch is drawn from here … */
	WATCH_STORE_WATCH_MAX_S = 600,     /* … to here (pitfalls, Kubernetes client) */
	WATCH_STORE_WATCH_GRACE_S = 30,    /* silent that much longer than timeoutSeconds, a watch is dead */
	WATCH_STORE_SHORT_WATCH_MS = 1000, /* what follows watches that end sooner, one after the other, has to wait */
	WATCH_STORE_REOPEN_WAIT_MS = 100,  /* before the second such watch in a row is followed by another; grows */
	WATCH_STORE_CALM_S = 10,           /* a watch that lived so long ends the growth of waits after short ones */
	WATCH_STORE_HEALTHY_S = 120,       /* a watch that lived so long ends the growth of waits after failures */
	WATCH_STORE_RETRY_MAX_S = 30,      /* waits grow up to here: spec agent-runtime 4.7 */
	WATCH_STORE_AWAY_RETRY_MAX_S = 5,  /* likewise, while nobody answers, and says so within … */
	WATCH_STORE_AWAY_MS = 1000,        /* … this time: such attempts cost a server nothing */
};

#endif
