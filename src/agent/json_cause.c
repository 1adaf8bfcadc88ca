#include "agent/json_cause.h"

#include "codec/json_problem.h"

bool json_cause_restate(const struct json_reader *reader, bool stream, struct error *err)
{
	const struct json_problem *problem = &reader->problem;
	char cause[sizeof problem->text + sizeof problem->path + sizeof problem->found + 128];

	if (problem->kind == JSON_PROBLEM_NONE || problem->kind == JSON_PROBLEM_RESOURCE)
		return false;
	json_problem_reference_text(problem, stream, cause, sizeof cause);
	return error_set(err, err->code, "%s", cause);
}
