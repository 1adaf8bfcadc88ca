/*
 * The ports the agent listens on (spec agent-runtime 1.4): the metrics of the agent itself, those of single VMs, and
 * the state dump.
 *
 * Beside /metrics, the agent's port has what probes ask for: /livez answers while the loop turns; /readyz is 200 from
 * the start (which is when both first lists are in) until the agent drains, then 503.
 */
#ifndef BALLAST_AGENT_SERVERS_H
#define BALLAST_AGENT_SERVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/admin_token.h"
#include "agent/agent_metrics.h"
#include "agent/config.h"
#include "agent/supervisor.h"
#include "agent/vm_metrics.h"
#include "base/error.h"
#include "base/log.h"
#include "net/address.h"
#include "net/loop.h"

enum { SERVERS_METRICS_PORT = 9100, SERVERS_VM_METRICS_PORT = 9101 };

struct servers;

/* Everything pointed at must outlive the servers. */
struct servers_options {
	struct loop *loop;
	const char *listen_address; /* a literal address; NULL or empty: all of IPv4 */
	uint16_t metrics_port;      /* SERVERS_METRICS_PORT and SERVERS_VM_METRICS_PORT, but for tests */
	uint16_t vm_metrics_port;
	struct agent_dump_config dump; /* not present: no server for it */
	struct agent_metrics *metrics;
	struct vm_metrics *vm_metrics;
	const struct supervisor *supervisor;
	struct log_sink *log_sink;
	struct admin_token *admin_token; /* asked before all but the probes; NULL: everybody may */
};

/*
 * Binds in the order of 1.2. NULL with one of the texts "error starting prometheus metrics server: error listening on
 * TCP port 9100: …" and "error starting dump state server: error binding to …".
 */
struct servers *servers_start(const struct servers_options *options, struct error *err);

enum server_kind { SERVER_METRICS, SERVER_VM_METRICS, SERVER_DUMP };

/* Where a server listens. False if there is none, or no longer. */
bool servers_address(const struct servers *servers, enum server_kind kind, struct address *ret_address);
/*
 * The metrics servers stop accepting at once and finish open requests, for at most timeout_ns; then on_drained comes.
 * The dump server goes on (1.3.3).
 */
void servers_drain(struct servers *servers, uint64_t timeout_ns, void (*on_drained)(void *context), void *context);
/* Closes everything without callbacks. NULL is fine. */
void servers_destroy(struct servers *servers);

#endif
