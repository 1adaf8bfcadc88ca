/*
 * The loop and the helper thread share one block with room for one question and its answer. A byte through the first
 * pipe hands the block to the helper, a byte through the second hands it back; whoever has it may touch it, so there
 * are no locks. The block is counted: when the loop goes while the helper hangs in getaddrinfo, the helper frees it in
 * the end. It leaves as soon as its pipe is closed.
 *
 * A job is one name with everybody who waits for it. `current` is with the helper; the others wait in a queue.
 */
#include "net/dns.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/dns_server.h"
#include "net/limits.h"
#include "net/loop_internal.h"
#include "net/socket_address.h"

/* What loop and helper share. */
struct dns_helper {
	atomic_int owners;
	dns_getaddrinfo *ask;
	int questions; /* the helper's ends of the pipes */
	int answers;
	char host[NET_HOST_BYTES];
	int failure; /* 0 or EAI_… */
	int failure_errno;
	size_t count;
	struct address addresses[NET_LOOKUP_ADDRESSES];
	char server[ADDRESS_TEXT_BYTES];
};

struct dns_job {
	struct dns_job *next;
	struct dns_lookup *lookups;
	bool kept; /* with the helper, or being answered: lives on without lookups */
	char host[NET_HOST_BYTES];
};

struct dns_lookup {
	struct lookup lookup; /* must be first */
	struct dns *dns;
	struct dns_job *job;
	struct dns_lookup *next, *previous;
	struct loop_timer timer;
	lookup_callback *callback;
	void *context;
	uint16_t port;
};

struct dns {
	struct loop *loop;
	struct dns_helper *helper;
	int questions; /* the loop's ends of the pipes */
	int answers;
	struct loop_watch *watch;
	struct dns_job *current;
	struct dns_job *queue;
	size_t queue_length;
};

/* ---- the helper thread ---- */

_Static_assert(sizeof(struct dns_helper) < MEMORY_LARGE_BLOCK_BYTES / 2,
               "either thread may release it (base/memory.h)");

static void helper_release(struct dns_helper *helper)
{
	if (atomic_fetch_sub(&helper->owners, 1) == 1)
		memory_release(helper);
}

static void take_addresses(struct dns_helper *helper, const struct addrinfo *list)
{
	for (; list != NULL && helper->count < NET_LOOKUP_ADDRESSES; list = list->ai_next)
		if (socket_address_from_system(list->ai_addr, &helper->addresses[helper->count]))
			helper->count++;
}

static void answer_question(struct dns_helper *helper)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;

	helper->count = 0;
	helper->failure = helper->ask(helper->host, NULL, &hints, &list);
	helper->failure_errno = errno;
	if (helper->failure == 0) {
		take_addresses(helper, list);
		freeaddrinfo(list);
	}
	if (helper->count == 0)
		dns_server_text(helper->server); /* for the sentence that tells of it */
}

static ssize_t read_byte(int descriptor)
{
	ssize_t length;
	char byte;

	do
		length = read(descriptor, &byte, 1);
	while (length < 0 && errno == EINTR);
	return length;
}

static ssize_t write_byte(int descriptor)
{
	ssize_t length;

	do
		length = write(descriptor, "", 1);
	while (length < 0 && errno == EINTR);
	return length;
}

/* Signals are blocked here, so that writing to a loop that is gone answers EPIPE and nothing else. */
static void *run_helper(void *argument)
{
	struct dns_helper *helper = argument;

	while (read_byte(helper->questions) == 1) {
		answer_question(helper);
		if (write_byte(helper->answers) != 1)
			break;
	}
	close(helper->questions);
	close(helper->answers);
	helper_release(helper);
	return NULL;
}

static bool start_thread(struct dns_helper *helper, struct error *err)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	int failure = pthread_attr_init(&attributes);

	if (failure != 0)
		return error_set_errno(err, failure, "pthread_attr_init");
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, NET_LOOKUP_STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failure = pthread_create(&thread, &attributes, run_helper, helper);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return failure == 0 || error_set_errno(err, failure, "pthread_create");
}

/* ---- lookups ---- */

