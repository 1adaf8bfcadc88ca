/*
 * The network layer's limits, all in one place (design section 1.6). Reaching one is an error with a message.
 */
#ifndef BALLAST_NET_LIMITS_H
#define BALLAST_NET_LIMITS_H

enum {
	NET_READ_CHUNK_BYTES = 16 * 1024, /* most that one read takes from a socket */
	NET_TURN_READ_BYTES = 256 * 1024, /* most that one stream reads in one turn of the loop (fairness, 2 ms) */
	NET_STREAM_WRITE_BYTES = 8 * 1024 * 1024, /* default for what may wait to be written on one stream */
	NET_HOST_BYTES = 254,                     /* a host name with its NUL */
	NET_LISTEN_BACKLOG = 128,
	NET_TURN_WRITE_BYTES = 256 * 1024, /* most that one stream writes in one turn */
	NET_TURN_ACCEPTS = 32,             /* most connections that one listener takes in one turn */
	NET_ACCEPT_PAUSE_MS = 100,         /* when there are no descriptors or no memory for another connection */
	NET_LINGER_MS = 5000,              /* for what was queued when the peer ended its side */
	NET_ALERT_LINGER_MS = 1000,        /* for the peer of a failed TLS handshake to hear why */
	NET_OUTPUT_KEPT_BYTES = 4096,      /* room for writing that an idle stream keeps */
	NET_CONNECT_ATTEMPT_MS = 2000, /* least share of the connect timeout for one of several addresses (as in Go) */
	NET_LOOKUP_ADDRESSES = 16,     /* of one name; the rest is ignored */
	NET_LOOKUP_QUEUE = 64,         /* different names that wait for the helper */
	NET_LOOKUP_STACK_BYTES = 256 * 1024,   /* of the helper thread; address space, hardly memory */
	NET_CA_FILE_BYTES = 4 * 1024 * 1024,   /* the system's file of root certificates */
	NET_TLS_SESSIONS = 64,                 /* remembered for resumption, per settings */
	NET_TLS_SESSION_BYTES = 16 * 1024,     /* of one session, serialised */
	NET_TLS_SESSION_LIFETIME_S = 3600,     /* then the certificate is verified anew */
	NET_TLS_TICKET_LIFETIME_S = 12 * 3600, /* that a server's tickets are good for */
	NET_CONNECT_TIMEOUT_MS = 30000,        /* spec protocols 9.1.4 */
	NET_TLS_HANDSHAKE_TIMEOUT_MS = 10000,  /* spec protocols 9.1.4 */
	NET_KEEPALIVE_IDLE_S = 10,             /* a dead peer is found in at most 30 s (pitfalls, Kubernetes client) */
	NET_KEEPALIVE_INTERVAL_S = 5,
	NET_KEEPALIVE_COUNT = 4,
	NET_USER_TIMEOUT_MS = 30000,
	HTTP_HEADER_BYTES = 64 * 1024, /* request or status line and all headers */
	HTTP_HEADER_COUNT = 100,
	HTTP_METHOD_BYTES = 32,
	HTTP_TARGET_BYTES = 16 * 1024,
	HTTP_CHUNK_EXTENSION_BYTES = 1024,
	HTTP_IDLE_CONNECTIONS_PER_ORIGIN = 8,
	HTTP_IDLE_TIMEOUT_MS = 60000,
	HTTP_SERVER_HEADER_TIMEOUT_MS = 10000,
	HTTP_SERVER_BODY_TIMEOUT_MS = 30000,
	HTTP_SERVER_IDLE_TIMEOUT_MS = 120000,
	HTTP_SERVER_WRITE_TIMEOUT_MS = 60000, /* without any progress */
	HTTP_SERVER_CONNECTIONS = 1024,
	HTTP_SERVER_LINGER_MS = 2000,        /* for a refused sender to read the answer before the connection goes */
	HTTP_SERVER_AHEAD_BYTES = 64 * 1024, /* unsent answers beyond which no further pipelined request is looked at */
	WEBSOCKET_CLOSE_WRITE_TIMEOUT_MS = 5000, /* spec agent-runtime 11.3.3 */
	WEBSOCKET_CLOSE_REPLY_TIMEOUT_MS = 5000,
};

#endif
