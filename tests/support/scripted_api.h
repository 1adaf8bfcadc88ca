/*
 * An API server for tests, on loopback and in the test's own loop: it does nothing by itself. Requests are recorded
 * in the order they come; the test answers each when and how it likes, down to single bytes, silence and resets.
 *
 * Also the test's clock: linking this replaces the machine's clocks with ones that can be moved on, so that waits of
 * minutes take no time.
 */
#ifndef BALLAST_TESTS_SCRIPTED_API_H
#define BALLAST_TESTS_SCRIPTED_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/tls.h"

enum { SCRIPTED_API_REQUESTS = 512 };

struct scripted_connection;

struct scripted_request {
	struct slice method;
	struct slice target;
	struct slice head; /* all of it, request line included */
	struct slice body;
	uint64_t at_ns;                 /* by the loop's clock */
	size_t connection;              /* number of the connection, from 0 */
	bool gone;                      /* the client closed the connection */
	struct scripted_connection *on; /* NULL once closed, by either side */
};

struct scripted_api;

/* tls NULL: plain; else settings for new connections, which may be exchanged. Listens on 127.0.0.1. */
struct scripted_api *scripted_api_start(struct loop *loop, struct tls_settings *tls);
void scripted_api_set_tls(struct scripted_api *api, struct tls_settings *tls);
uint16_t scripted_api_port(const struct scripted_api *api);
/* Stops listening: connections are refused from then on. Those that stand aren't touched. */
void scripted_api_stop_listening(struct scripted_api *api);
/* Listens again, on the same port. */
void scripted_api_listen_again(struct scripted_api *api);
void scripted_api_destroy(struct scripted_api *api);
size_t scripted_api_request_count(const struct scripted_api *api);
size_t scripted_api_connection_count(const struct scripted_api *api);
struct scripted_request *scripted_api_request(struct scripted_api *api, size_t number);

/*
 * Turns the loop until that many requests have come, and returns the last of them; fails the test after a few real
 * seconds.
 */
struct scripted_request *scripted_api_wait(struct scripted_api *api, size_t number_of_requests);

/* The value of a field of the request, or the empty slice. */
struct slice scripted_field(const struct scripted_request *request, const char *name);

/* ---- answers ---- */

/* A whole answer with Content-Length; fields is "" or lines that end in \r\n. */
void scripted_reply(struct scripted_request *request, int status, const char *fields, const char *body);
/* The head of a chunked one, chunks, and the end. */
void scripted_begin(struct scripted_request *request, int status, const char *fields);
void scripted_chunk(struct scripted_request *request, struct slice bytes);
void scripted_chunk_text(struct scripted_request *request, const char *text);
void scripted_end(struct scripted_request *request);
/* Bytes as they are. */
void scripted_raw(struct scripted_request *request, struct slice bytes);
/* Sends what is queued, then ends the connection, or cuts it with a reset. */
void scripted_close(struct scripted_request *request);
void scripted_reset(struct scripted_request *request);

/* ---- time and files ---- */

/* Moves both clocks on. */
void test_clock_skip(uint64_t ns);
/* Sets the wall clock forward or back. */
void test_clock_step_wall(int64_t ns);
/* Turns the loop for real_ms of real time. */
void test_loop_spin(struct loop *loop, unsigned real_ms);
/* Turns the loop until *flag, or fails the test after a few real seconds. */
void test_loop_until(struct loop *loop, const bool *flag);
/* A file of tests/, to be freed by the caller; NUL-terminated. */
char *test_file_read(const char *path_below_tests, size_t *ret_length);

#endif
