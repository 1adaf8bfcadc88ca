/*
 * Good and bad certificates of every kind (tests/vectors/tls/certificates.txt), shown to our client and to our server, in
 * TLS 1.3 and 1.2.
 */
#include "tls_scene.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/vector_file.h"

enum { CASES = 61, FILE_BYTES = 64 * 1024 };

static char folder[] = "/tmp/ballast-certificates-XXXXXX";

static int make_certificates(void **state)
{
	char command[512];

	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(command, sizeof command, "sh '%s/vectors/tls/make_certificates.sh' %s >%s/log", TESTS_DIR, folder,
	         folder);
	if (system(command) == 0)
		return 0;
	snprintf(command, sizeof command, "tail -n 20 %s/log >&2", folder);
	(void)!system(command);
	return -1;
}

static int remove_certificates(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}

static void read_pem(const char *name, const char *ending, struct buffer *ret_pem)
{
	char path[256];
	char bytes[FILE_BYTES];
	FILE *file;
	size_t length;

	snprintf(path, sizeof path, "%s/%s.%s", folder, name, ending);
	file = fopen(path, "r");
	if (file == NULL)
		fail_msg("no %s", path);
	length = fread(bytes, 1, sizeof bytes, file);
	assert_true(length > 0 && length < sizeof bytes);
	assert_int_equal(fclose(file), 0);
	buffer_init(ret_pem, FILE_BYTES);
	buffer_append(ret_pem, bytes, length);
	assert_false(ret_pem->failed);
}

/* ---- openssl as the other side, since mbedTLS wouldn't show what is wrong with most of these ---- */

struct openssl {
	pid_t pid;
	int input; /* held open, as it ends with it */
	FILE *output;
};

static void openssl_start(struct openssl *openssl, const char *const *arguments)
{
	int input[2], output[2];

	assert_int_equal(pipe(input), 0);
	assert_int_equal(pipe(output), 0);
	openssl->pid = fork();
	assert_true(openssl->pid >= 0);
	if (openssl->pid == 0) {
		(void)dup2(input[0], STDIN_FILENO);
		(void)dup2(output[1], STDOUT_FILENO);
		(void)dup2(output[1], STDERR_FILENO);
		(void)close(input[1]);
		(void)close(output[0]);
		char *copies[24] = { NULL }; /* execvp takes what it could change, but doesn't */

		for (int i = 0; arguments[i] != NULL; i++)
			copies[i] = strdup(arguments[i]);
		(void)execvp("openssl", copies);
		_exit(127);
	}
	(void)close(input[0]);
	(void)close(output[1]);
	openssl->input = input[1];
	openssl->output = fdopen(output[0], "r");
	assert_non_null(openssl->output);
}

static void openssl_end(struct openssl *openssl)
{
	int status;

	(void)kill(openssl->pid, SIGKILL);
	assert_int_equal(waitpid(openssl->pid, &status, 0), openssl->pid);
	(void)close(openssl->input);
	(void)fclose(openssl->output);
}

#define OLD_TOO "DEFAULT:@SECLEVEL=0" /* weak keys and hashes may be shown */
/* The authorities that the system trusts take ten times as long to read as all else does, for each process. */
#define TRUST_NOBODY "-no-CAfile", "-no-CApath", "-no-CAstore"

/* Listens with the certificate; returns the port. */
static uint16_t openssl_serve(struct openssl *openssl, const char *name)
{
	char certificate[256], key[256], line[256];
	const char *const arguments[] = {
		"openssl",     "s_server",  "-accept", "127.0.0.1:0", "-naccept", "1",     "-cert",      certificate,
		"-cert_chain", certificate, "-key",    key,           "-cipher",  OLD_TOO, TRUST_NOBODY, NULL,
	};

	snprintf(certificate, sizeof certificate, "%s/%s.pem", folder, name);
	snprintf(key, sizeof key, "%s/%s.key", folder, name);
	openssl_start(openssl, arguments);
	while (fgets(line, sizeof line, openssl->output) != NULL) {
		const char *colon = strrchr(line, ':');

		if (strncmp(line, "ACCEPT ", 7) == 0 && colon != NULL)
			return (uint16_t)atoi(colon + 1);
	}
	fail_msg("openssl serves nothing with %s", name);
	return 0;
}

