#include "agent/config_document.h"

#include "agent/config_decoded.h"
#include "codec/json_locate.h"

/* Keys that only one of the schemas has. */
static const char *const MARKERS_B[] = {
	"refereshStateIntervalSeconds",
	"neonvm",
	"scalingEvents",
	"metrics.system",
	"metrics.lfc",
	"billing.clients",
	"monitor.maxFailedRequestRate",
	"scheduler.maxFailedRequestRate",
};
static const char *const MARKERS_A[] = {
	"scaling.requestTimeoutSeconds",
	"scaling.retryFailedRequestSeconds",
	"metrics.port",
	"metrics.loadMetricPrefix",
	"metrics.requestTimeoutSeconds",
	"metrics.secondsBetweenRequests",
	"monitor.deniedDownscaleFollowUpWaitSeconds",
	"billing.url",
	"billing.pushEverySeconds",
	"billing.pushRequestTimeoutSeconds",
	"billing.maxBatchSize",
};

const char *agent_generation_name(enum agent_generation generation)
{
	return generation == AGENT_GENERATION_A ? "A" : "B";
}

static const char *first_present(struct json_reader *reader, const char *const *markers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (json_locate(reader, slice_of(markers[i])).present)
			return markers[i];
	}
	return NULL;
}

struct config_schema config_schema_detect(struct json_reader *reader)
{
	struct config_schema schema = {
		.marker_a = first_present(reader, MARKERS_A, sizeof MARKERS_A / sizeof MARKERS_A[0]),
		.marker_b = first_present(reader, MARKERS_B, sizeof MARKERS_B / sizeof MARKERS_B[0]),
	};
	bool is_a = schema.marker_a != NULL && schema.marker_b == NULL;

	schema.generation = is_a ? AGENT_GENERATION_A : AGENT_GENERATION_B;
	return schema;
}

bool config_document_decode(struct json_reader *reader, struct config_document *ret_document, struct error *err)
{
	if (ret_document->generation == AGENT_GENERATION_A)
		return agent_config_a_config_decode(reader, &ret_document->a, err);
	return agent_config_config_decode(reader, &ret_document->b, err);
}

void config_document_find_problems(const struct config_document *document, struct config_problems *ret_problems)
{
	if (document->generation == AGENT_GENERATION_A)
		config_problems_find_a(&document->a, ret_problems);
	else
		config_problems_find(&document->b, ret_problems);
}

bool config_document_convert(const struct config_document *document, struct arena *arena,
                             struct agent_config *ret_config, struct error *err)
{
	if (document->generation == AGENT_GENERATION_A)
		return config_decoded_convert_a(&document->a, arena, ret_config, err);
	return config_decoded_convert(&document->b, arena, ret_config, err);
}

void config_document_encode(struct json_writer *writer, const struct config_document *document)
{
	if (document->generation == AGENT_GENERATION_A)
		agent_config_a_config_encode(writer, &document->a);
	else
		agent_config_config_encode(writer, &document->b);
}
