#include "sandbox/pod_cluster_objects.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "sandbox/storage_objects.h"

enum { UID_BYTES = 64, DISK_NAME_BYTES = 64, LABEL_BYTES = 128, VOLUMES_BYTES_MAX = 16384 };

#define CSI_LABELS "\"app\":\"csi-baremetal\",\"app.kubernetes.io/name\":\"csi-baremetal\""

/* ---- nodes and classes ---- */

static bool add_node(struct object_store *store, unsigned node, struct arena *arena, struct error *err)
{
	char name[POD_NODE_BYTES];

	pod_node_name(name, node);
	return storage_add(
		store, arena, NULL, err,
		"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\",\"labels\":{\"kubernetes.io/hostname\":\"%s\","
		"\"kubernetes.io/os\":\"linux\"}},\"spec\":{\"podCIDR\":\"10.244.%u.0/24\"},\"status\":{\"capacity\":{\"cpu\":\"32\","
		"\"memory\":\"131072000Ki\",\"pods\":\"110\"},\"allocatable\":{\"cpu\":\"32\",\"memory\":\"131072000Ki\",\"pods\":\"110\"},"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"KubeletReady\",\"message\":\"kubelet is posting ready "
		"status\"}],\"addresses\":[{\"type\":\"Hostname\",\"address\":\"%s\"}],\"nodeInfo\":{\"kubeletVersion\":\"v1.30.3\","
		"\"operatingSystem\":\"linux\",\"architecture\":\"amd64\"}}}",
		name, name, node, name);
}

static bool add_classes(struct object_store *store, struct arena *arena, struct error *err)
{
	for (size_t i = 0; i < STORAGE_TYPE_COUNT; i++) {
		enum storage_type type = (enum storage_type)i;

		if (!storage_add(
			    store, arena, NULL, err,
			    "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"%s\"},"
			    "\"provisioner\":\"" STORAGE_PROVISIONER
			    "\",\"parameters\":{\"fsType\":\"xfs\",\"storageType\":\"%s\"},\"reclaimPolicy\":\"Delete\","
			    "\"allowVolumeExpansion\":true,\"volumeBindingMode\":\"WaitForFirstConsumer\"}",
			    pod_class_name(type), storage_type_name(type)))
			return false;
	}
	return storage_add(
		store, arena, NULL, err,
		"{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"nfs\"},"
		"\"provisioner\":\"nfs.example.com\",\"reclaimPolicy\":\"Delete\",\"volumeBindingMode\":\"Immediate\"}");
}

/* Its ID. */
static bool find_node_id(const struct object_store *store, const char *name, char id[UID_BYTES], struct error *err)
{
	const struct stored_object *node =
		object_store_find(store, resource_kind(RESOURCE_NODES), slice_from(NULL, 0), slice_of(name));
	struct json_node *root;
	struct arena arena;
	bool ok;

	if (node == NULL)
		return error_set(err, ERROR_REFUSED, "there is no node %s", name);
	arena_init(&arena, STORAGE_ARENA_BYTES);
	ok = storage_parse(node, &arena, &root, err);
	if (ok)
		(void)snprintf(id, UID_BYTES, "%.*s", SLICE_ARGS(storage_text(root, "/metadata/uid")));
	arena_destroy(&arena);
	return ok;
}

/* ---- disks ---- */

static void name_disk(char name[DISK_NAME_BYTES], const char *what, size_t index)
{
	(void)snprintf(name, DISK_NAME_BYTES, "%s-%04zu", what, index + 1);
}

/* The kind of disk below a volume group. */
static enum storage_type disk_type(enum storage_type type)
{
	enum storage_type choices[STORAGE_CHOICES_MAX];
	size_t count = storage_type_choices(type, choices);

	return storage_type_is_group(type) && count > 1 ? choices[1] : type;
}

