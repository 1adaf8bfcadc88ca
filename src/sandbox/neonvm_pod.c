/*
 * Runner pods (spec surroundings 3.2.3, 3.5, 6), and the kubelet that gets them ready.
 */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "sandbox/neonvm_internal.h"

enum { TEXT_BYTES = 4096, RANDOM_CHARACTERS = 5, PREFIX_BYTES = 58 };

static const char POD_TEMPLATE[] =
	"{\"metadata\":{},\"spec\":{\"volumes\":[{\"name\":\"virtualmachineimages\",\"emptyDir\":{}}],\"containers\":[{\"name\":\"neonvm-runner\","
	"\"image\":\"neonvm-runner:dev\",\"command\":[\"runner\"],\"ports\":[{\"name\":\"qmp\",\"containerPort\":20183,\"protocol\":\"TCP\"},"
	"{\"name\":\"host-metrics\",\"containerPort\":9100,\"protocol\":\"TCP\"},{\"name\":\"monitor\",\"containerPort\":10301,"
	"\"protocol\":\"TCP\"}],\"resources\":{\"limits\":{\"neonvm/kvm\":\"1\",\"neonvm/vhost-net\":\"1\"},\"requests\":{\"neonvm/kvm\":\"1\","
	"\"neonvm/vhost-net\":\"1\"}},\"readinessProbe\":{\"httpGet\":{\"path\":\"/ready\",\"port\":25183,\"scheme\":\"HTTP\"},"
	"\"initialDelaySeconds\":5,\"timeoutSeconds\":1,\"periodSeconds\":5,\"successThreshold\":1,\"failureThreshold\":5},"
	"\"imagePullPolicy\":\"IfNotPresent\"}],\"restartPolicy\":\"Never\",\"terminationGracePeriodSeconds\":5,\"dnsPolicy\":\"ClusterFirst\","
	"\"securityContext\":{},\"priority\":0,\"enableServiceLinks\":false,\"preemptionPolicy\":\"PreemptLowerPriority\"},"
	"\"status\":{\"phase\":\"Pending\",\"qosClass\":\"BestEffort\"}}";

static bool no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a runner pod");
}

struct stored_object *neonvm_pod_find(const struct vm *vm, const char *pod)
{
	return object_store_find(vm->controller->store, resource_kind(RESOURCE_PODS), slice_of(vm->name_space),
	                         slice_of(pod));
}

void neonvm_pod_phase(const struct vm *vm, const char *pod, char phase[16])
{
	struct stored_object *object = neonvm_pod_find(vm, pod);
	struct object_edit edit;
	struct error err;

	phase[0] = '\0';
	if (object == NULL)
		return;
	/* Without memory it counts as one that hasn't started: the next pass looks again. */
	snprintf(phase, 16, "Pending");
	if (!object_edit_begin(&edit, object, &err))
		return;
	snprintf(phase, 16, "%.*s", SLICE_ARGS(json_tree_text(json_tree_find(edit.root, "/status/phase"))));
	object_edit_end(&edit);
}

void neonvm_pod_make_name(const struct vm *vm, char name[NEONVM_NAME_BYTES])
{
	static const char CHARACTERS[] = "bcdfghjklmnpqrstvwxz2456789";
	struct loop *loop = vm->controller->loop;
	char random[RANDOM_CHARACTERS + 1] = "";
	char prefix[PREFIX_BYTES + 1];

	for (size_t i = 0; i < RANDOM_CHARACTERS; i++)
		random[i] = CHARACTERS[rng_between(loop_rng(loop), 0, sizeof CHARACTERS - 1)];
	snprintf(prefix, sizeof prefix, "%.*s-", PREFIX_BYTES - 1, vm->name);
	snprintf(name, NEONVM_NAME_BYTES, "%s%s", prefix, random);
}

/* ---- labels and annotations: copies of the VM's (3.5) ---- */

