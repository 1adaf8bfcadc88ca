// Bodies as networks and schedulers send them: recorded, large, many, slow, cut, wrong, too long.
//
//   node extender_bodies.js PROGRAM FOLDER PREFIX
'use strict';

const assert = require('assert').strict;
const fs = require('fs');
const http = require('http');
const net = require('net');
const path = require('path');
const { ABC, Api, Extender, HEALTH_PORT, NODE_B, PENDING, PORT, RESERVATIONS, makeArgs, makeClaim, makeClass, makePod, makeReservation, matched, runTests,
	sleep, until } = require('./extender_peers.js');

const [program, folder, prefix, instrumented] = process.argv.slice(2);
const MIB = 1024 * 1024;
const RECORDED = path.join(__dirname, '..', 'data', 'extender');

// A request of about that size, with nodes of 10 kB.
function makeLarge(bytes, pod = makePod('p')) {
	const filling = 'x'.repeat(10000);
	const nodes = [];

	for (let i = 0; i < bytes / 10100; i++)
		nodes.push(`{"metadata":{"name":"n${i}","uid":"u${i}"},"status":{"filling":"${filling}"}}`);
	return { nodes, body: Buffer.from(`{"Pod":${JSON.stringify(pod)},"Nodes":{"metadata":{},"items":[${nodes.join(',')}]},"NodeNames":null}`) };
}

