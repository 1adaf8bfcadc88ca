#include "api_mirror.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/table.h"
#include "die.h"
#include "kube/watch_store.h"
#include "merge_patch.h"

enum {
	KEY_BYTES = 512,
	UID_BYTES = 64,
	PATH_BYTES = 1024,
	TEXT_BYTES = 4 * 1024 * 1024,
	LIST_PAGE = 50,
	RETRY_LOW = 100, /* ms */
	RETRY_HIGH = 300,
};

/* Of the server's object under a name, alive or gone. */
struct entry {
	const struct resource_kind *kind;
	char key[KEY_BYTES];   /* in the table */
	char path[PATH_BYTES]; /* of the object */
	char list[PATH_BYTES]; /* where such objects are made */
	struct slice name_space, name;
	char uid[UID_BYTES];         /* "" while the server hasn't made it yet */
	char deleted_uid[UID_BYTES]; /* of a deletion that waits, or "" */
	uint64_t version;            /* that the store has */
	unsigned writes;             /* under way */
	bool gone;                   /* deleted here */
	struct buffer held;          /* what the server said last, while writes are under way */
	uint64_t held_version;
};

struct watched {
	struct api_mirror *mirror;
	const struct resource_kind *kind;
	struct watch_store *store;
	bool started;
};

enum { WATCHED_COUNT = 3 };

struct api_mirror {
	struct object_store *store;
	struct object_observer observer;
	struct api_writer *writer;
	struct watched watched[WATCHED_COUNT];
	struct table entries;
	bool applying;
	void (*on_started)(void *context);
	void *context;
	struct api_mirror_counters counters;
};

/* ---- entries ---- */

static struct entry *entry_of(struct api_mirror *mirror, const struct resource_kind *kind, struct slice name_space,
                              struct slice name)
{
	char key[KEY_BYTES], version[RESOURCE_API_VERSION_BYTES];
	struct entry *entry;
	int length;

	resource_kind_api_version(kind, version);
	(void)snprintf(key, sizeof key, "%s/%.*s/%.*s", kind->plural, SLICE_ARGS(name_space), SLICE_ARGS(name));
	entry = table_find(&mirror->entries, slice_of(key));
	if (entry != NULL)
		return entry;
	entry = memory_allocate(sizeof *entry);
	if (entry == NULL || !table_set(&mirror->entries, slice_of(key), entry))
		die("no memory for %s", key);
	entry->kind = kind;
	memcpy(entry->key, key, sizeof key);
	length = snprintf(entry->list, sizeof entry->list, "/%s/%s%s%.*s/%s", kind->group[0] != '\0' ? "apis" : "api",
	                  version, kind->namespaced ? "/namespaces/" : "", SLICE_ARGS(name_space), kind->plural);
	length = snprintf(entry->path, sizeof entry->path, "%.*s/%.*s", length, entry->list, SLICE_ARGS(name));
	entry->name = slice_from(entry->path + (size_t)length - name.length, name.length);
	entry->name_space = slice_from(entry->key + strlen(kind->plural) + 1, name_space.length);
	buffer_init(&entry->held, TEXT_BYTES);
	return entry;
}

static void forget_entry(struct api_mirror *mirror, struct entry *entry)
{
	(void)table_remove(&mirror->entries, slice_of(entry->key));
	buffer_destroy(&entry->held);
	memory_release(entry);
}

static struct slice text_at(const struct json_node *node, const char *pointer)
{
	return json_tree_text(json_tree_find(node, pointer));
}

static void copy_uid(char to[UID_BYTES], struct slice uid)
{
	(void)snprintf(to, UID_BYTES, "%.*s", SLICE_ARGS(uid));
}

static struct json_node *parse(struct slice text, struct arena *arena)
{
	struct json_node *root;
	struct error err;

	if (!json_tree_parse(text, arena, &root, &err))
		die("an object is no JSON: %s", err.text);
	return root;
}

/* etcd's revisions: they only rise. */
static uint64_t version_of(const struct json_node *root)
{
	uint64_t version = 0;

	(void)slice_to_u64(text_at(root, "/metadata/resourceVersion"), &version);
	return version;
}

/* ---- from the server into the store ---- */

static void remove_local(struct api_mirror *mirror, const struct entry *entry)
{
	struct stored_object *object = object_store_find(mirror->store, entry->kind, entry->name_space, entry->name);
	struct error err;

	if (object == NULL)
		return;
	mirror->applying = true;
	if (!object_store_forget(mirror->store, object, &err))
		die("%s: %s", entry->key, err.text);
	mirror->applying = false;
}

