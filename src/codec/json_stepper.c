/*
 * A state machine that stops between any two bytes: what comes next is in `state`, what is open in one bit per level. A
 * string goes on where it was cut. A number, a literal or an escape that is cut is looked at again when there is more;
 * those are short, so that costs nothing even if the bytes come one by one.
 */
#include "codec/json_stepper.h"

#include <string.h>

#include "codec/json_internal.h"

enum state {
	VALUE,
	FIRST_ITEM, /* a value, or the end of the array */
	FIRST_KEY,  /* a key, or the end of the object */
	KEY,
	COLON,
	BEHIND, /* a value: a comma, or the end of what it lies in */
	STRING, /* within */
	DONE,
	FAILED,
};

_Static_assert(JSON_MAX_DEPTH <= 64, "one bit per level");

/* One step: the stepper and the text it is given. */
struct step {
	struct json_stepper *stepper;
	struct slice text;
	const char *at;
	const char *end;
	bool starved; /* what begins at `at` is cut off by the end */
	struct error *err;
};

void json_stepper_init(struct json_stepper *stepper, int event_depth, json_stepper_callback *callback, void *context)
{
	*stepper = (struct json_stepper){ .callback = callback, .context = context, .event_depth = event_depth };
}

static bool fail(struct step *step, const char *at, const char *where)
{
	unsigned char c = (unsigned char)*at;

	if (c == '\'' || c == '\\')
		return error_set(step->err, ERROR_SYNTAX, "invalid character '\\%c' %s", c, where);
	if (c >= ' ' && c <= '~')
		return error_set(step->err, ERROR_SYNTAX, "invalid character '%c' %s", c, where);
	return error_set(step->err, ERROR_SYNTAX, "invalid character '\\x%02x' %s", c, where);
}

static inline bool tell(struct step *step, enum json_event event, const char *at)
{
	struct json_stepper *stepper = step->stepper;

	if (stepper->depth > stepper->event_depth || stepper->callback == NULL)
		return true;
	return stepper->callback(stepper->context, step->text, event, stepper->depth, (size_t)(at - step->text.data),
	                         step->err);
}

static inline bool end_value(struct step *step, const char *behind)
{
	step->at = behind;
	step->stepper->state = step->stepper->depth > 0 ? BEHIND : DONE;
	return tell(step, JSON_EVENT_END, behind);
}

/* --- strings --- */

