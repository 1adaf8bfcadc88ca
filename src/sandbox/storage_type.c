#include "sandbox/storage_type.h"

static const char *const NAMES[STORAGE_TYPE_COUNT] = {
	[STORAGE_HDD] = "HDD",
	[STORAGE_SSD] = "SSD",
	[STORAGE_NVME] = "NVME",
	[STORAGE_HDD_GROUP] = "HDDLVG",
	[STORAGE_SSD_GROUP] = "SSDLVG",
	[STORAGE_NVME_GROUP] = "NVMELVG",
	[STORAGE_SYSTEM_GROUP] = "SYSLVG",
	[STORAGE_ANY] = "ANY",
};

bool storage_type_parse(struct slice text, enum storage_type *ret_type)
{
	for (size_t i = 0; i < STORAGE_TYPE_COUNT; i++) {
		if (slice_equal_text(text, NAMES[i])) {
			*ret_type = (enum storage_type)i;
			return true;
		}
	}
	return false;
}

const char *storage_type_name(enum storage_type type)
{
	return NAMES[type];
}

bool storage_type_is_group(enum storage_type type)
{
	return type >= STORAGE_HDD_GROUP && type <= STORAGE_SYSTEM_GROUP;
}

size_t storage_type_choices(enum storage_type type, enum storage_type ret_choices[STORAGE_CHOICES_MAX])
{
	size_t count = 0;

	ret_choices[count++] = type;
	switch (type) {
	case STORAGE_HDD_GROUP:
		ret_choices[count++] = STORAGE_HDD;
		break;
	case STORAGE_SSD_GROUP:
		ret_choices[count++] = STORAGE_SSD;
		break;
	case STORAGE_NVME_GROUP:
		ret_choices[count++] = STORAGE_NVME;
		break;
	case STORAGE_ANY:
		ret_choices[count++] = STORAGE_HDD;
		ret_choices[count++] = STORAGE_SSD;
		ret_choices[count++] = STORAGE_NVME;
		break;
	default:
		break;
	}
	return count;
}
