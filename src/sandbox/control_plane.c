#include "sandbox/control_plane.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/table.h"
#include "net/tls_ca.h"
#include "sandbox/control_plane_objects.h"
#include "sandbox/neonvm_controller.h"
#include "sandbox/vm_schema.h"
#include "sandbox/vm_view.h"
#include "sandbox/vm_webhook.h"

struct vm_counts {
	unsigned patches, refused_patches;
};

struct control_plane {
	struct loop *loop;
	struct object_store *store;
	struct api_server *server;
	struct neonvm_controller *controller;
	struct tls_ca *ca;
	struct api_access access;
	struct control_plane_handler handler;
	void *context;
	struct table counts; /* name → struct vm_counts */
	bool webhook_away;
};

/* The agent's rights as deployed (spec protocols 9.4). */
static const struct api_rule AGENT_RULES[] = {
	{ .group = "vm.neon.tech",
	  .resource = "virtualmachines",
	  .verbs = "create,delete,get,list,patch,update,watch" },
	{ .group = "vm.neon.tech", .resource = "virtualmachines/status", .verbs = "get" },
	{ .group = "", .resource = "pods", .verbs = "get,list,watch" },
	{ .group = "", .resource = "pods/status", .verbs = "get,list,watch" },
	{ .group = "", .resource = "namespaces", .verbs = "get,list,watch" },
	{ .group = "", .resource = "events", .verbs = "get,list,watch" },
	{ .group = "", .resource = "configmaps", .verbs = "get,list,watch" },
	{ .group = "", .resource = "persistentvolumeclaims", .verbs = "get,list,watch" },
};

/* ---- what the API server asks and tells ---- */

static bool is_vm(const struct resource_kind *kind)
{
	return kind == resource_kind(RESOURCE_VIRTUAL_MACHINES);
}

/* NULL when memory is short: then nothing is counted. */
static struct vm_counts *counts_of(struct control_plane *plane, struct slice name)
{
	struct vm_counts *counts = table_find(&plane->counts, name);

	if (counts != NULL)
		return counts;
	counts = memory_allocate(sizeof *counts);
	if (counts != NULL && !table_set(&plane->counts, name, counts)) {
		memory_release(counts);
		return NULL;
	}
	return counts;
}

static bool on_admit(void *context, const struct resource_kind *kind, const struct json_node *before,
                     struct json_node *after, struct arena *arena, struct api_error *ret_error)
{
	const struct control_plane *plane = context;
	struct error err;

	if (!is_vm(kind))
		return true;
	if (!vm_schema_set_defaults(after, arena, &err)) {
		api_error_set(ret_error, 500, "InternalError", api_text(arena, "%s", err.text));
		return false;
	}
	if (!vm_schema_check(after, arena, ret_error))
		return false;
	if (plane->webhook_away) {
		api_error_webhook(ret_error, arena, VM_WEBHOOK_NAME, VM_WEBHOOK_UNREACHABLE);
		return false;
	}
	if (before != NULL ? vm_webhook_check_update(before, after, &err) : vm_webhook_check_new(after, &err))
		return true;
	api_error_denied(ret_error, arena, VM_WEBHOOK_NAME, err.text);
	return false;
}

static bool read_view(struct stored_object *object, struct vm_view *ret_view)
{
	struct object_edit edit;
	struct error err;

	if (!object_edit_begin(&edit, object, &err))
		return false;
	*ret_view = vm_view_read(edit.root);
	/* The texts go with the tree. */
	ret_view->name_space = ret_view->name = ret_view->phase = ret_view->pod_name = ret_view->pod_ip =
		ret_view->node = slice_from(NULL, 0);
	ret_view->scaling_mode = ret_view->restart_policy = slice_from(NULL, 0);
	object_edit_end(&edit);
	return true;
}

