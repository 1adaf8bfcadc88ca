/* Where AWS credentials come from, when they are asked for anew, and what their issuers may answer: spec reporting 9.4. */
#include "receiver.h"

#include "../net/test_clock.h"
#include "report/aws_internal.h"

#define FOREVER "\"AccessKeyId\":\"AKID\",\"SecretAccessKey\":\"SECRET\",\"Token\":\"TOKEN\""

struct credentials_scene {
	struct receiver receiver;
	struct aws_provider *provider;
	unsigned answers;
	char key_id[64], secret_key[64], token[64];
	struct error err; /* no text: there were credentials */
};

static void scene_begin(struct credentials_scene *scene, bool secure)
{
	*scene = (struct credentials_scene){ 0 };
	receiver_init(&scene->receiver, secure);
}

static void scene_create(struct credentials_scene *scene)
{
	struct error err;

	scene->provider = aws_provider_create(scene->receiver.transport, SLICE("eu-central-1"), &err);
	if (scene->provider == NULL)
		fail_msg("%s", err.text);
}

static void scene_end(struct credentials_scene *scene)
{
	aws_provider_destroy(scene->provider);
	receiver_destroy(&scene->receiver);
}

static void note(void *context, const struct aws_credentials *credentials, const struct error *err)
{
	struct credentials_scene *scene = context;

	scene->answers++;
	scene->err.text[0] = '\0';
	if (credentials == NULL) {
		scene->err = *err;
		return;
	}
	snprintf(scene->key_id, sizeof scene->key_id, "%.*s", SLICE_ARGS(secret_slice(&credentials->key_id)));
	snprintf(scene->secret_key, sizeof scene->secret_key, "%.*s",
	         SLICE_ARGS(secret_slice(&credentials->secret_key)));
	snprintf(scene->token, sizeof scene->token, "%.*s", SLICE_ARGS(secret_slice(&credentials->session_token)));
}

/* Whether there are credentials. */
static bool get(struct credentials_scene *scene)
{
	scene->answers = 0;
	aws_provider_get(scene->provider, note, scene);
	assert_int_equal(scene->answers, 0);
	/* Waits between attempts are of seconds. */
	for (int i = 0; i < 40 && scene->answers == 0; i++) {
		turn_for(scene->receiver.loop, 5);
		if (loop_timer_running(&scene->provider->wait))
			skip_time_ms(1000);
	}
	TURN_UNTIL(scene->receiver.loop, scene->answers > 0);
	assert_int_equal(scene->answers, 1);
	return scene->err.text[0] == '\0';
}

/* ---- the choice (P11) ---- */

static void choose(enum aws_source expected, const char *const *variables, const char *url)
{
	struct credentials_scene scene;

	scene_begin(&scene, false);
	for (; *variables != NULL; variables += 2)
		receiver_set(&scene.receiver, variables[0], variables[1]);
	scene_create(&scene);
	assert_int_equal(scene.provider->source, expected);
	if (url != NULL)
		assert_string_equal(scene.provider->url, url);
	scene_end(&scene);
}

static void the_first_source_that_is_configured_is_chosen(void **state)
{
	(void)state;
#define VARIABLES(...) ((const char *const[]){ __VA_ARGS__, NULL })
	choose(AWS_STATIC,
	       VARIABLES("AWS_ACCESS_KEY_ID", "a", "AWS_SECRET_ACCESS_KEY", "b", "AWS_WEB_IDENTITY_TOKEN_FILE", "/f"),
	       NULL);
	choose(AWS_STATIC, VARIABLES("AWS_ACCESS_KEY", "a", "AWS_SECRET_KEY", "b"), NULL);
	choose(AWS_WEB_IDENTITY,
	       VARIABLES("AWS_ACCESS_KEY_ID", "a", "AWS_WEB_IDENTITY_TOKEN_FILE", "/f", "AWS_ROLE_ARN", "r",
	                 "AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost/"),
	       "https://sts.eu-central-1.amazonaws.com");
	choose(AWS_CONTAINER,
	       VARIABLES("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost/x",
	                 "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/y"),
	       "http://localhost/x");
	choose(AWS_CONTAINER, VARIABLES("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/y"),
	       "http://169.254.170.2/v2/y");
	choose(AWS_INSTANCE, VARIABLES("AWS_ACCESS_KEY_ID", ""), "http://169.254.169.254");
	choose(AWS_NONE, VARIABLES("AWS_EC2_METADATA_DISABLED", "TRUE"), NULL);
#undef VARIABLES
}

