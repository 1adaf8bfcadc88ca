/*
 * Fixed English texts for errno values: lower case, the same on every C library, as the reference daemons print them.
 */
#ifndef BALLAST_BASE_ERRNO_TEXT_H
#define BALLAST_BASE_ERRNO_TEXT_H

/* "connection refused" for ECONNREFUSED; NULL for a value that has no text here. */
const char *errno_text(int errno_value);

#endif