static void on_written(void *context, struct stored_object *before, struct stored_object *after)
{
	struct control_plane *plane = context;
	struct vm_view old_view;
	struct vm_view new_view;
	struct vm_counts *counts;
	char name[NEONVM_NAME_BYTES];

	if (!is_vm(after->kind) || before == NULL || !read_view(before, &old_view) || !read_view(after, &new_view))
		return;
	if (old_view.cpu_use_milli == new_view.cpu_use_milli && old_view.slots_use == new_view.slots_use)
		return;
	counts = counts_of(plane, after->name);
	if (counts != NULL)
		counts->patches++;
	snprintf(name, sizeof name, "%.*s", SLICE_ARGS(after->name));
	if (plane->handler.on_patched != NULL)
		plane->handler.on_patched(plane->context, name, old_view.cpu_use_milli, (uint16_t)old_view.slots_use,
		                          new_view.cpu_use_milli, (uint16_t)new_view.slots_use);
}

static void on_refused(void *context, const struct resource_kind *kind, struct slice name_space, struct slice name)
{
	struct vm_counts *counts = is_vm(kind) ? counts_of(context, name) : NULL;

	(void)name_space;
	if (counts != NULL)
		counts->refused_patches++;
}

/* ---- start and end ---- */

static struct tls_settings *make_tls(struct control_plane *plane, const struct address *address, struct error *err)
{
	static const char *const NAMES[] = { "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		                             "kubernetes.default.svc.cluster.local", "localhost" };
	struct address addresses[2] = { *address };
	struct tls_ca_request request = { .common_name = "kube-apiserver",
		                          .names = NAMES,
		                          .name_count = sizeof NAMES / sizeof *NAMES,
		                          .addresses = addresses,
		                          .address_count = 2 };
	struct buffer certificate = { 0 };
	struct buffer key = { 0 };
	struct tls_settings *settings = NULL;

	(void)address_parse(SLICE("127.0.0.1"), 0, &addresses[1]);
	plane->ca = tls_ca_create(plane->loop, "kubernetes", err);
	if (plane->ca == NULL || !tls_ca_issue(plane->ca, &request, &certificate, &key, err))
		return NULL;
	settings =
		tls_server_settings_create(plane->loop,
	                                   &(struct tls_server_options){ .certificate_pem = buffer_slice(&certificate),
	                                                                 .key_pem = buffer_slice(&key) },
	                                   err);
	buffer_destroy(&certificate);
	buffer_destroy(&key);
	return settings;
}

static bool start_server(struct control_plane *plane, const struct control_plane_options *options, struct error *err)
{
	static const struct api_server_handler HANDLER = { .on_admit = on_admit,
		                                           .on_written = on_written,
		                                           .on_refused = on_refused };
	struct api_server_options server_options = {
		.address = options->address,
		.store = plane->store,
		.access = &plane->access,
		.bookmark_interval_ns = options->bookmark_interval_ns > 0 ? options->bookmark_interval_ns
		                                                          : (uint64_t)API_SERVER_BOOKMARK_S * NS_PER_S,
		.speed = options->speed,
	};

	if (!options->plain) {
		server_options.tls = make_tls(plane, &options->address, err);
		if (server_options.tls == NULL)
			return false;
	}
	plane->server = api_server_start(plane->loop, &server_options, &HANDLER, plane, err);
	if (server_options.tls != NULL)
		tls_settings_release(server_options.tls);
	return plane->server != NULL;
}

struct control_plane *control_plane_start(struct loop *loop, const struct control_plane_options *options,
                                          const struct control_plane_handler *handler, void *context, struct error *err)
{
	struct control_plane *plane = memory_allocate(sizeof *plane);
	struct neonvm_handler neonvm_handler = { .on_resized = handler->on_resized, .on_phase = handler->on_phase };

	if (plane == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a control plane");
		return NULL;
	}
	plane->loop = loop;
	plane->handler = *handler;
	plane->context = context;
	table_init(&plane->counts);
	plane->store = object_store_create(loop, err);
	if (plane->store != NULL)
		plane->controller =
			neonvm_controller_create(loop, plane->store, options->speed, &neonvm_handler, context, err);
	if (plane->controller != NULL && options->late_2023)
		neonvm_controller_be_late_2023(plane->controller);
	if (plane->controller != NULL &&
	    api_access_grant(&plane->access, options->token, options->user, AGENT_RULES,
	                     sizeof AGENT_RULES / sizeof *AGENT_RULES, err) &&
	    start_server(plane, options, err))
		return plane;
	control_plane_destroy(plane);
	return NULL;
}

void control_plane_destroy(struct control_plane *plane)
{
	if (plane == NULL)
		return;
	api_server_destroy(plane->server);
	neonvm_controller_destroy(plane->controller);
	object_store_destroy(plane->store);
	api_access_destroy(&plane->access);
	tls_ca_destroy(plane->ca);
	for (struct table_entry *entry = table_next(&plane->counts, NULL); entry != NULL;
	     entry = table_next(&plane->counts, entry))
		memory_release(entry->value);
	table_destroy(&plane->counts);
	memory_release(plane);
}

bool control_plane_address(const struct control_plane *plane, struct address *ret_address)
{
	return api_server_address(plane->server, ret_address);
}

struct slice control_plane_ca_pem(const struct control_plane *plane)
{
	return plane->ca != NULL ? tls_ca_certificate_pem(plane->ca) : SLICE("");
}

struct control_plane_counters control_plane_counters(const struct control_plane *plane)
{
	struct api_server_counters counters = api_server_counters(plane->server);

