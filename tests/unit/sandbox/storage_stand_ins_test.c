/*
 * The reservation controller, the volume provisioner and the watch over capacities, each on a store of its own.
 */
#include "scene.h"

#include "sandbox/capacity_watch.h"
#include "sandbox/reservation_controller.h"
#include "sandbox/volume_provisioner.h"
#include "storage_scene.h"

#define ASKED(name, type, size) \
	"{\"CapacityRequest\":{\"Name\":\"" name "\",\"StorageClass\":\"" type "\",\"Size\":" size "}}"
#define HELD(name, type, size, capacities)                                                         \
	"{\"CapacityRequest\":{\"Name\":\"" name "\",\"StorageClass\":\"" type "\",\"Size\":" size \
	"},\"Reservations\":[" capacities "]}"
#define GIB_TEXT "1073741824"

static const long long GIB = 1LL << 30;

static struct reservation_controller *start_controller(struct storage_scene *scene, bool parallel)
{
	struct error err;
	struct reservation_controller *controller = reservation_controller_create(
		scene->loop,
		&(struct reservation_controller_options){ .store = scene->store, .speed = 1, .parallel = parallel },
		&err);

	assert_non_null(controller);
	return controller;
}

/* ---- the controller ---- */

static void a_requested_reservation_is_answered_with_nodes_and_capacities(void **state)
{
	(void)state;
	struct reservation_controller *controller;
	struct storage_scene scene;

	storage_scene_open(&scene);
	storage_scene_capacity(&scene, "small", 0, "HDD", GIB / 2);
	storage_scene_capacity(&scene, "large", 1, "HDD", 2 * GIB);
	controller = start_controller(&scene, false);
	storage_scene_reservation(&scene, "web", "REQUESTED", ASKED("data", "HDD", GIB_TEXT));
	scene_advance(scene.loop, RESERVATION_REACTION_MS - SCENE_STEP_MS);
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-web", "/spec/Status", "REQUESTED");
	scene_advance(scene.loop, 2 * SCENE_STEP_MS);
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-web", "/spec/Status", "RESERVED");
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-web", "/spec/NodeRequests/Reserved/0",
	              scene.node_ids[1]);
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-web", "/spec/NodeRequests/Reserved/1", "");
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-web", "/spec/ReservationRequests/0/Reservations/0",
	              "large");
	assert_int_equal(reservation_controller_counters(controller).reserved, 1);
	reservation_controller_destroy(controller);
	storage_scene_close(&scene);
}

static void what_doesnt_fit_is_rejected_and_the_rest_stays_as_it_is(void **state)
{
	(void)state;
	struct reservation_controller *controller;
	struct storage_scene scene;

	storage_scene_open(&scene);
	storage_scene_capacity(&scene, "small", 0, "HDD", GIB / 2);
	controller = start_controller(&scene, false);
	storage_scene_reservation(&scene, "web", "REQUESTED", ASKED("data", "HDD", GIB_TEXT));
	storage_scene_reservation(&scene, "old", "CANCELLED", ASKED("data", "HDD", "1"));
	scene_advance(scene.loop, 2 * RESERVATION_REACTION_MS);
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-web", "/spec/Status", "REJECTED");
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-web", "/spec/NodeRequests/Requested/1",
	              scene.node_ids[1]);
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-old", "/spec/Status", "CANCELLED");
	assert_int_equal(reservation_controller_counters(controller).rejected, 1);
	reservation_controller_destroy(controller);
	storage_scene_close(&scene);
}

static void one_that_came_before_the_controller_is_answered(void **state)
{
	(void)state;
	struct reservation_controller *controller;
	struct storage_scene scene;

	storage_scene_open(&scene);
	storage_scene_capacity(&scene, "large", 1, "HDD", 2 * GIB);
	storage_scene_reservation(&scene, "web", "REQUESTED", ASKED("data", "HDD", GIB_TEXT));
	controller = start_controller(&scene, false);
	scene_advance(scene.loop, 2 * RESERVATION_REACTION_MS);
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-web", "/spec/Status", "RESERVED");
	reservation_controller_destroy(controller);
	storage_scene_close(&scene);
}

