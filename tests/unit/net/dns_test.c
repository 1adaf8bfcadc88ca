/*
 * The resolver here is a function of ours that runs in the helper thread. Names say what it does: "hang…" waits for a
 * byte in a pipe.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "net/dns_server.h"
#include "net/limits.h"
#include "net/loop_internal.h"
#include "peer.h"

static atomic_int questions;
static atomic_int hangs_over;
static int gate[2];

/* Made by the system, so that freeaddrinfo can free it. */
static struct addrinfo *make_address(size_t last)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM, .ai_family = AF_INET };
	struct addrinfo *list = NULL;
	char text[32];

	snprintf(text, sizeof text, "10.0.0.%zu", last);
	return getaddrinfo(text, NULL, &hints, &list) == 0 ? list : NULL;
}

static int resolve(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list)
{
	char byte;

	(void)service;
	atomic_fetch_add(&questions, 1);
	if (strncmp(host, "hang", 4) == 0) {
		while (read(gate[0], &byte, 1) < 0)
			;
		atomic_fetch_add(&hangs_over, 1);
	}
	if (strncmp(host, "none", 4) == 0)
		return EAI_NONAME;
	if (strncmp(host, "again", 5) == 0)
		return EAI_AGAIN;
	if (strncmp(host, "broken", 6) == 0) {
		errno = EMFILE;
		return EAI_SYSTEM;
	}
	if (strncmp(host, "odd", 3) == 0)
		return EAI_FAMILY;
	if (strncmp(host, "memory", 6) == 0)
		return EAI_MEMORY;
	if (hints->ai_socktype != SOCK_STREAM)
		return EAI_SOCKTYPE;
	*ret_list = make_address(strlen(host));
	if (strncmp(host, "strange", 7) == 0)
		(*ret_list)->ai_addr->sa_family = AF_UNIX; /* nothing that we could connect to */
	return 0;
}

static const struct loop_epoll_calls CALLS = {
	.recv = recv,
	.send = send,
	.connect = connect,
	.accept4 = accept4,
	.epoll_ctl = epoll_ctl,
	.getaddrinfo = resolve,
};

static struct loop *loop_with_resolver(void)
{
	struct error err;
	struct loop *loop = loop_epoll_create_with_calls(&CALLS, &err);

	assert_non_null(loop);
	atomic_store(&questions, 0);
	atomic_store(&hangs_over, 0);
	assert_int_equal(pipe(gate), 0);
	return loop;
}

static void open_gate(int times)
{
	for (int i = 0; i < times; i++)
		assert_int_equal(write(gate[1], "x", 1), 1);
}

static void close_gate(void)
{
	close(gate[0]);
	close(gate[1]);
}

struct answer {
	struct lookup *lookup;
	unsigned calls;
	size_t count;
	struct address first;
	struct error err;
	struct answer *cancels; /* another one, when answered */
};

static void answered(void *context, const struct address *addresses, size_t count, const struct error *err)
{
	struct answer *answer = context;

	answer->calls++;
	answer->lookup = NULL;
	answer->count = count;
	if (count > 0)
		answer->first = addresses[0];
	else
		answer->err = *err;
	if (answer->cancels != NULL && answer->cancels->lookup != NULL) {
		lookup_cancel(answer->cancels->lookup);
		answer->cancels->lookup = NULL;
	}
}

static void ask_within(struct loop *loop, struct answer *answer, const char *host, uint16_t port, uint64_t timeout_ns)
{
	struct error err;

	answer->lookup = loop_lookup(loop, host, port, timeout_ns, answered, answer, &err);
	assert_non_null(answer->lookup);
	assert_int_equal(answer->calls, 0);
}

static void ask(struct loop *loop, struct answer *answer, const char *host, uint16_t port)
{
	ask_within(loop, answer, host, port, 10ULL * NS_PER_S);
}

static void a_name_is_resolved_by_the_helper(void **state)
{
	struct loop *loop = loop_with_resolver();
	struct answer answer = { 0 };
	char text[ADDRESS_TEXT_BYTES];

	(void)state;
	ask(loop, &answer, "abc", 8080);
	TURN_UNTIL(loop, answer.calls == 1);
	assert_int_equal(answer.count, 1);
	address_print(&answer.first, text);
	assert_string_equal(text, "10.0.0.3:8080");
	loop_destroy(loop);
	close_gate();
}

