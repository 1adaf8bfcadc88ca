/*
 * Any bytes as the response of a server, to a HEAD and to another request.
 */
#include "http_parsing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void init(struct http_parser *parser)
{
	http_parser_init_response(parser, false);
}

static void init_to_head(struct http_parser *parser)
{
	http_parser_init_response(parser, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	compare_cuts(data, size, init, false);
	compare_cuts(data, size, init_to_head, false);
	return 0;
}