/* The last state of something that ends with it. */
static bool is_over(const struct json_node *root)
{
	const struct json_node *finalizers = json_tree_find(root, "/metadata/finalizers");

	return json_tree_find(root, "/metadata/deletionTimestamp") != NULL &&
	       (finalizers == NULL || finalizers->count == 0);
}

static void take(struct api_mirror *mirror, struct entry *entry, struct slice text)
{
	struct arena arena;
	struct json_node *root;
	struct slice uid;
	struct error err;

	arena_init(&arena, OBJECT_STORE_ARENA_BYTES);
	root = parse(text, &arena);
	uid = text_at(root, "/metadata/uid");
	if (entry->uid[0] != '\0' && !slice_equal_text(uid, entry->uid)) {
		/* Another one of that name: the deletion in between went by unseen. */
		remove_local(mirror, entry);
		entry->gone = false;
	}
	copy_uid(entry->uid, uid);
	entry->version = version_of(root);
	if (!entry->gone && !is_over(root)) {
		json_tree_remove(json_tree_find(root, "/metadata"), SLICE("managedFields"));
		mirror->applying = true;
		if (!object_store_mirror(mirror->store, entry->kind, root, &arena, &err))
			die("%s: %s", entry->key, err.text);
		mirror->applying = false;
	}
	arena_destroy(&arena);
}

/* Remembers what the server says of an object, if it is news. */
static void hold(struct entry *entry, struct slice text, uint64_t version)
{
	if (version <= entry->version || version <= entry->held_version)
		return;
	buffer_clear(&entry->held);
	buffer_append_slice(&entry->held, text);
	if (entry->held.failed)
		die("no memory for %s", entry->key);
	entry->held_version = version;
}

/* Lets the store have what was held, once nothing is on its way to the server. The entry may be gone then. */
static void settle(struct api_mirror *mirror, struct entry *entry)
{
	if (entry->writes > 0)
		return;
	if (entry->deleted_uid[0] != '\0' && strcmp(entry->deleted_uid, entry->uid) == 0) {
		remove_local(mirror, entry);
		entry->uid[0] = '\0';
		entry->gone = false;
		if (entry->held_version == 0) {
			forget_entry(mirror, entry);
			return;
		}
	}
	entry->deleted_uid[0] = '\0';
	if (entry->held_version > entry->version)
		take(mirror, entry, buffer_slice(&entry->held));
	buffer_clear(&entry->held);
	entry->held_version = 0;
}

struct remote_object {
	struct arena arena;
	struct slice uid, name_space, name, text;
	uint64_t version;
};

static void *decode(void *context, struct slice json, struct slice *ret_uid, struct slice *ret_name, struct error *err)
{
	struct remote_object *object = memory_allocate(sizeof *object);
	struct arena scratch;
	const struct json_node *root;

	(void)context;
	if (object == NULL)
		die("no memory for an object");
	arena_init(&object->arena, TEXT_BYTES);
	arena_init(&scratch, OBJECT_STORE_ARENA_BYTES);
	root = parse(json, &scratch);
	object->version = version_of(root);
	if (!arena_copy(&object->arena, text_at(root, "/metadata/uid"), &object->uid) ||
	    !arena_copy(&object->arena, text_at(root, "/metadata/namespace"), &object->name_space) ||
	    !arena_copy(&object->arena, text_at(root, "/metadata/name"), &object->name) ||
	    !arena_copy(&object->arena, json, &object->text))
		die("no memory for an object");
	arena_destroy(&scratch);
	*ret_uid = object->uid;
	*ret_name = object->name;
	if (object->uid.length > 0)
		return object;
	error_set(err, ERROR_SYNTAX, "an object without uid");
	arena_destroy(&object->arena);
	memory_release(object);
	return NULL;
}

static void release(void *context, void *object)
{
	(void)context;
	arena_destroy(&((struct remote_object *)object)->arena);
	memory_release(object);
}

static void on_add(void *context, void *object)
{
	struct watched *watched = context;
	const struct remote_object *remote = object;
	struct entry *entry = entry_of(watched->mirror, watched->kind, remote->name_space, remote->name);

	hold(entry, remote->text, remote->version);
	settle(watched->mirror, entry);
}

