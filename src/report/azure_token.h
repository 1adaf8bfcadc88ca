/*
 * Bearer tokens for Azure Storage from what the environment offers (spec reporting 10.3): a client secret, a workload
 * identity, or the node's managed identity. The first source that yields one is used for good; nothing is asked before
 * a token is wanted, and then once until it is about to expire.
 */
#ifndef BALLAST_REPORT_AZURE_TOKEN_H
#define BALLAST_REPORT_AZURE_TOKEN_H

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"
#include "report/report_transport.h"

/* token empty: *err tells why there is none. Valid during the callback. */
typedef void azure_token_done(void *context, struct slice token, const struct error *err);

struct azure_provider;

/* Reads the environment; having no source isn't an error before one is needed. NULL with *err when memory is short. */
struct azure_provider *azure_provider_create(struct report_transport *transport, struct error *err);
/* done comes exactly once, never from inside, unless cancelled first. There must be no other one under way. */
void azure_provider_get(struct azure_provider *provider, azure_token_done *done, void *context);
void azure_provider_cancel(struct azure_provider *provider); /* no-op without one under way */
/*
 * The service doesn't take the token (A7): the next call asks anew, for the resource that the service names, if it does
 * ("https://storage.azure.com"; it must be https).
 */
void azure_provider_forget(struct azure_provider *provider, struct slice resource);
void azure_provider_destroy(struct azure_provider *provider); /* NULL is fine */

/* Appends the form of A9; assertion: the secret is a federated token. */
void azure_append_form(struct buffer *out, struct slice client_id, struct slice resource, struct slice secret,
                       bool assertion);

#endif
