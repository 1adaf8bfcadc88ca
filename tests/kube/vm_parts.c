/*
 * What runs VMs, before a real API server: the sandbox's NeonVM controller with its hypervisors and kubelets, a guest with metrics page and
 * vm-monitor in each VM that runs, and the scheduler plugin, with the capacity of the cluster's nodes, in a pod of its own.
 *
 *   kube.vm_parts KUBECONFIG PREFIX SPEED
 *
 * PREFIX is the first three numbers of addresses of its own ("127.1.2"): the plugin is on .3, the control page on .2, VMs on .10 and up. The typical
 * times of controller and plugin are divided by SPEED. A VM runs on the node that its nodeSelector names, as it has no scheduler.
 *
 * Prints "ready", then what happens; ends with SIGTERM, or with whoever started it. The control page, port 8080:
 *
 *   GET  /state                                        counters, and what is true of each VM
 *   POST /demand   {"vm": NAME, "units": N, "held": N} what the VM's load asks for, and what its monitor insists on (0: nothing)
 *   POST /migrate  {"vm": NAME, "node": NODE}          a live migration
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "net/loop_epoll.h"
#include "sandbox/agent_setup.h"
#include "sandbox/control_plane_objects.h"
#include "sandbox/scheduler_plugin.h"
#include "sandbox/vm_view.h"
#include "vm_parts/api_mirror.h"
#include "vm_parts/control_page.h"
#include "vm_parts/die.h"
#include "vm_parts/guests.h"

#define SCHEDULER_POD "autoscale-scheduler-1"
#define VM_LABEL "vm.neon.tech/name"

enum { CONTROL_PORT = 8080, CONTROL_HOST = 2, PLUGIN_HOST = 3 };

struct parts {
	struct loop *loop;
	struct kube_client *client;
	struct object_store *store;
	struct neonvm_controller *controller;
	struct api_mirror *mirror;
	struct scheduler_plugin *plugin;
	struct control_page *page;
	struct guests guests;
	struct object_observer observer;
	struct address plugin_address;
};

/* ---- what changes in the store ---- */

/* An object's tree, to be looked at. */
static void open_object(struct object_edit *edit, struct stored_object *object)
{
	struct error err;

	if (!object_edit_begin(edit, object, &err))
		die("%.*s: %s", SLICE_ARGS(object->name), err.text);
}

static bool is_up(struct slice phase)
{
	static const char *const UP[] = { "Running", "Scaling", "PreMigrating", "Migrating" };

	for (size_t i = 0; i < sizeof UP / sizeof *UP; i++) {
		if (slice_equal_text(phase, UP[i]))
			return true;
	}
	return false;
}

/* A new VM gets its node and an address. */
static void place(struct parts *parts, struct vm_part *part, const struct json_node *root)
{
	struct slice node = json_tree_text(
		json_tree_member(json_tree_find(root, "/spec/nodeSelector"), SLICE("kubernetes.io/hostname")));
	char node_name[NEONVM_NAME_BYTES];
	struct error err;

	(void)snprintf(node_name, sizeof node_name, "%.*s", SLICE_ARGS(node));
	guests_choose_address(&parts->guests, part);
	if (!neonvm_controller_place(parts->controller, json_tree_text(json_tree_find(root, "/metadata/namespace")),
	                             slice_of(part->name),
	                             &(struct neonvm_place){ .node = node_name, .pod_ip = part->place_ip }, &err))
		die("VM %s: %s", part->name, err.text);
}

static void count_patch(struct vm_part *part, const struct object_change *change, const struct vm_view *view)
{
	struct object_edit before;
	struct vm_view old;

	open_object(&before, change->before);
	old = vm_view_read(before.root);
	if (old.cpu_use_milli != view->cpu_use_milli || old.slots_use != view->slots_use)
		part->patches++;
	object_edit_end(&before);
}