/* On a backslash. */
static bool take_escape(struct step *step)
{
	const char *at = step->at + 1;

	if (at == step->end) {
		step->starved = true;
		return true;
	}
	if (strchr("\"\\/bfnrtu", *at) == NULL || *at == '\0')
		return fail(step, at, "in string escape code");
	if (*at++ == 'u') {
		for (int i = 0; i < 4; i++, at++) {
			if (at == step->end) {
				step->starved = true;
				return true;
			}
			if (!((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f') || (*at >= 'A' && *at <= 'F')))
				return fail(step, at, "in \\u hexadecimal character escape");
		}
	}
	step->at = at;
	return true;
}

static bool take_string(struct step *step)
{
	struct json_stepper *stepper = step->stepper;

	while (!step->starved) {
		step->at = plain_text_skip(step->at, step->end);
		if (step->at == step->end)
			return true;
		if (*step->at == '"') {
			if (!stepper->key)
				return end_value(step, step->at + 1);
			step->at++;
			stepper->state = COLON;
			return tell(step, JSON_EVENT_KEY_END, step->at);
		}
		if (*step->at == '\\') {
			if (!take_escape(step))
				return false;
		} else if ((unsigned char)*step->at < ' ') {
			return fail(step, step->at, "in string literal");
		} else {
			step->at++;
		}
	}
	return true;
}

static bool begin_string(struct step *step, bool key)
{
	step->stepper->key = key;
	step->stepper->count++;
	if (!tell(step, key ? JSON_EVENT_KEY_BEGIN : JSON_EVENT_BEGIN, step->at))
		return false;
	step->at++;
	step->stepper->state = STRING;
	return take_string(step);
}

/* --- numbers and literals --- */

static const char *skip_digits(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

/* At least one digit. *ret_cut: the text ends before it. */
static const char *take_digits(struct step *step, const char *at, const char *where, bool *ret_cut)
{
	const char *behind = skip_digits(at, step->end);

	if (behind > at)
		return behind;
	*ret_cut = at == step->end;
	if (!*ret_cut)
		fail(step, at, where);
	return NULL;
}

/*
 * Behind the number at hand; NULL where it is cut off by the end (*ret_cut) or wrong. A number that reaches the end of
 * the text may go on in the next.
 */
static const char *scan_number(struct step *step, bool *ret_cut)
{
	const char *at = step->at;
	const char *end = step->end;

	if (*at == '-')
		at++;
	if (at < end && *at == '0')
		at++;
	else
		at = take_digits(step, at, "in numeric literal", ret_cut);
	if (at != NULL && at < end && *at == '.')
		at = take_digits(step, at + 1, "after decimal point in numeric literal", ret_cut);
	if (at == NULL || at == end || (*at != 'e' && *at != 'E'))
		return at;
	at++;
	if (at < end && (*at == '+' || *at == '-'))
		at++;
	return take_digits(step, at, "in exponent of numeric literal", ret_cut);
}

/* complete: the text ends here for good. */
static bool take_number(struct step *step, bool complete)
{
	bool cut = false;
	const char *start = step->at;
	const char *behind = scan_number(step, &cut);
	const char *reached = behind != NULL ? behind : step->end;

	if (behind == NULL && !cut)
		return false;
	if (reached - start > JSON_MAX_NUMBER_BYTES)
		return error_set(step->err, ERROR_LIMIT, "a number of more than %d characters", JSON_MAX_NUMBER_BYTES);
	if (cut || (behind == step->end && !complete)) {
		step->starved = true;
		return true;
	}
	step->stepper->count++;
	return tell(step, JSON_EVENT_BEGIN, start) && end_value(step, behind);
}

static bool take_literal(struct step *step, const char *literal)
{
	const char *at = step->at;
	const char *start = at;

	for (const char *expected = literal; *expected != '\0'; expected++, at++) {
		if (at == step->end) {
			step->starved = true;
			return true;
		}
		if (*at != *expected)
			return fail(step, at, "in literal true, false or null");
	}
	step->stepper->count++;
	return tell(step, JSON_EVENT_BEGIN, start) && end_value(step, at);
}

/* --- structure --- */

static bool open_bracket(struct step *step, bool object)
{
	struct json_stepper *stepper = step->stepper;
	uint64_t bit;

	if (stepper->depth == JSON_MAX_DEPTH)
		return error_set(step->err, ERROR_LIMIT, "nested deeper than %d", JSON_MAX_DEPTH);
	stepper->count++;
	if (!tell(step, JSON_EVENT_BEGIN, step->at))
		return false;
	bit = (uint64_t)1 << stepper->depth++;
	stepper->objects = object ? stepper->objects | bit : stepper->objects & ~bit;
	stepper->state = object ? FIRST_KEY : FIRST_ITEM;
	step->at++;
	return true;
}

static bool close_bracket(struct step *step)
{
	step->stepper->depth--;
	return end_value(step, step->at + 1);
}

static bool take_value(struct step *step)
{
	switch (*step->at) {
	case '"':
		return begin_string(step, false);
	case '{':
		return open_bracket(step, true);
	case '[':
		return open_bracket(step, false);
	case 't':
		return take_literal(step, "true");
	case 'f':
		return take_literal(step, "false");
	case 'n':
		return take_literal(step, "null");
	default:
		if (*step->at != '-' && (*step->at < '0' || *step->at > '9'))
			return fail(step, step->at, "looking for beginning of value");
		return take_number(step, false);
	}
}

static bool take_behind(struct step *step)
{
	struct json_stepper *stepper = step->stepper;
	bool object = (stepper->objects >> (stepper->depth - 1) & 1) != 0;

	if (*step->at == ',') {
		step->at++;
		stepper->state = object ? KEY : VALUE;
		return true;
	}
	if (*step->at != (object ? '}' : ']'))
		return fail(step, step->at, object ? "after object key:value pair" : "after array element");
	return close_bracket(step);
}

/* On the first byte, not a blank, of what `state` says. */
static bool take_next(struct step *step)
{
	switch (step->stepper->state) {
	case FIRST_ITEM:
		if (*step->at == ']')
			return close_bracket(step);
		return take_value(step);
	case FIRST_KEY:
		if (*step->at == '}')
			return close_bracket(step);
		/* fall through */
	case KEY:
		if (*step->at != '"')
			return fail(step, step->at, "looking for beginning of object key string");
		return begin_string(step, true);
	case COLON:
		if (*step->at != ':')
			return fail(step, step->at, "after object key");
		step->at++;
		step->stepper->state = VALUE;
		return true;
	case BEHIND:
		return take_behind(step);
	default:
		return take_value(step);
	}
}

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool run(struct step *step)
{
	struct json_stepper *stepper = step->stepper;

	if (stepper->state == STRING && !take_string(step))
		return false;
	while (step->at < step->end && !step->starved && stepper->state != DONE) {
		if (is_blank(*step->at))
			step->at++;
		else if (!take_next(step))
			return false;
	}
	return true;
}

bool json_stepper_step(struct json_stepper *stepper, struct slice text, struct error *err)
{
	struct step step = { .stepper = stepper, .text = text, .err = err };

	if (text.length <= stepper->at || stepper->state == DONE)
		return true;
	step.at = text.data + stepper->at;
	step.end = text.data + text.length;
	if (stepper->state == FAILED)
		return error_set(err, ERROR_SYNTAX, "the text was refused before");
	if (!run(&step)) {
		stepper->state = FAILED;
		return false;
	}
	stepper->at = (size_t)(step.at - text.data);
	return true;
}

bool json_stepper_done(const struct json_stepper *stepper)
{
	return stepper->state == DONE;
}

bool json_stepper_finish(struct json_stepper *stepper, struct slice text, struct error *err)
{
	struct step step = { .stepper = stepper, .text = text, .err = err };

	if (stepper->state == DONE)
		return true;
	if (stepper->state == VALUE && stepper->depth == 0) {
		if (stepper->at == text.length)
			return error_set(err, ERROR_ENDED, "EOF");
		/* Only the end of the text says that a number is over. */
		step.at = text.data + stepper->at;
		step.end = text.data + text.length;
		if (*step.at == '-' || (*step.at >= '0' && *step.at <= '9')) {
			if (!take_number(&step, true))
				return false;
			if (stepper->state == DONE)
				return true;
		}
	}
	return error_set(err, ERROR_CLOSED, "unexpected EOF");
}
