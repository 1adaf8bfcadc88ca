/*
 * A request of the scheduler: takes the body as it arrives, and gives the pod and the nodes.
 *
 * The body is kept once, in one piece, and each node is a range of it (spec extender J4, I10): of a node only name and
 * id are read, as soon as it is complete. So a request costs little more than its body, and no turn of the loop has to
 * go through a large body: the work of request_feed is bounded by what it is fed.
 *
 *	struct request request;
 *
 *	request_init(&request, REQUEST_ARGS, &settings);
 *	… request_feed(&request, bytes) …        (413 when it says so)
 *	if (!request_finish(&request, &err))     Fail-A(err.text), or spec H9
 *	…
 *	request_destroy(&request);
 *
 * The settings must outlive the request. A request mustn't move in memory.
 */
#ifndef BALLAST_EXTENDER_REQUEST_H
#define BALLAST_EXTENDER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "codec/json_stepper.h"
#include "extender/node_id.h"
#include "extender/settings.h"
#include "extender/storage_view.h"
#include "gen/extender.gen.h"

enum request_kind {
	REQUEST_ARGS,    /* /filter, /prioritize */
	REQUEST_BINDING, /* /bind */
};

enum request_feed_result {
	REQUEST_FED,       /* also when the body turned out to be no JSON: request_finish says so */
	REQUEST_TOO_LARGE, /* more than the limit: answer 413 */
	REQUEST_NO_MEMORY, /* /filter: answer Retry, the others 503 */
};

struct request_node {
	size_t start; /* of its bytes in the body; by name: 0 */
	size_t length;
	struct slice name; /* in the request's memory */
	struct node_id id;
};

struct request {
	enum request_kind kind;
	const struct extender_settings *settings;
	/* the result, for after request_finish */
	struct extender_args args;            /* REQUEST_ARGS; args.has_pod is true */
	struct extender_binding_args binding; /* REQUEST_BINDING */
	struct request_node *nodes;           /* of args.nodes, in order; or made by request_resolve_names */
	size_t node_count;
	/* memory */
	struct buffer body;
	struct buffer envelope;  /* the body without the nodes */
	struct arena arena;      /* what is decoded of the envelope; names and ids */
	struct arena node_arena; /* for one node at a time */
	/* the scan */
	struct json_stepper stepper;
	size_t received_bytes;
	size_t copied; /* all of the body before is in the envelope, or was left out of it */
	size_t node_capacity;
	size_t key_start; /* of the last member name, with its quote */
	size_t key_end;
	bool in_nodes; /* within the value of Nodes, of its items, of a node's metadata */
	bool in_items;
	bool in_meta;
	size_t items_count; /* of keys and values before the items, as the stepper counts them */
	size_t cut_count;   /* of those in all items that were cut out */
	size_t meta_count;  /* of those before a node's metadata; then of those in it */
	size_t node_start;  /* of the node under way */
	size_t meta_start;  /* of its metadata */
	size_t meta_end;    /* 0: there was none yet */
	bool finished;
	bool undecodable;
	struct error problem; /* if undecodable */
};

/* Allocates nothing yet. */
void request_init(struct request *request, enum request_kind kind, const struct extender_settings *settings);
/* The body's length is known: makes room for all of it at once. */
enum request_feed_result request_expect(struct request *request, size_t length);
enum request_feed_result request_feed(struct request *request, struct slice bytes);
/*
 * The body is complete. False: it is undecodable, and err->text is the reason to answer with (spec H10): "EOF",
 * "unexpected EOF", or what is wrong. A missing pod counts as undecodable (spec H11). Called again, it says the same.
 */
bool request_finish(struct request *request, struct error *err);
/* Memory held at present, for a cap over all requests. */
size_t request_held_bytes(const struct request *request);
void request_destroy(struct request *request);

/* After request_finish: whether the request lists nodes in full, by name only (spec I9), or not at all (H12). */
enum request_nodes_form { REQUEST_NODES_FULL, REQUEST_NODES_BY_NAME, REQUEST_NODES_ABSENT };
enum request_nodes_form request_nodes_form(const struct request *request);
/* By name: fills request->nodes from the cache of nodes. False: there is none, or no memory. */
bool request_resolve_names(struct request *request, const struct storage_view *view, struct error *err);
/* A node's bytes, as they came. */
struct slice request_node_text(const struct request *request, const struct request_node *node);

#endif
