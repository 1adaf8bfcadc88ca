#include "agent/url_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void url_text(char text[URL_TEXT_BYTES], const char *scheme, const char *host, uint16_t port, const char *path)
{
	bool ipv6 = strchr(host, ':') != NULL;

	(void)snprintf(text, URL_TEXT_BYTES, "%s://%s%s%s:%u%s", scheme, ipv6 ? "[" : "", host, ipv6 ? "]" : "",
	               (unsigned)port, path);
}