static void in_china_sts_has_another_name(void **state)
{
	struct credentials_scene scene;
	struct error err;

	(void)state;
	scene_begin(&scene, false);
	receiver_set(&scene.receiver, "AWS_WEB_IDENTITY_TOKEN_FILE", "/f");
	receiver_set(&scene.receiver, "AWS_ROLE_ARN", "r");
	scene.provider = aws_provider_create(scene.receiver.transport, SLICE("cn-north-1"), &err);
	assert_string_equal(scene.provider->url, "https://sts.cn-north-1.amazonaws.com.cn");
	scene_end(&scene);
}

static void fixed_keys_need_nobody(void **state)
{
	struct credentials_scene scene;

	(void)state;
	scene_begin(&scene, false);
	receiver_set(&scene.receiver, "AWS_ACCESS_KEY_ID", "a");
	receiver_set(&scene.receiver, "AWS_SECRET_ACCESS_KEY", "b");
	scene_create(&scene);
	assert_true(get(&scene));
	aws_provider_forget(scene.provider);
	assert_true(get(&scene));
	assert_string_equal(scene.key_id, "a");
	assert_string_equal(scene.secret_key, "b");
	assert_string_equal(scene.token, "");
	scene_end(&scene);
}

/* ---- web identity (P12) ---- */

#define STS_REPLY(key)                                                                                               \
	"<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"                    \
	"<AssumeRoleWithWebIdentityResult><SubjectFromWebIdentityToken>s</SubjectFromWebIdentityToken><Credentials>" \
	"<SessionToken>TO&amp;KEN</SessionToken><SecretAccessKey>SECRET</SecretAccessKey>"                           \
	"<Expiration>2999-01-01T00:00:00Z</Expiration><AccessKeyId>" key "</AccessKeyId></Credentials>"              \
	"</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"

static void begin_web_identity(struct credentials_scene *scene, char path[64])
{
	scene_begin(scene, true);
	write_file(path, SLICE("eyJhbGciOiJSUzI1NiJ9.e30.c2ln\n"));
	receiver_set(&scene->receiver, "AWS_WEB_IDENTITY_TOKEN_FILE", path);
	receiver_set(&scene->receiver, "AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/agent");
	receiver_set(&scene->receiver, "AWS_ROLE_SESSION_NAME", "s p");
	receiver_set(&scene->receiver, "AWS_ENDPOINT_URL_STS", scene->receiver.url);
	scene_create(scene);
}

static void a_web_identity_is_exchanged_at_sts(void **state)
{
	struct credentials_scene scene;
	const struct asked *asked = &scene.receiver.asked[0];
	char path[64];

	(void)state;
	begin_web_identity(&scene, path);
	receiver_play(&scene.receiver, SAY(200, STS_REPLY("AKID")));
	if (!get(&scene))
		fail_msg("%s", scene.err.text);
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 1);
	assert_string_equal(scene.key_id, "AKID");
	assert_string_equal(scene.secret_key, "SECRET");
	assert_string_equal(scene.token, "TO&KEN");
	assert_string_equal(asked->line, "POST /");
	assert_true(had_field(asked, "content-type: application/x-www-form-urlencoded"));
	assert_string_equal(asked->body,
	                    "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fagent"
	                    "&RoleSessionName=s%20p&Version=2011-06-15&WebIdentityToken=eyJhbGciOiJSUzI1NiJ9.e30.c2ln");
	aws_provider_forget(scene.provider);
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 2);
	unlink(path);
	scene_end(&scene);
}

