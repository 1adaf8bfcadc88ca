/*
 * The cluster of a run without any agent: what it is made of, and what it does when told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/address.h"
#include "net/loop_epoll.h"
#include "sandbox/cluster.h"

static void on_patched(void *context, unsigned vm, struct cluster_size before, struct cluster_size after)
{
	(void)context;
	(void)vm;
	(void)before;
	(void)after;
	fail_msg("nobody patches");
}

static void on_short_permit(void *context, unsigned vm, struct cluster_size wanted, struct cluster_size permit,
                            bool denied)
{
	(void)context;
	(void)vm;
	(void)wanted;
	(void)permit;
	(void)denied;
	fail_msg("nobody asks");
}

static void on_monitor(void *context, unsigned vm, const char *text)
{
	(void)context;
	(void)vm;
	(void)text;
}

static const struct cluster_handler HANDLER = {
	.on_patched = on_patched,
	.on_short_permit = on_short_permit,
	.on_monitor = on_monitor,
};

struct scene {
	struct loop *loop;
	struct workload *workload;
	struct cluster *cluster;
};

static void scene_prepare(struct scene *scene, unsigned vms, unsigned nodes)
{
	const struct workload_options options = { .seed = 7, .vms = vms, .nodes = nodes, .speed = 4 };
	struct error err;

	scene->loop = loop_epoll_create(&err);
	scene->workload = workload_create(&options, &err);
	scene->cluster = NULL;
	assert_non_null(scene->loop);
	assert_non_null(scene->workload);
}

static void scene_open(struct scene *scene, unsigned vms, unsigned nodes)
{
	struct error err;

	scene_prepare(scene, vms, nodes);
	scene->cluster = cluster_start(scene->loop, scene->workload, &HANDLER, NULL, &err);
	if (scene->cluster == NULL)
		fail_msg("%s", err.text);
}

static void scene_close(struct scene *scene)
{
	cluster_destroy(scene->cluster);
	workload_destroy(scene->workload);
	loop_destroy(scene->loop);
}

/* Whether something listens there: the system answers for a listener that isn't looked at. */
static bool listens(const char *host, uint16_t port)
{
	struct address address;
	struct sockaddr_in target = { .sin_family = AF_INET, .sin_port = htons(port) };
	int connection = socket(AF_INET, SOCK_STREAM, 0);
	bool connected;

	assert_true(connection >= 0);
	assert_true(address_parse(slice_of(host), port, &address));
	memcpy(&target.sin_addr, address.bytes, 4);
	connected = connect(connection, (const struct sockaddr *)&target, sizeof target) == 0;
	close(connection);
	return connected;
}

/* The address that many places behind the API's. */
static void print_place(const struct cluster *cluster, unsigned place, char text[ADDRESS_TEXT_BYTES])
{
	struct address address;

	assert_true(address_parse(slice_of(cluster_agent_place(cluster, 0).api_address), 0, &address));
	address.bytes[3] = (uint8_t)(address.bytes[3] + place);
	address_print_host(&address, false, text);
}

static void every_vm_begins_as_the_workload_states(void **state)
{
	(void)state;
	struct scene scene;

	scene_open(&scene, 6, 3);
	for (unsigned i = 0; i < 6; i++) {
		const struct workload_vm *planned = &scene.workload->vms[i];
		struct cluster_vm_state vm = cluster_vm_state(scene.cluster, i);

		assert_string_equal(cluster_vm_name(scene.cluster, i), planned->name);
		assert_true(cluster_size_equal(vm.size, cluster_units(planned->initial)));
		assert_true(cluster_size_equal(vm.plugged, cluster_units(planned->plugged)));
		assert_true(cluster_size_equal(vm.permitted, cluster_units(planned->initial)));
		assert_int_equal(vm.monitor, GUEST_MONITOR_WAITING);
		assert_int_equal(vm.patches, 0);
	}
	scene_close(&scene);
}

