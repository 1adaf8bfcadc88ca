#include "net/tls_ca.h"

#include <mbedtls/oid.h>
#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/limits.h"
#include "net/tls_hooks.h"
#include "net/tls_internal.h"

enum {
	PEM_BYTES = 16 * 1024,
	SERIAL_BYTES = 16,
	COMMON_NAME_BYTES = 64,
	HOUR_S = 3600,
	YEAR_S = 365 * 24 * HOUR_S,
	CA_YEARS = 10,
};

struct tls_ca {
	struct loop *loop;
	mbedtls_pk_context key;
	char subject[COMMON_NAME_BYTES + 4];
	struct buffer certificate_pem;
};

/* What goes into one certificate; the names in the library's form. */
struct draft {
	char subject[COMMON_NAME_BYTES + 4];
	int64_t not_before_s;
	int64_t not_after_s;
	bool is_ca;
	size_t name_count;
	mbedtls_x509_san_list names[TLS_CA_NAMES];
	unsigned char name_bytes[TLS_CA_NAMES][NET_HOST_BYTES];
};

/* ---- drafts ---- */

static bool set_subject(struct draft *draft, const char *common_name, struct error *err)
{
	size_t length = strlen(common_name);

	if (length == 0 || length > COMMON_NAME_BYTES || strpbrk(common_name, ",=+\"\\<>;#") != NULL)
		return error_set(err, ERROR_SYNTAX, "\"%s\" can't be the common name of a certificate", common_name);
	snprintf(draft->subject, sizeof draft->subject, "CN=%s", common_name);
	return true;
}

static bool add_name(struct draft *draft, int type, const void *data, size_t length, struct error *err)
{
	size_t at = draft->name_count;

	if (at >= TLS_CA_NAMES || length == 0 || length >= NET_HOST_BYTES)
		return error_set(err, ERROR_LIMIT, "a certificate holds at most %d names of at most %d bytes",
		                 TLS_CA_NAMES, NET_HOST_BYTES - 1);
	memcpy(draft->name_bytes[at], data, length);
	draft->names[at].node.type = type;
	draft->names[at].node.san.unstructured_name.p = draft->name_bytes[at];
	draft->names[at].node.san.unstructured_name.len = length;
	if (at > 0)
		draft->names[at - 1].next = &draft->names[at];
	draft->name_count++;
	return true;
}

static bool fill_draft(struct draft *draft, int64_t now_s, const struct tls_ca_request *request, struct error *err)
{
	*draft = (struct draft){
		.not_before_s = request->not_before_s != 0 ? request->not_before_s : now_s - HOUR_S,
		.not_after_s = request->not_after_s != 0 ? request->not_after_s : now_s + YEAR_S,
	};
	if (!set_subject(draft, request->common_name, err))
		return false;
	for (size_t i = 0; i < request->name_count; i++)
		if (!add_name(draft, MBEDTLS_X509_SAN_DNS_NAME, request->names[i], strlen(request->names[i]), err))
			return false;
	for (size_t i = 0; i < request->address_count; i++)
		if (!add_name(draft, MBEDTLS_X509_SAN_IP_ADDRESS, request->addresses[i].bytes,
		              request->addresses[i].is_ipv6 ? 16 : 4, err))
			return false;
	return true;
}

/* ---- writing ---- */

static bool make_key(mbedtls_pk_context *key, struct error *err)
{
	int result = mbedtls_pk_setup(key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));

	if (result == 0)
		result = mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(*key), tls_hooks_random, NULL);
	return result == 0 || tls_error_set_code(err, result, "making a key");
}

static bool write_key(mbedtls_pk_context *key, struct buffer *pem, struct error *err)
{
	unsigned char text[PEM_BYTES];
	int result = mbedtls_pk_write_key_pem(key, text, sizeof text);

	if (result != 0)
		return tls_error_set_code(err, result, "writing a key");
	buffer_append_text(pem, (const char *)text);
	mbedtls_platform_zeroize(text, sizeof text);
	return buffer_check(pem, "a key", err);
}

