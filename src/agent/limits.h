/*
 * The agent's limits, all in one place (design section 1.6). Reaching one is an error with a message.
 */
#ifndef BALLAST_AGENT_LIMITS_H
#define BALLAST_AGENT_LIMITS_H

enum {
	/* Real pages have up to 68 kB; a page is read within one turn of the loop. */
	AGENT_SCRAPE_PAGE_BYTES = 1024 * 1024,
	AGENT_SCHEDULER_REPLY_BYTES = 64 * 1024, /* real replies have some 50 bytes, refusals a sentence */
	AGENT_MONITOR_MESSAGE_BYTES = 32768,     /* agent-runtime 11.3.2 */
	AGENT_MONITOR_MESSAGES_PER_S = 50,       /* from a guest; real ones send one or two */
	AGENT_MONITOR_MESSAGES_BURST = 200,
	AGENT_MONITOR_CALLS = 4,           /* under way at once: a downscale, an upscale, a health check */
	AGENT_MONITOR_STATUS_BYTES = 1024, /* of a guest's explanation, in the log */
	AGENT_POD_IP_BYTES = 64,           /* a literal address with its NUL */
	AGENT_ENDPOINT_ID_BYTES = 64,      /* a label's value has at most 63 bytes */
	AGENT_FAILURES_REMEMBERED = 1024,  /* per runner and peer, unless the configured threshold is higher */
	AGENT_FAILURES_REMEMBERED_MAX = 65536,
	AGENT_END_STATES_REMEMBERED = 16,  /* per pod; restarts beyond are counted, the oldest are forgotten */
	AGENT_NEONVM_RESULTS = 64,         /* different values of that label */
	AGENT_LOG_FIELD_BYTES = 64 * 1024, /* one JSON field of a log line */
	AGENT_METRICS_PAGE_BYTES = 64 * 1024 * 1024, /* some 150 bytes for each series, 2 KiB for each VM */
	AGENT_METRICS_CONNECTIONS = 256,             /* of each metrics server */
	AGENT_SERVER_REQUEST_BYTES = 64 * 1024, /* of a body that somebody sends to a page or asks for a dump with */
	AGENT_DUMP_BYTES = 64 * 1024 * 1024,    /* of a state dump, as structs and as JSON; a pod takes about 4 KiB */
	AGENT_DUMP_CONNECTIONS = 64,
	AGENT_ADMIN_TOKEN_BYTES = 4096,  /* of the file, white space included */
	AGENT_EVENT_BYTES = 64 * 1024,   /* of a billing or scaling event */
	AGENT_HOST_NAME_BYTES = 256,     /* the kernel's has at most 64 */
	AGENT_KUBE_EVENT_TALLIES = 4096, /* VMs with reasons of Kubernetes Events */
	AGENT_KUBE_EVENTS_WAITING = 64,
	AGENT_KUBE_EVENTS_UNDER_WAY = 4, /* so that most connections are left to patches */
};

#endif
