/*
 * Asks the scheduler plugin for resources of one VM, one request at a time, and counts what came of it (spec
 * agent-runtime 10). Whether a permit is acceptable is for the core to say.
 *
 * A request is sent in the version that plugin_versions says; if the plugin refuses that, the same request may be sent
 * again in another one, within the time that it has (generations 2.7).
 *
 * The metric label `code` has the HTTP statuses and "[error doing request: …]" with one of a closed set of reasons;
 * any other reason is "other" there, while the error and the log have it in full.
 */
#ifndef BALLAST_AGENT_SCHEDULER_CLIENT_H
#define BALLAST_AGENT_SCHEDULER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent_metrics.h"
#include "agent/config.h"
#include "agent/core/core.h"
#include "agent/limits.h"
#include "agent/plugin_versions.h"
#include "agent/scheduler_peer.h"
#include "agent/url_text.h"
#include "base/buffer.h"
#include "base/log.h"
#include "net/http_client.h"
#include "net/loop.h"

/* 10.7. */
enum scheduler_outcome { SCHEDULER_APPROVED, SCHEDULER_PARTIALLY_APPROVED, SCHEDULER_DENIED, SCHEDULER_FAILED };

struct scheduler_result {
	enum scheduler_outcome outcome;
	struct resources permit; /* unless failed */
	/*
	 * The compute unit that the reply names, zero if it has none. Unless failed; versions up to 2.1 only, and only if
	 * the configuration has none.
	 */
	struct resources compute_unit;
	struct slice response;     /* the reply as JSON, for the log; unless failed */
	const struct error *error; /* if failed */
};

struct scheduler_client_handler {
	void *context;
	/* The scheduler to ask now; NULL if none is ready. Read during the call of scheduler_client_request only. */
	const struct scheduler_peer *(*current_scheduler)(void *context);
	/* The request is over. May come from within scheduler_client_request. */
	void (*on_done)(void *context, const struct scheduler_result *result);
};

struct scheduler_client {
	struct loop *loop;
	struct http_client *http;
	const struct agent_config *config;
	struct plugin_versions *versions; /* shared by all clients of the agent */
	struct agent_metrics *metrics;
	const char *namespace; /* of the pod */
	const char *pod_name;
	uint64_t slot_bytes; /* of the VM's memory; 0 refuses to speak of slots */
	struct scheduler_client_handler handler;
	struct logger logger;
	struct http_exchange *exchange;
	int status; /* of the reply, once its head is there */
	struct buffer body;
	struct core_plugin_request request; /* the one under way */
	enum plugin_protocol version;       /* in which it was sent last */
	unsigned sends;
	uint64_t deadline_ns;
	char host[AGENT_POD_IP_BYTES];
	char uid[PLUGIN_VERSIONS_UID_BYTES];
	char url[URL_TEXT_BYTES]; /* for error texts */
};

/* Copies; what the copy points at, and the struct, must stay until scheduler_client_stop. */
void scheduler_client_init(struct scheduler_client *client, const struct scheduler_client *settings);
/* There must be no request under way. */
void scheduler_client_request(struct scheduler_client *client, const struct core_plugin_request *request);
/* A request under way ends as failed, "context canceled", reported to the handler as ever. */
void scheduler_client_stop(struct scheduler_client *client);

#endif