static void on_vm_change(struct parts *parts, const struct object_change *change)
{
	struct vm_part *part = guests_find_or_make(&parts->guests, change->after->name);
	struct object_edit edit;
	struct vm_view view;

	if (change->type == OBJECT_DELETED) {
		vm_part_run(part, SLICE(""));
		return;
	}
	open_object(&edit, change->after);
	view = vm_view_read(edit.root);
	if (change->type == OBJECT_ADDED)
		place(parts, part, edit.root);
	else if (api_mirror_is_applying(parts->mirror))
		count_patch(part, change, &view);
	if (part->guest == NULL)
		(void)neonvm_controller_plugged(parts->controller, slice_of(part->name), &part->cpu_milli,
		                                &part->memory_bytes);
	vm_part_run(part, is_up(view.phase) ? view.pod_ip : SLICE(""));
	object_edit_end(&edit);
}

static struct stored_object *vm_of_pod(const struct parts *parts, const struct stored_object *pod)
{
	const struct slice *name = json_pairs_find(pod->labels, pod->label_count, SLICE(VM_LABEL));

	return name != NULL ? object_store_find(parts->store, resource_kind(RESOURCE_VIRTUAL_MACHINES), pod->name_space,
	                                        *name)
	                    : NULL;
}

static void on_pod_added(struct parts *parts, struct stored_object *pod)
{
	struct stored_object *vm = vm_of_pod(parts, pod);
	struct object_edit pod_edit, vm_edit;
	char node[NEONVM_NAME_BYTES], name[NEONVM_NAME_BYTES], name_space[NEONVM_NAME_BYTES];
	struct vm_view view;
	struct error err;

	if (vm == NULL)
		return;
	open_object(&pod_edit, pod);
	open_object(&vm_edit, vm);
	view = vm_view_read(vm_edit.root);
	(void)snprintf(node, sizeof node, "%.*s",
	               SLICE_ARGS(json_tree_text(json_tree_find(pod_edit.root, "/spec/nodeName"))));
	(void)snprintf(name, sizeof name, "%.*s", SLICE_ARGS(pod->name));
	(void)snprintf(name_space, sizeof name_space, "%.*s", SLICE_ARGS(pod->name_space));
	if (!scheduler_plugin_add_pod(
		    parts->plugin,
		    &(struct scheduler_plugin_pod){
			    .name_space = name_space,
			    .name = name,
			    .node = node,
			    .is_vm = true,
			    .use = { view.cpu_use_milli, (uint64_t)view.slots_use * view.slot_bytes },
			    .maximum = { view.cpu_max_milli, (uint64_t)view.slots_max * view.slot_bytes },
			    .slot_bytes = view.slot_bytes },
		    &err))
		die("%s", err.text);
	object_edit_end(&vm_edit);
	object_edit_end(&pod_edit);
}

static void on_pod_deleted(struct parts *parts, const struct stored_object *pod)
{
	char name[NEONVM_NAME_BYTES], name_space[NEONVM_NAME_BYTES];

	(void)snprintf(name, sizeof name, "%.*s", SLICE_ARGS(pod->name));
	(void)snprintf(name_space, sizeof name_space, "%.*s", SLICE_ARGS(pod->name_space));
	scheduler_plugin_remove_pod(parts->plugin, name_space, name);
}

/* False while the node says nothing of what there is. */
static bool read_allocatable(struct stored_object *node, struct resources *ret_total)
{
	struct object_edit edit;
	bool ok;

	open_object(&edit, node);
	ok = vm_view_milli_cpu(json_tree_find(edit.root, "/status/allocatable/cpu"), &ret_total->cpu_milli) &&
	     vm_view_bytes(json_tree_find(edit.root, "/status/allocatable/memory"), &ret_total->mem_bytes);
	object_edit_end(&edit);
	return ok;
}

static void on_node_change(struct parts *parts, const struct object_change *change)
{
	struct resources before, total;
	char name[NEONVM_NAME_BYTES];
	struct error err;

	if (change->type == OBJECT_DELETED || !read_allocatable(change->after, &total) ||
	    (change->before != NULL && read_allocatable(change->before, &before)))
		return;
	(void)snprintf(name, sizeof name, "%.*s", SLICE_ARGS(change->after->name));
	if (!scheduler_plugin_add_node(parts->plugin, name, total, &err))
		die("%s", err.text);
}

