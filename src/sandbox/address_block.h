/*
 * The addresses of one run: a block of 127.0.0.0/8 that no other sandbox of this machine uses at the time.
 */
#ifndef BALLAST_SANDBOX_ADDRESS_BLOCK_H
#define BALLAST_SANDBOX_ADDRESS_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/address.h"

/* Of a 127.x.y.0/24, the hosts 1 to 250 are used. */
enum { ADDRESS_BLOCK_HOSTS = 250, ADDRESS_BLOCK_PARTS_MAX = 16 };

struct address_block {
	uint8_t second, third; /* of the first part, 127.second.third.0/24; others follow it */
	unsigned parts;
	int locks[ADDRESS_BLOCK_PARTS_MAX]; /* sockets that keep others off, one per part */
};

/* Finds room for that many addresses. `choice` is any number, better a different one each time. */
bool address_block_take(struct address_block *ret_block, unsigned addresses, uint64_t choice, struct error *err);
/* The index-th address, from 0. */
struct address address_block_at(const struct address_block *block, unsigned index, uint16_t port);
void address_block_give_back(struct address_block *block); /* fine on a zeroed one */

#endif
