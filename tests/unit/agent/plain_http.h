/*
 * Asks a server of the test's own loop, byte for byte.
 */
#ifndef BALLAST_TESTS_PLAIN_HTTP_H
#define BALLAST_TESTS_PLAIN_HTTP_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net/address.h"
#include "net/loop.h"

enum { PLAIN_HTTP_ANSWER_BYTES = 256 * 1024, PLAIN_HTTP_TIMEOUT_S = 10 };

/* -1 if nobody listens. */
static int plain_http_connect(const struct address *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(address->port) };
	int descriptor = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(descriptor >= 0);
	memcpy(&to.sin_addr, address->bytes, 4);
	if (connect(descriptor, (const struct sockaddr *)&to, sizeof to) == 0)
		return descriptor;
	close(descriptor);
	return -1;
}

static void plain_http_tick(void *context)
{
	(void)context;
}

static void plain_http_turn(struct loop *loop)
{
	struct loop_timer tick = { 0 }; /* so that a turn doesn't wait for long */
	struct error err;

	loop_timer_start(loop, &tick, 1000000, plain_http_tick, NULL);
	assert_true(loop_turn(loop, &err));
	loop_timer_stop(loop, &tick);
}

/* Reads until the server closes. */
static void plain_http_receive(struct loop *loop, int descriptor, char *ret_answer)
{
	time_t deadline = time(NULL) + PLAIN_HTTP_TIMEOUT_S;
	size_t length = 0;

	for (;;) {
		ssize_t got = recv(descriptor, ret_answer + length, PLAIN_HTTP_ANSWER_BYTES - 1 - length, MSG_DONTWAIT);

		if (got == 0)
			break;
		if (got > 0)
			length += (size_t)got;
		else if (errno != EAGAIN)
			break;
		assert_true(length < PLAIN_HTTP_ANSWER_BYTES - 1);
		assert_true(time(NULL) < deadline);
		plain_http_turn(loop);
	}
	ret_answer[length] = '\0';
	close(descriptor);
}

/*
 * request: the line and the fields besides Host and Connection, each with \r\n; then what comes behind the empty line.
 */
static void plain_http_ask(struct loop *loop, const struct address *address, const char *head, const char *body,
                           char *ret_answer)
{
	int descriptor = plain_http_connect(address);
	char request[4096];
	int length =
		snprintf(request, sizeof request, "%sHost: a\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
	                 head, strlen(body), body);

	assert_true(descriptor >= 0);
	assert_int_equal(send(descriptor, request, (size_t)length, MSG_NOSIGNAL), length);
	plain_http_receive(loop, descriptor, ret_answer);
}

static const char *plain_http_body(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");

	assert_non_null(body);
	return body + 4;
}

static int plain_http_status(const char *answer)
{
	int status = 0;

	assert_int_equal(sscanf(answer, "HTTP/1.1 %d", &status), 1);
	return status;
}

#endif
