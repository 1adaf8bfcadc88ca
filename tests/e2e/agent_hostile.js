// An agent whose VMs, scheduler plugin and API do what they shouldn't. Beside them are VMs that behave: those must be looked
// after as if nothing was, and the agent must keep its memory, its descriptors and its life.
//
//   node agent_hostile.js BALLAST FOLDER PREFIX [no-memory]
//
// no-memory: memory isn't looked at (sanitizers keep what was released).
'use strict';

const { spawn } = require('child_process');
const fs = require('fs');
const http = require('http');
const net = require('net');
const { Api, Guest, Plugin, agentEnvironment, makeVm, metricsPage, writeConfig } = require('./agent_peers.js');

const [ballast, folder, prefix, noMemory] = process.argv.slice(2);
const NODE = 'node-a';
const GOOD_VMS = 4;
const WARM_UP_S = 6;
const WATCHED_S = 16;
const DESCRIPTORS_SLACK = 4;
const DESCRIPTORS_PER_VM = 2; // a page being read, and the monitor's connection
const DESCRIPTORS_BESIDE = 32;
const MEMORY_SLACK_KIB = 256;
const MEMORY_MAX_KIB = 16 * 1024; // a dozen pages of 1 MiB may be under way at once

const CHUNK = Buffer.alloc(65536, 'a');
let failures = 0;
let vmCount = 0;
let leave; // the agent's process, to be killed in any case

function fail(text) {
	console.error(`agent_hostile: ${text}`);
	failures++;
}

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

// Writes as long as the other end takes it, a few pieces at a time.
function pour(stream, piece = () => CHUNK) {
	const more = () => {
		for (let i = 0; i < 8; i++) {
			if (stream.destroyed)
				return;
			if (!stream.write(piece())) {
				stream.once('drain', more);
				return;
			}
		}
		setImmediate(more);
	};

	stream.on('error', () => {});
	stream.on('close', () => stream.destroy());
	more();
}

// Calls send(0), send(1) … `count` times each 10 ms while the websocket is open and its peer reads.
function every(count, connection, send) {
	const timer = setInterval(() => {
		for (let i = 0; i < count && connection.bufferedAmount < 1e5; i++)
			send(i);
	}, 10);

	connection.on('close', () => clearInterval(timer));
}

// Plain bytes instead of an HTTP server's answer.
function raw(response, ...parts) {
	const { socket } = response;

	socket.on('error', () => {});
	for (const part of parts)
		socket.write(part);
	return socket;
}

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n';
const OK_PAGE = metricsPage();

const PAGES = {
	'too-big': (_, response) => {
		response.writeHead(200, { 'Content-Length': 8 * 1024 * 1024 });
		response.on('error', () => {});
		response.end(Buffer.alloc(8 * 1024 * 1024, 'a'));
	},
	endless: (_, response) => {
		response.writeHead(200);
		pour(response);
	},
	'endless-line': (_, response) => {
		response.writeHead(200);
		response.write('# TYPE host_load1 gauge\nhost_load1{a="');
		pour(response);
	},
	redirect: (_, response) => {
		response.writeHead(302, { Location: `http://${prefix}.9:9100/metrics` });
		response.end(OK_PAGE);
	},
	'no-utf8': (_, response) => response.end(Buffer.concat([Buffer.from('x{y="'), Buffer.from([0xff, 0xc0, 0x80]),
		Buffer.from('"} 1\n'), Buffer.from(OK_PAGE)])),
	nul: (_, response) => response.end(`host_load1\0 1\n${OK_PAGE}`),
	drip: (_, response) => {
		response.writeHead(200);

		const timer = setInterval(() => response.write('#'), 50);

		response.on('close', () => clearInterval(timer));
	},
	silent: () => {},
	reset: (_, response) => response.socket.resetAndDestroy(),
	cut: (_, response) => {
		response.writeHead(200, { 'Content-Length': OK_PAGE.length });
		response.write(OK_PAGE.slice(0, 100), () => response.socket.destroy());
	},
	'no-http': (_, response) => raw(response, 'SSH-2.0-OpenSSH_9.2p1\r\n').end(),
	'endless-head': (_, response) => {
		raw(response, 'HTTP/1.1 200 OK\r\n');
		pour(response.socket, () => `X-${'a'.repeat(50)}: ${'b'.repeat(1000)}\r\n`);
	},
	'endless-interim': (_, response) => {
		raw(response);
		pour(response.socket, () => 'HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n');
	},
	'two-lengths': (_, response) =>
		raw(response, `${HEAD}Content-Length: 5\r\nContent-Length: ${OK_PAGE.length}\r\n\r\n${OK_PAGE}`).end(),
	'length-and-chunks': (_, response) =>
		raw(response, `${HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`).end(),
	'endless-extension': (_, response) => {
		raw(response, `${HEAD}Transfer-Encoding: chunked\r\n\r\n5;`);
		pour(response.socket);
	},
	'huge-chunk': (_, response) => {
		raw(response, `${HEAD}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n`);
		pour(response.socket);
	},
	switching: (_, response) => raw(response, 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
	'not-a-number': (_, response) => response.end(OK_PAGE.replace(/} 0.1/g, '} NaN')),
	infinite: (_, response) => response.end(OK_PAGE.replace(/} 0.1/g, '} +Inf')),
	negative: (_, response) => response.end(OK_PAGE.replace(/} 0.1/g, '} -1e308')),
	twice: (_, response) => response.end(OK_PAGE + OK_PAGE),
	'many-families': (_, response) => {
		let page = '';

		for (let i = 0; page.length < 900000; i++)
			page += `# TYPE f${i} gauge\nf${i} 1\n`;
		response.end(page + OK_PAGE);
	},
};

