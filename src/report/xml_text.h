/*
 * Reads single texts out of small XML documents: the replies of S3, STS and Azure. No document types, no namespaces (a
 * prefix is left out of account), bounded depth; everything else of XML 1.0 that such replies have.
 */
#ifndef BALLAST_REPORT_XML_TEXT_H
#define BALLAST_REPORT_XML_TEXT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

enum { XML_DEPTH = 16 };

/*
 * Appends to `out` the text of the first element at path ("Error/Code": the root's name first), with references
 * resolved; an element inside it adds nothing. False when there is none, when the document is malformed up to there, or
 * when out is full; out has what it had before.
 */
bool xml_find_text(struct slice document, const char *path, struct buffer *out, struct error *err);

#endif
