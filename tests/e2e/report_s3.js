'use strict';
// Objects in s3rver, behind a proxy that checks each signature with AWS's own signer for JavaScript (s3rver itself checks
// none); over plain HTTP and over TLS, with fixed keys and with those of a container's endpoint.

const assert = require('assert');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const https = require('https');
const path = require('path');
const h = require('./report_harness.js');
const { readBucket, startS3 } = require('./report_servers.js');
const { SignatureV4 } = require(h.npm('@smithy', 'signature-v4'));

const REGION = 'eu-central-1';
const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
// s3rver knows a single account, and believes whoever claims to be it.
const THEIRS = 'AWS4-HMAC-SHA256 Credential=S3RVER/';
const FIXED = { AWS_ACCESS_KEY_ID: KEYS.accessKeyId, AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey };

class Sha256 {
	constructor(secret) {
		this.hash = secret === undefined ? crypto.createHash('sha256') : crypto.createHmac('sha256', secret);
	}
	update(data) {
		this.hash.update(data);
	}
	async digest() {
		return new Uint8Array(this.hash.digest());
	}
}

// What AWS's signer makes of the same request.
const signAnew = async (request, credentials) => {
	const names = /SignedHeaders=([^,]*)/.exec(request.headers.authorization)[1].split(';');
	const [pathname, search] = request.url.split('?');
	const date = request.headers['x-amz-date'].replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z');
	const signer = new SignatureV4({ service: 's3', region: REGION, credentials, sha256: Sha256, uriEscapePath: false, applyChecksum: false });
	const signed = await signer.sign(
		{
			method: request.method,
			protocol: 'http:',
			hostname: request.headers.host,
			path: pathname,
			query: Object.fromEntries(new URLSearchParams(search)),
			headers: Object.fromEntries(names.map((name) => [name, request.headers[name]])),
		},
		{ signingDate: new Date(date) },
	);
	return signed.headers.authorization;
};

// Checks and passes on. `seen` gets each request; `answer`, if set, may answer itself.
const makeProxy = async (target, credentials, tls) => {
	const proxy = { seen: [], answer: undefined };
	const handler = async (request, response) => {
		const body = await h.readAll(request);
		const entry = { method: request.method, url: request.url, headers: request.headers, body };
		try {
			entry.expected = await signAnew(request, credentials());
		} catch (error) {
			entry.expected = String(error);
		}
		proxy.seen.push(entry);
		if (proxy.answer && proxy.answer(request, response)) return;
		const headers = { ...request.headers };
		headers.authorization = headers.authorization.replace(/^AWS4-HMAC-SHA256 Credential=[^/]*\//, THEIRS);
		const passed = http.request(
			{ host: '127.0.0.1', port: target, method: request.method, path: request.url, headers },
			(reply) => {
				response.writeHead(reply.statusCode, reply.headers);
				reply.pipe(response);
			},
		);
		passed.once('error', (error) => response.destroy(error));
		passed.end(body);
	};
	const port = await h.listen(tls ? https.createServer(tls, handler) : http.createServer(handler));
	proxy.url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
	return proxy;
};

const assertSigned = (proxy, payloadHash) => {
	assert.ok(proxy.seen.length > 0);
	for (const request of proxy.seen) {
		assert.strictEqual(request.headers.authorization, request.expected);
		assert.strictEqual(request.headers['x-amz-content-sha256'], payloadHash(request.body));
		assert.strictEqual(request.headers['content-encoding'], undefined);
	}
};

const hex = (body) => crypto.createHash('sha256').update(body).digest('hex');

h.main(async () => {
	const { server, port } = await startS3();
	const proxy = await makeProxy(port, () => KEYS);

	// Three objects; the service is unwell at first, and keeps the key.
	const sent = h.events(1, 25);
	let troubles = 2;
	proxy.answer = (request, response) => {
		if (troubles-- <= 0) return false;
		response.writeHead(503, { 'content-type': 'application/xml' });
		response.end('<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>');
		return true;
	};
	const driver = await h.run(['s3', proxy.url, 'metrics', REGION, 'agent/'], { ...FIXED, DRIVER_TIMEOUT_MS: '20000' }, sent);
	h.assertClean(driver);
	h.assertHides(driver, KEYS.secretAccessKey);
	assert.strictEqual(proxy.seen.length, 5);
	assert.strictEqual(new Set(proxy.seen.slice(0, 3).map((request) => request.url)).size, 1);
	assertSigned(proxy, hex);
	const objects = await readBucket(port, 'agent/');
	assert.strictEqual(objects.length, 3);
	for (const { key } of objects) assert.match(key, /^agent\/year=\d{4}\/month=\d\d\/day=\d\d\/hour=\d\d\/\d\d:\d\d:\d\dZ_[2-9A-HJ-NP-Za-km-z]{13,22}\.ndjson\.gz$/);
	assert.deepStrictEqual(objects.flatMap((object) => object.lines).sort(), [...sent].sort());

	// Keys with everything that has to be escaped; s3rver, which keeps files, has no place for them.
	proxy.answer = (request, response) => response.end();
	proxy.seen.length = 0;
	h.assertClean(await h.run(['s3', proxy.url, 'metrics', REGION, "pré fix+1//(x)*'!&$@=:,~_-."], FIXED, h.events(100, 1)));
	assertSigned(proxy, hex);

	// Over TLS the payload isn't signed; the keys are a container's, and short-lived.
	let fetched = 0;
	const temporary = () => ({ accessKeyId: 'ASIA' + fetched, secretAccessKey: 'secret/' + fetched, sessionToken: 'token+' + fetched });
	const metadata = http.createServer((request, response) => {
		assert.strictEqual(request.headers.authorization, 'who-we-are');
		fetched++;
		const { accessKeyId, secretAccessKey, sessionToken } = temporary();
		response.end(JSON.stringify({
			AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, Token: sessionToken,
			Expiration: new Date(Date.now() + 299000).toISOString(), // always due for renewal
		}));
	});
	const metadataPort = await h.listen(metadata);
	const secure = await makeProxy(port, temporary, {
		key: fs.readFileSync(path.join(process.env.WORK, 'key.pem')), cert: fs.readFileSync(path.join(process.env.WORK, 'cert.pem')),
	});
	const contained = await h.run(['s3', secure.url, 'metrics', REGION, 'contained'], {
		AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${metadataPort}/v1/credentials`,
		AWS_CONTAINER_AUTHORIZATION_TOKEN: 'who-we-are',
		SSL_CERT_FILE: path.join(process.env.WORK, 'cert.pem'),
	}, h.events(200, 25));
	h.assertClean(contained);
	h.assertHides(contained, 'who-we-are', 'secret/', 'token+');
	assert.strictEqual(fetched, 3);
	assertSigned(secure, () => 'UNSIGNED-PAYLOAD');
	for (const request of secure.seen) assert.match(request.headers['x-amz-security-token'], /^token\+\d$/);
	assert.strictEqual((await readBucket(port, 'contained/')).flatMap((object) => object.lines).length, 25);

	// Without trust in the server nothing is sent.
	secure.seen.length = 0;
	const distrusted = await h.run(['s3', secure.url, 'metrics', REGION, 'p'],
		{ ...FIXED, DRIVER_TIMEOUT_MS: '300', DRIVER_GRACE_MS: '900', SSL_CERT_FILE: path.join(process.env.WORK, 'other-cert.pem') }, h.events(300, 1));
	assert.match(distrusted.log, /x509: certificate signed by unknown authority/);
	assert.strictEqual(secure.seen.length, 0);
	assert.deepStrictEqual(distrusted.dropped(), ['s3 dropped 1']);
	await server.close();
});
