// Kubernetes Events: with --kube-events the agent writes what it decided for its VMs, each kind for the VM it concerns; without
// the option it writes none; without the right to, it says so and scales on.
//
//   node agent_events.js BALLAST FOLDER PREFIX
'use strict';

const { spawn } = require('child_process');
const fs = require('fs');
const { Api, Guest, Plugin, agentEnvironment, makeVm, writeConfig } = require('./agent_peers.js');

const [ballast, folder, prefix] = process.argv.slice(2);
const NODE = 'node-a';
const REASONS = { // of each VM
	grows: ['Scaled'],
	refused: ['ScalingFailed'],
	limited: ['UpscaleDenied'],
	holds: ['DownscaleDenied'],
	flaps: ['MonitorLost', 'MonitorBack'],
	silent: ['Stuck', 'Recovered'],
	calm: [],
};

let failures = 0;
let agent; // the process, to be killed in any case

function fail(text) {
	console.error(`agent_events: ${text}`);
	failures++;
}

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

async function waitUntil(what, seconds, condition) {
	for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(0.05)) {
		if (condition())
			return true;
	}
	fail(`not within ${seconds} s: ${what}`);
	return false;
}

// The API server that keeps Events, or refuses them; and that refuses to patch one of the VMs.
class EventApi extends Api {
	constructor(schedulerAddress) {
		super(schedulerAddress);
		this.posts = []; // { path, event }
		this.forbidden = false;
	}

	answer(request, response) {
		if (request.method !== 'POST') {
			super.answer(request, response);
			return;
		}
		let body = '';

		request.on('data', (part) => { body += part; });
		request.on('end', () => {
			const event = JSON.parse(body);

			this.posts.push({ path: request.url, event, type: request.headers['content-type'] });
			if (this.forbidden)
				this.send(response, 403, { kind: 'Status', message: 'events is forbidden', reason: 'Forbidden', code: 403 });
			else
				this.send(response, 201, event);
		});
	}

	patch(name, patch, response) {
		if (name === 'refused')
			this.send(response, 422, { kind: 'Status', message: 'no room on this node', code: 422 });
		else
			super.patch(name, patch, response);
	}

	of(name) {
		return this.posts.map(({ event }) => event).filter((event) => event.involvedObject.name === name);
	}
}

// A vm-monitor that answers as usual but denies what `denies` says, and keeps silent while `silent` says so.
function monitor({ denies = false, silent = () => false }) {
	return (connection) => {
		connection.once('message', () => {
			connection.send('{"version":1}');
			connection.on('message', (data) => {
				const { type, id } = JSON.parse(data.toString());

				if (silent())
					return;
				if (type === 'HealthCheck')
					connection.send(JSON.stringify({ type, id }));
				else if (type === 'DownscaleRequest')
					connection.send(JSON.stringify({ type: 'DownscaleResult', Ok: !denies, Status: 'secret of the guest', id }));
				else if (type === 'UpscaleNotification')
					connection.send(JSON.stringify({ type: 'UpscaleConfirmation', id }));
			});
		});
	};
}

function startAgent(options) {
	const config = `${folder}/config.json`;
	const log = fs.openSync(`${folder}/agent.log`, 'w');

	writeConfig(config, (values) => {
		values.refereshStateIntervalSeconds = 1;
		values.metrics.system = { port: 9100, requestTimeoutSeconds: 1, secondsBetweenRequests: 1 };
		Object.assign(values.monitor, { connectionTimeoutSeconds: 1, connectionRetryMinWaitSeconds: 1, responseTimeoutSeconds: 1,
			retryFailedRequestSeconds: 1, unhealthyAfterSilenceDurationSeconds: 7, unhealthyStartupGracePeriodSeconds: 7 });
		Object.assign(values.scheduler, { requestAtLeastEverySeconds: 5, retryFailedRequestSeconds: 1, retryDeniedUpscaleSeconds: 1 });
		values.neonvm.requestTimeoutSeconds = 2;
		// What fails again and again doesn't make a VM stuck here.
		values.scheduler.maxFailedRequestRate.threshold = values.neonvm.maxFailedRequestRate.threshold = 1000;
	});
	agent = spawn(ballast, ['agent', '--listen-address', `${prefix}.1`, ...options], {
		env: { ...process.env, ...agentEnvironment({ folder, prefix, node: NODE, config }) },
		stdio: ['ignore', 'ignore', log],
	});
	fs.closeSync(log);
	fs.writeFileSync(`${folder}/agent.pid`, `${agent.pid}\n`);
	agent.ended = new Promise((resolve) => agent.on('exit', (code, signal) => resolve(agent.how = signal || code)));
}

async function stopAgent() {
	agent.kill('SIGTERM');
	await Promise.race([agent.ended, sleep(10)]);
	if (agent.how !== 0)
		fail(`the agent's end after SIGTERM: ${agent.how === undefined ? 'it goes on' : agent.how}`);
}

const readLog = () => fs.readFileSync(`${folder}/agent.log`, 'utf8');

