/*
 * Fast ways over the plain part of quoted text: what stands for itself in JSON and in most formats like it, printable
 * ASCII without quotes and backslashes.
 */
#ifndef BALLAST_BASE_PLAIN_TEXT_H
#define BALLAST_BASE_PLAIN_TEXT_H

#include <stdbool.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Whether a character stands for itself: not a quote, backslash, control character, or beyond ASCII. */
static inline bool plain_text_is(char c)
{
	return (signed char)c >= ' ' && c != '"' && c != '\\';
}

#if defined(__SSE2__)
/* One bit for each of sixteen characters that isn't plain. Read as signed bytes, most of those are below the blank. */
static inline unsigned plain_text_mask(__m128i bytes)
{
	__m128i special = _mm_or_si128(
		_mm_cmplt_epi8(bytes, _mm_set1_epi8(' ')),
		_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));

	return (unsigned)_mm_movemask_epi8(special);
}
#endif

/* The first character that isn't plain, or end. */
static inline const char *plain_text_skip(const char *at, const char *end)
{
#if defined(__SSE2__)
	while (end - at >= 16) {
		unsigned mask = plain_text_mask(_mm_loadu_si128((const __m128i *)(const void *)at));

		if (mask != 0)
			return at + __builtin_ctz(mask);
		at += 16;
	}
#endif
	while (at < end && plain_text_is(*at))
		at++;
	return at;
}

#endif
