/*
 * The file in which the operator says whose kube-scheduler was restarted after it had been given the extender's
 * configuration (spec extender Y3 to Y5, D2).
 */
#ifndef BALLAST_EXTENDER_READINESS_FILE_H
#define BALLAST_EXTENDER_READINESS_FILE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"

/*
 * Whether the first item of `nodes` that has the name says `restarted`. False with the message of Y4 otherwise: not
 * restarted, not found, or what is wrong with the text.
 */
bool readiness_file_check(struct slice text, struct slice node_name, struct error *err);

#endif