const MONITORS = {
	'no-json': (connection) => connection.once('message', () => {
		connection.send('{"version":1}');
		connection.send('{');
	}),
	'big-message': (connection) => connection.once('message', () => {
		connection.send('{"version":1}');
		connection.send('x'.repeat(40000));
	}),
	'endless-fragments': (connection) => connection.once('message', () => {
		connection.send('{"version":1}');
		every(10, connection, () => connection.send('x'.repeat(1000), { fin: false }));
	}),
	flood: (connection) => connection.once('message', () => {
		connection.send('{"version":1}');
		every(200, connection, (i) => connection.send(`{"type":"Foo${i}\u{1f600}","id":${i}}`));
	}),
	pings: (connection) => connection.once('message', () => {
		connection.send('{"version":1}');
		every(200, connection, () => connection.ping('x'.repeat(125)));
	}),
	mute: () => {},
	'closes-at-once': (connection) => connection.once('message', () => {
		connection.send('{"version":1}');
		connection.close(4000, 'go away');
	}),
	cuts: (connection) => connection.once('message', () => {
		connection.send('{"version":1}');
		connection.terminate();
	}),
	'wrong-ids': (connection) => connection.once('message', () => {
		connection.send('{"version":1}');
		connection.on('message', (data) => {
			const { type } = JSON.parse(data.toString());

			for (const id of ['1e300', '-5', '7.9', '4294967296', '2'])
				connection.send(`{"type":"${type}","id":${id}}`);
		});
	}),
	nonsense: (connection) => connection.once('message', () => {
		connection.send('{"version":18446744073709551616,"error":null}');
		connection.on('message', (data) => {
			const { id } = JSON.parse(data.toString());

			connection.send(`{"type":"DownscaleResult","ok":"yes","status":{},"id":${id}}`);
		});
	}),
	'deep-json': (connection) => connection.once('message', () => {
		connection.send('{"version":1}');
		connection.send(`{"type":"HealthCheck","id":1,"x":${'['.repeat(15000)}${']'.repeat(15000)}}`);
	}),
};

const UPGRADES = {
	'bad-accept': (_, socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n' +
		'Connection: upgrade\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n'),
	'no-upgrade': (_, socket) => socket.end(`${HEAD}Content-Length: 2\r\n\r\nno`),
	'endless-answer': (_, socket) => {
		socket.write('HTTP/1.1 101 Switching Protocols\r\n');
		pour(socket, () => `X: ${'b'.repeat(1000)}\r\n`);
	},
	'no-answer': () => {},
	'bare-frames': (_, socket) => pour(socket, () => Buffer.from([0x81, 0x01, 0x41])),
};

