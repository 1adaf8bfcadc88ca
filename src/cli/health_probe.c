/*
 * `health_probe`: asks an extender whether it is ready, as the reference image's program of that name does (spec extender
 * Y8, 21): same flags and exit statuses, over HTTP. Only by that name, not as a subcommand.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/option_rows.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "extender/config.h"
#include "net/http_client.h"
#include "net/loop_epoll.h"

enum {
	PROBE_READY = 0,
	PROBE_USAGE = 1,
	PROBE_NO_CONNECTION = 2,
	PROBE_FAILED = 3,
	PROBE_NOT_READY = 4,
	ANSWER_BYTES = 64 * 1024,
	ALL_IPV6_BYTES = 16,
	FLAG_COUNT = 4,
};

struct probe_flags {
	const char *address, *service;
	int64_t connect_ns, call_ns;
};

struct probe {
	struct loop *loop;
	int status;
	bool connected;
};

static void on_head(void *context, const struct http_response *response)
{
	struct probe *probe = context;

	(void)response;
	probe->connected = true;
}

static void on_done(void *context, const struct http_response *response, const struct error *err)
{
	struct probe *probe = context;
	const char *root = err != NULL ? error_root(err) : "";

	if (err == NULL && response->status == 200) {
		probe->status = PROBE_READY;
	} else if (err == NULL && response->status == 503) {
		(void)fputs("not ready: ", stderr);
		terminal_print_clean(stderr, slice_trim(response->body));
		(void)fputc('\n', stderr);
		probe->status = PROBE_NOT_READY;
	} else if (err == NULL) {
		(void)fprintf(stderr, "error: health rpc failed: status %d\n", response->status);
		probe->status = PROBE_FAILED;
	} else {
		/* What ends before a head came, and isn't a request that was sent, is no connection. */
		bool refused = !probe->connected && err->code == ERROR_SYSTEM;

		(void)fprintf(stderr, "error: %s: %s\n", refused ? "failed to connect" : "health rpc failed", root);
		probe->status = refused ? PROBE_NO_CONNECTION : PROBE_FAILED;
	}
	loop_stop(probe->loop);
}

/* An address to listen on all interfaces is asked on the loopback one. */
static struct address to_ask(struct address address)
{
	static const uint8_t ANY[ALL_IPV6_BYTES];
	struct address local = { .bytes = { 127, 0, 0, 1 }, .port = address.port };

	return memcmp(address.bytes, ANY, address.is_ipv6 ? sizeof ANY : 4) == 0 ? local : address;
}

static bool ask(struct probe *probe, const struct address *address, uint64_t connect_ns, uint64_t call_ns,
                struct error *err)
{
	static const struct http_handler HANDLER = { .on_head = on_head, .on_done = on_done };
	struct http_client *client = http_client_create(probe->loop, err);
	struct http_request request = {
		.origin = { .port = address->port },
		.method = SLICE("GET"),
		.target = SLICE("/readyz"),
		.connect_timeout_ns = connect_ns,
		.first_byte_timeout_ns = call_ns,
		.idle_timeout_ns = call_ns,
		.total_timeout_ns = connect_ns + call_ns,
		.max_body_bytes = ANSWER_BYTES,
		.fresh_connection = true,
	};
	bool ok;

	if (client == NULL)
		return false;
	address_print_host(address, false, request.origin.host);
	ok = http_client_send(client, &request, &HANDLER, probe, err) != NULL && loop_run(probe->loop, err);
	http_client_destroy(client);
	return ok;
}

static struct probe_flags flags_default(void)
{
	return (struct probe_flags){ .address = "", .service = "", .connect_ns = NS_PER_S, .call_ns = NS_PER_S };
}

static void fill_table(struct probe_flags *values, struct go_flag table[FLAG_COUNT])
{
	const int64_t most_ns = (int64_t)3600 * NS_PER_S;
	const struct go_flag all[FLAG_COUNT] = {
		{ .name = "addr",
		  .kind = GO_FLAG_TEXT,
		  .help = "health port to ask, `HOST:PORT`; without HOST: of this machine",
		  .text = &values->address },
		{ .name = "connect-timeout",
		  .kind = GO_FLAG_DURATION,
		  .help = "for the connection",
		  .duration_ns = &values->connect_ns,
		  .low = 1,
		  .high = most_ns },
		{ .name = "rpc-timeout",
		  .kind = GO_FLAG_DURATION,
		  .help = "for the answer",
		  .duration_ns = &values->call_ns,
		  .low = 1,
		  .high = most_ns },
		{ .name = "service", .kind = GO_FLAG_TEXT, .help = "without effect", .text = &values->service },
	};

	memcpy(table, all, sizeof all);
}

static void each_flag(option_row_callback *callback, void *context)
{
	struct probe_flags values = flags_default();
	struct go_flag table[FLAG_COUNT];

	fill_table(&values, table);
	option_rows_each_go_flag(table, FLAG_COUNT, callback, context);
}

static int run_probe(int argc, char **argv)
{
	struct probe_flags values = flags_default();
	int ignored = argc;
	struct go_flag flags[FLAG_COUNT];
	struct probe probe = { .status = PROBE_FAILED };
	struct address address;
	struct error err;

	fill_table(&values, flags);
	switch (go_flags_read(flags, FLAG_COUNT, argc, argv, &ignored, &err)) {
	case GO_FLAGS_HELP:
		(void)options_print_help(&command_health_probe);
		return PROBE_READY;
	case GO_FLAGS_VERSION:
		(void)printf("ballast %s\n", BALLAST_VERSION);
		return PROBE_READY;
	case GO_FLAGS_READ:
		if (ignored == argc && values.address[0] != '\0' &&
		    extender_address_parse(slice_of(values.address), &address, &err))
			break;
		if (ignored < argc)
			error_set(&err, ERROR_SYNTAX, "unexpected argument \"%s\"", argv[ignored]);
		else if (values.address[0] == '\0')
			error_set(&err, ERROR_SYNTAX, "-addr not specified");
		/* fallthrough */
	case GO_FLAGS_WRONG:
		(void)fprintf(stderr, "error: %s\n", err.text);
		return PROBE_USAGE;
	}
	address = to_ask(address);
	probe.loop = loop_epoll_create(&err);
	if (probe.loop == NULL || !ask(&probe, &address, (uint64_t)values.connect_ns, (uint64_t)values.call_ns, &err))
		(void)fprintf(stderr, "error: %s\n", err.text);
	if (probe.loop != NULL)
		loop_destroy(probe.loop);
	return probe.status;
}

const struct command command_health_probe = {
	.name = "health_probe",
	.summary = "ask an extender whether it is ready",
	.usage = "-addr=HOST:PORT [FLAG]...",
	.before = "Asks the health port of an extender whether it is ready.\n",
	.each_go_flag = each_flag,
	.after = "Exit status: 0 ready, 1 wrong usage, 2 no connection, 3 no answer, or not in time, 4 not ready.\n",
	.run = run_probe,
};
