/*
 * Which DNS server the resolver asks, for texts of failures.
 */
#ifndef BALLAST_NET_DNS_SERVER_H
#define BALLAST_NET_DNS_SERVER_H

#include "base/slice.h"
#include "net/address.h"

/*
 * "10.96.0.10:53": the first nameserver of /etc/resolv.conf, or 127.0.0.1:53 (resolv.conf(5)). Reads a file: not for
 * the loop.
 */
void dns_server_text(char text[ADDRESS_TEXT_BYTES]);

/* The same from the file's content. */
void dns_server_from(struct slice resolv_conf, char text[ADDRESS_TEXT_BYTES]);

#endif