const PLUGINS = {
	garbage: (response) => response.end('<html>no</html>'),
	'too-big': (response) => response.end(`{"permit":{"vCPUs":1,"mem":"1Gi"},"x":"${'x'.repeat(1e6)}"}`),
	endless: (response) => pour(response, () => ' '.repeat(1000)),
	more: (response) => response.end('{"permit":{"vCPUs":1e9,"mem":"1000Ti"}}'),
	negative: (response) => response.end('{"permit":{"vCPUs":-1,"mem":"-1Gi"}}'),
	quantity: (response) => response.end('{"permit":{"vCPUs":"1e999999999","mem":"99999999999999999999Ei"}}'),
	reset: (response) => response.socket.resetAndDestroy(),
	refuses: (response) => {
		response.writeHead(500);
		response.end('\xff\0"\\'.repeat(1000));
	},
	silent: () => {},
	redirect: (response) => {
		response.writeHead(307, { Location: `http://${prefix}.9:9100/` });
		response.end();
	},
};

// What comes through the watch of VMs: each ends with an ERROR for the agent, and a new list.
function badFrames() {
	const vm = (change) => {
		const object = makeVm({ name: 'bad', node: NODE, podIP: `${prefix}.200` });

		change(object);
		return `${JSON.stringify({ type: 'ADDED', object })}\n`;
	};

	return [
		'nonsense\n',
		'{"type":"ADDED"}\n',
		'{"type":"SURPRISE","object":{}}\n',
		'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n',
		vm((object) => delete object.metadata.uid),
		vm((object) => { object.spec.guest.cpus = 7; }),
		vm((object) => { object.spec.guest.memorySlots.use = '3'; }),
		vm((object) => { object.spec.guest.cpus.use = '1e99999'; }),
		`{"type":"ADDED","object":${'['.repeat(5000)}${']'.repeat(5000)}}\n`,
		`{"type":"DELETED","object":${JSON.stringify(makeVm({ name: 'never-seen', node: NODE, podIP: '10.0.0.1' }))}}\n`,
		Buffer.concat([Buffer.from('{"type":"ADDED","object":{"metadata":{"name":"'), Buffer.from([0xff]),
			Buffer.from('"}}}\n')]),
		`{"type":"ADDED","object":{"metadata":{"name":"${'x'.repeat(5 * 1024 * 1024)}"}}}\n`,
	];
}

// Annotations and addresses that one VM's owner can set: they concern that VM alone, and no list.
function badVms() {
	const bad = [];
	const add = (name, change) => {
		const vm = makeVm({ name, node: NODE, podIP: `${prefix}.201` });

		change(vm);
		bad.push(vm);
	};
	const bounds = (text) => (vm) => { vm.metadata.annotations['autoscaling.neon.tech/bounds'] = text; };
	const config = (text) => (vm) => { vm.metadata.annotations['autoscaling.neon.tech/config'] = text; };

	add('bounds-empty', bounds(''));
	add('bounds-deep', bounds('['.repeat(100000)));
	add('bounds-upside-down', bounds('{"min":{"cpu":2,"mem":"8Gi"},"max":{"cpu":1,"mem":"1Gi"}}'));
	add('bounds-huge', bounds('{"min":{"cpu":1e30,"mem":"1e30"},"max":{"cpu":"1e999","mem":"9E"}}'));
	add('config-types', config('{"loadAverageFractionTarget":"much"}'));
	add('config-range', config('{"memoryUsageFractionTarget":-1}'));
	add('no-slots', (vm) => { vm.spec.guest.memorySlotSize = 0; });
	add('no-address', (vm) => { vm.status.podIP = 'not an address'; });
	add('with-port', (vm) => { vm.status.podIP = `${prefix}.9:9100/x?`; });
	add('big', (vm) => { vm.metadata.annotations.big = 'x'.repeat(900000); });
	return bad;
}

function descriptors(pid) {
	return fs.readdirSync(`/proc/${pid}/fd`).length;
}