static void literals_are_answered_without_the_helper_but_not_at_once(void **state)
{
	struct loop *loop = loop_with_resolver();
	struct answer answers[2] = { 0 };
	char text[ADDRESS_TEXT_BYTES];

	(void)state;
	ask(loop, &answers[0], "10.1.2.3", 1);
	ask(loop, &answers[1], "fe80::1", 2);
	TURN_UNTIL(loop, answers[0].calls == 1 && answers[1].calls == 1);
	address_print(&answers[0].first, text);
	assert_string_equal(text, "10.1.2.3:1");
	address_print(&answers[1].first, text);
	assert_string_equal(text, "[fe80::1]:2");
	assert_int_equal(atomic_load(&questions), 0);
	answers[0].calls = 0;
	ask(loop, &answers[0], "10.1.2.3", 1);
	lookup_cancel(answers[0].lookup);
	turn_for(loop, 2);
	assert_int_equal(answers[0].calls, 0);
	loop_destroy(loop);
	close_gate();
}

static void equal_names_share_a_question_and_keep_their_ports(void **state)
{
	enum { MANY = 20 };
	struct loop *loop = loop_with_resolver();
	struct answer answers[MANY] = { 0 }, blocker = { 0 };

	(void)state;
	ask(loop, &blocker, "hang-first", 1);
	for (uint16_t i = 0; i < MANY; i++)
		ask(loop, &answers[i], i % 2 == 0 ? "hang-first" : "second", (uint16_t)(100 + i));
	open_gate(1);
	for (int i = 0; i < MANY; i++)
		TURN_UNTIL(loop, answers[i].calls == 1);
	for (uint16_t i = 0; i < MANY; i++) {
		assert_int_equal(answers[i].first.port, 100 + i);
		assert_int_equal(answers[i].first.bytes[3], i % 2 == 0 ? 10 : 6);
	}
	assert_int_equal(atomic_load(&questions), 2);
	loop_destroy(loop);
	close_gate();
}

static void each_lookup_has_its_own_deadline_whatever_the_helper_does(void **state)
{
	struct loop *loop = loop_with_resolver();
	struct answer early = { 0 }, late = { 0 }, queued = { 0 };

	(void)state;
	ask_within(loop, &late, "hang", 1, 10ULL * NS_PER_S);
	ask_within(loop, &early, "hang", 1, 20 * NS_PER_MS);
	ask_within(loop, &queued, "queued", 1, 20 * NS_PER_MS);
	TURN_UNTIL(loop, early.calls == 1 && queued.calls == 1);
	assert_int_equal(early.count, 0);
	assert_int_equal(early.err.code, ERROR_TIMEOUT);
	assert_string_equal(early.err.text, "lookup hang: context deadline exceeded");
	assert_string_equal(error_root(&queued.err), "context deadline exceeded");
	assert_int_equal(late.calls, 0);
	open_gate(1);
	TURN_UNTIL(loop, late.calls == 1);
	assert_int_equal(late.count, 1);
	turn_for(loop, 5);
	assert_int_equal(atomic_load(&questions), 1); /* nobody waits for "queued" any more */
	loop_destroy(loop);
	close_gate();
}

static void a_late_answer_serves_those_who_asked_meanwhile(void **state)
{
	struct loop *loop = loop_with_resolver();
	struct answer early = { 0 }, second = { 0 };

	(void)state;
	ask_within(loop, &early, "hang", 1, 5 * NS_PER_MS);
	TURN_UNTIL(loop, early.calls == 1);
	ask(loop, &second, "hang", 2);
	open_gate(1);
	TURN_UNTIL(loop, second.calls == 1);
	assert_int_equal(second.count, 1);
	assert_int_equal(early.calls, 1);
	assert_int_equal(atomic_load(&questions), 1);
	loop_destroy(loop);
	close_gate();
}

