#include "sandbox/control_plane_objects.h"

#include "base/buffer.h"
#include "codec/quantity.h"
#include "codec/rfc3339.h"

enum { CPU_MILLI = 1000, TEXT_BYTES = 64 };

static const char VM_TEMPLATE[] =
	"{\"metadata\":{\"finalizers\":[\"vm.neon.tech/finalizer\"],\"labels\":{},\"annotations\":{},\"managedFields\":["
	"{\"apiVersion\":\"vm.neon.tech/v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:annotations\":{\".\":{},"
	"\"f:autoscaling.neon.tech/bounds\":{},\"f:autoscaling.neon.tech/config\":{}},\"f:labels\":{\".\":{},"
	"\"f:autoscaling.neon.tech/enabled\":{},\"f:neon/endpoint-id\":{},\"f:neon/project-id\":{}}},\"f:spec\":{\".\":{},"
	"\"f:cpuScalingMode\":{},\"f:disks\":{},\"f:enableAcceleration\":{},\"f:enableNetworkMonitoring\":{},\"f:enableSSH\":{},"
	"\"f:guest\":{\".\":{},\"f:args\":{},\"f:command\":{},\"f:cpus\":{\".\":{},\"f:max\":{},\"f:min\":{},\"f:use\":{}},\"f:env\":{},"
	"\"f:memorySlotSize\":{},\"f:memorySlots\":{\".\":{},\"f:max\":{},\"f:min\":{},\"f:use\":{}},\"f:ports\":{},"
	"\"f:rootDisk\":{\".\":{},\"f:image\":{},\"f:imagePullPolicy\":{},\"f:size\":{}},\"f:settings\":{\".\":{},\"f:sysctl\":{}}},"
	"\"f:podResources\":{},\"f:qmp\":{},\"f:qmpManual\":{},\"f:restartPolicy\":{},\"f:runnerPort\":{},\"f:schedulerName\":{},"
	"\"f:terminationGracePeriodSeconds\":{}}},\"manager\":\"control-plane\",\"operation\":\"Update\",\"time\":\"2026-01-01T00:00:00Z\"},"
	"{\"apiVersion\":\"vm.neon.tech/v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\".\":{},\"f:conditions\":{},"
	"\"f:cpus\":{},\"f:memorySize\":{},\"f:node\":{},\"f:phase\":{},\"f:podIP\":{},\"f:podName\":{},\"f:restartCount\":{}}},"
	"\"manager\":\"controller\",\"operation\":\"Update\",\"time\":\"2026-01-01T00:00:10Z\"}]},"
	"\"spec\":{\"cpuScalingMode\":\"QmpScaling\",\"disks\":[{\"mountPath\":\"/var/db/postgres\",\"name\":\"pgdata\",\"readOnly\":false,"
	"\"emptyDisk\":{\"size\":\"16Gi\"},\"watch\":false},{\"mountPath\":\"/neonvm/cache\",\"name\":\"cache\",\"readOnly\":false,"
	"\"tmpfs\":{\"size\":\"1Gi\"},\"watch\":false},{\"configMap\":{\"items\":[{\"key\":\"spec.json\",\"path\":\"spec.json\"}],"
	"\"name\":\"compute-config\"},\"mountPath\":\"/var/db/config\",\"name\":\"config\",\"readOnly\":true,\"watch\":true}],"
	"\"enableAcceleration\":true,\"enableNetworkMonitoring\":false,\"enableSSH\":true,\"extraNetwork\":{\"enable\":true,"
	"\"interface\":\"net1\"},\"guest\":{\"args\":[\"-D\",\"/var/db/postgres/data\",\"-c\",\"config_file=/etc/postgresql/postgresql.conf\"],"
	"\"command\":[\"/usr/local/bin/compute\"],\"cpus\":{},\"env\":[{\"name\":\"POSTGRES_HOST_AUTH_METHOD\",\"value\":\"trust\"},"
	"{\"name\":\"EXTRA\",\"value\":\"<none> & \\\"quoted\\\"\"}],\"memorySlots\":{},\"ports\":[{\"name\":\"postgres\",\"port\":5432,"
	"\"protocol\":\"TCP\"},{\"name\":\"pooler\",\"port\":6432,\"protocol\":\"TCP\"},{\"name\":\"host-metrics\",\"port\":9100,"
	"\"protocol\":\"TCP\"},{\"name\":\"monitor\",\"port\":10301,\"protocol\":\"TCP\"}],\"rootDisk\":{\"image\":\"compute-node:dev\","
	"\"imagePullPolicy\":\"IfNotPresent\",\"size\":\"8Gi\"},\"settings\":{\"sysctl\":[\"vm.overcommit_memory=2\"]}},"
	"\"podResources\":{\"requests\":{\"ephemeral-storage\":\"256Mi\"}},\"qmp\":20183,\"qmpManual\":20184,\"restartPolicy\":\"Always\","
	"\"runnerPort\":25183,\"terminationGracePeriodSeconds\":5}}";

