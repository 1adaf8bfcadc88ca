/* Signatures and what goes into them: TV28 … TV35. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/aws_internal.h"
#include "report/azure_blob_put.h"
#include "report/digest.h"
#include "report/shared_key.h"
#include "report/sigv4.h"
#include "tests/support/vector_file.h"

enum { TEXT_BYTES = 16384 };

/* A request as a vector describes it. */
struct scene {
	struct slice key_id, secret, region, account;
	struct slice length;
	char time[SIGV4_TIME_BYTES];
	struct buffer path;
	struct slice query;
	struct http_field fields[SIGV4_FIELDS];
	size_t field_count;
	char hash[DIGEST_HEX_BYTES];
};

static void add_field(struct scene *scene, struct slice name, struct slice value)
{
	assert_true(scene->field_count < SIGV4_FIELDS);
	scene->fields[scene->field_count++] = (struct http_field){ name, value };
}

static void set_body(struct scene *scene, struct slice line)
{
	uint8_t digest[DIGEST_BYTES];
	struct error err;
	char body[64];

	/* The body of TV28 ends in a newline, as all but an empty one would. */
	snprintf(body, sizeof body, "%.*s%s", SLICE_ARGS(line), line.length > 0 ? "\n" : "");
	assert_true(digest_sha256(slice_of(body), digest, &err));
	digest_to_hex(digest, scene->hash);
	add_field(scene, SLICE("x-amz-content-sha256"), slice_of(scene->hash));
}

static void set_object(struct scene *scene, struct slice line)
{
	struct slice bucket = slice_take_until(&line, ' ');

	buffer_append_char(&scene->path, '/');
	sigv4_append_path(&scene->path, bucket);
	buffer_append_char(&scene->path, '/');
	sigv4_append_path(&scene->path, line);
}

static void set_blob(struct scene *scene, struct slice line)
{
	struct slice base = slice_take_until(&line, ' ');
	struct slice container = slice_take_until(&line, ' ');
	struct error err;

	assert_true(azure_blob_append_target(&scene->path, base, container, line, &err));
}

static void apply(struct scene *scene, struct slice word, struct slice line)
{
	if (slice_equal_text(word, "key")) {
		scene->key_id = slice_take_until(&line, ' ');
		scene->secret = line;
	} else if (slice_equal_text(word, "region")) {
		scene->region = line;
	} else if (slice_equal_text(word, "account")) {
		scene->account = line;
	} else if (slice_equal_text(word, "length")) {
		scene->length = line;
	} else if (slice_equal_text(word, "time")) {
		snprintf(scene->time, sizeof scene->time, "%.*s", SLICE_ARGS(line));
	} else if (slice_equal_text(word, "object")) {
		set_object(scene, line);
	} else if (slice_equal_text(word, "blob")) {
		set_blob(scene, line);
	} else if (slice_equal_text(word, "path")) {
		buffer_append_slice(&scene->path, line);
	} else if (slice_equal_text(word, "query")) {
		scene->query = line;
	} else if (slice_equal_text(word, "body")) {
		set_body(scene, line);
	} else if (slice_equal_text(word, "unsigned")) {
		snprintf(scene->hash, sizeof scene->hash, "UNSIGNED-PAYLOAD");
		add_field(scene, SLICE("x-amz-content-sha256"), slice_of(scene->hash));
	} else if (slice_equal_text(word, "field")) {
		struct slice name = slice_take_until(&line, ' ');

		add_field(scene, name, line);
	} else {
		fail_msg("unknown word %.*s", SLICE_ARGS(word));
	}
}

static void scene_init(struct scene *scene, struct slice input)
{
	*scene = (struct scene){ 0 };
	buffer_init(&scene->path, TEXT_BYTES);
	while (input.length > 0) {
		struct slice line = slice_take_until(&input, '\n');
		struct slice word = slice_take_until(&line, ' ');

		apply(scene, word, line);
	}
}

static void check_text(struct buffer *text, const struct vector_block *block)
{
	buffer_append_char(text, '\0');
	assert_false(text->failed);
	if (strcmp(text->data, block->expected) != 0)
		fail_msg("%s: got\n%s\ninstead of\n%s", block->name, text->data, block->expected);
}

static void check_sigv4(const struct vector_block *block)
{
	struct scene scene;

	scene_init(&scene, block->input);

	const struct sigv4_request request = {
		.method = SLICE("PUT"),
		.path = buffer_slice(&scene.path),
		.query = scene.query,
		.fields = { scene.fields, scene.field_count },
		.payload_hash = slice_of(scene.hash),
	};
	const struct sigv4_identity identity = { scene.key_id, scene.secret, scene.region };
	uint8_t digest[DIGEST_BYTES], key[DIGEST_BYTES];
	char hex[DIGEST_HEX_BYTES];
	struct buffer text;
	struct error err;

	buffer_init(&text, TEXT_BYTES);
	sigv4_append_canonical(&text, &request);
	assert_true(digest_sha256(buffer_slice(&text), digest, &err));
	assert_true(sigv4_key(&identity, slice_from(scene.time, 8), key, &err));
	digest_to_hex(key, hex);
	buffer_append_format(&text, "\n--\nderived %s\n", hex);
	digest_to_hex(digest, hex);
	buffer_append_format(&text, "canonical %s\n", hex);
	assert_true(sigv4_append_authorization(&text, &request, &identity, scene.time, &err));
	check_text(&text, block);
	buffer_destroy(&text);
	buffer_destroy(&scene.path);
}