	return (struct control_plane_counters){ .lists = counters.lists,
		                                .watches = counters.watches,
		                                .patches = counters.patches,
		                                .unauthorized = counters.unauthorized,
		                                .rejected = counters.rejected };
}

bool control_plane_grant(struct control_plane *plane, const char *token, const char *user, const struct api_rule *rules,
                         size_t rule_count, struct error *err)
{
	return api_access_grant(&plane->access, token, user, rules, rule_count, err);
}

bool control_plane_revoke(struct control_plane *plane, const char *token)
{
	return api_access_revoke(&plane->access, token);
}

struct object_store *control_plane_store(struct control_plane *plane)
{
	return plane->store;
}

/* ---- VMs ---- */

static struct stored_object *find_vm(const struct control_plane *plane, const char *name, struct error *err)
{
	struct slice name_space = neonvm_controller_name_space(plane->controller, slice_of(name));
	struct stored_object *object =
		object_store_find(plane->store, resource_kind(RESOURCE_VIRTUAL_MACHINES), name_space, slice_of(name));

	if (object == NULL)
		error_set(err, ERROR_REFUSED, "there is no VM \"%s\"", name);
	return object;
}

/* Checks as the API server would. */
static bool check_vm(const struct json_node *root, struct arena *arena, struct error *err)
{
	struct api_error refusal;

	if (!vm_schema_check(root, arena, &refusal))
		return error_set(err, ERROR_LIMIT, "%.*s", SLICE_ARGS(refusal.status.message));
	return vm_webhook_check_new(root, err);
}

/* What lies below a VM comes first, so that the controller, told of the VM, finds it all there. */
static bool add_vm(struct control_plane *plane, const struct control_plane_vm *vm, struct arena *arena,
                   struct error *err)
{
	struct neonvm_place place = { .node = vm->node, .pod_ip = vm->pod_ip };
	struct slice name = slice_of(vm->name);
	int64_t wall_ns = loop_wall_ns(plane->loop);
	struct json_node *root;
	const char *pod_name;