function expectForm({ path, event, type }) {
	const vm = event.involvedObject.name;
	const second = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
	const expected = {
		apiVersion: 'v1', kind: 'Event', metadata: event.metadata,
		involvedObject: { apiVersion: 'vm.neon.tech/v1', kind: 'VirtualMachine', namespace: 'apps', name: vm, uid: `uid-${vm}` },
		source: { component: 'autoscaler-agent', host: NODE }, reportingComponent: 'autoscaler-agent', reportingInstance: NODE,
	};

	for (const [key, value] of Object.entries(expected)) {
		if (JSON.stringify(Object.entries(event[key]).sort()) !== JSON.stringify(Object.entries(value).sort()))
			fail(`${key}: ${JSON.stringify(event[key])}`);
	}
	if (path !== '/api/v1/namespaces/apps/events' || type !== 'application/json')
		fail(`posted to ${path} as ${type}`);
	if (event.metadata.namespace !== 'apps' || !new RegExp(`^${vm}\\.[0-9a-f]{1,16}$`).test(event.metadata.name))
		fail(`its metadata: ${JSON.stringify(event.metadata)}`);
	if (!second.test(event.firstTimestamp) || !second.test(event.lastTimestamp) || !/\.\d{6}Z$/.test(event.eventTime))
		fail(`its times: ${event.firstTimestamp}, ${event.lastTimestamp}, ${event.eventTime}`);
	if (JSON.stringify(event).includes('secret of the guest'))
		fail('it has something that a guest said');
}

function expectMessage(api, vm, reason, type, pattern) {
	const event = api.of(vm).find((e) => e.reason === reason);

	if (!event || event.type !== type || !pattern.test(event.message))
		fail(`${reason}: ${JSON.stringify(event)}`);
}

async function main() {
	const api = new EventApi(`${prefix}.3`);
	const plugin = new Plugin();
	const guests = {};
	let silent = false;
	let lastByte = 10;

	for (const name of Object.keys(REASONS)) {
		const address = `${prefix}.${lastByte++}`;

		guests[name] = new Guest();
		guests[name].monitor = monitor({ denies: name === 'holds', silent: () => silent && name === 'silent' });
		await guests[name].start(address);
		api.put(makeVm({ name, node: NODE, podIP: address, units: name === 'holds' ? 4 : 1 }));
	}
	plugin.faults.set('limited-pod', (response, message) => {
		response.end(JSON.stringify({ permit: { vCPUs: '250m', mem: 1024 ** 3 }, migrate: null, asked: message.resources }));
	});
	await plugin.start(`${prefix}.3`);
	await api.start(folder, `${prefix}.2`);

	console.log('== without the option');
	startAgent([]);
	guests.grows.load = 0.9;
	await waitUntil('grows is patched', 20, () => api.patches.some(({ name }) => name === 'grows'));
	await sleep(1);
	if (api.posts.length > 0)
		fail(`without --kube-events: ${JSON.stringify(api.posts[0])}`);
	await stopAgent();

	console.log('== with it');
	startAgent(['--kube-events']);
	for (const name of ['refused', 'limited'])
		guests[name].load = 0.9;
	guests.grows.load = 1.8;
	await waitUntil('all are connected', 10, () => Object.values(guests).every(
		(guest) => guest.websockets.clients.size > 0));
	await sleep(1);
	silent = true;
	for (const connection of guests.flaps.websockets.clients)
		connection.terminate();
	await waitUntil('silent is stuck', 25, () => api.of('silent').some(({ reason }) => reason === 'Stuck'));
	silent = false;
	for (const [name, reasons] of Object.entries(REASONS)) {
		await waitUntil(`the events of ${name}`, 25, () => reasons.every((r) => api.of(name).some(({ reason }) => reason === r)));
		if (name !== 'silent' && api.of(name).some(({ reason }) => !reasons.includes(reason)))
			fail(`${name}: ${api.of(name).map(({ reason }) => reason)}`);
	}
	api.posts.forEach(expectForm);
	expectMessage(api, 'grows', 'Scaled', 'Normal', /^Scaled from 1 CPU and 4Gi of memory to 2 CPU and 8Gi of memory$/);
	expectMessage(api, 'refused', 'ScalingFailed', 'Warning', /^Can't scale from 0.25 CPU .* to 1 CPU .*: no room on this node$/);
	expectMessage(api, 'limited', 'UpscaleDenied', 'Warning', /permits 0.25 CPU and 1Gi of memory of the 1 CPU and 4Gi of memory/);
	expectMessage(api, 'holds', 'DownscaleDenied', 'Normal', /^The vm-monitor denied to scale from 1 CPU .* to 0/);
	expectMessage(api, 'silent', 'Stuck', 'Warning', /monitor health check failed/);
	expectMessage(api, 'silent', 'Recovered', 'Normal', /./);
	// `refused` is tried again and again; its minute isn't over.
	for (const name of Object.keys(REASONS)) {
		const reasons = api.of(name).map(({ reason }) => reason);

		if (new Set(reasons).size !== reasons.length)
			fail(`${name}: more than one of a kind within a minute: ${reasons}`);
	}
	await stopAgent();

	console.log('== without the right to');
	const patches = api.patches.length;

	api.posts = [];
	api.forbidden = true;
	startAgent(['--kube-events']);
	await waitUntil('the missing rule is named', 20, () => readLog().includes('resources: [events], verbs: [create]'));
	guests.calm.load = 0.9;
	await waitUntil('calm is scaled', 20, () => api.patches.slice(patches).some(({ name }) => name === 'calm'));
	await sleep(1);
	if (api.posts.length === 0 || api.posts.length > 4 || api.of('calm').length > 0)
		fail(`after a 403 it goes on: ${api.posts.length} posts`);
	await stopAgent();
}

main().then(() => {
	process.exit(failures > 0 ? 1 : 0);
}, (error) => {
	console.error(error);
	if (agent)
		agent.kill('SIGKILL');
	process.exit(1);
});
