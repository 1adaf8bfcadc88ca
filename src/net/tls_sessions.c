/*
 * Sessions are kept serialised: a few hundred bytes, or a few kilobytes with the peer's certificate in them. They
 * belong to the settings, so a session that was verified against one set of trusted certificates is never used with
 * another.
 */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/limits.h"
#include "net/tls_internal.h"

struct tls_session {
	int64_t since_ns; /* wall clock */
	size_t length;
	unsigned char data[];
};

bool tls_sessions_offer(struct tls_settings *settings, const char *peer, mbedtls_ssl_context *ssl)
{
	const struct tls_session *saved = table_find(&settings->sessions, slice_of(peer));
	mbedtls_ssl_session session;

	if (saved == NULL)
		return false;

	int64_t age_ns = loop_wall_ns(settings->loop) - saved->since_ns;

	if (age_ns < 0 || age_ns > (int64_t)NET_TLS_SESSION_LIFETIME_S * NS_PER_S) {
		tls_sessions_forget(settings, peer);
		return false;
	}
	mbedtls_ssl_session_init(&session);

	bool offered = mbedtls_ssl_session_load(&session, saved->data, saved->length) == 0 &&
	               mbedtls_ssl_set_session(ssl, &session) == 0;

	mbedtls_ssl_session_free(&session);
	return offered;
}

/* Makes room for one more: the session that was first remembered longest ago goes. */
static void limit_sessions(struct table *sessions)
{
	struct table_entry *oldest = table_next(sessions, NULL);

	if (sessions->count >= NET_TLS_SESSIONS && oldest != NULL)
		memory_release(table_remove(sessions, slice_from(oldest->key, oldest->key_length)));
}

static struct tls_session *serialise(const mbedtls_ssl_session *session)
{
	unsigned char data[NET_TLS_SESSION_BYTES];
	size_t length = 0;
	struct tls_session *saved;

	if (mbedtls_ssl_session_save(session, data, sizeof data, &length) != 0)
		return NULL;
	saved = memory_allocate(sizeof *saved + length);
	if (saved != NULL) {
		saved->length = length;
		memcpy(saved->data, data, length);
	}
	mbedtls_platform_zeroize(data, length);
	return saved;
}

void tls_sessions_remember(struct tls_settings *settings, const char *peer, mbedtls_ssl_context *ssl)
{
	struct tls_session *saved = NULL;
	mbedtls_ssl_session session;

	mbedtls_ssl_session_init(&session);
	if (mbedtls_ssl_get_session(ssl, &session) == 0)
		saved = serialise(&session);
	mbedtls_ssl_session_free(&session);
	if (saved == NULL)
		return;
	saved->since_ns = loop_wall_ns(settings->loop);
	tls_sessions_forget(settings, peer);
	limit_sessions(&settings->sessions);
	if (!table_set(&settings->sessions, slice_of(peer), saved))
		memory_release(saved);
}

void tls_sessions_forget(struct tls_settings *settings, const char *peer)
{
	memory_release(table_remove(&settings->sessions, slice_of(peer)));
}

void tls_sessions_destroy(struct table *sessions)
{
	for (struct table_entry *entry = table_next(sessions, NULL); entry != NULL; entry = table_next(sessions, entry))
		memory_release(entry->value);
	table_destroy(sessions);
}
