#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
	static const char PASSWORDS[] = "Kubernetes knows no passwords any more; use a token";
	static const char IMPERSONATION[] = "impersonation isn't supported";
	static const char TOGETHER[] = "missing; \"client-certificate\" and \"client-key\" go together";
	static const struct {
		const char *field;
		const char *content;
		const char *expected;
	} USERS[] = {
		{ "exec", "exec: {command: aws}",
		  "plugins aren't run; use a token, a token file or a client certificate" },
		{ "auth-provider", "auth-provider: {name: gcp}",
		  "providers aren't supported; use a token, a token file or a client certificate" },
		{ "username", "username: a, password: b", PASSWORDS },
		{ "password", "password: b", PASSWORDS },
		{ "as", "token: a, as: b", IMPERSONATION },
		{ "as-uid", "as-uid: b", IMPERSONATION },
		{ "as-groups", "as-groups: [b]", IMPERSONATION },
		{ "as-user-extra", "as-user-extra: {b: [c]}", IMPERSONATION },
		{ "client-key", "client-certificate: a", TOGETHER },
		{ "client-certificate", "client-key: a", TOGETHER },
		{ "client-certificate-data",
		  "client-certificate-data: '*', client-key-data: aa==", "this is no base64" },
		{ "token", "token: 5", "expected string, found number" },
		{ "token", "token: a, token: b", "the key stands here for the second time" },
		{ "tokenFile", "tokenFile: \"a\\0b\"", "the path is too long, or no path" },
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof USERS / sizeof *USERS; i++) {
		char expected[256];

		(void)snprintf(expected, sizeof expected, ": line 3: field \"users[0].user.%s\": %s", USERS[i].field,
		               USERS[i].expected);
		expect_refused(fixture, "server: 'https://a'", USERS[i].content, expected);
	}
	expect_refused(fixture, "server: 'https://a', proxy-url: 'http://p'", "",
	               ": line 1: field \"clusters[0].cluster.proxy-url\": proxies aren't supported");
	expect_refused(fixture, "certificate-authority: a", "",
	               ": line 1: field \"clusters[0].cluster.server\": missing or empty");
	expect_refused(fixture, "server: 'https://a', insecure-skip-tls-verify: true, certificate-authority: b", "",
	               ": line 1: field \"clusters[0].cluster.insecure-skip-tls-verify\": it can't be true where a "
	               "certificate-authority stands");
	expect_refused(
		fixture, "server: 'ftp://a'", "",
		": line 1: field \"clusters[0].cluster.server\": URL \"ftp://a\" begins neither with http:// nor "
		"with https://");
	expect_refused(fixture, "server: 'https://me:secret@a'", "",
	               ": line 1: field \"clusters[0].cluster.server\": URL \"…@…\": user names and "
	               "passwords aren't supported");
	expect_refused(fixture, "server: 'https://a/b?c'", "",
	               ": line 1: field \"clusters[0].cluster.server\": what follows the host can't stand before the "
	               "path of a request");
}

static void the_line_is_that_of_the_value(void **state)
{
	static const char TEXT[] = "# by hand\n"
				   "clusters:\n"
				   "- name: c\n"
				   "  cluster:\n"
				   "    server: https://a\n"
				   "users:\n"
				   "- name: other\n"
				   "- name: u\n"
				   "  user:\n"
				   "    token: a\n"
				   "    client-certificate-data: |\n"
				   "      Y2Vy\n"
				   "      dA==\n"
				   "    client-key-data: '*'\n"
				   "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
				   "current-context: x\n";
	struct fixture *fixture = *state;
	struct kubeconfig config;
	struct error err;

	assert_false(load(fixture, TEXT, &config, &err));
	assert_string_equal(err.text + strlen(fixture->path),
	                    ": line 14: field \"users[1].user.client-key-data\": this is no base64");
}

static void credentials_know_where_they_stand(void **state)
{
	struct fixture *fixture = *state;
	struct kubeconfig config;
	struct error err;

	assert_true(load(fixture, KUBECTL, &config, &err));
	assert_string_equal(config.ca.place + strlen(fixture->path),
	                    ": line 10: field \"clusters[1].cluster.certificate-authority\"");
	assert_string_equal(config.certificate.place + strlen(fixture->path),
	                    ": line 29: field \"users[1].user.client-certificate-data\"");
	assert_string_equal(config.key.place + strlen(fixture->path), ": line 30: field \"users[1].user.client-key\"");
	kubeconfig_destroy(&config);
}

static void a_missing_part_is_named(void **state)
{
	static const char *const CONTENTS[] = {
		"",
		"# nothing\n\n",
		"current-context: x\n",
		"current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n",
		"current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
		"clusters: [{name: c, cluster: {server: 'https://a'}}]\n",
		"current-context: [\n",
	};
	/* What stands before and behind the path. */
	static const char *const EXPECTED[][2] = {
		{ "", ": field \"current-context\" is missing or empty" },
		{ "", ": field \"current-context\" is missing or empty" },
		{ "", ": there is no context \"x\"" },
		{ "context \"x\": ", ": there is no cluster \"c\"" },
		{ "context \"x\": ", ": there is no user \"u\"" },
		{ "", ": line 2: did not find expected node content" },
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof CONTENTS / sizeof *CONTENTS; i++) {
		struct kubeconfig config;
		struct error err;
		char expected[256];

		assert_false(load(fixture, CONTENTS[i], &config, &err));
		(void)snprintf(expected, sizeof expected, "%s%s%s", EXPECTED[i][0], fixture->path, EXPECTED[i][1]);
		assert_string_equal(err.text, expected);
	}
}

