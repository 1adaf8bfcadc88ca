/*
 * In the simulator's place of src/metrics/process_metrics.c: what the kernel says of this process isn't the seed's doing, and
 * a page that differed from run to run would make the network differ.
 */
#include "metrics/process_metrics.h"

bool process_metrics_init(struct process_metrics *ret_process, struct metrics_registry *registry, struct error *err)
{
	(void)registry;
	(void)err;
	*ret_process = (struct process_metrics){ .has_boot_time = false };
	return true;
}

void process_metrics_update(struct process_metrics *process)
{
	(void)process;
}
