/*
 * Why a peer's JSON couldn't be read, in the words of the reference's decoder: they appear in logs, and in what peers
 * are told (spec agent-runtime 2.1.2, 10.4, 11.4.3).
 */
#ifndef BALLAST_AGENT_JSON_CAUSE_H
#define BALLAST_AGENT_JSON_CAUSE_H

#include <stdbool.h>

#include "base/error.h"
#include "codec/json_reader.h"

/*
 * For a reader that failed with *err: replaces the text of *err by the reference's, and keeps the code. stream: it was
 * a file (see json_problem_reference_text). Where memory was short or a limit of ours was reached, *err stays. Returns
 * false.
 */
bool json_cause_restate(const struct json_reader *reader, bool stream, struct error *err);

#endif
