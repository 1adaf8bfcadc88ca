/*
 * What mbedTLS asks its surroundings for: memory, randomness, the time. Its hooks take no context, so which loop
 * answers is the one piece of process-wide state of this layer: a pointer that is set while one of our functions is
 * inside the library. Nothing answers outside of that, so a key can't be made from bad randomness by accident.
 */
#ifndef BALLAST_NET_TLS_HOOKS_H
#define BALLAST_NET_TLS_HOOKS_H

#include <stddef.h>

#include "base/error.h"
#include "net/loop.h"

/* Points the library's hooks here and starts its cryptography; repeating it does nothing. */
bool tls_hooks_install(struct error *err);

/* From here on loop gives randomness and time. Returns what tls_hooks_leave needs. */
struct loop *tls_hooks_enter(struct loop *loop);
void tls_hooks_leave(struct loop *before);

/* Randomness in the form that mbedTLS takes as an argument; context is ignored. Between enter and leave only. */
int tls_hooks_random(void *context, unsigned char *data, size_t length);

#endif
