/*
 * VirtualMachine objects as JSON, and a record of the events made of them.
 */
#ifndef BALLAST_TESTS_VM_OBJECTS_H
#define BALLAST_TESTS_VM_OBJECTS_H

#include <stdio.h>
#include <string.h>

#include "agent/vm_event.h"

enum { VM_OBJECT_BYTES = 2048 };

struct vm_object {
	const char *uid;
	const char *name;
	const char *phase;
	const char *node;
	const char *pod_ip;
	const char *pod_name;
	const char *enabled;
	const char *scheduler;
	const char *endpoint_id;
	const char *bounds;      /* as it stands in a JSON string; NULL: no annotation */
	const char *status;      /* more of it: `,"cpus":"500m"` */
	const char *annotations; /* more of them: `,"a":"b"` */
	const char *use;         /* CPU */
};

/* On node n1, and ours. */
static struct vm_object vm_object_base(void)
{
	return (struct vm_object){
		.uid = "u1",
		.name = "vm-a",
		.phase = "Running",
		.node = "n1",
		.pod_ip = "10.0.0.5",
		.pod_name = "p1",
		.enabled = "true",
		.scheduler = "autoscale-scheduler",
		.endpoint_id = "ep-1",
		.status = "",
		.annotations = "",
		.use = "500m",
	};
}

static void vm_object_print(const struct vm_object *vm, char *text)
{
	char bounds[512] = "";
	int length;

	if (vm->bounds != NULL)
		snprintf(bounds, sizeof bounds, ",\"autoscaling.neon.tech/bounds\":\"%s\"", vm->bounds);
	length = snprintf(
		text, VM_OBJECT_BYTES,
		"{\"apiVersion\":\"vm.neon.tech/v1\",\"kind\":\"VirtualMachine\",\"metadata\":{\"name\":\"%s\","
		"\"namespace\":\"apps\",\"uid\":\"%s\",\"resourceVersion\":\"11\",\"labels\":{"
		"\"autoscaling.neon.tech/enabled\":\"%s\",\"neon/endpoint-id\":\"%s\",\"neon/project-id\":\"pr-1\"},"
		"\"annotations\":{\"x\":\"y\"%s%s}},"
		"\"spec\":{\"schedulerName\":\"%s\",\"guest\":{\"cpus\":{\"min\":\"250m\",\"max\":2,\"use\":\"%s\"},"
		"\"memorySlotSize\":\"1Gi\",\"memorySlots\":{\"min\":1,\"max\":8,\"use\":2}}},"
		"\"status\":{\"phase\":\"%s\",\"node\":\"%s\",\"podIP\":\"%s\",\"podName\":\"%s\",\"restartCount\":1%s}}",
		vm->name, vm->uid, vm->enabled, vm->endpoint_id, bounds, vm->annotations, vm->scheduler, vm->use,
		vm->phase, vm->node, vm->pod_ip, vm->pod_name, vm->status);
	assert_true(length < VM_OBJECT_BYTES);
}

/* "added vm-a p1 10.0.0.5 ep-1 250/2000/500\n…" */
struct event_record {
	char text[4096];
};

static void event_record_add(struct event_record *record, const struct vm_event *event)
{
	size_t length = strlen(record->text);

	snprintf(record->text + length, sizeof record->text - length, "%s %s/%s %.*s %.*s %.*s %u/%u/%u\n",
	         vm_event_kind_name(event->kind), event->vm_info->namespace, event->vm_info->name,
	         SLICE_ARGS(event->pod_name), SLICE_ARGS(event->pod_ip), SLICE_ARGS(event->endpoint_id),
	         event->vm_info->cpu.min_milli, event->vm_info->cpu.max_milli, event->vm_info->cpu.use_milli);
}

/* The kinds alone: "added updated". */
static void event_record_kinds(const struct event_record *record, char *text, size_t size)
{
	const char *line = record->text;

	text[0] = '\0';
	while (*line != '\0') {
		size_t length = strlen(text);

		snprintf(text + length, size - length, "%s%.*s", length > 0 ? " " : "", (int)strcspn(line, " "), line);
		line = strchr(line, '\n') + 1;
	}
}

#define assert_events(record, expected)                            \
	do {                                                       \
		char kinds_[1024];                                 \
		event_record_kinds(record, kinds_, sizeof kinds_); \
		assert_string_equal(kinds_, expected);             \
		(record)->text[0] = '\0';                          \
	} while (0)

#endif