static void on_update(void *context, void *before, void *after)
{
	(void)before;
	on_add(context, after);
}

static void on_delete(void *context, void *object)
{
	struct watched *watched = context;
	const struct remote_object *remote = object;
	struct entry *entry = entry_of(watched->mirror, watched->kind, remote->name_space, remote->name);

	copy_uid(entry->deleted_uid, remote->uid);
	settle(watched->mirror, entry);
}

static void on_written(void *context, void *subject, struct slice answer)
{
	struct api_mirror *mirror = context;
	struct entry *entry = subject;

	entry->writes--;
	if (answer.length > 0) {
		struct arena arena;

		arena_init(&arena, OBJECT_STORE_ARENA_BYTES);
		hold(entry, answer, version_of(parse(answer, &arena)));
		arena_destroy(&arena);
	}
	settle(mirror, entry);
}

/* ---- from the store to the server ---- */

static void write_object(struct api_mirror *mirror, struct entry *entry, const char *method, const char *path,
                         const struct json_node *body)
{
	struct buffer text;
	struct error err;

	buffer_init(&text, TEXT_BYTES);
	if (body != NULL && !json_tree_print(body, &text, &err))
		die("%s: %s", entry->key, err.text);
	entry->writes++;
	api_writer_write(
		mirror->writer,
		&(struct api_write){ .method = method, .path = path, .body = buffer_slice(&text), .subject = entry });
	buffer_destroy(&text);
}

/* Takes from a tree what isn't for clients to set; returns its status, which is written by another path. */
static struct json_node *cut_status(struct json_node *root, struct arena *arena)
{
	static const char *const SERVERS[] = { "uid",
		                               "resourceVersion",
		                               "generation",
		                               "selfLink",
		                               "creationTimestamp",
		                               "deletionTimestamp",
		                               "deletionGracePeriodSeconds",
		                               "managedFields" };
	struct json_node *metadata = json_tree_find(root, "/metadata");
	struct json_node *status = json_tree_ensure(arena, root, SLICE("status"));

	if (status == NULL)
		die("no memory for a patch");
	for (size_t i = 0; i < sizeof SERVERS / sizeof *SERVERS; i++)
		json_tree_remove(metadata, slice_of(SERVERS[i]));
	json_tree_remove(root, SLICE("status"));
	return status;
}

static void write_status(struct api_mirror *mirror, struct entry *entry, struct arena *arena, struct json_node *status)
{
	struct json_node *body = json_tree_object(arena);
	char path[PATH_BYTES + 8];

	if (!json_tree_set(body, SLICE("status"), status))
		die("no memory for a patch");
	(void)snprintf(path, sizeof path, "%s/status", entry->path);
	write_object(mirror, entry, "PATCH", path, body);
}

static void on_modified(struct api_mirror *mirror, struct entry *entry, const struct object_change *change,
                        struct arena *arena)
{
	struct json_node *before = parse(change->before->text, arena), *after = parse(change->after->text, arena);
	const struct json_node *old_status = cut_status(before, arena), *new_status = cut_status(after, arena);
	struct json_node *patch = merge_patch_make(arena, before, after),
			 *status = merge_patch_make(arena, old_status, new_status);

	if (patch != NULL)
		write_object(mirror, entry, "PATCH", entry->path, patch);
	if (status != NULL && change->type != OBJECT_DELETED)
		write_status(mirror, entry, arena, status);
}

static void on_added(struct api_mirror *mirror, struct entry *entry, const struct object_change *change,
                     struct arena *arena)
{
	struct json_node *root = parse(change->after->text, arena), *status = cut_status(root, arena);

	entry->uid[0] = '\0';
	entry->gone = false;
	write_object(mirror, entry, "POST", entry->list, root);
	if (status->count > 0)
		write_status(mirror, entry, arena, status);
}

static void on_deleted(struct api_mirror *mirror, struct entry *entry, const struct object_change *change,
                       struct arena *arena)
{
	const struct json_node *finalizers = json_tree_find(parse(change->before->text, arena), "/metadata/finalizers");

	entry->gone = true;
	if (finalizers != NULL && finalizers->count > 0)
		on_modified(mirror, entry, change, arena); /* gone with its last finalizer */
	else
		write_object(mirror, entry, "DELETE", entry->path, NULL);
}

