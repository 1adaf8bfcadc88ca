/* Where Azure tokens come from and when they are asked for anew: spec reporting 10.3. */
#include "receiver.h"

#include "../net/test_clock.h"
#include "report/azure_token.h"
#include "report/retry_after.h"

struct token_scene {
	struct receiver receiver;
	struct azure_provider *provider;
	unsigned answers;
	char token[64];
	struct error err;
};

#define TOKEN(text) SAY(200, "{\"access_token\":\"" text "\",\"expires_in\":3600}")

static void scene_create(struct token_scene *scene)
{
	struct error err;

	scene->provider = azure_provider_create(scene->receiver.transport, &err);
	assert_non_null(scene->provider);
}

static void scene_end(struct token_scene *scene)
{
	azure_provider_destroy(scene->provider);
	receiver_destroy(&scene->receiver);
}

static void note(void *context, struct slice token, const struct error *err)
{
	struct token_scene *scene = context;

	scene->answers++;
	snprintf(scene->token, sizeof scene->token, "%.*s", SLICE_ARGS(token));
	scene->err.text[0] = '\0';
	if (token.length == 0)
		scene->err = *err;
}

static bool get(struct token_scene *scene)
{
	scene->answers = 0;
	azure_provider_get(scene->provider, note, scene);
	assert_int_equal(scene->answers, 0);
	TURN_UNTIL(scene->receiver.loop, scene->answers > 0);
	assert_int_equal(scene->answers, 1);
	return scene->token[0] != '\0';
}

static void begin_workload(struct token_scene *scene, char path[64])
{
	*scene = (struct token_scene){ 0 };
	receiver_init(&scene->receiver, true);
	write_file(path, SLICE("eyJ.e30.c2ln\n"));
	receiver_set(&scene->receiver, "AZURE_TENANT_ID", "ten/ant");
	receiver_set(&scene->receiver, "AZURE_CLIENT_ID", "client");
	receiver_set(&scene->receiver, "AZURE_FEDERATED_TOKEN_FILE", path);
	receiver_set(&scene->receiver, "AZURE_AUTHORITY_HOST", scene->receiver.url);
}

static void a_federated_token_is_exchanged(void **state)
{
	struct token_scene scene;
	char path[64];

	(void)state;
	begin_workload(&scene, path);
	scene_create(&scene);
	receiver_play(&scene.receiver, TOKEN("T"));
	assert_true(get(&scene));
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 1);
	assert_string_equal(scene.token, "T");
	assert_string_equal(scene.receiver.asked[0].line, "POST /ten%2Fant/oauth2/v2.0/token");
	assert_string_equal(
		scene.receiver.asked[0].body,
		"grant_type=client_credentials&client_id=client&scope=https%3A%2F%2Fstorage.azure.com%2F"
		".default&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
		"&client_assertion=eyJ.e30.c2ln");
	unlink(path);
	scene_end(&scene);
}

static void a_token_is_renewed_five_minutes_before_it_expires(void **state)
{
	struct token_scene scene;
	char path[64];

	(void)state;
	begin_workload(&scene, path);
	scene_create(&scene);
	receiver_play(&scene.receiver, TOKEN("T1"), SAY(400, "{\"error\":\"x\"}"), TOKEN("T2"));
	assert_true(get(&scene));
	skip_time_ms(54 * 60 * 1000);
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 1);
	skip_time_ms(61 * 1000);
	assert_true(get(&scene)); /* refused, but the old one is still good */
	assert_string_equal(scene.token, "T1");
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 2);
	skip_time_ms(31 * 1000);
	assert_true(get(&scene));
	assert_string_equal(scene.token, "T2");
	assert_int_equal(scene.receiver.count, 3);
	unlink(path);
	scene_end(&scene);
}

static void a_refusal_stops_the_chain(void **state)
{
	struct token_scene scene;
	char path[64];

	(void)state;
	begin_workload(&scene, path);
	receiver_set(&scene.receiver, "AZURE_POD_IDENTITY_AUTHORITY_HOST", scene.receiver.url);
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(400, "{\"error\":\"invalid_request\",\"error_description\":\"no\"}"),
	              TOKEN("T"));
	assert_false(get(&scene));
	assert_string_equal(scene.err.text, "workload identity: status 400 invalid_request: no");
	assert_int_equal(scene.receiver.count, 1);
	unlink(path);
	scene_end(&scene);
}

static void the_authority_must_be_asked_over_https(void **state)
{
	struct token_scene scene = { 0 };

	(void)state;
	receiver_init(&scene.receiver, false);
	receiver_set(&scene.receiver, "AZURE_TENANT_ID", "t");
	receiver_set(&scene.receiver, "AZURE_CLIENT_ID", "c");
	receiver_set(&scene.receiver, "AZURE_CLIENT_SECRET", "hidden-secret");
	receiver_set(&scene.receiver, "AZURE_AUTHORITY_HOST", scene.receiver.url);
	scene_create(&scene);
	receiver_play(&scene.receiver, TOKEN("T"));
	assert_false(get(&scene));
	assert_int_equal(scene.receiver.count, 0);
	assert_string_equal(scene.err.text, "client secret: AZURE_AUTHORITY_HOST must begin with https://");
	scene_end(&scene);
}

static void begin_managed(struct token_scene *scene)
{
	*scene = (struct token_scene){ 0 };
	receiver_init(&scene->receiver, false);
	receiver_set(&scene->receiver, "AZURE_POD_IDENTITY_AUTHORITY_HOST", scene->receiver.url);
}

