#include "extender/go_flags.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "codec/duration_text.h"

enum { DEFAULT_BYTES_MAX = 4096 };

static const struct go_flag *find_flag(const struct go_flag *flags, size_t count, struct slice name)
{
	for (size_t i = 0; i < count; i++) {
		if (slice_equal_text(name, flags[i].name))
			return &flags[i];
	}
	return NULL;
}

static bool read_bool(struct slice text, bool *ret_value)
{
	static const char *const TRUE_TEXTS[] = { "1", "t", "T", "true", "TRUE", "True" };
	static const char *const FALSE_TEXTS[] = { "0", "f", "F", "false", "FALSE", "False" };

	for (size_t i = 0; i < sizeof TRUE_TEXTS / sizeof TRUE_TEXTS[0]; i++) {
		if (slice_equal_text(text, TRUE_TEXTS[i]) || slice_equal_text(text, FALSE_TEXTS[i])) {
			*ret_value = slice_equal_text(text, TRUE_TEXTS[i]);
			return true;
		}
	}
	return false;
}

static bool set_value(const struct go_flag *flag, const char *value, struct error *err)
{
	int64_t number;
	struct error ignored;

	switch (flag->kind) {
	case GO_FLAG_TEXT:
		*flag->text = value;
		return true;
	case GO_FLAG_BOOL:
		if (!read_bool(slice_of(value), flag->flag))
			return error_set(err, ERROR_SYNTAX, "invalid boolean value \"%s\" for -%s: parse error", value,
			                 flag->name);
		return true;
	case GO_FLAG_NUMBER:
		if (!slice_to_i64(slice_of(value), &number))
			return error_set(err, ERROR_SYNTAX, "invalid value \"%s\" for flag -%s: parse error", value,
			                 flag->name);
		if (number < flag->low || number > flag->high)
			return error_set(err, ERROR_LIMIT,
			                 "invalid value \"%s\" for flag -%s: not from %" PRId64 " to %" PRId64, value,
			                 flag->name, flag->low, flag->high);
		*flag->number = number;
		return true;
	case GO_FLAG_DURATION:
		if (!duration_parse(slice_of(value), &number, &ignored))
			return error_set(err, ERROR_SYNTAX, "invalid value \"%s\" for flag -%s: parse error", value,
			                 flag->name);
		if (number < flag->low || number > flag->high)
			return error_set(err, ERROR_LIMIT, "invalid value \"%s\" for flag -%s: out of range", value,
			                 flag->name);
		*flag->duration_ns = number;
		return true;
	}
	return error_set(err, ERROR_INVARIANT, "flag -%s is of no kind", flag->name);
}

/* Reads the flag at argv[*position], and its value, which may be the next word. */
static enum go_flags_result read_flag(const struct go_flag *flags, size_t count, int argc, char **argv, int *position,
                                      struct error *err)
{
	const char *word = argv[*position];
	struct slice rest = slice_of(word + (word[1] == '-' ? 2 : 1));
	const char *equals = memchr(rest.data, '=', rest.length);
	struct slice name = slice_take_until(&rest, '=');
	const struct go_flag *flag;

	if (name.length == 0 || name.data[0] == '-') {
		error_set(err, ERROR_SYNTAX, "bad flag syntax: %s", word);
		return GO_FLAGS_WRONG;
	}
	flag = find_flag(flags, count, name);
	if (flag == NULL) {
		if (slice_equal_text(name, "help") || slice_equal_text(name, "h"))
			return GO_FLAGS_HELP;
		if (slice_equal_text(name, "version"))
			return GO_FLAGS_VERSION;
		error_set(err, ERROR_SYNTAX, "flag provided but not defined: -%.*s", SLICE_ARGS(name));
		return GO_FLAGS_WRONG;
	}
	if (equals != NULL)
		return set_value(flag, equals + 1, err) ? GO_FLAGS_READ : GO_FLAGS_WRONG;
	if (flag->kind == GO_FLAG_BOOL) {
		*flag->flag = true;
		return GO_FLAGS_READ;
	}
	if (*position + 1 >= argc) {
		error_set(err, ERROR_SYNTAX, "flag needs an argument: -%s", flag->name);
		return GO_FLAGS_WRONG;
	}
	++*position;
	return set_value(flag, argv[*position], err) ? GO_FLAGS_READ : GO_FLAGS_WRONG;
}

enum go_flags_result go_flags_read(const struct go_flag *flags, size_t count, int argc, char **argv, int *ret_ignored,
                                   struct error *err)
{
	int position = 1;

	for (; position < argc; position++) {
		const char *word = argv[position];
		enum go_flags_result result;

		if (word[0] != '-' || word[1] == '\0')
			break;
		if (strcmp(word, "--") == 0) {
			position++;
			break;
		}
		result = read_flag(flags, count, argc, argv, &position, err);
		if (result != GO_FLAGS_READ)
			return result;
	}
	*ret_ignored = position;
	return GO_FLAGS_READ;
}

/* ---- usage ---- */

/* The word in back quotes, or what the kind says; the rest of the help has no quotes. */
static void print_head(const struct go_flag *flag, FILE *out)
{
	static const char *const KINDS[] = {
		[GO_FLAG_TEXT] = " string",
		[GO_FLAG_BOOL] = "",
		[GO_FLAG_NUMBER] = " int",
		[GO_FLAG_DURATION] = " duration",
	};
	struct slice rest = slice_of(flag->help);
	struct slice before = slice_take_until(&rest, '`');
	struct slice word = slice_take_until(&rest, '`');

	if (before.length == strlen(flag->help))
		(void)fprintf(out, "  -%s%s\n", flag->name, KINDS[flag->kind]);
	else
		(void)fprintf(out, "  -%s %.*s\n", flag->name, SLICE_ARGS(word));
}

static void print_help(const struct go_flag *flag, FILE *out)
{
	(void)fputs("    \t", out);
	for (const char *at = flag->help; *at != '\0'; at++) {
		if (*at == '\n')
			(void)fputs("\n    \t", out);
		else if (*at != '`')
			(void)fputc(*at, out);
	}
}

void go_flags_append_default(const struct go_flag *flag, struct buffer *out)
{
	switch (flag->kind) {
	case GO_FLAG_TEXT:
		if (*flag->text != NULL && (*flag->text)[0] != '\0')
			buffer_append_format(out, " (default \"%s\")", *flag->text);
		break;
	case GO_FLAG_BOOL:
		if (*flag->flag)
			buffer_append_text(out, " (default true)");
		break;
	case GO_FLAG_NUMBER:
		if (*flag->number != 0)
			buffer_append_format(out, " (default %" PRId64 ")", *flag->number);
		break;
	case GO_FLAG_DURATION:
		if (*flag->duration_ns == 0)
			break;
		buffer_append_text(out, " (default ");
		duration_print(*flag->duration_ns, out);
		buffer_append_char(out, ')');
		break;
	}
}

void go_flags_print_usage(const struct go_flag *flags, size_t count, FILE *out)
{
	struct buffer text;

	buffer_init(&text, DEFAULT_BYTES_MAX);
	for (size_t i = 0; i < count; i++) {
		print_head(&flags[i], out);
		print_help(&flags[i], out);
		buffer_clear(&text);
		go_flags_append_default(&flags[i], &text);
		(void)fprintf(out, "%.*s\n", SLICE_ARGS(buffer_slice(&text)));
	}
	buffer_destroy(&text);
}
