#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kube/kubeconfig.h"

struct fixture {
	char folder[64];
	char path[128];
	char second[128];
};

static void write_file(const char *path, const char *content)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	(void)fputs(content, file);
	(void)fclose(file);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);

	(void)snprintf(fixture->folder, sizeof fixture->folder, "/tmp/ballast-kubeconfig-XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	(void)snprintf(fixture->path, sizeof fixture->path, "%s/config", fixture->folder);
	(void)snprintf(fixture->second, sizeof fixture->second, "%s/second", fixture->folder);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	(void)unlink(fixture->path);
	(void)unlink(fixture->second);
	(void)rmdir(fixture->folder);
	free(fixture);
	return 0;
}

static bool load(const struct fixture *fixture, const char *content, struct kubeconfig *ret, struct error *err)
{
	write_file(fixture->path, content);
	return kubeconfig_load(fixture->path, ret, err);
}

static const char KUBECTL[] = "apiVersion: v1\n"
			      "kind: Config\n"
			      "preferences: {}\n"
			      "clusters:\n"
			      "- cluster:\n"
			      "    certificate-authority-data: Q0EgYnl0ZXM=\n"
			      "    server: https://10.0.0.1:6443\n"
			      "  name: other\n"
			      "- cluster:\n"
			      "    certificate-authority: pki/ca.crt\n"
			      "    server: https://api.example.com/k8s/clusters/c-1/\n"
			      "    tls-server-name: inner.example.com\n"
			      "  name: main\n"
			      "contexts:\n"
			      "- context:\n"
			      "    cluster: main\n"
			      "    namespace: kube-system\n"
			      "    user: admin\n"
			      "  name: admin@main\n"
			      "- context: {cluster: other, user: token}\n"
			      "  name: by-token\n"
			      "current-context: admin@main\n"
			      "users:\n"
			      "- name: token\n"
			      "  user:\n"
			      "    token: secret\n"
			      "- name: admin\n"
			      "  user:\n"
			      "    client-certificate-data: Y2VydA==\n"
			      "    client-key: /etc/key.pem\n";

static void the_current_context_names_server_and_credentials(void **state)
{
	struct fixture *fixture = *state;
	struct kubeconfig config;
	struct error err;
	char expected[256];

	assert_true(load(fixture, KUBECTL, &config, &err));
	assert_true(config.secure);
	assert_string_equal(config.host, "api.example.com");
	assert_int_equal(config.port, 443);
	assert_string_equal(config.path_prefix, "/k8s/clusters/c-1");
	assert_string_equal(config.server_name, "inner.example.com");
	assert_false(config.insecure_skip_verify);
	assert_int_equal(config.ca.kind, KUBE_SOURCE_FILE);
	(void)snprintf(expected, sizeof expected, "%s/pki/ca.crt", fixture->folder);
	assert_string_equal(config.ca.path, expected);
	assert_int_equal(config.token.kind, KUBE_SOURCE_NONE);
	assert_int_equal(config.certificate.kind, KUBE_SOURCE_INLINE);
	assert_true(slice_equal_text(buffer_slice(&config.certificate.text), "cert"));
	assert_int_equal(config.key.kind, KUBE_SOURCE_FILE);
	assert_string_equal(config.key.path, "/etc/key.pem");
	kubeconfig_destroy(&config);
}

static void the_first_of_several_files_decides_and_missing_ones_are_passed_over(void **state)
{
	struct fixture *fixture = *state;
	struct kubeconfig config;
	struct error err;
	char paths[512];

	write_file(fixture->path, KUBECTL);
	write_file(fixture->second, "current-context: by-token\nusers: [{name: token, user: {token: another}}]\n");
	(void)snprintf(paths, sizeof paths, "/nowhere/config::%s:%s", fixture->second, fixture->path);
	assert_true(kubeconfig_load(paths, &config, &err));
	assert_string_equal(config.host, "10.0.0.1");
	assert_int_equal(config.port, 6443);
	assert_string_equal(config.path_prefix, "");
	assert_true(slice_equal_text(buffer_slice(&config.ca.text), "CA bytes"));
	assert_true(slice_equal_text(buffer_slice(&config.token.text), "another"));
	kubeconfig_destroy(&config);
}

