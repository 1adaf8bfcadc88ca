/*
 * Selectors of lists and watches (spec surroundings 5.7): labelSelector "a=b,c!=d,e in (f,g),h notin (i),j,!k", and
 * fieldSelector "spec.nodeName=node-a,metadata.name!=x". Error texts are the API server's.
 */
#ifndef BALLAST_SANDBOX_LABEL_SELECTOR_H
#define BALLAST_SANDBOX_LABEL_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "sandbox/object_store.h"

enum {
	SELECTOR_REQUIREMENTS = 64, /* of one selector */
	SELECTOR_VALUES = 256,      /* of one "in (…)" */
};

enum selector_operator { SELECTOR_EXISTS, SELECTOR_ABSENT, SELECTOR_IN, SELECTOR_NOT_IN };

struct selector_requirement {
	enum selector_operator operation;
	struct slice key;
	struct slice *values; /* sorted nowhere: few */
	size_t value_count;
};

/* Zeroed, it matches everything. */
struct selector {
	struct selector_requirement *labels;
	size_t label_count;
	struct selector_requirement *fields;
	size_t field_count;
};

/* Parses one of the two into *selector. Texts are slices of `text`; the rest lies in the arena; both must outlive it. ERROR_SYNTAX: a bad request. */
bool selector_parse_labels(struct selector *selector, struct slice text, struct arena *arena, struct error *err);
bool selector_parse_fields(struct selector *selector, struct slice text, const struct resource_kind *kind,
                           struct arena *arena, struct error *err);
bool selector_is_empty(const struct selector *selector);
/* An object whose fields can't be read for want of memory doesn't match. */
bool selector_matches(const struct selector *selector, const struct stored_object *object);

#endif
