/*
 * A part of the block counts as taken while its address .0 has our lock port bound. The socket stays bound, not listening,
 * for the whole run; the system frees it however the run ends.
 */
#include "sandbox/address_block.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LOCK_PORT = 10298,
	SECOND_LOW = 64, /* 127.64.0.0 to 127.127.255.255: far from what people use by hand */
	SECOND_COUNT = 64,
	THIRD_COUNT = 256,
	TRIES_MAX = 256,
};

static int lock_part(uint8_t second, uint8_t third)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(LOCK_PORT),
		.sin_addr.s_addr = htonl(0x7f000001U | (uint32_t)second << 16 | (uint32_t)third << 8),
	};
	int lock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (lock >= 0 && bind(lock, (const struct sockaddr *)&address, sizeof address) != 0) {
		int reason = errno;

		close(lock);
		errno = reason;
		return -1;
	}
	return lock;
}

static bool lock_all(struct address_block *block, unsigned parts)
{
	for (block->parts = 0; block->parts < parts; block->parts++) {
		int lock = lock_part(block->second, (uint8_t)(block->third + block->parts));

		if (lock < 0) {
			int reason = errno;

			address_block_give_back(block);
			errno = reason;
			return false;
		}
		block->locks[block->parts] = lock;
	}
	return true;
}

bool address_block_take(struct address_block *ret_block, unsigned addresses, uint64_t choice, struct error *err)
{
	unsigned parts = (addresses + ADDRESS_BLOCK_HOSTS - 1) / ADDRESS_BLOCK_HOSTS;

	if (parts > ADDRESS_BLOCK_PARTS_MAX)
		return error_set(err, ERROR_LIMIT, "%u addresses are too many", addresses);
	for (unsigned i = 0; i < TRIES_MAX; i++) {
		uint64_t place = choice + i;
		struct address_block block = {
			.second = (uint8_t)(SECOND_LOW + place / THIRD_COUNT % SECOND_COUNT),
			.third = (uint8_t)(place % (THIRD_COUNT - ADDRESS_BLOCK_PARTS_MAX)),
		};

		if (lock_all(&block, parts)) {
			*ret_block = block;
			return true;
		}
		if (errno != EADDRINUSE)
			return error_set_errno(err, errno, "an address in 127.0.0.0/8");
	}
	return error_set(err, ERROR_LIMIT, "no free addresses in 127.0.0.0/8: too many sandboxes run at once");
}

struct address address_block_at(const struct address_block *block, unsigned index, uint16_t port)
{
	return (struct address){
		.bytes = { 127, block->second, (uint8_t)(block->third + index / ADDRESS_BLOCK_HOSTS),
		           (uint8_t)(1 + index % ADDRESS_BLOCK_HOSTS) },
		.port = port,
	};
}

void address_block_give_back(struct address_block *block)
{
	while (block->parts > 0)
		close(block->locks[--block->parts]);
}
