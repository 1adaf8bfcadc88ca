/*
 * Sends the lines of its standard input as events, through a sink with one client: for tests against servers that
 * others wrote. It ends when all are delivered, or the grace period after the end of input is over.
 *
 *   usage: report_driver http URL | s3 URL BUCKET REGION PREFIX | azure URL CONTAINER PREFIX
 *
 *   environment: DRIVER_EVERY_MS, DRIVER_TIMEOUT_MS, DRIVER_GRACE_MS, DRIVER_BATCH, DRIVER_TICKS (generation A's sender);
 *                credentials as for the agent
 *
 * Standard output has a line for each thing that a metric would tell; standard error is the log.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/loop_epoll.h"
#include "report/azure_blob_put.h"
#include "report/http_push.h"
#include "report/report_sink.h"
#include "report/s3_put.h"

enum { LINE_BYTES = 65536 };

struct driver {
	struct loop *loop;
	struct report_sink *sink;
	struct loop_watch *watch;
	char line[LINE_BYTES];
	size_t length;
};

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value != NULL ? strtoull(value, NULL, 10) : otherwise;
}

static void tell_queue_size(void *context, const char *client, uint64_t events)
{
	(void)context;
	printf("%s queue %llu\n", client, (unsigned long long)events);
}

static void tell_duration(void *context, const char *client, double seconds)
{
	(void)context;
	printf("%s duration %g\n", client, seconds);
}

static void tell_error(void *context, const char *client, const char *cause)
{
	(void)context;
	printf("%s error %s\n", client, cause);
}

static void tell_dropped(void *context, const char *client, uint64_t events)
{
	(void)context;
	printf("%s dropped %llu\n", client, (unsigned long long)events);
}

static void on_finished(void *context)
{
	loop_stop(((struct driver *)context)->loop);
}

static void on_input(void *context)
{
	struct driver *driver = context;
	ssize_t length = read(STDIN_FILENO, driver->line + driver->length, sizeof driver->line - driver->length);
	char *end;

	if (length <= 0) {
		loop_watch_stop(driver->watch);
		driver->watch = NULL;
		report_sink_finish(driver->sink, setting("DRIVER_GRACE_MS", 25000) * NS_PER_MS, on_finished, driver);
		return;
	}
	driver->length += (size_t)length;
	while ((end = memchr(driver->line, '\n', driver->length)) != NULL) {
		const size_t used = (size_t)(end - driver->line) + 1;

		report_sink_submit(driver->sink, slice_from(driver->line, used - 1));
		driver->length -= used;
		memmove(driver->line, driver->line + used, driver->length);
	}
}

static struct report_client *make_client(struct report_transport *transport, char **arguments, int count,
                                         struct error *err)
{
	if (count == 2 && strcmp(arguments[0], "http") == 0)
		return http_push_create(transport, &(struct http_push_options){ .url = slice_of(arguments[1]) }, err);
	if (count == 5 && strcmp(arguments[0], "s3") == 0)
		return s3_put_create(
			transport,
			&(struct s3_put_options){ .endpoint = slice_of(arguments[1]),
		                                  .bucket = slice_of(arguments[2]),
		                                  .region = slice_of(arguments[3]),
		                                  .layout = { REPORT_KEY_BILLING, slice_of(arguments[4]) } },
			err);
	if (count == 4 && strcmp(arguments[0], "azure") == 0)
		return azure_blob_put_create(transport,
		                             &(struct azure_blob_put_options){
						     .endpoint = slice_of(arguments[1]),
						     .container = slice_of(arguments[2]),
						     .layout = { REPORT_KEY_SCALING_EVENTS, slice_of(arguments[3]) } },
		                             err);
	error_set(err, ERROR_SYNTAX, "wrong arguments");
	return NULL;
}

static int64_t wall_ns(void *context)
{
	(void)context;
	return clock_wall_ns();
}

/* False with *err when something could not be made. */
static bool run(struct driver *driver, struct report_transport *transport, struct log_sink *log, char **arguments,
                int count, struct error *err)
{
	const struct report_sink_options options = {
		.sending = getenv("DRIVER_TICKS") != NULL ? REPORT_SEND_AT_TICKS : REPORT_SEND_BATCHES,
		.metrics = { driver, tell_queue_size, tell_duration, tell_error, tell_dropped },
		.logger = { .sink = log, .name = "driver", .context_json = "" },
	};
	struct report_sink_client client = {
		.client = make_client(transport, arguments, count, err),
		.push_every_ns = setting("DRIVER_EVERY_MS", 200) * NS_PER_MS,
		.push_timeout_ns = setting("DRIVER_TIMEOUT_MS", 5000) * NS_PER_MS,
		.max_batch_events = setting("DRIVER_BATCH", 10),
	};

	if (client.client == NULL)
		return false;
	driver->sink = report_sink_create(driver->loop, &options, &client, 1, err);
	if (driver->sink == NULL)
		return false;
	driver->watch = loop_watch_descriptor(driver->loop, STDIN_FILENO, SOCKET_READ, on_input, driver, err);
	return driver->watch != NULL && loop_run(driver->loop, err);
}

int main(int argc, char **argv)
{
	static struct driver driver;
	struct report_environment environment = report_environment_of_process();
	struct report_transport *transport;
	struct log_sink *log;
	struct error err;
	bool done = false;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	driver.loop = loop_epoll_create(&err);
	log = log_sink_create(STDERR_FILENO, LOG_FORMAT_JSON, LOG_DEBUG, 1 << 20, wall_ns, NULL, &err);
	if (driver.loop == NULL || log == NULL)
		return 1;
	transport = report_transport_create(driver.loop, &environment, &err);
	if (transport != NULL)
		done = run(&driver, transport, log, argv + 1, argc - 1, &err);
	if (!done)
		fprintf(stderr, "report_driver: %s\n", err.text);
	report_sink_destroy(driver.sink);
	report_transport_destroy(transport);
	log_sink_destroy(log, 1000);
	loop_destroy(driver.loop);
	return done ? 0 : 1;
}
