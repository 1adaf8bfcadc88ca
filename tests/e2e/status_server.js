'use strict';
// An agent's dump server, in good order and not: `node status_server.js HOST FOLDER`; writes the port to FOLDER/port. What it
// answers goes by the path.
const fs = require('fs');
const http = require('http');

const [host, folder] = process.argv.slice(2);
const vector = (name) => fs.readFileSync(`tests/vectors/status/${name}.json`, 'utf8');

// A dump of at least so many bytes, and its number of VMs.
function bigDump(bytes) {
	const pod = JSON.parse(vector('generation_b')).pods[0];
	const count = Math.ceil(bytes / JSON.stringify(pod).length);
	const pods = Array.from({ length: count }, (_, i) => ({ ...pod, podName: { namespace: 'apps', name: `vm-${i}` } }));

	return JSON.stringify({ stopped: false, pods });
}

// What a terminal would obey: escape sequences of both kinds, marks that turn text around, and more than a name can be.
const HOSTILE = ['\x1b[31mred', '\x1b]0;title\x07', 'a\u009b31mb', 'a\u202egnp', 'a\r\nb', '\0\x7fx', 'z\u200bz', 'x'.repeat(6000)];

function hostileDump() {
	const pod = JSON.parse(vector('generation_b')).pods[0];
	const pods = HOSTILE.map((name) => ({ podName: { namespace: 'apps', name },
		status: { ...pod.status, vmInfo: { ...pod.status.vmInfo, name } } }));

	return JSON.stringify({ stopped: false, pods });
}

const answers = {
	'/hostile': (response) => response.end(hostileDump()),
	'/time': (response) => response.end(vector('generation_b').replace(/("at": *)"[^"]*"/i, '$1"\\u001b[31mred"')),
	'/a': (response) => response.end(vector('generation_a')),
	'/b': (response) => response.end(vector('generation_b')),
	'/many': (response) => response.end(vector('many_b')),
	'/garbage': (response) => response.end('\x00\xff<html>'),
	'/other': (response) => response.end('{"status":"ok"}'),
	'/empty': (response) => response.end(),
	'/405': (response) => response.writeHead(405).end('request method must be GET\n'),
	'/401': (response) => response.writeHead(401).end('no \x1b[31mtoken\n'),
	'/302': (response) => response.writeHead(302, { Location: '/b' }).end(),
	'/silent': () => {},
	'/slow': (response) => {
		response.writeHead(200);
		const timer = setInterval(() => response.write(' '), 50);

		response.on('close', () => clearInterval(timer));
	},
	'/cut': (response, socket) => {
		socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"pods":[');
	},
	'/nohttp': (response, socket) => socket.end('hello\r\n'),
	'/big': (response) => response.end(bigDump(10 << 20)),
	'/huge': (response) => response.end(bigDump(33 << 20)),
	'/nested': (response) => response.end(`{"pods":${'['.repeat(10 << 20)}`),
};
let flaky = 0;

answers['/flaky'] = (response) => {
	flaky++;
	if (flaky === 2)
		response.writeHead(500).end('timed out after 5s while getting state');
	else
		response.end(vector('generation_b'));
};

const server = http.createServer((request, response) => {
	let body = '';

	request.on('data', (chunk) => { body += chunk; });
	request.on('end', () => {
		if (request.method !== 'GET' || body !== '{}')
			return response.writeHead(400).end('bad JSON');
		if (request.url === '/token')
			return request.headers.authorization === 'Bearer s3cret.of-ours' ? answers['/b'](response)
				: response.writeHead(401).end('unauthorized');
		if (answers[request.url] === undefined)
			return response.writeHead(404).end('not found');
		return answers[request.url](response, request.socket);
	});
});

server.listen(0, host, () => {
	fs.writeFileSync(`${folder}/port.new`, String(server.address().port));
	fs.renameSync(`${folder}/port.new`, `${folder}/port`);
});
