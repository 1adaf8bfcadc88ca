/*
 * A file is read whole, decoded by its schema, checked for what the schema can't say, and turned into what the agent
 * works with. Loading stops at the first decode error, as the reference does; checking collects them, and then leaves
 * out what merely follows from them: a value that couldn't be read isn't reported as zero, too.
 */
#include "agent/config.h"

#include <stdlib.h>

#include "agent/config_document.h"
#include "agent/config_problems.h"
#include "agent/json_cause.h"
#include "base/buffer.h"
#include "base/file.h"
#include "codec/go_quote.h"
#include "codec/json_locate.h"
#include "codec/json_problem.h"

enum { QUOTED_PATH_BYTES = 16384 };

/* ---- reading the file ---- */

/* "WHAT config file "PATH"", with the path in quotes; cut if it is absurdly long. */
static bool fail_at(const char *path, const char *what, struct error *err)
{
	struct buffer quoted;

	buffer_init(&quoted, QUOTED_PATH_BYTES);
	go_quote_append(&quoted, slice_of(path));
	error_wrap(err, "%s %.*s", what, SLICE_ARGS(buffer_slice(&quoted)));
	buffer_destroy(&quoted);
	return false;
}

static bool fail_decoding(const char *path, enum agent_generation generation, struct error *err)
{
	bool is_a = generation == AGENT_GENERATION_A;

	return fail_at(path, is_a ? "Error decoding JSON config in" : "error decoding JSON config in", err);
}

/* The text goes into the arena, so that slices of it live as long as what is made of them. */
static bool read_file(const char *path, struct arena *arena, struct slice *ret_text, struct error *err)
{
	struct buffer text;
	bool ok = false;
	int descriptor = file_open(path, err);

	if (descriptor < 0)
		return fail_at(path, "error opening config file", err);
	buffer_init(&text, AGENT_CONFIG_FILE_BYTES);
	if (!file_read_and_close(descriptor, path, &text, err))
		fail_decoding(path, AGENT_GENERATION_B, err);
	else if (!arena_copy(arena, buffer_slice(&text), ret_text))
		error_set(err, ERROR_NO_MEMORY, "no memory for the config file");
	else
		ok = true;
	buffer_destroy(&text);
	return ok;
}

/* ---- loading ---- */

/* What isn't JSON has no generation: it fails in B's words (generations 1.1). */
static bool decode(const char *path, struct slice text, struct arena *arena, struct config_document *ret_document,
                   struct error *err)
{
	struct json_reader reader;

	ret_document->generation = AGENT_GENERATION_B;
	if (json_reader_open(&reader, text, arena, err)) {
		ret_document->generation = config_schema_detect(&reader).generation;
		if (config_document_decode(&reader, ret_document, err) && json_reader_finish(&reader, err))
			return true;
	}
	(void)json_cause_restate(&reader, true, err);
	return fail_decoding(path, ret_document->generation, err);
}

/* The whole text may be longer than an error's. */
static bool fail_invalid(enum agent_generation generation, const struct config_problems *problems, struct arena *arena,
                         struct slice *ret_error_text, struct error *err)
{
	struct buffer text;

	buffer_init(&text, CONFIG_PROBLEMS_TEXT_BYTES);
	buffer_append_text(&text, generation == AGENT_GENERATION_A ? "Invalid config: " : "invalid config: ");
	for (size_t i = 0; i < problems->count; i++) {
		if (i > 0)
			buffer_append_text(&text, ": ");
		config_problem_append_text(&problems->items[i], &text);
	}
	if (buffer_check(&text, "what is wrong with the config file", err))
		error_set(err, ERROR_SYNTAX, "%.*s", SLICE_ARGS(buffer_slice(&text)));
	if (text.failed || !arena_copy(arena, buffer_slice(&text), ret_error_text))
		*ret_error_text = slice_of(err->text);
	buffer_destroy(&text);
	return false;
}

static bool encode(const struct config_document *document, struct arena *arena, struct slice *ret_json,
                   struct error *err)
{
	struct buffer json;
	struct json_writer writer;
	bool ok;

	buffer_init(&json, AGENT_CONFIG_ARENA_BYTES);
	json_writer_init(&writer, &json);
	writer.escape_html = false; /* it goes into the log */
	config_document_encode(&writer, document);
	ok = json_writer_check(&writer, "the configuration", err);
	if (ok && !arena_copy(arena, buffer_slice(&json), ret_json))
		ok = error_set(err, ERROR_NO_MEMORY, "no memory for the configuration");
	buffer_destroy(&json);
	return ok;
}

bool agent_config_load(const char *path, struct arena *arena, struct agent_config *ret_config,
                       struct slice *ret_error_text, struct error *err)
{
	struct config_document document;
	struct config_problems problems;
	struct agent_config config;
	struct slice json;
	struct slice text;
	struct error why;

	if (!read_file(path, arena, &text, &why) || !decode(path, text, arena, &document, &why))
		goto failed;
	config_document_find_problems(&document, &problems);
	if (problems.count > 0)
		return fail_invalid(document.generation, &problems, arena, ret_error_text, err);
	if (!config_document_convert(&document, arena, &config, &why) || !encode(&document, arena, &json, &why))
		goto failed;
	*ret_config = config;
	ret_config->json = json;
	return true;
failed:
	*err = why;
	*ret_error_text = slice_of(err->text);
	return false;
}

/* ---- checking ---- */

struct check {
	struct arena *arena;
	struct json_reader reader;
	struct json_problems decode_problems;
	struct agent_config_report *report;
};

