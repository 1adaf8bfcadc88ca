/*
 * URLs of peers that are known by address, for texts.
 */
#ifndef BALLAST_AGENT_URL_TEXT_H
#define BALLAST_AGENT_URL_TEXT_H

#include <stdint.h>

enum { URL_TEXT_BYTES = 160 };

/* "http://10.0.0.5:9100/metrics", with brackets around an IPv6 address; cut to size. */
void url_text(char text[URL_TEXT_BYTES], const char *scheme, const char *host, uint16_t port, const char *path);

#endif
