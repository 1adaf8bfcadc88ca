/*
 * Runs a program as on a kernel that has no filters of system calls: seccomp(2) isn't there for it.
 *
 *   old_kernel_driver PROGRAM [argument...]
 *
 * (By such a filter, of course. Exit status 77 where there is none to be had.)
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SKIPPED = 77 };

int main(int argc, char **argv)
{
	struct sock_filter instructions[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_seccomp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = sizeof instructions / sizeof instructions[0],
		                            .filter = instructions };

	if (argc < 2) {
		fputs("usage: old_kernel_driver PROGRAM [argument...]\n", stderr);
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
		perror("seccomp");
		return SKIPPED;
	}
	execv(argv[1], argv + 1);
	perror(argv[1]);
	return 1;
}
