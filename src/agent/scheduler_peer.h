/*
 * A scheduler pod, as those see it who ask its plugin. All of its pods are in the namespace SCHEDULER_NAMESPACE.
 */
#ifndef BALLAST_AGENT_SCHEDULER_PEER_H
#define BALLAST_AGENT_SCHEDULER_PEER_H

#define SCHEDULER_NAMESPACE "kube-system"

struct scheduler_peer {
	const char *uid;
	const char *name;
	const char *ip; /* literal address */
};

#endif
