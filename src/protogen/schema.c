#include "protogen/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool schema_error(struct schema_place place, struct error *err, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return error_set(err, ERROR_SYNTAX, "%s:%u:%u: %s", place.file, place.line, place.column, text);
}

void *schema_allocate(struct schema *schema, size_t size, struct error *err)
{
	void *block = arena_allocate(schema->arena, size);

	if (block == NULL)
		error_set(err, ERROR_NO_MEMORY, "out of memory");
	return block;
}

const char *schema_text(struct schema *schema, struct slice text, struct error *err)
{
	char *copy = schema_allocate(schema, text.length + 1, err);

	if (copy != NULL && text.length > 0)
		memcpy(copy, text.data, text.length);
	return copy;
}

const char *schema_format(struct schema *schema, struct error *err, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return schema_text(schema, slice_of(text), err);
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

const char *schema_snake(struct schema *schema, const char *camel, struct error *err)
{
	size_t length = strlen(camel);
	char *snake = schema_allocate(schema, 2 * length + 1, err);
	size_t at = 0;

	if (snake == NULL)
		return NULL;
	for (size_t i = 0; i < length; i++) {
		bool word_start = i > 0 && is_upper(camel[i]) &&
		                  (is_lower_or_digit(camel[i - 1]) ||
		                   (is_upper(camel[i - 1]) && camel[i + 1] >= 'a' && camel[i + 1] <= 'z'));

		if (word_start)
			snake[at++] = '_';
		snake[at++] = is_upper(camel[i]) ? (char)(camel[i] - 'A' + 'a') : camel[i];
	}
	return snake;
}

const char *schema_camel(struct schema *schema, const char *snake, struct error *err)
{
	size_t length = strlen(snake);
	char *camel = schema_allocate(schema, length + 1, err);
	size_t at = 0;

	if (camel == NULL)
		return NULL;
	for (size_t i = 0; i < length; i++) {
		if (snake[i] == '_')
			continue;
		bool raise = i > 0 && snake[i - 1] == '_' && snake[i] >= 'a' && snake[i] <= 'z';

		camel[at++] = raise ? (char)(snake[i] - 'a' + 'A') : snake[i];
	}
	return camel;
}

bool schema_is_c_keyword(const char *name)
{
	static const char *const KEYWORDS[] = {
		"auto",  "bool",     "break",  "case",     "char",   "const",    "continue", "default",
		"do",    "double",   "else",   "enum",     "extern", "false",    "float",    "for",
		"goto",  "if",       "inline", "int",      "long",   "register", "restrict", "return",
		"short", "signed",   "sizeof", "static",   "struct", "switch",   "true",     "typedef",
		"union", "unsigned", "void",   "volatile", "while",
	};

	for (size_t i = 0; i < sizeof KEYWORDS / sizeof KEYWORDS[0]; i++) {
		if (strcmp(name, KEYWORDS[i]) == 0)
			return true;
	}
	return false;
}
