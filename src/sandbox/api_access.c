#include "sandbox/api_access.h"

#include <string.h>

#include "base/memory.h"

static void drop(struct api_identity *identity)
{
	memory_release(identity->token);
	memory_release(identity->user);
	*identity = (struct api_identity){ 0 };
}

static size_t place_of(const struct api_access *access, struct slice token)
{
	size_t i = 0;

	while (i < access->count && !slice_equal_text(token, access->identities[i].token))
		i++;
	return i;
}

bool api_access_grant(struct api_access *access, const char *token, const char *user, const struct api_rule *rules,
                      size_t rule_count, struct error *err)
{
	size_t place = place_of(access, slice_of(token));
	struct api_identity identity = { .rules = rules, .rule_count = rule_count };

	if (place == API_IDENTITIES)
		return error_set(err, ERROR_LIMIT, "more than %d tokens", API_IDENTITIES);
	identity.token = memory_copy_text(token, strlen(token));
	identity.user = memory_copy_text(user, strlen(user));
	if (identity.token == NULL || identity.user == NULL) {
		drop(&identity);
		return error_set(err, ERROR_NO_MEMORY, "no memory for a token");
	}
	if (place == access->count)
		access->count++;
	else
		drop(&access->identities[place]);
	access->identities[place] = identity;
	return true;
}

bool api_access_revoke(struct api_access *access, const char *token)
{
	size_t place = place_of(access, slice_of(token));

	if (place == access->count)
		return false;
	drop(&access->identities[place]);
	access->identities[place] = access->identities[--access->count];
	return true;
}

void api_access_destroy(struct api_access *access)
{
	while (access->count > 0)
		drop(&access->identities[--access->count]);
}

const struct api_identity *api_access_find(const struct api_access *access, struct slice token)
{
	size_t place = place_of(access, token);

	return place < access->count ? &access->identities[place] : NULL;
}

static bool is_in(const char *list, const char *word)
{
	struct slice rest = slice_of(list);

	while (rest.length > 0) {
		struct slice entry = slice_take_until(&rest, ',');

		if (slice_equal_text(entry, "*") || slice_equal_text(entry, word))
			return true;
	}
	return false;
}

static bool names(const char *pattern, struct slice text)
{
	return strcmp(pattern, "*") == 0 || slice_equal_text(text, pattern);
}

bool api_identity_may(const struct api_identity *identity, const char *verb, struct slice group, struct slice resource,
                      struct slice name_space)
{
	for (size_t i = 0; identity != NULL && i < identity->rule_count; i++) {
		const struct api_rule *rule = &identity->rules[i];

		if (names(rule->group, group) && names(rule->resource, resource) && is_in(rule->verbs, verb) &&
		    (rule->name_space == NULL || slice_equal_text(name_space, rule->name_space)))
			return true;
	}
	return false;
}
