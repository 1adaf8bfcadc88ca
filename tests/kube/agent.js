// The agent against a real API server, with the rights of deploy/agent-events and nothing more; VMs with their monitors, NeonVM and the
// scheduler plugin are the sandbox's, played by kube.vm_parts. Started by agent.sh:
//
//   node agent.js FOLDER PREFIX API BALLAST CONTROL PARTS
//
// FOLDER has pki/ca.crt, tokens/peers and peers.kubeconfig. CONTROL is a script: `CONTROL stop`, `CONTROL start` do so to the API server,
// `CONTROL compact` makes etcd forget the past, `CONTROL token FILE` writes a fresh token of the agent's service account after making the
// old one worthless, `CONTROL certificate NAME SECONDS` a client certificate of it. PARTS is kube.vm_parts.
'use strict';

const fs = require('fs');
const http = require('http');
const { execFileSync } = require('child_process');
const { writeConfig } = require('../e2e/agent_peers.js');
const { connect, sleep, spawnTracked, waitFor } = require('./kube_api.js');
const { checkQueries } = require('./queries.js');
const { Parts, VMS, createNode, createVm } = require('./vm_parts.js');

const [folder, prefix, apiUrl, ballast, control, partsProgram] = process.argv.slice(2);
const api = new URL(apiUrl);
const call = connect(folder, apiUrl);
const parts = new Parts();
const OURS = ['vm-0', 'vm-1', 'vm-2', 'vm-3', 'vm-4', 'vm-5']; // on node-a, where the agent is
const NODE_UNITS = 20; // of node-a: not enough for all that they may want
const SPEED = 10; // of NeonVM and plugin

// ---- the VMs ----

const get = (name) => call('GET', `${VMS}/${name}`);
const isRunning = (vm) => vm.status && vm.status.phase === 'Running' && vm.status.node !== undefined;

// The size of a VM in units, if all agree on it: what the spec wants, what NeonVM says of it and what the guest has.
async function unitsOf(name) {
	const { spec: { guest }, status } = await get(name);
	const { cpuMilli, memoryBytes } = await parts.vm(name);
	const units = guest.memorySlots.use;
	const cpus = [guest.cpus.use, status.cpus].map((cpu) => (String(cpu).endsWith('m') ? parseInt(cpu, 10) : Number(cpu) * 1000));

	return cpus.every((cpu) => cpu === units * 250) && status.memorySize === `${units}Gi` && cpuMilli === units * 250 &&
		memoryBytes === units * 1024 ** 3 && status.phase === 'Running' ? units
		: `${guest.cpus.use}/${units}, status ${status.cpus}/${status.memorySize} ${status.phase}, guest ${cpuMilli}/${memoryBytes}`;
}

async function expectUnits(what, name, units, seconds = 30) {
	const begin = Date.now();

	await waitFor(`${what}: ${name} at ${units} units`, seconds, async () => {
		const found = await unitsOf(name);

		if (found !== units)
			throw new Error(`it has ${found}`);
		return true;
	});
	console.log(`   ${what}: ${name} has ${units} units after ${((Date.now() - begin) / 1000).toFixed(1)} s`);
}

async function allConnected() {
	const { vms } = await parts.state();

	return OURS.every((name) => vms[name] && vms[name].connected);
}

// ---- the agent ----

let agent;
let log = '';

