#include "codec/json_tree.h"

#include <string.h>

/* Functions that call themselves go as deep as the tree, which is at most JSON_MAX_DEPTH. */
/* NOLINTBEGIN(misc-no-recursion) */

/* ---- looking ---- */

struct json_node *json_tree_member(const struct json_node *object, struct slice key)
{
	if (object == NULL || object->kind != JSON_KIND_OBJECT)
		return NULL;
	for (struct json_node *member = object->first; member != NULL; member = member->next)
		if (slice_equal(member->key, key))
			return member;
	return NULL;
}

struct json_node *json_tree_item(const struct json_node *array, size_t index)
{
	struct json_node *item;

	if (array == NULL || array->kind != JSON_KIND_ARRAY || index >= array->count)
		return NULL;
	for (item = array->first; index > 0; index--)
		item = item->next;
	return item;
}

/* The character that a pointer's part has at *at, which moves on: ~0 is a tilde, ~1 a slash. */
static char next_char(struct slice part, size_t *at)
{
	char c = part.data[(*at)++];

	if (c != '~' || *at == part.length || (part.data[*at] != '0' && part.data[*at] != '1'))
		return c;
	return part.data[(*at)++] == '0' ? '~' : '/';
}

bool json_pointer_next(struct slice *rest, struct arena *arena, struct slice *ret_part, struct error *err)
{
	struct slice after = slice_from_offset(*rest, 1);
	struct slice part = slice_take_until(&after, '/');
	char *decoded;
	size_t length = 0;

	*rest = slice_from_offset(*rest, 1 + part.length);
	if (part.length == 0 || memchr(part.data, '~', part.length) == NULL) {
		*ret_part = part;
		return true;
	}
	decoded = arena_allocate(arena, part.length);
	if (decoded == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a JSON pointer");
	for (size_t at = 0; at < part.length;)
		decoded[length++] = next_char(part, &at);
	*ret_part = slice_from(decoded, length);
	return true;
}

/* Whether an encoded part of a pointer stands for the key. */
static bool part_is(struct slice part, struct slice key)
{
	size_t length = 0;

	for (size_t at = 0; at < part.length; length++)
		if (length >= key.length || next_char(part, &at) != key.data[length])
			return false;
	return length == key.length;
}

static struct json_node *step(const struct json_node *node, struct slice part)
{
	uint64_t index;

	if (node->kind == JSON_KIND_ARRAY)
		return slice_to_u64(part, &index) ? json_tree_item(node, index) : NULL;
	if (node->kind != JSON_KIND_OBJECT)
		return NULL;
	for (struct json_node *member = node->first; member != NULL; member = member->next)
		if (part_is(part, member->key))
			return member;
	return NULL;
}

struct json_node *json_tree_find(const struct json_node *node, const char *pointer)
{
	struct slice rest = slice_of(pointer);
	/* The tree is the caller's; whoever may change it has it without const anyway. */
	struct json_node *found = (struct json_node *)(uintptr_t)node; /* NOLINT(performance-no-int-to-ptr) */

	while (found != NULL && rest.length > 0) {
		struct slice part;

		rest = slice_from_offset(rest, 1);
		part = slice_from(rest.data, 0);
		while (part.length < rest.length && rest.data[part.length] != '/')
			part.length++;
		rest = slice_from_offset(rest, part.length);
		found = step(found, part);
	}
	return found;
}

struct slice json_tree_text(const struct json_node *node)
{
	return node != NULL && node->kind == JSON_KIND_STRING ? node->text : slice_from(NULL, 0);
}

bool json_tree_integer(const struct json_node *node, int64_t *ret_value)
{
	return node != NULL && node->kind == JSON_KIND_NUMBER && slice_to_i64(node->text, ret_value);
}

static bool items_equal(const struct json_node *a, const struct json_node *b)
{
	const struct json_node *other = b->first;

	for (const struct json_node *item = a->first; item != NULL; item = item->next, other = other->next)
		if (!json_tree_equal(item, other))
			return false;
	return true;
}

static bool members_equal(const struct json_node *a, const struct json_node *b)
{
	const struct json_node *guess = b->first; /* mostly both are in the same order */

	for (const struct json_node *member = a->first; member != NULL; member = member->next) {
		const struct json_node *other =
			slice_equal(guess->key, member->key) ? guess : json_tree_member(b, member->key);

		if (other == NULL || !json_tree_equal(member, other))
			return false;
		guess = other->next != NULL ? other->next : b->first;
	}
	return true;
}

bool json_tree_equal(const struct json_node *a, const struct json_node *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	if (a->kind != b->kind || a->count != b->count)
		return false;
	switch (a->kind) {
	case JSON_KIND_OBJECT:
		return members_equal(a, b);
	case JSON_KIND_ARRAY:
		return items_equal(a, b);
	case JSON_KIND_BOOL:
		return a->truth == b->truth;
	case JSON_KIND_NULL:
		return true;
	default:
		return slice_equal(a->text, b->text);
	}
}

size_t json_tree_depth(const struct json_node *node)
{
	size_t deepest = 0;

	if (node->kind != JSON_KIND_OBJECT && node->kind != JSON_KIND_ARRAY)
		return 0;
	for (const struct json_node *child = node->first; child != NULL; child = child->next) {
		size_t depth = json_tree_depth(child);

		deepest = depth > deepest ? depth : deepest;
	}
	return deepest + 1;
}

/* ---- making ---- */

static struct json_node *make(struct arena *arena, enum json_kind kind)
{
	struct json_node *node = arena_allocate(arena, sizeof *node);

	if (node != NULL)
		node->kind = kind;
	return node;
}

struct json_node *json_tree_null(struct arena *arena)
{
	return make(arena, JSON_KIND_NULL);
}

struct json_node *json_tree_bool(struct arena *arena, bool value)
{
	struct json_node *node = make(arena, JSON_KIND_BOOL);

	if (node != NULL)
		node->truth = value;
	return node;
}

struct json_node *json_tree_number(struct arena *arena, int64_t value)
{
	struct json_node *node = make(arena, JSON_KIND_NUMBER);
	char digits[24];
	size_t at = sizeof digits;
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do {
		digits[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (value < 0)
		digits[--at] = '-';
	if (node == NULL || !arena_copy(arena, slice_from(digits + at, sizeof digits - at), &node->text))
		return NULL;
	return node;
}

struct json_node *json_tree_string(struct arena *arena, struct slice text)
{
	struct json_node *node = make(arena, JSON_KIND_STRING);

	return node != NULL && arena_copy(arena, text, &node->text) ? node : NULL;
}

struct json_node *json_tree_object(struct arena *arena)
{
	return make(arena, JSON_KIND_OBJECT);
}

struct json_node *json_tree_array(struct arena *arena)
{
	return make(arena, JSON_KIND_ARRAY);
}

static void append(struct json_node *parent, struct json_node *child)
{
	child->next = NULL;
	if (parent->last != NULL)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
	parent->count++;
}

struct json_node *json_tree_copy(struct arena *arena, const struct json_node *node)
{
	struct json_node *copy = node != NULL ? make(arena, node->kind) : NULL;

	if (copy == NULL)
		return NULL;
	*copy = (struct json_node){ .kind = node->kind, .key = node->key, .text = node->text, .truth = node->truth };
	for (const struct json_node *child = node->first; child != NULL; child = child->next) {
		struct json_node *child_copy = json_tree_copy(arena, child);

		if (child_copy == NULL)
			return NULL;
		append(copy, child_copy);
	}
	return copy;
}

/* ---- changing ---- */

/* Takes out the child behind `previous` (NULL: the first). */
static void unlink_after(struct json_node *parent, struct json_node *previous)
{
	struct json_node *child = previous != NULL ? previous->next : parent->first;

	if (previous != NULL)
		previous->next = child->next;
	else
		parent->first = child->next;
	if (parent->last == child)
		parent->last = previous;
	child->next = NULL;
	parent->count--;
}

static void link_after(struct json_node *parent, struct json_node *previous, struct json_node *child)
{
	child->next = previous != NULL ? previous->next : parent->first;
	if (previous != NULL)
		previous->next = child;
	else
		parent->first = child;
	if (child->next == NULL)
		parent->last = child;
	parent->count++;
}

/* The member before the one with that key. False if there is none with it. */
static bool find_before(const struct json_node *object, struct slice key, struct json_node **ret_previous)
{
	struct json_node *previous = NULL;

	for (struct json_node *member = object->first; member != NULL; previous = member, member = member->next) {
		if (slice_equal(member->key, key)) {
			*ret_previous = previous;
			return true;
		}
	}
	return false;
}

bool json_tree_set(struct json_node *object, struct slice key, struct json_node *value)
{
	struct json_node *previous;

	if (object == NULL || value == NULL || object->kind != JSON_KIND_OBJECT)
		return false;
	value->key = key;
	if (find_before(object, key, &previous)) {
		unlink_after(object, previous);
		link_after(object, previous, value);
		return true;
	}
	if (object->count >= JSON_TREE_MEMBERS)
		return false;
	append(object, value);
	return true;
}

bool json_tree_set_text(struct arena *arena, struct json_node *object, struct slice key, struct slice text)
{
	return json_tree_set(object, key, json_tree_string(arena, text));
}

bool json_tree_remove(struct json_node *object, struct slice key)
{
	struct json_node *previous;

	if (object == NULL || object->kind != JSON_KIND_OBJECT || !find_before(object, key, &previous))
		return false;
	unlink_after(object, previous);
	return true;
}

struct json_node *json_tree_ensure(struct arena *arena, struct json_node *object, struct slice key)
{
	struct json_node *member = json_tree_member(object, key);

	if (member != NULL && member->kind == JSON_KIND_OBJECT)
		return member;
	member = json_tree_object(arena);
	return json_tree_set(object, key, member) ? member : NULL;
}

bool json_tree_insert(struct json_node *array, size_t index, struct json_node *value)
{
	if (array == NULL || value == NULL || array->kind != JSON_KIND_ARRAY || index > array->count)
		return false;
	value->key = slice_from(NULL, 0);
	link_after(array, index > 0 ? json_tree_item(array, index - 1) : NULL, value);
	return true;
}

bool json_tree_append(struct json_node *array, struct json_node *value)
{
	if (array == NULL || value == NULL || array->kind != JSON_KIND_ARRAY)
		return false;
	value->key = slice_from(NULL, 0);
	append(array, value);
	return true;
}

bool json_tree_remove_item(struct json_node *array, size_t index)
{
	if (json_tree_item(array, index) == NULL)
		return false;
	unlink_after(array, index > 0 ? json_tree_item(array, index - 1) : NULL);
	return true;
}

bool json_tree_replace_item(struct json_node *array, size_t index, struct json_node *value)
{
	return value != NULL && json_tree_remove_item(array, index) && json_tree_insert(array, index, value);
}

/* ---- order ---- */

/* Merges two ordered chains; of equal keys, those of a come first. */
static struct json_node *merge(struct json_node *a, struct json_node *b, int (*compare)(struct slice a, struct slice b))
{
	struct json_node head = { 0 };
	struct json_node *last = &head;

	while (a != NULL && b != NULL) {
		struct json_node **from = compare(a->key, b->key) <= 0 ? &a : &b;

		last->next = *from;
		last = *from;
		*from = last->next;
	}
	last->next = a != NULL ? a : b;
	return head.next;
}

void json_tree_order(struct json_node *object, int (*compare)(struct slice a, struct slice b))
{
	/* runs[i] is an ordered chain of 2^i members, or NULL: a binary counter of merges. */
	struct json_node *runs[sizeof(size_t) * 8] = { NULL };
	struct json_node *ordered = NULL;
	struct json_node *next;

	if (object == NULL || object->kind != JSON_KIND_OBJECT)
		return;
	for (struct json_node *member = object->first; member != NULL; member = next) {
		struct json_node *run = member;
		size_t i;

		next = member->next;
		member->next = NULL;
		for (i = 0; runs[i] != NULL; i++) {
			run = merge(runs[i], run, compare);
			runs[i] = NULL;
		}
		runs[i] = run;
	}
	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
		if (runs[i] != NULL)
			ordered = merge(runs[i], ordered, compare);
	object->first = ordered;
	for (object->last = ordered; object->last != NULL && object->last->next != NULL;)
		object->last = object->last->next;
}

void json_tree_sort(struct json_node *node)
{
	json_tree_order(node, slice_compare);
	for (struct json_node *child = node->first; child != NULL; child = child->next)
		json_tree_sort(child);
}

/* ---- writing ---- */

static void write_members(struct json_writer *writer, const struct json_node *object)
{
	json_writer_object_begin(writer);
	for (const struct json_node *member = object->first; member != NULL; member = member->next) {
		json_writer_key(writer, member->key);
		json_tree_write(writer, member);
	}
	json_writer_object_end(writer);
}

void json_tree_write(struct json_writer *writer, const struct json_node *node)
{
	switch (node->kind) {
	case JSON_KIND_OBJECT:
		write_members(writer, node);
		return;
	case JSON_KIND_ARRAY:
		json_writer_array_begin(writer);
		for (const struct json_node *item = node->first; item != NULL; item = item->next)
			json_tree_write(writer, item);
		json_writer_array_end(writer);
		return;
	case JSON_KIND_STRING:
		json_writer_string(writer, node->text);
		return;
	case JSON_KIND_NUMBER:
		json_writer_raw(writer, node->text);
		return;
	case JSON_KIND_BOOL:
		json_writer_bool(writer, node->truth);
		return;
	default:
		json_writer_null(writer);
		return;
	}
}

bool json_tree_print(const struct json_node *node, struct buffer *buffer, struct error *err)
{
	struct json_writer writer;

	json_writer_init(&writer, buffer);
	json_tree_write(&writer, node);
	return json_writer_check(&writer, "a JSON value", err);
}

/* NOLINTEND(misc-no-recursion) */
