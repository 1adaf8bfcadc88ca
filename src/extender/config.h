/*
 * What the extender is told by its command line and its environment (spec extender 1.1, 1.2).
 */
#ifndef BALLAST_EXTENDER_CONFIG_H
#define BALLAST_EXTENDER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "extender/go_flags.h"
#include "net/address.h"

/* Flags, as they were given. Texts are never NULL; they point into argv. */
struct extender_flags {
	const char *namespace;
	const char *provisioner;
	const char *node_selector;
	int64_t port;
	const char *certificate_file, *key_file;
	const char *log_level;
	bool use_node_annotation, use_external_annotation;
	const char *node_id_annotation;
	const char *metrics_address, *metrics_path;
	const char *health_ip;
	int64_t health_port;
	bool patching_enabled;
	const char *kubeconfig;
	/* Ours, not the reference's. */
	bool inline_volumes, normalize_scores, no_seccomp;
	int64_t wait_for_reservation_ns;
	const char *listen_address;
	const char *log_format;
	const char *readiness_file;
};

enum { EXTENDER_FLAG_COUNT = 23 };

/* The defaults. */
struct extender_flags extender_flags_default(void);
/* Reads argv[1 …]; see go_flags_read. */
enum go_flags_result extender_flags_read(struct extender_flags *flags, int argc, char **argv, int *ret_ignored,
                                         struct error *err);
/*
 * The table of flags, in the order in which the usage lists them; values go to *flags, whose present ones are the
 * defaults.
 */
void extender_flags_table(struct extender_flags *flags, struct go_flag ret_table[EXTENDER_FLAG_COUNT]);
/* What what follows a wrong flag. */
void extender_flags_print_usage(FILE *out);

/* "info", "debug" and "trace" in any letter case; anything else is "info" (1.1). */
enum log_level extender_log_level(const char *text);
/* "text" is lines for people, anything else JSON (1.2). NULL is fine. */
enum log_format extender_log_format(const char *text);

/*
 * "host:port", where an empty host is every address. Reads literal addresses only. False with a sentence.
 */
bool extender_address_parse(struct slice text, struct address *ret_address, struct error *err);

#endif
