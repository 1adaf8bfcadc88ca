#include "sim_prepare.h"

#include <psa/crypto.h>
#include <stdlib.h>

#include "net/tls_hooks.h"

/*
 * The TLS library makes room for keys as it needs more of them at once, and keeps it: not to be taken for what an agent
 * left behind. So it is made to need a lot before.
 */
static bool make_room_for_keys(struct error *err)
{
	enum { KEYS = 500 };
	static const uint8_t KEY[16] = { 0 };
	psa_key_attributes_t attributes = PSA_KEY_ATTRIBUTES_INIT;
	psa_key_id_t keys[KEYS];
	bool ok = true;
	unsigned count;

	psa_set_key_type(&attributes, PSA_KEY_TYPE_AES);
	psa_set_key_bits(&attributes, 8 * sizeof KEY);
	psa_set_key_usage_flags(&attributes, PSA_KEY_USAGE_ENCRYPT);
	psa_set_key_algorithm(&attributes, PSA_ALG_ECB_NO_PADDING);
	for (count = 0; ok && count < KEYS; count++)
		ok = psa_import_key(&attributes, KEY, sizeof KEY, &keys[count]) == PSA_SUCCESS;
	for (unsigned i = 0; ok && i < count; i++)
		ok = psa_destroy_key(keys[i]) == PSA_SUCCESS;
	return ok || error_set(err, ERROR_SYSTEM, "the TLS library can't make keys");
}

/* What an agent's pod has in its environment to send events with: nobody checks any of it. */
static bool set_environment(struct error *err)
{
	static const char *const VALUES[][2] = {
		{ "AWS_ACCESS_KEY_ID", "ballast" },
		{ "AWS_SECRET_ACCESS_KEY", "simulation" },
		{ "BALLAST_AZURE_SHARED_KEY_ACCOUNT", "ballast" },
		{ "BALLAST_AZURE_SHARED_KEY", "c2ltdWxhdGlvbg==" },
	};

	for (size_t i = 0; i < sizeof VALUES / sizeof VALUES[0]; i++)
		if (setenv(VALUES[i][0], VALUES[i][1], 1) != 0)
			return error_set(err, ERROR_NO_MEMORY, "no memory for the environment");
	return true;
}

bool sim_prepare(struct error *err)
{
	return tls_hooks_install(err) && make_room_for_keys(err) && set_environment(err);
}