static void in_sequential_mode_logical_volumes_wait_for_each_other(void **state)
{
	(void)state;
	struct reservation_controller *controller;
	struct storage_scene scene;
	struct error err;

	storage_scene_open(&scene);
	storage_scene_capacity(&scene, "group", 0, "HDDLVG", 100 * GIB);
	controller = start_controller(&scene, false);
	storage_scene_reservation(&scene, "first", "RESERVED", HELD("a", "HDDLVG", GIB_TEXT, "\"group\""));
	storage_scene_reservation(&scene, "second", "REQUESTED", ASKED("b", "HDDLVG", GIB_TEXT));
	scene_advance(scene.loop, RESERVATION_REACTION_MS + RESERVATION_FAST_DELAY_MS + 100);
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-second", "/spec/Status", "REQUESTED");
	assert_int_equal(reservation_controller_counters(controller).waits, 2);
	assert_true(storage_remove(scene.store, RESOURCE_RESERVATIONS, slice_from(NULL, 0), SLICE("shop-first"), &err));
	scene_advance(scene.loop, RESERVATION_FAST_DELAY_MS);
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-second", "/spec/Status", "RESERVED");
	reservation_controller_destroy(controller);
	storage_scene_close(&scene);
}

static void each_minute_reservations_of_pods_that_run_or_are_gone_are_swept(void **state)
{
	(void)state;
	struct reservation_controller *controller;
	struct storage_scene scene;
	struct object_edit edit;
	struct error err;

	storage_scene_open(&scene);
	controller = start_controller(&scene, false);
	storage_scene_pod(&scene, "waits", NULL);
	storage_scene_pod(&scene, "runs", NULL);
	assert_true(object_edit_begin(
		&edit, object_store_find(scene.store, resource_kind(RESOURCE_PODS), SLICE("shop"), SLICE("runs")),
		&err));
	assert_true(json_tree_set_text(&edit.arena, json_tree_find(edit.root, "/status"), SLICE("phase"),
	                               SLICE("Running")));
	assert_true(object_edit_commit(&edit, scene.store, &err));
	object_edit_end(&edit);
	storage_scene_reservation(&scene, "waits", "REJECTED", ASKED("a", "HDD", "1"));
	storage_scene_reservation(&scene, "runs", "RESERVED", ASKED("a", "HDD", "1"));
	storage_scene_reservation(&scene, "gone", "RESERVED", ASKED("a", "HDD", "1"));
	scene_advance(scene.loop, RESERVATION_SWEEP_MS + 100);
	assert_true(storage_scene_exists(&scene, RESOURCE_RESERVATIONS, "", "shop-waits"));
	assert_false(storage_scene_exists(&scene, RESOURCE_RESERVATIONS, "", "shop-runs"));
	assert_false(storage_scene_exists(&scene, RESOURCE_RESERVATIONS, "", "shop-gone"));
	assert_int_equal(reservation_controller_counters(controller).swept, 2);
	reservation_controller_destroy(controller);
	storage_scene_close(&scene);
}

/* ---- volumes ---- */

static bool make(struct storage_scene *scene, const char *claim, unsigned node, struct error *err)
{
	struct stored_object *object =
		object_store_find(scene->store, resource_kind(RESOURCE_CLAIMS), SLICE("shop"), slice_of(claim));

	assert_non_null(object);
	return volume_create(scene->store, object, slice_of(scene->node_ids[node]), err);
}

/* Of the only volume there is. */
static void expect_volume(struct storage_scene *scene, const char *type, const char *location, const char *size)
{
	const struct stored_object *volume;
	char name[80];

	assert_int_equal(object_store_count(scene->store, resource_kind(RESOURCE_VOLUMES)), 1);
	volume = object_store_at(scene->store, resource_kind(RESOURCE_VOLUMES), 0);
	(void)snprintf(name, sizeof name, "%.*s", SLICE_ARGS(volume->name));
	assert_member(scene, RESOURCE_VOLUMES, "shop", name, "/spec/LocationType", type);
	assert_member(scene, RESOURCE_VOLUMES, "shop", name, "/spec/Location", location);
	assert_member(scene, RESOURCE_VOLUMES, "shop", name, "/spec/Size", size);
}

