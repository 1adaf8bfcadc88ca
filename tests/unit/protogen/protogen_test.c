#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "protogen/emit.h"
#include "protogen/parser.h"
#include "protogen/protogen.h"
#include "protogen/schema.h"

enum { MAX_BYTES = 4 * 1024 * 1024 };

static const char GOLDEN[] = TESTS_DIR "/unit/protogen/golden";

static void read_file(const char *path, struct buffer *text)
{
	FILE *file = fopen(path, "rb");
	char *room = buffer_reserve(text, MAX_BYTES / 2);

	if (file == NULL)
		fail_msg("%s is missing", path);
	assert_non_null(room);
	buffer_advance(text, fread(room, 1, MAX_BYTES / 2, file));
	fclose(file);
}

/* Names the first line that differs. */
static void assert_same_text(struct slice made, const char *path)
{
	struct buffer expected;
	struct slice rest;

	buffer_init(&expected, MAX_BYTES);
	read_file(path, &expected);
	rest = buffer_slice(&expected);
	for (unsigned line = 1; made.length > 0 || rest.length > 0; line++) {
		struct slice left = slice_take_until(&made, '\n');
		struct slice right = slice_take_until(&rest, '\n');

		if (!slice_equal(left, right))
			fail_msg("%s:%u: made \"%.*s\", expected \"%.*s\"", path, line, SLICE_ARGS(left),
			         SLICE_ARGS(right));
	}
	buffer_destroy(&expected);
}

static void the_output_is_the_golden_one(void **state)
{
	const char *folders[] = { GOLDEN, NULL };
	struct buffer header;
	struct buffer source;
	struct error err;
	char path[512];

	(void)state;
	buffer_init(&header, MAX_BYTES);
	buffer_init(&source, MAX_BYTES);
	snprintf(path, sizeof path, "%s/sample.proto", GOLDEN);
	if (!protogen_generate(path, folders, &header, &source, &err))
		fail_msg("%s", err.text);
	snprintf(path, sizeof path, "%s/sample.gen.h", GOLDEN);
	assert_same_text(buffer_slice(&header), path);
	snprintf(path, sizeof path, "%s/sample.gen.c", GOLDEN);
	assert_same_text(buffer_slice(&source), path);
	buffer_destroy(&header);
	buffer_destroy(&source);
}

static void no_generated_line_is_longer_than_120_columns(void **state)
{
	static const char *const NAMES[] = { "sample.gen.h", "sample.gen.c" };

	(void)state;
	for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
		struct buffer text;
		struct slice rest;
		char path[512];

		buffer_init(&text, MAX_BYTES);
		snprintf(path, sizeof path, "%s/%s", GOLDEN, NAMES[i]);
		read_file(path, &text);
		for (rest = buffer_slice(&text); rest.length > 0;) {
			struct slice line = slice_take_until(&rest, '\n');
			size_t columns = emit_columns(line);

			for (size_t at = 0; at < line.length && line.data[at] == '\t'; at++)
				columns += EMIT_TAB - 1;
			/* The first line says what the file is, whatever its length. */
			if (columns > EMIT_COLUMNS && !slice_starts_with(line, SLICE("/* Generated")))
				fail_msg("%.*s", SLICE_ARGS(line));
		}
		buffer_destroy(&text);
	}
}

/* Reads text as the file "x.proto", all the way to its header. */
static bool compile(const char *text, struct error *err)
{
	struct arena arena;
	struct schema schema = { .arena = &arena };
	struct schema_file *file;
	struct buffer header;
	bool ok;

	arena_init(&arena, MAX_BYTES);
	buffer_init(&header, MAX_BYTES);
	file = parser_read(&schema, "x.proto", slice_of(text), err);
	ok = file != NULL && schema_resolve(&schema, file, err) && emit_header(file, &header, err);
	buffer_destroy(&header);
	arena_destroy(&arena);
	return ok;
}

#define HEAD "syntax = \"proto3\";\npackage a.b;\n"
#define FIELD(text) HEAD "message M {\n  " text "\n}\n"
#define JSON(text) " [(ballast.json.json) = {" text "}];"