function startAgent(more = { KUBERNETES_SERVICE_HOST: api.hostname, KUBERNETES_SERVICE_PORT: api.port,
	BALLAST_SERVICEACCOUNT_DIR: `${folder}/account` }) {
	const config = `${folder}/config.json`;

	writeConfig(config, (c) => {
		c.metrics.system.secondsBetweenRequests = 1;
		c.scheduler.requestAtLeastEverySeconds = 2;
		c.monitor.connectionRetryMinWaitSeconds = 1;
		c.monitor.retryDeniedDownscaleSeconds = 1;
		// Receivers that aren't there, and no room to wait for them: errors and losses are counted.
		const often = { pushEverySeconds: 1, pushRequestTimeoutSeconds: 1, maxBatchSize: 2 };

		Object.assign(c.billing, { collectEverySeconds: 1, accumulateEverySeconds: 2,
			clients: { http: { url: `http://${prefix}.1:9`, ...often } } });
		c.scalingEvents.clients = { s3: { endpoint: `http://${prefix}.1:9`, bucket: 'b', region: 'r', prefixInBucket: 'p', ...often } };
	});
	const args = ['agent', '--kube-events', `--listen-address=${prefix}.1`, '--event-queue-events=3', '--grace=0s'];

	agent = spawnTracked(folder, 'agent', ballast, args, { stdio: ['ignore', 'ignore', 'pipe'], env: {
		AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', CONFIG_PATH: config, K8S_NODE_NAME: 'node-a', K8S_POD_IP: `${prefix}.1`, ...more } });
	agent.stderr.on('data', (part) => { log += part; });
}

function page(port) {
	return new Promise((resolve, reject) => {
		http.get({ host: `${prefix}.1`, port, path: '/metrics', agent: false }, (response) => {
			let text = '';

			response.on('data', (part) => { text += part; });
			response.on('end', () => resolve(text));
		}).on('error', reject);
	});
}

// ---- its rights ----

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const ROLES = [`${RBAC}/clusterroles/autoscaler-agent`, `${RBAC}/clusterroles/autoscaler-agent-events`,
	`${RBAC}/namespaces/kube-system/roles/autoscaler-agent`];

// Whether the server lets the agent do it.
async function isAllowed(role, rule, resource, verb) {
	const { status } = await call('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec: {
		user: 'system:serviceaccount:kube-system:autoscaler-agent',
		resourceAttributes: { verb, group: rule.apiGroups[0], resource, namespace: role.metadata.namespace } } });

	return status.allowed;
}

// Calls use(role, rule, resource, verb) for each right in the roles.
async function forEachRight(use) {
	for (const where of ROLES) {
		const role = await call('GET', where);

		for (const rule of role.rules) {
			for (const resource of rule.resources) {
				for (const verb of rule.verbs)
					await use(role, rule, resource, verb, where);
			}
		}
	}
}

// A server that has just been started refuses while it hasn't read its roles yet.
const startedAnew = { from: 0, to: 0 }; // in seconds since 1970

function noRightIsMissing() {
	const line = log.split('\n').find((l) => {
		const at = /forbidden/i.test(l) ? JSON.parse(l).ts : 0;

		return at > 0 && (at < startedAnew.from || at > startedAnew.to);
	});

	if (line)
		throw new Error(`the agent lacks a right: ${line}`);
}

// As `kubectl describe` looks for them.
async function expectEvent(name, reason) {
	const { metadata } = await get(name);
	const fields = `involvedObject.kind=VirtualMachine,involvedObject.name=${name},involvedObject.uid=${metadata.uid},reason=${reason}`;
	const event = await waitFor(`an Event: ${name}, ${reason}`, 10, async () => {
		const { items } = await call('GET', `/api/v1/namespaces/apps/events?fieldSelector=${encodeURIComponent(fields)}`);

		return items[0];
	});

	if (event.type !== 'Normal' || event.count < 1 || event.source.host !== 'node-a' || !/^Scaled from 0.25 CPU/.test(event.message))
		throw new Error(`the Event is odd: ${JSON.stringify(event)}`);
	console.log(`   Event of ${name}: ${event.reason}: ${event.message}`);
}

// ---- the course of the test ----

async function begin() {
	await call('POST', '/api/v1/namespaces', { metadata: { name: 'apps' } });
	await createNode(call, 'node-a', NODE_UNITS);
	await createNode(call, 'node-b', 64);
	await parts.start(partsProgram, folder, prefix, SPEED);
	for (const name of OURS)
		await createVm(call, name, 'node-a');
	await createVm(call, 'vm-9', 'node-b');
	await waitFor('NeonVM starts the VMs', 20, async () => (await call('GET', VMS)).items.every(isRunning));
	startAgent();
	await waitFor('the agent reaches its main loop', 10, () => log.includes('"msg":"Entering main loop"'));
	await waitFor('monitors connected', 20, allConnected);
}

async function followLoad() {
	console.log('== VMs follow their load');
	await parts.demand('vm-0', 4);
	await parts.demand('vm-1', 8);
	await expectUnits('load rises', 'vm-0', 4);
	await expectUnits('load rises', 'vm-1', 8);

	console.log('== a full node: the plugin grants what there is');
	await parts.demand('vm-3', 8);
	await expectUnits('nothing more is free', 'vm-3', NODE_UNITS - 8 - 4 - 3);
	await waitFor('the plugin denies', 10, async () => (await parts.state()).plugin.denials > 0);
	await parts.demand('vm-1', 1);
	await expectUnits('load falls', 'vm-1', 1);
	await expectUnits('there is room again', 'vm-3', 8);
	await parts.demand('vm-3', 1);

	console.log('== a monitor that needs memory denies to give it back');
	await parts.demand('vm-0', 1, 2);
	await expectUnits('as far as the monitor lets it', 'vm-0', 2);
	const { downscalesDenied } = await parts.vm('vm-0');

	await waitFor('it denies more', 20, async () => (await parts.vm('vm-0')).downscalesDenied > downscalesDenied);
	await expectUnits('still', 'vm-0', 2);
	await parts.demand('vm-0', 1);
	await expectUnits('the monitor agrees', 'vm-0', 1);
	await expectEvent('vm-0', 'Scaled');
	await expectEvent('vm-1', 'Scaled');
	const { vms, plugin } = await parts.state();

	if (vms['vm-9'].scrapes > 0)
		throw new Error('a VM of another node was scraped');
	if (plugin.errors > 0) // later there are some, for pods that have just gone
		throw new Error(`the plugin answers ${plugin.errors} requests with errors`);
	noRightIsMissing();
}

// By now everything that can be counted has happened: a permit in part, a denial, errors of receivers.
async function monitoring() {
	console.log('== what alerts and dashboard ask for');
	await waitFor('all kinds of counters', 30, async () => {
		const text = await page(9100);

		return ['scaling_partial_approvals_total{', 'scaling_full_denials_total{', 'billing_send_errors_total{',
			'scalingevents_send_errors_total{', 'events_dropped_total{', 'scaling_latency_seconds_bucket{'].every((n) => text.includes(n));
	});
	checkQueries('agent', { metrics: await page(9100), 'vm-metrics': await page(9101) });
}

async function createAnew() {
	console.log('== deleted, and created anew');
	const { metadata: { uid }, status: { podName } } = await get('vm-2');
	const before = await parts.vm('vm-2');

	await call('DELETE', `${VMS}/vm-2`);
	await waitFor('NeonVM lets it go', 10, () => get('vm-2').then(() => false, () => true));
	await waitFor('its pod has gone', 10, () => call('GET', `/api/v1/namespaces/apps/pods/${podName}`).then(() => false, () => true));
	await createVm(call, 'vm-2', 'node-a');
	await waitFor('a new runner', 20, async () => (await parts.vm('vm-2')).connections > before.connections);
	if ((await get('vm-2')).metadata.uid === uid || (await parts.vm('vm-2')).podIP === before.podIP)
		throw new Error('it is the same VM');
	await parts.demand('vm-2', 2);
	await expectUnits('created anew', 'vm-2', 2);
}

async function restartServer() {
	console.log('== the API server is restarted in mid-watch, after etcd forgot old versions');
	const before = await parts.vm('vm-2');

	execFileSync(control, ['compact']);
	startedAnew.from = Date.now() / 1000;
	execFileSync(control, ['stop']);
	// NeonVM goes on meanwhile, and its writes wait.
	await parts.migrate('vm-2', 'node-a');
	await waitFor('vm-2 moves within its node', 20, async () => ![before.podIP, ''].includes((await parts.vm('vm-2')).podIP));
	execFileSync(control, ['start']);
	await waitFor('the server knows its roles', 30, async () => {
		const known = [];

		await forEachRight(async (...right) => known.push(await isAllowed(...right)));
		return known.length > 0 && known.every(Boolean);
	});
	startedAnew.to = Date.now() / 1000 + 1;
	await parts.demand('vm-3', 4);
	await expectUnits('after the restart', 'vm-3', 4, 60);
	for (const logger of ['vm-watch', 'watch-schedulers']) {
		const has = (text) => log.split('\n').find((line) => line.includes(`"logger":"autoscaler-agent.${logger}.watch"`) && line.includes(text));

		await waitFor(`${logger} is told that its version is too old`, 60, () => has('"code":410'));
		await waitFor(`${logger} lists anew`, 20, () => has('"msg":"Relist complete'));
		console.log(`   ${logger}: ${JSON.parse(has('"code":410')).error}, listed anew`);
	}
	await waitFor('vm-2 is found where it is now', 30, async () => (await parts.vm('vm-2')).connections > before.connections);
	if (!(await parts.state()).api.repeated)
		throw new Error('nothing was written while the server was away');
	noRightIsMissing();

	console.log('== a token that is worthless is replaced');
	execFileSync(control, ['token', `${folder}/account/token`]);
	await parts.demand('vm-4', 4);
	await expectUnits('with the new token', 'vm-4', 4, 90);
}

async function moveTo(node) {
	await parts.migrate('vm-5', node);
	await waitFor(`vm-5 runs on ${node}`, 20, async () => {
		const vm = await get('vm-5');

		return isRunning(vm) && vm.status.node === node && vm.status.podIP === (await parts.vm('vm-5')).podIP;
	});
}

async function moveAway() {
	console.log('== a VM moves to another node, and back');
	const home = (await get('vm-5')).status.podIP;

	await moveTo('node-b');
	if ((await get('vm-5')).status.podIP === home)
		throw new Error('its address is the same');
	await waitFor('nobody looks after a VM that has left', 20, async () => {
		const { scrapes } = await parts.vm('vm-5');

		await sleep(2500);
		const { scrapes: later, connected } = await parts.vm('vm-5');

		return scrapes === later && !connected;
	});
	await moveTo('node-a');
	await parts.demand('vm-5', 4);
	await expectUnits('back again', 'vm-5', 4);
	noRightIsMissing();
}

async function endWell() {
	console.log('== it ends in good order');
	agent.kill('SIGTERM');
	if (await agent.ended !== 0)
		throw new Error(`status ${await agent.ended}`);
	const { vms, plugin, api: { written, repeated, lists } } = await parts.state();
	const sum = (key) => Object.values(vms).reduce((total, vm) => total + vm[key], 0);

	if (sum('badMessages') > 0)
		throw new Error(`monitors complain: ${JSON.stringify(vms)}`);
	// The plugin keeps its books in the VMs' annotations.
	const approved = (await get('vm-5')).metadata.annotations['internal.autoscaling.neon.tech/resources-approved'];

	if (JSON.parse(approved).mem !== '4Gi')
		throw new Error(`the plugin approved ${approved}`);
	console.log(`   ${sum('patches')} patches; ${plugin.requests} plugin requests, ${plugin.denials} denials; monitors: ${sum('upscales')} upscales, ` +
		`${sum('downscalesApproved')} downscales, ${sum('downscalesDenied')} denied; NeonVM: ${written} writes, ${repeated} repeated, ${lists} lists`);
}

// Two files, of which the second is JSON; the certificate runs out, and is replaced after its key.
async function byKubeconfig() {
	console.log('== from outside, by a kubeconfig');
	const good = 10; // seconds, within which the agent comes up

	fs.mkdirSync(`${folder}/outside`);
	fs.writeFileSync(`${folder}/outside/first`, 'current-context: outside\r\nusers:\r\n- name: agent\r\n' +
		'  user:\r\n    client-certificate: agent.crt\r\n    client-key: agent.key\r\n');
	fs.writeFileSync(`${folder}/second.json`, JSON.stringify({
		clusters: [{ name: 'test', cluster: { server: `${apiUrl}/`, 'certificate-authority-data':
			fs.readFileSync(`${folder}/pki/ca.crt`).toString('base64') } }],
		users: [{ name: 'agent', user: { token: 'of no use' } }],
		contexts: [{ name: 'outside', context: { cluster: 'test', user: 'agent' } }] }, null, '\t'));
	execFileSync(control, ['certificate', `${folder}/outside/agent`, String(good)]);
	const end = Date.now() + good * 1000;

	log = '';
	startAgent({ KUBECONFIG: `${folder}/nowhere:${folder}/outside/first:${folder}/second.json` });
	await waitFor('the agent reaches its main loop', 10, () => log.includes('"msg":"Entering main loop"'));
	execFileSync(control, ['certificate', `${folder}/new`, '3600']);
	await sleep(Math.max(0, end - Date.now()) + 1500);
	fs.renameSync(`${folder}/new.key`, `${folder}/outside/agent.key`);
	await parts.demand('vm-0', 4);
	await waitFor('a certificate that has run out is refused', 20, () => /Unauthorized|Unable to use the new client certificate/.test(log));
	fs.renameSync(`${folder}/new.crt`, `${folder}/outside/agent.crt`);
	await expectUnits('with a new certificate', 'vm-0', 4);
	if (!log.includes('The client certificate has changed'))
		throw new Error('nothing is said of the new certificate');
	agent.kill('SIGKILL');
	await agent.ended;
}

// Every right in deploy/agent-events is used: without it, the agent says which one it lacks.
async function everyRightIsNeeded() {
	let busy = true;

	await forEachRight(async (role, rule, resource, verb, where) => {
		const rest = { ...rule, verbs: rule.verbs.filter((v) => v !== verb) };
		const rules = role.rules.map((r) => (r === rule ? rest : r)).filter(({ verbs }) => verbs.length > 0);

		await call('PATCH', where, { rules }, 'application/merge-patch+json');
		await waitFor(`${verb} ${resource} is forbidden`, 10, async () => !await isAllowed(role, rule, resource, verb));
		log = '';
		startAgent();
		busy = !busy;
		for (const name of OURS)
			await parts.demand(name, busy ? 3 : 1);
		await waitFor(`complaint about a missing right to ${verb} ${resource}`, 30,
			() => log.includes(`cannot ${verb} resource \\"${resource}\\"`));
		console.log(`   without the right to ${verb} ${resource} it says so`);
		agent.kill('SIGKILL');
		await agent.ended;
		await call('PATCH', where, { rules: role.rules }, 'application/merge-patch+json');
		await waitFor(`${verb} ${resource} is allowed again`, 10, () => isAllowed(role, rule, resource, verb));
	});
}

async function main() {
	await begin();
	await followLoad();
	await monitoring();
	await createAnew();
	await restartServer();
	await moveAway();
	await endWell();
	await byKubeconfig();
	console.log('== every right is needed');
	await everyRightIsNeeded();
	const status = await parts.stop();

	if (status !== 0)
		throw new Error(`vm_parts ends with ${status}`);
}

main().then(() => process.exit(0), (error) => {
	console.error(`agent.js: ${error.message}`);
	console.error(log.split('\n').slice(-25).join('\n'));
	if (agent)
		agent.kill('SIGKILL');
	process.exit(1);
});
