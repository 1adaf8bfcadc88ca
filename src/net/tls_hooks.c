#include "net/tls_hooks.h"

#include <mbedtls/error.h>
#include <mbedtls/platform.h>
#include <mbedtls/platform_time.h>
#include <psa/crypto.h>
#include <psa/crypto_extra.h>

#include "base/clock.h"
#include "base/memory.h"

static struct loop *current; /* see tls_hooks.h */

static void *hook_allocate(size_t count, size_t size)
{
	size_t bytes;

	return __builtin_mul_overflow(count, size, &bytes) ? NULL : memory_allocate(bytes);
}

static mbedtls_time_t hook_time(mbedtls_time_t *ret_time)
{
	/* Without a loop it is 1970, and no certificate is valid. */
	mbedtls_time_t now = current != NULL ? (mbedtls_time_t)(loop_wall_ns(current) / NS_PER_S) : 0;

	if (ret_time != NULL)
		*ret_time = now;
	return now;
}

mbedtls_ms_time_t mbedtls_ms_time(void)
{
	return current != NULL ? (mbedtls_ms_time_t)(loop_now_ns(current) / NS_PER_MS) : 0;
}

psa_status_t mbedtls_psa_external_get_random(mbedtls_psa_external_random_context_t *context, uint8_t *output,
                                             size_t output_size, size_t *output_length)
{
	(void)context;
	if (current == NULL || !loop_random(current, output, output_size))
		return PSA_ERROR_INSUFFICIENT_ENTROPY;
	*output_length = output_size;
	return PSA_SUCCESS;
}

int tls_hooks_random(void *context, unsigned char *data, size_t length)
{
	(void)context;
	return current != NULL && loop_random(current, data, length) ? 0 : MBEDTLS_ERR_ERROR_GENERIC_ERROR;
}

bool tls_hooks_install(struct error *err)
{
	mbedtls_platform_set_calloc_free(hook_allocate, memory_release);
	mbedtls_platform_set_time(hook_time);

	psa_status_t status = psa_crypto_init();

	return status == PSA_SUCCESS ||
	       error_set(err, ERROR_SYSTEM, "starting cryptography failed with code %d", (int)status);
}

struct loop *tls_hooks_enter(struct loop *loop)
{
	struct loop *before = current;

	current = loop;
	return before;
}

void tls_hooks_leave(struct loop *before)
{
	current = before;
}