static void a_whole_disk_is_used_up_by_its_volume(void **state)
{
	(void)state;
	struct storage_scene scene;
	struct error err;

	storage_scene_open(&scene);
	storage_scene_capacity(&scene, "disk", 1, "HDD", 2 * GIB + 5);
	storage_scene_claim(&scene, "data", "1Gi", "node-b");
	storage_scene_reservation(&scene, "web", "RESERVED",
	                          HELD("data", "HDD", GIB_TEXT, "\"disk\"") "," HELD("more", "HDD", "1", "\"x\""));
	assert_true(make(&scene, "data", 1, &err));
	expect_volume(&scene, "DRIVE", "of-disk", "2147483648");
	assert_member(&scene, RESOURCE_CAPACITIES, "", "disk", "/spec/Size", "0");
	/* The request is fulfilled, the other stays. */
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-web", "/spec/ReservationRequests/0/CapacityRequest/Name",
	              "more");
	assert_member(&scene, RESOURCE_RESERVATIONS, "", "shop-web", "/spec/ReservationRequests/1/CapacityRequest/Name",
	              "");
	storage_scene_close(&scene);
}

static void a_disk_becomes_a_group_for_its_first_logical_volume(void **state)
{
	(void)state;
	struct storage_scene scene;
	struct error err;

	storage_scene_open(&scene);
	/* 1 GiB and 3 bytes: the last extent goes for the group's own data. */
	storage_scene_capacity(&scene, "disk", 0, "HDD", GIB + 3);
	storage_scene_claim(&scene, "data", "5Mi", "node-a");
	storage_scene_reservation(&scene, "web", "RESERVED", HELD("data", "HDDLVG", "5242880", "\"disk\""));
	assert_true(make(&scene, "data", 0, &err));
	expect_volume(&scene, "LVM", "lvg-of-disk", "8388608");
	assert_member(&scene, RESOURCE_CAPACITIES, "", "disk", "/spec/storageClass", "HDDLVG");
	assert_member(&scene, RESOURCE_CAPACITIES, "", "disk", "/spec/Location", "lvg-of-disk");
	assert_member(&scene, RESOURCE_CAPACITIES, "", "disk", "/spec/Size", "1061158912"); /* 1 GiB - 4 MiB - 8 MiB */
	assert_member(&scene, RESOURCE_VOLUME_GROUPS, "", "lvg-of-disk", "/spec/Locations/0", "of-disk");
	/* With its last request the reservation goes. */
	assert_false(storage_scene_exists(&scene, RESOURCE_RESERVATIONS, "", "shop-web"));
	storage_scene_close(&scene);
}

static void a_rest_of_a_mebibyte_has_room_for_the_groups_data(void **state)
{
	(void)state;
	struct storage_scene scene;
	struct error err;

	storage_scene_open(&scene);
	storage_scene_capacity(&scene, "disk", 0, "HDD", GIB + (1 << 20));
	storage_scene_claim(&scene, "data", "4Mi", "node-a");
	storage_scene_reservation(&scene, "web", "RESERVED", HELD("data", "HDDLVG", "4194304", "\"disk\""));
	assert_true(make(&scene, "data", 0, &err));
	assert_member(&scene, RESOURCE_CAPACITIES, "", "disk", "/spec/Size", "1069547520"); /* 1 GiB - 4 MiB */
	storage_scene_close(&scene);
}