	if (vm->pod_name != NULL && object_store_find(plane->store, resource_kind(RESOURCE_PODS),
	                                              slice_of(vm->name_space), slice_of(vm->pod_name)) != NULL)
		return error_set(err, ERROR_REFUSED, "there is a pod \"%s\" already", vm->pod_name);
	if (!control_plane_make_vm(vm, wall_ns, arena, &root, err) || !check_vm(root, arena, err) ||
	    !neonvm_controller_place(plane->controller, slice_of(vm->name_space), name, &place, err))
		return false;
	if (!vm->starts) {
		pod_name = neonvm_controller_run(plane->controller, name, vm->pod_name,
		                                 control_plane_first_cpu_milli(vm), control_plane_first_memory(vm));
		if (!control_plane_set_vm_status(root, vm, pod_name, wall_ns, arena, err))
			return false;
	}
	return object_store_add(plane->store, resource_kind(RESOURCE_VIRTUAL_MACHINES), root, arena, NULL, err) &&
	       (vm->starts || neonvm_controller_add_pod(plane->controller, name, err));
}

bool control_plane_add_vm(struct control_plane *plane, const struct control_plane_vm *vm, struct error *err)
{
	struct arena arena;
	bool ok;

	if (neonvm_controller_name_space(plane->controller, slice_of(vm->name)).length > 0)
		return error_set(err, ERROR_REFUSED, "there is a VM \"%s\" already", vm->name);
	arena_init(&arena, OBJECT_STORE_ARENA_BYTES);
	ok = add_vm(plane, vm, &arena, err);
	arena_destroy(&arena);
	return ok || error_wrap(err, "adding VM \"%s\"", vm->name);
}

static void copy_state(const struct json_node *root, struct control_plane_vm_state *state)
{
	struct vm_view view = vm_view_read(root);

	state->cpu_use_milli = view.cpu_use_milli;
	state->slots_use = (uint16_t)view.slots_use;
	state->scaling = slice_equal_text(view.phase, "Scaling");
	state->target_revision = view.target.value;
	state->current_revision = view.current.value;
	state->restarts = (unsigned)view.restart_count;
	snprintf(state->phase, sizeof state->phase, "%.*s", SLICE_ARGS(view.phase));
}

bool control_plane_vm_state(const struct control_plane *plane, const char *name,
                            struct control_plane_vm_state *ret_state)
{
	struct control_plane_vm_state state = { 0 };
	struct error err;
	struct stored_object *object = find_vm(plane, name, &err);
	const struct vm_counts *counts = table_find(&plane->counts, slice_of(name));
	struct object_edit edit;

	if (object == NULL || !object_edit_begin(&edit, object, &err))
		return false;
	copy_state(edit.root, &state);
	object_edit_end(&edit);
	(void)neonvm_controller_plugged(plane->controller, slice_of(name), &state.cpu_plugged_milli,
	                                &state.memory_plugged_bytes);
	if (counts != NULL) {
		state.patches = counts->patches;
		state.refused_patches = counts->refused_patches;
	}
	*ret_state = state;
	return true;
}

bool control_plane_annotate_vm(struct control_plane *plane, const char *name, struct slice key, struct slice value,
                               struct error *err)
{
	struct stored_object *object = find_vm(plane, name, err);
	struct object_edit edit;
	struct json_node *annotations;
	bool ok;

	if (object == NULL || !object_edit_begin(&edit, object, err))
		return false;
	annotations = json_tree_ensure(&edit.arena, json_tree_find(edit.root, "/metadata"), SLICE("annotations"));
	if (value.data == NULL)
		ok = json_tree_remove(annotations, key) || annotations != NULL;
	else
		ok = json_tree_set_text(&edit.arena, annotations, key, value);
	ok = ok ? object_edit_commit(&edit, plane->store, err)
	        : error_set(err, ERROR_NO_MEMORY, "no memory for an annotation");
	object_edit_end(&edit);
	return ok;
}

bool control_plane_restart_vm(struct control_plane *plane, const char *name, struct error *err)
{
	return neonvm_controller_kill_pod(plane->controller, slice_of(name), err);
}

bool control_plane_delete_vm(struct control_plane *plane, const char *name, struct error *err)
{
	struct stored_object *object = find_vm(plane, name, err);
	bool gone;

	return object != NULL && object_store_delete(plane->store, object, &object, &gone, err);
}

bool control_plane_migrate_vm(struct control_plane *plane, const char *name, const char *node, const char *pod_ip,
                              struct error *err)
{
	return neonvm_controller_migrate(plane->controller, slice_of(name),
	                                 &(struct neonvm_place){ .node = node, .pod_ip = pod_ip }, err);
}

bool control_plane_set_shrink(struct control_plane *plane, const char *name, uint64_t floor_bytes, uint64_t bytes_per_s)
{
	return neonvm_controller_set_shrink(plane->controller, slice_of(name), floor_bytes, bytes_per_s);
}

bool control_plane_set_vm_reachable(struct control_plane *plane, const char *name, bool reachable)
{
	return neonvm_controller_set_reachable(plane->controller, slice_of(name), reachable);
}

/* ---- pods and other objects ---- */

bool control_plane_add_scheduler_pod(struct control_plane *plane, const char *scheduler_name, const char *pod_name,
                                     const char *ip, const char *node, struct error *err)
{
	struct arena arena;
	struct json_node *root;
	bool ok;

	arena_init(&arena, OBJECT_STORE_ARENA_BYTES);
	ok = control_plane_make_scheduler_pod(scheduler_name, pod_name, ip, node, loop_wall_ns(plane->loop), &arena,
	                                      &root, err) &&
	     object_store_add(plane->store, resource_kind(RESOURCE_PODS), root, &arena, NULL, err);
	arena_destroy(&arena);
	return ok || error_wrap(err, "adding pod \"%s\"", pod_name);
}

bool control_plane_set_pod_ready(struct control_plane *plane, const char *name_space, const char *name, bool ready,
                                 struct error *err)
{
	struct stored_object *object =
		object_store_find(plane->store, resource_kind(RESOURCE_PODS), slice_of(name_space), slice_of(name));
	struct object_edit edit;
	bool ok;

