/*
 * The report layer's limits, all in one place (design section 1.6). Reaching one is an error with a message.
 */
#ifndef BALLAST_REPORT_LIMITS_H
#define BALLAST_REPORT_LIMITS_H

enum {
	REPORT_QUEUE_EVENTS = 100000,          /* that wait for one client; README of the specs, decision 13 */
	REPORT_QUEUE_BYTES = 64 * 1024 * 1024, /* likewise: memory that they take */
	REPORT_EVENT_BYTES = 64 * 1024,        /* one event's JSON */
	REPORT_BATCH_BYTES = 4 * 1024 * 1024,  /* a batch this large is complete, however few events it has */
	REPORT_CLIENTS_PER_SINK = 4,
	REPORT_LOGGER_NAME_BYTES = 128,
	REPORT_LOG_FIELDS = 4,     /* that describe a request */
	REPORT_PREFIX_BYTES = 512, /* of object keys; S3 and Azure allow 1024 for a key */
	REPORT_KEY_BYTES = 1024,
	REPORT_URL_BYTES = 2048,
	REPORT_REPLY_BYTES = 64 * 1024,               /* looked at of a reply; the rest is left unread */
	REPORT_REPLY_SKIPPED_BYTES = 4 * 1024 * 1024, /* read past, so that the connection lives on; beyond it goes */
	REPORT_HEADER_VALUE_BYTES = 32 * 1024,        /* tokens are long */
	REPORT_TOKEN_FILE_BYTES = 32 * 1024,
	REPORT_CA_FILE_BYTES = 4 * 1024 * 1024,
	REPORT_RETRY_FIRST_MS = 500, /* between passes once the sink finishes; doubles */
	REPORT_RETRY_MOST_MS = 4000,
	REPORT_DROP_LOG_INTERVAL_S = 60,    /* between log lines about dropped events */
	S3_ATTEMPTS = 3,                    /* P10 */
	S3_RETRY_MOST_S = 20,               /* P10 */
	AZURE_ATTEMPTS = 4,                 /* A5 */
	AZURE_RETRY_FIRST_MS = 800,         /* A5 */
	AZURE_RETRY_MOST_S = 60,            /* A5 */
	CREDENTIAL_REFRESH_S = 5 * 60,      /* before they expire; P15, A7 */
	CREDENTIAL_CALL_TIMEOUT_MS = 30000, /* one request to whoever issues them; the push's deadline comes first */
	METADATA_CALL_TIMEOUT_MS = 5000,    /* likewise, to a neighbour */
	INSTANCE_CREDENTIAL_MOST_S = 3600,  /* P15: those of an instance count no longer than this */
	AZURE_INSTANCE_PROBE_MS = 1000,     /* A10: until it has answered once */
};

#endif
