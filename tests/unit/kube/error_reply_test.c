#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/error_reply.h"
#include "tests/support/scripted_api.h"

#define PATCH_VM " (patch virtualmachines.vm.neon.tech vm-a)"

static void expect(int status, const char *content_type, struct slice body, const char *name, const char *text)
{
	struct error_reply reply = {
		.status = status,
		.content_type = slice_of(content_type),
		.body = body,
		.verb = "patch",
		.resource = "virtualmachines.vm.neon.tech",
		.name = slice_of(name),
	};
	struct error err;

	assert_false(error_reply_describe(&reply, &err));
	assert_int_equal(err.code, ERROR_REFUSED);
	assert_string_equal(err.text, text);
	assert_string_equal(error_root(&err), text);
}

/* Protocols 9.3.3; each row of tests/vectors/kube_error_sentences.tsv is a code, a content type, a body and a text. */
static void without_a_status_the_code_gives_the_sentence(void **state)
{
	size_t length;
	char *file = test_file_read("vectors/kube_error_sentences.tsv", &length);
	struct slice rest = slice_from(file, length);
	unsigned rows = 0;

	(void)state;
	while (rest.length > 0) {
		struct slice line = slice_take_until(&rest, '\n');
		char *fields[4];

		if (line.length == 0 || line.data[0] == '#')
			continue;
		for (int i = 0; i < 4; i++) {
			struct slice field = slice_take_until(&line, '\t');

			fields[i] = strndup(field.length > 0 ? field.data : "", field.length);
		}
		expect(atoi(fields[0]), fields[1], slice_of(fields[2]), "vm-a", fields[3]);
		for (int i = 0; i < 4; i++)
			free(fields[i]);
		rows++;
	}
	assert_int_equal(rows, 25);
	free(file);
}

static void the_message_of_a_status_is_the_whole_text(void **state)
{
	static const struct {
		const char *file;
		int status;
		const char *text;
	} captures[] = {
		{ "401", 401, "Unauthorized" },
		{ "403", 403,
		  "virtualmachines.vm.neon.tech is forbidden: User \"system:serviceaccount:kube-system:agent\" cannot list resource "
		  "\"virtualmachines\" in API group \"vm.neon.tech\" in the namespace \"default\"" },
		{ "404", 404, "virtualmachines.vm.neon.tech \"nope\" not found" },
		{ "409-conflict", 409,
		  "Operation cannot be fulfilled on virtualmachines.vm.neon.tech \"example\": the object has been modified; please apply your "
		  "changes to the latest version and try again" },
		{ "409-exists", 409, "virtualmachines.vm.neon.tech \"example\" already exists" },
		{ "415", 415,
		  "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
		  "application/merge-patch+json, application/apply-patch+yaml" },
		{ "422", 422,
		  "VirtualMachine.vm.neon.tech \"example\" is invalid: spec.guest.cpus.use: Invalid value: \"number\": spec.guest.cpus.use in "
		  "body must be of type integer,string: \"number\"" },
		{ "500-invalid-patch", 500, "Invalid JSON Patch" },
		{ "504-rv-too-large", 504, "Timeout: Too large resource version: 99999999, current: 396" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof captures / sizeof *captures; i++) {
		char path[128];
		size_t length;
		char *body;

		(void)snprintf(path, sizeof path, "data/kube/status-%s.json", captures[i].file);
		body = test_file_read(path, &length);
		expect(captures[i].status, "application/json", slice_from(body, length), "vm-a", captures[i].text);
		free(body);
	}
}

static void what_only_looks_like_a_status_is_none(void **state)
{
	static const char *const bodies[] = {
		"{\"kind\":\"Pod\",\"message\":\"hello\"}", "{\"kind\":\"Status\"}",
		"{\"kind\":\"Status\",\"message\":\"\"}",   "[]",
		"{\"kind\":\"Status\",\"message",           "null",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		expect(404, "application/json", slice_of(bodies[i]), "vm-a",
		       "the server could not find the requested resource" PATCH_VM);
}

static void without_a_name_the_sentence_ends_with_the_resource(void **state)
{
	(void)state;
	expect(404, "text/plain", slice_of("404 page not found\n"), "",
	       "the server could not find the requested resource (patch virtualmachines.vm.neon.tech)");
}

static void a_long_plain_answer_is_quoted_in_part(void **state)
{
	char body[5000];
	struct error_reply reply = {
		.status = 502, .content_type = SLICE("text/html"), .verb = "get", .resource = "pods"
	};
	struct error err;

	(void)state;
	memset(body, 'x', sizeof body);
	reply.body = slice_from(body, sizeof body);
	assert_false(error_reply_describe(&reply, &err));
	assert_memory_equal(err.text, "an error on the server (\"xxx", 27);
	assert_true(strlen(err.text) < sizeof err.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_status_the_code_gives_the_sentence),
		cmocka_unit_test(the_message_of_a_status_is_the_whole_text),
		cmocka_unit_test(what_only_looks_like_a_status_is_none),
		cmocka_unit_test(without_a_name_the_sentence_ends_with_the_resource),
		cmocka_unit_test(a_long_plain_answer_is_quoted_in_part),
	};

	return cmocka_run_group_tests_name("error_reply", tests, NULL, NULL);
}
