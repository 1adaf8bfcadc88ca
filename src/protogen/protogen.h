/*
 * protogen, the schema compiler: `protogen --out DIR [--include DIR]… FILE.proto…` writes NAME.gen.h and NAME.gen.c
 * into DIR for each FILE. The output depends on the files' content alone. Errors read `file:line:column: message`.
 */
#ifndef BALLAST_PROTOGEN_PROTOGEN_H
#define BALLAST_PROTOGEN_PROTOGEN_H

#include "base/buffer.h"
#include "base/error.h"

/* The generated texts of one schema file. Include folders end with NULL; the file's own folder is searched first. */
bool protogen_generate(const char *path, const char *const *include_folders, struct buffer *header,
                       struct buffer *source, struct error *err);

/*
 * The program: 0 when all went well, 1 when a file has an error or can't be read or written, 2 for a wrong command
 * line.
 */
int protogen_run(int argc, char **argv);

#endif
