#include "extender/capacity_requests.h"

#include <string.h>

#include "codec/json_reader.h"
#include "extender/limits.h"
#include "extender/storage_size.h"

/* What one look at the pod's volumes has at hand. */
struct walk {
	const struct extender_settings *settings;
	const struct storage_view *view;
	const struct extender_pod *pod;
	struct arena *arena;
	struct capacity_plan plan;
};

/* --- storage types --- */

struct slice storage_type_of(struct slice parameter)
{
	static const struct slice TYPES[] = {
		SLICE_INIT("HDD"),    SLICE_INIT("SSD"),     SLICE_INIT("NVME"),   SLICE_INIT("HDDLVG"),
		SLICE_INIT("SSDLVG"), SLICE_INIT("NVMELVG"), SLICE_INIT("SYSLVG"),
	};

	for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
		if (slice_equal_fold(parameter, TYPES[i]))
			return TYPES[i];
	}
	return SLICE("ANY");
}

/* --- memory: the plan outlives the caches' answers --- */

static bool keep(struct walk *walk, struct slice text, struct slice *ret_copy, struct error *err)
{
	if (text.length == 0) {
		*ret_copy = slice_from(NULL, 0);
		return true;
	}
	if (!arena_copy(walk->arena, text, ret_copy))
		return error_set(err, ERROR_NO_MEMORY, "no memory for the pod's volumes");
	return true;
}

