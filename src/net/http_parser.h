/*
 * HTTP/1.x messages out of a flow of bytes: llhttp in its strict default, plus the limits and checks that llhttp leaves
 * to us. It knows no loop and calls nobody back; its owner feeds bytes and asks what came:
 *
 *	while ((event = http_parser_next(&parser, &bytes, &body, &err)) != HTTP_PARSER_MORE) …
 *
 * Refused here, besides what llhttp refuses (both Content-Length and Transfer-Encoding, repeated or odd Content-Length,
 * bare CR or LF, folded lines, bad characters): heads over HTTP_HEADER_BYTES or HTTP_HEADER_COUNT, targets over
 * HTTP_TARGET_BYTES, chunk extensions and other framing beyond reason, versions other than 1.0 and 1.1, transfer
 * codings other than chunked, and those in HTTP/1.0.
 */
#ifndef BALLAST_NET_HTTP_PARSER_H
#define BALLAST_NET_HTTP_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "net/http_message.h"
#include "net/limits.h"

enum http_parser_event {
	HTTP_PARSER_MORE,   /* everything was taken; feed more */
	HTTP_PARSER_HEAD,   /* the head is complete: look at method, target, status, fields */
	HTTP_PARSER_BODY,   /* a piece of the body, in *ret_body */
	HTTP_PARSER_DONE,   /* the message is complete; what is left of *bytes belongs to what follows */
	HTTP_PARSER_FAILED, /* *err says why; nothing more can be read from this peer */
};

/* Which answer a server gives to a request that failed. */
enum http_parser_fault {
	HTTP_FAULT_MALFORMED,       /* 400 */
	HTTP_FAULT_TARGET_TOO_LONG, /* 414 */
	HTTP_FAULT_HEAD_TOO_LONG,   /* 431 */
	HTTP_FAULT_METHOD,          /* 501 */
	HTTP_FAULT_CODING,          /* 501 */
	HTTP_FAULT_VERSION,         /* 505 */
	HTTP_FAULT_MEMORY,          /* 503 */
};

struct http_parser {
	llhttp_t llhttp;
	/* The texts of the head one after another: target, name, value, name, value, … */
	struct buffer texts;
	struct http_field *fields; /* until the head is complete, lengths only */
	size_t field_count;
	size_t field_capacity;
	size_t trailer_count; /* of fields after a chunked body, which aren't kept */
	size_t protocol_length;
	size_t target_length;
	size_t head_bytes;      /* of this message's head as it came, interim responses included */
	uint64_t body_bytes;    /* content so far */
	uint64_t framing_bytes; /* after the head: all that isn't content */
	uint64_t chunk_count;
	uint64_t chunk_left;    /* content still to come of the current chunk */
	uint64_t length;        /* what Content-Length said */
	size_t extension_bytes; /* of the current chunk */
	struct slice piece;     /* what on_body got during one call of llhttp */
	char method[HTTP_METHOD_BYTES];
	size_t method_length;
	enum http_parser_fault fault;
	int limit_code;    /* which of our own checks failed, see http_parser.c; 0: none */
	bool method_known; /* requests: the method has been read and fed */
	bool head_request; /* responses: to a HEAD, so without body */
	bool field_open;   /* a field's name is being read */
	bool interim;      /* in a 1xx response, which is skipped */
	bool head_complete;
	bool has_body;
	bool chunked;
	bool until_close; /* the body ends with the connection */
	bool keep_alive;
	bool has_length;
	bool failed;
	bool event_head, event_done; /* set by llhttp's callbacks, taken by http_parser_next */
	bool begun;                  /* some byte of the message has come */
};

/* Allocates nothing yet. */
void http_parser_init_request(struct http_parser *parser);
void http_parser_init_response(struct http_parser *parser, bool to_head_request);
/* Gives the memory back; the parser is as after init. Between messages and at the end. */
void http_parser_reset(struct http_parser *parser);

/* Takes bytes from the front of *bytes and says what came. After FAILED and DONE only http_parser_reset helps. */
enum http_parser_event http_parser_next(struct http_parser *parser, struct slice *bytes, struct slice *ret_body,
                                        struct error *err);

/*
 * The peer ended its side. True if that completes the message (a response's body without a length ends so). Otherwise
 * ERROR_CLOSED: "EOF" when nothing had come, "unexpected EOF" in the middle (spec agent-runtime 0.5).
 */
bool http_parser_finish(struct http_parser *parser, struct error *err);

/* ---- from HTTP_PARSER_HEAD to the reset ---- */

struct slice http_parser_method(const struct http_parser *parser);
struct slice http_parser_target(const struct http_parser *parser);
struct http_fields http_parser_fields(const struct http_parser *parser);
int http_parser_status(const struct http_parser *parser);
bool http_parser_is_http10(const struct http_parser *parser);
/* Whether a body is to come, and if known how long. */
bool http_parser_has_body(const struct http_parser *parser);
bool http_parser_length(const struct http_parser *parser, uint64_t *ret_length);
/* Whether the connection may carry another message after this one. */
bool http_parser_keep_alive(const struct http_parser *parser);

#endif
