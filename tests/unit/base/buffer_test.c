#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/memory.h"

#define assert_content(buffer, text) assert_true(slice_equal_text(buffer_slice(buffer), (text)))

static void everything_appended_stands_in_order(void **state)
{
	(void)state;
	struct buffer buffer;
	struct error err;

	buffer_init(&buffer, 1000);
	buffer_append(&buffer, "ab", 2);
	buffer_append(&buffer, NULL, 0);
	buffer_append_slice(&buffer, SLICE("cd"));
	buffer_append_text(&buffer, "ef");
	buffer_append_char(&buffer, 'g');
	buffer_append_format(&buffer, "%d-%s", 12, "h");
	assert_content(&buffer, "abcdefg12-h");
	assert_true(buffer_check(&buffer, "the text", &err));
	buffer_destroy(&buffer);
	buffer_destroy(&buffer);
}

static void a_buffer_fills_to_its_limit_and_not_beyond(void **state)
{
	(void)state;
	struct buffer buffer;
	struct error err;

	buffer_init(&buffer, 10);
	buffer_append_text(&buffer, "12345");
	buffer_append_format(&buffer, "%s", "67890");
	assert_content(&buffer, "1234567890");
	assert_true(buffer_check(&buffer, "the text", &err));

	buffer_append_char(&buffer, 'x');
	assert_content(&buffer, "1234567890");
	assert_false(buffer_check(&buffer, "the text", &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "the text is over 10 bytes");
	buffer_destroy(&buffer);
}

static void after_a_failure_nothing_is_appended_until_it_is_cleared(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, 4);
	buffer_append_text(&buffer, "ab");
	buffer_append_format(&buffer, "%s", "too long");
	buffer_append_char(&buffer, 'c');
	assert_null(buffer_reserve(&buffer, 1));
	assert_content(&buffer, "ab");
	assert_true(buffer.failed);

	buffer_clear(&buffer);
	buffer_append_text(&buffer, "abcd");
	assert_content(&buffer, "abcd");
	assert_false(buffer.failed);

	buffer_release(&buffer);
	assert_int_equal(buffer.capacity, 0);
	buffer_append_text(&buffer, "efgh");
	assert_content(&buffer, "efgh");
	buffer_append_char(&buffer, 'i');
	assert_true(buffer.failed);
	buffer_destroy(&buffer);
}

static void reserved_room_counts_once_it_is_used(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, 5000);
	buffer_append_text(&buffer, "ab");

	char *room = buffer_reserve(&buffer, 4000);

	assert_non_null(room);
	memset(room, 'x', 4000);
	assert_int_equal(buffer.length, 2);
	buffer_advance(&buffer, 3);
	assert_content(&buffer, "abxxx");
	assert_non_null(buffer_reserve(&buffer, 4995));
	assert_null(buffer_reserve(&buffer, 4996));
	buffer_destroy(&buffer);

	buffer_init(&buffer, 10);
	assert_non_null(buffer_reserve(&buffer, 0));
	buffer_destroy(&buffer);
}

static void consuming_drops_from_the_front(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, 100);
	buffer_consume(&buffer, 1);
	buffer_append_text(&buffer, "abcdef");
	buffer_consume(&buffer, 0);
	buffer_consume(&buffer, 2);
	assert_content(&buffer, "cdef");
	buffer_append_text(&buffer, "gh");
	assert_content(&buffer, "cdefgh");
	buffer_consume(&buffer, 100);
	assert_content(&buffer, "");
	buffer_destroy(&buffer);
}

static void a_long_format_grows_the_buffer(void **state)
{
	(void)state;
	struct buffer buffer;
	char text[3001];

	memset(text, 'y', 3000);
	text[3000] = '\0';
	buffer_init(&buffer, SIZE_MAX);
	buffer_append_text(&buffer, "a");
	buffer_append_format(&buffer, "%s%d", text, 7);
	assert_int_equal(buffer.length, 3002);
	assert_memory_equal(buffer.data + 1, text, 3000);
	assert_int_equal(buffer.data[3001], '7');
	buffer_destroy(&buffer);
}

static void append_much(struct buffer *buffer)
{
	buffer_append_text(buffer, "text ");
	for (int i = 0; i < 300; i++)
		buffer_append_format(buffer, "%d ", i);
	for (int i = 0; i < 300; i++)
		buffer_append_char(buffer, 'z');
}

static void short_memory_at_any_allocation_is_reported(void **state)
{
	(void)state;
	struct buffer buffer;
	struct error err;
	unsigned long failing = 1;

	for (;; failing++) {
		buffer_init(&buffer, 100000);
		memory_fail_at(failing);
		append_much(&buffer);

		bool reached = memory_allocation_count() >= failing;

		memory_fail_at(0);
		assert_int_equal(buffer_check(&buffer, "it", &err), !reached);
		if (!reached)
			break;
		assert_int_equal(err.code, ERROR_NO_MEMORY);
		assert_string_equal(err.text, "no memory for it");
		buffer_destroy(&buffer);
	}
	assert_true(failing > 3);
	assert_int_equal(buffer.length, 5 + 10 * 2 + 90 * 3 + 200 * 4 + 300);
	buffer_destroy(&buffer);
}

static const char TOKEN[] = "token-5f1d";

static bool is_in(const char *bytes, size_t length)
{
	return memmem(bytes, length, TOKEN, strlen(TOKEN)) != NULL;
}

static void a_secret_is_overwritten_wherever_it_was(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init_secret(&buffer, SIZE_MAX);
	buffer_append_text(&buffer, TOKEN);
	assert_true(is_in(buffer.data, buffer.capacity));
	buffer_clear(&buffer);
	assert_false(is_in(buffer.data, buffer.capacity));

	buffer_append_text(&buffer, "head ");
	buffer_append_text(&buffer, TOKEN);
	buffer_consume(&buffer, 5); /* moves it */
	buffer_consume(&buffer, strlen(TOKEN));
	assert_false(is_in(buffer.data, buffer.capacity));
	assert_false(is_in(buffer.data, 5 + strlen(TOKEN)));

	/* Still a secret after buffer_release, and longer than what is kept in one block. */
	buffer_release(&buffer);
	assert_true(buffer.secret);
	buffer_append_text(&buffer, TOKEN);
	for (int i = 0; i < 1000; i++)
		buffer_append_char(&buffer, 'x');
	assert_memory_equal(buffer.data, TOKEN, strlen(TOKEN));
	assert_int_equal(buffer.length, strlen(TOKEN) + 1000);
	buffer_destroy(&buffer);
	assert_null(buffer.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_appended_stands_in_order),
		cmocka_unit_test(a_buffer_fills_to_its_limit_and_not_beyond),
		cmocka_unit_test(after_a_failure_nothing_is_appended_until_it_is_cleared),
		cmocka_unit_test(reserved_room_counts_once_it_is_used),
		cmocka_unit_test(consuming_drops_from_the_front),
		cmocka_unit_test(a_long_format_grows_the_buffer),
		cmocka_unit_test(short_memory_at_any_allocation_is_reported),
		cmocka_unit_test(a_secret_is_overwritten_wherever_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