static void on_change(void *context, const struct object_change *change)
{
	struct parts *parts = context;
	const struct resource_kind *kind = change->after->kind;

	if (kind == resource_kind(RESOURCE_VIRTUAL_MACHINES))
		on_vm_change(parts, change);
	else if (kind == resource_kind(RESOURCE_NODES))
		on_node_change(parts, change);
	else if (change->type == OBJECT_ADDED)
		on_pod_added(parts, change->after);
	else if (change->type == OBJECT_DELETED)
		on_pod_deleted(parts, change->after);
}

/* ---- what the parts tell ---- */

static void on_resized(void *context, const char *name, uint32_t cpu_milli, uint64_t memory_bytes, bool settled)
{
	struct parts *parts = context;

	(void)printf("%s: has %u milli-CPUs and %llu MiB%s\n", name, cpu_milli,
	             (unsigned long long)(memory_bytes / 1048576), settled ? "" : ", goes on");
	vm_part_set_size(guests_find_or_make(&parts->guests, slice_of(name)), cpu_milli, memory_bytes);
}

static void on_phase(void *context, const char *name, const char *phase)
{
	(void)context;
	(void)printf("%s: %s\n", name, phase);
}

static void on_answer(void *context, const struct scheduler_plugin_answer *answer)
{
	(void)context;
	if (!resources_equal(answer->wanted, answer->permit))
		(void)printf("%s: wants %u milli-CPUs, is permitted %u%s\n", answer->pod_name, answer->wanted.cpu_milli,
		             answer->permit.cpu_milli, answer->denied ? ": denied" : "");
}

static struct stored_object *find_pod(const struct parts *parts, const char *name)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_PODS);

	for (size_t i = 0; i < object_store_count(parts->store, kind); i++) {
		struct stored_object *pod = object_store_at(parts->store, kind, i);

		if (slice_equal_text(pod->name, name))
			return pod;
	}
	return NULL;
}

static void on_annotate(void *context, const char *pod_name, const char *key, struct slice json)
{
	struct parts *parts = context;
	const struct stored_object *pod = find_pod(parts, pod_name);
	struct stored_object *vm = pod != NULL ? vm_of_pod(parts, pod) : NULL;
	struct object_edit edit;
	struct json_node *annotations;
	struct error err;

	if (vm == NULL)
		return;
	open_object(&edit, vm);
	annotations = json_tree_ensure(&edit.arena, json_tree_find(edit.root, "/metadata"), SLICE("annotations"));
	if (!json_tree_set_text(&edit.arena, annotations, slice_of(key), json) ||
	    !object_edit_commit(&edit, parts->store, &err))
		die("annotation %s of VM %.*s can't be set", key, SLICE_ARGS(vm->name));
	object_edit_end(&edit);
}

/* ---- the control page ---- */

static void print_number(struct json_writer *writer, const char *key, uint64_t value)
{
	json_writer_key(writer, slice_of(key));
	json_writer_uint(writer, value);
}

static void print_vm(const struct vm_part *part, struct json_writer *writer)
{
	struct guest_counters counters = vm_part_counters(part);

	json_writer_key(writer, slice_of(part->name));
	json_writer_object_begin(writer);
	json_writer_key(writer, SLICE("podIP"));
	json_writer_string(writer, slice_of(part->pod_ip));
	json_writer_key(writer, SLICE("connected"));
	json_writer_bool(writer, part->guest != NULL && guest_monitor_state(part->guest) == GUEST_MONITOR_CONNECTED);
	print_number(writer, "cpuMilli", part->cpu_milli);
	print_number(writer, "memoryBytes", part->memory_bytes);
	print_number(writer, "patches", part->patches);
	print_number(writer, "scrapes", counters.system_scrapes);
	print_number(writer, "connections", counters.connections);
	print_number(writer, "upscales", counters.upscales);
	print_number(writer, "downscalesApproved", counters.downscales_approved);
	print_number(writer, "downscalesDenied", counters.downscales_denied);
	print_number(writer, "badMessages", counters.bad_messages);
	json_writer_object_end(writer);
}