static void requests_to_s3_are_signed_as_aws_does(void **state)
{
	(void)state;
	assert_int_equal(vector_blocks_walk("vectors/reporting/sigv4.txt", check_sigv4), 4);
}

static void check_shared_key(const struct vector_block *block)
{
	static const char KEY[] =
		"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
	struct scene scene;
	uint64_t length;
	struct buffer text, key;
	struct error err;

	scene_init(&scene, block->input);
	assert_true(slice_to_u64(scene.length, &length));

	const struct shared_key_request request = {
		.method = SLICE("PUT"),
		.content_length = (size_t)length,
		.content_type = SLICE("application/octet-stream"),
		.service_fields = { scene.fields, scene.field_count },
		.path = buffer_slice(&scene.path),
	};

	buffer_init(&text, TEXT_BYTES);
	buffer_init(&key, TEXT_BYTES);
	assert_true(digest_decode_base64(slice_of(KEY), &key, &err));
	shared_key_append_string(&text, &request, scene.account);
	buffer_append_text(&text, "\n--\n");
	assert_true(shared_key_append_authorization(&text, &request, scene.account, buffer_slice(&key), &err));
	check_text(&text, block);
	buffer_destroy(&text);
	buffer_destroy(&key);
	buffer_destroy(&scene.path);
}

static void requests_to_azure_are_signed_with_the_accounts_key(void **state)
{
	(void)state;
	assert_int_equal(vector_blocks_walk("vectors/reporting/shared_key.txt", check_shared_key), 3);
}

static void check_blob_path(const struct vector_row *row)
{
	struct buffer path;
	struct error err;

	assert_int_equal(row->count, 5);
	buffer_init(&path, TEXT_BYTES);
	assert_true(azure_blob_append_target(&path, slice_of(row->fields[1]), slice_of(row->fields[2]),
	                                     slice_of(row->fields[3]), &err));
	buffer_append_char(&path, '\0');
	assert_string_equal(path.data, row->fields[4]);
	buffer_destroy(&path);
}

static void blob_keys_are_escaped_as_one_segment(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/reporting/blob_paths.txt", check_blob_path), 4);
}

static void check_form(const struct vector_row *row)
{
	struct buffer form;

	assert_int_equal(row->count, 6);
	buffer_init(&form, TEXT_BYTES);
	aws_append_sts_form(&form, slice_of(row->fields[1]), slice_of(row->fields[2]), slice_of(row->fields[3]));
	assert_int_equal(form.length, atoi(row->fields[4]));
	buffer_append_char(&form, '\0');
	assert_string_equal(form.data, row->fields[5]);
	buffer_destroy(&form);
}

static void a_web_identity_is_exchanged_with_this_form(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/reporting/sts_form.txt", check_form), 1);
}

static void times_are_spelled_as_each_service_wants(void **state)
{
	char aws[SIGV4_TIME_BYTES], azure[SHARED_KEY_TIME_BYTES];

	(void)state;
	sigv4_time(1741338304999999999, aws);
	shared_key_time(1741338304999999999, azure);
	assert_string_equal(aws, "20250307T090504Z");
	assert_string_equal(azure, "Fri, 07 Mar 2025 09:05:04 GMT");
}

static void runs_of_spaces_in_a_field_count_as_one(void **state)
{
	const struct http_field field = { SLICE("host"), SLICE("  a   b ") };
	const struct sigv4_request request = { .method = SLICE("PUT"), .path = SLICE("/"), .fields = { &field, 1 } };
	struct buffer text;

	(void)state;
	buffer_init(&text, TEXT_BYTES);
	sigv4_append_canonical(&text, &request);
	buffer_append_char(&text, '\0');
	assert_string_equal(text.data, "PUT\n/\n\nhost:a b\n\nhost\n");
	buffer_destroy(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_to_s3_are_signed_as_aws_does),
		cmocka_unit_test(requests_to_azure_are_signed_with_the_accounts_key),
		cmocka_unit_test(blob_keys_are_escaped_as_one_segment),
		cmocka_unit_test(a_web_identity_is_exchanged_with_this_form),
		cmocka_unit_test(times_are_spelled_as_each_service_wants),
		cmocka_unit_test(runs_of_spaces_in_a_field_count_as_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
