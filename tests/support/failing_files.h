/*
 * Opening and reading files, as a system does it whose calls fail when failing_calls.h says so. To be included by one
 * source file of a program.
 */
#ifndef BALLAST_TESTS_SUPPORT_FAILING_FILES_H
#define BALLAST_TESTS_SUPPORT_FAILING_FILES_H

#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/failing_calls.h"

int open(const char *path, int flags, ...)
{
	va_list arguments;
	unsigned mode;

	va_start(arguments, flags);
	mode = (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
	va_end(arguments);
	return torture_fails(TORTURE_OPEN) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t read(int descriptor, void *data, size_t size)
{
	if (torture_fails(TORTURE_READ))
		return -1;
	return syscall(SYS_read, descriptor, data, torture_shortened(TORTURE_READ, size));
}

#endif
