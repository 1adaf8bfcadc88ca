/*
 * The limits of the extender's engine, all in one place (design section 1.6); process_limits.h has those of its
 * servers, caches and calls. Reaching one is an error with a message.
 */
#ifndef BALLAST_EXTENDER_LIMITS_H
#define BALLAST_EXTENDER_LIMITS_H

enum {
	/* Of one request (spec H5): 1,000 nodes of 60 kB fit. */
	EXTENDER_BODY_BYTES = 64 * 1024 * 1024,
	EXTENDER_BINDING_BYTES = 64 * 1024,
	/*
	 * A request without its nodes: the pod, at most a few hundred kB, and with node names 260 bytes for each of
	 * 5,000 nodes. It is decoded within one turn of the loop, at about 30 ns for each key and value.
	 */
	EXTENDER_ENVELOPE_BYTES = 2 * 1024 * 1024,
	EXTENDER_ENVELOPE_VALUES = 50000,
	/* What is decoded of a request: names and ids of all nodes, the pod, tokens of the envelope (20 bytes each). */
	EXTENDER_REQUEST_ARENA_BYTES = 64 * 1024 * 1024,
	/*
	 * A node's metadata, likewise, at about 45 ns: annotations may have 256 kB, which JSON's escapes can double;
	 * labels and managedFields come on top.
	 */
	EXTENDER_NODE_META_BYTES = 1024 * 1024,
	EXTENDER_NODE_META_VALUES = 32768,
	EXTENDER_NODE_META_ARENA_BYTES = 12 * EXTENDER_NODE_META_BYTES,
	EXTENDER_NODES = 65536,      /* in one request; the largest clusters have 15,000 */
	EXTENDER_POD_VOLUMES = 1024, /* a node can't attach more than some hundred */
	/* A filter call's plan, lists and reasons; some 200 bytes for each node of a request. */
	EXTENDER_CALL_ARENA_BYTES = 64 * 1024 * 1024,
	/* A reservation as JSON: ids of up to EXTENDER_NODES nodes. etcd takes 1.5 MiB. */
	EXTENDER_RESERVATION_BYTES = 8 * 1024 * 1024,
	EXTENDER_RESERVATION_NAME_BYTES = 64 + 256, /* a namespace has up to 63 bytes, a pod's name 253; '-', NUL */
	/* An answer without the nodes in it: reasons for, or scores of, each node. */
	EXTENDER_ANSWER_BYTES = 64 * 1024 * 1024,
	EXTENDER_CONFLICT_TRIES = 3,     /* reads again after a conflict (spec I2), then pending */
	EXTENDER_INLINE_SIZE_BYTES = 64, /* the text of an inline volume's size (spec L2) */
};

#endif