static void unlink_lookup(struct dns_lookup *lookup)
{
	struct dns_job *job = lookup->job;

	if (lookup->previous != NULL)
		lookup->previous->next = lookup->next;
	else
		job->lookups = lookup->next;
	if (lookup->next != NULL)
		lookup->next->previous = lookup->previous;
	loop_timer_stop(lookup->dns->loop, &lookup->timer);
}

static void drop_if_unwanted(struct dns *dns, struct dns_job *job)
{
	if (job->kept || job->lookups != NULL)
		return;
	for (struct dns_job **link = &dns->queue; *link != NULL; link = &(*link)->next) {
		if (*link == job) {
			*link = job->next;
			dns->queue_length--;
			break;
		}
	}
	memory_release(job);
}

static void cancel_lookup(struct lookup *base)
{
	struct dns_lookup *lookup = (struct dns_lookup *)base;

	unlink_lookup(lookup);
	drop_if_unwanted(lookup->dns, lookup->job);
	memory_release(lookup);
}

static void lookup_late(void *context)
{
	struct dns_lookup *lookup = context;
	lookup_callback *callback = lookup->callback;
	void *callback_context = lookup->context;
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
	error_wrap(&err, "lookup %s", lookup->job->host);
	cancel_lookup(&lookup->lookup);
	callback(callback_context, NULL, 0, &err);
}

static struct dns_lookup *add_lookup(struct dns *dns, struct dns_job *job, uint64_t timeout_ns, struct error *err)
{
	struct dns_lookup *lookup = memory_allocate(sizeof *lookup);

	if (lookup == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a lookup");
		return NULL;
	}
	lookup->lookup.cancel = cancel_lookup;
	lookup->dns = dns;
	lookup->job = job;
	lookup->next = job->lookups;
	if (lookup->next != NULL)
		lookup->next->previous = lookup;
	job->lookups = lookup;
	loop_timer_start(dns->loop, &lookup->timer, timeout_ns, lookup_late, lookup);
	return lookup;
}

/* ---- jobs ---- */

/* What the helper found out, as a sentence. The server is the one that Go would name: the first in resolv.conf. */
static void explain(const struct dns_helper *helper, struct error *err)
{
	switch (helper->failure) {
	case 0:
	case EAI_NONAME:
#ifdef EAI_NODATA
	case EAI_NODATA:
#endif
		error_set(err, ERROR_SYSTEM, "lookup %s on %s: no such host", helper->host, helper->server);
		break;
	case EAI_AGAIN:
		error_set(err, ERROR_SYSTEM, "lookup %s on %s: server misbehaving", helper->host, helper->server);
		break;
	case EAI_MEMORY:
		error_set(err, ERROR_NO_MEMORY, "lookup %s: no memory", helper->host);
		break;
	case EAI_SYSTEM:
		error_set_errno(err, helper->failure_errno, "getaddrinfo");
		error_wrap(err, "lookup %s", helper->host);
		break;
	default:
		error_set(err, ERROR_SYSTEM, "lookup %s: the resolver failed with code %d", helper->host,
		          helper->failure);
		break;
	}
}

/* Tells everybody who waits for the job, which goes. Callbacks may start and cancel lookups, of this name too. */
static void answer_job(struct dns_job *job, struct address *addresses, size_t count, const struct error *err)
{
	while (job->lookups != NULL) {
		struct dns_lookup *first = job->lookups;
		struct dns_lookup lookup = *first;

		unlink_lookup(first);
		memory_release(first);
		for (size_t i = 0; i < count; i++)
			addresses[i].port = lookup.port;
		lookup.callback(lookup.context, count > 0 ? addresses : NULL, count, err);
	}
	memory_release(job);
}

static void ask_next(struct dns *dns)
{
	struct dns_job *job = dns->queue;

	if (dns->current != NULL || job == NULL)
		return;
	dns->queue = job->next;
	dns->queue_length--;
	dns->current = job;
	job->kept = true;
	memcpy(dns->helper->host, job->host, sizeof job->host);
	write_byte(dns->questions); /* there is never more than one byte in the pipe */
}

static void take_answer(void *context)
{
	struct dns *dns = context;
	struct dns_job *job = dns->current;
	struct address addresses[NET_LOOKUP_ADDRESSES];
	struct error err = { 0 };
	size_t count;

	if (job == NULL || read_byte(dns->answers) != 1)
		return;
	count = dns->helper->count;
	if (count > 0)
		memcpy(addresses, dns->helper->addresses, count * sizeof addresses[0]);
	else
		explain(dns->helper, &err);
	dns->current = NULL;
	ask_next(dns);
	answer_job(job, addresses, count, &err);
}

