/*
 * The small cluster that the extender's vectors speak of: classes, claims, a cache of nodes, Volumes, and texts that stand
 * for others. tests/vectors/extender/fixture.txt says how a line looks.
 */
#ifndef BALLAST_TESTS_UNIT_EXTENDER_VECTOR_CLUSTER_H
#define BALLAST_TESTS_UNIT_EXTENDER_VECTOR_CLUSTER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "codec/json_tree.h"
#include "extender/filter.h"
#include "extender/storage_size.h"
#include "tests/support/vector_file.h"

enum { VECTOR_CLASSES = 32, VECTOR_CLAIMS = 48, VECTOR_DEFINES = 64, VECTOR_NODES = 16, VECTOR_ARENA = 16 << 20 };

struct vector_class {
	struct slice name;
	struct class_view view;
};

struct vector_claim {
	struct slice key; /* namespace/name */
	struct claim_view view;
};

struct vector_define {
	struct slice name;
	struct slice text;
};

struct vector_node {
	struct slice id;
	struct slice name;
};

struct vector_cluster {
	struct vector_class classes[VECTOR_CLASSES];
	size_t class_count;
	struct vector_claim claims[VECTOR_CLAIMS];
	size_t claim_count;
	struct vector_define defines[VECTOR_DEFINES];
	size_t define_count;
	struct vector_node nodes[VECTOR_NODES];
	size_t node_count;
	struct volume_counts volumes;
	struct extender_settings settings;
	struct storage_view view;
};

/* --- the cluster --- */

static inline bool vector_find_claim(void *context, struct slice namespace, struct slice name,
                                     struct claim_view *ret_claim)
{
	struct vector_cluster *cluster = context;

	for (size_t i = cluster->claim_count; i > 0; i--) {
		struct slice rest = cluster->claims[i - 1].key;

		if (slice_equal(slice_take_until(&rest, '/'), namespace) && slice_equal(rest, name)) {
			*ret_claim = cluster->claims[i - 1].view;
			return true;
		}
	}
	return false;
}

static inline bool vector_find_class(void *context, struct slice name, struct class_view *ret_class)
{
	struct vector_cluster *cluster = context;

	for (size_t i = cluster->class_count; i > 0; i--) {
		if (slice_equal(cluster->classes[i - 1].name, name)) {
			*ret_class = cluster->classes[i - 1].view;
			return true;
		}
	}
	return false;
}

static inline bool vector_find_node(void *context, struct slice name, struct node_id *ret_id)
{
	struct vector_cluster *cluster = context;

	for (size_t i = 0; i < cluster->node_count; i++) {
		if (slice_equal(cluster->nodes[i].name, name)) {
			*ret_id = (struct node_id){ NODE_ID_FOUND, cluster->nodes[i].id };
			return true;
		}
	}
	return false;
}

/* The next word; "''" is an empty one. */
static inline struct slice vector_word(struct slice *rest)
{
	*rest = slice_trim(*rest);

	struct slice word = slice_take_until(rest, ' ');

	return slice_equal_text(word, "''") ? slice_from(word.data, 0) : word;
}

/* Puts in what $NAME stands for. */
static inline struct slice vector_expand(const struct vector_cluster *cluster, struct arena *arena, struct slice text)
{
	struct buffer out;
	struct slice copy;

	buffer_init(&out, 1 << 20);
	while (text.length > 0) {
		const struct vector_define *found = NULL;

		if (text.data[0] == '$') {
			for (size_t i = 0; i < cluster->define_count; i++) {
				const struct vector_define *define = &cluster->defines[i];

				if (slice_starts_with(slice_from_offset(text, 1), define->name) &&
				    (found == NULL || define->name.length > found->name.length))
					found = define;
			}
			assert_non_null(found);
			buffer_append_slice(&out, found->text);
			text = slice_from_offset(text, 1 + found->name.length);
		} else {
			buffer_append_char(&out, text.data[0]);
			text = slice_from_offset(text, 1);
		}
	}
	assert_false(out.failed);
	assert_true(arena_copy(arena, buffer_slice(&out), &copy));
	buffer_destroy(&out);
	return copy;
}

static inline void vector_define(struct vector_cluster *cluster, struct arena *arena, struct slice rest)
{
	struct slice name = vector_word(&rest);

	assert_true(cluster->define_count < VECTOR_DEFINES);
	cluster->defines[cluster->define_count++] =
		(struct vector_define){ name, vector_expand(cluster, arena, slice_trim(rest)) };
}

static inline void vector_add_class(struct vector_cluster *cluster, struct slice rest)
{
	struct slice name = vector_word(&rest);
	struct slice provisioner = vector_word(&rest);

	assert_true(cluster->class_count < VECTOR_CLASSES);
	if (rest.length > 0 && rest.data[rest.length - 1] == '|') /* so that blanks can stand in it */
		rest.length--;
	cluster->classes[cluster->class_count++] =
		(struct vector_class){ name, { .provisioner = provisioner, .storage_type = rest } };
}

static inline void vector_add_claim(struct vector_cluster *cluster, struct slice rest)
{
	struct vector_claim claim = { .key = vector_word(&rest) };
	struct slice size;
	struct error err;

	claim.view.class_name = vector_word(&rest);
	claim.view.has_class_name = !slice_equal_text(claim.view.class_name, "-");
	size = vector_word(&rest);
	if (slice_equal_text(size, "-"))
		size = slice_from(NULL, 0);
	assert_true(storage_size_from_quantity(size, &claim.view.size_bytes, &err));
	claim.view.phase = vector_word(&rest);
	claim.view.storage_group = vector_word(&rest);
	assert_true(cluster->claim_count < VECTOR_CLAIMS);
	cluster->claims[cluster->claim_count++] = claim;
}

/* The next line with those that continue it, without comments and empty lines; false at the end. */
static inline bool vector_next_line(struct slice *rest, struct arena *arena, struct slice *ret_line)
{
	while (rest->length > 0) {
		struct slice line = slice_take_until(rest, '\n');
		struct buffer whole;

		if (line.length == 0 || line.data[0] == '#')
			continue;
		buffer_init(&whole, 1 << 20);
		buffer_append_slice(&whole, line);
		while (rest->length > 0 && rest->data[0] == '\t')
			buffer_append_slice(&whole, slice_from_offset(slice_take_until(rest, '\n'), 1));
		assert_true(arena_copy(arena, buffer_slice(&whole), ret_line));
		buffer_destroy(&whole);
		return true;
	}
	return false;
}

static inline void vector_load_fixture(struct vector_cluster *cluster, struct arena *arena, const char *text)
{
	struct slice rest = slice_of(text);
	struct slice line;

	*cluster = (struct vector_cluster){ .settings = { .provisioner = SLICE("csi-baremetal") } };
	cluster->view = (struct storage_view){ cluster, vector_find_claim, vector_find_class, NULL };
	volume_counts_init(&cluster->volumes);
	while (vector_next_line(&rest, arena, &line)) {
		struct slice words = line;
		struct slice command = slice_take_until(&words, ' ');

		if (slice_equal_text(command, "define"))
			vector_define(cluster, arena, words);
		else if (slice_equal_text(command, "class"))
			vector_add_class(cluster, words);
		else if (slice_equal_text(command, "claim"))
			vector_add_claim(cluster, words);
		else
			fail_msg("bad line in the fixture: %.*s", SLICE_ARGS(line));
	}
}

#endif
