/*
 * Any bytes as requests from a client: read or refused, the same however they are cut, and what is read keeps its
 * promises.
 */
#include "http_parsing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	compare_cuts(data, size, http_parser_init_request, true);
	return 0;
}
