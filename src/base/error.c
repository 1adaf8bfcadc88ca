/*
 * Texts are made in a local array first, so that a caller may pass err->text itself as an argument.
 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/errno_text.h"

/* The functions themselves. */
#undef error_set
#undef error_wrap
#undef error_set_errno

enum { TEXT_BYTES = sizeof((struct error *)NULL)->text };

static const char ELLIPSIS[] = "\xe2\x80\xa6"; /* U+2026 */

/* Marks a text that didn't fit, without leaving half a UTF-8 sequence behind. */
static void mark_cut(char *text, size_t size)
{
	size_t end = size - sizeof ELLIPSIS;

	while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	memcpy(text + end, ELLIPSIS, sizeof ELLIPSIS);
}

static void format_into(char *text, size_t size, const char *format, va_list arguments)
	__attribute__((format(printf, 3, 0)));

static void format_into(char *text, size_t size, const char *format, va_list arguments)
{
	int length = vsnprintf(text, size, format, arguments);

	if (length < 0)
		text[0] = '\0';
	else if ((size_t)length >= size)
		mark_cut(text, size);
}

bool error_set(struct error *err, enum error_code code, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	format_into(text, sizeof text, format, arguments);
	va_end(arguments);

	err->code = code;
	err->root = 0;
	memcpy(err->text, text, strlen(text) + 1);
	return false;
}

bool error_wrap(struct error *err, const char *format, ...)
{
	char context[TEXT_BYTES / 2]; /* so that something of the inner text always remains */
	size_t root = err->root;
	va_list arguments;

	va_start(arguments, format);
	format_into(context, sizeof context, format, arguments);
	va_end(arguments);

	error_set(err, err->code, "%s: %s", context, err->text);
	root += strlen(context) + strlen(": ");

	/* When the innermost text was pushed out altogether, the mark of the cut stands for it. */
	size_t length = strlen(err->text);
	size_t last = length < strlen(ELLIPSIS) ? 0 : length - strlen(ELLIPSIS);

	err->root = (unsigned short)(root <= length ? root : last);
	return false;
}

const char *error_root(const struct error *err)
{
	return err->text + err->root;
}

bool error_set_errno(struct error *err, int errno_value, const char *what)
{
	const char *description = errno_text(errno_value);
	enum error_code code = errno_value == ECONNRESET || errno_value == EPIPE ? ERROR_CLOSED : ERROR_SYSTEM;

	if (description != NULL)
		error_set(err, code, "%s", description);
	else
		error_set(err, code, "errno %d", errno_value);
	return error_wrap(err, "%s", what);
}