static bool add_disk(struct object_store *store, const struct drive_plan *plan, size_t index, struct arena *arena,
                     struct error *err)
{
	char drive[DISK_NAME_BYTES], capacity[DISK_NAME_BYTES], group[DISK_NAME_BYTES] = "";
	char node[POD_NODE_BYTES], id[UID_BYTES], labels[2 * LABEL_BYTES] = "";
	bool is_group = storage_type_is_group(plan->type);

	name_disk(drive, "drive", index);
	name_disk(capacity, "capacity", index);
	name_disk(group, "lvg", index);
	pod_node_name(node, plan->node);
	if (plan->group[0] != '\0')
		(void)snprintf(labels, LABEL_BYTES, ",\"" STORAGE_LABEL_GROUP "\":\"%s\"", plan->group);
	if (!find_node_id(store, node, id, err) ||
	    !storage_add(
		    store, arena, NULL, err,
		    "{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"Drive\",\"metadata\":{\"name\":\"%s\",\"labels\":{" CSI_LABELS
		    "%s}},\"spec\":{\"UUID\":\"%s\",\"VID\":\"ATA\",\"PID\":\"SAND BOX\",\"SerialNumber\":\"SN%04zu\",\"Health\":\"GOOD\","
		    "\"Type\":\"%s\",\"Size\":%" PRId64
		    ",\"Status\":\"ONLINE\",\"Usage\":\"IN_USE\",\"NodeId\":\"%s\",\"IsClean\":true}}",
		    drive, labels, drive, index, storage_type_name(disk_type(plan->type)), plan->size_bytes, id))
		return false;
	if (is_group &&
	    !storage_add(
		    store, arena, NULL, err,
		    "{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"LogicalVolumeGroup\",\"metadata\":{\"name\":\"%s\",\"labels\":{" CSI_LABELS
		    "}},\"spec\":{\"Name\":\"%s\",\"Node\":\"%s\",\"Locations\":[\"%s\"],\"Size\":%" PRId64
		    ",\"Status\":\"CREATED\",\"Health\":\"GOOD\"}}",
		    group, group, id, drive, plan->size_bytes))
		return false;
	return storage_add(
		store, arena, NULL, err,
		"{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"AvailableCapacity\",\"metadata\":{\"name\":\"%s\",\"labels\":{" CSI_LABELS
		"%s%s}},\"spec\":{\"Location\":\"%s\",\"NodeId\":\"%s\",\"storageClass\":\"%s\",\"Size\":%" PRId64 "}}",
		capacity, labels, plan->tainted ? ",\"drive.csi-baremetal.dell.com/taint\":\"NoSchedule\"" : "",
		is_group ? group : drive, id, storage_type_name(plan->type), plan->size_bytes);
}

/* ---- reservations left behind ---- */

static bool add_leftover(struct object_store *store, const struct pod_workload *workload, const struct pod_plan *pod,
                         struct arena *arena, struct error *err)
{
	char capacity[DISK_NAME_BYTES], node[POD_NODE_BYTES], id[UID_BYTES];
	size_t index = 0;

	while (index + 1 < workload->drive_count && !workload->drives[index].leftover)
		index++;
	name_disk(capacity, "capacity", index);
	pod_node_name(node, workload->drives[index].node);
	return find_node_id(store, node, id, err) &&
	       storage_add(
		       store, arena, NULL, err,
		       "{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"AvailableCapacityReservation\",\"metadata\":{\"name\":\"" POD_NAME_SPACE
		       "-%s\"},\"spec\":{\"Namespace\":\"" POD_NAME_SPACE
		       "\",\"Status\":\"RESERVED\",\"NodeRequests\":{"
		       "\"Requested\":[\"%s\"],\"Reserved\":[\"%s\"]},\"ReservationRequests\":[{\"CapacityRequest\":{\"Name\":\"%s\","
		       "\"StorageClass\":\"HDD\",\"Size\":5368709120,\"StorageGroup\":\"attic\"},\"Reservations\":[\"%s\"]}]}}",
		       pod->name, id, id, pod->volumes[0].claim, capacity);
}