static void mistakes_are_named_with_their_place(void **state)
{
	static const struct {
		const char *text;
		const char *message;
	} CASES[] = {
		/* files */
		{ "", "x.proto:1:1: the file must begin with syntax = \"proto3\"" },
		{ "message M {}", "x.proto:1:1: the file must begin with syntax = \"proto3\"" },
		{ "syntax = \"proto2\";", "x.proto:1:1: syntax \"proto2\" isn't supported, only proto3" },
		{ "syntax = \"proto3\"", "x.proto:1:18: expected \";\", found the end of the file" },
		{ "syntax = \"proto3\";\nmessage M {}",
		  "x.proto:2:1: the package must be named before the first message" },
		{ HEAD "service S {}", "x.proto:3:1: service isn't supported here" },
		{ HEAD "extend M {}", "x.proto:3:1: extend isn't supported here" },
		{ HEAD "import public \"y.proto\";", "x.proto:3:8: only plain imports are supported" },
		{ HEAD "package c;", "x.proto:3:1: the package was already named" },
		{ HEAD "option java_package = \"x\";", "x.proto:3:8: expected \"(\", found \"java_package\"" },
		{ HEAD "message M {}\noption (ballast.json.json_defaults) = {};",
		  "x.proto:4:1: the file's options must come before its messages" },
		{ HEAD "what", "x.proto:3:1: expected import, package, message or enum, found \"what\"" },
		/* tokens */
		{ HEAD "message M { $ }", "x.proto:3:13: unexpected character '$'" },
		{ HEAD "/* no end", "x.proto:3:1: comment without end" },
		{ HEAD "import \"a\\n\";", "x.proto:3:8: a string must end on its line and hold no backslash" },
		/* messages */
		{ HEAD "message M {", "x.proto:3:12: expected a name, found the end of the file" },
		{ FIELD("oneof o { int32 a = 1; }"), "x.proto:4:3: oneof isn't supported" },
		{ FIELD("reserved 1;"), "x.proto:4:3: reserved isn't supported" },
		{ FIELD("int32 a = 1"), "x.proto:5:1: expected \";\", found \"}\"" },
		{ FIELD("int32 a;"), "x.proto:4:10: expected \"=\", found \";\"" },
		{ FIELD("int32 a = 0;"), "x.proto:4:13: field numbers go from 1 to 536870911" },
		{ FIELD("int32 a = x;"), "x.proto:4:13: expected a field number, found \"x\"" },
		{ FIELD("sint32 a = 1;"), "x.proto:4:3: type sint32 isn't supported: JSON knows no such encoding" },
		{ FIELD("Other a = 1;"), "x.proto:4:9: unknown type Other" },
		{ FIELD(".a.Other a = 1;"), "x.proto:4:12: unknown type .a.Other" },
		{ FIELD("map<string, int32> a = 1;"), "x.proto:4:15: only map<string, string> is supported" },
		{ FIELD("repeated map<string, string> a = 1;"), "x.proto:4:15: a map can't be optional or repeated" },
		{ FIELD("int32 a = 1; int32 a = 2;"), "x.proto:4:22: field \"a\" is declared twice" },
		{ FIELD("int32 a = 1; int32 b = 1;"), "x.proto:4:22: number 1 already belongs to \"a\"" },
		{ FIELD("int32 a_b = 1; int32 c = 2 [json_name = \"aB\"];"),
		  "x.proto:4:24: key \"aB\" already belongs to \"a_b\"" },
		{ FIELD("int32 default = 1;"),
		  "x.proto:4:9: \"default\" is a keyword of C: name the field otherwise and give its json_name" },
		{ FIELD("M a = 1;"), "x.proto:4:5: message a.b.M would contain itself" },
		{ HEAD "message M {\n N n = 1;\n}\nmessage N {\n M m = 1;\n}",
		  "x.proto:7:4: message a.b.M would contain itself" },
		{ HEAD "message AB {}\nmessage Ab {}\nmessage A { message B {} }\nmessage A_b {}",
		  "x.proto:4:9: message a.b.Ab would have the C name of a.b.AB" },
		/* enums */
		{ HEAD "enum E {}", "x.proto:3:6: an enum needs a value" },
		{ HEAD "enum E { A = 1; }", "x.proto:3:10: the values of an enum must be numbered 0, 1, 2, …" },
		{ HEAD "enum E { A = 0; A = 1; }", "x.proto:3:17: value \"A\" is declared twice" },
		/* options */
		{ FIELD("int32 a = 1 [deprecated = true];"), "x.proto:4:16: unknown option \"deprecated\"" },
		{ FIELD("int32 a = 1 [(other.json) = {}];"),
		  "x.proto:4:16: unknown option (other.json), expected (ballast.json.json)" },
		{ FIELD("int32 a = 1" JSON("wrong: true")), "x.proto:4:39: unknown option \"wrong\"" },
		{ FIELD("int32 a = 1" JSON("required: 1")), "x.proto:4:49: option \"required\" must be true or false" },
		{ FIELD("int32 a = 1" JSON("null: NONE")), "x.proto:4:45: option \"null\" has no value \"NONE\"" },
		{ FIELD("string a = 1" JSON("max_bytes: many")),
		  "x.proto:4:51: option \"max_bytes\" must be a number" },
		{ FIELD("int32 a = 1" JSON("format: QUANTITY")), "x.proto:4:9: format QUANTITY needs type uint64" },
		{ FIELD("uint64 a = 1" JSON("format: MILLI_CPU")), "x.proto:4:10: format MILLI_CPU needs type uint32" },
		{ FIELD("string a = 1" JSON("format: RFC3339")), "x.proto:4:10: format RFC3339 needs type int64" },
		{ FIELD("string a = 1" JSON("format: RAW")), "x.proto:4:10: format RAW needs type bytes" },
		{ FIELD("int32 a = 1" JSON("format: FLOAT_OR_NAME")),
		  "x.proto:4:9: format FLOAT_OR_NAME needs type double or float" },
		{ FIELD("bytes a = 1;"), "x.proto:4:9: bytes have no JSON form of their own: say format: RAW" },
		{ FIELD("int32 a = 1" JSON("bits: 8")),
		  "x.proto:4:9: bits can only be 16, on a plain int32 or uint32" },
		{ FIELD("int64 a = 1" JSON("bits: 16")),
		  "x.proto:4:9: bits can only be 16, on a plain int32 or uint32" },
		{ FIELD("int32 a = 1" JSON("max_items: 2")), "x.proto:4:9: max_items needs a repeated field or a map" },
		{ FIELD("int32 a = 1" JSON("max_bytes: 2")), "x.proto:4:9: max_bytes needs a string, bytes or a map" },
		{ FIELD("optional int32 a = 1" JSON("required: true")),
		  "x.proto:4:18: a field can't be both required and optional" },
		{ FIELD("optional int32 a = 1" JSON("omit_empty: true")),
		  "x.proto:4:18: omit_empty is for fields without presence" },
		{ FIELD("int32 a = 1" JSON("always: true")), "x.proto:4:9: always needs an optional field" },
		{ FIELD("optional bytes a = 1" JSON("format: RAW")),
		  "x.proto:4:18: a raw field needs no optional: absent is empty" },
		{ HEAD "message N {}\nmessage M { N n = 1" JSON("omit_empty: true") " }",
		  "x.proto:4:15: a message is never empty: say optional instead of omit_empty" },
		{ HEAD "message M {\n option (ballast.json.json_message) = {null: NULL_IS_KEPT};\n}",
		  "x.proto:3:9: NULL_IS_KEPT is for single fields, not for a whole message" },
		{ HEAD "message M {\n option (ballast.json.json_message) = {same_struct_as: \"N\"};\n}",
		  "x.proto:3:9: unknown type N" },
		{ HEAD "message M {\n option (ballast.json.json_message) = {same_struct_as: \"M\"};\n}",
		  "x.proto:3:9: same_struct_as must name another message" },
		{ HEAD
		  "message M {\n option (ballast.json.json_message) = {whole_numbers_from_double: true};\n int32 a = 1;\n}",
		  "x.proto:5:8: whole_numbers_from_double is for uint64 only" },
	};
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		if (compile(CASES[i].text, &err))
			fail_msg("%s was accepted", CASES[i].text);
		assert_string_equal(err.text, CASES[i].message);
	}
}