	if (object == NULL)
		return error_set(err, ERROR_REFUSED, "there is no pod \"%s/%s\"", name_space, name);
	if (!object_edit_begin(&edit, object, err))
		return false;
	ok = control_plane_set_ready(edit.root, ready, loop_wall_ns(plane->loop), &edit.arena, err) &&
	     object_edit_commit(&edit, plane->store, err);
	object_edit_end(&edit);
	return ok;
}

static bool put(struct control_plane *plane, struct slice json, struct arena *arena, struct error *err)
{
	struct json_node *root;
	struct slice api_version;
	struct slice kind_name;
	const struct resource_kind *kind;
	struct stored_object *current;

	if (!json_tree_parse(json, arena, &root, err))
		return false;
	api_version = json_tree_text(json_tree_find(root, "/apiVersion"));
	kind_name = json_tree_text(json_tree_find(root, "/kind"));
	kind = resource_kind_of(api_version, kind_name);
	if (kind == NULL)
		return error_set(err, ERROR_SYNTAX, "no kind of objects is called \"%.*s\" of \"%.*s\"",
		                 SLICE_ARGS(kind_name), SLICE_ARGS(api_version));
	current = object_store_find(plane->store, kind, json_tree_text(json_tree_find(root, "/metadata/namespace")),
	                            json_tree_text(json_tree_find(root, "/metadata/name")));
	if (current == NULL)
		return object_store_add(plane->store, kind, root, arena, NULL, err);
	return object_store_replace(plane->store, current, root, arena, NULL, err);
}

bool control_plane_put(struct control_plane *plane, struct slice json, struct error *err)
{
	struct arena arena;
	bool ok;

	arena_init(&arena, OBJECT_STORE_ARENA_BYTES);
	ok = put(plane, json, &arena, err);
	arena_destroy(&arena);
	return ok || error_wrap(err, "storing an object");
}

bool control_plane_remove(struct control_plane *plane, enum resource resource, const char *name_space, const char *name,
                          struct error *err)
{
	struct stored_object *object =
		object_store_find(plane->store, resource_kind(resource), slice_of(name_space), slice_of(name));
	bool gone;

	if (object == NULL)
		return error_set(err, ERROR_REFUSED, "there is no \"%s\" among the %s", name,
		                 resource_kind(resource)->plural);
	return object_store_delete(plane->store, object, &object, &gone, err);
}

/* ---- faults ---- */

void control_plane_set_available(struct control_plane *plane, bool available)
{
	api_server_set_available(plane->server, available);
}

void control_plane_compact(struct control_plane *plane)
{
	object_store_compact(plane->store);
}

void control_plane_set_expiry(struct control_plane *plane, enum api_expiry expiry)
{
	api_server_set_expiry(plane->server, expiry);
}

void control_plane_refuse_next(struct control_plane *plane, unsigned count)
{
	api_server_refuse_next(plane->server, count);
}

void control_plane_fail_next(struct control_plane *plane, unsigned count, int status)
{
	api_server_fail_next(plane->server, count, status);
}

void control_plane_set_faults(struct control_plane *plane, struct faults *faults)
{
	api_server_set_faults(plane->server, faults);
}

void control_plane_end_watches(struct control_plane *plane, bool cleanly)
{
	api_server_end_watches(plane->server, cleanly);
}

void control_plane_set_webhook_available(struct control_plane *plane, bool available)
{
	plane->webhook_away = !available;
}