/* All of map but the key left out. */
static struct json_node *copy_map(struct arena *arena, const struct json_node *map, const char *left_out)
{
	struct json_node *copy =
		map != NULL && map->kind == JSON_KIND_OBJECT ? json_tree_copy(arena, map) : json_tree_object(arena);

	json_tree_remove(copy, slice_of(left_out));
	return copy;
}

/* {"cpu":"1250m","memory":"5Gi"} */
static void print_usage(struct buffer *text, const struct vm_view *view)
{
	struct json_writer writer;

	json_writer_init(&writer, text);
	json_writer_object_begin(&writer);
	json_writer_key(&writer, SLICE("cpu"));
	json_writer_milli_cpu_string(&writer, view->cpu_use_milli);
	json_writer_key(&writer, SLICE("memory"));
	json_writer_quantity_string(&writer, (uint64_t)view->slots_use * view->slot_bytes);
	json_writer_object_end(&writer);
}

/* {"cpus":{"min":"250m","max":2,"use":"1250m"},"memorySlots":{"min":1,"max":8,"use":5},"memorySlotSize":"1Gi"} */
static void print_resources(struct buffer *text, const struct vm_view *view)
{
	struct json_writer writer;

	json_writer_init(&writer, text);
	json_writer_object_begin(&writer);
	json_writer_key(&writer, SLICE("cpus"));
	json_writer_object_begin(&writer);
	json_writer_key(&writer, SLICE("min"));
	json_writer_milli_cpu(&writer, view->cpu_min_milli);
	json_writer_key(&writer, SLICE("max"));
	json_writer_milli_cpu(&writer, view->cpu_max_milli);
	json_writer_key(&writer, SLICE("use"));
	json_writer_milli_cpu(&writer, view->cpu_use_milli);
	json_writer_object_end(&writer);
	json_writer_key(&writer, SLICE("memorySlots"));
	json_writer_object_begin(&writer);
	json_writer_key(&writer, SLICE("min"));
	json_writer_int(&writer, view->slots_min);
	json_writer_key(&writer, SLICE("max"));
	json_writer_int(&writer, view->slots_max);
	json_writer_key(&writer, SLICE("use"));
	json_writer_int(&writer, view->slots_use);
	json_writer_object_end(&writer);
	json_writer_key(&writer, SLICE("memorySlotSize"));
	json_writer_quantity_string(&writer, view->slot_bytes);
	json_writer_object_end(&writer);
}

static bool set_printed(struct arena *arena, struct json_node *map, const char *key,
                        void (*print)(struct buffer *, const struct vm_view *), const struct vm_view *view)
{
	struct buffer text;
	bool ok;

	buffer_init(&text, TEXT_BYTES);
	print(&text, view);
	ok = !text.failed && json_tree_set_text(arena, map, slice_of(key), buffer_slice(&text));
	buffer_destroy(&text);
	return ok;
}

static bool set_overcommit(struct arena *arena, struct json_node *map, const struct json_node *root)
{
	const struct json_node *overcommit = json_tree_find(root, "/spec/overcommit");
	struct buffer text;
	struct error err;
	bool ok;

	if (overcommit == NULL)
		return true;
	buffer_init(&text, TEXT_BYTES);
	ok = json_tree_print(overcommit, &text, &err) &&
	     json_tree_set_text(arena, map, SLICE("vm.neon.tech/overcommit"), buffer_slice(&text));
	buffer_destroy(&text);
	return ok;
}

