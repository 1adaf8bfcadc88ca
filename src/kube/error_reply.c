#include "kube/error_reply.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "codec/go_quote.h"
#include "gen/kube.gen.h"
#include "kube/limits.h"

enum { DECODE_BYTES = 12 * KUBE_ERROR_BODY_BYTES };

/* *ret_message lives in the arena or the body. */
static bool status_message(struct slice body, struct arena *arena, struct slice *ret_message)
{
	struct kube_status status;
	struct error err;

	if (!kube_status_from_json(body, arena, &status, &err))
		return false;
	if (!slice_equal_text(status.kind, "Status") || status.message.length == 0)
		return false;
	*ret_message = status.message;
	return true;
}

/* What the server says in plain text; "unknown" for anything else it may have sent. */
static struct slice plain_text(const struct error_reply *reply)
{
	struct slice body = reply->body;

	if (reply->content_type.length > 0 && !slice_starts_with(reply->content_type, SLICE("text/")))
		return SLICE("unknown");
	if (body.length > KUBE_ERROR_TEXT_BYTES)
		body.length = KUBE_ERROR_TEXT_BYTES;
	return slice_trim(body);
}

static const char *sentence_of(int status)
{
	switch (status) {
	case 400:
		return "the server rejected our request for an unknown reason";
	case 401:
		return "the server has asked for the client to provide credentials";
	case 404:
		return "the server could not find the requested resource";
	case 405:
		return "the server does not allow this method on the requested resource";
	case 409:
		return "the server reported a conflict";
	case 422:
		return "the server rejected our request due to an error in our request";
	case 429:
		return "the server has received too many requests and has asked us to try again later";
	case 503:
		return "the server is currently unable to handle the request";
	case 504:
		return "the server was unable to return a response in the time allotted, but may still be processing "
		       "the request";
	default:
		return NULL;
	}
}

static void append_sentence(const struct error_reply *reply, struct buffer *text)
{
	const char *sentence = sentence_of(reply->status);

	if (sentence != NULL) {
		buffer_append_text(text, sentence);
	} else if (reply->status == 403 || reply->status == 406) {
		buffer_append_slice(text, plain_text(reply));
	} else if (reply->status >= 500) {
		buffer_append_text(text, "an error on the server (");
		go_quote_append(text, plain_text(reply));
		buffer_append_text(text, ") has prevented the request from succeeding");
	} else {
		buffer_append_format(text,
		                     "the server responded with the status code %d but did not return more information",
		                     reply->status);
	}
	buffer_append_format(text, " (%s %s", reply->verb, reply->resource);
	if (reply->name.length > 0)
		buffer_append_format(text, " %.*s", SLICE_ARGS(reply->name));
	buffer_append_char(text, ')');
}

bool error_reply_describe(const struct error_reply *reply, struct error *err)
{
	struct slice message;
	struct buffer sentence;
	struct arena arena;

	arena_init(&arena, DECODE_BYTES);
	buffer_init(&sentence, (size_t)8 * KUBE_ERROR_TEXT_BYTES);
	if (!status_message(reply->body, &arena, &message)) {
		append_sentence(reply, &sentence);
		message = buffer_slice(&sentence);
	}
	/* Without memory for the sentence there is still the code. */
	if (sentence.failed)
		error_set(err, ERROR_REFUSED, "the server responded with the status code %d", reply->status);
	else
		error_set(err, ERROR_REFUSED, "%.*s", SLICE_ARGS(message));
	buffer_destroy(&sentence);
	arena_destroy(&arena);
	return false;
}
