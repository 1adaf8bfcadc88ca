/*
 * Reading a kubeconfig and credentials, while each allocation and each system call fails once.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/credentials.h"
#include "kube/error_reply.h"
#include "tests/support/failing_files.h"

static const char *const NAMES[] = { "config", "second", "token", "ca.crt" };

enum { NAME_COUNT = sizeof NAMES / sizeof NAMES[0], PATH_BYTES = 128 };

static struct {
	char folder[64];
	char paths[2 * PATH_BYTES]; /* both kubeconfigs */
} files;

static void write_file(const char *name, const char *content)
{
	char path[PATH_BYTES];
	FILE *file;

	(void)snprintf(path, sizeof path, "%s/%s", files.folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	(void)fputs(content, file);
	(void)fclose(file);
}

static int make_files(void **state)
{
	(void)state;
	(void)snprintf(files.folder, sizeof files.folder, "/tmp/ballast-kube-torture-XXXXXX");
	assert_non_null(mkdtemp(files.folder));
	(void)snprintf(files.paths, sizeof files.paths, "%s/config:%s/second", files.folder, files.folder);
	write_file("config", "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts:\n- name: here\n"
	                     "  context: {cluster: c, user: u}\nclusters:\n- name: c\n"
	                     "  cluster: {server: \"https://10.0.0.1:6443\", certificate-authority: ca.crt}\n");
	write_file("second", "apiVersion: v1\nkind: Config\nusers:\n- name: u\n"
	                     "  user: {tokenFile: token, client-certificate-data: Y2VydGlmaWNhdGU=, "
	                     "client-key-data: a2V5}\n");
	write_file("token", "the-token\n");
	write_file("ca.crt", "the certificates");
	return 0;
}

static int remove_files(void **state)
{
	char path[PATH_BYTES];

	(void)state;
	for (unsigned i = 0; i < NAME_COUNT; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", files.folder, NAMES[i]);
		(void)unlink(path);
	}
	return rmdir(files.folder);
}

static bool load_kubeconfig(void *context, struct error *err)
{
	static const struct logger NOWHERE = { .name = "test", .context_json = "" };
	struct kube_credentials credentials;
	struct kubeconfig kubeconfig;
	bool ok;

	(void)context;
	torture_mark(&kubeconfig, sizeof kubeconfig);
	if (!kubeconfig_load(files.paths, &kubeconfig, err)) {
		assert_true(torture_untouched(&kubeconfig, sizeof kubeconfig));
		return false;
	}
	assert_string_equal(kubeconfig.host, "10.0.0.1");
	ok = kube_credentials_init_from(&credentials, &kubeconfig, &NOWHERE, 0, err);
	if (ok) {
		assert_true(slice_equal_text(kube_credentials_token(&credentials), "the-token"));
		assert_true(slice_equal_text(kube_credentials_key(&credentials), "key"));
		kube_credentials_destroy(&credentials);
	}
	kubeconfig_destroy(&kubeconfig);
	return ok;
}

/* A CA that can't be read leaves the last good one, or none; a token that can't be read at the start is an error. */
static bool read_credentials(void *context, struct error *err)
{
	static const struct logger NOWHERE = { .name = "test", .context_json = "" };
	struct kube_credentials credentials;
	struct slice ca;

	(void)context;
	if (!kube_credentials_init(&credentials, files.folder, &NOWHERE, 0, err))
		return false;
	(void)kube_credentials_reload_token(&credentials, 1);
	(void)kube_credentials_reload_ca(&credentials);
	ca = kube_credentials_ca(&credentials);
	assert_true(slice_equal_text(kube_credentials_token(&credentials), "the-token"));
	assert_true(slice_equal_text(ca, "the certificates"));
	kube_credentials_destroy(&credentials);
	return true;
}

static bool describe_refusal(void *context, struct error *err)
{
	const struct error_reply reply = {
		.status = 409,
		.content_type = SLICE("application/json"),
		.body = SLICE(
			"{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"a \\u00e4 conflict\",\"reason\":"
			"\"Conflict\",\"code\":409}"),
		.verb = "patch",
		.resource = "virtualmachines.vm.neon.tech",
	};

	(void)context;
	(void)error_reply_describe(&reply, err);
	/* Without memory for the Status, the sentence that its code has. */
	assert_int_equal(err->code, ERROR_REFUSED);
	assert_true(strstr(err->text, "conflict") != NULL || strstr(err->text, "(patch virtualmachines") != NULL);
	return true;
}

static void each_failed_allocation_is_an_error(void **state)
{
	static const struct torture_case CASES[] = {
		{ "kubeconfig", load_kubeconfig, 100 },
		{ "service account", read_credentials, 3 },
		{ "refusal", describe_refusal, 2 },
	};

	(void)state;
	torture_each_case(CASES, sizeof CASES / sizeof CASES[0], NULL);
}

static bool load_kubeconfig_over_calls(void *context)
{
	struct error err = { .text = "" };
	bool ok = load_kubeconfig(context, &err);

	assert_true(ok || (err.code != ERROR_NONE && strstr(err.text, files.folder) != NULL));
	return ok;
}

static void each_failed_call_names_the_file(void **state)
{
	static const struct torture_fault FAULTS[] = {
		{ TORTURE_OPEN, EINTR, true }, { TORTURE_OPEN, EMFILE, false },       { TORTURE_OPEN, EACCES, false },
		{ TORTURE_READ, EINTR, true }, { TORTURE_READ, TORTURE_SHORT, true }, { TORTURE_READ, EIO, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++)
		assert_true(torture_calls(&FAULTS[i], load_kubeconfig_over_calls, NULL) >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failed_allocation_is_an_error),
		cmocka_unit_test(each_failed_call_names_the_file),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