static void cancelled_lookups_are_not_answered(void **state)
{
	struct loop *loop = loop_with_resolver();
	struct answer current = { 0 }, queued = { 0 }, last = { 0 };

	(void)state;
	ask(loop, &current, "hang", 1);
	ask(loop, &queued, "queued", 1);
	ask(loop, &last, "last", 1);
	lookup_cancel(current.lookup);
	lookup_cancel(queued.lookup);
	open_gate(1);
	TURN_UNTIL(loop, last.calls == 1);
	assert_int_equal(current.calls + queued.calls, 0);
	assert_int_equal(atomic_load(&questions), 2);
	loop_destroy(loop);
	close_gate();
}

static void an_answer_may_cancel_another_of_the_same_name(void **state)
{
	struct loop *loop = loop_with_resolver();
	struct answer a = { 0 }, b = { 0 };

	(void)state;
	a.cancels = &b;
	b.cancels = &a;
	ask(loop, &a, "same", 1);
	ask(loop, &b, "same", 1);
	TURN_UNTIL(loop, a.calls + b.calls == 1);
	turn_for(loop, 5);
	assert_int_equal(a.calls + b.calls, 1);
	loop_destroy(loop);
	close_gate();
}

static void failures_are_told_in_words(void **state)
{
	static const struct {
		const char *host, *start, *end;
		enum error_code code;
	} CASES[] = {
		{ "strange.example", "lookup strange.example on ", ":53: no such host", ERROR_SYSTEM },
		{ "none.example", "lookup none.example on ", ":53: no such host", ERROR_SYSTEM },
		{ "again.example", "lookup again.example on ", ": server misbehaving", ERROR_SYSTEM },
		{ "broken.example", "lookup broken.example: ", "getaddrinfo: too many open files", ERROR_SYSTEM },
		{ "memory.example", "lookup memory.example", ": no memory", ERROR_NO_MEMORY },
		{ "odd.example", "lookup odd.example: the resolver failed with code ", "", ERROR_SYSTEM },
	};
	struct loop *loop = loop_with_resolver();

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct answer answer = { 0 };

		ask(loop, &answer, CASES[i].host, 1);
		TURN_UNTIL(loop, answer.calls == 1);
		assert_int_equal(answer.count, 0);
		assert_int_equal(answer.err.code, CASES[i].code);
		assert_memory_equal(answer.err.text, CASES[i].start, strlen(CASES[i].start));
		assert_string_equal(answer.err.text + strlen(answer.err.text) - strlen(CASES[i].end), CASES[i].end);
	}
	loop_destroy(loop);
	close_gate();
}

