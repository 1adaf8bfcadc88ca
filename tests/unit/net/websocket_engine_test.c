#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "net/websocket_engine.h"

enum { LIMIT_BYTES = 32768, LOG_BYTES = 1 << 20 };

static const unsigned char MASK[4] = { 0x11, 0xa2, 0x33, 0xc4 };

static bool fixed_random(void *context, void *data, size_t length)
{
	(void)context;
	for (size_t i = 0; i < length; i++)
		((unsigned char *)data)[i] = MASK[i % 4];
	return true;
}

static bool no_random(void *context, void *data, size_t length)
{
	(void)context;
	(void)data;
	(void)length;
	return false;
}

/* SLICE as a constant. */
#define TEXT(literal)                        \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

/* ---- building frames ---- */

struct bytes {
	struct buffer buffer;
	bool masked; /* frames come from a client */
};

static struct bytes from_server(void)
{
	struct bytes bytes = { 0 };

	buffer_init(&bytes.buffer, LOG_BYTES);
	return bytes;
}

static struct bytes from_client(void)
{
	struct bytes bytes = from_server();

	bytes.masked = true;
	return bytes;
}

/* A frame with the given first byte, and its length in `length_bytes` (0, 2, 8) more bytes. */
static void add_frame_long(struct bytes *bytes, int first, struct slice payload, int length_bytes)
{
	static const int SHORT_LENGTHS[] = { [2] = 126, [8] = 127 };
	int short_length = length_bytes == 0 ? (int)payload.length : SHORT_LENGTHS[length_bytes];

	buffer_append_char(&bytes->buffer, (char)first);
	buffer_append_char(&bytes->buffer, (char)(short_length | (bytes->masked ? 0x80 : 0)));
	for (int i = length_bytes - 1; i >= 0; i--)
		buffer_append_char(&bytes->buffer, (char)((uint64_t)payload.length >> (8 * i)));
	if (bytes->masked)
		buffer_append(&bytes->buffer, MASK, sizeof MASK);
	for (size_t i = 0; i < payload.length; i++)
		buffer_append_char(&bytes->buffer, (char)(payload.data[i] ^ (bytes->masked ? (char)MASK[i % 4] : 0)));
	assert_false(bytes->buffer.failed);
}

static void add_frame(struct bytes *bytes, int first, struct slice payload)
{
	add_frame_long(bytes, first, payload, payload.length < 126 ? 0 : payload.length <= 65535 ? 2 : 8);
}

static void add_raw(struct bytes *bytes, struct slice raw)
{
	buffer_append_slice(&bytes->buffer, raw);
}

/* ---- running an engine ---- */

/* What came out of an engine: a line per event, and everything it wants to send. */
struct run {
	struct websocket_engine engine;
	struct buffer events;
	struct buffer sent;
};

static void run_init(struct run *run, enum websocket_role role, size_t limit)
{
	websocket_engine_init(&run->engine, role, limit, fixed_random, NULL);
	buffer_init(&run->events, LOG_BYTES);
	buffer_init(&run->sent, LOG_BYTES);
}

static void run_destroy(struct run *run)
{
	websocket_engine_destroy(&run->engine);
	buffer_destroy(&run->events);
	buffer_destroy(&run->sent);
}

static void note_payload(struct run *run, struct slice payload)
{
	if (payload.length > 200)
		buffer_append_format(&run->events, "%zu bytes\n", payload.length);
	else
		buffer_append_format(&run->events, "%.*s\n", SLICE_ARGS(payload));
}

static void run_feed(struct run *run, struct slice bytes)
{
	struct websocket_details details;

	for (;;) {
		switch (websocket_engine_next(&run->engine, &bytes, &details)) {
		case WEBSOCKET_EVENT_MORE:
			assert_int_equal(bytes.length, 0);
			buffer_append_slice(&run->sent, buffer_slice(&run->engine.output));
			buffer_release(&run->engine.output);
			return;
		case WEBSOCKET_EVENT_MESSAGE:
			buffer_append_text(&run->events, details.is_text ? "text " : "binary ");
			note_payload(run, details.payload);
			break;
		case WEBSOCKET_EVENT_CLOSE:
			buffer_append_format(&run->events, "close %d ", details.code);
			note_payload(run, details.payload);
			break;
		case WEBSOCKET_EVENT_FAULT:
			buffer_append_format(&run->events, "fault %d ", details.code);
			note_payload(run, details.payload);
			assert_true(slice_equal_text(details.payload, error_root(&details.err)));
			break;
		}
	}
}

