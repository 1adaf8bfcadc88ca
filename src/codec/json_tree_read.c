/*
 * The tokens of a text come in its order: an object's keys and values alternate, and a token lies within the innermost
 * object or array that hasn't ended before it. So one pass with a stack of open nodes makes the tree.
 */
#include "codec/json_internal.h"
#include "codec/json_tree.h"

struct open_node {
	struct json_node *node;
	int end; /* offset in the text */
};

struct build {
	struct json_reader *reader;
	struct open_node stack[JSON_MAX_DEPTH];
	size_t depth;
};

static bool read_text(struct json_reader *reader, struct slice *ret_text, struct error *err)
{
	const jsmntok_t *token = json_at(reader);

	*ret_text = json_token_text(reader, token);
	return !json_needs_decoding(reader, token) || json_decode_string(reader, token, ret_text, err);
}

/* A node of the token at hand, without what is in it. */
static struct json_node *read_node(struct json_reader *reader, struct error *err)
{
	const jsmntok_t *token = json_at(reader);
	struct json_node *node = arena_allocate(reader->arena, sizeof *node);

	if (node == NULL) {
		json_fail_memory(reader, err);
		return NULL;
	}
	switch (token->type) {
	case JSMN_OBJECT:
		node->kind = JSON_KIND_OBJECT;
		return node;
	case JSMN_ARRAY:
		node->kind = JSON_KIND_ARRAY;
		return node;
	case JSMN_STRING:
		node->kind = JSON_KIND_STRING;
		return read_text(reader, &node->text, err) ? node : NULL;
	default:
		node->text = json_token_text(reader, token);
		node->kind = json_kind_of(node->text);
		node->truth = node->kind == JSON_KIND_BOOL && node->text.data[0] == 't';
		return node;
	}
}

/* Reads one value, and its key if the innermost open node is an object. */
static bool read_child(struct build *build, struct json_node *parent, struct error *err)
{
	struct json_reader *reader = build->reader;
	struct slice key = slice_from(NULL, 0);
	struct json_node *node;
	int end;

	if (parent != NULL && parent->kind == JSON_KIND_OBJECT) {
		if (!read_text(reader, &key, err))
			return false;
		reader->position++;
	}
	end = json_at(reader)->end;
	node = read_node(reader, err);
	if (node == NULL)
		return false;
	reader->position++;
	if (parent != NULL &&
	    !(parent->kind == JSON_KIND_OBJECT ? json_tree_set(parent, key, node) : json_tree_append(parent, node)))
		return error_set(err, ERROR_LIMIT, "an object has more than %d keys", JSON_TREE_MEMBERS);
	if (node->kind == JSON_KIND_OBJECT || node->kind == JSON_KIND_ARRAY)
		build->stack[build->depth++] = (struct open_node){ .node = node, .end = end };
	if (parent == NULL)
		build->stack[0].node = node;
	return true;
}

/* Leaves the objects and arrays that end before the token at hand. */
static void close_nodes(struct build *build)
{
	const struct json_reader *reader = build->reader;

	while (build->depth > 0 && (reader->position >= reader->token_count ||
	                            json_at(reader)->start >= build->stack[build->depth - 1].end))
		build->depth--;
}

bool json_tree_read(struct json_reader *reader, struct json_node **ret_root, struct error *err)
{
	static const struct json_message LENIENT = { .replace_bad_utf8 = true };
	const struct json_message *message = reader->message;
	struct build build = { .reader = reader };
	bool ok;

	reader->message = &LENIENT;
	ok = read_child(&build, NULL, err);
	close_nodes(&build);
	while (ok && build.depth > 0) {
		ok = read_child(&build, build.stack[build.depth - 1].node, err);
		close_nodes(&build);
	}
	reader->message = message;
	if (ok)
		*ret_root = build.stack[0].node;
	return ok;
}

bool json_tree_parse(struct slice text, struct arena *arena, struct json_node **ret_root, struct error *err)
{
	struct json_reader reader;
	struct json_node *root;

	if (!json_reader_open(&reader, text, arena, err) || !json_tree_read(&reader, &root, err) ||
	    !json_reader_finish(&reader, err))
		return false;
	*ret_root = root;
	return true;
}