static void the_queue_is_bounded(void **state)
{
	struct loop *loop = loop_with_resolver();
	struct answer answers[NET_LOOKUP_QUEUE + 1] = { 0 }, more = { 0 };
	struct error err;
	char host[16];

	(void)state;
	for (int i = 0; i < NET_LOOKUP_QUEUE + 1; i++) {
		snprintf(host, sizeof host, "%s%d", i == 0 ? "hang" : "n", i);
		ask(loop, &answers[i], host, 1);
	}
	assert_null(loop_lookup(loop, "one-more", 1, NS_PER_S, answered, &more, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "lookup one-more: 64 other names wait already");
	ask(loop, &more, "n5", 7); /* no new name */
	open_gate(1);
	TURN_UNTIL(loop, answers[NET_LOOKUP_QUEUE].calls == 1);
	assert_int_equal(more.calls, 1);
	loop_destroy(loop);
	close_gate();
}

static void names_that_are_empty_or_too_long_are_refused(void **state)
{
	struct loop *loop = loop_with_resolver();
	char host[NET_HOST_BYTES + 1];
	struct error err;

	(void)state;
	memset(host, 'a', sizeof host);
	host[NET_HOST_BYTES] = '\0';
	assert_null(loop_lookup(loop, host, 1, 1, answered, NULL, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_null(loop_lookup(loop, "", 1, 1, answered, NULL, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	loop_destroy(loop);
	close_gate();
}

static void a_loop_is_destroyed_at_once_while_the_helper_hangs(void **state)
{
	struct loop *loop = loop_with_resolver();
	struct answer current = { 0 }, queued = { 0 };
	size_t before = open_descriptors();
	uint64_t start_ns = clock_monotonic_ns();

	(void)state;
	ask(loop, &current, "hang", 1);
	ask(loop, &queued, "queued", 1);
	while (atomic_load(&questions) == 0)
		usleep(100);
	loop_destroy(loop);
	assert_true(clock_monotonic_ns() - start_ns < 5ULL * NS_PER_S);
	assert_int_equal(current.calls + queued.calls, 0);
	open_gate(1);
	/* The helper ends by itself and closes its ends of the pipes. */
	for (int i = 0; i < 5000 && (atomic_load(&hangs_over) == 0 || open_descriptors() > before - 1); i++)
		usleep(1000);
	assert_int_equal(atomic_load(&hangs_over), 1);
	assert_int_equal(open_descriptors(), before - 1);
	close_gate();
}

static void without_memory_a_lookup_fails_and_nothing_leaks(void **state)
{
	struct answer answer = { 0 };
	struct error err;
	unsigned failures = 0;

	(void)state;
	for (unsigned long n = 1;; n++) {
		struct loop *loop = loop_with_resolver();
		struct lookup *lookup;
		bool reached;

		memory_fail_at(n);
		lookup = loop_lookup(loop, "abc", 1, 10ULL * NS_PER_S, answered, &answer, &err);
		reached = memory_allocation_count() >= n;
		memory_fail_at(0);
		if (lookup == NULL) {
			assert_int_equal(err.code, ERROR_NO_MEMORY);
			failures++;
		} else {
			answer.calls = 0;
			TURN_UNTIL(loop, answer.calls == 1);
		}
		loop_destroy(loop);
		close_gate();
		if (!reached)
			break;
	}
	assert_true(failures >= 4);
}

static void the_real_resolver_knows_localhost(void **state)
{
	struct loop *loop = new_loop();
	struct answer answer = { 0 };

	(void)state;
	ask(loop, &answer, "localhost", 5);
	TURN_UNTIL(loop, answer.calls == 1);
	assert_true(answer.count >= 1);
	assert_int_equal(answer.first.port, 5);
	loop_destroy(loop);
}

static void the_first_nameserver_is_named(void **state)
{
	static const struct {
		struct slice content;
		const char *server;
	} CASES[] = {
		{ { "", 0 }, "127.0.0.1:53" },
		{ { "nameserver 10.96.0.10\nnameserver 1.1.1.1\n", 41 }, "10.96.0.10:53" },
		{ { "# c\nsearch x\n\tnameserver\t2001:db8::1 # y", 40 }, "[2001:db8::1]:53" },
		{ { "nameserver nonsense\r\nnameserver 9.9.9.9\r\n", 41 }, "9.9.9.9:53" },
		{ { "nameserver", 10 }, "127.0.0.1:53" },
	};
	char text[ADDRESS_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		dns_server_from(CASES[i].content, text);
		assert_string_equal(text, CASES[i].server);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first, as it counts descriptors: helpers of other loops may close theirs a little later */
		cmocka_unit_test(a_loop_is_destroyed_at_once_while_the_helper_hangs),
		cmocka_unit_test(a_name_is_resolved_by_the_helper),
		cmocka_unit_test(literals_are_answered_without_the_helper_but_not_at_once),
		cmocka_unit_test(equal_names_share_a_question_and_keep_their_ports),
		cmocka_unit_test(each_lookup_has_its_own_deadline_whatever_the_helper_does),
		cmocka_unit_test(a_late_answer_serves_those_who_asked_meanwhile),
		cmocka_unit_test(cancelled_lookups_are_not_answered),
		cmocka_unit_test(an_answer_may_cancel_another_of_the_same_name),
		cmocka_unit_test(failures_are_told_in_words),
		cmocka_unit_test(the_queue_is_bounded),
		cmocka_unit_test(names_that_are_empty_or_too_long_are_refused),
		cmocka_unit_test(without_memory_a_lookup_fails_and_nothing_leaks),
		cmocka_unit_test(the_real_resolver_knows_localhost),
		cmocka_unit_test(the_first_nameserver_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
