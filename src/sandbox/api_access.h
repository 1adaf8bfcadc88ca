/*
 * Who may do what at the stand-in API server: bearer tokens, and a table of rules for each.
 */
#ifndef BALLAST_SANDBOX_API_ACCESS_H
#define BALLAST_SANDBOX_API_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"

enum { API_IDENTITIES = 64 };

/* Texts must outlive the access table (mostly they are literals). */
struct api_rule {
	const char *group;      /* "" the core group, "*" any */
	const char *resource;   /* "pods", "virtualmachines/status", "*" any, subresources included */
	const char *verbs;      /* "get,list,watch", "*" any */
	const char *name_space; /* NULL: everywhere; else in this one only */
};

struct api_identity {
	char *token;
	char *user;
	const struct api_rule *rules;
	size_t rule_count;
};

struct api_access {
	struct api_identity identities[API_IDENTITIES];
	size_t count;
};

/* token and user are copied, rules aren't. A token that is known already gets another user and other rules. */
bool api_access_grant(struct api_access *access, const char *token, const char *user, const struct api_rule *rules,
                      size_t rule_count, struct error *err);
/* From then on the token is unknown; false if it was. */
bool api_access_revoke(struct api_access *access, const char *token);
void api_access_destroy(struct api_access *access);

/* NULL if the token is unknown. Valid until the table changes. */
const struct api_identity *api_access_find(const struct api_access *access, struct slice token);
/* resource with its subresource, if any: "pods/status". An identity of NULL (nobody) may do nothing. */
bool api_identity_may(const struct api_identity *identity, const char *verb, struct slice group, struct slice resource,
                      struct slice name_space);

#endif
