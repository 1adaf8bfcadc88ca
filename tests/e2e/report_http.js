'use strict';
// An HTTP receiver that misbehaves: nothing is lost, and nothing comes twice but what the receiver itself made ambiguous.

const assert = require('assert');
const http = require('http');
const net = require('net');
const h = require('./report_harness.js');

// `behave(request, response, number)` answers; each request's events are noted first.
const makeReceiver = async (behave) => {
	const receiver = { requests: [], accepted: [] };
	const server = http.createServer(async (request, response) => {
		const body = String(await h.readAll(request));
		const events = JSON.parse(body).events.map((event) => JSON.stringify(event));
		const number = receiver.requests.push({ url: request.url, headers: request.headers, body, events });
		response.once('finish', () => response.statusCode === 200 && receiver.accepted.push(...events));
		receiver.behave(request, response, number);
	});
	receiver.behave = behave;
	receiver.server = server;
	receiver.port = await h.listen(server);
	receiver.url = `http://127.0.0.1:${receiver.port}/v1`;
	return receiver;
};

const ok = (request, response) => response.end('ok');

const refuse = (status, headers) => (request, response) => {
	response.writeHead(status, headers);
	response.end();
};

// Each of `sent` was accepted exactly once, in order.
const assertOnce = (receiver, sent) => assert.deepStrictEqual(receiver.accepted, sent);

const outages = async () => {
	const receiver = await makeReceiver(ok);
	const driver = h.drive(['http', receiver.url], { DRIVER_EVERY_MS: '50', DRIVER_TIMEOUT_MS: '300' });
	const sent = [];
	const feed = async (count) => {
		const list = h.events(sent.length + 1, count);
		sent.push(...list);
		driver.submit(list);
		await h.sleep(120);
	};
	await feed(25);
	receiver.behave = refuse(500);
	await feed(7);
	receiver.behave = refuse(429, { 'retry-after': '1' });
	await feed(13);
	receiver.behave = (request, response) => setTimeout(() => ok(request, response), 100); // slow
	await feed(11);
	receiver.behave = () => {}; // never answers: the deadline
	await feed(5);
	await h.sleep(1000);
	receiver.behave = refuse(204);
	await feed(5);
	receiver.behave = (request, response) => setTimeout(() => ok(request, response), 20);
	await feed(1);
	await driver.end();
	assert.strictEqual(driver.status, 0, driver.log);
	assert.deepStrictEqual(driver.dropped(), []);
	assertOnce(receiver, sent);
	for (const cause of ['HTTP code 500', 'HTTP code 429', 'HTTP code 204', 'context deadline exceeded']) {
		assert.ok(driver.errors().includes(`http error ${cause}`), `${cause}: ${driver.out}`);
	}
	const ids = receiver.requests.map((request) => request.headers['x-trace-id']);
	assert.strictEqual(new Set(ids).size, ids.length);
	for (const id of ids) assert.match(id, /^[2-9A-HJ-NP-Za-km-z]{13,22}$/);
	for (const request of receiver.requests) assert.strictEqual(request.url, '/v1/usage_events');
	receiver.server.close();
};

// The connection is cut when the request is there: the same bytes come again, so that keys tell the receiver.
const ambiguity = async () => {
	const receiver = await makeReceiver((request, response, number) => {
		if (number % 2 === 1) request.socket.destroy();
		else ok(request, response);
	});
	const sent = h.events(1, 30);
	const driver = await h.run(['http', receiver.url], { DRIVER_EVERY_MS: '50' }, sent);
	assert.deepStrictEqual(driver.dropped(), []);
	assertOnce(receiver, sent);
	for (let i = 0; i < receiver.requests.length; i += 2) assert.strictEqual(receiver.requests[i].body, receiver.requests[i + 1].body);
	receiver.server.close();
};

