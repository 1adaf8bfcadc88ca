/*
 * The answer for a path that isn't served (spec extender H1).
 */
#ifndef BALLAST_EXTENDER_NOT_FOUND_H
#define BALLAST_EXTENDER_NOT_FOUND_H

#include "net/http_server.h"

void not_found_answer(struct http_call *call);

#endif
