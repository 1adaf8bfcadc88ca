/*
 * A configuration file as it was decoded, by the schema that it follows (spec generations 1.1): what loading and
 * checking need of it, whichever schema that is.
 */
#ifndef BALLAST_AGENT_CONFIG_DOCUMENT_H
#define BALLAST_AGENT_CONFIG_DOCUMENT_H

#include <stdbool.h>

#include "agent/config.h"
#include "agent/config_problems.h"
#include "base/arena.h"
#include "base/error.h"
#include "codec/json_reader.h"
#include "codec/json_writer.h"
#include "gen/agent_config.gen.h"
#include "gen/agent_config_a.gen.h"

/* Which schema a file follows, and the keys that tell: the first of each schema that is there, else NULL. */
struct config_schema {
	enum agent_generation generation;
	const char *marker_a;
	const char *marker_b;
};

struct config_document {
	enum agent_generation generation;
	struct agent_config_config b;
	struct agent_config_a_config a; /* the one of the generation is filled in */
};

/* Any marker of B makes it B, else any of A makes it A, else it is B. The reader must have been opened. */
struct config_schema config_schema_detect(struct json_reader *reader);

/* Decodes strictly by the schema of ret_document->generation, which the caller has set. */
bool config_document_decode(struct json_reader *reader, struct config_document *ret_document, struct error *err);
/* In the order of the reference's texts. */
void config_document_find_problems(const struct config_document *document, struct config_problems *ret_problems);
/* As config_decoded_convert. */
bool config_document_convert(const struct config_document *document, struct arena *arena,
                             struct agent_config *ret_config, struct error *err);
void config_document_encode(struct json_writer *writer, const struct config_document *document);

#endif