static void print_state(void *context, struct json_writer *writer)
{
	const struct parts *parts = context;
	struct scheduler_plugin_counters plugin = scheduler_plugin_counters(parts->plugin);
	struct api_mirror_counters mirror = api_mirror_counters(parts->mirror);

	json_writer_object_begin(writer);
	json_writer_key(writer, SLICE("vms"));
	json_writer_object_begin(writer);
	for (const struct vm_part *part = parts->guests.parts; part != NULL; part = part->next)
		print_vm(part, writer);
	json_writer_object_end(writer);
	json_writer_key(writer, SLICE("plugin"));
	json_writer_object_begin(writer);
	print_number(writer, "requests", plugin.requests);
	print_number(writer, "denials", plugin.denials);
	print_number(writer, "errors", plugin.errors);
	json_writer_object_end(writer);
	json_writer_key(writer, SLICE("api"));
	json_writer_object_begin(writer);
	print_number(writer, "lists", mirror.lists);
	print_number(writer, "watches", mirror.watches);
	print_number(writer, "written", mirror.writes.written);
	print_number(writer, "repeated", mirror.writes.repeated);
	print_number(writer, "tooLate", mirror.writes.too_late);
	json_writer_object_end(writer);
	json_writer_object_end(writer);
}

static bool set_demand(struct vm_part *part, const struct json_node *arguments, struct error *err)
{
	int64_t units, held;

	if (!json_tree_integer(json_tree_find(arguments, "/units"), &units) ||
	    !json_tree_integer(json_tree_find(arguments, "/held"), &held) || units < 1 || held < 0)
		return error_set(err, ERROR_SYNTAX, "units and held are numbers of units");
	vm_part_set_demand(part, (unsigned)units, (unsigned)held);
	return true;
}

static bool migrate(struct parts *parts, struct vm_part *part, const struct json_node *arguments, struct error *err)
{
	char node[NEONVM_NAME_BYTES];

	(void)snprintf(node, sizeof node, "%.*s", SLICE_ARGS(json_tree_text(json_tree_find(arguments, "/node"))));
	guests_choose_address(&parts->guests, part);
	return neonvm_controller_migrate(parts->controller, slice_of(part->name),
	                                 &(struct neonvm_place){ .node = node, .pod_ip = part->place_ip }, err);
}

static bool on_command(void *context, struct slice command, const struct json_node *arguments, struct error *err)
{
	struct parts *parts = context;
	struct vm_part *part = guests_find(&parts->guests, json_tree_text(json_tree_find(arguments, "/vm")));

	if (part == NULL)
		return error_set(err, ERROR_REFUSED, "there is no such VM");
	if (slice_equal_text(command, "demand"))
		return set_demand(part, arguments, err);
	if (slice_equal_text(command, "migrate"))
		return migrate(parts, part, arguments, err);
	return error_set(err, ERROR_REFUSED, "there is no such command");
}

/* ---- life ---- */

/* What is on the nodes is known: now the scheduler shows itself. */
static void on_started(void *context)
{
	struct parts *parts = context;
	const struct resource_kind *nodes = resource_kind(RESOURCE_NODES);
	char ip[ADDRESS_TEXT_BYTES], node[NEONVM_NAME_BYTES] = "";
	struct json_node *root;
	struct arena arena;
	struct error err;

	if (object_store_count(parts->store, nodes) > 0)
		(void)snprintf(node, sizeof node, "%.*s", SLICE_ARGS(object_store_at(parts->store, nodes, 0)->name));
	address_print_host(&parts->plugin_address, false, ip);
	arena_init(&arena, OBJECT_STORE_ARENA_BYTES);
	if (!control_plane_make_scheduler_pod(CONTROL_PLANE_SCHEDULER, SCHEDULER_POD, ip, node,
	                                      loop_wall_ns(parts->loop), &arena, &root, &err) ||
	    !object_store_add(parts->store, resource_kind(RESOURCE_PODS), root, &arena, NULL, &err))
		die("%s", err.text);
	arena_destroy(&arena);
	(void)puts("ready");
}

