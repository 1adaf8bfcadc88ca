/*
 * What tests of the Kubernetes client need around them: a loop, a scripted API server, a folder with credentials, a
 * log that can be read.
 */
#ifndef BALLAST_TESTS_KUBE_FIXTURE_H
#define BALLAST_TESTS_KUBE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "kube/client.h"
#include "net/loop_epoll.h"
#include "tests/support/scripted_api.h"

#define UNUSED_HERE __attribute__((unused))

struct kube_fixture {
	struct loop *loop;
	struct scripted_api *api;
	struct kube_client *client;
	struct log_sink *sink;
	FILE *log;
	char folder[64];
	char log_text[256 * 1024];
};

static int64_t fixture_time(void *context)
{
	(void)context;
	return 0;
}

UNUSED_HERE static struct logger fixture_logger(struct kube_fixture *fixture)
{
	return (struct logger){ .sink = fixture->sink, .name = "test", .context_json = "" };
}

UNUSED_HERE static void fixture_write(const struct kube_fixture *fixture, const char *name, struct slice content)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof path, "%s/%s", fixture->folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	(void)fwrite(content.data, 1, content.length, file);
	(void)fclose(file);
}

UNUSED_HERE static void fixture_remove(const struct kube_fixture *fixture, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof path, "%s/%s", fixture->folder, name);
	(void)unlink(path);
}

UNUSED_HERE static struct kube_client *fixture_client(struct kube_fixture *fixture, bool plain)
{
	struct kube_client_options options = {
		.host = "127.0.0.1",
		.port = scripted_api_port(fixture->api),
		.credentials_dir = fixture->folder,
		.user_agent = "ballast-test",
		.logger = fixture_logger(fixture),
		.plain = plain,
	};
	struct error err;
	struct kube_client *client = kube_client_create(fixture->loop, &options, &err);

	if (client == NULL)
		fail_msg("kube_client_create: %s", err.text);
	return client;
}

/* Without API server and client: for tests that want TLS. */
UNUSED_HERE static struct kube_fixture *fixture_create_bare(void)
{
	struct kube_fixture *fixture = calloc(1, sizeof *fixture);
	struct error err;

	fixture->loop = loop_epoll_create(&err);
	if (fixture->loop == NULL)
		fail_msg("loop_epoll_create: %s", err.text);
	fixture->log = tmpfile();
	fixture->sink = log_sink_create(fileno(fixture->log), LOG_FORMAT_JSON, LOG_DEBUG, 1024 * 1024, fixture_time,
	                                NULL, &err);
	assert_non_null(fixture->sink);
	(void)snprintf(fixture->folder, sizeof fixture->folder, "/tmp/ballast-kube-XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	fixture_write(fixture, "token", SLICE("first-token\n"));
	fixture_write(fixture, "ca.crt", SLICE("not looked at without TLS"));
	return fixture;
}

UNUSED_HERE static struct kube_fixture *fixture_create(void)
{
	struct kube_fixture *fixture = fixture_create_bare();

	fixture->api = scripted_api_start(fixture->loop, NULL);
	fixture->client = fixture_client(fixture, true);
	return fixture;
}

UNUSED_HERE static void fixture_destroy(struct kube_fixture *fixture)
{
	kube_client_destroy(fixture->client);
	if (fixture->api != NULL)
		scripted_api_destroy(fixture->api);
	loop_destroy(fixture->loop);
	log_sink_destroy(fixture->sink, 0);
	(void)fclose(fixture->log);
	fixture_remove(fixture, "token");
	fixture_remove(fixture, "ca.crt");
	(void)rmdir(fixture->folder);
	free(fixture);
}

/* All of the log so far. */
UNUSED_HERE static const char *fixture_log(struct kube_fixture *fixture)
{
	ssize_t length;

	(void)log_flush(fixture->sink);
	length = pread(fileno(fixture->log), fixture->log_text, sizeof fixture->log_text - 1, 0);
	assert_true(length >= 0);
	fixture->log_text[length] = '\0';
	return fixture->log_text;
}

/* How often the text is in the log. */
UNUSED_HERE static int fixture_logged(struct kube_fixture *fixture, const char *text)
{
	const char *log = fixture_log(fixture);
	int count = 0;

	for (const char *at = strstr(log, text); at != NULL; at = strstr(at + 1, text))
		count++;
	return count;
}

/* The messages ("msg") of the log in order, each followed by a line feed, with its level before: "info Relisting". */
UNUSED_HERE static void fixture_log_messages(struct kube_fixture *fixture, char *messages, size_t size)
{
	const char *line = fixture_log(fixture);

	messages[0] = '\0';
	while (*line != '\0') {
		char level[16] = "";
		char message[256] = "";
		const char *end = strchr(line, '\n');
		const char *at = strstr(line, "\"msg\":\"");
		size_t used = strlen(messages);

		assert_non_null(end);
		assert_int_equal(sscanf(line, "{\"level\":\"%15[^\"]", level), 1);
		assert_non_null(at);
		assert_int_equal(sscanf(at, "\"msg\":\"%255[^\"]", message), 1);
		(void)snprintf(messages + used, size - used, "%s %s\n", level, message);
		line = end + 1;
	}
}

UNUSED_HERE static void expect_slice(struct slice found, const char *text)
{
	if (!slice_equal_text(found, text))
		fail_msg("\"%.*s\" instead of \"%s\"", SLICE_ARGS(found), text);
}

/* What came of one call. */
struct fixture_outcome {
	bool opened;
	bool done;
	int status;
	bool failed;
	struct error err;
	char body[64 * 1024]; /* collected or streamed */
	size_t body_length;
	uint64_t retry_after_ns;
	struct kube_call *call;
};

static void fixture_on_open(void *context)
{
	struct fixture_outcome *outcome = context;

	outcome->opened = true;
}

static void fixture_on_body(void *context, struct slice bytes)
{
	struct fixture_outcome *outcome = context;

	assert_true(outcome->body_length + bytes.length < sizeof outcome->body);
	memcpy(outcome->body + outcome->body_length, bytes.data, bytes.length);
	outcome->body_length += bytes.length;
}

static void fixture_on_done(void *context, int status, struct slice body, const struct error *err)
{
	struct fixture_outcome *outcome = context;

	assert_false(outcome->done);
	outcome->done = true;
	outcome->status = status;
	outcome->failed = err != NULL;
	if (err != NULL)
		outcome->err = *err;
	if (body.length > 0)
		fixture_on_body(context, body);
	if (outcome->call != NULL)
		outcome->retry_after_ns = kube_call_retry_after_ns(outcome->call);
}

UNUSED_HERE static const struct kube_handler FIXTURE_COLLECT = { .on_open = fixture_on_open,
	                                                         .on_done = fixture_on_done };
UNUSED_HERE static const struct kube_handler FIXTURE_STREAM = {
	.on_open = fixture_on_open,
	.on_body = fixture_on_body,
	.on_done = fixture_on_done,
};

#endif
