/*
 * Put before each source file of libyaml: its memory comes from where ours does, so that tests can make it fail.
 */
#ifndef BALLAST_VENDOR_LIBYAML_MEMORY_H
#define BALLAST_VENDOR_LIBYAML_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define malloc(size) memory_allocate(size)
#define realloc(block, size) memory_resize(block, size)
#define free(block) memory_release(block)
#define strdup(text) memory_copy_text(text, strlen(text))

#endif
