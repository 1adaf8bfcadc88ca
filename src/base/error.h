/*
 * Errors that travel: a code for the program, a sentence for a person.
 *
 * A function that can fail takes a `struct error *` as its last argument and returns false (or NULL) after filling it.
 * Each caller that knows more adds context in front: "reading config /etc/a.json: line 4: field
 * \"metrics.system.port\": 70000 is over 65535". Nothing allocates, so running out of memory can be reported too.
 */
#ifndef BALLAST_BASE_ERROR_H
#define BALLAST_BASE_ERROR_H

#include <stdbool.h>

enum error_code {
	ERROR_NONE,
	ERROR_NO_MEMORY,
	ERROR_SYSTEM,    /* a system call failed; the text names it */
	ERROR_SYNTAX,    /* input isn't what its format allows */
	ERROR_LIMIT,     /* input is well-formed but beyond a stated limit */
	ERROR_TIMEOUT,   /* our own deadline passed */
	ERROR_ENDED,     /* the peer ended its side in good order */
	ERROR_CLOSED,    /* the peer went away: reset, cut off, or ended where more was due */
	ERROR_REFUSED,   /* the peer understood and said no */
	ERROR_CANCELLED, /* we changed our mind */
	ERROR_INVARIANT, /* a bug, or what the reference treats as one: state that must not be */
};

struct error {
	enum error_code code;
	unsigned short root; /* where the innermost text begins, see error_root */
	char text[1024];     /* NUL-terminated; longer texts end in "…" */
};

/* Fills *err and returns false, so that `return error_set(err, …);` ends a failing function. */
bool error_set(struct error *err, enum error_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text already in *err; keeps code and root; returns false. */
bool error_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The innermost text, without the context that error_wrap put before it: what metric labels and close reasons quote. */
const char *error_root(const struct error *err);

/*
 * As error_set with the text "what: description of errno_value", and ERROR_SYSTEM, or ERROR_CLOSED for ECONNRESET and
 * EPIPE. The description is a fixed English text (musl and glibc differ in some). The root is the description alone:
 * "connection refused", "no route to host".
 */
bool error_set_errno(struct error *err, int errno_value, const char *what);

/*
 * These three always return false, but a compiler that doesn't see their bodies can't know it, and would take an output
 * for uninitialized after `if (!parse(…, &output, err)) return false;`. So it is told.
 */
static inline bool error_false(bool result)
{
	(void)result;
	return false;
}

#define error_set(...) error_false(error_set(__VA_ARGS__))
#define error_wrap(...) error_false(error_wrap(__VA_ARGS__))
#define error_set_errno(...) error_false(error_set_errno(__VA_ARGS__))

#endif