/* Feeds the bytes in pieces; then events and, unless data is NULL, what was sent must be as expected. */
static void check_cut(struct slice bytes, enum websocket_role role, size_t first, size_t step, const char *events,
                      struct slice sent)
{
	struct run run;
	size_t length = first;

	run_init(&run, role, LIMIT_BYTES);
	while (bytes.length > 0) {
		if (length > bytes.length)
			length = bytes.length;
		run_feed(&run, slice_from(bytes.data, length));
		bytes = slice_from_offset(bytes, length);
		length = step;
	}
	buffer_append_char(&run.events, '\0');
	if (strcmp(run.events.data, events) != 0)
		fail_msg("cut at %zu, then every %zu bytes:\n%s\ninstead of\n%s", first, step, run.events.data, events);
	if (sent.data != NULL && !slice_equal(buffer_slice(&run.sent), sent))
		fail_msg("cut at %zu, then every %zu bytes: %zu bytes were sent that aren't as expected", first, step,
		         run.sent.length);
	run_destroy(&run);
}

static const struct slice ANYTHING = { NULL, 0 };

/* However the bytes are cut, the same must come. Frees the bytes. */
static void check(struct bytes *bytes, const char *events, struct slice sent)
{
	enum websocket_role role = bytes->masked ? WEBSOCKET_SERVER : WEBSOCKET_CLIENT;
	struct slice all = buffer_slice(&bytes->buffer);

	check_cut(all, role, all.length, all.length, events, sent);
	check_cut(all, role, 1, 1, events, sent);
	check_cut(all, role, 3, 3, events, sent);
	for (size_t cut = 1; cut < all.length && all.length < 400; cut++)
		check_cut(all, role, cut, all.length, events, sent);
	buffer_destroy(&bytes->buffer);
}

/* The close frame that a server sends. */
static struct slice server_close(char *storage, int code, const char *reason)
{
	size_t length = strlen(reason);

	storage[0] = (char)0x88;
	storage[1] = (char)(2 + length);
	storage[2] = (char)(code >> 8);
	storage[3] = (char)(code & 0xff);
	memcpy(storage + 4, reason, length);
	return slice_from(storage, 4 + length);
}

/* Bytes from a client that a server must refuse with a close frame of that code and reason. */
static void check_fault(struct bytes *bytes, int code, const char *reason)
{
	char storage[200];
	char events[300];

	snprintf(events, sizeof events, "fault %d %s\n", code, reason);
	if (bytes->masked)
		check(bytes, events, server_close(storage, code, reason));
	else
		check(bytes, events, ANYTHING);
}

/* ---- messages ---- */

static void the_examples_of_the_rfc_are_read(void **state)
{
	(void)state;
	struct bytes bytes = from_server(); /* RFC 6455 section 5.7 */

	add_raw(&bytes, SLICE("\x81\x05Hello"));
	add_raw(&bytes, SLICE("\x01\x03Hel\x80\x02lo"));
	add_raw(&bytes, SLICE("\x82\x00"));
	check(&bytes, "text Hello\ntext Hello\nbinary \n", SLICE(""));

	bytes = from_client();
	add_raw(&bytes, SLICE("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"));
	add_raw(&bytes, SLICE("\x89\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"));
	check(&bytes, "text Hello\n", SLICE("\x8a\x05Hello"));
}

