/*
 * What is wrong with a JSON document, in parts, so that each caller can put it the way its readers expect.
 */
#ifndef BALLAST_CODEC_JSON_PROBLEM_H
#define BALLAST_CODEC_JSON_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>

enum json_problem_kind {
	JSON_PROBLEM_NONE,
	JSON_PROBLEM_SYNTAX,        /* not JSON */
	JSON_PROBLEM_EMPTY,         /* nothing but blanks */
	JSON_PROBLEM_END,           /* the text ends within a value */
	JSON_PROBLEM_TRAILING,      /* something follows the value */
	JSON_PROBLEM_TYPE,          /* `found` isn't an `expected` */
	JSON_PROBLEM_VALUE,         /* right type, wrong content: a bad quantity, too long */
	JSON_PROBLEM_UNKNOWN_KEY,   /* path ends in the key */
	JSON_PROBLEM_DUPLICATE_KEY, /* likewise */
	JSON_PROBLEM_MISSING_KEY,   /* likewise; the line is that of the object */
	JSON_PROBLEM_RESOURCE,      /* memory is short, or a limit of ours was reached */
};

struct json_problem {
	enum json_problem_kind kind;
	unsigned line;  /* from 1 */
	size_t offset;  /* of the byte, from 0 */
	char path[256]; /* "scaling.computeUnit.mem", "items[3].metadata"; "" for the document itself */
	/* UNKNOWN_KEY: the key. TYPE: "string", "object", …, "number", or "number 70000" where one was expected. */
	char found[64];
	char expected[32]; /* TYPE: "uint16", "string", "bool", … */
	char text[256];    /* a sentence without the place */
};

/* Every problem of a document (collect-all mode), in the order of the text. */
struct json_problems {
	struct json_problem *items; /* in the reader's arena */
	size_t count;
	size_t dropped; /* found beyond JSON_MAX_PROBLEMS */
};

/* `line 4: field "scaling.computeUnit.mem": …`, cut to size. */
void json_problem_describe(const struct json_problem *problem, char *text, size_t size);

/*
 * The text that the reference's decoder gives: `json: unknown field "extra"`, `json: cannot unmarshal number 70000 into
 * Go struct field monitor.serverPort of type uint16`, a quantity's own text (spec agent-runtime 2.1.2, protocols 2.4).
 * A text that ends too early is `EOF` or `unexpected EOF` when it was read as a stream (files), else `unexpected end of
 * JSON input`.
 */
void json_problem_reference_text(const struct json_problem *problem, bool stream, char *text, size_t size);

#endif
