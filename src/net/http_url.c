/*
 * Addresses as people write them into configuration: only what this program can use, the rest refused with a reason.
 */
#include <string.h>

#include "net/http_client.h"

/* Letters, digits and "-._": enough for names and IPv4 addresses. */
static bool is_host(struct slice host)
{
	for (size_t i = 0; i < host.length; i++) {
		char c = host.data[i];
		bool letter_or_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter_or_digit && c != '-' && c != '.' && c != '_')
			return false;
	}
	return host.length > 0;
}

static bool is_ipv6(struct slice host)
{
	struct address address;

	return address_parse(host, 0, &address) && address.is_ipv6;
}

/* Cuts "host", "host:port", "[::1]" or "[::1]:port" into host and the rest, which is empty or begins with a colon. */
static bool split_authority(struct slice authority, struct slice *ret_host, struct slice *ret_rest, struct error *err)
{
	bool in_brackets = authority.length > 0 && authority.data[0] == '[';
	struct slice rest = slice_from_offset(authority, in_brackets ? 1 : 0);
	struct slice host = slice_take_until(&rest, in_brackets ? ']' : ':');

	if (in_brackets ? !is_ipv6(host) : !is_host(host))
		return error_set(err, ERROR_SYNTAX, "host \"%.*s\" is neither a name nor an address", SLICE_ARGS(host));
	rest = slice_from_offset(authority, host.length + (in_brackets ? 2 : 0));
	if (authority.length < host.length + (in_brackets ? 2 : 0) || (rest.length > 0 && rest.data[0] != ':'))
		return error_set(err, ERROR_SYNTAX, "the address must end in \"]\", and only a port may follow");
	*ret_host = host;
	*ret_rest = rest;
	return true;
}

static bool parse_authority(struct slice authority, struct http_origin *origin, struct error *err)
{
	struct slice host, rest;
	uint64_t port = origin->secure ? 443 : 80;

	if (memchr(authority.length > 0 ? authority.data : "", '@', authority.length) != NULL)
		return error_set(err, ERROR_SYNTAX, "user names and passwords aren't supported");
	if (!split_authority(authority, &host, &rest, err))
		return false;
	if (host.length >= sizeof origin->host)
		return error_set(err, ERROR_LIMIT, "host name is over %zu bytes", sizeof origin->host - 1);

	struct slice port_text = slice_from_offset(rest, 1);

	if (rest.length > 0 && (!slice_to_u64(port_text, &port) || port == 0 || port > UINT16_MAX))
		return error_set(err, ERROR_SYNTAX, "port \"%.*s\" is not within 1 and 65535", SLICE_ARGS(port_text));
	memcpy(origin->host, host.data, host.length);
	origin->host[host.length] = '\0';
	origin->port = (uint16_t)port;
	return true;
}

static bool has_scheme(struct slice *url, struct slice scheme)
{
	if (url->length < scheme.length || !slice_equal_fold(slice_from(url->data, scheme.length), scheme))
		return false;
	*url = slice_from_offset(*url, scheme.length);
	return true;
}

/* For messages. A password must not get into one; where there is an "@", there may be one before it. */
static struct slice without_password(struct slice url)
{
	return url.length > 0 && memchr(url.data, '@', url.length) != NULL ? SLICE("…@…") : url;
}

bool http_url_parse(struct slice url, struct http_origin *ret_origin, struct slice *ret_path, struct error *err)
{
	struct http_origin origin = { 0 };
	struct slice rest = url, shown = without_password(url);
	size_t end = 0;

	if (has_scheme(&rest, SLICE("https://")))
		origin.secure = true;
	else if (!has_scheme(&rest, SLICE("http://")))
		return error_set(err, ERROR_SYNTAX, "URL \"%.*s\" begins neither with http:// nor with https://",
		                 SLICE_ARGS(shown));

	while (end < rest.length && rest.data[end] != '/' && rest.data[end] != '?' && rest.data[end] != '#')
		end++;
	if (!parse_authority(slice_from(rest.data, end), &origin, err))
		return error_wrap(err, "URL \"%.*s\"", SLICE_ARGS(shown));

	struct slice path = end < rest.length ? slice_from_offset(rest, end) : SLICE("/");

	if (!http_is_target(path))
		return error_set(
			err, ERROR_SYNTAX,
			"URL \"%.*s\": what follows the host must begin with \"/\" and have neither blanks nor \"#\"",
			SLICE_ARGS(shown));
	*ret_origin = origin;
	*ret_path = path;
	return true;
}