static const char POD_TEMPLATE[] =
	"{\"metadata\":{\"labels\":{\"component\":\"scheduler\",\"tier\":\"control-plane\"},\"managedFields\":[{\"manager\":"
	"\"kube-controller-manager\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"2026-01-01T00:00:00Z\",\"fieldsType\":"
	"\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{\".\":{},\"f:component\":{},\"f:name\":{},\"f:tier\":{}}},\"f:spec\":{"
	"\"f:containers\":{\"k:{\\\"name\\\":\\\"autoscale-scheduler\\\"}\":{\".\":{},\"f:image\":{},\"f:imagePullPolicy\":{},\"f:name\":{}}},"
	"\"f:dnsPolicy\":{},\"f:restartPolicy\":{}}}}]},\"spec\":{\"containers\":[{\"name\":\"autoscale-scheduler\",\"image\":"
	"\"autoscale-scheduler:dev\",\"args\":[\"--config=/etc/kubernetes/autoscale-scheduler-config/scheduler-config.yaml\"],\"resources\":{"
	"\"requests\":{\"cpu\":\"100m\"}},\"imagePullPolicy\":\"IfNotPresent\"}],\"restartPolicy\":\"Always\","
	"\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":\"default-scheduler\","
	"\"priority\":0,\"enableServiceLinks\":true,\"preemptionPolicy\":\"PreemptLowerPriority\"},\"status\":{\"phase\":\"Running\","
	"\"conditions\":[{\"type\":\"Initialized\",\"status\":\"True\",\"lastProbeTime\":null},{\"type\":\"Ready\",\"status\":\"True\","
	"\"lastProbeTime\":null}],\"qosClass\":\"Burstable\"}}";

static bool no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for an object");
}

/* ---- values ---- */

static struct json_node *printed(struct arena *arena, const struct buffer *text)
{
	return text->failed ? NULL : json_tree_string(arena, buffer_slice(text));
}

/* Whole ones as numbers, others as "250m" (spec surroundings 3.3). */
static struct json_node *cpu_node(struct arena *arena, uint32_t milli)
{
	struct buffer text;
	struct json_node *node;

	if (milli % CPU_MILLI == 0)
		return json_tree_number(arena, milli / CPU_MILLI);
	buffer_init(&text, TEXT_BYTES);
	milli_cpu_print_quantity(milli, &text);
	node = printed(arena, &text);
	buffer_destroy(&text);
	return node;
}

static struct json_node *bytes_node(struct arena *arena, uint64_t bytes)
{
	struct buffer text;
	struct json_node *node;

	buffer_init(&text, TEXT_BYTES);
	bytes_print(bytes, &text);
	node = printed(arena, &text);
	buffer_destroy(&text);
	return node;
}

static struct json_node *instant_node(struct arena *arena, int64_t wall_ns)
{
	struct buffer text;
	struct json_node *node;

	buffer_init(&text, TEXT_BYTES);
	rfc3339_print_seconds(wall_ns, &text);
	node = printed(arena, &text);
	buffer_destroy(&text);
	return node;
}

static struct json_node *revision_node(struct arena *arena, int64_t value, uint64_t flags, int64_t wall_ns)
{
	struct json_node *outer = json_tree_object(arena);
	struct json_node *inner = json_tree_object(arena);

	if (json_tree_set(inner, SLICE("flags"), json_tree_number(arena, (int64_t)flags)) &&
	    json_tree_set(inner, SLICE("value"), json_tree_number(arena, value)) &&
	    json_tree_set(outer, SLICE("revision"), inner) &&
	    json_tree_set(outer, SLICE("updatedAt"), instant_node(arena, wall_ns)))
		return outer;
	return NULL;
}