static void sts_refusals_are_final_but_for_some(void **state)
{
#define STS_ERROR(code) \
	"<ErrorResponse><Error><Type>Sender</Type><Code>" code "</Code><Message>no</Message></Error></ErrorResponse>"
	struct credentials_scene scene;
	char path[64];

	(void)state;
	begin_web_identity(&scene, path);
	receiver_play(&scene.receiver, SAY(403, STS_ERROR("AccessDenied")));
	assert_false(get(&scene));
	assert_int_equal(scene.receiver.count, 1);
	assert_string_equal(scene.err.text, "STS: status 403 AccessDenied: no");
	receiver_play(&scene.receiver, SAY(400, STS_ERROR("IDPCommunicationError")), SAY(0, NULL),
	              SAY(200, STS_REPLY("A")));
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 3);
	aws_provider_forget(scene.provider);
	receiver_play(&scene.receiver, SAY(200, "<html>maintenance</html>"));
	assert_false(get(&scene));
	assert_int_equal(scene.receiver.count, 1);
	unlink(path);
	assert_false(get(&scene));
	assert_non_null(strstr(scene.err.text, "no such file or directory"));
	scene_end(&scene);
}

/* ---- expiry (P15) ---- */

static void credentials_are_renewed_five_minutes_before_they_expire(void **state)
{
	struct credentials_scene scene;
	char path[64], body[512], until[32];
	struct reply reply = { .status = 200, .body = body };
	time_t when = (time_t)(clock_wall_ns() / NS_PER_S) + 3600;
	struct tm date;

	(void)state;
	scene_begin(&scene, false);
	write_file(path, SLICE("secret-token"));
	receiver_set(&scene.receiver, "AWS_CONTAINER_CREDENTIALS_FULL_URI", scene.receiver.url);
	scene_create(&scene);
	strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&when, &date));
	snprintf(body, sizeof body, "{%s,\"Expiration\":\"%s\"}", FOREVER, until);
	scene.receiver.script = &reply;
	scene.receiver.script_length = 1;
	assert_true(get(&scene));
	skip_time_ms(54 * 60 * 1000);
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 1);
	skip_time_ms(61 * 1000);
	reply.status = 403;
	assert_true(get(&scene)); /* the old ones are still good */
	assert_int_equal(scene.receiver.count, 2);
	assert_true(get(&scene)); /* and nobody is asked for some minutes */
	assert_int_equal(scene.receiver.count, 2);
	skip_time_ms(6 * 60 * 1000);
	assert_false(get(&scene)); /* now they have expired */
	assert_int_equal(scene.receiver.count, 3);
	unlink(path);
	scene_end(&scene);
}

/* ---- container (P13) ---- */

static void a_container_is_asked_with_the_token_of_the_file(void **state)
{
	struct credentials_scene scene;
	char path[64], url[128];

	(void)state;
	scene_begin(&scene, false);
	write_file(path, SLICE("from-file"));
	snprintf(url, sizeof url, "%s/v1/credentials?x=y", scene.receiver.url);
	receiver_set(&scene.receiver, "AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
	receiver_set(&scene.receiver, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "from-variable");
	receiver_set(&scene.receiver, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path);
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(200, "{" FOREVER "}"));
	assert_true(get(&scene));
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 1);
	assert_string_equal(scene.receiver.asked[0].line, "GET /v1/credentials?x=y");
	assert_true(had_field(&scene.receiver.asked[0], "authorization: from-file"));
	assert_true(had_field(&scene.receiver.asked[0], "accept: application/json"));
	assert_string_equal(scene.token, "TOKEN");
	unlink(path);
	scene_end(&scene);
}

