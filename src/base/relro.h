/*
 * Makes read-only what the program has to write only while it is relocated: tables of functions and other constants that
 * hold addresses (the segment PT_GNU_RELRO). A dynamic loader does so before main; a static program with musl has to do
 * it itself, otherwise the segment is a promise in the file and nothing more.
 */
#ifndef BALLAST_BASE_RELRO_H
#define BALLAST_BASE_RELRO_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Call it first in main. Doing it twice does no harm. ERROR_SYSTEM if the kernel refuses; a program without such a
 * segment has nothing to protect, and that is no error.
 */
bool relro_protect(struct error *err);

#endif
