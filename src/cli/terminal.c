#include "cli/terminal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_can_redraw(void)
{
	const char *terminal = getenv("TERM");

	return isatty(STDOUT_FILENO) == 1 && terminal != NULL && terminal[0] != '\0' && strcmp(terminal, "dumb") != 0;
}

struct terminal_size terminal_size(void)
{
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		return (struct terminal_size){ 0 };
	return (struct terminal_size){ .rows = size.ws_row, .columns = size.ws_col };
}

/* Controls (C0, DEL, C1); then Unicode's zero-width characters, line separators and marks of direction. */
static bool is_unclean(uint32_t code_point)
{
	return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0) || code_point == 0xad ||
	       code_point == 0x61c || (code_point >= 0x200b && code_point <= 0x200f) ||
	       (code_point >= 0x2028 && code_point <= 0x202e) || (code_point >= 0x2060 && code_point <= 0x206f) ||
	       code_point == 0xfeff;
}

/* The next character of the text, or a byte that is none. */
static struct slice take_character(struct slice *text, uint32_t *ret_code_point, bool *ret_unclean)
{
	size_t length = slice_utf8_next(*text, ret_code_point);
	struct slice character = slice_from(text->data, length > 0 ? length : 1);

	*ret_unclean = length == 0 || is_unclean(*ret_code_point);
	*text = slice_from_offset(*text, character.length);
	return character;
}

void terminal_append_clean(struct slice text, struct buffer *out)
{
	while (text.length > 0) {
		uint32_t code_point;
		bool unclean;
		struct slice character = take_character(&text, &code_point, &unclean);

		buffer_append_slice(out, unclean ? SLICE("?") : character);
	}
}

void terminal_print_clean(FILE *out, struct slice text)
{
	while (text.length > 0) {
		uint32_t code_point;
		bool unclean;
		struct slice character = take_character(&text, &code_point, &unclean);

		(void)fprintf(out, "%.*s", SLICE_ARGS(unclean ? SLICE("?") : character));
	}
}

void terminal_append_clean_json(struct slice json, struct buffer *out)
{
	while (json.length > 0) {
		uint32_t code_point = 0;
		bool unclean;
		struct slice character = take_character(&json, &code_point, &unclean);

		if (unclean)
			buffer_append_format(out, "\\u%04x", (unsigned)code_point);
		else
			buffer_append_slice(out, character);
	}
}