static void vms_to_be_ignored_stand_beside_and_on_other_nodes(void **state)
{
	(void)state;
	static const struct {
		unsigned vms, nodes, agents, ignored;
	} rows[] = {
		{ 6, 3, 2, 3 }, { 6, 2, 2, 1 }, { 6, 1, 1, 1 }, { 5, 2, 1, 3 }, { 1, 1, 1, 1 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct scene scene;

		scene_open(&scene, rows[i].vms, rows[i].nodes);
		assert_int_equal(cluster_agent_count(scene.cluster), rows[i].agents);
		assert_int_equal(cluster_vm_count(scene.cluster), rows[i].vms + rows[i].ignored);
		assert_string_equal(cluster_vm_name(scene.cluster, rows[i].vms), "other-1");
		assert_true(cluster_size_equal(cluster_vm_state(scene.cluster, rows[i].vms).size, cluster_units(2)));
		scene_close(&scene);
	}
}

static void agents_get_places_of_their_own(void **state)
{
	(void)state;
	struct scene scene;
	struct agent_place first, second;

	scene_open(&scene, 6, 3);
	first = cluster_agent_place(scene.cluster, 0);
	second = cluster_agent_place(scene.cluster, 1);
	assert_string_equal(first.node, "node-a");
	assert_string_equal(second.node, "node-b");
	assert_string_not_equal(first.address, second.address);
	assert_string_equal(first.api_address, second.api_address);
	assert_true(listens(first.api_address, AGENT_SETUP_API_PORT));
	/* Free for the agent's own. */
	assert_false(listens(first.address, 9100));
	assert_true(strlen(cluster_token(scene.cluster)) >= 32);
	assert_true(slice_starts_with(cluster_ca_pem(scene.cluster), SLICE("-----BEGIN CERTIFICATE-----")));
	scene_close(&scene);
}

static void two_clusters_at_once_keep_apart(void **state)
{
	(void)state;
	struct scene a, b;

	scene_open(&a, 6, 3);
	scene_open(&b, 6, 3);
	assert_string_not_equal(cluster_agent_place(a.cluster, 0).api_address,
	                        cluster_agent_place(b.cluster, 0).api_address);
	assert_string_not_equal(cluster_token(a.cluster), cluster_token(b.cluster));
	scene_close(&a);
	scene_close(&b);
}

static void peers_go_away_and_come_back(void **state)
{
	(void)state;
	const struct {
		struct outage outage;
		unsigned place;
		uint16_t port;
	} rows[] = {
		{ { .peer = OUTAGE_API }, 0, AGENT_SETUP_API_PORT },
		{ { .peer = OUTAGE_PLUGIN }, 1, AGENT_SETUP_PLUGIN_PORT },
		/* Places 2 and 3 are the extender's and the event receiver's, 4 and 5 are the agents'. */
		{ { .peer = OUTAGE_MONITOR, .vm = 1 }, 7, AGENT_SETUP_MONITOR_PORT },
	};
	char first_guest[ADDRESS_TEXT_BYTES];
	struct scene scene;
	struct error err;

	scene_open(&scene, 2, 1);
	print_place(scene.cluster, 6, first_guest);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char host[ADDRESS_TEXT_BYTES];

		print_place(scene.cluster, rows[i].place, host);
		assert_true(listens(host, rows[i].port));
		assert_true(cluster_set_away(scene.cluster, &rows[i].outage, true, &err));
		assert_false(listens(host, rows[i].port));
		/* Another VM's monitor and the pages stay. */
		assert_true(listens(first_guest, AGENT_SETUP_MONITOR_PORT));
		assert_true(listens(first_guest, AGENT_SETUP_SYSTEM_PORT));
		assert_true(cluster_set_away(scene.cluster, &rows[i].outage, false, &err));
		assert_true(listens(host, rows[i].port));
	}
	scene_close(&scene);
}

static void on_time_up(void *context)
{
	loop_stop(context);
}

static void a_half_scaled_vm_is_completed_by_the_controller(void **state)
{
	(void)state;
	enum { DEADLINE_S = 10 };
	struct scene scene;
	struct loop_timer deadline = { .callback = NULL };
	struct error err;

	scene_open(&scene, 4, 1);
	assert_true(cluster_size_equal(cluster_vm_state(scene.cluster, 3).plugged, cluster_units(1)));
	loop_timer_start(scene.loop, &deadline, (uint64_t)DEADLINE_S * NS_PER_S, on_time_up, scene.loop);
	while (loop_timer_running(&deadline) &&
	       !cluster_size_equal(cluster_vm_state(scene.cluster, 3).plugged, cluster_units(3)))
		assert_true(loop_turn(scene.loop, &err));
	assert_true(loop_timer_running(&deadline));
	loop_timer_stop(scene.loop, &deadline);
	scene_close(&scene);
}

static void running_out_of_memory_at_any_point_is_an_error(void **state)
{
	(void)state;
	unsigned long failures = 0;
	bool done = false;

	/* Each of the first allocations, then fewer and fewer of them: there are thousands. */
	for (unsigned long n = 1; !done; n += 1 + n / 24) {
		struct scene scene;
		struct error err;

		scene_prepare(&scene, 6, 3);
		memory_fail_at(n);
		scene.cluster = cluster_start(scene.loop, scene.workload, &HANDLER, NULL, &err);
		done = memory_allocation_count() < n;
		memory_fail_at(0);
		if (scene.cluster == NULL)
			failures++;
		scene_close(&scene);
	}
	assert_true(failures > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_vm_begins_as_the_workload_states),
		cmocka_unit_test(vms_to_be_ignored_stand_beside_and_on_other_nodes),
		cmocka_unit_test(agents_get_places_of_their_own),
		cmocka_unit_test(two_clusters_at_once_keep_apart),
		cmocka_unit_test(peers_go_away_and_come_back),
		cmocka_unit_test(a_half_scaled_vm_is_completed_by_the_controller),
		cmocka_unit_test(running_out_of_memory_at_any_point_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
