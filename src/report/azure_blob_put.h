/*
 * Puts batches into an Azure Blob container, one blob each (spec reporting section 10): client "azureblob", format
 * REPORT_GZIP_LINES.
 *
 * Tokens come from what the environment offers (azure_token.h), for the first time with the first push. For emulators,
 * BALLAST_AZURE_SHARED_KEY_ACCOUNT and BALLAST_AZURE_SHARED_KEY (base64) switch to Shared Key, which may go over plain
 * HTTP (A11). The cause of every failure is "Azure Blob error".
 */
#ifndef BALLAST_REPORT_AZURE_BLOB_PUT_H
#define BALLAST_REPORT_AZURE_BLOB_PUT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "report/object_key.h"
#include "report/report_client.h"
#include "report/report_transport.h"

/* Copied. */
struct azure_blob_put_options {
	struct slice endpoint; /* "https://ACCOUNT.blob.core.windows.net/" */
	struct slice container;
	struct report_key_layout layout;
};

/* NULL with *err when the shared key can't be read or memory is short. A bad endpoint fails each push instead. */
struct report_client *azure_blob_put_create(struct report_transport *transport,
                                            const struct azure_blob_put_options *options, struct error *err);

/* Appends the path of a blob (A3): base path, container, and the key as one segment. */
bool azure_blob_append_target(struct buffer *out, struct slice base, struct slice container, struct slice key,
                              struct error *err);

#endif