static void every_way_to_write_a_length_is_read(void **state)
{
	(void)state;
	static const size_t LENGTHS[] = { 0, 1, 125, 126, 127, 1000, 32768 };
	static char payload[32768];

	memset(payload, 'x', sizeof payload);
	for (size_t i = 0; i < sizeof LENGTHS / sizeof LENGTHS[0]; i++) {
		struct bytes bytes = i % 2 == 0 ? from_server() : from_client();
		char events[400];

		add_frame(&bytes, 0x81, slice_from(payload, LENGTHS[i]));
		if (LENGTHS[i] > 200)
			snprintf(events, sizeof events, "text %zu bytes\n", LENGTHS[i]);
		else
			snprintf(events, sizeof events, "text %.*s\n", (int)LENGTHS[i], payload);
		check(&bytes, events, SLICE(""));
	}
}

static void fragments_are_joined_and_control_frames_may_come_between(void **state)
{
	(void)state;
	struct bytes bytes = from_client();

	add_frame(&bytes, 0x01, SLICE("a"));
	add_frame(&bytes, 0x89, SLICE("ping"));
	add_frame(&bytes, 0x00, SLICE(""));
	add_frame(&bytes, 0x00, SLICE("bc"));
	add_frame(&bytes, 0x8a, SLICE("pong nobody asked for"));
	add_frame(&bytes, 0x80, SLICE("d"));
	add_frame(&bytes, 0x82, SLICE("e"));
	check(&bytes, "text abcd\nbinary e\n", SLICE("\x8a\x04ping"));
}

static void the_mask_keeps_its_phase_over_split_reads_and_starts_anew_with_each_frame(void **state)
{
	(void)state;
	struct bytes bytes = from_client();

	add_frame(&bytes, 0x01, SLICE("abcde"));
	add_frame(&bytes, 0x00, SLICE("fgh"));
	add_frame(&bytes, 0x89, SLICE("12345"));
	add_frame(&bytes, 0x80, SLICE("ijklmn"));
	check(&bytes, "text abcdefghijklmn\n",
	      SLICE("\x8a\x05"
	            "12345"));
}

static void a_ping_of_125_bytes_is_answered_with_the_same(void **state)
{
	(void)state;
	char payload[125];
	char pongs[129] = { (char)0x8a, 125 };
	struct bytes bytes = from_client();

	memset(payload, 'p', sizeof payload);
	memcpy(pongs + 2, payload, sizeof payload);
	pongs[127] = (char)0x8a; /* and an empty one */
	add_frame(&bytes, 0x89, slice_from(payload, sizeof payload));
	add_frame(&bytes, 0x89, SLICE(""));
	check(&bytes, "", slice_from(pongs, sizeof pongs));
}

/* ---- broken rules ---- */

static void a_control_frame_over_125_bytes_is_refused(void **state)
{
	(void)state;
	char payload[126] = { 0 };
	struct bytes bytes = from_client();

	add_frame(&bytes, 0x89, slice_from(payload, sizeof payload));
	check_fault(&bytes, 1002, "control frame is over 125 bytes");
	bytes = from_client();
	add_frame_long(&bytes, 0x88, SLICE("ab"), 8);
	check_fault(&bytes, 1002, "control frame is over 125 bytes");
}

static void a_fragmented_control_frame_is_refused(void **state)
{
	(void)state;
	struct bytes bytes = from_client();

	add_frame(&bytes, 0x09, SLICE("a"));
	check_fault(&bytes, 1002, "control frame is fragmented");
}

static void reserved_bits_are_refused(void **state)
{
	(void)state;
	for (int bit = 0x10; bit <= 0x40; bit <<= 1) {
		struct bytes bytes = from_client();

		add_frame(&bytes, 0x81 | bit, SLICE("a"));
		check_fault(&bytes, 1002, "reserved bits are set");
	}
}

static void unknown_opcodes_are_refused(void **state)
{
	(void)state;
	static const int OPCODES[] = { 3, 4, 5, 6, 7, 11, 12, 13, 14, 15 };

	for (size_t i = 0; i < sizeof OPCODES / sizeof OPCODES[0]; i++) {
		struct bytes bytes = from_client();

		add_frame(&bytes, 0x80 | OPCODES[i], SLICE("a"));
		check_fault(&bytes, 1002, "unknown opcode");
	}
}

