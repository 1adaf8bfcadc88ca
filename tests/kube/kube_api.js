// A real API server, as its administrator sees it.
'use strict';

const fs = require('fs');
const https = require('https');
const { spawn } = require('child_process');

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A function call(method, path, body, type) that resolves to the answer's object. folder has pki/ca.crt and tokens/peers.
function connect(folder, apiUrl) {
	const api = new URL(apiUrl);
	const ca = fs.readFileSync(`${folder}/pki/ca.crt`);
	const token = fs.readFileSync(`${folder}/tokens/peers`, 'utf8');

	return (method, where, body, type = 'application/json') => new Promise((resolve, reject) => {
		const text = body === undefined ? '' : JSON.stringify(body);
		const request = https.request({ host: api.hostname, port: api.port, method, path: where, ca, agent: false, timeout: 10000,
			headers: { Authorization: `Bearer ${token}`, 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) } },
			(response) => {
				const parts = [];

				response.on('data', (part) => parts.push(part));
				response.on('end', () => {
					const answer = Buffer.concat(parts).toString();

					if (response.statusCode >= 300)
						reject(new Error(`${method} ${where}: ${response.statusCode} ${answer.slice(0, 300)}`));
					else
						resolve(JSON.parse(answer));
				});
			});

		request.on('timeout', () => request.destroy(new Error('timeout')));
		request.on('error', reject);
		request.end(text);
	});
}

async function waitFor(what, seconds, condition) {
	const end = Date.now() + seconds * 1000;
	let last;

	while (Date.now() < end) {
		try {
			last = await condition();
			if (last)
				return last;
		} catch (error) {
			last = error.message;
		}
		await sleep(100);
	}
	throw new Error(`${what}: not within ${seconds} s (${JSON.stringify(last)})`);
}

// A child whose process id is in FOLDER/NAME.pid while it runs, so that whoever ends the control plane ends it, too. child.ended resolves to
// its exit status.
function spawnTracked(folder, name, program, args, options) {
	const child = spawn(program, args, options);
	const file = `${folder}/${name}.pid`;

	fs.writeFileSync(file, String(child.pid));
	child.ended = new Promise((resolve) => {
		child.on('exit', (status) => {
			// A successor may have it by now.
			if (fs.existsSync(file) && fs.readFileSync(file, 'utf8') === String(child.pid))
				fs.rmSync(file);
			resolve(status);
		});
	});
	return child;
}

module.exports = { connect, sleep, spawnTracked, waitFor };
