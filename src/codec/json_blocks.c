/*
 * Each block of 64 bytes becomes a few 64-bit masks, one bit per byte: quotes, backslashes, opening and closing
 * brackets. From the backslashes follows which characters are escaped, from the other quotes which bytes lie within
 * strings, and what brackets are left are counted. (The technique is that of Langdale and Lemire, "Parsing Gigabytes of
 * JSON per Second", 2019.)
 */
#include "codec/json_blocks.h"

#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

struct block {
	uint64_t quotes;
	uint64_t backslashes;
	uint64_t opening;
	uint64_t closing;
};

#if defined(__SSE2__)

static uint64_t mask_of(__m128i matches)
{
	return (uint64_t)(unsigned)_mm_movemask_epi8(matches);
}

static struct block read_block(const char *at)
{
	struct block block = { 0 };

	for (int i = 0; i < JSON_BLOCK_BYTES; i += 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
		__m128i raised = _mm_or_si128(bytes, _mm_set1_epi8(0x20)); /* makes [ and ] the same as { and } */

		block.quotes |= mask_of(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'))) << i;
		block.backslashes |= mask_of(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))) << i;
		block.opening |= mask_of(_mm_cmpeq_epi8(raised, _mm_set1_epi8('{'))) << i;
		block.closing |= mask_of(_mm_cmpeq_epi8(raised, _mm_set1_epi8('}'))) << i;
	}
	return block;
}

#else

static struct block read_block(const char *at)
{
	struct block block = { 0 };

	for (int i = 0; i < JSON_BLOCK_BYTES; i++) {
		uint64_t bit = (uint64_t)1 << i;

		if (at[i] == '"')
			block.quotes |= bit;
		else if (at[i] == '\\')
			block.backslashes |= bit;
		else if (at[i] == '{' || at[i] == '[')
			block.opening |= bit;
		else if (at[i] == '}' || at[i] == ']')
			block.closing |= bit;
	}
	return block;
}

#endif

/*
 * The characters behind a backslash that isn't escaped itself. *escaped goes from the end of one block to the start of
 * the next.
 */
static uint64_t find_escaped(uint64_t backslashes, bool *escaped)
{
	uint64_t found = *escaped ? 1 : 0;

	backslashes &= ~found;
	*escaped = false;
	while (backslashes != 0) {
		uint64_t lowest = backslashes & (~backslashes + 1);
		uint64_t next = lowest << 1;

		if (next == 0)
			*escaped = true;
		found |= next;
		backslashes &= ~(lowest | next);
	}
	return found;
}

/* Bits from each quote up to the next one: an exclusive or over all lower bits. */
static uint64_t find_strings(uint64_t quotes)
{
	for (int shift = 1; shift < JSON_BLOCK_BYTES; shift *= 2)
		quotes ^= quotes << shift;
	return quotes;
}

static int count_bits(uint64_t bits)
{
	int count = 0;

	for (; bits != 0; bits &= bits - 1)
		count++;
	return count;
}

const char *json_skip_blocks(const char *at, const char *end, int *depth, bool *in_string, bool *escaped)
{
	for (; end - at >= JSON_BLOCK_BYTES; at += JSON_BLOCK_BYTES) {
		struct block block = read_block(at);
		bool escape_open = *escaped;
		uint64_t plain = ~find_escaped(block.backslashes, &escape_open);
		uint64_t strings = find_strings(block.quotes & plain) ^ (*in_string ? UINT64_MAX : 0);
		uint64_t structure = plain & ~strings;
		int closing = count_bits(block.closing & structure);

		/* At depth 0 the value is a string, which ends with its quote. */
		if (closing >= *depth)
			break;
		*depth += count_bits(block.opening & structure) - closing;
		*in_string = (strings >> (JSON_BLOCK_BYTES - 1)) != 0;
		*escaped = escape_open;
	}
	return at;
}
