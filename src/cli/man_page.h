/*
 * The manual page, in roff with the macros of man(7): the whole program, made from the commands' tables and texts.
 */
#ifndef BALLAST_CLI_MAN_PAGE_H
#define BALLAST_CLI_MAN_PAGE_H

#include "base/buffer.h"

enum { MAN_PAGE_BYTES_MAX = 1024 * 1024 };

void man_page_append(struct buffer *out);

#endif
