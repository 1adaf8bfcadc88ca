/*
 * What the client and its calls know of each other.
 */
#ifndef BALLAST_KUBE_CLIENT_INTERNAL_H
#define BALLAST_KUBE_CLIENT_INTERNAL_H

#include "base/buffer.h"
#include "kube/client.h"
#include "kube/credentials.h"
#include "net/http_client.h"

struct kube_client {
	struct loop *loop;
	struct http_client *http;
	struct http_origin origin;
	char path_prefix[KUBE_PATH_BYTES]; /* before every path */
	char server_name[NET_HOST_BYTES];  /* to be verified in place of the host's; or empty */
	bool insecure_skip_verify;
	struct kube_credentials credentials;
	struct buffer authorization; /* "Bearer …"; empty without a token */
	unsigned token_number;       /* how many tokens and client certificates there have been */
	char *user_agent;
	struct kube_call *first_call, *last_call; /* in the order they came */
	size_t call_count;
	size_t in_flight; /* calls that have their turn */
	bool closing;     /* nobody takes the turns that calls give back */
};

enum kube_call_state {
	KUBE_CALL_STARTING, /* its task or its timer brings the next step */
	KUBE_CALL_QUEUED,   /* waiting for its turn */
	KUBE_CALL_SENT,     /* has an exchange */
};

struct kube_call {
	struct kube_client *client;
	struct kube_call *next, *previous;
	enum kube_call_state state;
	struct kube_request request; /* its slices and strings point into text */
	struct buffer text;
	struct kube_handler handler;
	void *context;
	struct http_exchange *exchange;
	bool has_turn;
	struct loop_task task;
	struct loop_timer deadline, wait;
	uint64_t deadline_ns; /* 0: none */
	struct buffer body;
	/* of the try under way */
	int status;                /* 0: no head yet */
	struct slice content_type; /* of an error reply; points into content_type_text */
	char content_type_text[128];
	bool has_retry_after;
	uint64_t retry_after_ns;
	unsigned retries;
	unsigned token_number; /* which one it was sent with */
	bool asked_again;      /* after a 401, with another token or certificate */
};

/* Reads the credentials again, if that is due or `now`. */
void kube_client_refresh(struct kube_client *client, bool now);
/* Reads CA and client certificate again and, if either has changed, has new connections use them. */
void kube_client_refresh_ca(struct kube_client *client);

#endif
