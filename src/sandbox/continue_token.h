/*
 * The continue token of a list's page (spec surroundings 5.2.2): which version is being listed and behind which object to go on, as the
 * original writes it.
 */
#ifndef BALLAST_SANDBOX_CONTINUE_TOKEN_H
#define BALLAST_SANDBOX_CONTINUE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

struct continue_token {
	int64_t version; /* -1: whatever is newest */
	struct slice
		name_space; /* of the object to go on behind; empty in lists of one namespace and of kinds without */
	struct slice name;
};

/* NULL data when memory is short. */
struct slice continue_token_print(const struct continue_token *token, struct arena *arena);
bool continue_token_parse(struct slice text, struct arena *arena, struct continue_token *ret_token, struct error *err);

#endif
