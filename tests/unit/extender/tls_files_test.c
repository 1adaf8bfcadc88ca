#include "base/buffer.h"
#include "extender/tls_files.h"
#include "net/tls_ca.h"
#include "tests/unit/kube/kube_fixture.h"

#define CERTIFICATE "tls.crt"
#define KEY "tls.key"

/* A certificate and its key. */
struct pair {
	struct buffer certificate, key;
};

struct scene {
	struct kube_fixture *fixture;
	struct pair first, second;
	char certificate_path[96], key_path[96];
	struct tls_files *files;
};

static void make_pair(struct scene *scene, const char *name, struct pair *ret_pair)
{
	const struct tls_ca_request request = { .common_name = name, .names = &name, .name_count = 1 };
	struct error err;

	assert_true(tls_ca_self_sign(scene->fixture->loop, &request, &ret_pair->certificate, &ret_pair->key, &err));
}

static void write_pair(const struct scene *scene, const struct pair *pair)
{
	fixture_write(scene->fixture, CERTIFICATE, buffer_slice(&pair->certificate));
	fixture_write(scene->fixture, KEY, buffer_slice(&pair->key));
}

static struct tls_files *open_files(struct scene *scene, struct error *err)
{
	const struct logger logger = fixture_logger(scene->fixture);

	return tls_files_open(scene->fixture->loop, scene->certificate_path, scene->key_path, &logger, err);
}

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof *scene);
	struct error err;

	assert_non_null(scene);
	scene->fixture = fixture_create_bare();
	snprintf(scene->certificate_path, sizeof scene->certificate_path, "%s/" CERTIFICATE, scene->fixture->folder);
	snprintf(scene->key_path, sizeof scene->key_path, "%s/" KEY, scene->fixture->folder);
	make_pair(scene, "first", &scene->first);
	make_pair(scene, "second", &scene->second);
	write_pair(scene, &scene->first);
	scene->files = open_files(scene, &err);
	assert_non_null(scene->files);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	tls_files_close(scene->files);
	buffer_destroy(&scene->first.certificate);
	buffer_destroy(&scene->first.key);
	buffer_destroy(&scene->second.certificate);
	buffer_destroy(&scene->second.key);
	fixture_remove(scene->fixture, CERTIFICATE);
	fixture_remove(scene->fixture, KEY);
	fixture_destroy(scene->fixture);
	free(scene);
	return 0;
}

/* Looks twice; whether the settings are others then. What doesn't change isn't told twice. */
static bool changes(struct scene *scene)
{
	const struct tls_settings *before = tls_files_settings(scene->files);
	bool changed;

	tls_files_look(scene->files);
	changed = tls_files_settings(scene->files) != before;
	before = tls_files_settings(scene->files);
	tls_files_look(scene->files);
	assert_ptr_equal(tls_files_settings(scene->files), before);
	return changed;
}

static void files_that_stay_change_nothing(void **state)
{
	struct scene *scene = *state;

	assert_non_null(tls_files_settings(scene->files));
	assert_false(changes(scene));
	write_pair(scene, &scene->first);
	assert_false(changes(scene));
	assert_int_equal(fixture_logged(scene->fixture, "certificate"), 0);
}

static void a_new_pair_is_taken(void **state)
{
	struct scene *scene = *state;

	write_pair(scene, &scene->second);
	assert_true(changes(scene));
	assert_int_equal(fixture_logged(scene->fixture, "The certificate has changed"), 1);
	write_pair(scene, &scene->first);
	assert_true(changes(scene));
	assert_int_equal(fixture_logged(scene->fixture, "The certificate has changed"), 2);
}

static void half_a_change_waits_for_the_other_half(void **state)
{
	struct scene *scene = *state;

	fixture_write(scene->fixture, CERTIFICATE, buffer_slice(&scene->second.certificate));
	assert_false(changes(scene));
	assert_int_equal(fixture_logged(scene->fixture, "can't be used"), 1);
	fixture_write(scene->fixture, KEY, buffer_slice(&scene->second.key));
	assert_true(changes(scene));
	assert_int_equal(fixture_logged(scene->fixture, "The certificate has changed"), 1);
}

static void what_cannot_be_used_leaves_the_old_pair(void **state)
{
	struct scene *scene = *state;
	struct slice half = buffer_slice(&scene->second.certificate);

	half.length /= 2;
	fixture_write(scene->fixture, KEY, buffer_slice(&scene->second.key));
	fixture_write(scene->fixture, CERTIFICATE, half);
	assert_false(changes(scene));
	assert_int_equal(fixture_logged(scene->fixture, "can't be used"), 1);
	fixture_write(scene->fixture, CERTIFICATE,
	              SLICE("\x7f"
	                    "ELF, not a certificate"));
	assert_false(changes(scene));
	assert_int_equal(fixture_logged(scene->fixture, "can't be used"), 2);
	fixture_write(scene->fixture, CERTIFICATE, SLICE(""));
	assert_false(changes(scene));
	assert_int_equal(fixture_logged(scene->fixture, "can't be used"), 3);
	assert_int_equal(fixture_logged(scene->fixture, "PRIVATE KEY"), 0);
	write_pair(scene, &scene->second);
	assert_true(changes(scene));
}

static void a_file_that_is_gone_is_told_once_until_it_is_back(void **state)
{
	struct scene *scene = *state;

	fixture_remove(scene->fixture, KEY);
	assert_false(changes(scene));
	assert_false(changes(scene));
	assert_int_equal(fixture_logged(scene->fixture, "Failed to read the certificate again"), 1);
	write_pair(scene, &scene->first);
	assert_false(changes(scene));
	fixture_remove(scene->fixture, CERTIFICATE);
	assert_false(changes(scene));
	assert_int_equal(fixture_logged(scene->fixture, "Failed to read the certificate again"), 2);
	write_pair(scene, &scene->second);
	assert_true(changes(scene));
}

static void the_start_needs_a_good_pair(void **state)
{
	struct scene *scene = *state;
	struct error err;

	fixture_write(scene->fixture, KEY, buffer_slice(&scene->second.key));
	assert_null(open_files(scene, &err));
	assert_non_null(strstr(err.text, scene->certificate_path));
	fixture_remove(scene->fixture, KEY);
	assert_null(open_files(scene, &err));
	assert_non_null(strstr(err.text, "no such file or directory"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_that_stay_change_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_new_pair_is_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(half_a_change_waits_for_the_other_half, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_used_leaves_the_old_pair, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_is_gone_is_told_once_until_it_is_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_start_needs_a_good_pair, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
