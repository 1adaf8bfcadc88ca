/*
 * What the provider of AWS credentials and its sources know of each other, and the parts of them that tests look at.
 */
#ifndef BALLAST_REPORT_AWS_INTERNAL_H
#define BALLAST_REPORT_AWS_INTERNAL_H

#include "base/buffer.h"
#include "net/http_client.h"
#include "report/aws_credentials.h"
#include "report/limits.h"

enum aws_source { AWS_NONE, AWS_STATIC, AWS_WEB_IDENTITY, AWS_CONTAINER, AWS_INSTANCE };

struct aws_provider {
	struct report_transport *transport;
	struct loop *loop;
	enum aws_source source;
	/* settings, as the environment had them; NULL: not set */
	char *region;
	char *url; /* of the issuer */
	char *role, *session_name, *token_file;
	struct secret fixed_token; /* AWS_CONTAINER_AUTHORIZATION_TOKEN */
	bool version_1_disabled;
	/* what is held */
	bool has;
	struct aws_credentials held;
	uint64_t no_refresh_before_ns;
	/* the call under way */
	aws_credentials_done *done; /* NULL: none */
	void *context;
	struct loop_task task;
	struct loop_timer wait;
	struct report_call *call;
	unsigned attempts;
	bool failed;
	struct error err;
	/* instance metadata */
	struct secret metadata_token;
	uint64_t metadata_token_expires_ns;
	bool without_token, token_renewed;
};

/* Each begins to ask its source; false with *err if that can't be. Ends in one of the two below. */
bool aws_web_identity_start(struct aws_provider *provider, struct error *err);
bool aws_container_start(struct aws_provider *provider, struct error *err);
bool aws_instance_start(struct aws_provider *provider, struct error *err);

/* Takes the texts over; they are wiped and gone afterwards. */
void aws_provider_fetched(struct aws_provider *provider, struct aws_credentials *credentials);
/* may_retry: another attempt may help. */
void aws_provider_failed(struct aws_provider *provider, bool may_retry, const struct error *err);

/* Sends and, if it can't be sent, fills *err. The reply goes to `done` with the provider as its context. */
bool aws_provider_call(struct aws_provider *provider, const struct http_request *request, uint64_t timeout_ms,
                       report_call_done *done, struct error *err);
/* Whether a reply of that status (0: none came) may be another one next time. */
bool aws_status_may_pass(int status);

/*
 * Reads a reply of a container's endpoint or of instance metadata (P13, P14). wall_ns and now_ns: the time of both
 * clocks, for the expiry.
 */
bool aws_read_credentials(struct slice json, int64_t wall_ns, uint64_t now_ns, struct aws_credentials *ret,
                          struct error *err);
/* Reads the reply of STS (P12). */
bool aws_read_sts_reply(struct slice xml, int64_t wall_ns, uint64_t now_ns, struct aws_credentials *ret,
                        struct error *err);
/* Appends the form of P12. */
void aws_append_sts_form(struct buffer *out, struct slice role, struct slice session_name, struct slice token);
/* Copies the three texts and reads the expiry; empty: never. */
bool aws_fill_credentials(struct slice key_id, struct slice secret_key, struct slice session_token,
                          struct slice expiration, int64_t wall_ns, uint64_t now_ns, struct aws_credentials *ret,
                          struct error *err);
void aws_credentials_clear(struct aws_credentials *credentials);
/* Whether a container's endpoint there may be asked without TLS (P13). */
bool aws_host_is_local(const char *host);

#endif