static void print_time(int64_t seconds, char text[16])
{
	time_t time = (time_t)seconds;
	struct tm parts = { 0 };

	gmtime_r(&time, &parts);
	strftime(text, 16, "%Y%m%d%H%M%S", &parts);
}

static int set_time_and_serial(mbedtls_x509write_cert *certificate, const struct draft *draft)
{
	unsigned char serial[SERIAL_BYTES];
	char before[16], after[16];
	int result = tls_hooks_random(NULL, serial, sizeof serial);

	if (result != 0)
		return result;
	serial[0] = (unsigned char)((serial[0] & 0x3f) | 0x40); /* positive, and without a leading zero */
	result = mbedtls_x509write_crt_set_serial_raw(certificate, serial, sizeof serial);
	if (result != 0)
		return result;
	print_time(draft->not_before_s, before);
	print_time(draft->not_after_s, after);
	return mbedtls_x509write_crt_set_validity(certificate, before, after);
}

/* Good for servers and clients (RFC 5280 section 4.2.1.12). */
static int set_leaf_use(mbedtls_x509write_cert *certificate, struct draft *draft)
{
	mbedtls_asn1_sequence client = { .buf = { .tag = MBEDTLS_ASN1_OID } };
	mbedtls_asn1_sequence server = { .buf = { .tag = MBEDTLS_ASN1_OID }, .next = &client };
	unsigned char server_oid[] = MBEDTLS_OID_SERVER_AUTH;
	unsigned char client_oid[] = MBEDTLS_OID_CLIENT_AUTH;

	server.buf.p = server_oid;
	server.buf.len = sizeof server_oid - 1;
	client.buf.p = client_oid;
	client.buf.len = sizeof client_oid - 1;

	int result = mbedtls_x509write_crt_set_key_usage(certificate, MBEDTLS_X509_KU_DIGITAL_SIGNATURE);

	if (result == 0)
		result = mbedtls_x509write_crt_set_ext_key_usage(certificate, &server);
	if (result == 0 && draft->name_count > 0)
		result = mbedtls_x509write_crt_set_subject_alternative_name(certificate, &draft->names[0]);
	return result;
}

static int set_extensions(mbedtls_x509write_cert *certificate, struct draft *draft)
{
	int result = mbedtls_x509write_crt_set_basic_constraints(certificate, draft->is_ca, draft->is_ca ? 0 : -1);

	if (result == 0)
		result = mbedtls_x509write_crt_set_subject_key_identifier(certificate);
	if (result == 0)
		result = mbedtls_x509write_crt_set_authority_key_identifier(certificate);
	if (result != 0)
		return result;
	if (draft->is_ca)
		return mbedtls_x509write_crt_set_key_usage(certificate,
		                                           MBEDTLS_X509_KU_KEY_CERT_SIGN | MBEDTLS_X509_KU_CRL_SIGN);
	return set_leaf_use(certificate, draft);
}

/* Signs the draft, for the owner of `key`, in the name of `issuer`. */
static bool write_certificate(struct draft *draft, mbedtls_pk_context *key, const char *issuer,
                              mbedtls_pk_context *issuer_key, struct buffer *pem, struct error *err)
{
	mbedtls_x509write_cert certificate;
	unsigned char text[PEM_BYTES];

	mbedtls_x509write_crt_init(&certificate);
	mbedtls_x509write_crt_set_md_alg(&certificate, MBEDTLS_MD_SHA256);
	mbedtls_x509write_crt_set_subject_key(&certificate, key);
	mbedtls_x509write_crt_set_issuer_key(&certificate, issuer_key);

	int result = mbedtls_x509write_crt_set_subject_name(&certificate, draft->subject);

	if (result == 0)
		result = mbedtls_x509write_crt_set_issuer_name(&certificate, issuer);
	if (result == 0)
		result = set_time_and_serial(&certificate, draft);
	if (result == 0)
		result = set_extensions(&certificate, draft);
	if (result == 0)
		result = mbedtls_x509write_crt_pem(&certificate, text, sizeof text, tls_hooks_random, NULL);
	mbedtls_x509write_crt_free(&certificate);
	if (result != 0)
		return tls_error_set_code(err, result, "writing a certificate");
	buffer_append_text(pem, (const char *)text);
	return buffer_check(pem, "a certificate", err);
}

