#include "sandbox/resource_kinds.h"

#include <stdio.h>

#define CORE .group = "", .version = "v1"
#define NEON .group = "vm.neon.tech", .version = "v1", .custom = true, .namespaced = true, .has_status = true
#define CSI .group = "csi-baremetal.dell.com", .version = "v1", .custom = true

static const struct resource_kind KINDS[RESOURCE_COUNT] = {
	[RESOURCE_PODS] = { CORE, .kind = "Pod", .plural = "pods", .namespaced = true, .has_status = true,
	                    .empty = ",\"spec\":{\"containers\":null},\"status\":{}",
	                    .fields = { "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
	                                "spec.serviceAccountName", "status.phase", "status.podIP",
	                                "status.nominatedNodeName" } },
	[RESOURCE_NODES] = { CORE, .kind = "Node", .plural = "nodes", .has_status = true,
	                     .empty =
	                             ",\"spec\":{},\"status\":{\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":0}},\"nodeInfo\":{"
	                             "\"machineID\":\"\",\"systemUUID\":\"\",\"bootID\":\"\",\"kernelVersion\":\"\",\"osImage\":\"\","
	                             "\"containerRuntimeVersion\":\"\",\"kubeletVersion\":\"\",\"kubeProxyVersion\":\"\","
	                             "\"operatingSystem\":\"\",\"architecture\":\"\"}}",
	                     .fields = { "spec.unschedulable" } },
	[RESOURCE_NAMESPACES] = { CORE, .kind = "Namespace", .plural = "namespaces", .has_status = true,
	                          .empty = ",\"spec\":{},\"status\":{}", .fields = { "status.phase" } },
	[RESOURCE_CLAIMS] = { CORE, .kind = "PersistentVolumeClaim", .plural = "persistentvolumeclaims",
	                      .namespaced = true, .has_status = true,
	                      .empty = ",\"spec\":{\"resources\":{}},\"status\":{}" },
	[RESOURCE_PERSISTENT_VOLUMES] = { CORE, .kind = "PersistentVolume", .plural = "persistentvolumes",
	                                  .has_status = true, .empty = ",\"spec\":{},\"status\":{}" },
	[RESOURCE_CONFIG_MAPS] = { CORE, .kind = "ConfigMap", .plural = "configmaps", .namespaced = true, .empty = "" },
	[RESOURCE_EVENTS] = { CORE, .kind = "Event", .plural = "events", .namespaced = true,
	                      .empty =
	                              ",\"involvedObject\":{},\"source\":{},\"firstTimestamp\":null,\"lastTimestamp\":null,\"eventTime\":null,"
	                              "\"reportingComponent\":\"\",\"reportingInstance\":\"\"",
	                      .fields = { "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
	                                  "involvedObject.uid", "reason", "source", "type" } },
	[RESOURCE_STORAGE_CLASSES] = { .group = "storage.k8s.io",
	                               .version = "v1",
	                               .kind = "StorageClass",
	                               .plural = "storageclasses",
	                               .empty = ",\"provisioner\":\"\"" },
	[RESOURCE_VIRTUAL_MACHINES] = { NEON, .kind = "VirtualMachine", .plural = "virtualmachines" },
	[RESOURCE_MIGRATIONS] = { NEON, .kind = "VirtualMachineMigration", .plural = "virtualmachinemigrations" },
	[RESOURCE_RESERVATIONS] = { CSI, .kind = "AvailableCapacityReservation",
	                            .plural = "availablecapacityreservations" },
	[RESOURCE_CAPACITIES] = { CSI, .kind = "AvailableCapacity", .plural = "availablecapacities" },
	[RESOURCE_VOLUMES] = { CSI, .kind = "Volume", .plural = "volumes", .namespaced = true },
	[RESOURCE_DRIVES] = { CSI, .kind = "Drive", .plural = "drives" },
	[RESOURCE_VOLUME_GROUPS] = { CSI, .kind = "LogicalVolumeGroup", .plural = "logicalvolumegroups" },
	[RESOURCE_CSI_NODES] = { CSI, .kind = "Node", .plural = "nodes" },
	[RESOURCE_STORAGE_GROUPS] = { CSI, .kind = "StorageGroup", .plural = "storagegroups" },
};

const struct resource_kind *resource_kind(enum resource resource)
{
	return &KINDS[resource];
}

enum resource resource_of(const struct resource_kind *kind)
{
	return (enum resource)(kind - KINDS);
}

const struct resource_kind *resource_kind_find(struct slice group, struct slice version, struct slice plural)
{
	for (size_t i = 0; i < RESOURCE_COUNT; i++)
		if (slice_equal_text(group, KINDS[i].group) && slice_equal_text(version, KINDS[i].version) &&
		    slice_equal_text(plural, KINDS[i].plural))
			return &KINDS[i];
	return NULL;
}

const struct resource_kind *resource_kind_of(struct slice api_version, struct slice kind)
{
	char text[RESOURCE_API_VERSION_BYTES];

	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		resource_kind_api_version(&KINDS[i], text);
		if (slice_equal_text(api_version, text) && slice_equal_text(kind, KINDS[i].kind))
			return &KINDS[i];
	}
	return NULL;
}

void resource_kind_api_version(const struct resource_kind *kind, char text[RESOURCE_API_VERSION_BYTES])
{
	snprintf(text, RESOURCE_API_VERSION_BYTES, "%s%s%s", kind->group, kind->group[0] != '\0' ? "/" : "",
	         kind->version);
}
