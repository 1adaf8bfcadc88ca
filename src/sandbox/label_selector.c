/*
 * Label selectors are parsed as the API server's own parser does, token by token with one token ahead, so that the errors come out the same.
 */
#include "sandbox/label_selector.h"

#include <string.h>

enum token_type {
	TOKEN_END,
	TOKEN_IDENTIFIER,
	TOKEN_COMMA,
	TOKEN_OPEN,
	TOKEN_CLOSE,
	TOKEN_NOT,
	TOKEN_EQUAL, /* = and == */
	TOKEN_NOT_EQUAL,
	TOKEN_IN,
	TOKEN_NOT_IN,
	TOKEN_OTHER, /* < > ! in odd combinations */
};

struct token {
	enum token_type type;
	struct slice text;
};

struct parser {
	struct slice text;
	size_t position;
	struct arena *arena;
	struct error *err;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_special(char c)
{
	return c == '=' || c == '!' || c == '(' || c == ')' || c == ',' || c == '>' || c == '<';
}

/* The longest of the known signs that the text begins with. */
static struct token sign(struct slice text)
{
	static const struct {
		const char *text;
		enum token_type type;
	} SIGNS[] = { { "==", TOKEN_EQUAL }, { "!=", TOKEN_NOT_EQUAL }, { "=", TOKEN_EQUAL }, { "!", TOKEN_NOT },
		      { "(", TOKEN_OPEN },   { ")", TOKEN_CLOSE },      { ",", TOKEN_COMMA } };

	for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++)
		if (slice_starts_with(text, slice_of(SIGNS[i].text)))
			return (struct token){ .type = SIGNS[i].type,
				               .text = slice_from(text.data, strlen(SIGNS[i].text)) };
	return (struct token){ .type = TOKEN_OTHER, .text = slice_from(text.data, 1) };
}

/* The token at a position. In the place of a value, "in" and "notin" are plain words. */
static struct token token_at(const struct parser *parser, size_t *position, bool value)
{
	struct slice rest;
	struct token token = { .type = TOKEN_END };

	while (*position < parser->text.length && is_blank(parser->text.data[*position]))
		++*position;
	rest = slice_from_offset(parser->text, *position);
	if (rest.length == 0)
		return token;
	if (is_special(rest.data[0])) {
		token = sign(rest);
	} else {
		token.type = TOKEN_IDENTIFIER;
		token.text = slice_from(rest.data, 0);
		while (token.text.length < rest.length && !is_blank(rest.data[token.text.length]) &&
		       !is_special(rest.data[token.text.length]))
			token.text.length++;
		if (!value && slice_equal_text(token.text, "in"))
			token.type = TOKEN_IN;
		else if (!value && slice_equal_text(token.text, "notin"))
			token.type = TOKEN_NOT_IN;
	}
	*position += token.text.length;
	return token;
}

static struct token look(const struct parser *parser, bool value)
{
	size_t position = parser->position;

	return token_at(parser, &position, value);
}

static struct token consume(struct parser *parser, bool value)
{
	return token_at(parser, &parser->position, value);
}

static bool unexpected(const struct parser *parser, struct token token, const char *expected)
{
	return error_set(parser->err, ERROR_SYNTAX, "found '%.*s'%s", SLICE_ARGS(token.text), expected);
}

static bool add_value(struct parser *parser, struct selector_requirement *requirement, struct slice value)
{
	if (requirement->value_count == SELECTOR_VALUES)
		return error_set(parser->err, ERROR_SYNTAX, "more than %d values in a selector", SELECTOR_VALUES);
	if (requirement->values == NULL)
		requirement->values = arena_allocate_array(parser->arena, SELECTOR_VALUES, sizeof *requirement->values);
	if (requirement->values == NULL)
		return error_set(parser->err, ERROR_NO_MEMORY, "no memory for a selector");
	requirement->values[requirement->value_count++] = value;
	return true;
}

