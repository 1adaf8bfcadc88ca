/*
 * What can only be checked once a whole file and its imports are known.
 */
#include <stdio.h>
#include <string.h>

#include "protogen/schema.h"

/* A type by its full name, in the file at hand or one that it imports. */
static bool find_type(const struct schema_file *file, const char *full_name, struct schema_field *field)
{
	for (struct schema_message *message = file->messages; message != NULL; message = message->next) {
		if (strcmp(message->full_name, full_name) == 0) {
			field->message = message;
			field->type = SCHEMA_MESSAGE;
			return true;
		}
	}
	for (struct schema_enum *enumeration = file->enums; enumeration != NULL; enumeration = enumeration->next) {
		if (strcmp(enumeration->full_name, full_name) == 0) {
			field->enumeration = enumeration;
			field->type = SCHEMA_ENUM;
			return true;
		}
	}
	return false;
}

static bool find_type_with_imports(const struct schema_file *file, const char *full_name, struct schema_field *field)
{
	if (find_type(file, full_name, field))
		return true;
	for (const struct schema_import *import = file->imports; import != NULL; import = import->next) {
		if (import->file != NULL && find_type(import->file, full_name, field))
			return true;
	}
	return false;
}

/*
 * Looks a name up in the scope of its message, then in each scope around it (language guide, "Packages and Name
 * Resolution").
 */
static bool resolve_type(struct schema_message *message, struct schema_field *field, struct error *err)
{
	char scope[512];
	char candidate[1024];

	if (field->type_name[0] == '.') {
		if (find_type_with_imports(message->file, field->type_name + 1, field))
			return true;
		return schema_error(field->place, err, "unknown type %s", field->type_name);
	}
	snprintf(scope, sizeof scope, "%s", message->full_name);
	for (;;) {
		snprintf(candidate, sizeof candidate, "%s%s%s", scope, scope[0] != '\0' ? "." : "", field->type_name);
		if (find_type_with_imports(message->file, candidate, field))
			return true;
		if (scope[0] == '\0')
			return schema_error(field->place, err, "unknown type %s", field->type_name);

		char *dot = strrchr(scope, '.');

		*(dot != NULL ? dot : scope) = '\0';
	}
}

static bool wants_type(const struct schema_field *field, const char *format, enum schema_type type,
                       const char *type_name, struct error *err)
{
	if (field->type == type)
		return true;
	return schema_error(field->place, err, "format %s needs type %s", format, type_name);
}

static bool check_format(const struct schema_field *field, struct error *err)
{
	if (field->type == SCHEMA_BYTES && field->format != SCHEMA_RAW)
		return schema_error(field->place, err, "bytes have no JSON form of their own: say format: RAW");
	switch (field->format) {
	case SCHEMA_PLAIN:
		return true;
	case SCHEMA_QUANTITY:
		return wants_type(field, "QUANTITY", SCHEMA_UINT64, "uint64", err);
	case SCHEMA_QUANTITY_STRING:
		return wants_type(field, "QUANTITY_STRING", SCHEMA_UINT64, "uint64", err);
	case SCHEMA_MILLI_CPU:
		return wants_type(field, "MILLI_CPU", SCHEMA_UINT32, "uint32", err);
	case SCHEMA_MILLI_CPU_STRING:
		return wants_type(field, "MILLI_CPU_STRING", SCHEMA_UINT32, "uint32", err);
	case SCHEMA_RFC3339:
		return wants_type(field, "RFC3339", SCHEMA_INT64, "int64", err);
	case SCHEMA_RFC3339_NANO:
		return wants_type(field, "RFC3339_NANO", SCHEMA_INT64, "int64", err);
	case SCHEMA_RAW:
		return wants_type(field, "RAW", SCHEMA_BYTES, "bytes", err);
	case SCHEMA_FLOAT_OR_NAME:
		if (field->type == SCHEMA_FLOAT)
			return true;
		return wants_type(field, "FLOAT_OR_NAME", SCHEMA_DOUBLE, "double or float", err);
	}
	return true;
}

static bool is_list(const struct schema_field *field)
{
	return field->label == SCHEMA_REPEATED || field->type == SCHEMA_STRING_MAP;
}

static bool check_options(const struct schema_field *field, struct error *err)
{
	bool integer = field->type == SCHEMA_INT32 || field->type == SCHEMA_UINT32;

	if (field->max_items != 0 && !is_list(field))
		return schema_error(field->place, err, "max_items needs a repeated field or a map");
	if (field->max_bytes != 0 && field->type != SCHEMA_STRING && field->type != SCHEMA_BYTES &&
	    field->type != SCHEMA_STRING_MAP)
		return schema_error(field->place, err, "max_bytes needs a string, bytes or a map");
	if (field->bits != 0 && (!integer || field->bits != 16 || field->format != SCHEMA_PLAIN))
		return schema_error(field->place, err, "bits can only be 16, on a plain int32 or uint32");
	if (field->required && field->label == SCHEMA_OPTIONAL)
		return schema_error(field->place, err, "a field can't be both required and optional");
	if (field->label == SCHEMA_OPTIONAL && field->format == SCHEMA_RAW)
		return schema_error(field->place, err, "a raw field needs no optional: absent is empty");
	if (field->omit_empty && field->presence != SCHEMA_NO_PRESENCE)
		return schema_error(field->place, err, "omit_empty is for fields without presence");
	if (field->omit_empty && field->type == SCHEMA_MESSAGE && !is_list(field))
		return schema_error(field->place, err, "a message is never empty: say optional instead of omit_empty");
	if (field->always && field->presence != SCHEMA_HAS && field->format != SCHEMA_RAW)
		return schema_error(field->place, err, "always needs an optional field");
	if (field->always && field->omit_empty)
		return schema_error(field->place, err, "always and omit_empty exclude each other");
	return true;
}