static void on_change(void *context, const struct object_change *change)
{
	struct api_mirror *mirror = context;
	const struct stored_object *object = change->after;
	struct arena arena;
	struct entry *entry;

	if (mirror->applying)
		return;
	entry = entry_of(mirror, object->kind, object->name_space, object->name);
	arena_init(&arena, OBJECT_STORE_ARENA_BYTES);
	if (change->type == OBJECT_ADDED)
		on_added(mirror, entry, change, &arena);
	else if (change->type == OBJECT_MODIFIED)
		on_modified(mirror, entry, change, &arena);
	else
		on_deleted(mirror, entry, change, &arena);
	arena_destroy(&arena);
}

/* ---- life ---- */

static const struct watch_store_type TYPES[WATCHED_COUNT] = {
	{ .path = "/api/v1/nodes", .resource = "nodes", .decode = decode, .release = release },
	{ .path = "/apis/vm.neon.tech/v1/virtualmachines",
	  .resource = "virtualmachines",
	  .decode = decode,
	  .release = release },
	{ .path = "/api/v1/pods",
	  .label_selector = "app.kubernetes.io/name=NeonVM",
	  .resource = "pods",
	  .decode = decode,
	  .release = release },
};
static const enum resource KINDS[WATCHED_COUNT] = { RESOURCE_NODES, RESOURCE_VIRTUAL_MACHINES, RESOURCE_PODS };

static void on_started(void *context)
{
	struct watched *watched = context;
	struct api_mirror *mirror = watched->mirror;

	watched->started = true;
	for (size_t i = 0; i < WATCHED_COUNT; i++) {
		if (!mirror->watched[i].started)
			return;
	}
	mirror->on_started(mirror->context);
}

static void on_start_failed(void *context, const struct error *err)
{
	(void)context;
	die("%s", err->text);
}

static void on_call(void *context, enum watch_store_call call)
{
	struct api_mirror_counters *counters = &((struct watched *)context)->mirror->counters;

	if (call == WATCH_STORE_LIST)
		counters->lists++;
	else
		counters->watches++;
}

struct api_mirror *api_mirror_start(struct loop *loop, struct kube_client *client, struct object_store *store,
                                    void (*started)(void *context), void *context)
{
	static const struct watch_store_options OPTIONS = { .deliver_before_watch = true,
		                                            .retry_unit_ns = NS_PER_MS,
		                                            .retry_low = RETRY_LOW,
		                                            .retry_high = RETRY_HIGH,
		                                            .page_size = LIST_PAGE };
	static const struct watch_store_handler HANDLER = { .on_add = on_add,
		                                            .on_update = on_update,
		                                            .on_delete = on_delete,
		                                            .on_started = on_started,
		                                            .on_start_failed = on_start_failed,
		                                            .on_call = on_call };
	struct api_mirror *mirror = memory_allocate(sizeof *mirror);
	struct error err;

	if (mirror == NULL)
		die("no memory for a mirror");
	mirror->store = store;
	mirror->on_started = started;
	mirror->context = context;
	table_init(&mirror->entries);
	mirror->writer = api_writer_create(loop, client, on_written, mirror);
	mirror->observer = (struct object_observer){ .on_change = on_change, .context = mirror };
	object_store_observe(store, &mirror->observer);
	for (size_t i = 0; i < WATCHED_COUNT; i++) {
		struct watched *watched = &mirror->watched[i];

		watched->mirror = mirror;
		watched->kind = resource_kind(KINDS[i]);
		watched->store = watch_store_start(loop, client, &TYPES[i], &OPTIONS, &HANDLER, watched, &err);
		if (watched->store == NULL)
			die("%s", err.text);
	}
	return mirror;
}

void api_mirror_destroy(struct api_mirror *mirror)
{
	struct table_entry *entry;

	object_store_ignore(&mirror->observer);
	for (size_t i = 0; i < WATCHED_COUNT; i++)
		watch_store_destroy(mirror->watched[i].store);
	api_writer_destroy(mirror->writer);
	while ((entry = table_next(&mirror->entries, NULL)) != NULL)
		forget_entry(mirror, entry->value);
	table_destroy(&mirror->entries);
	memory_release(mirror);
}

bool api_mirror_is_applying(const struct api_mirror *mirror)
{
	return mirror->applying;
}

struct api_mirror_counters api_mirror_counters(const struct api_mirror *mirror)
{
	struct api_mirror_counters counters = mirror->counters;

	counters.writes = api_writer_counters(mirror->writer);
	return counters;
}
