#include "sandbox/vm_schema.h"

#include <inttypes.h>

#include "codec/quantity.h"
#include "codec/rfc3339.h"
#include "sandbox/vm_view.h"

/* ---- defaults ---- */

struct default_value {
	const char *parent; /* pointer; where it is missing, so is the default */
	const char *key;
	const char *text;    /* a string, or NULL: */
	int64_t number;      /* a number, or */
	bool is_bool, truth; /* a bool */
};

static const struct default_value DEFAULTS[] = {
	{ .parent = "/spec", .key = "qmp", .number = 20183 },
	{ .parent = "/spec", .key = "qmpManual", .number = 20184 },
	{ .parent = "/spec", .key = "runnerPort", .number = 25183 },
	{ .parent = "/spec", .key = "terminationGracePeriodSeconds", .number = 5 },
	{ .parent = "/spec", .key = "restartPolicy", .text = "Always" },
	{ .parent = "/spec", .key = "enableAcceleration", .is_bool = true, .truth = true },
	{ .parent = "/spec", .key = "enableSSH", .is_bool = true, .truth = true },
	{ .parent = "/spec", .key = "enableNetworkMonitoring", .is_bool = true },
	{ .parent = "/spec/guest", .key = "memorySlotSize", .text = "1Gi" },
	{ .parent = "/spec/guest/rootDisk", .key = "imagePullPolicy", .text = "IfNotPresent" },
};

static struct json_node *make_default(const struct default_value *value, struct arena *arena)
{
	if (value->text != NULL)
		return json_tree_string(arena, slice_of(value->text));
	return value->is_bool ? json_tree_bool(arena, value->truth) : json_tree_number(arena, value->number);
}

bool vm_schema_set_defaults(struct json_node *root, struct arena *arena, struct error *err)
{
	for (size_t i = 0; i < sizeof DEFAULTS / sizeof *DEFAULTS; i++) {
		struct json_node *parent = json_tree_find(root, DEFAULTS[i].parent);
		struct slice key = slice_of(DEFAULTS[i].key);

		if (parent == NULL || parent->kind != JSON_KIND_OBJECT || json_tree_member(parent, key) != NULL)
			continue;
		if (!json_tree_set(parent, key, make_default(&DEFAULTS[i], arena)))
			return error_set(err, ERROR_NO_MEMORY, "no memory for the defaults of a VirtualMachine");
	}
	return true;
}

/* ---- checks ---- */

struct check {
	struct api_error *error;
	struct arena *arena;
	bool failed;
};

static void fail(struct check *check, const char *reason, struct slice message, const char *field)
{
	check->failed = true;
	api_error_add_cause(check->error, reason, message, slice_of(field));
}

/* As the original names types of JSON. */
static const char *type_name(const struct json_node *node)
{
	static const char *const NAMES[] = {
		[JSON_KIND_NONE] = "null",     [JSON_KIND_NULL] = "null",     [JSON_KIND_BOOL] = "boolean",
		[JSON_KIND_NUMBER] = "number", [JSON_KIND_STRING] = "string", [JSON_KIND_ARRAY] = "array",
		[JSON_KIND_OBJECT] = "object",
	};
	int64_t whole;

	return json_tree_integer(node, &whole) ? "integer" : NAMES[node->kind];
}

static void fail_type(struct check *check, const char *field, const char *wanted, const struct json_node *node)
{
	fail(check, "FieldValueInvalid",
	     api_text(check->arena, "Invalid value: \"%s\": %s in body must be of type %s: \"%s\"", type_name(node),
	              field, wanted, type_name(node)),
	     field);
}

static void fail_required(struct check *check, const char *field)
{
	fail(check, "FieldValueRequired", SLICE("Required value"), field);
}

/* "spec.guest" as the pointer "/spec/guest". */
static const struct json_node *find(const struct json_node *root, const char *field)
{
	struct slice rest = slice_of(field);

	while (root != NULL && rest.length > 0)
		root = json_tree_member(root, slice_take_until(&rest, '.'));
	return root;
}

static bool check_object(struct check *check, const struct json_node *root, const char *field, bool required)
{
	const struct json_node *node = find(root, field);

	if (node != NULL && node->kind == JSON_KIND_OBJECT)
		return true;
	if (node != NULL)
		fail_type(check, field, "object", node);
	else if (required)
		fail_required(check, field);
	return false;
}