bool pod_objects_plant(struct object_store *store, const struct pod_workload *workload, struct error *err)
{
	bool left = false, ok = true;
	struct arena arena;

	arena_init(&arena, STORAGE_ARENA_BYTES);
	for (unsigned i = 0; ok && i < workload->options.nodes; i++)
		ok = add_node(store, i, &arena, err);
	ok = ok && add_classes(store, &arena, err);
	for (size_t i = 0; ok && i < workload->drive_count; i++)
		ok = add_disk(store, &workload->drives[i], i, &arena, err);
	/* One only: the disk that it is about can't be promised to two. */
	for (unsigned i = 0; ok && !left && i < workload->pod_count; i++) {
		left = workload->pods[i].kind == POD_LEFTOVER;
		ok = !left || add_leftover(store, workload, &workload->pods[i], &arena, err);
	}
	arena_destroy(&arena);
	return ok;
}

/* ---- pods ---- */

static void print_label(const struct pod_volume *volume, char text[LABEL_BYTES])
{
	text[0] = '\0';
	if (volume->group[0] != '\0')
		(void)snprintf(text, LABEL_BYTES, "\"" STORAGE_LABEL_GROUP "\":\"%s\"", volume->group);
}

static bool add_claim(struct object_store *store, const struct pod_volume *volume, int64_t size_bytes,
                      struct arena *arena, struct error *err)
{
	char label[LABEL_BYTES];

	print_label(volume, label);
	return storage_add(
		store, arena, NULL, err,
		"{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"" POD_NAME_SPACE
		"\",\"labels\":{%s}},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"%" PRId64
		"\"}},\"storageClassName\":\"%s\",\"volumeMode\":\"Filesystem\"},\"status\":{\"phase\":\"Pending\"}}",
		volume->claim, label, size_bytes, pod_class_name(volume->type));
}

static void print_volumes(const struct pod_plan *pod, struct buffer *out)
{
	char label[LABEL_BYTES];

	buffer_append_text(out, "{\"name\":\"tmp\",\"emptyDir\":{}}");
	for (unsigned i = 0; i < pod->volume_count; i++) {
		const struct pod_volume *volume = &pod->volumes[i];

		print_label(volume, label);
		if (volume->ephemeral)
			buffer_append_format(
				out,
				",{\"name\":\"data%u\",\"ephemeral\":{\"volumeClaimTemplate\":{\"metadata\":{\"labels\":{%s}},\"spec\":{"
				"\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"%" PRId64
				"\"}},\"storageClassName\":\"%s\",\"volumeMode\":\"Filesystem\"}}}}",
				i, label, volume->size_bytes, pod_class_name(volume->type));
		else
			buffer_append_format(out,
			                     ",{\"name\":\"data%u\",\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}",
			                     i, volume->claim);
	}
}

bool pod_objects_add(struct object_store *store, const struct pod_plan *pod, bool first, struct error *err)
{
	struct buffer volumes;
	struct arena arena;
	bool ok = true;

	arena_init(&arena, STORAGE_ARENA_BYTES);
	buffer_init(&volumes, VOLUMES_BYTES_MAX);
	print_volumes(pod, &volumes);
	/* Claims first, so that the pod's scheduler finds them; also those that are made for it. */
	for (unsigned i = 0; ok && i < pod->volume_count; i++)
		ok = add_claim(store, &pod->volumes[i],
		               first && pod->kind == POD_REBORN ? pod->too_large_size : pod->volumes[i].size_bytes,
		               &arena, err);
	ok = ok && buffer_check(&volumes, "pod", err) &&
	     storage_add(
		     store, &arena, NULL, err,
		     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"" POD_NAME_SPACE
		     "\",\"labels\":{\"app\":\"%s\"}},\"spec\":{\"volumes\":[%.*s],\"containers\":[{\"name\":\"main\",\"image\":\"app:dev\","
		     "\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"}}}],\"restartPolicy\":\"Always\","
		     "\"schedulerName\":\"default-scheduler\"},\"status\":{\"phase\":\"Pending\",\"qosClass\":\"Burstable\"}}",
		     pod->name, pod_kind_name(pod->kind), SLICE_ARGS(buffer_slice(&volumes)));
	buffer_destroy(&volumes);
	arena_destroy(&arena);
	return ok;
}

