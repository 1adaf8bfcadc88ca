/*
 * What a reply of the API server that isn't a success says (spec protocols 9.3.3).
 */
#ifndef BALLAST_KUBE_ERROR_REPLY_H
#define BALLAST_KUBE_ERROR_REPLY_H

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"

struct error_reply {
	int status;
	struct slice content_type; /* empty: none was sent */
	struct slice body;
	const char *verb;     /* "patch" */
	const char *resource; /* "virtualmachines.vm.neon.tech" */
	struct slice name;    /* may be empty */
};

/*
 * Fills *err (ERROR_REFUSED) and returns false. The text is the message of a Status, or else a sentence by code
 * followed by " (verb resource name)".
 */
bool error_reply_describe(const struct error_reply *reply, struct error *err);

#endif
