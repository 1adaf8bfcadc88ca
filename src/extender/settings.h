/*
 * What the command line says about decisions (spec extender 1.1). The slices must outlive whoever is given the
 * settings.
 */
#ifndef BALLAST_EXTENDER_SETTINGS_H
#define BALLAST_EXTENDER_SETTINGS_H

#include <stdbool.h>

#include "base/slice.h"

struct extender_settings {
	struct slice provisioner;        /* --provisioner */
	struct slice node_selector;      /* --nodeselector */
	bool use_node_annotation;        /* --usenodeannotation */
	bool use_external_annotation;    /* --useexternalannotation */
	struct slice node_id_annotation; /* --nodeidannotation */
	bool inline_volumes;             /* --inline-volumes (spec 20) */
	bool normalize_scores;           /* --normalize-scores (spec I12) */
};

#endif
