/*
 * Any JSON value as a tree, for the few who handle objects that no schema describes: the stand-in API server stores
 * whatever it is given, patches it by path and gives it back. Everybody else uses generated codecs.
 *
 * Nodes live in an arena and go with it; a node belongs to one tree. Strings are slices of the text that was read, or
 * of the arena; both must outlive the tree. No tree is deeper than JSON_MAX_DEPTH: who attaches values to nodes deep
 * inside must see to it with json_tree_depth.
 *
 * Functions that look for something take NULL for "not there" and answer with NULL, so lookups can be chained.
 * Functions that store a value take NULL for "no memory" and answer with false, so that what makes a value can stand in
 * their argument.
 */
#ifndef BALLAST_CODEC_JSON_TREE_H
#define BALLAST_CODEC_JSON_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "codec/json_reader.h"
#include "codec/json_writer.h"

enum {
	JSON_TREE_MEMBERS = 4096, /* of one object: its keys are searched one by one */
};

struct json_node {
	enum json_kind kind;
	struct slice key;               /* in an object */
	struct slice text;              /* a string's meaning; a number as it was written */
	bool truth;                     /* of a bool */
	struct json_node *first, *last; /* of an object or array */
	struct json_node *next;
	size_t count;
};

/* ---- reading and writing ---- */

/* Reads the value at hand. Of equal keys the last one counts; invalid UTF-8 becomes U+FFFD. */
bool json_tree_read(struct json_reader *reader, struct json_node **ret_root, struct error *err);
/* Reads a text that is one value and nothing else. */
bool json_tree_parse(struct slice text, struct arena *arena, struct json_node **ret_root, struct error *err);
void json_tree_write(struct json_writer *writer, const struct json_node *node);
/* Appends compact JSON, with < > & escaped as in the API server's. */
bool json_tree_print(const struct json_node *node, struct buffer *buffer, struct error *err);

/* ---- looking ---- */

struct json_node *json_tree_member(const struct json_node *object, struct slice key);
struct json_node *json_tree_item(const struct json_node *array, size_t index);
/* By JSON pointer (RFC 6901): "/spec/guest/cpus/use"; "" is the node itself. */
struct json_node *json_tree_find(const struct json_node *node, const char *pointer);
/* Cuts the first part off a pointer's rest that begins with '/'; its ~0 and ~1 are decoded into the arena. */
bool json_pointer_next(struct slice *rest, struct arena *arena, struct slice *ret_part, struct error *err);
/* A string's text, else the empty slice. */
struct slice json_tree_text(const struct json_node *node);
/* A whole number's value; false for everything else. */
bool json_tree_integer(const struct json_node *node, int64_t *ret_value);
/* Objects are equal whatever the order of their keys; numbers if they are written alike. NULL equals NULL. */
bool json_tree_equal(const struct json_node *a, const struct json_node *b);
/* 0 for a value that holds nothing, 1 for {} and [1], … */
size_t json_tree_depth(const struct json_node *node);

/* ---- making: NULL when memory is short ---- */

struct json_node *json_tree_null(struct arena *arena);
struct json_node *json_tree_bool(struct arena *arena, bool value);
struct json_node *json_tree_number(struct arena *arena, int64_t value);
struct json_node *json_tree_string(struct arena *arena, struct slice text); /* copied */
struct json_node *json_tree_object(struct arena *arena);
struct json_node *json_tree_array(struct arena *arena);
struct json_node *json_tree_copy(struct arena *arena, const struct json_node *node); /* strings are shared */

/* ---- changing ---- */

/* Puts value in the place of the one with that key, or behind the last. The key's bytes are kept, not copied. */
bool json_tree_set(struct json_node *object, struct slice key, struct json_node *value);
bool json_tree_set_text(struct arena *arena, struct json_node *object, struct slice key, struct slice text);
bool json_tree_remove(struct json_node *object, struct slice key); /* false if it wasn't there */
/* The object under that key, made if there is none or something else. */
struct json_node *json_tree_ensure(struct arena *arena, struct json_node *object, struct slice key);
/* index up to count, which appends. */
bool json_tree_insert(struct json_node *array, size_t index, struct json_node *value);
bool json_tree_append(struct json_node *array, struct json_node *value);
bool json_tree_replace_item(struct json_node *array, size_t index, struct json_node *value);
bool json_tree_remove_item(struct json_node *array, size_t index);
/* Orders an object's members by their keys with a comparison like strcmp's; equal ones keep their order. */
void json_tree_order(struct json_node *object, int (*compare)(struct slice a, struct slice b));
/* Orders all keys bytewise, at every level. */
void json_tree_sort(struct json_node *node);

#endif
