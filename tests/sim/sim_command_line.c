#include "sim_command_line.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/pod_workload.h"
#include "sandbox/workload.h"

static const char USAGE[] =
	"Usage: ballast-sim [OPTION]...\n"
	"\n"
	"Runs a simulated cluster: agents and extender, and stand-ins of their peers, in virtual time on an in-memory\n"
	"network. The same options always give the same trace hash.\n"
	"\n"
	"  --seed N         what fixes everything (default: 1)\n"
	"  --seeds N        runs of as many seeds, from --seed upwards (default: 1)\n"
	"  --stop           no further seeds behind one that is broken\n"
	"  --hours H        simulated hours of each run (default: 1)\n"
	"  --vms N          virtual machines (default: 7; 0: no agents)\n"
	"  --pods N         pods with claims (default: 16; 0: no extender)\n"
	"  --nodes N        nodes (default: 3)\n"
	"  --faults LEVEL   none, light or heavy (default: heavy)\n"
	"  --memory         allocations and socket calls of agents and extender fail now and then, too\n"
	"  --tls            TLS to the API servers\n"
	"  --torture KIND   allocations or calls: one end of the run for each of them that fails\n"
	"  --points N       up to which one by one (default: 2000); then a sample\n"
	"  --from N         the first one (default: 1)\n"
	"  --victim NAME    the process whose they are: agent-a (default), agent-b, …, or extender (default without VMs)\n"
	"  --trace          prints every event\n"
	"  --record FILE    writes what happened up to where an invariant broke, as far as it is needed for that\n"
	"  --play FILE      what is written there happens, and nothing else\n"
	"  --log FILE       where agents and extender log to (appended)\n"
	"  --help           this text\n"
	"\n"
	"Exit status: 0 if every invariant held, 1 if one was broken, 2 for wrong usage.\n";

void sim_command_line_help(void)
{
	(void)fputs(USAGE, stdout);
}

static bool read_number(const char *text, unsigned long *ret_number)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*text == '\0' || *end != '\0')
		return false;
	*ret_number = number;
	return true;
}

static bool read_count(const char *text, unsigned least, unsigned most, unsigned *ret_count)
{
	unsigned long number;

	if (!read_number(text, &number) || number < least || number > most)
		return false;
	*ret_count = (unsigned)number;
	return true;
}

static bool read_hours(const char *text, double *ret_hours)
{
	char *end;
	double hours = strtod(text, &end);

	if (*text == '\0' || *end != '\0' || !(hours > 0 && hours < 1e6))
		return false;
	*ret_hours = hours;
	return true;
}

static bool complain(const char *what)
{
	(void)fprintf(stderr, "ballast-sim: %s\nTry: ballast-sim --help\n", what);
	return false;
}

enum option_code {
	OPT_SEED = 1,
	OPT_SEEDS,
	OPT_HOURS,
	OPT_VMS,
	OPT_PODS,
	OPT_NODES,
	OPT_FAULTS,
	OPT_MEMORY,
	OPT_TLS,
	OPT_TORTURE,
	OPT_POINTS,
	OPT_FROM,
	OPT_VICTIM,
	OPT_STOP,
	OPT_TRACE,
	OPT_LOG,
	OPT_RECORD,
	OPT_PLAY,
	OPT_HELP
};

static const struct option OPTIONS[] = {
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "seeds", required_argument, NULL, OPT_SEEDS },
	{ "hours", required_argument, NULL, OPT_HOURS },
	{ "vms", required_argument, NULL, OPT_VMS },
	{ "pods", required_argument, NULL, OPT_PODS },
	{ "nodes", required_argument, NULL, OPT_NODES },
	{ "faults", required_argument, NULL, OPT_FAULTS },
	{ "memory", no_argument, NULL, OPT_MEMORY },
	{ "tls", no_argument, NULL, OPT_TLS },
	{ "torture", required_argument, NULL, OPT_TORTURE },
	{ "points", required_argument, NULL, OPT_POINTS },
	{ "from", required_argument, NULL, OPT_FROM },
	{ "victim", required_argument, NULL, OPT_VICTIM },
	{ "stop", no_argument, NULL, OPT_STOP },
	{ "trace", no_argument, NULL, OPT_TRACE },
	{ "record", required_argument, NULL, OPT_RECORD },
	{ "play", required_argument, NULL, OPT_PLAY },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static bool read_option(int code, const char *text, struct sim_command *command)
{
	struct sim_options *sim = &command->sim;
	unsigned long seed;

	switch (code) {
	case OPT_SEED:
		if (!read_number(text, &seed))
			return false;
		sim->seed = seed;
		return true;
	case OPT_SEEDS:
		return read_number(text, &command->seeds);
	case OPT_HOURS:
		return read_hours(text, &sim->hours);
	case OPT_VMS:
		return read_count(text, 0, WORKLOAD_VMS_MAX, &sim->vms);
	case OPT_PODS:
		return read_count(text, 0, PODS_MAX, &sim->pods);
	case OPT_NODES:
		return read_count(text, 1, WORKLOAD_NODES_MAX, &sim->nodes);
	case OPT_FAULTS:
		return sim_storm_of(text, &sim->storm);
	case OPT_TORTURE:
		command->torture = text;
		return strcmp(text, "allocations") == 0 || strcmp(text, "calls") == 0;
	case OPT_POINTS:
		return read_number(text, &command->points);
	case OPT_FROM:
		return read_number(text, &command->from) && command->from > 0;
	default:
		return false;
	}
}

/* Those that can't be wrong. */
static bool take_option(int code, const char *text, struct sim_command *command)
{
	switch (code) {
	case OPT_MEMORY:
		command->sim.memory = true;
		return true;
	case OPT_TLS:
		command->sim.tls = true;
		return true;
	case OPT_VICTIM:
		command->victim = text;
		return true;
	case OPT_STOP:
		command->stop = true;
		return true;
	case OPT_TRACE:
		command->trace = true;
		return true;
	case OPT_RECORD:
		command->record_path = text;
		return true;
	case OPT_PLAY:
		command->play_path = text;
		return true;
	case OPT_LOG:
		command->sim.log_path = text;
		return true;
	case OPT_HELP:
		command->help = true;
		return true;
	default:
		return false;
	}
}

bool sim_command_line_read(int argc, char **argv, struct sim_command *ret_command)
{
	struct sim_command command = {
		.sim = { .seed = 1, .hours = 1, .vms = 7, .pods = 16, .nodes = 3, .storm = SIM_STORM_HEAVY },
		.seeds = 1,
		.points = 2000,
		.from = 1,
	};
	int code;

	while ((code = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1)
		if (!take_option(code, optarg, &command) && !read_option(code, optarg, &command))
			return complain("wrong option");
	if (command.sim.vms == 0 && command.sim.pods == 0)
		return complain("neither VMs nor pods: there is nothing to run");
	if (optind < argc)
		return complain("there are no arguments, only options");
	if (command.victim == NULL)
		command.victim = command.sim.vms > 0 ? "agent-a" : "extender";
	*ret_command = command;
	return true;
}
