/*
 * A filter in the kernel (seccomp) that leaves the process the system calls a daemon of ours makes and no others, so
 * that whoever takes it over can't start programs, make memory executable, write files, trace neighbours or load kernel code.
 *
 * A call that isn't listed fails with "operation not permitted", and the kernel's audit log names it. That is
 * preferred to killing the process: a daemon that keeps running, with one error that tells what it couldn't do, costs
 * an operator less than a restart loop without a word, and an attacker gains nothing by the difference. Only calls by
 * another architecture's numbers (32-bit and x32 on amd64), which no build of ours makes, kill.
 */
#ifndef BALLAST_BASE_SYSCALL_FILTER_H
#define BALLAST_BASE_SYSCALL_FILTER_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Installs it for all threads of the process, for good; programs started later would inherit it, but can't be started.
 * Sets no_new_privs. ERROR_SYSTEM, with nothing changed but that, if the kernel has no such filters; ERROR_LIMIT
 * on machines for which there is no list (other than amd64 and arm64).
 */
bool syscall_filter_install(struct error *err);

#endif