static void two_items_of_one_name_are_refused(void **state)
{
	struct fixture *fixture = *state;
	struct kubeconfig config;
	struct error err;
	char expected[256];

	assert_false(load(fixture,
	                  "clusters: [{name: d}, {name: c, cluster: {server: 'https://a'}}, {name: d},\n"
	                  "  {name: c, cluster: {server: 'https://b'}}]\n"
	                  "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n",
	                  &config, &err));
	(void)snprintf(expected, sizeof expected, "context \"x\": %s: there are two clusters \"c\"", fixture->path);
	assert_string_equal(err.text, expected);
}

static void json_is_read_as_json(void **state)
{
	struct fixture *fixture = *state;
	struct kubeconfig config;
	struct error err;

	/* A pair of surrogates is no YAML, a key without quotes is no JSON. */
	assert_true(load(fixture,
	                 "{\n\t\"clusters\": [{\"name\": \"\\ud83d\\ude00\", \"cluster\": {\"server\": "
	                 "\"https:\\/\\/127.0.0.1:1\"}}],\n"
	                 "\t\"contexts\": [{\"name\": \"x\", \"context\": {\"cluster\": \"\\ud83d\\ude00\"}}],\n"
	                 "\t\"current-context\": \"x\"\n}\n",
	                 &config, &err));
	assert_string_equal(config.host, "127.0.0.1");
	kubeconfig_destroy(&config);
	assert_true(load(fixture,
	                 "{clusters: [{name: c, cluster: {server: 'https://a'}}],\n"
	                 "contexts: [{name: x, context: {cluster: c}}], current-context: x}\n",
	                 &config, &err));
	assert_string_equal(config.host, "a");
	kubeconfig_destroy(&config);
	assert_false(load(fixture, "{\n\"users\": [{\"name\": 5}]}", &config, &err));
	assert_string_equal(err.text + strlen(fixture->path),
	                    ": line 2: field \"users[0].name\": expected string, found number");
}

static void a_token_stands_in_for_a_token_file(void **state)
{
	struct fixture *fixture = *state;
	struct kubeconfig config;
	struct error err;

	assert_true(
		load(fixture,
	             "clusters: [{name: c, cluster: {server: 'https://a'}}]\n"
	             "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
	             "users: [{name: u, user: {token: inline, tokenFile: there/token, exec: null, as-groups: []}}]\n",
	             &config, &err));
	assert_int_equal(config.token.kind, KUBE_SOURCE_FILE);
	assert_string_equal(config.token.path + strlen(fixture->folder), "/there/token");
	assert_true(slice_equal_text(buffer_slice(&config.token.text), "inline"));
	kubeconfig_destroy(&config);
}

/* Root may read everything: it becomes somebody else for a while. */
static void of_several_files_only_missing_ones_are_passed_over(void **state)
{
	struct fixture *fixture = *state;
	struct kubeconfig config;
	struct error err;
	char paths[512], expected[256];
	bool is_root = geteuid() == 0;

	write_file(fixture->path, KUBECTL);
	write_file(fixture->second, "current-context: by-token\n");
	assert_int_equal(chmod(fixture->folder, 0755), 0);
	assert_int_equal(chmod(fixture->second, 0), 0);
	(void)snprintf(paths, sizeof paths, "%s:%s", fixture->second, fixture->path);
	if (is_root)
		assert_int_equal(seteuid(65534), 0);
	bool loaded = kubeconfig_load(paths, &config, &err);
	if (is_root)
		assert_int_equal(seteuid(0), 0);
	assert_false(loaded);
	(void)snprintf(expected, sizeof expected, "open %s: permission denied", fixture->second);
	assert_string_equal(err.text, expected);
}

static void a_path_with_a_colon_or_twice_is_one_file(void **state)
{
	struct fixture *fixture = *state;
	struct kubeconfig config;
	struct error err;
	char paths[4096] = "";

	(void)snprintf(fixture->second, sizeof fixture->second, "%s/se:cond", fixture->folder);
	write_file(fixture->second, KUBECTL);
	assert_true(kubeconfig_load(fixture->second, &config, &err));
	kubeconfig_destroy(&config);

	write_file(fixture->path, KUBECTL);
	for (int i = 0; i <= KUBE_CONFIG_FILES; i++) {
		(void)strncat(paths, fixture->path, sizeof paths - strlen(paths) - 1);
		(void)strncat(paths, ":", sizeof paths - strlen(paths) - 1);
	}
	assert_true(kubeconfig_load(paths, &config, &err));
	kubeconfig_destroy(&config);
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
		cmocka_unit_test_setup_teardown(the_line_is_that_of_the_value, set_up, tear_down),
		cmocka_unit_test_setup_teardown(credentials_know_where_they_stand, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_items_of_one_name_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(json_is_read_as_json, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_token_stands_in_for_a_token_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_several_files_only_missing_ones_are_passed_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_path_with_a_colon_or_twice_is_one_file, set_up, tear_down),
		cmocka_unit_test(a_single_file_must_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
