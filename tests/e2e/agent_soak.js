// An agent under load for a while, whose memory and descriptors must be as before afterwards.
//
//   node agent_soak.js BALLAST FOLDER PREFIX MODE [no-memory]
//
//   reconnects   10,000 connections of monitors that end as soon as they are agreed on
//   vms          1,000 VMs on one node, all of which grow and shrink
//   cluster      5,000 VMs in the cluster, 20 of them on the node, listed over and over
//
// All VMs of a run have one address: what is tested is the agent, not this program.
'use strict';

const { spawn } = require('child_process');
const fs = require('fs');
const { Api, Guest, Plugin, agentEnvironment, makeVm, writeConfig } = require('./agent_peers.js');

const [ballast, folder, prefix, mode, noMemory] = process.argv.slice(2);
const NODE = 'node-a';
const GUEST = `${prefix}.10`;
const SCHEDULER = `${prefix}.3`;

const RECONNECTS = 10000;
const RECONNECTING_VMS = 500;
const MANY_VMS = 1000;
const CLUSTER_VMS = 5000;
const OUR_VMS = 20;
const RELISTS = 15;
const GROWTH_KIB = 1024; // what a run may leave behind: blocks that the allocator keeps

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let agent;
let failures = 0;

function fail(text) {
	console.log(`agent_soak: ${text}`);
	failures++;
}

function descriptors() {
	return fs.readdirSync(`/proc/${agent.pid}/fd`).length;
}

