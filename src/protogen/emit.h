/*
 * Writes C for a resolved schema file. Both give complete files; the buffer remembers running out of room.
 */
#ifndef BALLAST_PROTOGEN_EMIT_H
#define BALLAST_PROTOGEN_EMIT_H

#include "base/buffer.h"
#include "protogen/schema.h"

/* gen/NAME.gen.h: structs and declarations. Fails if a message contains itself. */
bool emit_header(struct schema_file *file, struct buffer *out, struct error *err);
/* gen/NAME.gen.c: decoders and encoders. */
void emit_source(const struct schema_file *file, struct buffer *out);

/* --- shared by the emitters --- */

enum { EMIT_COLUMNS = 120, EMIT_TAB = 8, EMIT_TEXT_SIZE = 512 };

/* "struct plugin_resources", "uint32_t": the type of one value. */
void emit_type(const struct schema_field *field, char *text, size_t size);
/* Which of the C scalar kinds a format and type amount to: the last part of json_reader_… and json_writer_…. */
const char *emit_reader_name(const struct schema_message *message, const struct schema_field *field);
const char *emit_writer_name(const struct schema_field *field);
/*
 * A call, or the head of a function, up to its closing bracket: tabs, start, then the parameters in brackets, broken
 * where the line gets too long. columns_behind: what will stand behind it.
 */
void emit_call(struct buffer *out, size_t tabs, const char *start, const char *const *parameters, size_t count,
               size_t columns_behind);
/* A comment block at some indentation; text is lines joined by \n. Nothing for "". */
void emit_comment(struct buffer *out, const char *indent, const char *text);
/* Characters, not bytes. */
size_t emit_columns(struct slice text);
/* "resources->cpu_milli" or "resources.cpu_milli", into EMIT_TEXT_SIZE bytes. */
void emit_access(const struct schema_message *message, const struct schema_field *field, const char *arrow, char *text);
void emit_upper(const char *text, char *upper, size_t size);
bool emit_is_map(const struct schema_field *field);
bool emit_is_list(const struct schema_field *field);

/* The functions of one message, complete. */
void emit_decoder(struct buffer *out, const struct schema_message *message);
void emit_from_json(struct buffer *out, const struct schema_message *message);
void emit_encoder(struct buffer *out, const struct schema_message *message);
void emit_to_json(struct buffer *out, const struct schema_message *message);

#endif
