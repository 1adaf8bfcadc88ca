/* Spec reporting 10.1, 10.2 and 10.4, with TV37. */
#include "receiver.h"

#include "base/memory.h"
#include "report/azure_blob_put.h"

static const struct slice BODY = SLICE_INIT("{\"k\":1}\n");

static const char EMULATOR_KEY[] =
	"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#define TOKEN(text) SAY(200, "{\"access_token\":\"" text "\",\"expires_in\":3600,\"token_type\":\"Bearer\"}")

static struct report_client *make_put(struct receiver *receiver, const char *path)
{
	char endpoint[128];
	struct azure_blob_put_options options = {
		.container = SLICE("billing"),
		.layout = { REPORT_KEY_BILLING, SLICE("agent") },
	};
	struct error err;
	struct report_client *client;

	snprintf(endpoint, sizeof endpoint, "%s%s", receiver->url, path);
	options.endpoint = slice_of(endpoint);
	client = azure_blob_put_create(receiver->transport, &options, &err);
	if (client == NULL)
		fail_msg("%s", err.text);
	return client;
}

static struct report_client *begin_shared_key(struct receiver *receiver)
{
	receiver_init(receiver, false);
	receiver_set(receiver, "BALLAST_AZURE_SHARED_KEY_ACCOUNT", "devstoreaccount1");
	receiver_set(receiver, "BALLAST_AZURE_SHARED_KEY", EMULATOR_KEY);
	return make_put(receiver, "/devstoreaccount1");
}

/* Blobs, and the authority that gives tokens for a client secret, at the same address. */
static struct report_client *begin_token(struct receiver *receiver)
{
	receiver_init(receiver, true);
	receiver_set(receiver, "AZURE_TENANT_ID", "tenant");
	receiver_set(receiver, "AZURE_CLIENT_ID", "client");
	receiver_set(receiver, "AZURE_CLIENT_SECRET", "s3cret&");
	receiver_set(receiver, "AZURE_AUTHORITY_HOST", receiver->url);
	return make_put(receiver, "/");
}

static void end(struct receiver *receiver, struct report_client *client)
{
	report_client_destroy(client);
	receiver_destroy(receiver);
}

static void a_blob_is_put_signed_with_the_accounts_key(void **state)
{
	struct receiver receiver;
	struct report_client *client = begin_shared_key(&receiver);
	const struct asked *asked = &receiver.asked[0];
	struct log_field fields[REPORT_LOG_FIELDS];

	(void)state;
	receiver_play(&receiver, SAY(201, NULL));
	assert_true(receiver_push(&receiver, client, BODY, 5000));
	assert_non_null(strstr(asked->line, "PUT /devstoreaccount1/billing/agent%2Fyear="));
	assert_non_null(strstr(asked->line, "Z_ID.ndjson.gz"));
	assert_null(strchr(asked->line, '?'));
	assert_string_equal(asked->body, BODY.data);
	assert_true(had_field(asked, "accept: application/xml"));
	assert_true(had_field(asked, "content-type: application/octet-stream"));
	assert_true(had_field(asked, "content-length: 8"));
	assert_true(had_field(asked, "x-ms-blob-type: BlockBlob"));
	assert_true(had_field(asked, "x-ms-version: 2023-11-03"));
	assert_true(had_field_named(asked, "x-ms-date"));
	assert_non_null(strstr(asked->fields, "authorization: SharedKey devstoreaccount1:"));
	assert_non_null(strstr(asked->fields, "user-agent: neon-autoscaler"));
	assert_false(had_field_named(asked, "content-encoding"));
	assert_int_equal(client->operations->describe(client, fields), 3);
	assert_string_equal(fields[0].key, "container");
	assert_string_equal(fields[1].key, "key");
	assert_string_equal(fields[2].key, "endpoint");
	end(&receiver, client);
}

static void a_blob_is_put_with_a_token_that_is_kept(void **state)
{
	struct receiver receiver;
	struct report_client *client = begin_token(&receiver);

	(void)state;
	receiver_play(&receiver, TOKEN("T1"), SAY(201, NULL));
	assert_true(receiver_push(&receiver, client, BODY, 5000));
	assert_true(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 3);
	assert_string_equal(receiver.asked[0].line, "POST /tenant/oauth2/v2.0/token");
	assert_string_equal(receiver.asked[0].body,
	                    "grant_type=client_credentials&client_id=client&scope=https%3A%2F%2Fstorage.azure.com%2F"
	                    ".default&client_secret=s3cret%26");
	assert_int_equal(strncmp(receiver.asked[1].line, "PUT /billing/agent%2F", 21), 0);
	assert_true(had_field(&receiver.asked[1], "authorization: Bearer T1"));
	assert_true(had_field(&receiver.asked[2], "authorization: Bearer T1"));
	assert_false(had_field_named(&receiver.asked[1], "x-ms-date"));
	end(&receiver, client);
}

