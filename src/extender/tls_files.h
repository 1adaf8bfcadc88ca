/*
 * The server's certificate and key, read again when either file changes (spec extender P8, I13): new connections get the
 * new ones, those under way keep theirs. What can't be read or doesn't fit together leaves the last good pair in place.
 */
#ifndef BALLAST_EXTENDER_TLS_FILES_H
#define BALLAST_EXTENDER_TLS_FILES_H

#include "base/error.h"
#include "base/log.h"
#include "net/loop.h"
#include "net/tls.h"

struct tls_files;

/* Paths and the logger's strings must outlive it. NULL when the pair can't be used at the start. */
struct tls_files *tls_files_open(struct loop *loop, const char *certificate_path, const char *key_path,
                                 const struct logger *logger, struct error *err);
/* The settings for a new connection, without a reference. */
struct tls_settings *tls_files_settings(const struct tls_files *files);
/* Looks at the files now, rather than in EXTENDER_TLS_LOOK_S. */
void tls_files_look(struct tls_files *files);
void tls_files_close(struct tls_files *files); /* NULL is fine */

#endif
