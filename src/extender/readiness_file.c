/*
 * YAML becomes JSON, JSON the generated structs; then the first item of the name decides.
 */
#include "extender/readiness_file.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "codec/yaml.h"
#include "extender/process_limits.h"
#include "gen/readiness.gen.h"

static bool decode(struct slice json, struct arena *arena, struct readiness_file *file, struct error *err)
{
	struct json_reader reader;

	if (slice_equal_text(slice_trim(json), "null")) /* an empty file */
		return true;
	return json_reader_open(&reader, json, arena, err) && readiness_file_decode(&reader, file, err) &&
	       json_reader_finish(&reader, err);
}

static bool judge(const struct readiness_file *file, struct slice node_name, struct error *err)
{
	for (size_t i = 0; i < file->nodes_count; i++) {
		const struct readiness_node *node = &file->nodes[i];

		if (slice_equal(node->node_name, node_name))
			return node->restarted ||
			       error_set(err, ERROR_REFUSED, "kube-scheduler %.*s is not restarted after patching",
			                 SLICE_ARGS(node->kube_scheduler));
	}
	return error_set(err, ERROR_REFUSED, "node %.*s is not found in extenders status list", SLICE_ARGS(node_name));
}

bool readiness_file_check(struct slice text, struct slice node_name, struct error *err)
{
	struct readiness_file file = { 0 };
	struct buffer json;
	struct arena arena;
	bool ready;

	buffer_init(&json, READINESS_JSON_BYTES);
	arena_init(&arena, READINESS_ARENA_BYTES);
	ready = yaml_to_json(text, &json, err) && decode(buffer_slice(&json), &arena, &file, err);
	ready = ready ? judge(&file, node_name, err) : error_wrap(err, "yaml");
	arena_destroy(&arena);
	buffer_destroy(&json);
	return ready;
}