static void plain_http_and_insecure_tls_are_taken_as_they_stand(void **state)
{
	struct kubeconfig config;
	struct error err;

	assert_true(load(
		*state,
		"clusters: [{name: c, cluster: {server: 'http://127.0.0.1:8001', insecure-skip-tls-verify: true}}]\n"
		"contexts: [{name: x, context: {cluster: c}}]\n"
		"current-context: x\n",
		&config, &err));
	assert_false(config.secure);
	assert_int_equal(config.port, 8001);
	assert_true(config.insecure_skip_verify);
	assert_int_equal(config.ca.kind, KUBE_SOURCE_NONE);
	kubeconfig_destroy(&config);
}

/* One file with the given user of the only context. */
static void expect_refused(struct fixture *fixture, const char *cluster, const char *user, const char *expected)
{
	struct kubeconfig config;
	struct error err;
	char content[1024];

	(void)snprintf(content, sizeof content,
	               "clusters: [{name: c, cluster: {%s}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
	               "users: [{name: u, user: {%s}}]\ncurrent-context: x\n",
	               cluster, user);
	assert_false(load(fixture, content, &config, &err));
	assert_true(strncmp(err.text, fixture->path, strlen(fixture->path)) == 0);
	assert_string_equal(err.text + strlen(fixture->path), expected);
}

static void what_is_not_supported_or_wrong_is_named(void **state)
{
	struct fixture *fixture = *state;
	const char *server = "server: 'https://a'";

	expect_refused(fixture, server, "exec: {command: aws}",
	               ": field \"exec\": plugins aren't run; use a token, a token file or a client certificate");
	expect_refused(
		fixture, server, "auth-provider: {name: gcp}",
		": field \"auth-provider\": providers aren't supported; use a token, a token file or a client certificate");
	expect_refused(fixture, server, "username: a, password: b",
	               ": field \"username\": Kubernetes knows no passwords any more; use a token");
	expect_refused(fixture, server, "token: a, as: b", ": field \"as\": impersonation isn't supported");
	expect_refused(fixture, "server: 'https://a', proxy-url: 'http://p'", "",
	               ": field \"proxy-url\": proxies aren't supported");
	expect_refused(fixture, "server: 'ftp://a'", "",
	               ": field \"server\": URL \"ftp://a\" begins neither with http:// nor with https://");
	expect_refused(fixture, server, "client-certificate: a",
	               ": fields \"client-certificate\" and \"client-key\" go together");
	expect_refused(fixture, server, "client-certificate-data: '*', client-key-data: aa==",
	               ": field \"client-certificate-data\" is no base64");
	expect_refused(fixture, server, "token: 5", ": field \"users[0].user.token\": expected string, found number");
}

static void a_missing_part_is_named(void **state)
{
	static const char *const CONTENTS[] = {
		"",
		"current-context: x\n",
		"current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n",
		"current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
		"clusters: [{name: c, cluster: {server: 'https://a'}}]\n",
		"current-context: [\n",
	};
	static const char *const EXPECTED[] = {
		": field \"current-context\" is missing or empty", ": there is no context \"x\"",
		": context \"x\": there is no cluster \"c\"",      ": context \"x\": there is no user \"u\"",
		": line 2: did not find expected node content",
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof CONTENTS / sizeof *CONTENTS; i++) {
		struct kubeconfig config;
		struct error err;

		assert_false(load(fixture, CONTENTS[i], &config, &err));
		assert_string_equal(err.text + strlen(fixture->path), EXPECTED[i]);
	}
}

static void a_single_file_must_exist(void **state)
{
	struct kubeconfig config;
	struct error err;

	(void)state;
	assert_false(kubeconfig_load("/nowhere/config", &config, &err));
	assert_string_equal(err.text, "open /nowhere/config: no such file or directory");
	assert_false(kubeconfig_load("/nowhere/a:/nowhere/b", &config, &err));
	assert_string_equal(err.text, "no such kubeconfig file: /nowhere/a:/nowhere/b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_current_context_names_server_and_credentials, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_first_of_several_files_decides_and_missing_ones_are_passed_over,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(plain_http_and_insecure_tls_are_taken_as_they_stand, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_supported_or_wrong_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_missing_part_is_named, set_up, tear_down),
		cmocka_unit_test(a_single_file_must_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
