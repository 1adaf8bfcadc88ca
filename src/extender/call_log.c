#include "extender/call_log.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/rng.h"
#include "codec/json_writer.h"

enum { CONTEXT_BYTES = 8192, SENTENCE_BYTES = 4096 };

static void append_member(struct json_writer *writer, const char *key, struct slice value)
{
	json_writer_key(writer, slice_of(key));
	json_writer_string(writer, value);
}

/* RFC 9562, version 4: it only has to differ. */
static void make_uuid(struct loop *loop, char text[CALL_SESSION_BYTES])
{
	uint64_t high = (rng_next(loop_rng(loop)) & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
	uint64_t low = (rng_next(loop_rng(loop)) >> 2) | (UINT64_C(1) << 63);

	(void)snprintf(text, CALL_SESSION_BYTES, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
	               high >> 32, high >> 16 & 0xffff, high & 0xffff, low >> 48, low & UINT64_C(0xffffffffffff));
}

void call_log_begin(struct call_log *log, struct loop *loop, struct log_sink *sink, const char *method,
                    char session[CALL_SESSION_BYTES], const struct request *request)
{
	const struct extender_pod_meta *pod = &request->args.pod.metadata;
	struct json_writer writer;

	if (session[0] == '\0')
		make_uuid(loop, session);
	buffer_init(&log->context, CONTEXT_BYTES);
	json_writer_init(&writer, &log->context);
	writer.escape_html = false;
	append_member(&writer, "component", SLICE("Extender"));
	append_member(&writer, "method", slice_of(method));
	append_member(&writer, "sessionUUID", slice_of(session));
	if (request->args.has_pod) {
		append_member(&writer, "namespace", pod->namespace);
		append_member(&writer, "pod", pod->name);
	}
	buffer_append_char(&log->context, '\0');
	log->logger = (struct logger){
		.sink = sink,
		.name = "extender",
		.context_json = log->context.failed ? "\"component\":\"Extender\"" : log->context.data,
	};
}

void call_log_end(struct call_log *log)
{
	buffer_destroy(&log->context);
}

void call_log_volumes(const struct call_log *log, const struct capacity_plan *plan)
{
	struct buffer sentence;

	buffer_init(&sentence, SENTENCE_BYTES);
	for (size_t i = 0; i < plan->note_count; i++) {
		const struct volume_note *note = &plan->notes[i];
		bool odd = note->bad_storage_type || note->bad_size;

		if (!odd && !volume_note_is_worth_logging(note))
			continue;
		buffer_clear(&sentence);
		volume_note_print(note, &sentence);
		if (odd)
			log_warn(&log->logger, "An inline volume can't be read as it is meant to be",
			         log_slice("volume", note->volume), log_bool("badStorageType", note->bad_storage_type),
			         log_bool("badSize", note->bad_size), log_slice("reason", buffer_slice(&sentence)));
		else
			log_info(&log->logger, "No capacity is requested for a volume",
			         log_slice("volume", note->volume), log_slice("claim", note->claim),
			         log_slice("class", note->class_name), log_slice("reason", buffer_slice(&sentence)));
	}
	buffer_destroy(&sentence);
}
