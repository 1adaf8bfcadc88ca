#include "base/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A filter is for good, so that each check has a child of its own, which ends with the number of its first failure. */
enum { FINE = 0, NOT_INSTALLED = 99, SKIPPED = 98 };

static int status_of(int (*check)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		struct error err;

		if (!syscall_filter_install(&err)) {
			(void)dprintf(STDERR_FILENO, "%s\n", err.text);
			/* Only a kernel or a container without such filters at all excuses it. */
			_exit(access("/proc/sys/kernel/seccomp", F_OK) == 0 ? NOT_INSTALLED : SKIPPED);
		}
		_exit(check());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		return 1000 + WTERMSIG(status);
	if (WEXITSTATUS(status) == SKIPPED)
		skip();
	return WEXITSTATUS(status);
}

static bool refused(long result)
{
	return result == -1 && errno == EPERM;
}

#define REFUSED(call)                             \
	do {                                      \
		errno = 0;                        \
		if (!refused(call))               \
			return __LINE__ % 97 + 1; \
	} while (0)
#define ALLOWED(call)                             \
	do {                                      \
		if ((call) < 0)                   \
			return __LINE__ % 97 + 1; \
	} while (0)

static int starts_programs(void)
{
	char *const arguments[] = { (char[]){ "true" }, NULL };

	REFUSED(syscall(__NR_execve, "/bin/true", arguments, NULL));
	REFUSED(syscall(__NR_execveat, AT_FDCWD, "/bin/true", arguments, NULL, 0));
	REFUSED(syscall(__NR_clone, SIGCHLD, 0, 0, 0, 0)); /* as fork does */
#ifdef __NR_fork
	REFUSED(syscall(__NR_fork));
	REFUSED(syscall(__NR_vfork));
#endif
#ifdef __NR_clone3
	errno = 0;
	if (syscall(__NR_clone3, NULL, (size_t)0) != -1 || errno != ENOSYS)
		return 90;
#endif
	return FINE;
}

static int makes_memory_executable(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return 91;
	REFUSED(mprotect(page, 4096, PROT_READ | PROT_EXEC));
	ALLOWED(mprotect(page, 4096, PROT_READ));
	REFUSED((long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	ALLOWED(munmap(page, 4096));
	return FINE;
}

static int reaches_beyond(void)
{
	REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	REFUSED(syscall(__NR_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0));
	return FINE;
}

static int reaches_the_kernel(void)
{
	REFUSED(syscall(__NR_bpf, 0, NULL, 0));
	REFUSED(syscall(__NR_mount, NULL, NULL, NULL, 0, NULL));
	REFUSED(syscall(__NR_unshare, 0));
	REFUSED(syscall(__NR_keyctl, 0, 0, 0, 0, 0));
	REFUSED(syscall(__NR_kill, getpid(), 0));
	REFUSED(prctl(PR_SET_DUMPABLE, 0));
	REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
	REFUSED(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	REFUSED(socket(AF_PACKET, SOCK_RAW, 0));
	return FINE;
}

static int changes_files(void)
{
	REFUSED(open("/dev/null", O_WRONLY | O_CLOEXEC));
	REFUSED(open("/dev/null", O_RDWR | O_CLOEXEC));
	REFUSED(open("/nowhere", O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
	REFUSED(syscall(__NR_unlinkat, AT_FDCWD, "/nowhere", 0));
	REFUSED(syscall(__NR_mkdirat, AT_FDCWD, "/nowhere", 0700));
	REFUSED(syscall(__NR_fchmodat, AT_FDCWD, "/nowhere", 0700));
	return FINE;
}

#ifndef __SANITIZE_ADDRESS__
static void *answer_forty_two(void *argument)
{
	*(int *)argument = 42;
	return NULL;
}
#endif

static int does_its_work(void)
{
	int descriptor;
	char byte;

	ALLOWED(descriptor = open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
	ALLOWED(read(descriptor, &byte, 1));
	ALLOWED(close(descriptor));
	ALLOWED(descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	ALLOWED(close(descriptor));
	ALLOWED(descriptor = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	ALLOWED(close(descriptor));
#ifndef __SANITIZE_ADDRESS__ /* which asks the system about each new thread's stack */
	pthread_t thread;
	int answer = 0;

	ALLOWED(-pthread_create(&thread, NULL, answer_forty_two, &answer));
	ALLOWED(-pthread_join(thread, NULL));
	if (answer != 42)
		return 92;
#endif
	return FINE;
}

static void nothing_is_started_or_forked(void **state)
{
	(void)state;
	assert_int_equal(status_of(starts_programs), FINE);
}

static void no_memory_becomes_executable(void **state)
{
	(void)state;
	assert_int_equal(status_of(makes_memory_executable), FINE);
}

static void other_processes_are_out_of_reach(void **state)
{
	(void)state;
	assert_int_equal(status_of(reaches_beyond), FINE);
}

static void the_kernel_and_other_kinds_of_sockets_are_out_of_reach(void **state)
{
	(void)state;
	assert_int_equal(status_of(reaches_the_kernel), FINE);
}

static void files_are_read_only(void **state)
{
	(void)state;
	assert_int_equal(status_of(changes_files), FINE);
}

static void what_a_daemon_does_goes_on(void **state)
{
	(void)state;
	assert_int_equal(status_of(does_its_work), FINE);
}

#ifdef __x86_64__
static int calls_by_x32_numbers(void)
{
	(void)syscall(0x40000000 | __NR_getpid);
	return FINE;
}

static void numbers_of_another_interface_kill(void **state)
{
	(void)state;
	assert_int_equal(status_of(calls_by_x32_numbers), 1000 + SIGSYS);
}
#endif

/* TSYNC: threads that were there before are under the filter too. */
static pthread_barrier_t before_filter;
static pthread_barrier_t after_filter;

static void *try_mount(void *argument)
{
	(void)pthread_barrier_wait(&before_filter);
	(void)pthread_barrier_wait(&after_filter);
	errno = 0;
	*(bool *)argument = refused(syscall(__NR_mount, NULL, NULL, NULL, 0, NULL));
	return NULL;
}

static int filter_with_a_thread(void)
{
	struct error err;
	pthread_t thread;
	bool was_refused = false;

	(void)pthread_barrier_init(&before_filter, NULL, 2);
	(void)pthread_barrier_init(&after_filter, NULL, 2);
	if (pthread_create(&thread, NULL, try_mount, &was_refused) != 0)
		return 1;
	(void)pthread_barrier_wait(&before_filter);
	if (!syscall_filter_install(&err))
		return access("/proc/sys/kernel/seccomp", F_OK) == 0 ? NOT_INSTALLED : SKIPPED;
	(void)pthread_barrier_wait(&after_filter);
	(void)pthread_join(thread, NULL);
	return was_refused ? FINE : 2;
}

static void threads_of_before_are_filtered_too(void **state)
{
	(void)state;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(filter_with_a_thread());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED)
		skip();
	assert_int_equal(WEXITSTATUS(status), FINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_started_or_forked),
		cmocka_unit_test(no_memory_becomes_executable),
		cmocka_unit_test(other_processes_are_out_of_reach),
		cmocka_unit_test(the_kernel_and_other_kinds_of_sockets_are_out_of_reach),
		cmocka_unit_test(files_are_read_only),
		cmocka_unit_test(what_a_daemon_does_goes_on),
#ifdef __x86_64__
		cmocka_unit_test(numbers_of_another_interface_kill),
#endif
		cmocka_unit_test(threads_of_before_are_filtered_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
