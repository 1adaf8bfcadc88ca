/*
 * The filter is a program of the kernel's classic BPF, made from two tables: calls that are always fine, and calls that
 * are fine with certain arguments. It loads the call's number and compares it with one entry after another, the most
 * frequent first; kernels since 5.11 remember the outcome for those without conditions.
 *
 * Which calls: those that strace shows of the agent, and what musl makes of the functions it calls on either
 * architecture, in other kernels' fallbacks too. Names that a machine doesn't have are left out there.
 */
#include "base/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FILTER_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef FILTER_ARCHITECTURE

enum {
	X32_BIT = 0x40000000, /* marks numbers of the x32 interface, which share amd64's architecture value */
	PROGRAM_LENGTH_MAX = 512,
};

/* Fine whatever the arguments. */
static const uint32_t CALLS[] = {
/* the loop, time, streams */
#ifdef __NR_epoll_wait
	__NR_epoll_wait,
#endif
	__NR_epoll_pwait,
	__NR_recvfrom,
	__NR_sendto,
	__NR_read,
	__NR_write,
	__NR_clock_gettime,
	__NR_epoll_ctl,
	__NR_close,
	__NR_futex,
	__NR_connect,
	__NR_accept4,
	__NR_setsockopt,
	__NR_getsockopt,
	__NR_getsockname,
	__NR_getpeername,
	__NR_bind,
	__NR_listen,
	__NR_shutdown,
	__NR_sendmsg,
	__NR_recvmsg,
	__NR_accept,
	__NR_readv,
	__NR_writev,
	__NR_epoll_create1,
	__NR_eventfd2,
	__NR_pipe2,
	__NR_signalfd4,
	__NR_fcntl,
	__NR_ppoll,
#ifdef __NR_poll
	__NR_poll,
#endif
	__NR_nanosleep,
	__NR_clock_nanosleep,
	__NR_clock_getres,
	__NR_gettimeofday,
	__NR_restart_syscall,
#ifdef __NR_time
	__NR_time,
#endif
	/* files that are read again: tokens, certificates, /proc/self */

	__NR_fstat,
	__NR_newfstatat,
	__NR_statx,
	__NR_lseek,
	__NR_getdents64,
	__NR_pread64,
#ifdef __NR_stat
	__NR_stat,
#endif
	/* memory */
	__NR_munmap,
	__NR_mremap,
	__NR_madvise,
	__NR_brk,
	/* threads of the name lookup, signals, the end */
	__NR_set_robust_list,
	__NR_set_tid_address,
	__NR_rt_sigaction,
	__NR_rt_sigprocmask,
	__NR_rt_sigreturn,
	__NR_sigaltstack,
	__NR_gettid,
	__NR_getpid,
	__NR_tkill,
	__NR_tgkill,
	__NR_sched_yield,
	__NR_membarrier,
	__NR_exit,
	__NR_exit_group,
#ifdef __NR_rseq
	__NR_rseq,
#endif
	/* limits and randomness */
	__NR_getrandom,
	__NR_prlimit64,
	__NR_getrlimit,
	__NR_getrusage,
	__NR_uname,
};

enum condition { CONDITION_NONE_OF, /* no bit of the value may be set */ CONDITION_ALL_OF, CONDITION_EQUAL };

/* Fine if the argument is so. Only its lower half is looked at: all of these are ints, or flags in the lower half. */
static const struct conditional {
	uint32_t call;
	uint32_t argument;
	enum condition condition;
	uint32_t value;
} CONDITIONALS[] = {
	/* Files are read. */
	{ __NR_openat, 2, CONDITION_NONE_OF, O_ACCMODE | O_CREAT | O_TRUNC },
#ifdef __NR_open
	{ __NR_open, 1, CONDITION_NONE_OF, O_ACCMODE | O_CREAT | O_TRUNC },
#endif
	/* No memory becomes executable once everything runs. */
	{ __NR_mmap, 2, CONDITION_NONE_OF, PROT_EXEC },
	{ __NR_mprotect, 2, CONDITION_NONE_OF, PROT_EXEC },
	/* Threads, but no processes. */
	{ __NR_clone, 0, CONDITION_ALL_OF, CLONE_THREAD | CLONE_VM },
	{ __NR_socket, 0, CONDITION_EQUAL, AF_INET },
	{ __NR_socket, 0, CONDITION_EQUAL, AF_INET6 },
	/* Standard output asks whether it is a terminal. */
	{ __NR_ioctl, 1, CONDITION_EQUAL, TIOCGWINSZ },
};

