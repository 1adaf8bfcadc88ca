/*
 * What tests of the API server share: objects, and the texts of a real server (tests/data/kube).
 */
#ifndef BALLAST_TESTS_API_FIXTURE_H
#define BALLAST_TESTS_API_FIXTURE_H

#include "plane_fixture.h"

#define POD(name, labels)                                                        \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name \
	"\",\"namespace\":\"kube-system\",\"labels\":" labels "},\"spec\":{}}"
#define RESERVATIONS "/apis/csi-baremetal.dell.com/v1/availablecapacityreservations"

UNUSED_HERE static void put(struct plane_fixture *fixture, const char *json)
{
	struct error err;

	if (!control_plane_put(fixture->plane, slice_of(json), &err))
		fail_msg("%s", err.text);
}

/* The reply must be what a real server said, as a Status with another name. */
UNUSED_HERE static void expect_captured(struct plane_fixture *fixture, const struct reply *reply, int status,
                                        const char *file)
{
	char path[128];
	struct json_node *captured;

	(void)snprintf(path, sizeof path, "data/kube/%s", file);
	captured = read_json(fixture, path);
	expect_status(reply, status);
	if (!json_tree_equal(reply->root, captured))
		fail_msg("not as in %s: %.*s", file, (int)reply->body.length, reply->body.data);
}

/* A VM called as the one in the captures. */
UNUSED_HERE static struct control_plane_vm example(void)
{
	struct control_plane_vm vm = pine();

	vm.name = "example";
	vm.name_space = "default";
	vm.pod_name = NULL;
	return vm;
}

#define EXAMPLE "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines/example"

#endif