/* "(a,b)"; an empty value stands for itself. */
static bool parse_values(struct parser *parser, struct selector_requirement *requirement)
{
	struct token token = consume(parser, true);

	if (token.type != TOKEN_OPEN)
		return unexpected(parser, token, " expected: '('");
	do {
		struct slice value = slice_from(NULL, 0);

		token = consume(parser, true);
		if (token.type == TOKEN_IDENTIFIER) {
			value = token.text;
			token = consume(parser, true);
		}
		if (token.type != TOKEN_COMMA && token.type != TOKEN_CLOSE)
			return unexpected(parser, token,
			                  value.data != NULL ? ", expected: ',' or ')'" : ", expected: identifier");
		if (!add_value(parser, requirement, value))
			return false;
	} while (token.type != TOKEN_CLOSE);
	return true;
}

static bool parse_exact_value(struct parser *parser, struct selector_requirement *requirement)
{
	struct token token = look(parser, true);

	if (token.type == TOKEN_END || token.type == TOKEN_COMMA)
		return add_value(parser, requirement, slice_from(NULL, 0));
	if (token.type != TOKEN_IDENTIFIER)
		return unexpected(parser, token, ", expected: identifier");
	consume(parser, true);
	return add_value(parser, requirement, token.text);
}

static bool parse_requirement(struct parser *parser, struct selector_requirement *requirement)
{
	struct token token = consume(parser, true);

	if (token.type == TOKEN_NOT) {
		requirement->operation = SELECTOR_ABSENT;
		token = consume(parser, true);
	}
	if (token.type != TOKEN_IDENTIFIER)
		return unexpected(parser, token, ", expected: identifier");
	requirement->key = token.text;
	token = look(parser, true);
	if (requirement->operation == SELECTOR_ABSENT || token.type == TOKEN_END || token.type == TOKEN_COMMA)
		return true;
	token = consume(parser, false);
	switch (token.type) {
	case TOKEN_IN:
		requirement->operation = SELECTOR_IN;
		return parse_values(parser, requirement);
	case TOKEN_NOT_IN:
		requirement->operation = SELECTOR_NOT_IN;
		return parse_values(parser, requirement);
	case TOKEN_EQUAL:
		requirement->operation = SELECTOR_IN;
		return parse_exact_value(parser, requirement);
	case TOKEN_NOT_EQUAL:
		requirement->operation = SELECTOR_NOT_IN;
		return parse_exact_value(parser, requirement);
	default:
		return unexpected(parser, token, ", expected: '=', '!=', '==', 'in', notin'");
	}
}

static struct selector_requirement *add_requirement(struct selector_requirement **list, size_t *count,
                                                    struct arena *arena, struct error *err)
{
	if (*count == SELECTOR_REQUIREMENTS) {
		error_set(err, ERROR_SYNTAX, "more than %d requirements in a selector", SELECTOR_REQUIREMENTS);
		return NULL;
	}
	if (*list == NULL)
		*list = arena_allocate_array(arena, SELECTOR_REQUIREMENTS, sizeof **list);
	if (*list == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a selector");
		return NULL;
	}
	return &(*list)[(*count)++];
}

bool selector_parse_labels(struct selector *selector, struct slice text, struct arena *arena, struct error *err)
{
	struct parser parser = { .text = text, .arena = arena, .err = err };

	for (;;) {
		struct token token = look(&parser, true);
		struct selector_requirement *requirement;

		if (token.type == TOKEN_END)
			return true;
		if (token.type != TOKEN_IDENTIFIER && token.type != TOKEN_NOT)
			return unexpected(&parser, token, ", expected: !, identifier, or 'end of string'");
		requirement = add_requirement(&selector->labels, &selector->label_count, arena, err);
		if (requirement == NULL)
			return false;
		if (!parse_requirement(&parser, requirement))
			return err->code == ERROR_SYNTAX ? error_wrap(err, "unable to parse requirement") : false;
		token = consume(&parser, true);
		if (token.type == TOKEN_END)
			return true;
		if (token.type != TOKEN_COMMA)
			return unexpected(&parser, token, ", expected: ',' or 'end of string'");
		token = look(&parser, true);
		if (token.type != TOKEN_IDENTIFIER && token.type != TOKEN_NOT)
			return unexpected(&parser, token, ", expected: identifier after ','");
	}
}

/* ---- fields ---- */

