/*
 * What is wrong with a configuration that could be read (spec agent-runtime 2.3): every problem, in the reference's
 * order.
 *
 * The reference misnames some keys, and its texts are kept as they are. Beside them a problem knows where it really is,
 * so that a person can be sent to the right line.
 */
#ifndef BALLAST_AGENT_CONFIG_PROBLEMS_H
#define BALLAST_AGENT_CONFIG_PROBLEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/core/scaling_config.h"
#include "base/buffer.h"
#include "base/slice.h"
#include "gen/agent_config.gen.h"
#include "gen/agent_config_a.gen.h"

struct config_problem {
	const char *section; /* the object it is in, as a path in the file: "billing.clients.s3"; "" for the document */
	struct slice key;    /* "bucket" */
	const char *said_section; /* what the reference calls the object, with its dots: "..billing.clients.s3" */
	const char *said_key;
	const char *text;   /* "cannot be zero"; with said_section NULL, the whole of the reference's text */
	bool about_absence; /* the text fits also when the key isn't there at all */
};

/* All checks together. */
enum { CONFIG_PROBLEMS_MAX = 96, CONFIG_PROBLEM_TEXT_BYTES = 256, CONFIG_PATH_BYTES = 128 };

/* What all the texts together, joined, may have. */
enum { CONFIG_PROBLEMS_TEXT_BYTES = CONFIG_PROBLEMS_MAX * CONFIG_PROBLEM_TEXT_BYTES };

struct config_problems {
	size_t count;
	struct config_problem items[CONFIG_PROBLEMS_MAX];
};

/* What scheduler.protocolVersion must be (generations 2.7). */
extern const char CONFIG_PROBLEM_PROTOCOL_VERSION[];

/* The problems point at constants alone, not at the config. The first for schema B, the second for A. */
void config_problems_find(const struct agent_config_config *config, struct config_problems *ret_problems);
void config_problems_find_a(const struct agent_config_a_config *config, struct config_problems *ret_problems);

/* Adds those of scaling.defaultConfig, a list within the list: the reference prints it last first. */
void config_problems_add_default_config(const struct scaling_config *config, bool require_all,
                                        struct config_problems *problems);

/* Appends the reference's text: `field ".billing.cpuMetricName" cannot be empty`. */
void config_problem_append_text(const struct config_problem *problem, struct buffer *out);
/* Appends "billing.cpuMetricName". */
void config_problem_append_path(const struct config_problem *problem, struct buffer *out);
/* Appends what it is without the place: "cannot be empty". */
void config_problem_append_what(const struct config_problem *problem, struct buffer *out);

#endif
