#include "extender/config.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/slice.h"
#include "extender/process_limits.h"

enum { DEFAULT_PORT = 8889, DEFAULT_HEALTH_PORT = 9999 };

struct extender_flags extender_flags_default(void)
{
	return (struct extender_flags){
		.namespace = "",
		.provisioner = "",
		.node_selector = "",
		.port = DEFAULT_PORT,
		.certificate_file = "",
		.key_file = "",
		.log_level = "info",
		.node_id_annotation = "",
		.metrics_address = "",
		.metrics_path = "/metrics",
		.health_ip = "",
		.health_port = DEFAULT_HEALTH_PORT,
		.kubeconfig = "",
		.listen_address = "",
		.log_format = "",
		.readiness_file = "/status/nodes.yaml",
	};
}

#define TEXT(flag_name, member, words)                                                             \
	(struct go_flag)                                                                           \
	{                                                                                          \
		.name = (flag_name), .kind = GO_FLAG_TEXT, .help = (words), .text = &flags->member \
	}
/* Not refused by reading flags if it is another. */
#define CHOICE(flag_name, member, names, words)                                                                        \
	(struct go_flag)                                                                                               \
	{                                                                                                              \
		.name = (flag_name), .kind = GO_FLAG_TEXT, .help = (words), .text = &flags->member, .choices = (names) \
	}
#define BOOL(flag_name, member, words)                                                             \
	(struct go_flag)                                                                           \
	{                                                                                          \
		.name = (flag_name), .kind = GO_FLAG_BOOL, .help = (words), .flag = &flags->member \
	}
#define PORT(flag_name, member, words)                                                                            \
	(struct go_flag)                                                                                          \
	{                                                                                                         \
		.name = (flag_name), .kind = GO_FLAG_NUMBER, .help = (words), .number = &flags->member, .low = 0, \
		.high = UINT16_MAX                                                                                \
	}

/* In the order in which the usage lists them: by name, as Go's flag package does. */
void extender_flags_table(struct extender_flags *flags, struct go_flag ret_table[EXTENDER_FLAG_COUNT])
{
	static const char *const FORMATS[] = { "json", "text", NULL };
	static const char *const LEVELS[] = { "info", "debug", "trace", NULL };
	const struct go_flag all[EXTENDER_FLAG_COUNT] = {
		TEXT("certFile", certificate_file,
		     "`file` with the TLS certificate (PEM); with a key: HTTPS instead of HTTP"),
		TEXT("healthip", health_ip, "`address` of the health port; empty: all"),
		PORT("healthport", health_port, "health `port`: /healthz, /readyz"),
		BOOL("inline-volumes", inline_volumes,
		     "reserve capacity for inline CSI volumes too (older generation)"),
		BOOL("isPatchingEnabled", patching_enabled, "ready only when this node's kube-scheduler was restarted"),
		TEXT("kubeconfig", kubeconfig,
		     "`file` with API server and credentials (default: $KUBECONFIG, a pod's account, ~/.kube/config)"),
		TEXT("listen-address", listen_address, "`address` of the extender's port; empty: all"),
		CHOICE("log-format", log_format, FORMATS,
		       "`format` of log lines, json or text (default: $LOG_FORMAT, else json)"),
		CHOICE("loglevel", log_level, LEVELS, "`level`: info, debug or trace"),
		TEXT("metrics-address", metrics_address,
		     "`host:port` of the metrics page, which the extender's port has anyway; empty: none"),
		TEXT("metrics-path", metrics_path, "`path` of the metrics page; empty: none"),
		TEXT("namespace", namespace, "`name` of the own namespace; without effect"),
		TEXT("nodeidannotation", node_id_annotation,
		     "`key` of the annotation with a node's id, with useexternalannotation"),
		TEXT("nodeselector", node_selector, "`key=value` label of nodes to use, with usenodeannotation"),
		BOOL("no-seccomp", no_seccomp, "don't leave the process only the system calls it needs"),
		BOOL("normalize-scores", normalize_scores, "scale scores into 0 to 10"),
		PORT("port", port, "extender's `port`: /filter, /prioritize, /bind"),
		TEXT("privateKeyFile", key_file, "`file` with the TLS key (PEM)"),
		TEXT("provisioner", provisioner, "provisioner of the StorageClasses that are ours"),
		TEXT("readiness-file", readiness_file, "`file` that isPatchingEnabled looks at"),
		BOOL("useexternalannotation", use_external_annotation,
		     "take a node's id from the annotation nodeidannotation"),
		BOOL("usenodeannotation", use_node_annotation, "take a node's id from an annotation, not from its UID"),
		{ .name = "wait-for-reservation",
		  .kind = GO_FLAG_DURATION,
		  .help = "how long a filter call waits for the controller's answer to a new reservation, up to 4s",
		  .duration_ns = &flags->wait_for_reservation_ns,
		  .high = (int64_t)EXTENDER_WAIT_MAX_MS * NS_PER_MS },
	};

	memcpy(ret_table, all, sizeof all);
}

enum go_flags_result extender_flags_read(struct extender_flags *flags, int argc, char **argv, int *ret_ignored,
                                         struct error *err)
{
	struct go_flag table[EXTENDER_FLAG_COUNT];

	extender_flags_table(flags, table);
	return go_flags_read(table, EXTENDER_FLAG_COUNT, argc, argv, ret_ignored, err);
}

void extender_flags_print_usage(FILE *out)
{
	struct extender_flags flags = extender_flags_default();
	struct go_flag table[EXTENDER_FLAG_COUNT];

	extender_flags_table(&flags, table);
	(void)fputs("Usage of extender:\n", out);
	go_flags_print_usage(table, EXTENDER_FLAG_COUNT, out);
}

enum log_level extender_log_level(const char *text)
{
	struct slice level = slice_of(text);

	return slice_equal_fold(level, SLICE("debug")) || slice_equal_fold(level, SLICE("trace")) ? LOG_DEBUG
	                                                                                          : LOG_INFO;
}

enum log_format extender_log_format(const char *text)
{
	return slice_equal_text(slice_of(text), "text") ? LOG_FORMAT_TEXT : LOG_FORMAT_JSON_TIME;
}

bool extender_address_parse(struct slice text, struct address *ret_address, struct error *err)
{
	const char *colon = text.length > 0 ? memrchr(text.data, ':', text.length) : NULL;
	struct slice host = text;
	uint64_t port;

	if (colon == NULL)
		return error_set(err, ERROR_SYNTAX, "\"%.*s\" is not HOST:PORT", SLICE_ARGS(text));
	host.length = (size_t)(colon - text.data);
	if (!slice_to_u64(slice_from_offset(text, host.length + 1), &port) || port > UINT16_MAX)
		return error_set(err, ERROR_SYNTAX, "\"%.*s\" has no port number", SLICE_ARGS(text));
	if (host.length >= 2 && host.data[0] == '[' && host.data[host.length - 1] == ']')
		host = slice_from(host.data + 1, host.length - 2);
	if (host.length == 0)
		host = SLICE("::");
	if (!address_parse(slice_equal(host, SLICE("localhost")) ? SLICE("127.0.0.1") : host, (uint16_t)port,
	                   ret_address))
		return error_set(err, ERROR_SYNTAX, "\"%.*s\" is no literal IP address", SLICE_ARGS(host));
	return true;
}
