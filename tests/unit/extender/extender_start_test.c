/*
 * The extender as a whole, on a loop of the test's.
 */
#include "extender/extender_internal.h"

#include "base/clock.h"
#include "extender/process_limits.h"
#include "net/http_server.h"
#include "tests/unit/kube/kube_fixture.h"

static const char KUBECONFIG[] =
	"{\"current-context\":\"c\",\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"http://127.0.0.1:1\"}}],"
	"\"users\":[{\"name\":\"u\",\"user\":{\"token\":\"t\"}}],"
	"\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}]}";

/* Holds a port. */
static struct http_server *occupy(struct loop *loop, struct address *ret_address)
{
	static const struct http_server_handler HANDLER = { .on_request = NULL };
	struct http_server_options options = { .address = { .bytes = { 127, 0, 0, 1 } } };
	struct error err;
	struct http_server *server = http_server_start(loop, &options, &HANDLER, NULL, &err);

	assert_non_null(server);
	assert_true(http_server_address(server, ret_address));
	return server;
}

static void a_metrics_port_that_is_taken_is_had_as_soon_as_it_is_free(void **state)
{
	struct kube_fixture *fixture = fixture_create();
	struct extender_arguments arguments = { .flags = extender_flags_default(), .node_name = "cp-1" };
	struct extender extender = { .arguments = &arguments, .loop = fixture->loop, .signals = -1 };
	char metrics_address[ADDRESS_TEXT_BYTES], path[128];
	struct http_server *other;
	struct address address;

	(void)state;
	extender.log_sink = fixture->sink;
	fixture_write(fixture, "kubeconfig", slice_of(KUBECONFIG));
	(void)snprintf(path, sizeof path, "%s/kubeconfig", fixture->folder);
	other = occupy(fixture->loop, &address);
	address_print(&address, metrics_address);
	arguments.flags.metrics_address = metrics_address;
	arguments.flags.kubeconfig = path;
	assert_true(extender_start(&extender));
	assert_null(extender.metrics_page);
	test_clock_skip((uint64_t)EXTENDER_METRICS_SWEEP_S * NS_PER_S);
	test_loop_spin(fixture->loop, 5);
	assert_null(extender.metrics_page);
	http_server_destroy(other);
	test_clock_skip((uint64_t)EXTENDER_METRICS_SWEEP_S * NS_PER_S);
	test_loop_spin(fixture->loop, 5);
	assert_non_null(extender.metrics_page);
	assert_false(extender.fatal);
	extender_dismantle(&extender);
	fixture_remove(fixture, "kubeconfig");
	fixture_destroy(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_metrics_port_that_is_taken_is_had_as_soon_as_it_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
