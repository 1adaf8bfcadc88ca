#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "report/xml_text.h"

static void expect(const char *document, const char *path, const char *expected)
{
	struct buffer out;
	struct error err;

	buffer_init(&out, 256);
	buffer_append_text(&out, "+");
	if (!xml_find_text(slice_of(document), path, &out, &err))
		fail_msg("%s in %s: %s", path, document, err.text);
	buffer_append_char(&out, '\0');
	assert_string_equal(out.data + 1, expected);
	buffer_destroy(&out);
}

static void refuse(const char *document, const char *path, const char *text)
{
	struct buffer out;
	struct error err;

	buffer_init(&out, 8);
	buffer_append_text(&out, "+");
	assert_false(xml_find_text(slice_of(document), path, &out, &err));
	assert_string_equal(err.text, text);
	assert_int_equal(out.length, 1);
	buffer_destroy(&out);
}

static void texts_are_found_by_path(void **state)
{
	(void)state;
	expect("<Error><Code>A</Code><Message>B</Message></Error>", "Error/Code", "A");
	expect("<Error><Code>A</Code><Message>B</Message></Error>", "Error/Message", "B");
	expect("\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- a > b -->\n<Error>\n <Code >A</Code >\n</Error>",
	       "Error/Code", "A");
	expect("<a><x><b>no</b></x><b>yes</b><b>later</b></a>", "a/b", "yes");
	expect("<a><b><c/></b><b><c>x</c></b></a>", "a/b/c", "");
	expect("<a><c>1</c><b><c>2</c></b></a>", "a/b/c", "2");
	expect("<a><b>1<c>inner</c>2</b></a>", "a/b", "12");
	expect("<a><b/></a>", "a/b", "");
	expect("<s:a xmlns:s='u>v'><s:b q=\"/>\">x</s:b></s:a>", "a/b", "x");
	expect("<a>x</a>", "a", "x");
}

static void references_and_sections_are_resolved(void **state)
{
	(void)state;
	expect("<a>&lt;&gt;&amp;&quot;&apos;</a>", "a", "<>&\"'");
	expect("<a>&#65;&#x42;&#xe9;&#x20ac;&#x1F600;</a>", "a", "AB\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	expect("<a>1<![CDATA[<b>&amp;]]>2</a>", "a", "1<b>&amp;2");
}

static void what_isnt_well_formed_is_refused(void **state)
{
	(void)state;
	refuse("", "a", "malformed XML: it ends too early");
	refuse("<a><b>x</b>", "a/c", "malformed XML: it ends too early");
	refuse("<a></a>", "a/b", "XML has no a/b");
	refuse("<a></b>", "a", "malformed XML: the end of an element that isn't open");
	refuse("</a>", "a", "malformed XML: the end of an element that isn't open");
	refuse("<a", "a", "malformed XML: a tag without an end");
	refuse("<a b='>", "a", "malformed XML: a tag without an end");
	refuse("<a <b>", "a", "malformed XML: a tag without an end");
	refuse("<>x</>", "a", "malformed XML: a tag without an end");
	refuse("x<a/>", "a", "malformed XML: text outside of the root element");
	refuse("<b/><a>x</a>", "a", "malformed XML: more than one root element");
	refuse("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", "a", "malformed XML: a declaration where none may be");
	refuse("<a>&e;</a>", "a", "malformed XML: a reference that isn't one");
	refuse("<a>&#0;</a>", "a", "malformed XML: a reference that isn't one");
	refuse("<a>&#xd800;</a>", "a", "malformed XML: a reference that isn't one");
	refuse("<a>&#x110000;</a>", "a", "malformed XML: a reference that isn't one");
	refuse("<a>&#;</a>", "a", "malformed XML: a reference that isn't one");
	refuse("<a>&amp</a>", "a", "malformed XML: a reference that isn't one");
	refuse("<a><!-- </a>", "a", "malformed XML: a comment without an end");
	refuse("<a><![CDATA[ </a>", "a", "malformed XML: a CDATA section without an end");
	refuse("<?xml <a/>", "a", "malformed XML: an instruction without an end");
	refuse("<a>123456789</a>", "a", "a is over 8 bytes");
}

static void depth_is_bounded(void **state)
{
	(void)state;
	expect("<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><b>x</b></a></a></a></a></a></a></a></a></a></a></a></a></a></a>"
	       "</a>",
	       "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/b", "x");
	refuse("<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><b>x", "a/b", "XML is nested deeper than 16");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_found_by_path),
		cmocka_unit_test(references_and_sections_are_resolved),
		cmocka_unit_test(what_isnt_well_formed_is_refused),
		cmocka_unit_test(depth_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
