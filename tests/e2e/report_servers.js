'use strict';
// Servers that others wrote, for the tests of what sends events: Azurite for blobs, s3rver for objects. Each is started on
// loopback by the test that uses it, keeps nothing, and is asked here what it holds.

const assert = require('assert');
const crypto = require('crypto');
const { spawn } = require('child_process');
const path = require('path');
const zlib = require('zlib');
const h = require('./report_harness.js');

// ---- Azurite ----

const ACCOUNT = 'devstoreaccount1';
const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

const startAzurite = () =>
	new Promise((resolve, reject) => {
		const child = spawn(
			process.execPath,
			[h.npm('azurite', 'dist', 'src', 'blob', 'main.js'), '--blobHost', '127.0.0.1', '--blobPort', '0',
				'--inMemoryPersistence', '--disableTelemetry', '--skipApiVersionCheck', '--silent'],
			{ cwd: process.env.WORK, stdio: ['ignore', 'pipe', 'inherit'] },
		);
		let said = '';
		process.once('exit', () => child.kill('SIGKILL'));
		child.once('exit', (status) => reject(new Error(`azurite ended with ${status}: ${said}`)));
		child.stdout.on('data', (data) => {
			said += data;
			const found = /successfully listens on http:\/\/127\.0\.0\.1:(\d+)/.exec(said);
			if (found) resolve({ child, port: Number(found[1]) });
		});
	});

// A signer of our own for the questions of this test; Azurite judges both it and the program.
const ask = (port, method, target, query = {}) => {
	const date = new Date().toUTCString();
	const headers = { 'x-ms-date': date, 'x-ms-version': '2023-11-03', ...(method === 'PUT' ? { 'content-length': 0 } : {}) };
	const names = Object.keys(query).sort();
	const toSign = `${method}\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:${date}\nx-ms-version:2023-11-03\n/${ACCOUNT}${target}` +
		names.map((name) => `\n${name}:${query[name]}`).join('');
	const signature = crypto.createHmac('sha256', Buffer.from(KEY, 'base64')).update(toSign).digest('base64');
	headers.authorization = `SharedKey ${ACCOUNT}:${signature}`;
	const search = names.map((name) => `${name}=${encodeURIComponent(query[name])}`).join('&');
	return h.request({ port, method, path: target + (search ? '?' + search : ''), headers });
};

const readContainer = async (port, container) => {
	const list = await ask(port, 'GET', `/${ACCOUNT}/${container}`, { comp: 'list', restype: 'container' });
	assert.strictEqual(list.status, 200, String(list.body));
	const blobs = [];
	for (const [, name] of String(list.body).matchAll(/<Name>([^<]*)<\/Name>/g)) {
		const blob = await ask(port, 'GET', `/${ACCOUNT}/${container}/${name}`);
		assert.strictEqual(blob.status, 200);
		assert.strictEqual(blob.headers['content-type'], 'application/octet-stream');
		assert.strictEqual(blob.headers['content-encoding'], undefined);
		assert.strictEqual(blob.headers['x-ms-blob-type'], 'BlockBlob');
		const text = String(zlib.gunzipSync(blob.body));
		assert.ok(text.endsWith('\n'));
		blobs.push({ name, lines: text.slice(0, -1).split('\n') });
	}
	return blobs;
};

// ---- s3rver ----

const startS3 = async () => {
	const S3rver = require(h.npm('s3rver'));
	const server = new S3rver({
		address: '127.0.0.1', port: 0, silent: true, directory: path.join(process.env.WORK, 's3'),
		configureBuckets: [{ name: 'metrics' }],
	});
	const { port } = await server.run();
	return { server, port };
};

const readBucket = async (port, prefix) => {
	const list = await h.request({ port, path: `/metrics?prefix=${encodeURIComponent(prefix)}` });
	const objects = [];
	for (const [, key] of String(list.body).matchAll(/<Key>([^<]*)<\/Key>/g)) {
		const object = await h.request({ port, path: '/metrics/' + key.split('/').map(encodeURIComponent).join('/') });
		assert.strictEqual(object.status, 200, key);
		assert.strictEqual(object.headers['content-type'], 'application/octet-stream');
		objects.push({ key, lines: String(zlib.gunzipSync(object.body)).slice(0, -1).split('\n') });
	}
	return objects;
};

module.exports = { ACCOUNT, KEY, ask, readBucket, readContainer, startAzurite, startS3 };