static void a_node_is_asked_for_its_identity(void **state)
{
	struct token_scene scene;
	char body[160];
	struct reply reply = { .status = 200, .body = body };

	(void)state;
	begin_managed(&scene);
	receiver_set(&scene.receiver, "AZURE_CLIENT_ID", "me&you");
	scene_create(&scene);
	/* Some say only when it expires, as a string (A10). */
	snprintf(body, sizeof body, "{\"access_token\":\"T\",\"expires_on\":\"%lld\"}",
	         (long long)(clock_wall_ns() / NS_PER_S) + 3600);
	scene.receiver.script = &reply;
	scene.receiver.script_length = 1;
	assert_true(get(&scene));
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 1);
	assert_string_equal(scene.receiver.asked[0].line,
	                    "GET /metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2F"
	                    "storage.azure.com&client_id=me%26you");
	assert_true(had_field(&scene.receiver.asked[0], "metadata: true"));
	scene_end(&scene);
}

static void a_node_that_isnt_ready_is_asked_again(void **state)
{
	struct token_scene scene;

	(void)state;
	begin_managed(&scene);
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(404, NULL), TOKEN("T"));
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 2);
	scene_end(&scene);
}

static void a_node_without_an_identity_says_so(void **state)
{
	struct token_scene scene;

	(void)state;
	begin_managed(&scene);
	scene_create(&scene);
	receiver_play(&scene.receiver,
	              SAY(400, "{\"error\":\"invalid_request\",\"error_description\":\"Identity not found\"}"));
	assert_false(get(&scene));
	assert_int_equal(scene.receiver.count, 1);
	assert_string_equal(scene.err.text, "managed identity: status 400 invalid_request: Identity not found");
	scene_end(&scene);
}

static void a_node_that_never_answered_is_waited_for_one_second(void **state)
{
	struct token_scene scene;
	uint64_t began_ns;

	(void)state;
	begin_managed(&scene);
	scene_create(&scene);
	receiver_play(&scene.receiver, NO_ANSWER);
	began_ns = loop_now_ns(scene.receiver.loop);
	assert_false(get(&scene));
	assert_in_range(loop_now_ns(scene.receiver.loop) - began_ns, 900 * (uint64_t)NS_PER_MS,
	                3000 * (uint64_t)NS_PER_MS);
	assert_int_equal(scene.receiver.count, 1);
	scene_end(&scene);
}

static void a_reply_without_a_token_is_no_token(void **state)
{
	struct token_scene scene;

	(void)state;
	begin_managed(&scene);
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(200, "{\"access_token\":\"a\\nb\",\"expires_in\":1}"));
	assert_false(get(&scene));
	assert_string_equal(scene.err.text, "managed identity: the reply has no usable access_token");
	receiver_play(&scene.receiver, SAY(200, "[]"));
	assert_false(get(&scene));
	scene_end(&scene);
}

static void asking_may_be_cancelled_at_any_time(void **state)
{
	struct token_scene scene;

	(void)state;
	begin_managed(&scene);
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(404, NULL));
	for (uint64_t ms = 0; ms < 5; ms++) {
		azure_provider_get(scene.provider, note, &scene);
		turn_for(scene.receiver.loop, ms);
		azure_provider_cancel(scene.provider);
		turn_for(scene.receiver.loop, 3);
		assert_int_equal(scene.answers, 0);
	}
	scene_end(&scene);
}

/* ---- Retry-After ---- */

static bool read_wait(const char *name, const char *value, uint64_t *ret_wait_ns)
{
	const struct http_field field = { slice_of(name), slice_of(value) };

	return retry_after_read((struct http_fields){ &field, 1 }, 1741338304 * (int64_t)NS_PER_S, ret_wait_ns);
}

static void waits_are_read_in_every_form(void **state)
{
	uint64_t wait_ns = 7;

	(void)state;
	assert_true(read_wait("Retry-After", "3", &wait_ns) && wait_ns == 3 * (uint64_t)NS_PER_S);
	assert_true(read_wait("retry-after-ms", "30", &wait_ns) && wait_ns == 30 * (uint64_t)NS_PER_MS);
	assert_true(read_wait("x-ms-retry-after-ms", "31", &wait_ns) && wait_ns == 31 * (uint64_t)NS_PER_MS);
	assert_true(read_wait("Retry-After", "Fri, 07 Mar 2025 09:05:14 GMT", &wait_ns) &&
	            wait_ns == 10 * (uint64_t)NS_PER_S);
	assert_true(read_wait("Retry-After", "Fri, 07 Mar 2025 09:05:00 GMT", &wait_ns) && wait_ns == 0);
	assert_true(read_wait("Retry-After", "18446744073709551615", &wait_ns) &&
	            wait_ns > 100000 * (uint64_t)NS_PER_S);
	wait_ns = 7;
	assert_false(read_wait("Retry-After", "-1", &wait_ns));
	assert_false(read_wait("Retry-After", "Fri, 07 Mar", &wait_ns));
	assert_false(read_wait("Retry-After", "", &wait_ns));
	assert_false(read_wait("Other", "3", &wait_ns));
	assert_int_equal(wait_ns, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_federated_token_is_exchanged),
		cmocka_unit_test(a_token_is_renewed_five_minutes_before_it_expires),
		cmocka_unit_test(a_refusal_stops_the_chain),
		cmocka_unit_test(the_authority_must_be_asked_over_https),
		cmocka_unit_test(a_node_is_asked_for_its_identity),
		cmocka_unit_test(a_node_that_isnt_ready_is_asked_again),
		cmocka_unit_test(a_node_without_an_identity_says_so),
		cmocka_unit_test(a_node_that_never_answered_is_waited_for_one_second),
		cmocka_unit_test(a_reply_without_a_token_is_no_token),
		cmocka_unit_test(asking_may_be_cancelled_at_any_time),
		cmocka_unit_test(waits_are_read_in_every_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
