'use strict';
// An HTTP receiver that misbehaves: nothing is lost, and nothing comes twice but what the receiver itself made ambiguous.

const assert = require('assert');
const http = require('http');
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

h.main(async () => {
	await outages();
	await ambiguity();
	await atTheEnd();
	await ticks();
});
