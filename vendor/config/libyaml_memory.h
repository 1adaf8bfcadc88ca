/*
 * Put before each source file of libyaml: its memory comes from where ours does, so that tests can make it fail, and is
 * overwritten when it goes: a kubeconfig's tokens and keys pass through it. Its sizes are the C library's to tell.
 */
#ifndef BALLAST_VENDOR_LIBYAML_MEMORY_H
#define BALLAST_VENDOR_LIBYAML_MEMORY_H

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static inline void libyaml_release(void *block)
{
	if (block != NULL)
		explicit_bzero(block, malloc_usable_size(block));
	memory_release(block);
}

static inline void *libyaml_resize(void *block, size_t size)
{
	size_t held = block != NULL ? malloc_usable_size(block) : 0;
	void *resized = memory_resize(NULL, size);

	if (resized == NULL)
		return NULL;
	if (held > 0)
		memcpy(resized, block, held < size ? held : size);
	libyaml_release(block);
	return resized;
}

#define malloc(size) memory_allocate(size)
#define realloc(block, size) libyaml_resize(block, size)
#define free(block) libyaml_release(block)
#define strdup(text) memory_copy_text(text, strlen(text))

#endif