static bool is_selectable(const struct resource_kind *kind, struct slice field)
{
	if (slice_equal_text(field, "metadata.name") ||
	    (kind->namespaced && slice_equal_text(field, "metadata.namespace")))
		return true;
	for (size_t i = 0; i < RESOURCE_FIELDS && kind->fields[i] != NULL; i++)
		if (slice_equal_text(field, kind->fields[i]))
			return true;
	return false;
}

/* "a=b", "a==b" or "a!=b". */
static bool split_field(struct slice term, struct selector_requirement *requirement, struct slice *ret_value)
{
	const char *equal = memchr(term.data, '=', term.length);
	size_t at = equal != NULL ? (size_t)(equal - term.data) : 0;

	if (at == 0)
		return false;
	requirement->operation = term.data[at - 1] == '!' ? SELECTOR_NOT_IN : SELECTOR_IN;
	requirement->key = slice_from(term.data, requirement->operation == SELECTOR_NOT_IN ? at - 1 : at);
	if (requirement->operation == SELECTOR_IN && at + 1 < term.length && term.data[at + 1] == '=')
		at++;
	*ret_value = slice_from_offset(term, at + 1);
	return true;
}

bool selector_parse_fields(struct selector *selector, struct slice text, const struct resource_kind *kind,
                           struct arena *arena, struct error *err)
{
	struct parser parser = { .arena = arena, .err = err };
	struct slice rest = text;

	while (rest.length > 0) {
		struct slice term = slice_take_until(&rest, ',');
		struct selector_requirement *requirement;
		struct slice value;

		if (term.length == 0)
			continue;
		requirement = add_requirement(&selector->fields, &selector->field_count, arena, err);
		if (requirement == NULL)
			return false;
		if (!split_field(term, requirement, &value))
			return error_set(err, ERROR_SYNTAX, "invalid selector: '%.*s'; can't understand '%.*s'",
			                 SLICE_ARGS(text), SLICE_ARGS(term));
		if (!is_selectable(kind, requirement->key))
			return error_set(err, ERROR_SYNTAX, "field label not supported: %.*s",
			                 SLICE_ARGS(requirement->key));
		if (!add_value(&parser, requirement, value))
			return false;
	}
	return true;
}

/* ---- matching ---- */

static bool has_value(const struct selector_requirement *requirement, struct slice value)
{
	for (size_t i = 0; i < requirement->value_count; i++)
		if (slice_equal(requirement->values[i], value))
			return true;
	return false;
}

static bool label_matches(const struct selector_requirement *requirement, const struct stored_object *object)
{
	const struct slice *value = json_pairs_find(object->labels, object->label_count, requirement->key);

	switch (requirement->operation) {
	case SELECTOR_EXISTS:
		return value != NULL;
	case SELECTOR_ABSENT:
		return value == NULL;
	case SELECTOR_IN:
		return value != NULL && has_value(requirement, *value);
	default:
		return value == NULL || !has_value(requirement, *value);
	}
}

/* An absent field reads as empty. */
static struct slice field_value(const struct json_node *root, struct slice field)
{
	struct slice rest = field;

	while (root != NULL && rest.length > 0)
		root = json_tree_member(root, slice_take_until(&rest, '.'));
	if (root != NULL && root->kind == JSON_KIND_BOOL)
		return root->truth ? SLICE("true") : SLICE("false");
	return json_tree_text(root);
}

static bool fields_match(const struct selector *selector, const struct stored_object *object)
{
	struct arena arena;
	struct json_node *root;
	struct error err;
	bool matches;

	arena_init(&arena, OBJECT_STORE_ARENA_BYTES);
	matches = json_tree_parse(object->text, &arena, &root, &err);
	for (size_t i = 0; matches && i < selector->field_count; i++) {
		const struct selector_requirement *requirement = &selector->fields[i];

		matches = has_value(requirement, field_value(root, requirement->key)) ==
		          (requirement->operation == SELECTOR_IN);
	}
	arena_destroy(&arena);
	return matches;
}

bool selector_is_empty(const struct selector *selector)
{
	return selector->label_count == 0 && selector->field_count == 0;
}

bool selector_matches(const struct selector *selector, const struct stored_object *object)
{
	for (size_t i = 0; i < selector->label_count; i++)
		if (!label_matches(&selector->labels[i], object))
			return false;
	return selector->field_count == 0 || fields_match(selector, object);
}