static struct dns_job *find_job(const struct dns *dns, const char *host)
{
	if (dns->current != NULL && strcmp(dns->current->host, host) == 0)
		return dns->current;
	for (struct dns_job *job = dns->queue; job != NULL; job = job->next)
		if (strcmp(job->host, host) == 0)
			return job;
	return NULL;
}

static struct dns_job *add_job(struct dns *dns, const char *host, struct error *err)
{
	struct dns_job **end = &dns->queue;
	struct dns_job *job;

	if (dns->queue_length >= NET_LOOKUP_QUEUE) {
		error_set(err, ERROR_LIMIT, "lookup %s: %d other names wait already", host, NET_LOOKUP_QUEUE);
		return NULL;
	}
	job = memory_allocate(sizeof *job);
	if (job == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a lookup");
		return NULL;
	}
	memcpy(job->host, host, strlen(host) + 1); /* loop_lookup has checked the length */
	while (*end != NULL)
		end = &(*end)->next;
	*end = job;
	dns->queue_length++;
	return job;
}

struct lookup *dns_lookup(struct dns *dns, const char *host, uint16_t port, uint64_t timeout_ns,
                          lookup_callback *callback, void *context, struct error *err)
{
	struct dns_job *job = find_job(dns, host);
	struct dns_lookup *lookup;

	if (job == NULL)
		job = add_job(dns, host, err);
	if (job == NULL)
		return NULL;
	lookup = add_lookup(dns, job, timeout_ns, err);
	if (lookup == NULL) {
		drop_if_unwanted(dns, job);
		return NULL;
	}
	lookup->callback = callback;
	lookup->context = context;
	lookup->port = port;
	ask_next(dns);
	return &lookup->lookup;
}

/* ---- life ---- */

static void close_pipe(int pipe[2])
{
	for (int i = 0; i < 2; i++)
		if (pipe[i] >= 0)
			close(pipe[i]);
}

/* Takes the pipes and the helper's block in any case. */
static bool start_helper(struct dns *dns, const int questions[2], const int answers[2], struct error *err)
{
	struct dns_helper *helper = dns->helper;

	dns->questions = questions[1];
	dns->answers = answers[0];
	helper->questions = questions[0];
	helper->answers = answers[1];
	dns->watch = loop_watch_descriptor(dns->loop, dns->answers, SOCKET_READ, take_answer, dns, err);
	if (dns->watch == NULL)
		return false;
	atomic_init(&helper->owners, 2);
	if (!start_thread(helper, err)) {
		loop_watch_stop(dns->watch);
		return false;
	}
	return true;
}

struct dns *dns_create(struct loop *loop, dns_getaddrinfo *ask, struct error *err)
{
	struct dns *dns = memory_allocate(sizeof *dns);
	struct dns_helper *helper = memory_allocate(sizeof *helper);
	int questions[2] = { -1, -1 };
	int answers[2] = { -1, -1 };

	if (dns == NULL || helper == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for name lookup");
		goto fail;
	}
	helper->ask = ask;
	*dns = (struct dns){ .loop = loop, .helper = helper };
	if (pipe2(questions, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0) {
		error_set_errno(err, errno, "pipe2");
		goto fail;
	}
	if (start_helper(dns, questions, answers, err))
		return dns;
fail:
	close_pipe(questions);
	close_pipe(answers);
	memory_release(helper);
	memory_release(dns);
	return NULL;
}

static void release_job(struct dns_job *job)
{
	while (job->lookups != NULL) {
		struct dns_lookup *lookup = job->lookups;

		unlink_lookup(lookup);
		memory_release(lookup);
	}
	memory_release(job);
}

void dns_destroy(struct dns *dns)
{
	if (dns == NULL)
		return;
	loop_watch_stop(dns->watch);
	close(dns->questions);
	close(dns->answers);
	helper_release(dns->helper);
	if (dns->current != NULL)
		release_job(dns->current);
	while (dns->queue != NULL) {
		struct dns_job *job = dns->queue;

		dns->queue = job->next;
		release_job(job);
	}
	memory_release(dns);
}
