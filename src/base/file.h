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
 * or directory", "read /path: is a directory"; ERROR_LIMIT when the file is larger. Never waits, so that a loop may call
 * it: a named pipe without a writer is empty, and one with nothing in it yet is an error.
 */
bool file_read(const char *path, struct buffer *content, struct error *err);

/*
 * The same in two steps, for what is read once, before any loop turns, and may be a pipe (`<(…)` in a shell): both wait
 * for its writer. file_open returns -1 when it can't be opened; file_read_and_close takes any readable descriptor, with a
 * path for its messages.
 */
int file_open(const char *path, struct error *err);
bool file_read_and_close(int descriptor, const char *path, struct buffer *content, struct error *err);

#endif
