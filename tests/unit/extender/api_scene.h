/*
 * What tests of the extender's calls to the API server share: a scripted one, a client of it, and metrics.
 */
#ifndef BALLAST_TESTS_UNIT_EXTENDER_API_SCENE_H
#define BALLAST_TESTS_UNIT_EXTENDER_API_SCENE_H

#include "base/token_bucket.h"
#include "extender/extender_metrics.h"
#include "tests/support/scripted_api.h"
#include "tests/unit/kube/kube_fixture.h"

struct api_scene {
	struct kube_fixture *fixture;
	struct loop *loop;
	struct scripted_api *api;
	struct extender_metrics *metrics;
	struct token_bucket limiter;
};

static inline void api_scene_begin(struct api_scene *scene)
{
	struct error err;

	scene->fixture = fixture_create();
	scene->loop = scene->fixture->loop;
	scene->api = scene->fixture->api;
	scene->metrics = extender_metrics_create(&err);
	assert_non_null(scene->metrics);
	assert_true(token_bucket_init(&scene->limiter, 1000, 1000, loop_now_ns(scene->loop), &err));
}

static inline void api_scene_end(struct api_scene *scene)
{
	fixture_destroy(scene->fixture);
	extender_metrics_destroy(scene->metrics);
}

/* How often the page has the text. */
static inline size_t api_scene_count(const struct api_scene *scene, const char *text)
{
	struct buffer page;
	struct error err;
	size_t count = 0;

	buffer_init(&page, 1024 * 1024);
	assert_true(extender_metrics_print(scene->metrics, &page, &err));
	buffer_append_char(&page, '\0');
	for (const char *at = page.data; (at = strstr(at, text)) != NULL; at++)
		count++;
	buffer_destroy(&page);
	return count;
}

#endif