static void a_container_may_refuse_or_be_in_trouble(void **state)
{
	struct credentials_scene scene;

	(void)state;
	scene_begin(&scene, false);
	receiver_set(&scene.receiver, "AWS_CONTAINER_CREDENTIALS_FULL_URI", scene.receiver.url);
	receiver_set(&scene.receiver, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "from-variable");
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(400, "{\"code\":\"Bad\",\"message\":\"no role\"}"));
	assert_false(get(&scene));
	assert_true(had_field(&scene.receiver.asked[0], "authorization: from-variable"));
	assert_string_equal(scene.err.text, "the container's credentials: status 400 Bad: no role");
	receiver_play(&scene.receiver, SAY(500, NULL), SAY(-1, NULL), SAY(200, "{" FOREVER "}"));
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 3);
	aws_provider_forget(scene.provider);
	receiver_play(&scene.receiver, SAY(200, "{}"));
	assert_false(get(&scene));
	assert_string_equal(scene.err.text, "the container's credentials: the reply has no credentials");
	scene_end(&scene);
}

static void a_token_with_a_line_end_goes_nowhere(void **state)
{
	struct credentials_scene scene;

	(void)state;
	scene_begin(&scene, false);
	receiver_set(&scene.receiver, "AWS_CONTAINER_CREDENTIALS_FULL_URI", scene.receiver.url);
	receiver_set(&scene.receiver, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "a\r\nX-Other: b");
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(200, "{" FOREVER "}"));
	assert_false(get(&scene));
	assert_int_equal(scene.receiver.count, 0);
	assert_null(strstr(scene.err.text, "X-Other"));
	scene_end(&scene);
}

static void only_neighbours_are_asked_without_tls(void **state)
{
	static const char *const LOCAL[] = { "localhost",     "127.0.0.1",      "127.9.9.9",   "::1",
		                             "169.254.170.2", "169.254.170.23", "fd00:ec2::23" };
	static const char *const FOREIGN[] = { "169.254.169.254", "example.com", "10.0.0.1", "128.0.0.1",
		                               "fd00:ec2::24" };
	struct credentials_scene scene;

	(void)state;
	for (size_t i = 0; i < sizeof LOCAL / sizeof LOCAL[0]; i++)
		assert_true(aws_host_is_local(LOCAL[i]));
	for (size_t i = 0; i < sizeof FOREIGN / sizeof FOREIGN[0]; i++)
		assert_false(aws_host_is_local(FOREIGN[i]));
	scene_begin(&scene, false);
	receiver_set(&scene.receiver, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://10.0.0.1/");
	scene_create(&scene);
	assert_false(get(&scene));
	assert_non_null(strstr(scene.err.text, "\"10.0.0.1\" may be asked over https only"));
	scene_end(&scene);
}

/* ---- instance metadata (P14) ---- */

static void begin_instance(struct credentials_scene *scene)
{
	scene_begin(scene, false);
	receiver_set(&scene->receiver, "AWS_EC2_METADATA_SERVICE_ENDPOINT", scene->receiver.url);
}

static void an_instance_is_asked_in_three_steps(void **state)
{
	struct credentials_scene scene;
	const struct asked *asked = scene.receiver.asked;

	(void)state;
	begin_instance(&scene);
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(200, "META"), SAY(200, "my role\nother\n"),
	              SAY(200, "{\"Code\":\"success\"," FOREVER "}"));
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 3);
	assert_string_equal(asked[0].line, "PUT /latest/api/token");
	assert_true(had_field(&asked[0], "x-aws-ec2-metadata-token-ttl-seconds: 300"));
	assert_string_equal(asked[1].line, "GET /latest/meta-data/iam/security-credentials/");
	assert_true(had_field(&asked[1], "x-aws-ec2-metadata-token: META"));
	assert_string_equal(asked[2].line, "GET /latest/meta-data/iam/security-credentials/my%20role");
	assert_true(had_field(&asked[2], "x-aws-ec2-metadata-token: META"));
	assert_string_equal(scene.key_id, "AKID");

	/* P15: an hour at most, and when nobody answers then, the old ones are better than none. */
	skip_time_ms(56 * 60 * 1000);
	receiver_play(&scene.receiver, SAY(400, NULL));
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 1);
	skip_time_ms(20 * 60 * 1000);
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 2);
	scene_end(&scene);
}