static void frames_masked_the_wrong_way_are_refused(void **state)
{
	(void)state;
	struct bytes bytes = from_client();

	bytes.masked = false;
	add_frame(&bytes, 0x81, SLICE("a"));
	bytes.masked = true;
	check_fault(&bytes, 1002, "frame from the client isn't masked");

	bytes = from_server();
	bytes.masked = true;
	add_frame(&bytes, 0x81, SLICE("a"));
	bytes.masked = false;
	check_fault(&bytes, 1002, "frame from the server is masked");
}

static void a_length_with_its_top_bit_is_refused(void **state)
{
	(void)state;
	struct bytes bytes = from_client();

	add_raw(&bytes, SLICE("\x82\xff\x80\0\0\0\0\0\0\0"
	                      "mask"));
	check_fault(&bytes, 1002, "length has its top bit set");
}

static void a_length_not_written_in_the_shortest_way_is_refused(void **state)
{
	(void)state;
	char payload[126] = { 0 };
	struct bytes bytes = from_client();

	add_frame_long(&bytes, 0x82, slice_from(payload, 125), 2);
	check_fault(&bytes, 1002, "length isn't written in the shortest way");
	bytes = from_client();
	add_frame_long(&bytes, 0x82, slice_from(payload, 126), 8);
	check_fault(&bytes, 1002, "length isn't written in the shortest way");
	bytes = from_client();
	add_raw(&bytes, SLICE("\x82\xff\0\0\0\0\0\0\xff\xffmask"));
	check_fault(&bytes, 1002, "length isn't written in the shortest way");
}

static void fragments_out_of_order_are_refused(void **state)
{
	(void)state;
	struct bytes bytes = from_client();

	add_frame(&bytes, 0x80, SLICE("a"));
	check_fault(&bytes, 1002, "continuation without a message");
	bytes = from_client();
	add_frame(&bytes, 0x01, SLICE("a"));
	add_frame(&bytes, 0x81, SLICE("b"));
	check_fault(&bytes, 1002, "new message inside a fragmented one");
}

static void a_message_over_the_limit_is_refused_before_it_comes(void **state)
{
	(void)state;
	static char payload[LIMIT_BYTES + 1];
	struct bytes bytes = from_client();

	memset(payload, 'x', sizeof payload);
	add_frame(&bytes, 0x81, slice_from(payload, sizeof payload));
	bytes.buffer.length = 8; /* the header alone */
	check_fault(&bytes, 1009, "read limited at 32769 bytes");

	/* The limit is the message's, not the frame's. */
	bytes = from_client();
	add_frame(&bytes, 0x01, slice_from(payload, LIMIT_BYTES));
	add_frame(&bytes, 0x80, SLICE("y"));
	check_fault(&bytes, 1009, "read limited at 32769 bytes");

	/* A length near 2^63 neither wraps nor allocates. */
	bytes = from_client();
	add_raw(&bytes, SLICE("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"
	                      "mask"));
	check_fault(&bytes, 1009, "read limited at 32769 bytes");
}

/* ---- UTF-8 ---- */

static void characters_cut_at_a_fragments_border_are_fine(void **state)
{
	(void)state;
	struct bytes bytes = from_client();

	add_frame(&bytes, 0x01, SLICE("\xce\xba\xe1"));
	add_frame(&bytes, 0x00, SLICE("\xbd"));
	add_frame(&bytes, 0x89, SLICE("\xff"));
	add_frame(&bytes, 0x00, SLICE("\xb9\xf4\x8f\xbf"));
	add_frame(&bytes, 0x80, SLICE("\xbf"));
	check(&bytes, "text \xce\xba\xe1\xbd\xb9\xf4\x8f\xbf\xbf\n", SLICE("\x8a\x01\xff"));
}