// The end comes while the receiver is away: it is waited for; and not for ever.
const atTheEnd = async () => {
	const receiver = await makeReceiver(refuse(503));
	const sent = h.events(1, 1000);
	const driver = h.drive(['http', receiver.url], { DRIVER_GRACE_MS: '20000' });
	driver.submit(sent);
	setTimeout(() => (receiver.behave = ok), 1500);
	await driver.end();
	assert.deepStrictEqual(driver.dropped(), []);
	assertOnce(receiver, sent);

	receiver.behave = refuse(503);
	const began = Date.now();
	const given = await h.run(['http', receiver.url], { DRIVER_GRACE_MS: '1000' }, sent);
	assert.ok(Date.now() - began < 8000);
	assert.deepStrictEqual(given.dropped(), ['http dropped 1000']);
	assert.match(given.log, /Some events could not be sent and are lost","count":1000/);
	receiver.server.close();
	const nobody = await h.run(['http', receiver.url], { DRIVER_GRACE_MS: '500' }, h.events(1, 1));
	assert.ok(nobody.errors().includes('http error connection refused'), nobody.out);
};

// Generation A's sender: chunks are cut anew at each tick.
const ticks = async () => {
	const receiver = await makeReceiver((request, response, number) => (number === 1 ? refuse(500) : ok)(request, response));
	const driver = h.drive(['http', receiver.url], { DRIVER_TICKS: '1', DRIVER_BATCH: '4', DRIVER_EVERY_MS: '300' });
	const sent = h.events(1, 9);
	driver.submit(sent.slice(0, 3));
	await h.sleep(450);
	driver.submit(sent.slice(3));
	await h.sleep(450);
	await driver.end();
	assertOnce(receiver, sent);
	assert.deepStrictEqual(receiver.requests.map((request) => request.events.length), [3, 4, 4, 1]);
	receiver.server.close();
};

// Writes `text` over and over, as fast as it is taken.
const flood = (socket, text) => {
	const more = () => {
		while (!socket.destroyed && socket.write(text));
	};
	socket.on('drain', more);
	more();
};

const dribble = (socket, text, at = 0) => {
	if (socket.destroyed || at >= text.length) return;
	socket.write(text[at]);
	setTimeout(dribble, 3, socket, text, at + 1);
};

// What answers with bytes of its own; the cause it leads to, or none if the batch has arrived.
const OK = 'HTTP/1.1 200 OK\r\n';
const HOSTILE = {
	'a huge body': [(s) => (s.write(`${OK}Content-Length: 1000000000\r\n\r\n`), flood(s, 'x'.repeat(65536)))],
	'byte by byte': [(s) => dribble(s, `${OK}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`)],
	'interim answers': [(s) => s.write(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\n\r\n${OK}Content-Length: 0\r\n\r\n`)],
	'a body that stops': [(s) => s.write(`${OK}Content-Length: 5\r\n\r\nab`)],
	'headers without an end': [(s) => (s.write(OK), flood(s, `X-A: ${'b'.repeat(1000)}\r\n`)), 'other'],
	'interim answers without an end': [(s) => flood(s, 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(100)), 'other'],
	'bytes of TLS': [(s) => s.write(Buffer.from([0x15, 3, 1, 0, 2, 2, 70])), 'malformed HTTP response'],
	'two lengths': [(s) => s.write(`${OK}Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde`), 'malformed HTTP response'],
	'another protocol': [(s) => s.write('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'), 'HTTP code 101'],
};

const hostile = async (name) => {
	const [answer, cause] = HOSTILE[name];
	const server = net.createServer((socket) => {
		let text = '';
		socket.on('error', () => {});
		socket.on('data', (part) => {
			text += part;
			if (!text.includes(']}')) return;
			text = '';
			answer(socket);
		});
	});
	const port = await h.listen(server);
	const driver = await h.run(['http', `http://127.0.0.1:${port}`], { DRIVER_TIMEOUT_MS: '4000', DRIVER_GRACE_MS: cause ? '1000' : '8000' },
		h.events(1, 3));
	assert.strictEqual(driver.status, 0, `${name}: ${driver.log}`);
	assert.deepStrictEqual([...new Set(driver.errors())], cause ? [`http error ${cause}`] : [], name);
	assert.deepStrictEqual(driver.dropped(), cause ? ['http dropped 3'] : [], name);
	server.close();
};

h.main(async () => {
	await Promise.all(Object.keys(HOSTILE).map(hostile));
	await outages();
	await ambiguity();
	await atTheEnd();
	await ticks();
});
