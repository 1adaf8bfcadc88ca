/*
 * The limits of the extender as a process, all in one place (design section 1.6); those of its engine are in limits.h.
 * Reaching one is an error with a message.
 */
#ifndef BALLAST_EXTENDER_PROCESS_LIMITS_H
#define BALLAST_EXTENDER_PROCESS_LIMITS_H

enum {
	/*
	 * Of all requests under way (design 5), no more than 256 MiB: beyond the first two limits, further bodies wait. One
	 * at a time is read all the same, the one that came first, so that there is always one that gets done.
	 */
	EXTENDER_BODIES_BYTES = 128 * 1024 * 1024,       /* while no more is held, any body is read */
	EXTENDER_SMALL_BODIES_BYTES = 160 * 1024 * 1024, /* and while no more is held, a small one */
	EXTENDER_SMALL_BODY_BYTES = 1024 * 1024,
	EXTENDER_READ_ANYWAY_BYTES = 80 * 1024 * 1024, /* at most, of the one that never waits */
	EXTENDER_ANSWER_STEP_BYTES = 256 * 1024,       /* of a long answer, given to the connection at a time */
	EXTENDER_CONNECTIONS = 1024,                   /* of the extender's port */
	/*
	 * A connection may be idle for longer than a scheduler keeps one (90 s), so that it is the scheduler who closes
	 * it: a request that crosses our closing fails, and a failed call lets a pod pass.
	 */
	EXTENDER_IDLE_S = 300,
	EXTENDER_PAGE_CONNECTIONS = 64,          /* of the metrics and health ports, each */
	EXTENDER_PAGE_REQUEST_BYTES = 64 * 1024, /* a request to one of those */
	EXTENDER_METRICS_PAGE_BYTES = 32 * 1024 * 1024,
	EXTENDER_METRICS_PODS = 10000,               /* pods with series of their own (I11) */
	EXTENDER_METRICS_PLACED_S = 180,             /* series of a pod live that long after its placement (M6) */
	EXTENDER_METRICS_UNSEEN_S = 3600,            /* and that long after its last call (I11) */
	EXTENDER_METRICS_SWEEP_S = 5,                /* how often that is looked at */
	EXTENDER_EVENT_LISTS = 256,                  /* pods whose events wait to be listed (I4) */
	EXTENDER_EVENT_LIST_BYTES = 4 * 1024 * 1024, /* one such list */
	EXTENDER_EVENT_LIST_TIMEOUT_MS = 5000,
	EXTENDER_EVENT_LISTS_PER_S = 5,
	EXTENDER_EVENT_LISTS_BURST = 10,
	EXTENDER_TLS_FILE_BYTES = 1024 * 1024, /* certificate or key */
	EXTENDER_TLS_LOOK_S = 10,              /* how often they are looked at (I13) */
	EXTENDER_API_QPS = 50,                 /* of live calls; the reference has 20 and 30 (P5) */
	EXTENDER_API_BURST = 100,
	EXTENDER_CALL_BUDGET_MS = 4000,            /* one filter call (I3) */
	EXTENDER_CALL_TRIES = 4,                   /* F26 */
	EXTENDER_WAIT_MAX_MS = 4000,               /* --wait-for-reservation */
	EXTENDER_WAIT_POLL_MS = 100,               /* between two looks at a reservation waited for */
	EXTENDER_PATH_BYTES = 4096,                /* of a request to the API server, name and query included */
	EXTENDER_STOP_MS = 8000,                   /* for requests under way at SIGTERM, of the 10 s of P9 */
	CACHES_ARENA_BYTES = 16 * 4 * 1024 * 1024, /* for the object being decoded, 4 MiB at most */
	CACHES_PAGE_SIZE = 500,                    /* of a list */
	CACHES_RETRY_LOW_MS = 500,                 /* waits after failures begin here (spec extender A2) … */
	CACHES_RETRY_HIGH_MS = 1000,
	CACHES_RETRY_MAX_MS = 30000, /* … and grow up to here */
	CACHES_NODES_RETRY_S = 60,   /* when nodes may not be listed */
	READINESS_FILE_BYTES = 1024 * 1024,
	READINESS_JSON_BYTES = 2 * READINESS_FILE_BYTES, /* the file as JSON */
	READINESS_ARENA_BYTES = 32 * 1024 * 1024,        /* what is decoded from that */
};

#endif