function residentBytes(extender) {
	return Number(fs.readFileSync(`/proc/${extender.child.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) * 1024;
}

// Writes to a connection by hand; `reply` grows.
function connectByHand(extender) {
	const socket = net.connect(PORT, extender.address);
	const connection = { socket, reply: '', closed: false };

	socket.on('data', (data) => { connection.reply += data; });
	socket.on('close', () => { connection.closed = true; });
	socket.on('error', () => {});
	return connection;
}

// How long /healthz takes at most while `work` goes on.
async function slowestHealth(extender, work) {
	const agent = new http.Agent({ keepAlive: true });
	let over = false, slowest = 0, count = 0;

	work.finally(() => { over = true; }).catch(() => {});
	while (!over) {
		const begin = process.hrtime.bigint();

		assert.equal((await extender.request(HEALTH_PORT, '/healthz', null, { method: 'GET', agent })).status, 200);
		slowest = Math.max(slowest, Number(process.hrtime.bigint() - begin) / 1e6);
		count++;
	}
	agent.destroy();
	await work;
	return { slowest, count };
}

// Fifty filter calls, and as many of the other kind, none of which waits for another.
async function askFifty(extender) {
	const { body } = makeLarge(MIB);
	const agent = new http.Agent({ maxSockets: 100 });
	const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => (i % 2 ? extender.ask('/filter', body, { agent })
		: extender.ask('/prioritize', makeArgs(makePod('cart-3', ['data-cart-0'])), { agent }))));

	agent.destroy();
	for (const [i, answer] of answers.entries()) {
		assert.equal(answer.status, 200);
		assert.equal(answer.body.length, answers[i % 2].body.length);
	}
}

const TESTS = {
	async a_recorded_request({ extender, api }) {
		const body = fs.readFileSync(path.join(RECORDED, 'filter-request.json'));
		const nodes = JSON.parse(body).Nodes.items;
		const text = body.toString();
		const reservation = makeReservation('default-web-0', 'RESERVED', nodes.map((node) => node.metadata.uid),
			[nodes[1].metadata.uid, nodes[2].metadata.uid], 'default');

		reservation.spec.ReservationRequests = [{ CapacityRequest: { Name: 'data-web-0', StorageClass: 'HDD', Size: 1073741824 } }];
		api.seed(reservation);
		const answer = await extender.ask('/filter', body);
		const decoded = JSON.parse(answer.body);

		assert.deepEqual(decoded.Nodes.items, nodes.slice(1));
		assert.deepEqual(Object.keys(decoded.FailedNodes), [nodes[0].metadata.name]);
		// Byte for byte: what the request has from the second node to the end of the list is in the answer.
		const begin = text.indexOf('{"metadata":{"name":"' + nodes[1].metadata.name);
		const end = text.indexOf(']},"NodeNames"');

		assert.ok(begin > 0 && end > begin);
		assert.ok(answer.body.includes(`"items":[${text.slice(begin, end)}]`));
	},

	async five_thousand_nodes({ extender }) {
		const nodes = [];

		for (let i = 0; i < 5000; i++)
			nodes.push({ metadata: { name: `node-${i}`, uid: `uid-${i}`, labels: { zone: `z${i % 3}` } } });
		assert.deepEqual(await extender.filter(makeArgs(makePod('p'), nodes)), matched(nodes, null));
		const answer = await extender.prioritize(makeArgs(makePod('cart-3', ['data-cart-0']), nodes));

		assert.equal(answer.length, 5000);
	},

	async sixty_megabytes_while_health_answers({ extender }) {
		const { body, nodes } = makeLarge(60 * MIB);
		const send = async () => {
			const answer = await extender.ask('/filter', body);

			assert.equal(answer.status, 200);
			assert.ok(answer.body.startsWith(`{"Nodes":{"metadata":{},"items":[${nodes[0]},`));
			assert.equal(answer.body.length, body.length - JSON.stringify(makePod('p')).length - '{"Pod":,"Nodes":'.length +
				'{"Nodes":'.length + ',"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":""}\n'.length - 1);
		};
		const { slowest, count } = await slowestHealth(extender, send());

		console.log(`60 MB: ${count} health calls, slowest ${slowest} ms`);
		assert.ok(count >= 3, `${count} health calls`);
		if (instrumented !== 'instrumented')
			assert.ok(slowest < 2000, `/healthz took ${slowest} ms`); // this process itself and its neighbours work hard, too
		await until('the memory is given back', () => residentBytes(extender) < 24 * MIB || instrumented === 'instrumented');
	},

	async ten_times_sixty_megabytes_at_once({ extender }) {
		const { body } = makeLarge(60 * MIB);
		let peak = 0;
		const watch = setInterval(() => { peak = Math.max(peak, residentBytes(extender)); }, 10);
		const agent = new http.Agent({ maxSockets: 10 });
		const answers = await Promise.all(Array.from({ length: 10 }, async () => {
			const answer = await extender.ask('/filter', body, { agent });

			return [answer.status, answer.body.length];
		}));

		clearInterval(watch);
		console.log(`ten: peak ${peak / MIB} MiB`);
		agent.destroy();
		for (const answer of answers)
			assert.deepEqual(answer, answers[0]);
		assert.equal(answers[0][0], 200);
		if (instrumented !== 'instrumented')
			assert.ok(peak < 280 * MIB, `${peak} bytes`);
	},

	async sixty_megabytes_each_while_the_api_server_hangs({ extender, api }) {
		const { body } = makeLarge(60 * MIB, makePod('cart-3', ['data-cart-0']));
		const agent = new http.Agent({ maxSockets: 5 });
		let peak = 0;
		const watch = setInterval(() => { peak = Math.max(peak, residentBytes(extender)); }, 10);

		// Each body is held for as long as its call waits.
		api.fault = (method, where) => (where.startsWith(RESERVATIONS) ? { hang: true } : null);
		const answers = await Promise.all(Array.from({ length: 5 }, () => extender.filter(body, { agent })));

		clearInterval(watch);
		agent.destroy();
		api.fault = null;
		console.log(`five that hang: peak ${peak / MIB} MiB`);
		for (const answer of answers)
			assert.deepEqual(answer, PENDING);
		if (instrumented !== 'instrumented')
			assert.ok(peak < 280 * MIB, `${peak} bytes`);
	},

	// What they took, they give back, at the second time as at the first.
	async fifty_at_once({ extender }) {
		const descriptors = () => fs.readdirSync(`/proc/${extender.child.pid}/fd`).length;
		const atRest = descriptors();
		let before = 0;

		for (let round = 0; round < 3; round++) {
			await askFifty(extender);
			await until('the connections are gone', () => descriptors() <= atRest + 1);
			await until('the memory is given back', () => residentBytes(extender) < 32 * MIB || instrumented === 'instrumented');
			if (round > 0 && instrumented !== 'instrumented')
				assert.ok(residentBytes(extender) <= before + MIB, `${residentBytes(extender)} bytes, ${before} before`);
			before = residentBytes(extender);
		}
	},

	async a_slow_body({ extender }) {
		const body = JSON.stringify(makeArgs(makePod('p')));
		const connection = connectByHand(extender);

		connection.socket.write(`POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`);
		for (let i = 0; i < body.length; i += 50) {
			connection.socket.write(body.slice(i, i + 50));
			await sleep(10);
			if (i % 500 === 0)
				assert.deepEqual(await extender.filter(makeArgs(makePod('q'))), matched(ABC, null));
		}
		await until('the answer', () => connection.reply.includes('"Error":""}\n'));
		assert.ok(connection.reply.includes(JSON.stringify(ABC)));
		connection.socket.destroy();
	},

	async chunks({ extender }) {
		const body = JSON.stringify(makeArgs(makePod('p')));
		const connection = connectByHand(extender);

		connection.socket.write('POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
		for (const c of body)
			connection.socket.write(`1\r\n${c}\r\n`);
		connection.socket.write('0\r\n\r\n');
		await until('the answer', () => connection.reply.includes('"Error":""}\n'));
		connection.socket.destroy();
	},

	async bodies_that_are_cut({ extender }) {
		const body = JSON.stringify(makeArgs(makePod('p')));

		for (const length of [0, 1, 20, 100, body.length - 1]) {
			// Announced so: undecodable.
			const answer = await extender.filter(body.slice(0, length));

			assert.equal(answer.Error, length === 0 ? 'EOF' : 'unexpected EOF');
			// Announced whole, and the connection ends.
			const connection = connectByHand(extender);

			connection.socket.end(`POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, length)}`);
			await until('the end', () => connection.closed);
			assert.ok(!connection.reply.includes('200 OK'));
		}
	},

	async values_of_wrong_types({ extender }) {
		for (const body of ['1', '"x"', 'null', 'tru', '{"Pod":1}', '{"Pod":{"spec":{"volumes":{}}}}', '{"Pod":{},"Nodes":[]}', '{"Pod":{},"Nodes":{"items":{}}}',
			'{"Pod":{},"Nodes":{"items":[1]}}', '{"Pod":{"metadata":{"name":"a-pod","namespace":"a-namespace"}},"Nodes":{"items":{}}}',
			'{"Pod":{"metadata":{"name":"a-pod","namespace":"a-\\u006eamespace"}},"Nodes":{"items":5}}', '{"Pod":{},"NodeNames":{}}', '{"Pod":{"metadata":{"namespace":[]}},"Nodes":{"items":[]}}', '{"Pod":{},}',
			'\u0000', `${'['.repeat(100000)}`]) {
			const answer = await extender.filter(body);

			assert.notEqual(answer.Error, '', body.slice(0, 100));
			assert.equal(answer.Nodes, null);
			assert.equal((await extender.ask('/prioritize', body)).body, '');
		}
	},

	async more_than_the_limit({ extender }) {
		const connection = connectByHand(extender);

		connection.socket.write(`POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: ${64 * MIB + 1}\r\n\r\n{`);
		await until('the refusal', () => connection.closed);
		assert.match(connection.reply, /^HTTP\/1\.1 413 [^]*67108864 bytes/);
		const chunked = connectByHand(extender);
		const chunk = `100000\r\n${' '.repeat(MIB)}\r\n`;

		chunked.socket.write('POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
		for (let i = 0; i < 66 && !chunked.closed; i++)
			await new Promise((resolve) => chunked.socket.write(chunk, () => resolve()));
		await until('the refusal', () => chunked.closed);
		assert.match(chunked.reply, /^HTTP\/1\.1 413 [^]*67108864 bytes/);
		const binding = await extender.ask('/bind', ' '.repeat(100000)).catch(() => null);

		assert.ok(binding === null || binding.status === 413);
	},

	async a_client_that_reads_slowly({ extender }) {
		const { body } = makeLarge(20 * MIB);
		const connection = connectByHand(extender);

		connection.socket.write(`POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`);
		connection.socket.write(body);
		connection.socket.pause();
		await sleep(300);
		assert.deepEqual(await extender.filter(makeArgs(makePod('q'))), matched(ABC, null));
		connection.socket.resume();
		await until('the answer', () => connection.reply.endsWith('"Error":""}\n'), 20000);
		connection.socket.destroy();
	},

	async clients_that_go_in_the_middle({ extender }) {
		const { body } = makeLarge(20 * MIB);

		for (let i = 0; i < 20; i++) {
			const connection = connectByHand(extender);

			connection.socket.write(`POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`);
			connection.socket.write(i % 2 ? body : body.subarray(0, 5 * MIB));
			await sleep(i * 5);
			connection.socket.destroy();
		}
		assert.deepEqual(await extender.filter(makeArgs(makePod('q'))), matched(ABC, null));
		await until('the memory is given back', () => residentBytes(extender) < 32 * MIB || instrumented === 'instrumented');
	},

	async little_memory_at_rest({ extender }) {
		if (instrumented !== 'instrumented')
			assert.ok(residentBytes(extender) < 24 * MIB, `${residentBytes(extender)} bytes`);
	},
};

async function main() {
	const api = new Api();

	api.put('claims', makeClaim('data-web-0', { className: 'bm-web', storage: '1Gi', namespace: 'default' }));
	api.put('classes', makeClass('bm-web', 'csi-baremetal', { storageType: 'HDD' }));
	await api.start(folder, `${prefix}.2`);
	const extender = new Extender({ program, folder, prefix, apiAddress: `${prefix}.2` });

	await extender.ready();
	console.log(`at rest: ${residentBytes(extender)} bytes`);
	const failures = await runTests(TESTS, { api, extender });

	if (await extender.stop() !== 0)
		throw new Error(`the extender's end: ${extender.log.slice(-2000)}`);
	api.stop();
	process.exit(failures > 0 ? 1 : 0);
}

main().catch((error) => {
	console.log(error.stack);
	process.exit(1);
});
