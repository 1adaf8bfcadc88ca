/*
 * Reads files whole: small ones, which somebody else may replace or remove at any time.
 */
#ifndef BALLAST_BASE_FILE_H
#define BALLAST_BASE_FILE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"

/*
 * Appends the file to content, whose limit bounds it. False with a text as the reference's: "open /path: no such file
 * or directory", "read /path: is a directory"; ERROR_LIMIT when the file is larger. Never waits for a writer, so a
 * named pipe reads as what is in it.
 */
bool file_read(const char *path, struct buffer *content, struct error *err);

/* The same in two steps, for a caller to whom the two failures differ. -1: it can't be opened. */
int file_open(const char *path, struct error *err);
bool file_read_and_close(int descriptor, const char *path, struct buffer *content, struct error *err);

#endif