function residentKib() {
	return Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${agent.pid}/status`))[1]);
}

// Waits until condition() holds; gives up after so many seconds.
async function until(seconds, what, condition) {
	const end = Date.now() + seconds * 1000;

	while (!condition()) {
		if (Date.now() > end || agent.exitCode !== null)
			throw new Error(`${agent.exitCode !== null ? 'the agent ended' : `not within ${seconds} s`}: ${what()}`);
		await sleep(50);
	}
}

// Descriptors and memory must come back to what they were.
async function settle(before, what) {
	await until(20, () => `${what}: ${descriptors()} descriptors, ${before.descriptors} before`,
		() => descriptors() <= before.descriptors + 2);
	if (!noMemory && residentKib() > before.kib + GROWTH_KIB)
		fail(`${what}: ${residentKib()} KiB resident, ${before.kib} before`);
}

const state = () => ({ descriptors: descriptors(), kib: residentKib() });

function startAgent(change) {
	const config = `${folder}/config.json`;

	writeConfig(config, change);
	agent = spawn(ballast, ['agent', '--listen-address', `${prefix}.1`, '--log-level', 'error', '--api-qps', '10000',
		'--api-burst', '10000'], {
		env: agentEnvironment({ folder, prefix, node: NODE, config }),
		stdio: ['ignore', 'ignore', fs.openSync(`${folder}/agent.log`, 'w')],
	});
	fs.writeFileSync(`${folder}/agent.pid`, String(agent.pid));
}

function addVms(api, count, name = 'vm', node = NODE) {
	for (let i = 0; i < count; i++)
		api.put(makeVm({ name: `${name}-${i}`, node, podIP: GUEST }));
}

function removeVms(api, name) {
	for (const [key, vm] of [...api.vms]) {
		if (!key.startsWith(`${name}-`))
			continue;
		api.vms.delete(key);
		vm.metadata.resourceVersion = String(++api.version);
		api.sendRaw(`${JSON.stringify({ type: 'DELETED', object: vm })}\n`);
	}
}

// ---- modes ----

async function reconnects({ api, guest }) {
	startAgent((config) => { config.monitor.connectionRetryMinWaitSeconds = 1; });
	await until(20, () => 'no watch', () => api.watches.size >= 2);
	const atRest = state();

	// Each connection ends in one of the ways in which they do.
	let connections = 0;
	guest.monitor = (connection) => {
		const kind = connections++ % 4;

		if (kind === 0)
			connection.terminate();
		else if (kind === 1)
			connection.close(1001, 'going away');
		else
			connection.once('message', () => {
				if (kind === 2)
					connection.send('{"version":1}', () => connection.terminate());
				else
					connection.send('{"error":"no"}', () => connection.close());
			});
	};
	addVms(api, RECONNECTING_VMS);
	await until(30, () => `${connections} connections`, () => connections >= RECONNECTS / 10);
	await sleep(500);
	const early = state();
	let most = 0;
	await until(100, () => `${connections} connections`, () => {
		most = Math.max(most, descriptors());
		return connections >= RECONNECTS;
	});
	const late = state();
	if (!noMemory && late.kib > early.kib + GROWTH_KIB)
		fail(`after ${connections} connections ${late.kib} KiB resident, ${early.kib} after the first ${RECONNECTS / 10}`);
	removeVms(api, 'vm');
	await until(20, () => `${descriptors()} descriptors, ${atRest.descriptors} at rest`,
		() => descriptors() <= atRest.descriptors + 2);
	return { connections, kib: [atRest.kib, early.kib, late.kib, residentKib()], descriptors: [atRest.descriptors, most, descriptors()] };
}

async function vms({ api, guest }) {
	startAgent();
	await until(20, () => 'no watch', () => api.watches.size >= 2);
	const rounds = [];
	let before;

	for (let round = 0; round < 2; round++) {
		const name = `round${round}`;
		const started = Date.now();

		guest.load = 0.1;
		api.patches.length = 0;
		addVms(api, MANY_VMS, name);
		await until(30, () => `${guest.websockets.clients.size} monitors connected`,
			() => guest.websockets.clients.size >= MANY_VMS);
		const connected = Date.now();
		const loaded = state();
		guest.load = 0.7; // 3 units
		const grown = () => [...api.vms.values()].filter((vm) => vm.spec.guest.memorySlots.use >= 3).length;
		await until(40, () => `${grown()} VMs have grown`, () => grown() === MANY_VMS);
		const done = Date.now();
		removeVms(api, name);
		await until(20, () => `${guest.websockets.clients.size} monitors still connected`,
			() => guest.websockets.clients.size === 0);
		if (before)
			await settle(before, `round ${round}`);
		await sleep(1000);
		before = state();
		rounds.push({ connectedS: (connected - started) / 1000, grownS: (done - connected) / 1000, loadedKib: loaded.kib,
			loadedDescriptors: loaded.descriptors, kib: before.kib, descriptors: before.descriptors, patches: api.patches.length });
	}
	return { rounds };
}

async function cluster({ api, guest }) {
	addVms(api, CLUSTER_VMS - OUR_VMS, 'other', 'node-b');
	addVms(api, OUR_VMS);
	startAgent();
	await until(30, () => `${guest.websockets.clients.size} monitors connected`, () => guest.websockets.clients.size === OUR_VMS);
	await sleep(2000);
	const atFirst = residentKib();
	let before;
	let most = atFirst;

	for (let i = 0; i < RELISTS; i++) {
		// What is kept for the next list, by the allocator and in the reserve of large blocks, is there by now.
		if (i === 3)
			before = state();

		const lists = api.vmLists;

		// Changes of others' VMs, then an end of the watch that asks for a new list.
		for (let j = 0; j < 500; j++)
			api.put(makeVm({ name: `other-${(i * 500 + j) % (CLUSTER_VMS - OUR_VMS)}`, node: 'node-b', podIP: GUEST, padding: 2000 }));
		await sleep(100);
		api.sendRaw(`${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure',
			message: 'too old resource version', reason: 'Expired', code: 410 } })}\n`);
		await until(30, () => `list ${i}`, () => api.vmLists > lists);
		await sleep(100);
		most = Math.max(most, residentKib());
	}
	await settle(before, `${RELISTS} lists`);
	if (guest.websockets.clients.size !== OUR_VMS)
		fail(`${guest.websockets.clients.size} monitors are connected instead of ${OUR_VMS}`);
	return { lists: api.vmLists, kib: [atFirst, before.kib, most, residentKib()], descriptors: [before.descriptors, descriptors()] };
}

async function main() {
	const api = new Api(SCHEDULER);
	const plugin = new Plugin();
	const guest = new Guest();

	await api.start(folder, `${prefix}.2`);
	await plugin.start(SCHEDULER);
	await guest.start(GUEST);
	try {
		const started = Date.now();
		const figures = await { reconnects, vms, cluster }[mode]({ api, guest });

		console.log(JSON.stringify({ mode, seconds: (Date.now() - started) / 1000, ...figures }));
	} catch (error) {
		fail(error.message);
	}
	if (agent && agent.exitCode === null && agent.signalCode === null) {
		const ended = new Promise((resolve) => agent.on('exit', (code, signal) => resolve(signal || code)));

		agent.kill('SIGTERM');
		const status = await Promise.race([ended, sleep(10000).then(() => 'no end')]);
		if (status !== 0)
			fail(`the agent's end: ${status}`);
		if (status === 'no end')
			agent.kill('SIGKILL');
	} else {
		fail('the agent is gone');
	}
	process.exit(failures === 0 ? 0 : 1);
}

main();