function residentKib(pid) {
	return Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`))[1]);
}

function startAgent(logName) {
	const config = `${folder}/config.json`;
	const log = fs.openSync(`${folder}/${logName}`, 'w');

	writeConfig(config, (values) => {
		values.metrics.system = { port: 9100, requestTimeoutSeconds: 1, secondsBetweenRequests: 1 };
		Object.assign(values.monitor, { connectionTimeoutSeconds: 1, connectionRetryMinWaitSeconds: 1, responseTimeoutSeconds: 1,
			retryFailedRequestSeconds: 1 });
		Object.assign(values.scheduler, { requestAtLeastEverySeconds: 5, retryFailedRequestSeconds: 1 });
		values.neonvm.requestTimeoutSeconds = 2;
	});

	const agent = spawn(ballast, ['agent', '--listen-address', `${prefix}.1`], {
		env: { ...process.env, ...agentEnvironment({ folder, prefix, node: NODE, config }) },
		stdio: ['ignore', 'ignore', log],
	});

	fs.closeSync(log);
	fs.writeFileSync(`${folder}/agent.pid`, `${agent.pid}\n`);
	leave = agent;
	agent.ended = new Promise((resolve) => agent.on('exit', (code, signal) => {
		agent.how = signal || code;
		resolve();
	}));
	return agent;
}

async function stopAgent(agent) {
	if (agent.how !== undefined) {
		fail(`the agent ended by itself: ${agent.how}`);
		return;
	}
	agent.kill('SIGTERM');
	await Promise.race([agent.ended, sleep(10)]);
	if (agent.how !== 0)
		fail(`the agent's end after SIGTERM: ${agent.how === undefined ? 'it goes on' : agent.how}`);
}

// Lines of JSON, every one, none at level panic.
function checkLog(logName) {
	const lines = fs.readFileSync(`${folder}/${logName}`).toString('latin1').split('\n');

	if (lines.pop() !== '')
		fail('the last line of the log has no end');
	for (const line of lines) {
		try {
			if (JSON.parse(Buffer.from(line, 'latin1').toString()).level === 'panic')
				fail(`a panic: ${line}`);
		} catch (error) {
			fail(`no JSON in the log: ${line.slice(0, 300)}`);
		}
	}
	if (!Buffer.from(lines.join('\n'), 'latin1').equals(Buffer.from(Buffer.from(lines.join('\n'), 'latin1').toString())))
		fail('the log is no UTF-8');
	return lines;
}

// What is in use goes up and down with what the guests pour in; its middle and its bound don't.
function checkFlat(samples) {
	const half = samples.length / 2;
	const middle = (key, from, to) => {
		const values = samples.slice(from, to).map((sample) => sample[key]).sort((a, b) => a - b);

		return values[values.length >> 1];
	};
	const check = (key, slack, bound) => {
		const all = samples.map((sample) => sample[key]);

		console.log(`${key}: ${all.join(' ')}`);
		if (middle(key, half) > middle(key, 0, half) + slack)
			fail(`${key} grow: ${all}`);
		if (Math.max(...all) > bound)
			fail(`${key} reach ${Math.max(...all)}`);
	};

	check('descriptors', DESCRIPTORS_SLACK, DESCRIPTORS_BESIDE + DESCRIPTORS_PER_VM * vmCount);
	if (!noMemory)
		check('kib', MEMORY_SLACK_KIB, MEMORY_MAX_KIB);
}