static void without_version_2_the_older_way_is_taken(void **state)
{
	struct credentials_scene scene;

	(void)state;
	begin_instance(&scene);
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(404, NULL), SAY(200, "role"), SAY(200, "{" FOREVER "}"));
	assert_true(get(&scene));
	assert_false(had_field_named(&scene.receiver.asked[1], "x-aws-ec2-metadata-token"));
	scene_end(&scene);

	begin_instance(&scene);
	receiver_set(&scene.receiver, "AWS_EC2_METADATA_V1_DISABLED", "true");
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(404, NULL));
	assert_false(get(&scene));
	assert_int_equal(scene.receiver.count, 1);
	assert_string_equal(scene.err.text, "instance metadata: status 404 for a token");
	scene_end(&scene);
}

static void a_metadata_token_that_is_refused_is_replaced(void **state)
{
	struct credentials_scene scene;

	(void)state;
	begin_instance(&scene);
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(200, "OLD"), SAY(401, NULL), SAY(200, "NEW"), SAY(200, "role"),
	              SAY(200, "{" FOREVER "}"));
	assert_true(get(&scene));
	assert_int_equal(scene.receiver.count, 5);
	assert_true(had_field(&scene.receiver.asked[3], "x-aws-ec2-metadata-token: NEW"));
	scene_end(&scene);
}

static void an_instance_may_say_why_it_has_none(void **state)
{
	struct credentials_scene scene;

	(void)state;
	begin_instance(&scene);
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(200, "T"), SAY(200, "role"),
	              SAY(200, "{\"Code\":\"AssumeRoleUnauthorizedAccess\",\"Message\":\"no\"}"));
	assert_false(get(&scene));
	assert_string_equal(scene.err.text, "instance metadata: AssumeRoleUnauthorizedAccess: no");
	receiver_play(&scene.receiver, SAY(200, "\n"));
	assert_false(get(&scene));
	assert_string_equal(scene.err.text, "instance metadata: the instance has no role");
	scene_end(&scene);
}

static void asking_may_be_cancelled_at_any_time(void **state)
{
	struct credentials_scene scene;

	(void)state;
	begin_instance(&scene);
	scene_create(&scene);
	receiver_play(&scene.receiver, SAY(200, "T"), SAY(200, "role"), NO_ANSWER);
	for (uint64_t ms = 0; ms < 6; ms++) {
		aws_provider_get(scene.provider, note, &scene);
		turn_for(scene.receiver.loop, ms);
		aws_provider_cancel(scene.provider);
		scene.answers = 0; /* it may have been quick enough */
		turn_for(scene.receiver.loop, 3);
		scene.receiver.count = 0;
		assert_int_equal(scene.answers, 0);
	}
	scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_source_that_is_configured_is_chosen),
		cmocka_unit_test(in_china_sts_has_another_name),
		cmocka_unit_test(fixed_keys_need_nobody),
		cmocka_unit_test(a_web_identity_is_exchanged_at_sts),
		cmocka_unit_test(sts_refusals_are_final_but_for_some),
		cmocka_unit_test(credentials_are_renewed_five_minutes_before_they_expire),
		cmocka_unit_test(a_container_is_asked_with_the_token_of_the_file),
		cmocka_unit_test(a_container_may_refuse_or_be_in_trouble),
		cmocka_unit_test(a_token_with_a_line_end_goes_nowhere),
		cmocka_unit_test(only_neighbours_are_asked_without_tls),
		cmocka_unit_test(an_instance_is_asked_in_three_steps),
		cmocka_unit_test(without_version_2_the_older_way_is_taken),
		cmocka_unit_test(a_metadata_token_that_is_refused_is_replaced),
		cmocka_unit_test(an_instance_may_say_why_it_has_none),
		cmocka_unit_test(asking_may_be_cancelled_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