/* `<pod name>-<volume name>`: how Kubernetes names the claim of an ephemeral volume. */
static bool make_name(struct walk *walk, struct slice volume, struct slice *ret_name, struct error *err)
{
	struct slice pod = walk->pod->metadata.name;
	size_t length = pod.length + 1 + volume.length;
	char *name = arena_allocate(walk->arena, length);

	if (name == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the pod's volumes");
	if (pod.length > 0)
		memcpy(name, pod.data, pod.length);
	name[pod.length] = '-';
	if (volume.length > 0)
		memcpy(name + pod.length + 1, volume.data, volume.length);
	*ret_name = slice_from(name, length);
	return true;
}

static bool add_request(struct walk *walk, struct capacity_request request, struct error *err)
{
	if (!keep(walk, request.storage_group, &request.storage_group, err))
		return false;
	walk->plan.requests[walk->plan.request_count++] = request;
	return true;
}

/* --- kinds of volumes: each fills its note --- */

/* Whether the class is ours (E2, E3, C5 to C7): the verdict, and the storage type if it is. */
static enum volume_verdict judge_class(const struct walk *walk, struct slice class_name, struct slice *ret_type)
{
	struct class_view class;

	if (!walk->view->find_class(walk->view->context, class_name, &class))
		return VOLUME_CLASS_UNKNOWN;
	if (!slice_equal(class.provisioner, walk->settings->provisioner))
		return VOLUME_FOREIGN_CLASS;
	*ret_type = storage_type_of(class.storage_type);
	return VOLUME_REQUESTED;
}

static bool take_ephemeral(struct walk *walk, const struct extender_pod_volume *volume, struct volume_note *note,
                           struct error *err)
{
	const struct extender_claim_template *template = &volume->ephemeral.volume_claim_template;
	struct capacity_request request = { 0 };
	const struct slice *group;

	note->verdict = VOLUME_NO_CLASS;
	if (!template->spec.has_storage_class_name) /* also without a template (G10) */
		return true;
	note->class_name = template->spec.storage_class_name;
	note->verdict = judge_class(walk, note->class_name, &request.storage_type);
	if (note->verdict != VOLUME_REQUESTED)
		return true;
	if (!storage_size_from_quantity(template->spec.resources.requests.storage, &request.size_bytes, err))
		return error_wrap(err, "volume \"%.*s\"", SLICE_ARGS(volume->name));
	group = json_pairs_find(template->metadata.labels, template->metadata.labels_count, STORAGE_GROUP_LABEL);
	if (group != NULL)
		request.storage_group = *group;
	return make_name(walk, volume->name, &request.name, err) && add_request(walk, request, err);
}

static enum volume_verdict judge_claim(const struct walk *walk, const struct claim_view *claim, struct slice *ret_type)
{
	if (!claim->has_class_name)
		return VOLUME_NO_CLASS;
	if (slice_equal_text(claim->phase, "Bound"))
		return VOLUME_BOUND;
	if (slice_equal_text(claim->phase, "Lost"))
		return VOLUME_LOST;
	return judge_class(walk, claim->class_name, ret_type);
}

static bool take_claim(struct walk *walk, const struct extender_pod_volume *volume, struct volume_note *note,
                       struct error *err)
{
	struct claim_view claim = { 0 };
	struct capacity_request request = { .name = volume->persistent_volume_claim.claim_name };

	note->claim = request.name;
	note->verdict = VOLUME_CLAIM_MISSING;
	if (!walk->view->find_claim(walk->view->context, walk->pod->metadata.namespace, request.name, &claim))
		return true;
	note->verdict = judge_claim(walk, &claim, &request.storage_type);
	if (claim.has_class_name && !keep(walk, claim.class_name, &note->class_name, err))
		return false;
	if (note->verdict != VOLUME_REQUESTED)
		return true;
	request.size_bytes = claim.size_bytes;
	request.storage_group = claim.storage_group;
	return add_request(walk, request, err);
}

static struct slice attribute(const struct extender_csi_volume *csi, struct slice key)
{
	const struct slice *value = json_pairs_find(csi->volume_attributes, csi->volume_attributes_count, key);

	return value != NULL ? *value : slice_from(NULL, 0);
}

/* An inline volume is never an error: what can't be read counts as size 0 (L3). */
static bool take_inline(struct walk *walk, const struct extender_pod_volume *volume, struct volume_note *note,
                        struct error *err)
{
	struct slice type = attribute(&volume->csi, SLICE("storageType"));
	struct capacity_request request = { .storage_type = storage_type_of(type) };

	note->verdict = VOLUME_FOREIGN_DRIVER;
	if (!slice_equal(volume->csi.driver, walk->settings->provisioner))
		return true;
	note->verdict = VOLUME_REQUESTED;
	note->bad_storage_type = type.length == 0;
	note->bad_size = !storage_size_from_inline(attribute(&volume->csi, SLICE("size")), &request.size_bytes);
	if (note->bad_storage_type)
		request.size_bytes = 0;
	return make_name(walk, volume->name, &request.name, err) && add_request(walk, request, err);
}

static bool take_volume(struct walk *walk, const struct extender_pod_volume *volume, struct volume_note *note,
                        struct error *err)
{
	note->volume = volume->name;
	if (volume->has_csi && walk->settings->inline_volumes)
		return take_inline(walk, volume, note, err);
	if (volume->has_ephemeral)
		return take_ephemeral(walk, volume, note, err);
	if (volume->has_persistent_volume_claim)
		return take_claim(walk, volume, note, err);
	note->verdict = VOLUME_OTHER_KIND;
	return true;
}

bool capacity_plan_make(const struct extender_settings *settings, const struct storage_view *view,
                        const struct extender_pod *pod, struct arena *arena, struct capacity_plan *ret_plan,
                        struct error *err)
{
	struct walk walk = { .settings = settings, .view = view, .pod = pod, .arena = arena };
	size_t count = pod->spec.volumes_count;

	if (count > EXTENDER_POD_VOLUMES)
		return error_set(err, ERROR_LIMIT, "the pod has %zu volumes, more than %d", count,
		                 EXTENDER_POD_VOLUMES);
	if (count > 0) {
		walk.plan.requests = arena_allocate_array(arena, count, sizeof *walk.plan.requests);
		walk.plan.notes = arena_allocate_array(arena, count, sizeof *walk.plan.notes);
		if (walk.plan.requests == NULL || walk.plan.notes == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory for the pod's %zu volumes", count);
	}
	for (size_t i = 0; i < count && walk.plan.outcome == CAPACITY_KNOWN; i++) {
		struct volume_note *note = &walk.plan.notes[walk.plan.note_count++];

		if (!take_volume(&walk, &pod->spec.volumes[i], note, err))
			return false;
		if (note->verdict == VOLUME_CLAIM_MISSING || note->verdict == VOLUME_CLASS_UNKNOWN)
			walk.plan.outcome = CAPACITY_RETRY;
	}
	*ret_plan = walk.plan;
	return true;
}

/* --- notes --- */

bool volume_note_is_worth_logging(const struct volume_note *note)
{
	switch (note->verdict) {
	case VOLUME_REQUESTED:
		return note->bad_storage_type || note->bad_size;
	case VOLUME_OTHER_KIND:
	case VOLUME_BOUND:
	case VOLUME_FOREIGN_DRIVER:
		return false;
	default:
		return true;
	}
}

static void print_inline(const struct volume_note *note, struct buffer *out)
{
	if (note->bad_storage_type)
		buffer_append_text(out, " though its attribute storageType is missing: any type, size 0");
	else if (note->bad_size)
		buffer_append_text(out, " though its attribute size is missing or no size: size 0");
}

void volume_note_print(const struct volume_note *note, struct buffer *out)
{
	buffer_append_format(out, "volume \"%.*s\"", SLICE_ARGS(note->volume));
	if (note->claim.length > 0)
		buffer_append_format(out, " (claim \"%.*s\")", SLICE_ARGS(note->claim));
	switch (note->verdict) {
	case VOLUME_REQUESTED:
		buffer_append_text(out, " is requested");
		print_inline(note, out);
		break;
	case VOLUME_OTHER_KIND:
		buffer_append_text(out, " is of a kind that needs no capacity");
		break;
	case VOLUME_NO_CLASS:
		buffer_append_text(out, " is passed over: it names no storage class");
		break;
	case VOLUME_BOUND:
		buffer_append_text(out, " is passed over: the claim is bound");
		break;
	case VOLUME_LOST:
		buffer_append_text(out, " is passed over: the claim has lost its volume");
		break;
	case VOLUME_FOREIGN_CLASS:
		buffer_append_format(out, " is passed over: storage class \"%.*s\" has another provisioner",
		                     SLICE_ARGS(note->class_name));
		break;
	case VOLUME_FOREIGN_DRIVER:
		buffer_append_text(out, " is passed over: it has another driver");
		break;
	case VOLUME_CLAIM_MISSING:
		buffer_append_text(out, " has to wait: there is no such claim yet");
		break;
	case VOLUME_CLASS_UNKNOWN:
		buffer_append_format(out, " has to wait: there is no storage class \"%.*s\"",
		                     SLICE_ARGS(note->class_name));
		break;
	}
}
