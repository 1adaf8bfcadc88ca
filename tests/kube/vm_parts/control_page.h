/*
 * How a test sees and steers its parts: GET /state is a JSON object, POST /COMMAND takes one.
 */
#ifndef BALLAST_TESTS_KUBE_CONTROL_PAGE_H
#define BALLAST_TESTS_KUBE_CONTROL_PAGE_H

#include <stdbool.h>

#include "base/error.h"
#include "codec/json_tree.h"
#include "net/address.h"
#include "net/loop.h"

struct control_page;

struct control_page_handler {
	void (*print_state)(void *context, struct json_writer *writer);
	/* command: the path without '/'. False: 400 with the error's text. */
	bool (*on_command)(void *context, struct slice command, const struct json_node *arguments, struct error *err);
};

struct control_page *control_page_start(struct loop *loop, const struct address *address,
                                        const struct control_page_handler *handler, void *context);
void control_page_destroy(struct control_page *page);

#endif
