#!/bin/sh
# Prints what the image is made of, as an SPDX 2.3 document in JSON: the locked third-party sources in vendor/.src, by content, and
# the certificates in CERTIFICATES, which are those of this machine's package ca-certificates.
#
#   usage: deploy/sbom.sh ARCH CERTIFICATES
set -eu
usage() {
	sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' "$0"
	exit "$1"
}
case ${1:-} in -h | --help) usage 0 ;; esac
[ $# = 2 ] || usage 2 >&2
certificates=$(sha256sum <"$2" | cut -d' ' -f1)
cd "$(dirname "$0")/.."
machine=$(dpkg --print-architecture)
arch=$1
sources=vendor/.src
[ "$arch" = "$machine" ] || sources=vendor/.src-$arch
version=$(sed -n 's/^project(ballast VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)

# "name hash" of what is there, as vendor/fetch computes it.
present=$(for folder in "$sources"/*/; do
	printf '%s %s\n' "$(basename "$folder")" \
		"$(cd "$folder" && find . -type f | LC_ALL=C sort | xargs -d '\n' sha256sum | sha256sum | cut -d' ' -f1)"
done)
certificates_version=$(dpkg-query -W -f '${Version}' ca-certificates)
# A document's name in the world has to be its own: no other contents may have it.
digest=$(printf '%s %s %s\n' "$version" "$arch" "$present" "$certificates" | sha256sum | cut -c1-16)

awk -v version="$version" -v arch="$arch" -v present="$present" -v digest="$digest" -v certificates="$certificates" \
	-v certificates_version="$certificates_version" '
	function license_of(name) {
		if (name == "mbedtls") return "Apache-2.0 OR GPL-2.0-or-later"
		if (name == "zlib") return "Zlib"
		return "MIT"
	}
	function package(id, name, version, license, extra) {
		return "  {\"SPDXID\":\"SPDXRef-" id "\",\"name\":\"" name "\",\"versionInfo\":\"" version "\",\"supplier\":\"NOASSERTION\"," \
			"\"downloadLocation\":\"NOASSERTION\",\"filesAnalyzed\":false,\"licenseConcluded\":\"" license "\",\"licenseDeclared\":\"" license "\"," \
			"\"copyrightText\":\"NOASSERTION\"" extra "}"
	}
	BEGIN {
		lines = split(present, line, "\n")
		for (i = 1; i <= lines; i++) {
			split(line[i], word, " ")
			hash[word[1]] = word[2]
		}
		count = 0
	}
	!/^#/ && NF == 10 && ($3 == "any" || $3 == arch) && ($1 in hash) && hash[$1] == $10 {
		name = $1
		locked = $7
		sub(/[-+]?\*$/, "", locked)
		sub(/[-+]$/, "", locked)
		# An epoch, and an upstream version in disguise: 1:1.3.dfsg+really1.3.2
		sub(/^[0-9]+:/, "", locked)
		sub(/.*really/, "", locked)
		packages[++count] = package(name, name, locked, license_of(name), \
			",\"comment\":\"SHA-256 over the sorted SHA-256 list of its files: " $10 "\"," \
			"\"externalRefs\":[{\"referenceCategory\":\"PACKAGE-MANAGER\",\"referenceType\":\"purl\"," \
			"\"referenceLocator\":\"pkg:deb/debian/" $6 "@" locked "\"}]")
		relations[count] = "  {\"spdxElementId\":\"SPDXRef-ballast\",\"relationshipType\":\"STATIC_LINK\",\"relatedSpdxElement\":\"SPDXRef-" name "\"}"
		delete hash[name]
	}
	END {
		encoded = certificates_version
		gsub(/\+/, "%2B", encoded)
		package_ca = package("ca-certificates", "ca-certificates", certificates_version, "MPL-2.0", \
			",\"checksums\":[{\"algorithm\":\"SHA256\",\"checksumValue\":\"" certificates "\"}]," \
			"\"comment\":\"The checksum is that of etc/ssl/certs/ca-certificates.crt\"," \
			"\"externalRefs\":[{\"referenceCategory\":\"PACKAGE-MANAGER\",\"referenceType\":\"purl\"," \
			"\"referenceLocator\":\"pkg:deb/debian/ca-certificates@" encoded "\"}]")
		for (name in hash) {
			print "sbom.sh: " name " in vendor is none of the locked versions" > "/dev/stderr"
			exit 1
		}
		print "{\"spdxVersion\":\"SPDX-2.3\",\"dataLicense\":\"CC0-1.0\",\"SPDXID\":\"SPDXRef-DOCUMENT\","
		print " \"name\":\"ballast-" version "-" arch "\",\"documentNamespace\":\"https://spdx.org/spdxdocs/ballast-" version "-" arch "-" digest "\","
		print " \"creationInfo\":{\"created\":\"1970-01-01T00:00:00Z\",\"creators\":[\"Tool: deploy/sbom.sh\"]},"
		print " \"packages\":["
		print package("ballast", "ballast", version, "Apache-2.0", ",\"primaryPackagePurpose\":\"APPLICATION\"") ","
		for (i = 1; i <= count; i++)
			print packages[i] ","
		print package_ca
		print " ],"
		print " \"relationships\":["
		print "  {\"spdxElementId\":\"SPDXRef-DOCUMENT\",\"relationshipType\":\"DESCRIBES\",\"relatedSpdxElement\":\"SPDXRef-ballast\"},"
		for (i = 1; i <= count; i++)
			print relations[i] ","
		print "  {\"spdxElementId\":\"SPDXRef-ca-certificates\",\"relationshipType\":\"RUNTIME_DEPENDENCY_OF\",\"relatedSpdxElement\":\"SPDXRef-ballast\"}"
		print " ]}"
	}' vendor/vendor.lock
