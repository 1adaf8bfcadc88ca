/*
 * A part of a test that can't go on says why and ends: whoever started it sees it go.
 */
#ifndef BALLAST_TESTS_KUBE_DIE_H
#define BALLAST_TESTS_KUBE_DIE_H

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