static void check_cpu(struct check *check, const struct json_node *root, const char *field)
{
	const struct json_node *node = find(root, field);
	int64_t whole;
	uint32_t milli;

	if (node == NULL)
		fail_required(check, field);
	else if (node->kind != JSON_KIND_STRING && !json_tree_integer(node, &whole))
		fail_type(check, field, "integer,string", node);
	else if (!vm_view_milli_cpu(node, &milli))
		fail(check, "FieldValueInvalid",
		     api_text(check->arena,
		              "Invalid value: \"%.*s\": %s in body should match '^[0-9]+((\\.[0-9]*)?|m)'",
		              SLICE_ARGS(node->text), field),
		     field);
}

static void check_integer(struct check *check, const struct json_node *root, const char *field, int64_t low,
                          int64_t high)
{
	const struct json_node *node = find(root, field);
	int64_t value;

	if (node == NULL)
		fail_required(check, field);
	else if (!json_tree_integer(node, &value))
		fail_type(check, field, "integer", node);
	else if (value < low || value > high)
		fail(check, "FieldValueInvalid",
		     api_text(check->arena,
		              "Invalid value: %" PRId64 ": %s in body should be %s than or equal to %" PRId64, value,
		              field, value < low ? "greater" : "less", value < low ? low : high),
		     field);
}

static void check_slot_size(struct check *check, const struct json_node *root)
{
	static const char FIELD[] = "spec.guest.memorySlotSize";
	const struct json_node *node = find(root, FIELD);
	int64_t whole;
	uint64_t bytes;

	if (node == NULL)
		fail_required(check, FIELD);
	else if (node->kind != JSON_KIND_STRING && !json_tree_integer(node, &whole))
		fail_type(check, FIELD, "integer,string", node);
	else if (!vm_view_bytes(node, &bytes))
		fail(check, "FieldValueInvalid",
		     api_text(
			     check->arena,
			     "Invalid value: \"%.*s\": %s in body should match "
			     "'^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$'",
			     SLICE_ARGS(node->text), FIELD),
		     FIELD);
}

static void check_target_revision(struct check *check, const struct json_node *root)
{
	static const char UPDATED_AT[] = "spec.targetRevision.updatedAt";
	const struct json_node *updated_at = find(root, UPDATED_AT);
	struct error err;
	int64_t ns;

	if (!check_object(check, root, "spec.targetRevision", false))
		return;
	if (check_object(check, root, "spec.targetRevision.revision", true)) {
		check_integer(check, root, "spec.targetRevision.revision.flags", INT64_MIN, INT64_MAX);
		check_integer(check, root, "spec.targetRevision.revision.value", INT64_MIN, INT64_MAX);
	}
	if (updated_at == NULL)
		fail_required(check, UPDATED_AT);
	else if (updated_at->kind != JSON_KIND_STRING)
		fail_type(check, UPDATED_AT, "string", updated_at);
	else if (!rfc3339_parse(updated_at->text, &ns, &err))
		fail(check, "FieldValueInvalid",
		     api_text(check->arena, "Invalid value: \"%.*s\": %s in body must be of type date-time: \"%.*s\"",
		              SLICE_ARGS(updated_at->text), UPDATED_AT, SLICE_ARGS(updated_at->text)),
		     UPDATED_AT);
}

static void check_guest(struct check *check, const struct json_node *root)
{
	if (!check_object(check, root, "spec.guest", true))
		return;
	if (check_object(check, root, "spec.guest.cpus", true)) {
		check_cpu(check, root, "spec.guest.cpus.max");
		check_cpu(check, root, "spec.guest.cpus.min");
		check_cpu(check, root, "spec.guest.cpus.use");
	}
	check_slot_size(check, root);
	if (check_object(check, root, "spec.guest.memorySlots", true)) {
		check_integer(check, root, "spec.guest.memorySlots.max", VM_SLOTS_MIN, VM_SLOTS_MAX);
		check_integer(check, root, "spec.guest.memorySlots.min", VM_SLOTS_MIN, VM_SLOTS_MAX);
		check_integer(check, root, "spec.guest.memorySlots.use", VM_SLOTS_MIN, VM_SLOTS_MAX);
	}
}

bool vm_schema_check(const struct json_node *root, struct arena *arena, struct api_error *ret_error)
{
	struct check check = { .error = ret_error, .arena = arena };

	api_error_invalid(ret_error, arena, resource_kind(RESOURCE_VIRTUAL_MACHINES),
	                  json_tree_text(json_tree_find(root, "/metadata/name")));
	if (check_object(&check, root, "spec", true)) {
		check_guest(&check, root);
		check_target_revision(&check, root);
	}
	if (check.failed)
		api_error_sum_up(ret_error, arena);
	return !check.failed;
}