static void invalid_text_is_refused_however_it_is_cut(void **state)
{
	(void)state;
	static const struct slice BAD[] = {
		TEXT("a\xff"),
		TEXT("\x80"),
		TEXT("\xc0\xaf"),
		TEXT("\xc1\xbf"),
		TEXT("\xe0\x80\xaf"),
		TEXT("\xe0\x9f\xbf"),
		TEXT("\xed\xa0\x80"),
		TEXT("\xed\xbf\xbf"),
		TEXT("\xf0\x8f\xbf\xbf"),
		TEXT("\xf4\x90\x80\x80"),
		TEXT("\xf5\x80\x80\x80"),
		TEXT("\xc3"),
		TEXT("\xe1\xbd"),
		TEXT("\xf0\x9f\x98"),
		TEXT("\xc3\x28"),
		TEXT("\xe1\x28\xa1"),
		TEXT("\xf0\x28\x8c\xbc"),
	};

	for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
		struct bytes bytes = from_client();

		add_frame(&bytes, 0x81, BAD[i]);
		check_fault(&bytes, 1007, "text message isn't UTF-8");
		for (size_t cut = 1; cut < BAD[i].length; cut++) {
			bytes = from_client();
			add_frame(&bytes, 0x01, slice_from(BAD[i].data, cut));
			add_frame(&bytes, 0x80, slice_from_offset(BAD[i], cut));
			check_fault(&bytes, 1007, "text message isn't UTF-8");
		}
		bytes = from_client();
		add_frame(&bytes, 0x82, BAD[i]); /* binary may be anything */
		char events[64];
		snprintf(events, sizeof events, "binary %.*s\n", SLICE_ARGS(BAD[i]));
		check(&bytes, events, SLICE(""));
	}
}

static void every_code_point_is_taken_and_every_surrogate_refused(void **state)
{
	(void)state;
	for (uint32_t code_point = 0; code_point <= 0x10ffff; code_point += code_point < 0x3000 ? 1 : 0x3d) {
		unsigned char text[4];
		size_t length = code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
		struct websocket_details details;
		struct websocket_engine engine;
		uint32_t rest = code_point;

		for (size_t i = length; i-- > 1; rest >>= 6)
			text[i] = (unsigned char)(0x80 | (rest & 0x3f));
		text[0] = (unsigned char)(rest | (length == 1 ? 0 : 0xf00U >> length));

		char frame[6] = { (char)0x81, (char)length };

		memcpy(frame + 2, text, length);
		websocket_engine_init(&engine, WEBSOCKET_CLIENT, LIMIT_BYTES, fixed_random, NULL);

		struct slice bytes = slice_from(frame, 2 + length);
		enum websocket_event event = websocket_engine_next(&engine, &bytes, &details);
		bool is_surrogate = code_point >= 0xd800 && code_point <= 0xdfff;

		assert_int_equal(event, is_surrogate ? WEBSOCKET_EVENT_FAULT : WEBSOCKET_EVENT_MESSAGE);
		websocket_engine_destroy(&engine);
	}
}

/* ---- closing ---- */

static void a_close_frame_is_echoed_as_received(void **state)
{
	(void)state;
	char storage[200];
	struct bytes bytes = from_client();

	add_frame(&bytes, 0x88, SLICE("\x03\xe8normal exit"));
	add_frame(&bytes, 0x81, SLICE("nobody reads this"));
	check(&bytes, "close 1000 normal exit\n", server_close(storage, 1000, "normal exit"));

	bytes = from_client();
	add_frame(&bytes, 0x88, SLICE(""));
	check(&bytes, "close 1005 \n", SLICE("\x88\x00"));
}

static void a_close_frame_in_the_middle_of_a_message_ends_it(void **state)
{
	(void)state;
	char storage[200];
	struct bytes bytes = from_client();

	add_frame(&bytes, 0x01, SLICE("a"));
	add_frame(&bytes, 0x88, SLICE("\x03\xe9"));
	check(&bytes, "close 1001 \n", server_close(storage, 1001, ""));
}

static void close_codes_are_checked(void **state)
{
	(void)state;
	static const int GOOD[] = { 1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010,
		                    1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999 };
	static const int BAD[] = { 0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535 };

	for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
		struct bytes bytes = from_client();
		char payload[2] = { (char)(GOOD[i] >> 8), (char)(GOOD[i] & 0xff) };
		char events[64], storage[64];

		snprintf(events, sizeof events, "close %d \n", GOOD[i]);
		add_frame(&bytes, 0x88, slice_from(payload, 2));
		check(&bytes, events, server_close(storage, GOOD[i], ""));
	}
	for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
		struct bytes bytes = from_client();
		char payload[2] = { (char)(BAD[i] >> 8), (char)(BAD[i] & 0xff) };

		add_frame(&bytes, 0x88, slice_from(payload, 2));
		check_fault(&bytes, 1002, "close frame has an invalid status code");
	}
}