bool pod_objects_remove(struct object_store *store, const struct pod_plan *pod, struct error *err)
{
	if (!storage_remove(store, RESOURCE_PODS, SLICE(POD_NAME_SPACE), slice_of(pod->name), err))
		return false;
	for (unsigned i = 0; i < pod->volume_count; i++) {
		if (!storage_remove(store, RESOURCE_CLAIMS, SLICE(POD_NAME_SPACE), slice_of(pod->volumes[i].claim),
		                    err))
			return false;
	}
	return true;
}

/* ---- where volumes are ---- */

static bool read_object(const struct object_store *store, enum resource resource, struct slice name_space,
                        struct slice name, struct arena *arena, struct json_node **ret_root, struct error *err)
{
	const struct stored_object *object = object_store_find(store, resource_kind(resource), name_space, name);

	if (object == NULL)
		return error_set(err, ERROR_REFUSED, "there is no %s %.*s", resource_kind(resource)->kind,
		                 SLICE_ARGS(name));
	return storage_parse(object, arena, ret_root, err);
}

/* Whether a disk is what the volume asked for. */
static bool is_right_disk(const struct json_node *drive, const struct pod_volume *volume, const char *id)
{
	enum storage_type type;

	if (!slice_equal_text(storage_text(drive, "/spec/NodeId"), id) ||
	    !slice_equal_text(storage_label(drive, "labels", STORAGE_LABEL_GROUP), volume->group) ||
	    !storage_type_parse(storage_text(drive, "/spec/Type"), &type))
		return false;
	return volume->type == STORAGE_ANY || type == disk_type(volume->type);
}

static bool check_volume(const struct object_store *store, const struct pod_volume *volume, const char *node,
                         struct arena *arena, struct error *err)
{
	struct slice location, none = slice_from(NULL, 0);
	struct json_node *claim, *made, *drive;
	char id[UID_BYTES];

	if (!find_node_id(store, node, id, err) ||
	    !read_object(store, RESOURCE_CLAIMS, SLICE(POD_NAME_SPACE), slice_of(volume->claim), arena, &claim, err) ||
	    !read_object(store, RESOURCE_VOLUMES, SLICE(POD_NAME_SPACE), storage_text(claim, "/spec/volumeName"), arena,
	                 &made, err))
		return false;
	location = storage_text(made, "/spec/Location");
	if (slice_equal_text(storage_text(made, "/spec/LocationType"), "LVM")) {
		struct json_node *group;

		if (!read_object(store, RESOURCE_VOLUME_GROUPS, none, location, arena, &group, err))
			return false;
		location = storage_text(group, "/spec/Locations/0");
	}
	if (!read_object(store, RESOURCE_DRIVES, none, location, arena, &drive, err))
		return false;
	if (!slice_equal_text(storage_text(made, "/spec/NodeId"), id) || !is_right_disk(drive, volume, id))
		return error_set(err, ERROR_INVARIANT,
		                 "the volume of %s is on %.*s, which isn't what it asks for on %s", volume->claim,
		                 SLICE_ARGS(location), node);
	if (storage_integer(made, "/spec/Size") < volume->size_bytes)
		return error_set(err, ERROR_INVARIANT, "the volume of %s is smaller than it asks for", volume->claim);
	return true;
}

bool pod_objects_check(const struct object_store *store, const struct pod_plan *pod, const char *node,
                       struct error *err)
{
	struct arena arena;
	bool ok = true;

	arena_init(&arena, STORAGE_ARENA_BYTES);
	for (unsigned i = 0; ok && i < pod->volume_count; i++)
		ok = check_volume(store, &pod->volumes[i], node, &arena, err);
	arena_destroy(&arena);
	return ok;
}