static bool add_finding(struct check *check, unsigned line, struct slice path, struct slice text)
{
	struct agent_config_finding *finding = &check->report->findings[check->report->count];

	*finding = (struct agent_config_finding){ .line = line };
	if (!arena_copy(check->arena, path, &finding->path) || !arena_copy(check->arena, text, &finding->text))
		return false;
	check->report->count++;
	return true;
}

static bool add_decode_findings(struct check *check)
{
	const struct json_problems *problems = &check->decode_problems;

	check->report->left_out = problems->dropped;
	for (size_t i = 0; i < problems->count; i++) {
		const struct json_problem *problem = &problems->items[i];

		if (!add_finding(check, problem->line, slice_of(problem->path), slice_of(problem->text)))
			return false;
	}
	return true;
}

/* Whether what stands at path, or what holds it, couldn't be read; the lack of a value then says nothing. */
static bool unreadable(const struct check *check, struct slice path)
{
	for (size_t i = 0; i < check->decode_problems.count; i++) {
		const struct json_problem *problem = &check->decode_problems.items[i];
		struct slice bad = slice_of(problem->path);

		if (problem->kind != JSON_PROBLEM_TYPE && problem->kind != JSON_PROBLEM_VALUE)
			continue;
		if (slice_starts_with(path, bad) &&
		    (bad.length == 0 || path.length == bad.length || path.data[bad.length] == '.'))
			return true;
	}
	return false;
}

static bool add_problem_finding(struct check *check, const struct config_problem *problem)
{
	struct buffer path;
	struct buffer text;
	bool ok = true;

	buffer_init(&path, CONFIG_PATH_BYTES);
	buffer_init(&text, CONFIG_PROBLEM_TEXT_BYTES);
	config_problem_append_path(problem, &path);
	if (path.no_memory) {
		ok = false;
	} else if (!unreadable(check, buffer_slice(&path))) {
		struct json_place place = json_locate(&check->reader, buffer_slice(&path));

		if (place.present || problem->about_absence)
			config_problem_append_what(problem, &text);
		else
			buffer_append_text(&text, "is missing");
		ok = !text.no_memory && add_finding(check, place.line, buffer_slice(&path), buffer_slice(&text));
	}
	buffer_destroy(&path);
	buffer_destroy(&text);
	return ok;
}

static int by_line(const void *a, const void *b)
{
	const struct agent_config_finding *first = a;
	const struct agent_config_finding *second = b;

	if (first->line != second->line)
		return first->line < second->line ? -1 : 1;
	return slice_compare(first->path, second->path);
}

static bool check_document(struct check *check)
{
	struct config_schema schema = config_schema_detect(&check->reader);
	struct config_document document = { .generation = schema.generation };
	struct config_problems problems;
	struct error why; /* the problems say more, unless memory is short */
	bool decoded_well =
		config_document_decode(&check->reader, &document, &why) && json_reader_finish(&check->reader, &why);

	check->report->generation = agent_generation_name(schema.generation);
	if (schema.marker_a != NULL && schema.marker_b != NULL) {
		check->report->key_of_a = schema.marker_a;
		check->report->key_of_b = schema.marker_b;
	}
	if (!decoded_well && (check->decode_problems.count == 0 || why.code == ERROR_NO_MEMORY))
		return false;
	config_document_find_problems(&document, &problems);
	for (size_t i = 0; i < problems.count; i++) {
		if (!add_problem_finding(check, &problems.items[i]))
			return false;
	}
	return true;
}

/* What is wrong with the document as a whole, where the decoder's words for it wouldn't help; or NULL. */
static const char *document_fault(struct slice text)
{
	if (slice_starts_with(text, SLICE("\xEF\xBB\xBF")))
		return "starts with a byte order mark, which JSON doesn't allow";
	/* The decoder takes it as {}, as the reference does, and would miss every key. */
	if (slice_equal_text(slice_trim(text), "null"))
		return "expected object, found null";
	return NULL;
}

static unsigned first_line_with_text(struct slice text)
{
	unsigned line = 1;

	for (const char *byte = text.data; byte < slice_trim(text).data; byte++)
		line += *byte == '\n';
	return line;
}

bool agent_config_check_text(struct slice text, struct arena *arena, struct agent_config_report *ret_report,
                             struct error *err)
{
	struct agent_config_report report = { .generation = "B" };
	struct check check = { .arena = arena, .report = &report };
	const char *fault = document_fault(text);
	bool ok = true;

	report.findings = arena_allocate_array(arena, JSON_MAX_PROBLEMS + CONFIG_PROBLEMS_MAX, sizeof *report.findings);
	if (report.findings == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for what is wrong with the config file");
	if (fault != NULL)
		ok = add_finding(&check, first_line_with_text(text), slice_of(""), slice_of(fault));
	else if (json_reader_open_collecting(&check.reader, text, arena, &check.decode_problems, err))
		ok = check_document(&check);
	else if (check.decode_problems.count == 0)
		return false;
	if (!ok || !add_decode_findings(&check))
		return error_set(err, ERROR_NO_MEMORY, "no memory for what is wrong with the config file");
	qsort(report.findings, report.count, sizeof *report.findings, by_line);
	*ret_report = report;
	return true;
}

bool agent_config_check(const char *path, struct arena *arena, struct agent_config_report *ret_report,
                        struct error *err)
{
	struct slice text;

	return read_file(path, arena, &text, err) && agent_config_check_text(text, arena, ret_report, err);
}
