/*
 * Checks that a text that is still arriving is one JSON value (RFC 8259), and says where the values near its top begin
 * and end.
 *
 * The text grows in the caller's memory; each step goes on where the last one stopped and looks at what is new, so
 * its work is bounded by what has arrived. Nothing is allocated. Invalid UTF-8 is let pass: whoever decodes a part
 * checks that.
 *
 *	json_stepper_init(&stepper, 2, on_event, context);
 *	while (more bytes)
 *		if (!json_stepper_step(&stepper, text so far, &err))
 *			…
 *	if (!json_stepper_finish(&stepper, text, &err))
 *		…
 */
#ifndef BALLAST_CODEC_JSON_STEPPER_H
#define BALLAST_CODEC_JSON_STEPPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

enum json_event {
	JSON_EVENT_KEY_BEGIN, /* offset of its opening quote */
	JSON_EVENT_KEY_END,   /* offset behind its closing quote */
	JSON_EVENT_BEGIN,     /* offset of a value's first byte */
	JSON_EVENT_END,       /* offset behind its last one */
};

/*
 * depth: how many objects and arrays the key or value lies in; 0 is the whole text. text is what was given to the step.
 * Returning false ends the scan as failed; *err stays as set.
 */
typedef bool json_stepper_callback(void *context, struct slice text, enum json_event event, int depth, size_t offset,
                                   struct error *err);

struct json_stepper {
	json_stepper_callback *callback; /* may be NULL */
	void *context;
	int event_depth;  /* keys and values down to this depth are told; the callback may change it */
	int state;        /* see the body */
	int depth;        /* objects and arrays open */
	uint64_t objects; /* bit d: what is open at depth d is an object */
	size_t at;        /* all before was looked at; at most a number, literal or escape behind it will be again */
	bool key;         /* the string under way is a key */
	size_t count;     /* of keys and values begun so far, at any depth: what a decoder's work grows with */
};

void json_stepper_init(struct json_stepper *stepper, int event_depth, json_stepper_callback *callback, void *context);
/*
 * Goes over text, which begins with what was given before. ERROR_SYNTAX: it isn't JSON; ERROR_LIMIT: nested deeper than
 * JSON_MAX_DEPTH, or a number longer than JSON_MAX_NUMBER_BYTES; or the callback's own. After a failure only init may
 * follow.
 */
bool json_stepper_step(struct json_stepper *stepper, struct slice text, struct error *err);
/* Whether the value is complete; what follows it isn't looked at. */
bool json_stepper_done(const struct json_stepper *stepper);
/*
 * The text is complete, and all of it was given to a step. ERROR_ENDED "EOF": nothing but blanks. ERROR_CLOSED
 * "unexpected EOF": it ends within the value.
 */
bool json_stepper_finish(struct json_stepper *stepper, struct slice text, struct error *err);

#endif