async function main() {
	const api = new Api(`${prefix}.3`);
	const plugin = new Plugin();
	const guests = new Map();
	let lastByte = 10;

	const addVm = async (name, change = () => {}) => {
		const address = `${prefix}.${lastByte++}`;
		const guest = new Guest();

		change(guest);
		await guest.start(address);
		guests.set(name, guest);
		api.put(makeVm({ name, node: NODE, podIP: address }));
		vmCount++;
		return guest;
	};

	// Where redirects lead. Nobody may come.
	let visitors = 0;
	const trap = http.createServer((request, response) => {
		visitors++;
		response.end(OK_PAGE);
	}).listen(9100, `${prefix}.9`);

	for (let i = 0; i < GOOD_VMS; i++)
		await addVm(`good-${i}`);
	for (const [name, page] of Object.entries(PAGES))
		await addVm(`page-${name}`, (guest) => { guest.page = page; });
	for (const [name, monitor] of Object.entries(MONITORS))
		await addVm(`monitor-${name}`, (guest) => { guest.monitor = monitor; });
	for (const [name, upgrade] of Object.entries(UPGRADES))
		await addVm(`upgrade-${name}`, (guest) => { guest.upgrade = upgrade; });
	for (const [name, fault] of Object.entries(PLUGINS)) {
		const guest = await addVm(`plugin-${name}`);

		guest.load = 1.5; // so that it wants to grow, and asks again and again
		plugin.faults.set(`plugin-${name}-pod`, fault);
	}
	for (const vm of badVms())
		api.put(vm);
	await plugin.start(`${prefix}.3`);
	await api.start(folder, `${prefix}.2`);

	const good = [...Array(GOOD_VMS).keys()].map((i) => guests.get(`good-${i}`));
	const patchesOf = (name) => api.patches.filter((patch) => patch.name === name).length;
	const agent = startAgent('agent.log');

	await sleep(WARM_UP_S);
	for (const [name, guest] of guests) {
		if (guest.scrapes === 0)
			fail(`${name} wasn't scraped within ${WARM_UP_S} s`);
		if (guest.monitorConnections === 0)
			fail(`${name}'s monitor wasn't asked for`);
	}

	// Every half second a bad event, while memory and descriptors are watched; in the middle the good VMs get busy.
	const frames = badFrames();
	const before = good.map((guest) => guest.scrapes);
	const samples = [];
	const patchedAfter = [];

	for (let i = 0; i < WATCHED_S * 2; i++) {
		if (agent.how !== undefined)
			break;
		api.sendRaw(frames[i % frames.length]);
		samples.push({ descriptors: descriptors(agent.pid), kib: residentKib(agent.pid) });
		if (i === WATCHED_S) {
			for (const guest of good)
				guest.load = 0.9; // a whole CPU, as 0.9 of it is the target: 4 units
		}
		if (i >= WATCHED_S) {
			good.forEach((guest, n) => {
				if (patchedAfter[n] === undefined && patchesOf(`good-${n}`) > 0)
					patchedAfter[n] = (i - WATCHED_S) / 2;
			});
		}
		await sleep(0.5);
	}
	good.forEach((guest, n) => {
		const scrapes = guest.scrapes - before[n];

		if (scrapes < WATCHED_S * 0.6 || scrapes > WATCHED_S + 2)
			fail(`good-${n} was scraped ${scrapes} times in ${WATCHED_S} s`);
		if (patchedAfter[n] === undefined || patchedAfter[n] > 3)
			fail(`good-${n} got busy, and grew ${patchedAfter[n] === undefined ? 'never' : `after ${patchedAfter[n]} s`}`);
		if (guest.monitorConnections !== 1 || guest.monitorMessages < 4)
			fail(`good-${n}'s monitor had ${guest.monitorConnections} connections and ${guest.monitorMessages} messages`);
		if (api.vms.get(`good-${n}`).spec.guest.memorySlots.use !== 4)
			fail(`good-${n} has ${api.vms.get(`good-${n}`).spec.guest.memorySlots.use} units`);
	});
	for (const name of guests.keys()) {
		if (/^(page|plugin)-/.test(name) && !/page-many-families/.test(name) && patchesOf(name) > 0)
			fail(`${name} was patched`);
	}
	if (visitors > 0)
		fail(`${visitors} requests followed a redirect`);
	if (api.vmLists < 3)
		fail(`only ${api.vmLists} lists of VMs after bad events`);

	checkFlat(samples);

	// The agent dies, and another takes over what it finds: sizes that fit stay, connections are made anew.
	if (agent.how === undefined) {
		agent.kill('SIGKILL');
		await agent.ended;

		const successor = startAgent('successor.log');
		const patches = good.map((guest, n) => patchesOf(`good-${n}`));

		await sleep(4);
		good.forEach((guest, n) => {
			if (guest.monitorConnections !== 2)
				fail(`the successor has ${guest.monitorConnections - 1} connections to good-${n}`);
			if (patchesOf(`good-${n}`) !== patches[n])
				fail(`the successor changes good-${n}, which fits`);
		});
		await stopAgent(successor);
		checkLog('successor.log');
	} else {
		fail(`the agent ended by itself: ${agent.how}`);
	}
	checkLog('agent.log');
	for (const guest of guests.values())
		guest.stop();
	plugin.stop();
	api.stop();
	trap.close();
}

main().catch((error) => fail(error.stack)).finally(() => {
	if (leave)
		leave.kill('SIGKILL');
	process.exit(failures === 0 ? 0 : 1);
});