/* Connects with the certificate; name "-": without. */
static void openssl_connect(struct openssl *openssl, const char *name, bool only_1_2, uint16_t port)
{
	char certificate[256], key[256], target[32];
	const char *arguments[20] = { "openssl",   "s_client", "-quiet", "-connect",
		                      target,      "-cipher",  OLD_TOO,  only_1_2 ? "-tls1_2" : "-tls1_3",
		                      TRUST_NOBODY };
	int count = 11;

	snprintf(target, sizeof target, "127.0.0.1:%u", port);
	snprintf(certificate, sizeof certificate, "%s/%s.pem", folder, name);
	snprintf(key, sizeof key, "%s/%s.key", folder, name);
	if (strcmp(name, "-") != 0) {
		arguments[count++] = "-cert";
		arguments[count++] = certificate;
		arguments[count++] = "-cert_chain";
		arguments[count++] = certificate;
		arguments[count++] = "-key";
		arguments[count++] = key;
	}
	openssl_start(openssl, arguments);
}

/* ---- one connection; *ret_reason: why there was none, as told to the side that verifies; empty if there was one ---- */

static void show_to_client(struct loop *loop, const struct vector_row *row, bool only_1_2, struct slice root,
                           char *ret_reason, size_t size)
{
	struct tls_client_options options = { .ca_pem = root };
	struct stream_connect_options connect = { .host = "127.0.0.1", .server_name = row->fields[1] };
	struct openssl server;
	struct peer peer;
	struct error err;

	peer_init(&peer, loop);
	connect.port = openssl_serve(&server, row->fields[0]);
	connect.tls = tls_client_settings_create(loop, &options, &err);
	assert_non_null(connect.tls);
	if (only_1_2)
		tls_settings_limit_to_1_2(connect.tls);
	peer_connect(&peer, &connect);
	TURN_UNTIL(loop, peer.opened + peer.closed >= 1);
	snprintf(ret_reason, size, "%s", peer.opened == 0 ? peer.err.text : "");
	peer_destroy(&peer);
	openssl_end(&server);
	tls_settings_release(connect.tls);
}

static void show_to_server(struct loop *loop, const struct vector_row *row, bool only_1_2, struct slice root,
                           char *ret_reason, size_t size)
{
	struct buffer certificate, key;
	struct tls_settings *settings;
	struct openssl client;
	struct host host;

	read_pem("good", "pem", &certificate);
	read_pem("good", "key", &key);
	settings = server_of(loop, buffer_slice(&certificate), buffer_slice(&key), root);
	host_init(&host, loop, settings);
	openssl_connect(&client, row->fields[0], only_1_2, host.address.port);
	TURN_UNTIL(loop, host.accepted + host.errors == 1);
	snprintf(ret_reason, size, "%s", host.accepted == 0 ? host.err.text : "");
	openssl_end(&client);
	host_destroy(&host);
	tls_settings_release(settings);
	buffer_destroy(&certificate);
	buffer_destroy(&key);
}

static void connect_once(const struct vector_row *row, bool only_1_2, char *ret_reason, size_t size)
{
	struct loop *loop = new_loop();
	struct buffer root;

	read_pem("root", "pem", &root);
	if (strcmp(row->fields[1], "client") == 0)
		show_to_server(loop, row, only_1_2, buffer_slice(&root), ret_reason, size);
	else
		show_to_client(loop, row, only_1_2, buffer_slice(&root), ret_reason, size);
	buffer_destroy(&root);
	turn_for(loop, 2);
	loop_destroy(loop);
}

static void run_case(const struct vector_row *row)
{
	assert_int_equal(row->count, 3);
	for (int old = 0; old < 2; old++) {
		char reason[1024];

		connect_once(row, old != 0, reason, sizeof reason);
		if (strcmp(row->fields[2], "accepted") == 0 ? reason[0] != '\0'
		                                            : strstr(reason, row->fields[2]) == NULL)
			fail_msg("%s for %s, TLS 1.%d: \"%s\" instead of \"%s\"", row->fields[0], row->fields[1],
			         old != 0 ? 2 : 3, reason[0] != '\0' ? reason : "accepted", row->fields[2]);
	}
}

static void certificates_are_judged_as_listed(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/tls/certificates.txt", run_case), CASES);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(certificates_are_judged_as_listed) };

	return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
