/*
 * A watch store under test: its objects are texts "uid@resourceVersion", its handlers write down what they are told.
 */
#ifndef BALLAST_TESTS_WATCH_FIXTURE_H
#define BALLAST_TESTS_WATCH_FIXTURE_H

#include "kube_fixture.h"

#include "base/arena.h"
#include "gen/kube.gen.h"
#include "kube/limits.h"
#include "kube/watch_store.h"

#define VM_PATH "/apis/vm.neon.tech/v1/virtualmachines"

struct watched_object {
	char uid[64];
	char name[64];
	char text[128]; /* "uid@resourceVersion" */
};

struct watch_fixture {
	struct kube_fixture *kube;
	struct watch_store *store;
	struct watch_store_type type;
	struct watch_store_options options;
	struct arena arena;
	char calls[16 * 1024];
	int objects; /* alive */
	unsigned events[5];
	unsigned errors[3];
	unsigned lists, watches;
	bool started;
	bool start_failed;
	struct error start_error;
	unsigned seen;          /* requests looked at by next_request */
	const char *destroy_at; /* the call in which the handler destroys the store */
	bool destroyed;
};

static void note(struct watch_fixture *fixture, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(struct watch_fixture *fixture, const char *format, ...)
{
	size_t used = strlen(fixture->calls);
	const char *call = fixture->calls + used;
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(fixture->calls + used, sizeof fixture->calls - used, format, arguments);
	va_end(arguments);
	if (fixture->destroy_at != NULL && strcmp(call, fixture->destroy_at) == 0) {
		watch_store_destroy(fixture->store);
		fixture->store = NULL;
		fixture->destroyed = true;
	}
}

static void *watched_decode(void *context, struct slice json, struct slice *ret_uid, struct slice *ret_name,
                            struct error *err)
{
	struct watch_fixture *fixture = context;
	struct watched_object *object;
	struct kube_bookmark decoded;

	arena_reset(&fixture->arena);
	if (!kube_bookmark_from_json(json, &fixture->arena, &decoded, err))
		return NULL;
	if (decoded.metadata.uid.length == 0) {
		(void)error_set(err, ERROR_SYNTAX, "an object without uid");
		return NULL;
	}
	object = calloc(1, sizeof *object);
	fixture->objects++;
	(void)snprintf(object->uid, sizeof object->uid, "%.*s", SLICE_ARGS(decoded.metadata.uid));
	(void)snprintf(object->name, sizeof object->name, "%.*s", SLICE_ARGS(decoded.metadata.name));
	(void)snprintf(object->text, sizeof object->text, "%s@%.*s", object->uid,
	               SLICE_ARGS(decoded.metadata.resource_version));
	*ret_uid = slice_of(object->uid);
	*ret_name = slice_of(object->name);
	return object;
}

static void watched_release(void *context, void *object)
{
	struct watch_fixture *fixture = context;

	fixture->objects--;
	free(object);
}

static void watched_add(void *context, void *object)
{
	struct watched_object *added = object;

	note(context, "add(%s) ", added->text);
}

static void watched_update(void *context, void *before, void *after)
{
	struct watched_object *old = before;
	struct watched_object *new = after;

	note(context, "update(%s,%s) ", old->text, new->text);
}

static void watched_delete(void *context, void *object)
{
	struct watched_object *deleted = object;

	note(context, "delete(%s) ", deleted->text);
}

static void watched_started(void *context)
{
	struct watch_fixture *fixture = context;

	fixture->started = true;
	note(fixture, "started ");
}

static void watched_start_failed(void *context, const struct error *err)
{
	struct watch_fixture *fixture = context;

	fixture->start_failed = true;
	fixture->start_error = *err;
	note(fixture, "start-failed ");
}

static void watched_call(void *context, enum watch_store_call call)
{
	struct watch_fixture *fixture = context;

	if (call == WATCH_STORE_LIST)
		fixture->lists++;
	else
		fixture->watches++;
}

static void watched_event(void *context, enum watch_store_event event)
{
	struct watch_fixture *fixture = context;

	fixture->events[event]++;
}

static void watched_error(void *context, enum watch_store_error error)
{
	struct watch_fixture *fixture = context;

	fixture->errors[error]++;
}

static void watched_failing(void *context, bool failing)
{
	note(context, failing ? "failing " : "well ");
}

static const struct watch_store_handler WATCHED_HANDLER = {
	.on_add = watched_add,
	.on_update = watched_update,
	.on_delete = watched_delete,
	.on_started = watched_started,
	.on_start_failed = watched_start_failed,
	.on_call = watched_call,
	.on_event = watched_event,
	.on_error = watched_error,
	.on_failing = watched_failing,
};

/* The agent's options for VMs; change them before start_watching. */
UNUSED_HERE static struct watch_fixture *watch_fixture_create(void)
{
	struct watch_fixture *fixture = calloc(1, sizeof *fixture);

	fixture->kube = fixture_create();
	fixture->type = (struct watch_store_type){
		.path = VM_PATH,
		.resource = "virtualmachines.vm.neon.tech",
		.decode = watched_decode,
		.release = watched_release,
	};
	fixture->options = (struct watch_store_options){
		.retry_unit_ns = NS_PER_MS,
		.retry_low = 500,
		.retry_high = 1000,
		.page_size = 500,
		.logger = fixture_logger(fixture->kube),
	};
	arena_init(&fixture->arena, (size_t)64 * 1024 * 1024);
	return fixture;
}

UNUSED_HERE static int watch_set_up(void **state)
{
	*state = watch_fixture_create();
	return 0;
}

UNUSED_HERE static int watch_tear_down(void **state)
{
	struct watch_fixture *fixture = *state;

	watch_store_destroy(fixture->store);
	assert_int_equal(fixture->objects, 0);
	fixture_destroy(fixture->kube);
	arena_destroy(&fixture->arena);
	free(fixture);
	return 0;
}

UNUSED_HERE static void start_watching(struct watch_fixture *fixture)
{
	struct error err;

	fixture->store = watch_store_start(fixture->kube->loop, fixture->kube->client, &fixture->type,
	                                   &fixture->options, &WATCHED_HANDLER, fixture, &err);
	if (fixture->store == NULL)
		fail_msg("watch_store_start: %s", err.text);
}

UNUSED_HERE static void spin(struct watch_fixture *fixture)
{
	test_loop_spin(fixture->kube->loop, 25);
}

/* The next request that comes or has come. */
UNUSED_HERE static struct scripted_request *next_request(struct watch_fixture *fixture)
{
	return scripted_api_wait(fixture->kube->api, ++fixture->seen);
}

UNUSED_HERE static void expect_no_request(struct watch_fixture *fixture)
{
	spin(fixture);
	assert_int_equal(scripted_api_request_count(fixture->kube->api), fixture->seen);
}

UNUSED_HERE static bool is_watch(const struct scripted_request *request)
{
	return slice_contains(request->target, SLICE("watch=true"));
}

/* The next request must be a list's first page. */
UNUSED_HERE static struct scripted_request *next_list(struct watch_fixture *fixture)
{
	struct scripted_request *request = next_request(fixture);

	expect_slice(request->target, VM_PATH "?limit=500");
	return request;
}

/* The next request must be a watch from that version. *ret_seconds may be NULL. */
UNUSED_HERE static struct scripted_request *next_watch(struct watch_fixture *fixture, const char *version,
                                                       unsigned *ret_seconds)
{
	struct scripted_request *request = next_request(fixture);
	unsigned seconds;
	char format[256];
	char target[256];

	(void)snprintf(target, sizeof target, "%.*s", SLICE_ARGS(request->target));
	(void)snprintf(format, sizeof format,
	               VM_PATH "?allowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=", version);
	if (strncmp(target, format, strlen(format)) != 0 || sscanf(target + strlen(format), "%u", &seconds) != 1)
		fail_msg("\"%s\" isn't a watch from %s", target, version);
	(void)snprintf(format + strlen(format), sizeof format - strlen(format), "%u&watch=true", seconds);
	assert_string_equal(target, format);
	if (ret_seconds != NULL)
		*ret_seconds = seconds;
	return request;
}

/* "a@1 b@2" as a list's JSON. */
UNUSED_HERE static char *list_json(const char *version, const char *objects, char *json, size_t size)
{
	struct slice rest = slice_of(objects);
	size_t used = (size_t)snprintf(json, size, "{\"apiVersion\":\"vm.neon.tech/v1\",\"items\":[");
	bool first = true;

	while (rest.length > 0) {
		struct slice object = slice_take_until(&rest, ' ');
		struct slice uid = slice_take_until(&object, '@');

		used += (size_t)snprintf(
			json + used, size - used,
			"%s{\"metadata\":{\"name\":\"name-%.*s\",\"resourceVersion\":\"%.*s\",\"uid\":\"%.*s\"}}",
			first ? "" : ",", SLICE_ARGS(uid), SLICE_ARGS(object), SLICE_ARGS(uid));
		first = false;
		assert_true(used < size);
	}
	used += (size_t)snprintf(
		json + used, size - used,
		"],\"kind\":\"VirtualMachineList\",\"metadata\":{\"continue\":\"\",\"resourceVersion\":\"%s\"}}\n",
		version);
	assert_true(used < size);
	return json;
}

UNUSED_HERE static void reply_list(struct scripted_request *request, const char *version, const char *objects)
{
	char json[8192];

	scripted_reply(request, 200, "", list_json(version, objects, json, sizeof json));
}

/* "MODIFIED a@2" as one line of a watch. */
UNUSED_HERE static char *event_json(const char *event, char *json, size_t size)
{
	char type[32];
	char uid[64];
	char version[32];

	assert_int_equal(sscanf(event, "%31s %63[^@]@%31s", type, uid, version), 3);
	(void)snprintf(
		json, size,
		"{\"type\":\"%s\",\"object\":{\"apiVersion\":\"vm.neon.tech/v1\",\"kind\":\"VirtualMachine\",\"metadata\":{\"name\":\"name-%s\","
		"\"resourceVersion\":\"%s\",\"uid\":\"%s\"}}}\n",
		type, uid, version, uid);
	return json;
}

UNUSED_HERE static void send_event(struct scripted_request *request, const char *event)
{
	char json[1024];

	scripted_chunk_text(request, event_json(event, json, sizeof json));
}

UNUSED_HERE static void expect_calls(struct watch_fixture *fixture, const char *calls)
{
	/* Everything sent so far gets its time to arrive. */
	for (int i = 0; i < 200 && strlen(fixture->calls) < strlen(calls); i++)
		test_loop_spin(fixture->kube->loop, 5);
	spin(fixture);
	assert_string_equal(fixture->calls, calls);
	fixture->calls[0] = '\0';
}

/* A store that has listed these objects at that version and has its first watch open. */
UNUSED_HERE static struct scripted_request *start_with(struct watch_fixture *fixture, const char *version,
                                                       const char *objects)
{
	struct scripted_request *watch;

	start_watching(fixture);
	reply_list(next_list(fixture), version, objects);
	watch = next_watch(fixture, version, NULL);
	scripted_begin(watch, 200, "");
	test_loop_until(fixture->kube->loop, &fixture->started);
	fixture->calls[0] = '\0';
	return watch;
}

#endif
