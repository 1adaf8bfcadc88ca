/*
 * The storage types of csi-baremetal as its controller uses them (spec extender 5.2, 13).
 */
#ifndef BALLAST_SANDBOX_STORAGE_TYPE_H
#define BALLAST_SANDBOX_STORAGE_TYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

enum storage_type {
	STORAGE_HDD,
	STORAGE_SSD,
	STORAGE_NVME,
	STORAGE_HDD_GROUP, /* logical volumes: "HDDLVG" */
	STORAGE_SSD_GROUP,
	STORAGE_NVME_GROUP,
	STORAGE_SYSTEM_GROUP,
	STORAGE_ANY,
	STORAGE_TYPE_COUNT,
};

enum { STORAGE_CHOICES_MAX = 4 };

/* "HDDLVG" and so on; the case counts. False for anything else. */
bool storage_type_parse(struct slice text, enum storage_type *ret_type);
const char *storage_type_name(enum storage_type type);
/* Whether volumes of this type are logical ones in a volume group. */
bool storage_type_is_group(enum storage_type type);
/* The classes of capacity that can serve the type, the preferred one first (R3). Returns how many. */
size_t storage_type_choices(enum storage_type type, enum storage_type ret_choices[STORAGE_CHOICES_MAX]);

#endif
