/*
 * The innermost texts end up in metric labels and must not name peers; those that dashboards know are Go's (spec
 * reporting H4).
 */
#include <mbedtls/cipher.h>
#include <mbedtls/ecp.h>
#include <mbedtls/error.h>
#include <mbedtls/md.h>
#include <mbedtls/pem.h>
#include <stdio.h>
#include <string.h>

#include "net/tls_internal.h"

static const uint32_t WEAK = MBEDTLS_X509_BADCERT_BAD_MD | MBEDTLS_X509_BADCERT_BAD_PK | MBEDTLS_X509_BADCERT_BAD_KEY;
static const uint32_t WRONG_USE =
	MBEDTLS_X509_BADCERT_KEY_USAGE | MBEDTLS_X509_BADCERT_EXT_KEY_USAGE | MBEDTLS_X509_BADCERT_NS_CERT_TYPE;

static const char NOT_IN_TIME[] = "x509: certificate has expired or is not yet valid";
static const char WRONG_NAME[] = "x509: certificate is not valid for the host name";
static const char UNKNOWN_AUTHORITY[] = "x509: certificate signed by unknown authority";

static bool say(struct error *err, const char *peer, const char *sentence, const char *root)
{
	error_set(err, ERROR_REFUSED, "%s", root);
	return error_wrap(err, "certificate of %s %s", peer, sentence);
}

/* In the order in which Go checks. */
bool tls_error_set_verdict(struct error *err, const char *peer, const struct tls_verdict *verdict)
{
	uint32_t own = verdict->own_flags;
	uint32_t chain = verdict->chain_flags;

	if ((own & MBEDTLS_X509_BADCERT_EXPIRED) != 0)
		return say(err, peer, "has expired", NOT_IN_TIME);
	if ((own & MBEDTLS_X509_BADCERT_FUTURE) != 0)
		return say(err, peer, "isn't valid yet", NOT_IN_TIME);
	if ((own & MBEDTLS_X509_BADCERT_CN_MISMATCH) != 0 && verdict->has_no_names && !verdict->is_address)
		return say(err, peer, "has no subject alternative names",
		           "x509: certificate relies on legacy Common Name field, use SANs instead");
	if ((own & MBEDTLS_X509_BADCERT_CN_MISMATCH) != 0)
		return say(err, peer,
		           verdict->is_address ? "isn't valid for that address" : "isn't valid for that name",
		           WRONG_NAME);
	if ((chain & MBEDTLS_X509_BADCERT_NOT_TRUSTED) != 0)
		return say(err, peer,
		           verdict->self_signed ? "is self-signed and not trusted"
		                                : "is signed by an unknown authority",
		           UNKNOWN_AUTHORITY);
	if ((chain & (MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE)) != 0)
		return say(err, peer, "has an issuer that has expired or isn't valid yet", NOT_IN_TIME);
	if ((chain & WEAK) != 0)
		return say(err, peer, "or of an issuer has too weak a key or signature",
		           "x509: certificate uses weak cryptography");
	if ((chain & WRONG_USE) != 0)
		return say(err, peer, "isn't meant for this use",
		           "x509: certificate specifies an incompatible key usage");
	error_set(err, ERROR_REFUSED, "x509: certificate is not acceptable");
	return error_wrap(err, "certificate of %s fails verification (0x%x)", peer, (unsigned)(own | chain));
}

/* A code is the sum of a module's (high bits) and, perhaps, of one of a module below (low bits; mbedtls/error.h). */
bool tls_error_is_memory(int code)
{
	static const int HIGH[] = { MBEDTLS_ERR_SSL_ALLOC_FAILED,   MBEDTLS_ERR_X509_ALLOC_FAILED,
		                    MBEDTLS_ERR_PK_ALLOC_FAILED,    MBEDTLS_ERR_PEM_ALLOC_FAILED,
		                    MBEDTLS_ERR_ECP_ALLOC_FAILED,   MBEDTLS_ERR_MD_ALLOC_FAILED,
		                    MBEDTLS_ERR_CIPHER_ALLOC_FAILED };
	const int low = -(-code & 0x7f);

	for (size_t i = 0; i < sizeof HIGH / sizeof HIGH[0]; i++)
		if (code - low == HIGH[i])
			return true;
	return low == MBEDTLS_ERR_MPI_ALLOC_FAILED || low == MBEDTLS_ERR_ASN1_ALLOC_FAILED;
}

bool tls_error_set_code(struct error *err, int code, const char *what)
{
	char text[160];

	if (tls_error_is_memory(code))
		return error_set(err, ERROR_NO_MEMORY, "%s: no memory", what);
	mbedtls_strerror(code, text, sizeof text);
	error_set(err, ERROR_SYSTEM, "%s", text);
	return error_wrap(err, "%s", what);
}

bool tls_error_set_alert(struct error *err, unsigned alert)
{
	static const char *const NAMES[] = {
		[10] = "unexpected message",
		[20] = "bad record MAC",
		[22] = "record overflow",
		[40] = "handshake failure",
		[42] = "bad certificate",
		[43] = "unsupported certificate",
		[44] = "revoked certificate",
		[45] = "expired certificate",
		[46] = "unknown certificate",
		[47] = "illegal parameter",
		[48] = "unknown certificate authority",
		[49] = "access denied",
		[50] = "error decoding message",
		[51] = "error decrypting message",
		[70] = "protocol version not supported",
		[71] = "insufficient security level",
		[80] = "internal error",
		[86] = "inappropriate fallback",
		[90] = "user canceled",
		[109] = "missing extension",
		[110] = "unsupported extension",
		[112] = "unrecognized name",
		[113] = "bad certificate status response",
		[116] = "certificate required",
		[120] = "no application protocol",
	};

	if (alert < sizeof NAMES / sizeof NAMES[0] && NAMES[alert] != NULL)
		return error_set(err, ERROR_REFUSED, "remote error: tls: %s", NAMES[alert]);
	return error_set(err, ERROR_REFUSED, "remote error: tls: alert %u", alert);
}