static void without_a_reservation_on_the_node_there_is_no_volume(void **state)
{
	(void)state;
	struct storage_scene scene;
	struct error err;

	storage_scene_open(&scene);
	storage_scene_capacity(&scene, "disk", 0, "HDD", 2 * GIB);
	storage_scene_claim(&scene, "data", "1Gi", "node-b");
	assert_false(make(&scene, "data", 0, &err));
	assert_int_equal(err.code, ERROR_REFUSED);
	assert_true(slice_starts_with(slice_of(err.text), SLICE("NotFound")));
	storage_scene_reservation(&scene, "asked", "REQUESTED", ASKED("data", "HDD", GIB_TEXT));
	assert_false(make(&scene, "data", 0, &err));
	assert_int_equal(err.code, ERROR_REFUSED);
	storage_scene_reservation(&scene, "web", "RESERVED", HELD("data", "HDD", GIB_TEXT, "\"disk\""));
	assert_false(make(&scene, "data", 1, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_true(slice_starts_with(slice_of(err.text), SLICE("ResourceExhausted")));
	assert_true(storage_scene_exists(&scene, RESOURCE_RESERVATIONS, "", "shop-web"));
	assert_int_equal(object_store_count(scene.store, resource_kind(RESOURCE_VOLUMES)), 0);
	storage_scene_close(&scene);
}

static void a_second_call_answers_with_the_volume_that_is_there(void **state)
{
	(void)state;
	struct storage_scene scene;
	struct error err;

	storage_scene_open(&scene);
	storage_scene_capacity(&scene, "disk", 0, "HDD", 2 * GIB);
	storage_scene_capacity(&scene, "other", 0, "HDD", 2 * GIB);
	storage_scene_claim(&scene, "data", "1Gi", "node-a");
	storage_scene_reservation(&scene, "web", "RESERVED", HELD("data", "HDD", GIB_TEXT, "\"disk\""));
	assert_true(make(&scene, "data", 0, &err));
	assert_true(make(&scene, "data", 0, &err));
	storage_scene_reservation(&scene, "web", "RESERVED", HELD("data", "HDD", GIB_TEXT, "\"other\""));
	assert_true(make(&scene, "data", 0, &err));
	assert_false(storage_scene_exists(&scene, RESOURCE_RESERVATIONS, "", "shop-web"));
	assert_member(&scene, RESOURCE_CAPACITIES, "", "other", "/spec/Size", "2147483648");
	expect_volume(&scene, "DRIVE", "of-disk", "2147483648");
	storage_scene_close(&scene);
}

static char refusal[256];

static void on_refused(void *context, struct slice name_space, struct slice claim, const char *reason)
{
	(void)context;
	(void)snprintf(refusal, sizeof refusal, "%.*s/%.*s: %s", SLICE_ARGS(name_space), SLICE_ARGS(claim), reason);
}

static void claims_with_a_node_are_bound_and_others_lose_it(void **state)
{
	(void)state;
	static const struct provisioner_handler HANDLER = { .on_refused = on_refused };
	struct volume_provisioner *provisioner;
	struct storage_scene scene;
	struct error err;

	storage_scene_open(&scene);
	storage_scene_capacity(&scene, "disk", 0, "HDD", 2 * GIB);
	storage_scene_reservation(&scene, "web", "RESERVED", HELD("good", "HDD", GIB_TEXT, "\"disk\""));
	/* It came before the provisioner did. */
	storage_scene_claim(&scene, "good", "1Gi", "node-a");
	provisioner = volume_provisioner_create(scene.loop, scene.store, 1, &HANDLER, NULL, &err);
	assert_non_null(provisioner);
	storage_scene_claim(&scene, "bad", "1Gi", "node-a");
	storage_scene_claim(&scene, "idle", "1Gi", NULL);
	scene_advance(scene.loop, 4 * PROVISIONER_WORK_MS);
	assert_member(&scene, RESOURCE_CLAIMS, "shop", "good", "/status/phase", "Bound");
	assert_member(&scene, RESOURCE_CLAIMS, "shop", "bad", "/status/phase", "Pending");
	assert_member(&scene, RESOURCE_CLAIMS, "shop", "bad",
	              "/metadata/annotations/volume.kubernetes.io~1selected-node", "");
	assert_member(&scene, RESOURCE_CLAIMS, "shop", "idle", "/status/phase", "Pending");
	assert_string_equal(refusal, "shop/bad: NotFound: no reservation for claim bad");
	assert_int_equal(volume_provisioner_counters(provisioner).created, 1);
	assert_int_equal(volume_provisioner_counters(provisioner).refused, 1);
	volume_provisioner_destroy(provisioner);
	storage_scene_close(&scene);
}

/* ---- the watch ---- */

static void expect_promised_twice(void (*plant)(struct storage_scene *scene), unsigned expected)
{
	struct capacity_watch *watch;
	struct storage_scene scene;
	struct error err;

	storage_scene_open(&scene);
	storage_scene_capacity(&scene, "disk", 0, "HDD", 10 * GIB);
	storage_scene_capacity(&scene, "group", 0, "HDDLVG", 2 * GIB);
	watch = capacity_watch_create(scene.store, &err);
	assert_non_null(watch);
	plant(&scene);
	assert_int_equal(capacity_watch_promised_twice(watch), expected);
	assert_int_equal(capacity_watch_first(watch)[0] != '\0', expected > 0);
	capacity_watch_destroy(watch);
	storage_scene_close(&scene);
}

static void volume(struct storage_scene *scene, const char *name, const char *location, const char *type,
                   long long bytes)
{
	storage_scene_add(
		scene,
		"{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"Volume\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
		"\"shop\"},\"spec\":{\"Location\":\"%s\",\"LocationType\":\"%s\",\"Size\":%lld}}",
		name, location, type, bytes);
}

static void share_a_group(struct storage_scene *scene)
{
	storage_scene_reservation(scene, "a", "RESERVED", HELD("a", "HDDLVG", GIB_TEXT, "\"group\""));
	storage_scene_reservation(scene, "b", "RESERVED", HELD("b", "HDDLVG", GIB_TEXT, "\"group\""));
	storage_scene_reservation(scene, "c", "RESERVED", HELD("c", "HDD", GIB_TEXT, "\"disk\""));
	storage_scene_reservation(scene, "d", "REJECTED", HELD("d", "HDD", GIB_TEXT, "\"disk\""));
	volume(scene, "v", "of-group", "LVM", GIB);
	volume(scene, "w", "of-group", "LVM", GIB);
	volume(scene, "x", "of-disk", "DRIVE", 10 * GIB);
}

static void overfill_a_group(struct storage_scene *scene)
{
	storage_scene_reservation(scene, "a", "RESERVED", HELD("a", "HDDLVG", GIB_TEXT, "\"group\""));
	storage_scene_reservation(scene, "b", "RESERVED", HELD("b", "HDDLVG", "1073741825", "\"group\""));
}

static void promise_a_disk_to_two(struct storage_scene *scene)
{
	storage_scene_reservation(scene, "a", "RESERVED", HELD("a", "HDD", GIB_TEXT, "\"disk\""));
	storage_scene_reservation(scene, "b", "RESERVED", HELD("b", "HDDLVG", GIB_TEXT, "\"disk\""));
}

static void promise_a_disk_to_two_of_one_pod(struct storage_scene *scene)
{
	storage_scene_reservation(scene, "a", "RESERVED",
	                          HELD("a", "HDD", "1", "\"disk\"") "," HELD("b", "HDD", "1", "\"disk\""));
}

static void two_volumes_on_a_disk(struct storage_scene *scene)
{
	volume(scene, "v", "of-disk", "DRIVE", GIB);
	volume(scene, "w", "of-disk", "DRIVE", GIB);
}

static void volumes_beyond_a_group(struct storage_scene *scene)
{
	volume(scene, "v", "of-group", "LVM", GIB);
	volume(scene, "w", "of-group", "LVM", GIB + 1);
}

static void whatever_is_promised_twice_is_counted(void **state)
{
	(void)state;
	expect_promised_twice(share_a_group, 0);
	expect_promised_twice(overfill_a_group, 1);
	expect_promised_twice(promise_a_disk_to_two, 1);
	expect_promised_twice(promise_a_disk_to_two_of_one_pod, 1);
	expect_promised_twice(two_volumes_on_a_disk, 1);
	expect_promised_twice(volumes_beyond_a_group, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_requested_reservation_is_answered_with_nodes_and_capacities),
		cmocka_unit_test(what_doesnt_fit_is_rejected_and_the_rest_stays_as_it_is),
		cmocka_unit_test(one_that_came_before_the_controller_is_answered),
		cmocka_unit_test(in_sequential_mode_logical_volumes_wait_for_each_other),
		cmocka_unit_test(each_minute_reservations_of_pods_that_run_or_are_gone_are_swept),
		cmocka_unit_test(a_whole_disk_is_used_up_by_its_volume),
		cmocka_unit_test(a_disk_becomes_a_group_for_its_first_logical_volume),
		cmocka_unit_test(a_rest_of_a_mebibyte_has_room_for_the_groups_data),
		cmocka_unit_test(without_a_reservation_on_the_node_there_is_no_volume),
		cmocka_unit_test(a_second_call_answers_with_the_volume_that_is_there),
		cmocka_unit_test(claims_with_a_node_are_bound_and_others_lose_it),
		cmocka_unit_test(whatever_is_promised_twice_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