static void a_token_never_goes_over_plain_http(void **state) /* TV37 */
{
	struct receiver receiver;
	struct report_client *client;

	(void)state;
	receiver_init(&receiver, false);
	receiver_set(&receiver, "AZURE_POD_IDENTITY_AUTHORITY_HOST", receiver.url);
	client = make_put(&receiver, "/devstoreaccount1");
	receiver_play(&receiver, SAY(201, NULL));
	assert_false(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 0);
	assert_string_equal(receiver.cause, "Azure Blob error");
	assert_string_equal(receiver.err.text, "Azure Blob error: authenticated requests are not permitted for non TLS "
	                                       "protected (https) endpoints");
	end(&receiver, client);
}

static void only_status_201_is_success(void **state) /* A4 */
{
	struct receiver receiver;
	struct report_client *client = begin_shared_key(&receiver);

	(void)state;
	receiver_play(&receiver, SAY(200, NULL),
	              SAY(404, "<Error><Code>ContainerNotFound</Code><Message>none</Message></Error>"),
	              SAY_WITH(403, "", { SLICE_INIT("x-ms-error-code"), SLICE_INIT("AuthenticationFailed") }));
	assert_false(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 1);
	assert_false(receiver_push(&receiver, client, BODY, 5000));
	assert_string_equal(receiver.err.text, "Azure Blob error: Put Blob: status 404, ContainerNotFound: none");
	assert_false(receiver_push(&receiver, client, BODY, 5000));
	assert_string_equal(receiver.err.text, "Azure Blob error: Put Blob: status 403, AuthenticationFailed: ");
	assert_int_equal(receiver.count, 3);
	end(&receiver, client);
}

static void a_server_in_trouble_is_tried_again_with_the_same_key(void **state) /* A5 */
{
	struct receiver receiver;
	struct report_client *client = begin_shared_key(&receiver);

	(void)state;
	receiver_play(&receiver, SAY_WITH(503, NULL, { SLICE_INIT("x-ms-retry-after-ms"), SLICE_INIT("10") }),
	              SAY_WITH(429, NULL, { SLICE_INIT("Retry-After"), SLICE_INIT("0") }),
	              SAY_WITH(408, NULL, { SLICE_INIT("retry-after-ms"), SLICE_INIT("1") }), SAY(201, NULL));
	assert_true(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 4);
	for (unsigned i = 1; i < 4; i++)
		assert_string_equal(receiver.asked[0].line, receiver.asked[i].line);
	receiver_play(&receiver, SAY_WITH(500, NULL, { SLICE_INIT("retry-after-ms"), SLICE_INIT("1") }));
	assert_false(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 4);
	end(&receiver, client);
}

static void a_server_that_asks_for_too_long_a_wait_isnt_waited_for(void **state)
{
	struct receiver receiver;
	struct report_client *client = begin_shared_key(&receiver);

	(void)state;
	receiver_play(&receiver, SAY_WITH(429, NULL, { SLICE_INIT("Retry-After"), SLICE_INIT("61") }));
	assert_false(receiver_push(&receiver, client, BODY, 120000));
	assert_int_equal(receiver.count, 1);
	end(&receiver, client);
}

static void a_cut_connection_is_tried_again(void **state)
{
	struct receiver receiver;
	struct report_client *client = begin_shared_key(&receiver);
	uint64_t began_ns = loop_now_ns(receiver.loop);

	(void)state;
	receiver_play(&receiver, SAY(0, NULL), SAY(201, NULL));
	assert_true(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 2);
	assert_in_range(loop_now_ns(receiver.loop) - began_ns, 640 * (uint64_t)NS_PER_MS, 3000 * (uint64_t)NS_PER_MS);
	end(&receiver, client);
}

static void the_deadline_comes_before_the_attempts(void **state)
{
	struct receiver receiver;
	struct report_client *client = begin_shared_key(&receiver);

	(void)state;
	receiver_play(&receiver, SAY(500, NULL));
	assert_false(receiver_push(&receiver, client, BODY, 100));
	assert_string_equal(receiver.err.text,
	                    "Azure Blob error: context deadline exceeded; before that: Put Blob: status 500, : ");
	end(&receiver, client);
}

