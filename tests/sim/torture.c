#include "torture.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/loop_sim.h"

/* Not through base/memory.h: what the simulation itself allocates is counted there. */

enum { SAMPLE = 100, CHILDREN_MAX = 16, FIRST_ROOM = 4096 };

/* Seconds of work; usually some hundredths of one. */
static const struct rlimit CHILD_TIME = { .rlim_cur = 60, .rlim_max = 60 };

struct child {
	pid_t process;
	unsigned long point;
};

struct sim_torture {
	struct sim_torture_options options;
	/* How many points the victim's code passed each time it ran. */
	unsigned *counts;
	size_t count, room;
	size_t next; /* in the second run */
	unsigned long calls_before;
	unsigned long passed; /* points, so far */
	unsigned long point;  /* the next to fail */
	bool forks, is_child;
	struct child children[CHILDREN_MAX];
	unsigned child_count;
	struct sim_torture_end *ends; /* shared with the children, by point */
	struct sim_torture_result result;
};

struct sim_torture *sim_torture_create(const struct sim_torture_options *options, struct error *err)
{
	struct sim_torture *torture = calloc(1, sizeof *torture);

	if (torture == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for torture");
		return NULL;
	}
	torture->options = *options;
	if (torture->options.children < 1)
		torture->options.children = 1;
	if (torture->options.children > CHILDREN_MAX)
		torture->options.children = CHILDREN_MAX;
	torture->point = options->first;
	return torture;
}

void sim_torture_destroy(struct sim_torture *torture)
{
	if (torture->ends != NULL)
		(void)munmap(torture->ends, (torture->result.points + 1) * sizeof *torture->ends);
	free(torture->counts);
	free(torture);
}

/* ---- children ---- */

static const char *kind_name(const struct sim_torture *torture)
{
	return torture->options.kind == SIM_TORTURE_CALLS ? "call" : "allocation";
}

static void take_child(struct sim_torture *torture, const struct child *child, int status)
{
	const struct sim_torture_end *end = &torture->ends[child->point];

	torture->result.tried++;
	torture->result.happened += end->happened ? 1 : 0;
	torture->result.restarted += end->restarted ? 1 : 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && end->whole)
		return;
	torture->result.broken++;
	if (WIFSIGNALED(status))
		(void)printf("It crashed: signal %d\n", WTERMSIG(status));
	(void)printf("BROKEN by the failure of %s %lu\n", kind_name(torture), child->point);
	(void)fflush(stdout);
}

static void wait_for_child(struct sim_torture *torture)
{
	int status;
	pid_t process = waitpid(-1, &status, 0);

	for (unsigned i = 0; i < torture->child_count; i++) {
		if (torture->children[i].process != process)
			continue;
		take_child(torture, &torture->children[i], status);
		torture->children[i] = torture->children[--torture->child_count];
		return;
	}
}

/* Returns whether this is the child. */
static bool fork_child(struct sim_torture *torture)
{
	pid_t process;

	while (torture->child_count >= torture->options.children)
		wait_for_child(torture);
	(void)fflush(stdout);
	process = fork();
	if (process < 0) {
		torture->result.broken++;
		(void)printf("no child for %s %lu\n", kind_name(torture), torture->point);
		return false;
	}
	if (process == 0) {
		torture->is_child = true;
		(void)setrlimit(RLIMIT_CPU, &CHILD_TIME); /* what never ends is a crash, too */
		return true;
	}
	torture->children[torture->child_count++] = (struct child){ .process = process, .point = torture->point };
	return false;
}

void sim_torture_end_child(struct sim_torture *torture, struct sim_torture_end end)
{
	torture->ends[torture->point] = end;
	(void)fflush(stdout);
	_exit(0);
}

bool sim_torture_is_child(const struct sim_torture *torture)
{
	return torture != NULL && torture->is_child;
}

/* ---- the two runs ---- */

static bool is_victim(const struct sim_torture *torture, const char *name)
{
	return torture != NULL && !torture->is_child && strcmp(torture->options.victim, name) == 0;
}

static void count_points(struct sim_torture *torture, unsigned made)
{
	if (torture->count == torture->room) {
		size_t room = torture->room == 0 ? FIRST_ROOM : 2 * torture->room;
		unsigned *counts = realloc(torture->counts, room * sizeof *counts);

		if (counts == NULL) {
			(void)fprintf(stderr, "ballast-sim: no memory for torture\n");
			exit(1);
		}
		torture->counts = counts;
		torture->room = room;
	}
	torture->counts[torture->count++] = made;
}

static unsigned long step(const struct sim_torture *torture)
{
	unsigned long all = torture->result.points;
	unsigned long each = torture->options.each;

	return torture->point < each || all <= each ? 1 : 1 + (all - each) / SAMPLE;
}

void sim_torture_before(struct sim_torture *torture, const char *name, struct loop *loop,
                        unsigned long *fail_allocation_in)
{
	unsigned long until;

	if (!is_victim(torture, name))
		return;
	torture->calls_before = loop != NULL ? loop_sim_call_count(loop) : 0;
	if (!torture->forks)
		return;
	until = torture->passed + (torture->next < torture->count ? torture->counts[torture->next] : 0);
	torture->next++;
	for (; torture->point <= until; torture->point += step(torture)) {
		if (!fork_child(torture))
			continue;
		if (torture->options.kind == SIM_TORTURE_ALLOCATIONS)
			*fail_allocation_in = torture->point - torture->passed;
		else
			loop_sim_fail_call(loop, torture->point - torture->passed);
		return;
	}
	torture->passed = until;
}

void sim_torture_after(struct sim_torture *torture, const char *name, struct loop *loop, unsigned long allocations)
{
	unsigned long made = allocations;

	if (!is_victim(torture, name) || torture->forks)
		return;
	if (torture->options.kind == SIM_TORTURE_CALLS)
		made = loop != NULL ? loop_sim_call_count(loop) - torture->calls_before : 0;
	count_points(torture, (unsigned)made);
	torture->result.points += made;
}

bool sim_torture_begin(struct sim_torture *torture, struct error *err)
{
	void *ends;

	if (torture->result.points == 0)
		return error_set(err, ERROR_INVARIANT, "%s made no %s", torture->options.victim, kind_name(torture));
	ends = mmap(NULL, (torture->result.points + 1) * sizeof *torture->ends, PROT_READ | PROT_WRITE,
	            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ends == MAP_FAILED)
		return error_set(err, ERROR_NO_MEMORY, "no memory for torture");
	torture->ends = ends;
	torture->forks = true;
	return true;
}

struct sim_torture_result sim_torture_finish(struct sim_torture *torture)
{
	while (torture->child_count > 0)
		wait_for_child(torture);
	return torture->result;
}