/* pod_annotations: the pod's own so far, of which those of the network stay; may be NULL. */
static bool set_copies(struct arena *arena, struct json_node *metadata, const struct json_node *root,
                       const struct json_node *pod_annotations)
{
	static const char *const KEPT[] = { "k8s.v1.cni.cncf.io/networks", "k8s.v1.cni.cncf.io/network-status",
		                            "k8s.v1.cni.cncf.io/networks-status" };
	struct vm_view view = vm_view_read(root);
	struct json_node *labels = copy_map(arena, json_tree_find(root, "/metadata/labels"), "");
	struct json_node *annotations = copy_map(arena, json_tree_find(root, "/metadata/annotations"),
	                                         "kubectl.kubernetes.io/last-applied-configuration");

	for (size_t i = 0; i < sizeof KEPT / sizeof *KEPT; i++) {
		const struct json_node *kept = json_tree_member(pod_annotations, slice_of(KEPT[i]));

		if (kept != NULL && !json_tree_set(annotations, slice_of(KEPT[i]), json_tree_copy(arena, kept)))
			return false;
	}
	return json_tree_set_text(arena, labels, SLICE("app.kubernetes.io/name"), SLICE("NeonVM")) &&
	       json_tree_set_text(arena, labels, SLICE("vm.neon.tech/name"), view.name) &&
	       json_tree_set_text(arena, annotations, SLICE("kubectl.kubernetes.io/default-container"),
	                          SLICE("neonvm-runner")) &&
	       set_printed(arena, annotations, "vm.neon.tech/usage", print_usage, &view) &&
	       set_printed(arena, annotations, "vm.neon.tech/resources", print_resources, &view) &&
	       set_overcommit(arena, annotations, root) && json_tree_set(metadata, SLICE("labels"), labels) &&
	       json_tree_set(metadata, SLICE("annotations"), annotations);
}

bool neonvm_pod_copy_labels(struct vm *vm, const struct json_node *root, const char *pod, struct error *err)
{
	struct stored_object *object = neonvm_pod_find(vm, pod);
	struct object_edit edit;
	struct json_node *metadata;
	bool ok;

	if (object == NULL)
		return true;
	if (!object_edit_begin(&edit, object, err))
		return false;
	metadata = json_tree_find(edit.root, "/metadata");
	ok = (set_copies(&edit.arena, metadata, root, json_tree_find(metadata, "/annotations")) || no_memory(err)) &&
	     object_edit_commit(&edit, vm->controller->store, err);
	object_edit_end(&edit);
	return ok;
}

/* ---- making ---- */

static bool set_owner(struct arena *arena, struct json_node *metadata, const struct json_node *root)
{
	struct json_node *owners = json_tree_array(arena);
	struct json_node *owner = json_tree_object(arena);

	return json_tree_set_text(arena, owner, SLICE("apiVersion"), SLICE("vm.neon.tech/v1")) &&
	       json_tree_set_text(arena, owner, SLICE("kind"), SLICE("VirtualMachine")) &&
	       json_tree_set_text(arena, owner, SLICE("name"),
	                          json_tree_text(json_tree_find(root, "/metadata/name"))) &&
	       json_tree_set_text(arena, owner, SLICE("uid"), json_tree_text(json_tree_find(root, "/metadata/uid"))) &&
	       json_tree_set(owner, SLICE("controller"), json_tree_bool(arena, true)) &&
	       json_tree_set(owner, SLICE("blockOwnerDeletion"), json_tree_bool(arena, true)) &&
	       json_tree_append(owners, owner) && json_tree_set(metadata, SLICE("ownerReferences"), owners);
}

static bool build(struct arena *arena, struct json_node *tree, const struct vm *vm, const struct json_node *root,
                  const char *pod, const struct place *place)
{
	struct json_node *metadata = json_tree_find(tree, "/metadata");
	struct json_node *spec = json_tree_find(tree, "/spec");
	struct slice scheduler = json_tree_text(json_tree_find(root, "/spec/schedulerName"));

	return json_tree_set_text(arena, metadata, SLICE("name"), slice_of(pod)) &&
	       json_tree_set_text(arena, metadata, SLICE("namespace"), slice_of(vm->name_space)) &&
	       set_copies(arena, metadata, root, NULL) && set_owner(arena, metadata, root) &&
	       json_tree_set_text(arena, spec, SLICE("nodeName"), slice_of(place->node)) &&
	       json_tree_set_text(arena, spec, SLICE("schedulerName"),
	                          scheduler.length > 0 ? scheduler : SLICE("default-scheduler"));
}

