#include "die.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)fputs("vm_parts: ", stderr);
	(void)vfprintf(stderr, format, arguments);
	(void)fputc('\n', stderr);
	va_end(arguments);
	exit(EXIT_FAILURE);
}
