// Whether an image's list of parts is a sound SPDX 2.3 document, names what the lock has and no other, and says the truth of the image.
//
//   node sbom.js IMAGE-FOLDER VENDOR.LOCK ARCH
'use strict';

const assert = require('assert').strict;
const { createHash } = require('crypto');
const fs = require('fs');

const [image, lockFile, arch] = process.argv.slice(2);
const sbom = JSON.parse(fs.readFileSync(`${image}/usr/share/doc/ballast/sbom.spdx.json`));
const lock = fs.readFileSync(lockFile, 'utf8').split('\n').filter((l) => l !== '' && !l.startsWith('#')).map((l) => l.split(/\s+/))
	.filter(([, , a]) => a === 'any' || a === arch).map(([name, , , , , debian, versions, , , hash]) => ({ name, debian, versions, hash }));

// Required by the schema (schemas/spdx-schema.json of SPDX 2.3) and the specification, clauses 6, 7 and 11.
assert.equal(sbom.spdxVersion, 'SPDX-2.3');
assert.equal(sbom.dataLicense, 'CC0-1.0');
assert.equal(sbom.SPDXID, 'SPDXRef-DOCUMENT');
assert.ok(sbom.name);
assert.match(sbom.documentNamespace, /^https:\/\/[^#\s]+$/);
assert.match(sbom.creationInfo.created, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
assert.ok(sbom.creationInfo.creators.length > 0);
for (const creator of sbom.creationInfo.creators)
	assert.match(creator, /^(Tool|Organization|Person): /);

const ids = new Set(['SPDXRef-DOCUMENT']);
const LICENSES = ['Apache-2.0', 'Apache-2.0 OR GPL-2.0-or-later', 'MIT', 'MPL-2.0', 'Zlib'];

for (const part of sbom.packages) {
	assert.match(part.SPDXID, /^SPDXRef-[a-zA-Z0-9.-]+$/);
	assert.ok(!ids.has(part.SPDXID), `${part.SPDXID} twice`);
	ids.add(part.SPDXID);
	for (const key of ['name', 'downloadLocation', 'versionInfo', 'supplier', 'copyrightText'])
		assert.ok(part[key], `${part.name} lacks ${key}`);
	assert.equal(part.filesAnalyzed, false); // else a verification code is required
	assert.ok(LICENSES.includes(part.licenseConcluded) && LICENSES.includes(part.licenseDeclared), part.name);
	for (const { algorithm, checksumValue } of part.checksums || []) {
		assert.equal(algorithm, 'SHA256');
		assert.match(checksumValue, /^[0-9a-f]{64}$/);
	}
	for (const { referenceCategory, referenceType, referenceLocator } of part.externalRefs || []) {
		assert.equal(`${referenceCategory} ${referenceType}`, 'PACKAGE-MANAGER purl');
		assert.match(referenceLocator, /^pkg:deb\/debian\/[a-z0-9.+-]+@[\w.~%-]+$/);
	}
}
for (const { spdxElementId, relatedSpdxElement, relationshipType } of sbom.relationships) {
	assert.ok(ids.has(spdxElementId) && ids.has(relatedSpdxElement));
	assert.ok(['DESCRIBES', 'STATIC_LINK', 'RUNTIME_DEPENDENCY_OF'].includes(relationshipType));
}
for (const id of ids)
	assert.ok(sbom.relationships.some((r) => r.spdxElementId === id || r.relatedSpdxElement === id), `${id} is related to nothing`);

// The truth of it.
const certificates = sbom.packages.find((p) => p.name === 'ca-certificates');
const linked = sbom.packages.filter((p) => !['ballast', 'ca-certificates'].includes(p.name));

assert.deepEqual(linked.map((p) => p.name).sort(), [...new Set(lock.map((row) => row.name))].sort());
for (const { name, comment, versionInfo, externalRefs: [{ referenceLocator }] } of linked) {
	const row = lock.find((r) => r.name === name && comment.includes(r.hash));

	assert.ok(row, `${name}: the lock has no such contents`);
	assert.ok(row.versions.includes(versionInfo), `${name} ${versionInfo}: the lock says ${row.versions}`);
	assert.equal(referenceLocator, `pkg:deb/debian/${row.debian}@${versionInfo}`);
}
assert.equal(certificates.checksums[0].checksumValue,
	createHash('sha256').update(fs.readFileSync(`${image}/etc/ssl/certs/ca-certificates.crt`)).digest('hex'));
console.log(`list of parts: ${sbom.packages.map((p) => `${p.name} ${p.versionInfo}`).join(', ')}`);
