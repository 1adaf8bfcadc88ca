#include "agent/vm_event.h"

const char *vm_event_kind_name(enum vm_event_kind kind)
{
	switch (kind) {
	case VM_EVENT_ADDED:
		return "added";
	case VM_EVENT_UPDATED:
		return "updated";
	case VM_EVENT_DELETED:
		break;
	}
	return "deleted";
}