/* ---- the authority ---- */

static bool fill_ca(struct tls_ca *ca, const char *common_name, struct error *err)
{
	struct draft draft;
	int64_t now_s = loop_wall_ns(ca->loop) / NS_PER_S;
	struct tls_ca_request request = { .common_name = common_name,
		                          .not_after_s = now_s + (int64_t)CA_YEARS * YEAR_S };

	if (!tls_hooks_install(err) || !fill_draft(&draft, now_s, &request, err) || !make_key(&ca->key, err))
		return false;
	draft.is_ca = true;
	memcpy(ca->subject, draft.subject, sizeof ca->subject);
	return write_certificate(&draft, &ca->key, ca->subject, &ca->key, &ca->certificate_pem, err);
}

struct tls_ca *tls_ca_create(struct loop *loop, const char *common_name, struct error *err)
{
	struct loop *before = tls_hooks_enter(loop);
	struct tls_ca *ca = memory_allocate(sizeof *ca);

	if (ca == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a certificate authority");
		goto out;
	}
	ca->loop = loop;
	mbedtls_pk_init(&ca->key);
	buffer_init(&ca->certificate_pem, PEM_BYTES);
	if (!fill_ca(ca, common_name, err)) {
		tls_ca_destroy(ca);
		ca = NULL;
	}
out:
	tls_hooks_leave(before);
	return ca;
}

void tls_ca_destroy(struct tls_ca *ca)
{
	if (ca == NULL)
		return;
	mbedtls_pk_free(&ca->key);
	buffer_destroy(&ca->certificate_pem);
	memory_release(ca);
}

struct slice tls_ca_certificate_pem(const struct tls_ca *ca)
{
	return buffer_slice(&ca->certificate_pem);
}

/* ca is NULL: self-signed. */
static bool issue(struct loop *loop, struct tls_ca *ca, const struct tls_ca_request *request,
                  struct buffer *ret_certificate_pem, struct buffer *ret_key_pem, struct error *err)
{
	struct loop *before = tls_hooks_enter(loop);
	struct buffer certificate, key_pem;
	mbedtls_pk_context key;
	struct draft draft;

	mbedtls_pk_init(&key);
	buffer_init(&certificate, PEM_BYTES);
	buffer_init(&key_pem, PEM_BYTES);

	bool done = tls_hooks_install(err) && fill_draft(&draft, loop_wall_ns(loop) / NS_PER_S, request, err) &&
	            make_key(&key, err) &&
	            write_certificate(&draft, &key, ca != NULL ? ca->subject : draft.subject,
	                              ca != NULL ? &ca->key : &key, &certificate, err) &&
	            write_key(&key, &key_pem, err);

	mbedtls_pk_free(&key);
	tls_hooks_leave(before);
	if (!done) {
		buffer_destroy(&certificate);
		buffer_destroy(&key_pem);
		return false;
	}
	*ret_certificate_pem = certificate;
	*ret_key_pem = key_pem;
	return true;
}

bool tls_ca_issue(struct tls_ca *ca, const struct tls_ca_request *request, struct buffer *ret_certificate_pem,
                  struct buffer *ret_key_pem, struct error *err)
{
	return issue(ca->loop, ca, request, ret_certificate_pem, ret_key_pem, err);
}

bool tls_ca_self_sign(struct loop *loop, const struct tls_ca_request *request, struct buffer *ret_certificate_pem,
                      struct buffer *ret_key_pem, struct error *err)
{
	return issue(loop, NULL, request, ret_certificate_pem, ret_key_pem, err);
}
