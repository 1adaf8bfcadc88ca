'use strict';
// For the tests that send events to servers others wrote: runs report_driver, and says what came of it.

const assert = require('assert');
const { spawn } = require('child_process');
const fs = require('fs');
const http = require('http');
const path = require('path');

exports.npm = (...parts) => path.join(__dirname, '..', 'npm', 'node_modules', ...parts);

exports.sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

exports.listen = (server) =>
	new Promise((resolve, reject) => {
		server.once('error', reject);
		server.listen(0, '127.0.0.1', () => resolve(server.address().port));
	});

exports.readAll = async (stream) => {
	const parts = [];
	for await (const part of stream) parts.push(part);
	return Buffer.concat(parts);
};

// Answers with {status, headers, body}.
exports.request = (options, body) =>
	new Promise((resolve, reject) => {
		const request = http.request({ host: '127.0.0.1', ...options }, async (response) => {
			resolve({ status: response.statusCode, headers: response.headers, body: await exports.readAll(response) });
		});
		request.once('error', reject);
		request.end(body);
	});

exports.events = (first, count) => {
	const list = [];
	for (let n = first; n < first + count; n++) {
		list.push(JSON.stringify({ idempotency_key: `2025-03-07T09:05:04Z-host-${n}/1000`, metric: 'effective_compute_seconds', value: n }));
	}
	return list;
};

// Starts the driver. `end` closes its input and waits for it to be over.
exports.drive = (args, environment) => {
	const clean = {};
	for (const [name, value] of Object.entries(process.env)) if (!/^(AWS|AZURE|BALLAST_AZURE)_/.test(name)) clean[name] = value;
	const child = spawn(path.join(process.env.BUILD_DIR, 'tests', 'report_driver'), args, {
		env: { ...clean, AWS_EC2_METADATA_DISABLED: 'true', ...environment },
		stdio: ['pipe', 'pipe', 'pipe'],
	});
	const driver = { child, out: '', log: '' };
	const over = new Promise((resolve) => child.once('close', resolve));
	process.once('exit', () => child.kill('SIGKILL'));
	child.stdout.on('data', (data) => (driver.out += data));
	child.stderr.on('data', (data) => (driver.log += data));
	driver.submit = (list) => child.stdin.write(list.map((event) => event + '\n').join(''));
	driver.end = async () => {
		child.stdin.end();
		driver.status = await over;
		return driver;
	};
	driver.errors = () => driver.out.split('\n').filter((line) => line.includes(' error '));
	driver.dropped = () => driver.out.split('\n').filter((line) => line.includes(' dropped '));
	return driver;
};

exports.run = async (args, environment, list) => {
	const driver = exports.drive(args, environment);
	driver.submit(list);
	return driver.end();
};

// Everything arrived, and nothing went wrong on the way.
exports.assertClean = (driver) => {
	assert.strictEqual(driver.status, 0, driver.log);
	assert.deepStrictEqual(driver.errors(), [], driver.log);
	assert.deepStrictEqual(driver.dropped(), [], driver.log);
};

// No secret may stand in what the driver said.
exports.assertHides = (driver, ...secrets) => {
	for (const secret of secrets) assert.ok(!(driver.log + driver.out).includes(secret), `"${secret}" stands in the log`);
};

exports.main = (test) => {
	const guard = setTimeout(() => {
		console.error('not done within 100 s');
		process.exit(1);
	}, 100000);
	test().then(
		() => {
			clearTimeout(guard);
			process.exit(0);
		},
		(error) => {
			console.error(error);
			process.exit(1);
		},
	);
};
