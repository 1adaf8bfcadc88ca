/*
 * Base64 for URLs, without padding, of {"v":"meta.k8s.io/v1","rv":381,"start":"default/example\u0000"}: listing begins at the first key that
 * isn't below `start`.
 */
#include "sandbox/continue_token.h"

#include <mbedtls/base64.h>
#include <string.h>

#include "base/buffer.h"
#include "codec/json_tree.h"

enum { TOKEN_BYTES = 2048 };

#define TOKEN_VERSION SLICE("meta.k8s.io/v1")

static void swap_characters(char *text, size_t length, const char *from, const char *to)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] == from[0])
			text[i] = to[0];
		else if (text[i] == from[1])
			text[i] = to[1];
	}
}

static struct slice encode(struct slice json, struct arena *arena)
{
	char *text = arena_allocate(arena, 2 * TOKEN_BYTES);
	size_t length;

	if (text == NULL || mbedtls_base64_encode((unsigned char *)text, (size_t)2 * TOKEN_BYTES, &length,
	                                          (const unsigned char *)json.data, json.length) != 0)
		return slice_from(NULL, 0);
	swap_characters(text, length, "+/", "-_");
	while (length > 0 && text[length - 1] == '=')
		length--;
	return slice_from(text, length);
}

struct slice continue_token_print(const struct continue_token *token, struct arena *arena)
{
	struct json_node *root = json_tree_object(arena);
	struct slice text = { 0 };
	struct buffer start;
	struct buffer json;
	struct error err;

	buffer_init(&start, TOKEN_BYTES);
	buffer_init(&json, TOKEN_BYTES);
	if (token->name_space.length > 0) {
		buffer_append_slice(&start, token->name_space);
		buffer_append_char(&start, '/');
	}
	buffer_append_slice(&start, token->name);
	buffer_append_char(&start, '\0');
	if (!start.failed && json_tree_set_text(arena, root, SLICE("v"), TOKEN_VERSION) &&
	    json_tree_set(root, SLICE("rv"), json_tree_number(arena, token->version)) &&
	    json_tree_set_text(arena, root, SLICE("start"), buffer_slice(&start)) && json_tree_print(root, &json, &err))
		text = encode(buffer_slice(&json), arena);
	buffer_destroy(&start);
	buffer_destroy(&json);
	return text;
}

static bool decode(struct slice text, struct arena *arena, struct slice *ret_json)
{
	char *padded = arena_allocate(arena, text.length + 4);
	char *json = arena_allocate(arena, text.length + 4);
	size_t length = text.length;

	if (padded == NULL || json == NULL)
		return false;
	memcpy(padded, text.data, text.length);
	swap_characters(padded, length, "-_", "+/");
	while (length % 4 != 0)
		padded[length++] = '=';
	if (mbedtls_base64_decode((unsigned char *)json, text.length + 4, &length, (const unsigned char *)padded,
	                          length) != 0)
		return false;
	*ret_json = slice_from(json, length);
	return true;
}

bool continue_token_parse(struct slice text, struct arena *arena, struct continue_token *ret_token, struct error *err)
{
	struct json_node *root = NULL;
	struct slice json;
	struct slice start;
	struct continue_token token = { 0 };
	const char *slash;

	if (text.length > TOKEN_BYTES || !decode(text, arena, &json) || !json_tree_parse(json, arena, &root, err))
		return error_set(err, ERROR_SYNTAX, "continue key is not valid: illegal base64 or JSON");
	start = json_tree_text(json_tree_find(root, "/start"));
	if (!slice_equal(json_tree_text(json_tree_find(root, "/v")), TOKEN_VERSION) ||
	    !json_tree_integer(json_tree_find(root, "/rv"), &token.version) || start.length == 0)
		return error_set(
			err, ERROR_SYNTAX,
			"continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
	if (start.data[start.length - 1] == '\0')
		start.length--;
	slash = memchr(start.data, '/', start.length);
	if (slash != NULL)
		token.name_space = slice_take_until(&start, '/');
	token.name = start;
	*ret_token = token;
	return true;
}