static void half_a_close_code_is_refused(void **state)
{
	(void)state;
	struct bytes bytes = from_client();

	add_frame(&bytes, 0x88, SLICE("\x03"));
	check_fault(&bytes, 1002, "close frame has half a status code");
}

static void a_close_reason_must_be_utf8(void **state)
{
	(void)state;
	struct bytes bytes = from_client();

	add_frame(&bytes, 0x88, SLICE("\x03\xe8\xc3"));
	check_fault(&bytes, 1007, "close reason isn't UTF-8");
}

static void our_close_is_sent_once_and_the_peers_answer_isnt_answered(void **state)
{
	(void)state;
	struct run run;
	struct error err;

	run_init(&run, WEBSOCKET_SERVER, LIMIT_BYTES);
	assert_true(websocket_engine_close(&run.engine, 1000, SLICE("bye"), &err));
	assert_true(websocket_engine_close(&run.engine, 1011, SLICE("again"), &err));
	assert_false(websocket_engine_send(&run.engine, SLICE("late"), true, &err));
	assert_int_equal(err.code, ERROR_CLOSED);
	assert_false(websocket_engine_ping(&run.engine, SLICE("late"), &err));

	/* Messages under way are read over, however long; pings aren't answered any more. */
	struct bytes bytes = from_client();
	static char payload[LIMIT_BYTES + 1];

	add_frame(&bytes, 0x82, slice_from(payload, sizeof payload));
	add_frame(&bytes, 0x01, SLICE("\xff"));
	add_frame(&bytes, 0x89, SLICE("p"));
	add_frame(&bytes, 0x80, SLICE(""));
	add_frame(&bytes, 0x88,
	          SLICE("\x03\xe8"
	                "bye"));
	run_feed(&run, buffer_slice(&bytes.buffer));
	buffer_destroy(&bytes.buffer);
	assert_true(slice_equal(buffer_slice(&run.events), SLICE("close 1000 bye\n")));
	assert_true(slice_equal(buffer_slice(&run.sent), SLICE("\x88\x05\x03\xe8"
	                                                       "bye")));
	assert_null(run.engine.message.data);
	run_destroy(&run);
}

static void codes_that_may_not_be_sent_are_left_out(void **state)
{
	(void)state;
	static const int CODES[] = { 0, 1004, 1005, 1006, 1015, 2000, 5000, -1, 70000 };

	for (size_t i = 0; i < sizeof CODES / sizeof CODES[0]; i++) {
		struct websocket_engine engine;
		struct error err;

		websocket_engine_init(&engine, WEBSOCKET_SERVER, LIMIT_BYTES, NULL, NULL);
		assert_true(websocket_engine_close(&engine, CODES[i], SLICE("reason"), &err));
		assert_true(slice_equal(buffer_slice(&engine.output), SLICE("\x88\x00")));
		websocket_engine_destroy(&engine);
	}
}

static void reasons_are_cut_at_a_characters_border(void **state)
{
	(void)state;
	struct websocket_engine engine;
	struct error err;
	char reason[200];

	/* 122 bytes and then a character of two: it would end at byte 124. */
	memset(reason, 'r', 122);
	memcpy(reason + 122, "\xc3\xa9zzz", 5);
	websocket_engine_init(&engine, WEBSOCKET_SERVER, LIMIT_BYTES, NULL, NULL);
	assert_true(websocket_engine_close(&engine, 1011, slice_from(reason, 127), &err));
	assert_int_equal(engine.output.length, 2 + 2 + 122);
	websocket_engine_destroy(&engine);

	/* Exactly 123 bytes stay. */
	memset(reason, 'r', 121);
	memcpy(reason + 121, "\xc3\xa9zzz", 5);
	websocket_engine_init(&engine, WEBSOCKET_SERVER, LIMIT_BYTES, NULL, NULL);
	assert_true(websocket_engine_close(&engine, 1011, slice_from(reason, 126), &err));
	assert_int_equal(engine.output.length, 2 + 2 + 123);
	websocket_engine_destroy(&engine);

	/* Nothing invalid goes out. */
	websocket_engine_init(&engine, WEBSOCKET_SERVER, LIMIT_BYTES, NULL, NULL);
	assert_true(websocket_engine_close(&engine, 1011,
	                                   SLICE("ok\xff"
	                                         "more"),
	                                   &err));
	assert_true(slice_equal(buffer_slice(&engine.output), SLICE("\x88\x04\x03\xf3ok")));
	websocket_engine_destroy(&engine);
}

