#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec/json_internal.h"

/* --- putting problems into words --- */

void json_problem_describe(const struct json_problem *problem, char *text, size_t size)
{
	if (problem->path[0] != '\0')
		snprintf(text, size, "line %u: field \"%s\": %s", problem->line, problem->path, problem->text);
	else
		snprintf(text, size, "line %u: %s", problem->line, problem->text);
}

static void describe_type(const struct json_problem *problem, char *text, size_t size)
{
	if (problem->path[0] != '\0')
		snprintf(text, size, "json: cannot unmarshal %s into Go struct field %s of type %s", problem->found,
		         problem->path, problem->expected);
	else
		snprintf(text, size, "json: cannot unmarshal %s into Go value of type %s", problem->found,
		         problem->expected);
}

void json_problem_reference_text(const struct json_problem *problem, bool stream, char *text, size_t size)
{
	switch (problem->kind) {
	case JSON_PROBLEM_EMPTY:
		snprintf(text, size, "%s", stream ? "EOF" : "unexpected end of JSON input");
		break;
	case JSON_PROBLEM_END:
		snprintf(text, size, "%s", stream ? "unexpected EOF" : "unexpected end of JSON input");
		break;
	case JSON_PROBLEM_TYPE:
		describe_type(problem, text, size);
		break;
	case JSON_PROBLEM_UNKNOWN_KEY:
		snprintf(text, size, "json: unknown field \"%s\"", problem->found);
		break;
	case JSON_PROBLEM_DUPLICATE_KEY:
	case JSON_PROBLEM_MISSING_KEY:
		json_problem_describe(problem, text, size);
		break;
	default:
		snprintf(text, size, "%s", problem->text);
		break;
	}
}

/* --- noting them --- */

unsigned json_line_at(struct slice text, size_t offset)
{
	unsigned line = 1;

	for (size_t i = 0; i < offset && i < text.length; i++) {
		if (text.data[i] == '\n')
			line++;
	}
	return line;
}

/* Which item of its array a token is. */
static size_t item_index(const struct json_reader *reader, int token)
{
	int parent = reader->tokens[token].jsmn.parent;
	size_t index = 0;

	for (int i = parent + 1; i < token; i++) {
		if (reader->tokens[i].jsmn.parent == parent)
			index++;
	}
	return index;
}

static void append(struct json_problem *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(struct json_problem *problem, const char *format, ...)
{
	size_t length = strlen(problem->path);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem->path + length, sizeof problem->path - length, format, arguments);
	va_end(arguments);
}

/* "items[3].metadata": from the token up to the document, then printed the other way round. */
static void find_path(const struct json_reader *reader, int token, struct json_problem *problem)
{
	int steps[2 * JSON_MAX_DEPTH];
	size_t count = 0;

	for (int at = token; at >= 0 && count < sizeof steps / sizeof steps[0]; at = reader->tokens[at].jsmn.parent) {
		int parent = reader->tokens[at].jsmn.parent;

		if (parent >= 0 && reader->tokens[parent].jsmn.type != JSMN_STRING)
			steps[count++] = at;
	}
	while (count > 0) {
		int at = steps[--count];
		const jsmntok_t *step = &reader->tokens[at].jsmn;

		if (reader->tokens[step->parent].jsmn.type == JSMN_ARRAY)
			append(problem, "[%zu]", item_index(reader, at));
		else
			append(problem, "%s%.*s", problem->path[0] != '\0' ? "." : "",
			       SLICE_ARGS(json_token_text(reader, step)));
	}
}

void json_problem_place(const struct json_reader *reader, int object, struct slice key, struct json_problem *problem)
{
	find_path(reader, object, problem);
	append(problem, "%s%.*s", problem->path[0] != '\0' ? "." : "", SLICE_ARGS(key));
}

/* While collecting: whether there was memory for it. */
static bool collect(struct json_reader *reader, const struct json_problem *problem)
{
	struct json_problems *problems = reader->problems;

	if (problems->items == NULL)
		problems->items = arena_allocate_array(reader->arena, JSON_MAX_PROBLEMS, sizeof *problems->items);
	if (problems->items == NULL)
		return false;
	problems->items[problems->count++] = *problem;
	return true;
}

bool json_fail(struct json_reader *reader, int token, struct json_problem *problem, struct error *err)
{
	char text[sizeof problem->path + sizeof problem->text + 64];

	if (reader->problems != NULL && reader->problems->count == JSON_MAX_PROBLEMS) {
		reader->problems->dropped++;
		return true;
	}
	if (token >= 0) {
		problem->offset = json_token_offset(&reader->tokens[token].jsmn);
		if (problem->path[0] == '\0')
			find_path(reader, token, problem);
	}
	problem->line = json_line_at(reader->text, problem->offset);
	if (reader->problem.kind == JSON_PROBLEM_NONE)
		reader->problem = *problem;
	json_problem_describe(problem, text, sizeof text);
	error_set(err, problem->kind == JSON_PROBLEM_RESOURCE ? ERROR_LIMIT : ERROR_SYNTAX, "%s", text);
	if (reader->problems == NULL)
		return false;
	if (!collect(reader, problem))
		return json_fail_memory(reader, err);
	return true;
}

bool json_fail_memory(struct json_reader *reader, struct error *err)
{
	struct json_problem problem = { .kind = JSON_PROBLEM_RESOURCE, .text = "out of memory" };

	if (reader->problem.kind == JSON_PROBLEM_NONE)
		reader->problem = problem;
	return error_set(err, ERROR_NO_MEMORY, "out of memory while reading JSON");
}

static void name_found(const struct json_reader *reader, const jsmntok_t *token, bool number_wanted, char *text,
                       size_t size)
{
	static const char *const NAMES[] = {
		[JSMN_OBJECT] = "object", [JSMN_ARRAY] = "array", [JSMN_STRING] = "string"
	};
	struct slice literal = json_token_text(reader, token);

	if (token->type != JSMN_PRIMITIVE)
		snprintf(text, size, "%s", NAMES[token->type]);
	else if (literal.data[0] == 'n')
		snprintf(text, size, "null");
	else if (literal.data[0] == 't' || literal.data[0] == 'f')
		snprintf(text, size, "bool");
	else if (number_wanted)
		snprintf(text, size, "number %.*s", SLICE_ARGS(literal));
	else
		snprintf(text, size, "number");
}

bool json_fail_type(struct json_reader *reader, const char *expected, bool number_wanted, struct error *err)
{
	struct json_problem problem = { .kind = JSON_PROBLEM_TYPE };
	int token = reader->position;

	name_found(reader, json_at(reader), number_wanted, problem.found, sizeof problem.found);
	snprintf(problem.expected, sizeof problem.expected, "%s", expected);
	snprintf(problem.text, sizeof problem.text, "expected %s, found %s", expected, problem.found);
	json_skip(reader);
	return json_fail(reader, token, &problem, err);
}

bool json_fail_value(struct json_reader *reader, struct error *err, const char *format, ...)
{
	struct json_problem problem = { .kind = JSON_PROBLEM_VALUE };
	int token = reader->position;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem.text, sizeof problem.text, format, arguments);
	va_end(arguments);
	json_skip(reader);
	return json_fail(reader, token, &problem, err);
}