static void more_than_64_fields_are_refused(void **state)
{
	char text[8192] = HEAD "message M {\n";
	size_t length = strlen(text);
	struct error err;

	(void)state;
	for (int i = 1; i <= SCHEMA_MAX_FIELDS; i++)
		length += (size_t)snprintf(text + length, sizeof text - length, "int32 f%d = %d;\n", i, i);
	snprintf(text + length, sizeof text - length, "}");
	assert_true(compile(text, &err));
	snprintf(text + length, sizeof text - length, "int32 more = 99;\n}");
	assert_false(compile(text, &err));
	assert_string_equal(err.text, "x.proto:3:9: 65 fields are more than 64");
}

static void a_missing_import_and_a_circle_are_refused(void **state)
{
	const char *folders[] = { NULL };
	struct buffer header;
	struct buffer source;
	struct error err;

	(void)state;
	buffer_init(&header, MAX_BYTES);
	buffer_init(&source, MAX_BYTES);
	assert_false(protogen_generate(TESTS_DIR "/unit/protogen/golden/missing_import.proto", folders, &header,
	                               &source, &err));
	assert_non_null(
		strstr(err.text, "missing_import.proto:5:8: import \"nowhere.proto\" isn't in any include folder"));
	assert_false(
		protogen_generate(TESTS_DIR "/unit/protogen/golden/circle.proto", folders, &header, &source, &err));
	assert_non_null(strstr(err.text, "imports go deeper than 16 files, or in a circle"));
	assert_false(
		protogen_generate(TESTS_DIR "/unit/protogen/golden/nothing.proto", folders, &header, &source, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	buffer_destroy(&header);
	buffer_destroy(&source);
}

static void failing_memory_at_any_point_is_an_error(void **state)
{
	const char *folders[] = { GOLDEN, NULL };
	struct error err;
	char path[512];
	unsigned long failures = 0;

	(void)state;
	snprintf(path, sizeof path, "%s/sample.proto", GOLDEN);
	for (;; failures++) {
		struct buffer header;
		struct buffer source;
		bool ok;

		buffer_init(&header, MAX_BYTES);
		buffer_init(&source, MAX_BYTES);
		memory_fail_at(failures + 1);
		ok = protogen_generate(path, folders, &header, &source, &err);
		memory_fail_at(0);
		buffer_destroy(&header);
		buffer_destroy(&source);
		if (ok)
			break;
		assert_int_equal(err.code, ERROR_NO_MEMORY);
	}
	assert_true(failures > 3);
}

static void names_change_case_word_by_word(void **state)
{
	static const struct {
		const char *camel;
		const char *snake;
	} CASES[] = {
		{ "AgentRequest", "agent_request" }, { "PodIP", "pod_ip" }, { "VMInfo", "vm_info" },
		{ "S3Client", "s3_client" },         { "A", "a" },
	};
	struct arena arena;
	struct schema schema = { .arena = &arena };
	struct error err;

	(void)state;
	arena_init(&arena, MAX_BYTES);
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
		assert_string_equal(schema_snake(&schema, CASES[i].camel, &err), CASES[i].snake);
	assert_string_equal(schema_camel(&schema, "load_average_1_min", &err), "loadAverage1Min");
	assert_string_equal(schema_camel(&schema, "name", &err), "name");
	arena_destroy(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_output_is_the_golden_one),
		cmocka_unit_test(no_generated_line_is_longer_than_120_columns),
		cmocka_unit_test(mistakes_are_named_with_their_place),
		cmocka_unit_test(more_than_64_fields_are_refused),
		cmocka_unit_test(a_missing_import_and_a_circle_are_refused),
		cmocka_unit_test(failing_memory_at_any_point_is_an_error),
		cmocka_unit_test(names_change_case_word_by_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
