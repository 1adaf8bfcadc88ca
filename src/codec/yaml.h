/*
 * Reads the YAML that people and tools write as configuration, and makes it JSON, so that a schema's generated decoder takes
 * it from there (kubeconfig files, the readiness file of the extender).
 *
 * Plain scalars have the types that YAML 1.1 gives them, as the reference daemons' library has it: null and ~, true, yes
 * and on with their opposites (in the usual three letter cases), decimal numbers; everything else is a string.
 */
#ifndef BALLAST_CODEC_YAML_H
#define BALLAST_CODEC_YAML_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

enum {
	YAML_DEPTH = 32,       /* of nested mappings and sequences */
	YAML_EVENTS = 1000000, /* scalars, beginnings and ends, in one text */
};

/*
 * Appends the text's one document as JSON without blanks but for line ends, which are such that each token begins on the line
 * that it has in the text: who finds something wrong in the JSON can name the line. An empty text is null. The text is UTF-8,
 * or UTF-16 with a byte order mark, as a Windows shell writes it. The buffer's limit bounds the JSON. Errors are ERROR_SYNTAX
 * with "line N: …"; what is legal YAML but refused is named: aliases (a small text could expand without end), merge keys,
 * several documents, keys that aren't scalars.
 */
bool yaml_to_json(struct slice text, struct buffer *json, struct error *err);

#endif