/* NULL: left out. */
static bool set_text(struct arena *arena, struct json_node *object, const char *key, const char *text)
{
	return text == NULL || json_tree_set_text(arena, object, slice_of(key), slice_of(text));
}

/* ---- VMs ---- */

uint32_t control_plane_first_cpu_milli(const struct control_plane_vm *vm)
{
	return vm->plugged_cpu_milli > 0 ? vm->plugged_cpu_milli : vm->cpu_use_milli;
}

uint64_t control_plane_first_memory(const struct control_plane_vm *vm)
{
	return (vm->plugged_slots > 0 ? vm->plugged_slots : vm->slots_use) * vm->slot_bytes;
}

static bool set_metadata(struct json_node *root, const struct control_plane_vm *vm, struct arena *arena)
{
	struct json_node *metadata = json_tree_find(root, "/metadata");
	struct json_node *labels = json_tree_find(metadata, "/labels");
	struct json_node *annotations = json_tree_find(metadata, "/annotations");

	return set_text(arena, metadata, "name", vm->name) && set_text(arena, metadata, "namespace", vm->name_space) &&
	       set_text(arena, labels, "autoscaling.neon.tech/enabled", vm->autoscaling ? "true" : "false") &&
	       set_text(arena, labels, "neon/endpoint-id", vm->endpoint_id) &&
	       set_text(arena, labels, "neon/project-id", vm->project_id) &&
	       set_text(arena, annotations, "autoscaling.neon.tech/billing-endpoint-id", vm->endpoint_id) &&
	       set_text(arena, annotations, "autoscaling.neon.tech/bounds", vm->bounds_annotation) &&
	       set_text(arena, annotations, "autoscaling.neon.tech/config", vm->config_annotation);
}

static bool set_guest(struct json_node *guest, const struct control_plane_vm *vm, struct arena *arena)
{
	struct json_node *cpus = json_tree_find(guest, "/cpus");
	struct json_node *slots = json_tree_find(guest, "/memorySlots");

	return json_tree_set(cpus, SLICE("min"), cpu_node(arena, vm->cpu_min_milli)) &&
	       json_tree_set(cpus, SLICE("max"), cpu_node(arena, vm->cpu_max_milli)) &&
	       json_tree_set(cpus, SLICE("use"), cpu_node(arena, vm->cpu_use_milli)) &&
	       json_tree_set(slots, SLICE("min"), json_tree_number(arena, vm->slots_min)) &&
	       json_tree_set(slots, SLICE("max"), json_tree_number(arena, vm->slots_max)) &&
	       json_tree_set(slots, SLICE("use"), json_tree_number(arena, vm->slots_use)) &&
	       json_tree_set(guest, SLICE("memorySlotSize"), bytes_node(arena, vm->slot_bytes));
}

static bool set_spec(struct json_node *root, const struct control_plane_vm *vm, int64_t wall_ns, struct arena *arena)
{
	struct json_node *spec = json_tree_find(root, "/spec");

	if (vm->target_revision != 0 || vm->target_flags != 0) {
		if (!json_tree_set(spec, SLICE("targetRevision"),
		                   revision_node(arena, vm->target_revision, vm->target_flags, wall_ns)))
			return false;
	}
	return set_guest(json_tree_find(spec, "/guest"), vm, arena) &&
	       set_text(arena, spec, "schedulerName",
	                vm->scheduler_name != NULL ? vm->scheduler_name : CONTROL_PLANE_SCHEDULER);
}

bool control_plane_make_vm(const struct control_plane_vm *vm, int64_t wall_ns, struct arena *arena,
                           struct json_node **ret_root, struct error *err)
{
	struct json_node *root;

	if (!json_tree_parse(slice_of(VM_TEMPLATE), arena, &root, err))
		return false;
	if (!set_metadata(root, vm, arena) || !set_spec(root, vm, wall_ns, arena))
		return no_memory(err);
	if (vm->starts) { /* the controller's work */
		json_tree_remove(json_tree_find(root, "/metadata"), SLICE("finalizers"));
		json_tree_remove(json_tree_find(root, "/spec"), SLICE("cpuScalingMode"));
	}
	*ret_root = root;
	return true;
}

