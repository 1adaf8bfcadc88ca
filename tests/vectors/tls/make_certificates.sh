#!/bin/sh
# Makes the certificates of tests/vectors/tls/certificates.txt in a folder: NAME.pem (with its intermediates), NAME.key,
# root.pem. With openssl, since our own CA makes only good ones.
#
#   usage: make_certificates.sh FOLDER
set -eu
exec 2>&1
cd "$1"

cat >ca.cnf <<'CONFIG'
[ca]
default_ca = authority
[authority]
database = ./index
serial = ./serial
new_certs_dir = .
default_md = sha256
policy = anything
unique_subject = no
email_in_dn = no
[anything]
commonName = supplied
[req]
distinguished_name = name
prompt = no
[name]
CN = unused
CONFIG
: >index
echo 1000 >serial

# key NAME [algorithm options…]
key() {
	name=$1
	shift
	[ $# -gt 0 ] || set -- -algorithm EC -pkeyopt ec_paramgen_curve:P-256
	openssl genpkey "$@" -out "$name.key"
}

# sign NAME COMMON_NAME ISSUER EXTENSIONS [openssl ca option…]: ISSUER "self": by its own key. EXTENSIONS: lines,
# joined by ; (a semicolon of their own is written ~)
sign() {
	name=$1 common=$2 issuer=$3
	printf '[x]\n%s\n' "$4" | tr ';~' '\n;' >"$name.ext"
	shift 4
	openssl req -new -config ca.cnf -key "$name.key" -subj "/CN=$common" -out "$name.csr"
	case " $* " in *" -startdate "*) ;; *) set -- "$@" -startdate 20200101000000Z -enddate 21200101000000Z ;; esac
	if [ "$issuer" = self ]; then
		set -- "$@" -selfsign -keyfile "$name.key"
	else
		set -- "$@" -cert "$issuer.crt" -keyfile "$issuer.key"
	fi
	openssl ca -batch -notext -config ca.cnf -in "$name.csr" -out "$name.crt" -extfile "$name.ext" -extensions x "$@"
}

# leaf NAME "ISSUER…" EXTENSIONS [openssl ca option…]: the first issuer signs; those that aren't roots go along.
leaf() {
	leaf=$1 issuers=$2 extensions=$3
	shift 3
	[ -f "$leaf.key" ] || key "$leaf"
	sign "$leaf" "${common_name:-leaf}" "${issuers%% *}" "$extensions" "$@"
	cp "$leaf.crt" "$leaf.pem"
	for issuer in $issuers; do
		case $issuer in self | root | other) ;; *) cat "$issuer.crt" >>"$leaf.pem" ;; esac
	done
}

authority='basicConstraints=critical,CA:TRUE;keyUsage=critical,keyCertSign,cRLSign'
here='subjectAltName=DNS:localhost,IP:127.0.0.1'
plain="basicConstraints=CA:FALSE;keyUsage=critical,digitalSignature"

for name in root other; do
	key $name
	sign $name $name self "$authority"
done
cp root.crt root.pem
# intermediate NAME ISSUER EXTENSIONS [openssl ca option…]
intermediate() {
	intermediate=$1
	shift
	key "$intermediate"
	sign "$intermediate" "$intermediate" "$@"
}
intermediate fine root 'basicConstraints=critical,CA:TRUE,pathlen:0;keyUsage=critical,keyCertSign,cRLSign'
intermediate below_fine fine "$authority"
intermediate not_ca root 'basicConstraints=critical,CA:FALSE;keyUsage=critical,keyCertSign'
intermediate unsaid root 'keyUsage=critical,keyCertSign'
intermediate no_sign root 'basicConstraints=critical,CA:TRUE;keyUsage=critical,digitalSignature'
intermediate constrained root "$authority;nameConstraints=critical,@names;[names];permitted~DNS.1=.allowed.example"
intermediate constrained_loosely root "$authority;nameConstraints=@names;[names];permitted~DNS.1=.allowed.example"
intermediate expired_authority root "$authority" -startdate 20200101000000Z -enddate 20210101000000Z

leaf good root "$plain;$here;extendedKeyUsage=serverAuth,clientAuth"
leaf good_chain fine "$plain;$here"
leaf good_wildcard root "$plain;subjectAltName=DNS:*.example"
leaf expired root "$plain;$here" -startdate 20200101000000Z -enddate 20210101000000Z
leaf not_yet root "$plain;$here" -startdate 21000101000000Z -enddate 21200101000000Z
leaf wrong_name root "$plain;subjectAltName=DNS:other.example"
leaf wrong_address root "$plain;subjectAltName=DNS:localhost,IP:127.0.0.9"
leaf address_as_name root "$plain;subjectAltName=DNS:127.0.0.1"
common_name=localhost leaf common_name_only root "$plain"
leaf self_signed self "$plain;$here"
leaf unknown_authority other "$plain;$here"
common_name=root leaf namesake_authority other "$plain;$here"
leaf usage_encipherment root "basicConstraints=CA:FALSE;keyUsage=critical,dataEncipherment;$here"
leaf usage_signing root "basicConstraints=CA:FALSE;keyUsage=critical,keyCertSign;$here"
leaf purpose_client root "$plain;$here;extendedKeyUsage=clientAuth"
leaf purpose_server root "$plain;$here;extendedKeyUsage=serverAuth"
leaf purpose_code root "$plain;$here;extendedKeyUsage=codeSigning"
leaf under_not_ca not_ca "$plain;$here"
leaf under_unsaid unsaid "$plain;$here"
leaf under_no_sign no_sign "$plain;$here"
leaf path_too_long "below_fine fine" "$plain;$here"
leaf under_expired expired_authority "$plain;$here"
leaf under_constrained constrained "$plain;$here"
leaf under_constrained_loosely constrained_loosely "$plain;$here"
leaf under_leaf good "$plain;$here"
leaf sha1 root "$plain;$here" -md sha1
leaf critical_unknown root "$plain;$here;1.2.3.4=critical,ASN1:UTF8String:x"
key rsa_1024 -algorithm RSA -pkeyopt rsa_keygen_bits:1024
leaf rsa_1024 root "$plain;$here"
key rsa_2048 -algorithm RSA -pkeyopt rsa_keygen_bits:2048
leaf rsa_2048 root "$plain;$here"
leaf forged root "$plain;$here"
# Its signature is that of another certificate.
openssl x509 -in good.crt -outform DER -out good.der
openssl x509 -in forged.crt -outform DER -out forged.der
size=$(wc -c <forged.der)
head -c $((size - 8)) forged.der >bent.der && tail -c 8 good.der >>bent.der
openssl x509 -inform DER -in bent.der -out forged.pem
# Its intermediate stays at home.
leaf no_intermediate fine "$plain;$here"
cp no_intermediate.crt no_intermediate.pem
