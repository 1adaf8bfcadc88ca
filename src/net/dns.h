/*
 * Name lookup for the real loop: getaddrinfo may block for many seconds, so it runs in one helper thread, reached by
 * pipes.
 *
 * One question is with the helper at a time; the others wait here, so that cancelling them costs nothing. Each lookup
 * has its own deadline, whatever the helper does. Lookups of a name already asked share its answer.
 */
#ifndef BALLAST_NET_DNS_H
#define BALLAST_NET_DNS_H

#include <netdb.h>

#include "base/error.h"
#include "net/loop.h"

struct dns;

typedef int dns_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                            struct addrinfo **ret_list);

/* Starts the helper. NULL with *err when the system has no memory, descriptors or threads for it. */
struct dns *dns_create(struct loop *loop, dns_getaddrinfo *ask, struct error *err);

/*
 * Never waits: a helper that hangs in a lookup cleans up after itself when that ends. No callback comes any more. NULL
 * is fine.
 */
void dns_destroy(struct dns *dns);

/* See loop_lookup. */
struct lookup *dns_lookup(struct dns *dns, const char *host, uint16_t port, uint64_t timeout_ns,
                          lookup_callback *callback, void *context, struct error *err);

#endif