static bool set_condition(struct json_node *status, int64_t wall_ns, struct arena *arena)
{
	struct json_node *conditions = json_tree_array(arena);
	struct json_node *condition = json_tree_object(arena);

	return json_tree_set(condition, SLICE("lastTransitionTime"), instant_node(arena, wall_ns)) &&
	       set_text(arena, condition, "message", "Pod for VirtualMachine created successfully") &&
	       set_text(arena, condition, "reason", "Reconciling") && set_text(arena, condition, "status", "True") &&
	       set_text(arena, condition, "type", "Available") && json_tree_append(conditions, condition) &&
	       json_tree_set(status, SLICE("conditions"), conditions);
}

bool control_plane_set_vm_status(struct json_node *root, const struct control_plane_vm *vm, const char *pod_name,
                                 int64_t wall_ns, struct arena *arena, struct error *err)
{
	struct json_node *status = json_tree_object(arena);
	bool settled = control_plane_first_cpu_milli(vm) == vm->cpu_use_milli &&
	               control_plane_first_memory(vm) == vm->slots_use * vm->slot_bytes;
	bool ok = json_tree_set(root, SLICE("status"), status) &&
	          set_text(arena, status, "phase", settled ? "Running" : "Scaling") &&
	          set_text(arena, status, "podName", pod_name) && set_text(arena, status, "podIP", vm->pod_ip) &&
	          set_text(arena, status, "node", vm->node) &&
	          json_tree_set(status, SLICE("cpus"), cpu_node(arena, control_plane_first_cpu_milli(vm))) &&
	          json_tree_set(status, SLICE("memorySize"), bytes_node(arena, control_plane_first_memory(vm))) &&
	          json_tree_set(status, SLICE("restartCount"), json_tree_number(arena, 0)) &&
	          set_condition(status, wall_ns, arena);

	if (ok && (vm->current_revision != 0 || vm->current_flags != 0))
		ok = json_tree_set(status, SLICE("currentRevision"),
		                   revision_node(arena, vm->current_revision, vm->current_flags, wall_ns));
	return ok || no_memory(err);
}

/* ---- pods ---- */

bool control_plane_set_ready(struct json_node *pod, bool ready, int64_t wall_ns, struct arena *arena, struct error *err)
{
	struct json_node *conditions = json_tree_find(pod, "/status/conditions");
	struct json_node *condition =
		conditions != NULL && conditions->kind == JSON_KIND_ARRAY ? conditions->first : NULL;

	while (condition != NULL && !slice_equal_text(json_tree_text(json_tree_find(condition, "/type")), "Ready"))
		condition = condition->next;
	if (condition == NULL) {
		struct json_node *status = json_tree_ensure(arena, pod, SLICE("status"));

		if (conditions == NULL || conditions->kind != JSON_KIND_ARRAY) {
			conditions = json_tree_array(arena);
			if (!json_tree_set(status, SLICE("conditions"), conditions))
				return no_memory(err);
		}
		condition = json_tree_object(arena);
		if (!set_text(arena, condition, "type", "Ready") || !json_tree_append(conditions, condition))
			return no_memory(err);
	}
	return (set_text(arena, condition, "status", ready ? "True" : "False") &&
	        json_tree_set(condition, SLICE("lastTransitionTime"), instant_node(arena, wall_ns))) ||
	       no_memory(err);
}

bool control_plane_make_scheduler_pod(const char *scheduler_name, const char *pod_name, const char *ip,
                                      const char *node, int64_t wall_ns, struct arena *arena,
                                      struct json_node **ret_root, struct error *err)
{
	struct json_node *root;
	struct json_node *metadata;

	if (!json_tree_parse(slice_of(POD_TEMPLATE), arena, &root, err))
		return false;
	metadata = json_tree_find(root, "/metadata");
	if (!set_text(arena, metadata, "name", pod_name) || !set_text(arena, metadata, "namespace", "kube-system") ||
	    !set_text(arena, json_tree_find(metadata, "/labels"), "name", scheduler_name) ||
	    !set_text(arena, json_tree_find(root, "/spec"), "nodeName", node) ||
	    !set_text(arena, json_tree_find(root, "/status"), "podIP", ip))
		return no_memory(err);
	if (!control_plane_set_ready(root, true, wall_ns, arena, err))
		return false;
	*ret_root = root;
	return true;
}