static bool check_unique(const struct schema_message *message, const struct schema_field *field, struct error *err)
{
	for (const struct schema_field *other = message->fields; other != field; other = other->next) {
		if (strcmp(other->name, field->name) == 0)
			return schema_error(field->place, err, "field \"%s\" is declared twice", field->name);
		if (other->number == field->number)
			return schema_error(field->place, err, "number %lu already belongs to \"%s\"", field->number,
			                    other->name);
		if (message->rules.keys == SCHEMA_ASCII_FOLD
		            ? slice_equal_fold(slice_of(other->json_name), slice_of(field->json_name))
		            : strcmp(other->json_name, field->json_name) == 0)
			return schema_error(field->place, err, "key \"%s\" already belongs to \"%s\"", field->json_name,
			                    other->name);
	}
	return true;
}

static enum schema_presence presence_of(const struct schema_field *field)
{
	if (field->format == SCHEMA_RAW)
		return SCHEMA_NO_PRESENCE;
	if (field->null == SCHEMA_NULL_IS_KEPT)
		return SCHEMA_KEPT;
	if (field->label == SCHEMA_OPTIONAL)
		return SCHEMA_HAS;
	if (field->type == SCHEMA_MESSAGE && field->label == SCHEMA_SINGLE && field->null == SCHEMA_NULL_IS_ABSENT &&
	    !field->required)
		return SCHEMA_HAS;
	return SCHEMA_NO_PRESENCE;
}

static bool resolve_field(struct schema *schema, struct schema_message *message, struct schema_field *field,
                          struct error *err)
{
	if (field->type == SCHEMA_MESSAGE && !resolve_type(message, field, err))
		return false;
	if (field->json_name == NULL)
		field->json_name = schema_camel(schema, field->name, err);
	if (field->json_name == NULL)
		return false;
	if (schema_is_c_keyword(field->name))
		return schema_error(field->place, err,
		                    "\"%s\" is a keyword of C: name the field otherwise and give its json_name",
		                    field->name);
	if (message->rules.whole_numbers_from_double && field->type != SCHEMA_UINT64 && field->type != SCHEMA_STRING)
		return schema_error(field->place, err, "whole_numbers_from_double is for uint64 only");
	field->presence = presence_of(field);
	if (field->null == SCHEMA_NULL_UNSET)
		field->null = message->rules.null == SCHEMA_NULL_UNSET ? SCHEMA_NULL_IS_ERROR : message->rules.null;
	return check_unique(message, field, err) && check_format(field, err) && check_options(field, err);
}

/* Whether the other message has all of this one's fields, the C compiler will tell. */
static bool share_struct(struct schema_message *message, struct error *err)
{
	struct schema_field named = { .place = message->place, .type_name = message->rules.same_struct_as };

	if (!resolve_type(message, &named, err))
		return false;
	if (named.message == NULL || named.message == message)
		return schema_error(message->place, err, "same_struct_as must name another message");
	message->c_struct = named.message->c_struct;
	message->struct_owner = named.message->struct_owner != NULL ? named.message->struct_owner : named.message;
	return true;
}

static bool check_types_unique(const struct schema_file *file, struct error *err)
{
	for (const struct schema_message *message = file->messages; message != NULL; message = message->next) {
		for (const struct schema_message *other = file->messages; other != message; other = other->next) {
			if (strcmp(other->c_name, message->c_name) == 0)
				return schema_error(message->place, err, "message %s would have the C name of %s",
				                    message->full_name, other->full_name);
		}
		for (const struct schema_enum *other = file->enums; other != NULL; other = other->next) {
			if (strcmp(other->c_name, message->c_name) == 0)
				return schema_error(message->place, err, "message %s would have the C name of %s",
				                    message->full_name, other->full_name);
		}
	}
	return true;
}

static bool check_enum(const struct schema_enum *enumeration, struct error *err)
{
	unsigned long expected = 0;

	for (const struct schema_value *value = enumeration->values; value != NULL; value = value->next) {
		if (value->number != expected++)
			return schema_error(value->place, err, "the values of an enum must be numbered 0, 1, 2, …");
		for (const struct schema_value *other = enumeration->values; other != value; other = other->next) {
			if (strcmp(other->name, value->name) == 0 || strcmp(other->text, value->text) == 0)
				return schema_error(value->place, err, "value \"%s\" is declared twice", value->name);
		}
	}
	if (enumeration->values == NULL)
		return schema_error(enumeration->place, err, "an enum needs a value");
	return true;
}

bool schema_resolve(struct schema *schema, struct schema_file *file, struct error *err)
{
	if (!check_types_unique(file, err))
		return false;
	for (const struct schema_enum *enumeration = file->enums; enumeration != NULL;
	     enumeration = enumeration->next) {
		if (!check_enum(enumeration, err))
			return false;
	}
	for (struct schema_message *message = file->messages; message != NULL; message = message->next) {
		if (message->rules.null == SCHEMA_NULL_IS_KEPT)
			return schema_error(message->place, err,
			                    "NULL_IS_KEPT is for single fields, not for a whole message");
		if (message->field_count > SCHEMA_MAX_FIELDS)
			return schema_error(message->place, err, "%u fields are more than %d", message->field_count,
			                    SCHEMA_MAX_FIELDS);
		if (message->rules.same_struct_as != NULL && !share_struct(message, err))
			return false;
		for (struct schema_field *field = message->fields; field != NULL; field = field->next) {
			if (!resolve_field(schema, message, field, err))
				return false;
		}
	}
	return true;
}