/* ---- sending ---- */

static void clients_mask_with_fresh_random_bytes_and_servers_dont(void **state)
{
	(void)state;
	struct websocket_engine engine;
	struct error err;

	websocket_engine_init(&engine, WEBSOCKET_CLIENT, LIMIT_BYTES, fixed_random, NULL);
	assert_true(websocket_engine_send(&engine, SLICE("Hello"), true, &err));
	assert_true(slice_equal(buffer_slice(&engine.output), SLICE("\x81\x85\x11\xa2\x33\xc4\x59\xc7\x5f\xa8\x7e")));
	websocket_engine_destroy(&engine);

	websocket_engine_init(&engine, WEBSOCKET_CLIENT, LIMIT_BYTES, no_random, NULL);
	assert_false(websocket_engine_send(&engine, SLICE("Hello"), true, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_int_equal(engine.output.length, 0);
	websocket_engine_destroy(&engine);

	websocket_engine_init(&engine, WEBSOCKET_SERVER, LIMIT_BYTES, NULL, NULL);
	assert_true(websocket_engine_send(&engine, SLICE("Hello"), false, &err));
	assert_true(slice_equal(buffer_slice(&engine.output), SLICE("\x82\x05Hello")));
	websocket_engine_destroy(&engine);
}

static void what_one_side_sends_the_other_reads_at_every_length(void **state)
{
	(void)state;
	static const size_t LENGTHS[] = { 0, 1, 2, 3, 4, 5, 125, 126, 127, 65535, 65536, 65537, 200000 };
	static char payload[200000];
	struct error err;

	for (size_t i = 0; i < sizeof payload; i++)
		payload[i] = (char)(i * 31 + i / 256);
	for (size_t i = 0; i < sizeof LENGTHS / sizeof LENGTHS[0]; i++)
		for (int from = WEBSOCKET_CLIENT; from <= WEBSOCKET_SERVER; from++) {
			struct websocket_engine sender, receiver;
			struct websocket_details details;
			struct slice message = slice_from(payload, LENGTHS[i]);

			websocket_engine_init(&sender, (enum websocket_role)from, 0, fixed_random, NULL);
			websocket_engine_init(&receiver, from == WEBSOCKET_CLIENT ? WEBSOCKET_SERVER : WEBSOCKET_CLIENT,
			                      sizeof payload, fixed_random, NULL);
			assert_true(websocket_engine_send(&sender, message, false, &err));

			struct slice bytes = buffer_slice(&sender.output);

			assert_int_equal(websocket_engine_next(&receiver, &bytes, &details), WEBSOCKET_EVENT_MESSAGE);
			assert_true(slice_equal(details.payload, message));
			assert_int_equal(bytes.length, 0);
			websocket_engine_destroy(&sender);
			websocket_engine_destroy(&receiver);
		}
}

static void what_cant_be_sent_is_refused_and_changes_nothing(void **state)
{
	(void)state;
	struct websocket_engine engine;
	struct error err;
	char payload[126] = { 0 };

	websocket_engine_init(&engine, WEBSOCKET_SERVER, LIMIT_BYTES, NULL, NULL);
	assert_false(websocket_engine_send(&engine, SLICE("\xff"), true, &err));
	assert_int_equal(err.code, ERROR_SYNTAX);
	assert_false(websocket_engine_ping(&engine, slice_from(payload, sizeof payload), &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_int_equal(engine.output.length, 0);
	assert_true(websocket_engine_ping(&engine, slice_from(payload, 125), &err));
	assert_int_equal(engine.output.length, 127);
	websocket_engine_destroy(&engine);
}

static void between_messages_no_memory_is_held(void **state)
{
	(void)state;
	struct run run;

	run_init(&run, WEBSOCKET_CLIENT, LIMIT_BYTES);
	run_feed(&run, SLICE("\x81\x05Hello"));
	assert_null(run.engine.message.data);
	assert_null(run.engine.output.data);
	run_destroy(&run);
}

static void every_failing_allocation_is_survived(void **state)
{
	(void)state;
	static const char INPUT[] = "\x89\x01p\x01\x03Hel\x80\x02lo\x81\x02yo\x88\x02\x03\xe8";
	unsigned long failures = 0;
	bool failed = true;

	for (unsigned long n = 1; failed; n++) {
		struct websocket_engine engine;
		struct websocket_details details;
		struct slice bytes = slice_from(INPUT, sizeof INPUT - 1);
		enum websocket_event event;

		websocket_engine_init(&engine, WEBSOCKET_CLIENT, LIMIT_BYTES, fixed_random, NULL);
		memory_fail_at(n);
		do
			event = websocket_engine_next(&engine, &bytes, &details);
		while (event == WEBSOCKET_EVENT_MESSAGE);
		assert_true(event == WEBSOCKET_EVENT_CLOSE || event == WEBSOCKET_EVENT_FAULT);
		if (event == WEBSOCKET_EVENT_FAULT) {
			assert_int_equal(details.code, 1011);
			assert_int_equal(details.err.code, ERROR_NO_MEMORY);
		}
		failed = memory_allocation_count() >= n;
		failures += failed;
		memory_fail_at(0);
		websocket_engine_destroy(&engine);
	}
	assert_true(failures >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_examples_of_the_rfc_are_read),
		cmocka_unit_test(every_way_to_write_a_length_is_read),
		cmocka_unit_test(fragments_are_joined_and_control_frames_may_come_between),
		cmocka_unit_test(the_mask_keeps_its_phase_over_split_reads_and_starts_anew_with_each_frame),
		cmocka_unit_test(a_ping_of_125_bytes_is_answered_with_the_same),
		cmocka_unit_test(a_control_frame_over_125_bytes_is_refused),
		cmocka_unit_test(a_fragmented_control_frame_is_refused),
		cmocka_unit_test(reserved_bits_are_refused),
		cmocka_unit_test(unknown_opcodes_are_refused),
		cmocka_unit_test(frames_masked_the_wrong_way_are_refused),
		cmocka_unit_test(a_length_with_its_top_bit_is_refused),
		cmocka_unit_test(a_length_not_written_in_the_shortest_way_is_refused),
		cmocka_unit_test(fragments_out_of_order_are_refused),
		cmocka_unit_test(a_message_over_the_limit_is_refused_before_it_comes),
		cmocka_unit_test(characters_cut_at_a_fragments_border_are_fine),
		cmocka_unit_test(invalid_text_is_refused_however_it_is_cut),
		cmocka_unit_test(every_code_point_is_taken_and_every_surrogate_refused),
		cmocka_unit_test(a_close_frame_is_echoed_as_received),
		cmocka_unit_test(a_close_frame_in_the_middle_of_a_message_ends_it),
		cmocka_unit_test(close_codes_are_checked),
		cmocka_unit_test(half_a_close_code_is_refused),
		cmocka_unit_test(a_close_reason_must_be_utf8),
		cmocka_unit_test(our_close_is_sent_once_and_the_peers_answer_isnt_answered),
		cmocka_unit_test(codes_that_may_not_be_sent_are_left_out),
		cmocka_unit_test(reasons_are_cut_at_a_characters_border),
		cmocka_unit_test(clients_mask_with_fresh_random_bytes_and_servers_dont),
		cmocka_unit_test(what_one_side_sends_the_other_reads_at_every_length),
		cmocka_unit_test(what_cant_be_sent_is_refused_and_changes_nothing),
		cmocka_unit_test(between_messages_no_memory_is_held),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
