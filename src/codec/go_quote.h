/*
 * Text in double quotes with backslash escapes, as the reference prints it with %q (spec agent-runtime 0.3): \" \\ \n
 * \t \x00 \u2028; printable UTF-8 stays as it is. Code points that Unicode hasn't assigned count as printable.
 */
#ifndef BALLAST_CODEC_GO_QUOTE_H
#define BALLAST_CODEC_GO_QUOTE_H

#include "base/buffer.h"
#include "base/slice.h"

void go_quote_append(struct buffer *buffer, struct slice text);

#endif