struct program {
	struct sock_filter instructions[PROGRAM_LENGTH_MAX];
	unsigned short length;
};

static void add(struct program *program, uint16_t code, uint32_t value, uint8_t if_true, uint8_t if_false)
{
	program->instructions[program->length++] =
		(struct sock_filter){ .code = code, .jt = if_true, .jf = if_false, .k = value };
}

static void add_load(struct program *program, size_t offset)
{
	add(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void add_return(struct program *program, uint32_t action)
{
	add(program, BPF_RET | BPF_K, action, 0, 0);
}

static void add_call(struct program *program, uint32_t call, uint32_t action)
{
	add(program, BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
	add_return(program, action);
}

/* Both architectures are little-endian: the lower half comes first. Afterwards the number is loaded again. */
static void add_conditional(struct program *program, const struct conditional *conditional)
{
	bool is_mask = conditional->condition != CONDITION_EQUAL;

	add(program, BPF_JMP | BPF_JEQ | BPF_K, conditional->call, 0, is_mask ? 5 : 4);
	add_load(program, offsetof(struct seccomp_data, args) + conditional->argument * sizeof(uint64_t));
	if (is_mask)
		add(program, BPF_ALU | BPF_AND | BPF_K, conditional->value, 0, 0);
	add(program, BPF_JMP | BPF_JEQ | BPF_K, conditional->condition == CONDITION_NONE_OF ? 0 : conditional->value, 0,
	    1);
	add_return(program, SECCOMP_RET_ALLOW);
	add_load(program, offsetof(struct seccomp_data, nr));
}

static void make_program(struct program *program)
{
	program->length = 0;
	add_load(program, offsetof(struct seccomp_data, arch));
	add(program, BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCHITECTURE, 1, 0);
	add_return(program, SECCOMP_RET_KILL_PROCESS);
	add_load(program, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
	add(program, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	add_return(program, SECCOMP_RET_KILL_PROCESS);
#endif
	for (size_t i = 0; i < sizeof CALLS / sizeof CALLS[0]; i++)
		add_call(program, CALLS[i], SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < sizeof CONDITIONALS / sizeof CONDITIONALS[0]; i++)
		add_conditional(program, &CONDITIONALS[i]);
#ifdef __NR_clone3
	/* Its flags are out of a filter's sight; a C library that hears this takes clone. */
	add_call(program, __NR_clone3, SECCOMP_RET_ERRNO | ENOSYS);
#endif
	add_return(program, SECCOMP_RET_ERRNO | EPERM);
}

_Static_assert(2 * (sizeof CALLS / sizeof CALLS[0]) + 6 * (sizeof CONDITIONALS / sizeof CONDITIONALS[0]) + 16 <
                       PROGRAM_LENGTH_MAX,
               "the longest program fits");

bool syscall_filter_install(struct error *err)
{
	static const unsigned int FLAGS = SECCOMP_FILTER_FLAG_TSYNC;
	struct program program;
	struct sock_fprog description = { .filter = program.instructions };

	make_program(&program);
	description.len = program.length;
	/* Without this only root may install filters. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return error_set_errno(err, errno, "prctl(PR_SET_NO_NEW_PRIVS)");
	/* Kernels before 4.14 can't log what a filter refuses; what it refuses is the same. */
	if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, FLAGS | SECCOMP_FILTER_FLAG_LOG, &description) == 0 ||
	    syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, FLAGS, &description) == 0)
		return true;
	error_set_errno(err, errno, "seccomp");
	return error_wrap(err, "this kernel takes no filter of system calls");
}

#else

bool syscall_filter_install(struct error *err)
{
	return error_set(err, ERROR_LIMIT, "no filter of system calls for this kind of machine");
}

#endif