static struct address address_of(const struct parts *parts, unsigned host, uint16_t port)
{
	char text[ADDRESS_TEXT_BYTES];
	struct address address;

	(void)snprintf(text, sizeof text, "%s.%u", parts->guests.prefix, host);
	if (!address_parse(slice_of(text), port, &address))
		die("\"%s\" is no address", text);
	return address;
}

static void start(struct parts *parts, const char *kubeconfig, double speed)
{
	static const struct neonvm_handler NEONVM = { .on_resized = on_resized, .on_phase = on_phase };
	static const struct scheduler_plugin_handler PLUGIN = { .on_answer = on_answer, .on_annotate = on_annotate };
	static const struct control_page_handler PAGE = { .print_state = print_state, .on_command = on_command };
	const struct kube_client_options options = { .kubeconfig = kubeconfig, .user_agent = "vm-parts" };
	const struct address page_address = address_of(parts, CONTROL_HOST, CONTROL_PORT);
	struct error err;

	parts->plugin_address = address_of(parts, PLUGIN_HOST, AGENT_SETUP_PLUGIN_PORT);
	parts->client = kube_client_create(parts->loop, &options, &err);
	if (parts->client == NULL)
		die("%s", err.text);
	parts->store = object_store_create(parts->loop, &err);
	if (parts->store == NULL)
		die("%s", err.text);
	parts->controller = neonvm_controller_create(parts->loop, parts->store, speed, &NEONVM, parts, &err);
	if (parts->controller == NULL)
		die("%s", err.text);
	parts->plugin = scheduler_plugin_start(parts->loop, &parts->plugin_address, speed, &PLUGIN, parts, &err);
	if (parts->plugin == NULL)
		die("%s", err.text);
	parts->observer = (struct object_observer){ .on_change = on_change, .context = parts };
	object_store_observe(parts->store, &parts->observer);
	parts->mirror = api_mirror_start(parts->loop, parts->client, parts->store, on_started, parts);
	parts->page = control_page_start(parts->loop, &page_address, &PAGE, parts);
}

static void finish(struct parts *parts)
{
	control_page_destroy(parts->page);
	api_mirror_destroy(parts->mirror);
	object_store_ignore(&parts->observer);
	scheduler_plugin_destroy(parts->plugin);
	neonvm_controller_destroy(parts->controller);
	guests_destroy(&parts->guests);
	object_store_destroy(parts->store);
	kube_client_destroy(parts->client);
}

static void on_signal(void *context)
{
	loop_stop(context);
}

/* Watches for SIGTERM, which also comes when whoever started this program ends. */
static int open_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
	struct parts parts = { .loop = NULL };
	struct loop_watch *watch;
	int signals = open_signals();
	double speed = argc == 4 ? strtod(argv[3], NULL) : 0;
	struct error err;

	if (speed <= 0)
		die("usage: kube.vm_parts KUBECONFIG PREFIX SPEED");
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	parts.loop = loop_epoll_create(&err);
	if (parts.loop == NULL)
		die("%s", err.text);
	parts.guests = (struct guests){ .loop = parts.loop, .prefix = argv[2] };
	watch = loop_watch_descriptor(parts.loop, signals, SOCKET_READ, on_signal, parts.loop, &err);
	if (watch == NULL)
		die("%s", err.text);
	start(&parts, argv[1], speed);
	if (!loop_run(parts.loop, &err))
		die("%s", err.text);
	finish(&parts);
	loop_watch_stop(watch);
	loop_destroy(parts.loop);
	(void)close(signals);
	return EXIT_SUCCESS;
}
