#include "sandbox/outage.h"

#include <stdio.h>

#include "codec/duration_text.h"
#include "sandbox/workload.h"

/* As on the command line; a vm-monitor has a number besides. */
static const char *const NAMES[] = {
	[OUTAGE_PLUGIN] = "plugin",
	[OUTAGE_API] = "api",
	[OUTAGE_EXTENDER] = "extender",
	[OUTAGE_RECEIVER] = "receiver",
};

static bool parse_peer(struct slice peer, struct outage *ret_outage, struct error *err)
{
	struct slice rest = peer;
	uint64_t number;

	for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
		if (NAMES[i] != NULL && slice_equal_text(peer, NAMES[i])) {
			ret_outage->peer = (enum outage_peer)i;
			return true;
		}
	}
	if (!slice_equal_text(slice_take_until(&rest, ':'), "monitor") || !slice_to_u64(rest, &number) || number == 0 ||
	    number > WORKLOAD_VMS_MAX)
		return error_set(err, ERROR_SYNTAX, "\"%.*s\" is none of plugin, api, extender, receiver, monitor:N",
		                 SLICE_ARGS(peer));
	ret_outage->peer = OUTAGE_MONITOR;
	ret_outage->vm = (unsigned)number - 1;
	return true;
}

static bool parse_time(struct slice text, const char *what, uint64_t *ret_ns, struct error *err)
{
	int64_t ns;

	if (!duration_parse(text, &ns, err))
		return error_wrap(err, "%s", what);
	if (ns < 0)
		return error_set(err, ERROR_SYNTAX, "%s: \"%.*s\" is negative", what, SLICE_ARGS(text));
	if ((uint64_t)ns > OUTAGE_TIME_MAX_NS)
		return error_set(err, ERROR_LIMIT, "%s: \"%.*s\" is more than 30 days", what, SLICE_ARGS(text));
	*ret_ns = (uint64_t)ns;
	return true;
}

bool outage_parse(struct slice text, struct outage *ret_outage, struct error *err)
{
	struct slice length = text;
	struct slice peer = slice_take_until(&length, '@');
	struct slice start = slice_take_until(&length, '+');
	struct outage outage = { .vm = 0 };
	uint64_t length_ns = 0;

	if (start.length == 0 || length.length == 0)
		return error_set(err, ERROR_SYNTAX, "\"%.*s\" isn't PEER@START+LENGTH", SLICE_ARGS(text));
	if (!parse_peer(peer, &outage, err) || !parse_time(start, "start", &outage.start_ns, err) ||
	    !parse_time(length, "length", &length_ns, err))
		return false;
	if (length_ns == 0)
		return error_set(err, ERROR_SYNTAX, "length: an outage of no time");
	outage.end_ns = outage.start_ns + length_ns;
	*ret_outage = outage;
	return true;
}

bool outage_concerns_vms(const struct outage *outage)
{
	return outage->peer != OUTAGE_RECEIVER && outage->peer != OUTAGE_EXTENDER;
}

static bool concerns(const struct outage *outage, unsigned vm)
{
	if (!outage_concerns_vms(outage))
		return false;
	return outage->peer != OUTAGE_MONITOR || outage->vm == vm;
}

bool outages_leave_settled(const struct outage *outages, size_t count, unsigned vm, uint64_t at_ns, uint64_t settle_ns)
{
	for (size_t i = 0; i < count; i++) {
		if (concerns(&outages[i], vm) && outages[i].start_ns < at_ns && outages[i].end_ns + settle_ns > at_ns)
			return false;
	}
	return true;
}

bool outage_same_peer(const struct outage *a, const struct outage *b)
{
	return a->peer == b->peer && (a->peer != OUTAGE_MONITOR || a->vm == b->vm);
}

void outage_print_option(const struct outage *outage, char text[OUTAGE_PEER_BYTES])
{
	if (outage->peer == OUTAGE_MONITOR)
		(void)snprintf(text, OUTAGE_PEER_BYTES, "monitor:%u", outage->vm + 1);
	else
		(void)snprintf(text, OUTAGE_PEER_BYTES, "%s", NAMES[outage->peer]);
}

void outage_print_peer(const struct outage *outage, char *text, size_t size)
{
	switch (outage->peer) {
	case OUTAGE_PLUGIN:
		(void)snprintf(text, size, "scheduler plugin");
		break;
	case OUTAGE_MONITOR:
		(void)snprintf(text, size, "vm-monitor of VM %u", outage->vm + 1);
		break;
	case OUTAGE_API:
		(void)snprintf(text, size, "Kubernetes API");
		break;
	case OUTAGE_EXTENDER:
		(void)snprintf(text, size, "extender");
		break;
	case OUTAGE_RECEIVER:
		(void)snprintf(text, size, "event receiver");
		break;
	}
}
