/*
 * The kinds of objects that the stand-in API server knows: a table. What isn't in it is answered with 404.
 */
#ifndef BALLAST_SANDBOX_RESOURCE_KINDS_H
#define BALLAST_SANDBOX_RESOURCE_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

enum resource {
	RESOURCE_PODS,
	RESOURCE_NODES,
	RESOURCE_NAMESPACES,
	RESOURCE_CLAIMS, /* PersistentVolumeClaim */
	RESOURCE_PERSISTENT_VOLUMES,
	RESOURCE_CONFIG_MAPS,
	RESOURCE_EVENTS,
	RESOURCE_STORAGE_CLASSES,
	RESOURCE_VIRTUAL_MACHINES,
	RESOURCE_MIGRATIONS,   /* VirtualMachineMigration */
	RESOURCE_RESERVATIONS, /* csi-baremetal's AvailableCapacityReservation, and the rest of its group */
	RESOURCE_CAPACITIES,
	RESOURCE_VOLUMES,
	RESOURCE_DRIVES,
	RESOURCE_VOLUME_GROUPS,
	RESOURCE_CSI_NODES,
	RESOURCE_STORAGE_GROUPS,
	RESOURCE_COUNT,
};

enum { RESOURCE_FIELDS = 8 };

struct resource_kind {
	const char *group; /* "" for the core group */
	const char *version;
	const char *kind;
	const char *plural;
	bool namespaced;
	bool custom; /* keys are sorted, and items of a list have apiVersion and kind (spec surroundings 5.1, 5.2.1) */
	bool has_status; /* as a subresource: status and the rest are written by different paths (5.5.2) */
	const char
		*empty; /* how an empty object of a built-in kind goes on after its metadata, for bookmarks (5.3.4) */
	const char *fields[RESOURCE_FIELDS]; /* selectable besides metadata.name and metadata.namespace; up to a NULL */
};

const struct resource_kind *resource_kind(enum resource resource);
/* Which entry of the table it is. */
enum resource resource_of(const struct resource_kind *kind);
/* By what stands in a path. NULL if there is no such kind. */
const struct resource_kind *resource_kind_find(struct slice group, struct slice version, struct slice plural);
/* By what stands in an object: "vm.neon.tech/v1" and "VirtualMachine". */
const struct resource_kind *resource_kind_of(struct slice api_version, struct slice kind);

enum { RESOURCE_API_VERSION_BYTES = 64 };
/* "vm.neon.tech/v1" or "v1". */
void resource_kind_api_version(const struct resource_kind *kind, char text[RESOURCE_API_VERSION_BYTES]);

#endif