bool neonvm_pod_create(struct vm *vm, const struct json_node *root, const char *pod, const struct place *place,
                       struct error *err)
{
	struct arena arena;
	struct json_node *tree = NULL;
	bool ok;

	arena_init(&arena, OBJECT_STORE_ARENA_BYTES);
	ok = json_tree_parse(slice_of(POD_TEMPLATE), &arena, &tree, err) &&
	     (build(&arena, tree, vm, root, pod, place) || no_memory(err)) &&
	     object_store_add(vm->controller->store, resource_kind(RESOURCE_PODS), tree, &arena, NULL, err);
	arena_destroy(&arena);
	return ok;
}

/* ---- from Pending to its end ---- */

static void on_ready(void *context)
{
	struct vm *vm = context;
	bool target = strcmp(vm->starting_pod, vm->target_pod) == 0;
	struct error err;

	/* A pod that has gone meanwhile needs nothing; memory may be there a little later. */
	if (!neonvm_pod_set_running(vm, vm->starting_pod, target ? vm->target.pod_ip : vm->place.pod_ip, &err) &&
	    neonvm_pod_find(vm, vm->starting_pod) != NULL)
		neonvm_pod_start(vm, vm->starting_pod);
}

void neonvm_pod_start(struct vm *vm, const char *pod)
{
	if (pod != vm->starting_pod)
		snprintf(vm->starting_pod, sizeof vm->starting_pod, "%s", pod);
	loop_timer_start(vm->controller->loop, &vm->ready_timer, neonvm_scaled(vm->controller, NEONVM_POD_READY_MS),
	                 on_ready, vm);
}

static bool set_status(struct vm *vm, const char *pod, const char *text, const char *pod_ip, struct error *err)
{
	struct stored_object *object = neonvm_pod_find(vm, pod);
	struct object_edit edit;
	struct json_node *status;
	bool ok;

	if (object == NULL)
		return error_set(err, ERROR_REFUSED, "there is no pod \"%s\"", pod);
	if (!object_edit_begin(&edit, object, err))
		return false;
	ok = json_tree_parse(slice_of(text), &edit.arena, &status, err);
	if (ok) {
		if (!json_tree_set(edit.root, SLICE("status"), status) ||
		    (pod_ip != NULL && !json_tree_set_text(&edit.arena, status, SLICE("podIP"), slice_of(pod_ip))))
			ok = no_memory(err);
		ok = ok && object_edit_commit(&edit, vm->controller->store, err);
	}
	object_edit_end(&edit);
	return ok;
}

bool neonvm_pod_set_running(struct vm *vm, const char *pod, const char *pod_ip, struct error *err)
{
	static const char STATUS[] =
		"{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
		"\"containerStatuses\":[{\"name\":\"neonvm-runner\",\"ready\":true,\"restartCount\":0,"
		"\"image\":\"neonvm-runner:dev\",\"started\":true}],\"qosClass\":\"BestEffort\"}";

	return set_status(vm, pod, STATUS, pod_ip, err);
}

bool neonvm_pod_set_failed(struct vm *vm, const char *pod, struct error *err)
{
	static const char STATUS[] =
		"{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}],"
		"\"containerStatuses\":[{\"name\":\"neonvm-runner\",\"ready\":false,\"restartCount\":0,"
		"\"image\":\"neonvm-runner:dev\",\"started\":false}],\"qosClass\":\"BestEffort\"}";

	return set_status(vm, pod, STATUS, NULL, err);
}

void neonvm_pod_delete(struct vm *vm, const char *pod)
{
	struct stored_object *object = neonvm_pod_find(vm, pod);
	struct error err;
	bool gone;

	/* Without memory the pod stays, as one that nobody owns. */
	if (object != NULL)
		(void)object_store_delete(vm->controller->store, object, &object, &gone, &err);
}