static void a_refused_token_is_replaced_once_for_the_resource_named(void **state) /* A7 */
{
	struct receiver receiver;
	struct report_client *client = begin_token(&receiver);
#define CHALLENGE                                  \
	SAY_WITH(401, NULL,                        \
	         { SLICE_INIT("WWW-Authenticate"), \
	           SLICE_INIT("Bearer authorization_uri=https://login/x resource_id=https://other.azure.com") })

	(void)state;
	receiver_play(&receiver, TOKEN("OLD"), CHALLENGE, TOKEN("NEW"), SAY(201, NULL));
	assert_true(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 4);
	assert_non_null(strstr(receiver.asked[2].body, "scope=https%3A%2F%2Fother.azure.com%2F.default"));
	assert_true(had_field(&receiver.asked[3], "authorization: Bearer NEW"));
	receiver_play(&receiver, CHALLENGE, TOKEN("NEWER"), CHALLENGE);
	assert_false(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 3);
	end(&receiver, client);
}

static void without_a_token_the_push_fails_at_once(void **state)
{
	struct receiver receiver;
	struct report_client *client = begin_token(&receiver);

	(void)state;
	receiver_play(&receiver, SAY(401, "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215\"}"));
	assert_false(receiver_push(&receiver, client, BODY, 5000));
	assert_int_equal(receiver.count, 1);
	assert_string_equal(receiver.err.text, "Azure Blob error: getting a token: client secret: status 401 "
	                                       "invalid_client: AADSTS7000215");
	end(&receiver, client);
}

static void a_shared_key_that_isnt_base64_is_a_failure_at_the_start(void **state)
{
	struct receiver receiver;
	struct azure_blob_put_options options = { .container = SLICE("c"), .endpoint = SLICE("http://h") };
	struct error err;

	(void)state;
	receiver_init(&receiver, false);
	receiver_set(&receiver, "BALLAST_AZURE_SHARED_KEY_ACCOUNT", "a");
	receiver_set(&receiver, "BALLAST_AZURE_SHARED_KEY", "not a key!");
	assert_null(azure_blob_put_create(receiver.transport, &options, &err));
	assert_string_equal(err.text, "BALLAST_AZURE_SHARED_KEY: not base64");
	receiver_destroy(&receiver);
}

/* Whichever allocation fails, the push ends, and the next one works. */
static void short_memory_fails_a_push_and_no_more(void **state)
{
	unsigned failed = 0;

	(void)state;
	for (unsigned long i = 1; i < 25; i++) {
		struct receiver receiver;
		struct report_client *client = begin_shared_key(&receiver);

		receiver_play(&receiver, SAY(201, NULL));
		memory_fail_at(i);
		failed += !receiver_push(&receiver, client, BODY, 25);
		memory_fail_at(0);
		receiver.count = 0;
		assert_true(receiver_push(&receiver, client, BODY, 5000));
		end(&receiver, client);
	}
	assert_true(failed > 5);
}

static void clients_that_cant_be_made_leave_nothing_behind(void **state)
{
	struct azure_blob_put_options options = { .container = SLICE("c"), .endpoint = SLICE("http://h") };
	struct receiver receiver;
	struct report_client *client = NULL;
	struct error err;
	unsigned failed = 0;

	(void)state;
	receiver_init(&receiver, false);
	for (unsigned long i = 1; client == NULL; i++) {
		memory_fail_at(i);
		client = azure_blob_put_create(receiver.transport, &options, &err);
		memory_fail_at(0);
		failed += client == NULL && err.code == ERROR_NO_MEMORY;
	}
	assert_true(failed >= 5);
	end(&receiver, client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_blob_is_put_signed_with_the_accounts_key),
		cmocka_unit_test(a_blob_is_put_with_a_token_that_is_kept),
		cmocka_unit_test(a_token_never_goes_over_plain_http),
		cmocka_unit_test(only_status_201_is_success),
		cmocka_unit_test(a_server_in_trouble_is_tried_again_with_the_same_key),
		cmocka_unit_test(a_server_that_asks_for_too_long_a_wait_isnt_waited_for),
		cmocka_unit_test(a_cut_connection_is_tried_again),
		cmocka_unit_test(the_deadline_comes_before_the_attempts),
		cmocka_unit_test(a_refused_token_is_replaced_once_for_the_resource_named),
		cmocka_unit_test(without_a_token_the_push_fails_at_once),
		cmocka_unit_test(a_shared_key_that_isnt_base64_is_a_failure_at_the_start),
		cmocka_unit_test(short_memory_fails_a_push_and_no_more),
		cmocka_unit_test(clients_that_cant_be_made_leave_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
