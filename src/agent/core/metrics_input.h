/*
 * From a scraped page of Prometheus text to the measurements the core needs (spec agent-core 6, M-1 … M-5).
 *
 * The whole page must parse, also lines that are of no interest. Error texts are those of the reference, complete with
 * "failed to parse content as prometheus text format: " or "failed to extract metrics: " in front.
 */
#ifndef BALLAST_AGENT_CORE_METRICS_INPUT_H
#define BALLAST_AGENT_CORE_METRICS_INPUT_H

#include <stdbool.h>

#include "agent/core/vm_metrics.h"
#include "base/error.h"
#include "base/slice.h"
#include "metrics/text_parser.h"

/* What to do with values that no machine can have. */
enum metrics_input_check {
	METRICS_INPUT_AS_IS,           /* replay: NaN and negative values pass */
	METRICS_INPUT_REJECT_UNUSABLE, /* agent: one that isn't finite or is negative fails the page, naming the series */
};

/*
 * The parser is only a workplace, reused from page to page. On failure *ret_metrics is untouched; code ERROR_SYNTAX,
 * ERROR_LIMIT or ERROR_NO_MEMORY.
 */
bool metrics_input_read_system(struct metrics_text_parser *parser, struct slice page, enum metrics_input_check check,
                               struct system_metrics *ret_metrics, struct error *err);
bool metrics_input_read_lfc(struct metrics_text_parser *parser, struct slice page, enum metrics_input_check check,
                            struct lfc_metrics *ret_metrics, struct error *err);

#endif
