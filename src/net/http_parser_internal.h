/*
 * What the files behind http_parser.h share.
 *
 *   http_parser.c             from bytes to events: what is fed to llhttp, and what comes of it
 *   http_parser_callbacks.c   what llhttp calls meanwhile: the parts of a message, and the checks of them
 */
#ifndef BALLAST_NET_HTTP_PARSER_INTERNAL_H
#define BALLAST_NET_HTTP_PARSER_INTERNAL_H

#include "net/http_parser.h"

/* Our own checks; http_parser.c has their texts. */
enum {
	LIMIT_NONE,
	LIMIT_MEMORY,
	LIMIT_HEAD,
	LIMIT_TARGET,
	LIMIT_FIELD_COUNT,
	LIMIT_EXTENSION,
	LIMIT_FRAMING,
	LIMIT_VERSION,
	LIMIT_CODING,
	LIMIT_CODING_HTTP10,
	LIMIT_HOST,
	LIMIT_HOST_VALUE,
	LIMIT_METHOD,
	LIMIT_START,
	LIMIT_BLANKS,
	LIMIT_PROTOCOL,
	LIMIT_STATUS,
};

extern const llhttp_settings_t HTTP_PARSER_SETTINGS;

/* Trailers are counted but not kept: nobody here may act on fields that come after the body. */
static inline bool http_parser_in_trailers(const llhttp_t *llhttp)
{
	return (llhttp->flags & F_TRAILING) != 0;
}

static inline bool http_parser_is_our_version(const struct http_parser *parser)
{
	return parser->llhttp.http_major == 1 && parser->llhttp.http_minor <= 1;
}

#endif
