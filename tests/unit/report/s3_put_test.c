/* Spec reporting 9 but for where credentials come from; TV38. */
#include "receiver.h"

#include "base/memory.h"
#include "report/s3_put.h"

static const struct slice BODY = SLICE_INIT("{\"k\":1}\n");

#define REFUSAL(code) "<?xml version=\"1.0\"?><Error><Code>" code "</Code><Message>because</Message></Error>"

static struct report_client *make_put(struct receiver *receiver, const char *endpoint, const char *prefix)
{
	struct s3_put_options options = {
		.bucket = SLICE("metrics"),
		.region = SLICE("us-east-1"),
		.endpoint = slice_of(endpoint),
		.layout = { REPORT_KEY_BILLING, slice_of(prefix) },
	};
	struct error err;
	struct report_client *client = s3_put_create(receiver->transport, &options, &err);

	if (client == NULL)
		fail_msg("%s", err.text);
	return client;
}

static void set_keys(struct receiver *receiver)
{
	receiver_set(receiver, "AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
	receiver_set(receiver, "AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
}

static void an_object_is_put_signed_with_a_hash_over_plain_http(void **state)
{
	struct receiver receiver;
	struct report_client *client;
	const struct asked *asked = &receiver.asked[0];
	struct log_field fields[REPORT_LOG_FIELDS];
	char host[64];

	(void)state;
	receiver_init(&receiver, false);
	set_keys(&receiver);
	client = make_put(&receiver, receiver.url, "agent/");
	receiver_play(&receiver, SAY(204, NULL)); /* P6: any 2xx */
	assert_true(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 1);
	assert_non_null(strstr(asked->line, "PUT /metrics/agent/year%3D"));
	assert_non_null(strstr(asked->line, "Z_ID.ndjson.gz?x-id=PutObject"));
	assert_string_equal(asked->body, BODY.data);
	assert_true(had_field(asked, "content-type: application/octet-stream"));
	assert_true(had_field(asked, "accept-encoding: identity"));
	assert_true(had_field(asked, "x-amz-content-sha256: "
	                             "6a021504b02dc18c0b6bf8dfebdbdca579f0ab4d75eccb09ceeae89880a007ad"));
	assert_false(had_field_named(asked, "x-amz-security-token"));
	assert_false(had_field_named(asked, "content-encoding"));
	assert_false(had_field_named(asked, "content-md5"));
	assert_non_null(strstr(asked->fields, "authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"));
	assert_non_null(strstr(asked->fields, "SignedHeaders=content-length;content-type;host;x-amz-content-sha256;"
	                                      "x-amz-date, Signature="));
	snprintf(host, sizeof host, "host: %s", receiver.authority);
	assert_true(had_field(asked, host));
	assert_int_equal(client->operations->describe(client, fields), 4);
	assert_string_equal(fields[0].key, "bucket");
	assert_string_equal(fields[1].key, "key");
	report_client_destroy(client);
	receiver_destroy(&receiver);
}

static void over_https_the_payload_isnt_signed_and_a_session_token_goes_along(void **state)
{
	struct receiver receiver;
	struct report_client *client;
	char endpoint[80];

	(void)state;
	receiver_init(&receiver, true);
	set_keys(&receiver);
	receiver_set(&receiver, "AWS_SESSION_TOKEN", "FwoGZXIvYXdzEXAMPLETOKEN==");
	snprintf(endpoint, sizeof endpoint, "%s/base/", receiver.url);
	client = make_put(&receiver, endpoint, "");
	receiver_play(&receiver, SAY(200, NULL));
	assert_true(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(strncmp(receiver.asked[0].line, "PUT /base/metrics/year%3D", 25), 0);
	assert_true(had_field(&receiver.asked[0], "x-amz-content-sha256: UNSIGNED-PAYLOAD"));
	assert_true(had_field(&receiver.asked[0], "x-amz-security-token: FwoGZXIvYXdzEXAMPLETOKEN=="));
	assert_non_null(strstr(receiver.asked[0].fields, ";x-amz-date;x-amz-security-token, Signature="));
	report_client_destroy(client);
	receiver_destroy(&receiver);
}

static void the_environment_may_name_the_endpoint(void **state)
{
	struct receiver receiver;
	struct report_client *client;

	(void)state;
	receiver_init(&receiver, false);
	set_keys(&receiver);
	receiver_set(&receiver, "AWS_ENDPOINT_URL", "http://127.0.0.1:1");
	receiver_set(&receiver, "AWS_ENDPOINT_URL_S3", receiver.url);
	client = make_put(&receiver, "", "p");
	receiver_play(&receiver, SAY(200, NULL));
	assert_true(receiver_push(&receiver, client, BODY, 5000));
	report_client_destroy(client);
	receiver_destroy(&receiver);
}

static void a_server_in_trouble_is_tried_three_times_with_the_same_key(void **state) /* TV38 */
{
	struct receiver receiver;
	struct report_client *client;

	(void)state;
	receiver_init(&receiver, false);
	set_keys(&receiver);
	client = make_put(&receiver, receiver.url, "p");
	receiver_play(&receiver, SAY(503, REFUSAL("SlowDown")), SAY(0, NULL), SAY(200, NULL));
	assert_true(receiver_push(&receiver, client, BODY, 30000));
	assert_int_equal(receiver.count, 3);
	assert_string_equal(receiver.asked[0].line, receiver.asked[1].line);
	assert_string_equal(receiver.asked[0].line, receiver.asked[2].line);
	assert_string_equal(receiver.asked[2].body, BODY.data);
	report_client_destroy(client);
	receiver_destroy(&receiver);
}

static void three_failures_are_the_end(void **state)
{
	struct receiver receiver;
	struct report_client *client;

	(void)state;
	receiver_init(&receiver, false);
	set_keys(&receiver);
	client = make_put(&receiver, receiver.url, "p");
	receiver_play(&receiver, SAY(400, REFUSAL("RequestTimeout")));
	assert_false(receiver_push(&receiver, client, BODY, 30000));
	assert_int_equal(receiver.count, 3);
	assert_string_equal(receiver.cause, "S3 error");
	assert_string_equal(receiver.err.text, "S3 error: PutObject: status 400, RequestTimeout: because");
	report_client_destroy(client);
	receiver_destroy(&receiver);
}

static void a_refusal_is_final(void **state) /* TV38, second half */
{
	struct receiver receiver;
	struct report_client *client;

	(void)state;
	receiver_init(&receiver, false);
	set_keys(&receiver);
	client = make_put(&receiver, receiver.url, "p");
	receiver_play(&receiver, SAY(403, REFUSAL("AccessDenied")), SAY(301, NULL), SAY(429, NULL), SAY(200, NULL));
	assert_false(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 1);
	assert_string_equal(receiver.cause, "S3 error");
	assert_false(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 2);
	assert_false(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 3);
	assert_true(receiver_push(&receiver, client, BODY, 5000));
	report_client_destroy(client);
	receiver_destroy(&receiver);
}

static void the_deadline_ends_it_and_the_error_tells_of_what_was_before(void **state)
{
	struct receiver receiver;
	struct report_client *client;

	(void)state;
	receiver_init(&receiver, false);
	set_keys(&receiver);
	client = make_put(&receiver, receiver.url, "p");
	receiver_play(&receiver, SAY(500, NULL), NO_ANSWER);
	assert_false(receiver_push(&receiver, client, BODY, 2500));
	assert_non_null(
		strstr(receiver.err.text, "S3 error: context deadline exceeded; before that: PutObject: status 500"));
	receiver_play(&receiver, NO_ANSWER);
	assert_false(receiver_push(&receiver, client, BODY, 30));
	assert_string_equal(receiver.err.text, "S3 error: context deadline exceeded");
	report_client_destroy(client);
	receiver_destroy(&receiver);
}

static void assert_authority(bool secure, const char *host, uint16_t port, const char *expected)
{
	struct http_origin origin = { .secure = secure, .port = port };
	struct buffer out;

	snprintf(origin.host, sizeof origin.host, "%s", host);
	buffer_init(&out, 128);
	report_append_authority(&out, &origin);
	buffer_append_char(&out, '\0');
	assert_string_equal(out.data, expected);
	buffer_destroy(&out);
}

static void the_host_that_is_signed_has_a_port_if_it_isnt_the_schemes(void **state) /* P3, pitfall 18 */
{
	(void)state;
	assert_authority(true, "s3.eu-central-1.amazonaws.com", 443, "s3.eu-central-1.amazonaws.com");
	assert_authority(true, "minio", 80, "minio:80");
	assert_authority(false, "minio", 80, "minio");
	assert_authority(false, "minio", 9000, "minio:9000");
	assert_authority(false, "::1", 9000, "[::1]:9000");
}

static void without_credentials_nothing_is_ever_sent(void **state)
{
	struct receiver receiver;
	struct report_client *client;

	(void)state;
	receiver_init(&receiver, false);
	receiver_set(&receiver, "AWS_EC2_METADATA_DISABLED", "true");
	client = make_put(&receiver, receiver.url, "p");
	receiver_play(&receiver, SAY(200, NULL));
	assert_false(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 0);
	assert_string_equal(receiver.cause, "S3 error");
	assert_string_equal(receiver.err.text,
	                    "S3 error: getting credentials: the environment offers no AWS credentials");
	report_client_destroy(client);
	receiver_destroy(&receiver);
}

static void an_endpoint_that_cant_be_used_fails_each_push(void **state)
{
	struct receiver receiver;
	struct report_client *client;

	(void)state;
	receiver_init(&receiver, false);
	set_keys(&receiver);
	client = make_put(&receiver, "minio:9000", "p");
	assert_false(receiver_push(&receiver, client, BODY, 5000));
	assert_non_null(strstr(receiver.err.text, "S3 error: the endpoint: URL \"minio:9000\""));
	report_client_destroy(client);
	receiver_destroy(&receiver);
}

static void a_web_identity_without_a_role_is_a_failure_at_the_start(void **state)
{
	struct receiver receiver;
	struct s3_put_options options = { .bucket = SLICE("b"), .region = SLICE("r") };
	struct error err;

	(void)state;
	receiver_init(&receiver, false);
	receiver_set(&receiver, "AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere");
	assert_null(s3_put_create(receiver.transport, &options, &err));
	assert_string_equal(err.text, "AWS_WEB_IDENTITY_TOKEN_FILE is set, but not AWS_ROLE_ARN");
	receiver_destroy(&receiver);
}

static void a_cancelled_push_is_never_told_of(void **state)
{
	struct receiver receiver;
	struct report_client *client;

	(void)state;
	receiver_init(&receiver, false);
	set_keys(&receiver);
	client = make_put(&receiver, receiver.url, "p");
	receiver_play(&receiver, SAY(503, NULL));
	for (int ms = 0; ms < 8; ms += 2) {
		receiver_begin_push(&receiver, client, BODY, 5000);
		turn_for(receiver.loop, (uint64_t)ms);
		client->operations->cancel(client);
		turn_for(receiver.loop, 5);
		assert_int_equal(receiver.over, 0);
	}
	report_client_destroy(client);
	receiver_destroy(&receiver);
}

/* Whichever allocation fails, the push ends, and the next one works; also while credentials are fetched. */
static void short_memory_fails_a_push_and_no_more(void **state)
{
	unsigned failed = 0;

	(void)state;
	for (unsigned long i = 1; i < 60; i++) {
		struct receiver receiver;
		struct report_client *client;

		receiver_init(&receiver, false);
		receiver_set(&receiver, "AWS_CONTAINER_CREDENTIALS_FULL_URI", receiver.url);
		client = make_put(&receiver, receiver.url, "p");
		receiver_play(&receiver, SAY(200, "{\"AccessKeyId\":\"a\\/b\",\"SecretAccessKey\":\"c\\/d\"}"));
		memory_fail_at(i);
		failed += !receiver_push(&receiver, client, BODY, 25);
		memory_fail_at(0);
		receiver.count = 0;
		if (!receiver_push(&receiver, client, BODY, 5000))
			fail_msg("after %lu: %s", i, receiver.err.text);
		report_client_destroy(client);
		receiver_destroy(&receiver);
	}
	assert_true(failed > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_object_is_put_signed_with_a_hash_over_plain_http),
		cmocka_unit_test(over_https_the_payload_isnt_signed_and_a_session_token_goes_along),
		cmocka_unit_test(the_environment_may_name_the_endpoint),
		cmocka_unit_test(a_server_in_trouble_is_tried_three_times_with_the_same_key),
		cmocka_unit_test(three_failures_are_the_end),
		cmocka_unit_test(a_refusal_is_final),
		cmocka_unit_test(the_deadline_ends_it_and_the_error_tells_of_what_was_before),
		cmocka_unit_test(the_host_that_is_signed_has_a_port_if_it_isnt_the_schemes),
		cmocka_unit_test(without_credentials_nothing_is_ever_sent),
		cmocka_unit_test(an_endpoint_that_cant_be_used_fails_each_push),
		cmocka_unit_test(a_web_identity_without_a_role_is_a_failure_at_the_start),
		cmocka_unit_test(a_cancelled_push_is_never_told_of),
		cmocka_unit_test(short_memory_fails_a_push_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
