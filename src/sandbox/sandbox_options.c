#include "sandbox/sandbox_options.h"

#include <math.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/slice.h"
#include "codec/duration_text.h"
#include "sandbox/workload.h"

static const double SPEED_LEAST = 0.1;
static const double SPEED_MOST = 100;

static bool read_speed(const char *text, double *ret_speed, struct error *err)
{
	char *end;
	double speed = strtod(text, &end);

	if (end == text || *end != '\0' || !isfinite(speed) || speed < SPEED_LEAST || speed > SPEED_MOST)
		return error_set(err, ERROR_SYNTAX, "--speed: \"%s\" is not a number from %g to %g", text, SPEED_LEAST,
		                 SPEED_MOST);
	*ret_speed = speed;
	return true;
}

static bool read_duration(const char *option, const char *text, uint64_t *ret_ns, struct error *err)
{
	int64_t ns;

	if (!duration_parse(slice_of(text), &ns, err))
		return error_wrap(err, "%s", option);
	if (ns < 0 || (uint64_t)ns > OUTAGE_TIME_MAX_NS)
		return error_set(err, ERROR_LIMIT, "%s: \"%s\" is not within 0 and 30 days", option, text);
	*ret_ns = (uint64_t)ns;
	return true;
}

static bool read_outages(struct sandbox_options *options, const struct sandbox_option_texts *texts, struct error *err)
{
	if (texts->outage_count > OUTAGES_MAX)
		return error_set(err, ERROR_LIMIT, "--outage: more than %d", OUTAGES_MAX);
	for (size_t i = 0; i < texts->outage_count; i++) {
		struct outage *outage = &options->outages[i];

		if (!outage_parse(slice_of(texts->outages[i]), outage, err))
			return error_wrap(err, "--outage");
		if (outage->peer == OUTAGE_EXTENDER && options->pods == 0)
			return error_set(err, ERROR_LIMIT, "--outage: there is no extender without --pods");
		if (outage->peer == OUTAGE_MONITOR && outage->vm >= options->vms)
			return error_set(err, ERROR_LIMIT, "--outage: there is no VM %u, only %u", outage->vm + 1,
			                 options->vms);
	}
	options->outage_count = texts->outage_count;
	return true;
}

static bool read_times(struct sandbox_options *options, const struct sandbox_option_texts *texts, struct error *err)
{
	options->duration_ns = options->live ? 0 : (uint64_t)SANDBOX_DEFAULT_SECONDS * NS_PER_S;
	if (texts->duration != NULL) {
		if (!read_duration("--duration", texts->duration, &options->duration_ns, err))
			return false;
		if (options->duration_ns == 0)
			return error_set(err, ERROR_LIMIT, "--duration: it must be longer than nothing");
	}
	options->grace = texts->grace;
	options->grace_ns = (uint64_t)AGENT_GRACE_S * NS_PER_S;
	if (texts->grace != NULL && !read_duration("--grace", texts->grace, &options->grace_ns, err))
		return false;
	if (options->grace_ns > (uint64_t)AGENT_GRACE_MAX_S * NS_PER_S)
		return error_set(err, ERROR_LIMIT, "--grace: \"%s\" is more than 24h", texts->grace);
	options->stops_agent = texts->stop_agent_at != NULL;
	if (options->stops_agent &&
	    !read_duration("--stop-agent-at", texts->stop_agent_at, &options->stop_agent_ns, err))
		return false;
	return true;
}

static bool read_pods(struct sandbox_options *options, const struct sandbox_option_texts *texts, struct error *err)
{
	options->wait_for_reservation_ns = 0;
	if (options->vms == 0 && options->pods == 0)
		return error_set(err, ERROR_LIMIT, "--vms: with 0 VMs there must be --pods");
	if (texts->wait_for_reservation == NULL)
		return true;
	if (options->pods == 0)
		return error_set(err, ERROR_LIMIT, "--wait-for-reservation: there is no extender without --pods");
	if (!read_duration("--wait-for-reservation", texts->wait_for_reservation, &options->wait_for_reservation_ns,
	                   err))
		return false;
	return options->wait_for_reservation_ns <= (uint64_t)SANDBOX_WAIT_MOST_S * NS_PER_S ||
	       error_set(err, ERROR_LIMIT, "--wait-for-reservation: more than %d s", SANDBOX_WAIT_MOST_S);
}

/* The end must find the VMs at their sizes: whatever disturbs them ends in time. */
static bool check_end(const struct sandbox_options *options, struct error *err)
{
	uint64_t settle_ns = workload_settle_ns(options->speed, options->vms);
	uint64_t end_ns = sandbox_options_end_ns(options);

	if (!workload_check_duration(options->speed, options->vms, options->duration_ns, err))
		return error_wrap(err, "--duration");
	if (options->stops_agent && options->duration_ns != 0 && options->stop_agent_ns > options->duration_ns)
		return error_set(err, ERROR_LIMIT, "--stop-agent-at: the run has ended by then");
	for (size_t i = 0; i < options->outage_count; i++) {
		if (end_ns != 0 && outage_concerns_vms(&options->outages[i]) &&
		    options->outages[i].end_ns + settle_ns > end_ns)
			return error_set(err, ERROR_LIMIT,
			                 "--outage: an outage must have ended %.1f s before the end of the run",
			                 (double)settle_ns / NS_PER_S);
	}
	return true;
}

bool sandbox_options_read(struct sandbox_options *options, const struct sandbox_option_texts *texts, struct error *err)
{
	options->speed = SANDBOX_DEFAULT_SPEED;
	if (texts->speed != NULL && !read_speed(texts->speed, &options->speed, err))
		return false;
	if (!sandbox_generation_read(&options->generation, texts->plugin_protocol, texts->metrics_prefix, err))
		return false;
	return read_pods(options, texts, err) && read_times(options, texts, err) && read_outages(options, texts, err) &&
	       check_end(options, err);
}

uint64_t sandbox_options_end_ns(const struct sandbox_options *options)
{
	if (options->stops_agent)
		return options->stop_agent_ns;
	return options->duration_ns;
}
