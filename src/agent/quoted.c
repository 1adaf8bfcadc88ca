#include "agent/quoted.h"

#include "base/error.h"
#include "codec/go_quote.h"

void quoted_init(struct buffer *ret_text, struct slice text)
{
	enum { MOST = sizeof((struct error *)0)->text };

	if (text.length > MOST)
		text.length = MOST;
	/* A byte becomes \x00 at worst. */
	buffer_init(ret_text, 4 * MOST + 2);
	go_quote_append(ret_text, text);
}
