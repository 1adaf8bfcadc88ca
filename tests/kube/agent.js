// The agent against a real API server, with the rights of deploy/agent-events and nothing more; VMs, their monitors, the scheduler plugin and
// NeonVM's controller are played here. Started by agent.sh:
//
//   node agent.js FOLDER PREFIX API BALLAST CONTROL
//
// FOLDER has pki/ca.crt and tokens/peers; CONTROL is a script: `CONTROL restart`, `CONTROL compact` act on the control plane,
// `CONTROL token FILE` writes a fresh token of the agent's service account after making the old one worthless.
'use strict';

const fs = require('fs');
const path = require('path');
const { execFileSync, spawn } = require('child_process');
const { Guest, Plugin, makeVm, writeConfig } = require('../e2e/agent_peers.js');
const { connect, sleep, waitFor } = require('./kube_api.js');

const [folder, prefix, apiUrl, ballast, control] = process.argv.slice(2);
const api = new URL(apiUrl);
const call = connect(folder, apiUrl);
const VM_COUNT = 6;
const VMS = '/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines';

// ---- the VMs, and the controller that carries out what is asked of them ----

const guests = new Map();
const addressOf = (index) => `${prefix}.${100 + index}`;

async function createVm(index, node = 'node-a', units = 1) {
	const vm = makeVm({ name: `vm-${index}`, node, podIP: addressOf(index), units });
	const { status } = vm;

	delete vm.status;
	vm.metadata = { name: vm.metadata.name, labels: vm.metadata.labels };
	const created = await call('POST', VMS, vm);

	await call('PUT', `${VMS}/vm-${index}/status`, { ...created, status });
	if (!guests.has(index)) {
		const guest = new Guest();

		await guest.start(addressOf(index));
		guests.set(index, guest);
	}
}

// By polling: a watch here would be one more thing that breaks when the server goes.
let controllerRuns = true;

async function controller() {
	while (controllerRuns) {
		try {
			for (const vm of (await call('GET', VMS)).items) {
				const { cpus, memorySlots } = vm.spec.guest;
				const wanted = { cpus: cpus.use, memorySize: `${memorySlots.use}Gi` };

				if (!vm.status || (vm.status.cpus === wanted.cpus && vm.status.memorySize === wanted.memorySize))
					continue;
				await call('PUT', `${VMS}/${vm.metadata.name}/status`,
					{ ...vm, status: { ...vm.status, ...wanted, currentRevision: vm.spec.targetRevision } });
			}
		} catch {
			// The server is away, or somebody else was faster.
		}
		await sleep(150);
	}
}

const unitsOf = async (index) => {
	const { cpus, memorySlots } = (await call('GET', `${VMS}/vm-${index}`)).spec.guest;
	const milli = String(cpus.use).endsWith('m') ? parseInt(cpus.use, 10) : Number(cpus.use) * 1000;

	return milli === memorySlots.use * 250 ? memorySlots.use : `${cpus.use}/${memorySlots.use}`;
};

async function expectUnits(what, index, units, seconds = 20) {
	await waitFor(`${what}: vm-${index} at ${units} units`, seconds, async () => {
		const found = await unitsOf(index);

		if (found !== units)
			throw new Error(`it has ${found}`);
		return true;
	});
	console.log(`   ${what}: vm-${index} has ${units} units`);
}

// ---- the agent ----

let agent;
let agentEnd; // its exit status
let log = '';

function startAgent(more = { KUBERNETES_SERVICE_HOST: api.hostname, KUBERNETES_SERVICE_PORT: api.port,
	BALLAST_SERVICEACCOUNT_DIR: `${folder}/account` }) {
	const config = `${folder}/config.json`;

	writeConfig(config, (c) => {
		c.metrics.system.secondsBetweenRequests = 1;
		c.scheduler.requestAtLeastEverySeconds = 2;
		c.monitor.connectionRetryMinWaitSeconds = 1;
		c.monitor.retryDeniedDownscaleSeconds = 1;
	});
	agent = spawn(ballast, ['agent', '--kube-events', `--listen-address=${prefix}.1`], { stdio: ['ignore', 'ignore', 'pipe'], env: {
		CONFIG_PATH: config, K8S_NODE_NAME: 'node-a', K8S_POD_IP: `${prefix}.1`, ...more } });
	agent.stderr.on('data', (part) => { log += part; });
	agentEnd = new Promise((resolve) => { agent.on('exit', resolve); });
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
async function expectEvent(index, reason) {
	const { metadata } = await call('GET', `${VMS}/vm-${index}`);
	const fields = `involvedObject.kind=VirtualMachine,involvedObject.name=vm-${index},involvedObject.uid=${metadata.uid},reason=${reason}`;
	const event = await waitFor(`an Event: vm-${index}, ${reason}`, 10, async () => {
		const { items } = await call('GET', `/api/v1/namespaces/apps/events?fieldSelector=${encodeURIComponent(fields)}`);

		return items[0];
	});

	if (event.type !== 'Normal' || event.count < 1 || event.source.host !== 'node-a' || !/^Scaled from 0.25 CPU/.test(event.message))
		throw new Error(`the Event is odd: ${JSON.stringify(event)}`);
	console.log(`   Event of vm-${index}: ${event.reason}: ${event.message}`);
}

const connections = (index) => guests.get(index).monitorConnections;

async function course(plugin) {
	console.log('== VMs follow their load');
	for (let i = 0; i < VM_COUNT; i++)
		await createVm(i);
	await createVm(9, 'node-b');
	startAgent();
	await waitFor('the agent reaches its main loop', 10, () => log.includes('"msg":"Entering main loop"'));
	await waitFor('monitors connected', 15, () => [0, 1, 2, 3, 4, 5].every((i) => connections(i) > 0));
	guests.get(0).load = 0.9; // 4 units: 0.9 / 0.9 / 0.25
	guests.get(1).load = 1.8;
	await expectUnits('load rises', 0, 4);
	await expectUnits('load rises', 1, 8);
	guests.get(0).load = 0.1;
	await expectUnits('load falls', 0, 1);
	await expectEvent(0, 'Scaled');
	await expectEvent(1, 'Scaled');
	if (guests.get(9).scrapes > 0)
		throw new Error('a VM of another node was scraped');
	noRightIsMissing();

	console.log('== deleted, and created anew');
	const before = connections(2);

	await call('DELETE', `${VMS}/vm-2`);
	await sleep(1500);
	await createVm(2);
	await waitFor('a new runner', 20, () => connections(2) > before);
	guests.get(2).load = 0.45;
	await expectUnits('created anew', 2, 2);

	console.log('== the API server is restarted in mid-watch, after etcd forgot old versions');
	// Versions go on without the agent hearing of it: it must list again.
	for (let i = 0; i < 20; i++)
		await call('POST', '/api/v1/namespaces/apps/configmaps', { metadata: { generateName: 'noise-' } });
	execFileSync(control, ['compact']);
	startedAnew.from = Date.now() / 1000;
	execFileSync(control, ['restart']);
	startedAnew.to = Date.now() / 1000 + 3;
	guests.get(3).load = 0.9;
	await expectUnits('after the restart', 3, 4, 60);
	await waitFor('old versions were refused', 5, () => /too old|Expired|410/.test(log) || /relist/i.test(log));
	noRightIsMissing();

	console.log('== a token that is worthless is replaced');
	execFileSync(control, ['token', `${folder}/account/token`]);
	guests.get(4).load = 0.9;
	await expectUnits('with the new token', 4, 4, 90);

	console.log('== a VM moves to another node, and back');
	let vm = await call('GET', `${VMS}/vm-5`);

	await call('PUT', `${VMS}/vm-5/status`, { ...vm, status: { ...vm.status, node: 'node-b' } });
	await sleep(2500);
	const scrapes = guests.get(5).scrapes;

	await sleep(2500);
	if (guests.get(5).scrapes !== scrapes)
		throw new Error('a VM that has left is still scraped');
	vm = await call('GET', `${VMS}/vm-5`);
	await call('PUT', `${VMS}/vm-5/status`, { ...vm, status: { ...vm.status, node: 'node-a' } });
	guests.get(5).load = 0.9;
	await expectUnits('back again', 5, 4, 30);
	noRightIsMissing();

	console.log('== it ends in good order');
	agent.kill('SIGTERM');
	if (await agentEnd !== 0)
		throw new Error(`status ${await agentEnd}`);
	console.log(`   ${plugin.requests} plugin requests`);
}

// Two files, of which the second is JSON; the certificate runs out, and is replaced after its key.
async function byKubeconfig() {
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
	guests.get(0).load = 0.9;
	await waitFor('a certificate that has run out is refused', 20, () => /Unauthorized|Unable to use the new client certificate/.test(log));
	fs.renameSync(`${folder}/new.crt`, `${folder}/outside/agent.crt`);
	await expectUnits('with a new certificate', 0, 4);
	if (!log.includes('The client certificate has changed'))
		throw new Error('nothing is said of the new certificate');
	agent.kill('SIGKILL');
	await agentEnd;
}

// Every right in deploy/agent-events is used: without it, the agent says which one it lacks.
async function everyRightIsNeeded() {
	const group = '/apis/rbac.authorization.k8s.io/v1';
	const roles = [`${group}/clusterroles/autoscaler-agent`, `${group}/clusterroles/autoscaler-agent-events`,
		`${group}/namespaces/kube-system/roles/autoscaler-agent`];

	for (const where of roles) {
		const role = await call('GET', where);

		for (const rule of role.rules) {
			for (const resource of rule.resources) {
				for (const verb of rule.verbs) {
					const rest = { ...rule, verbs: rule.verbs.filter((v) => v !== verb) };
					const rules = role.rules.map((r) => (r === rule ? rest : r)).filter(({ verbs }) => verbs.length > 0);

					await call('PATCH', where, { rules }, 'application/merge-patch+json');
					await sleep(500);
					log = '';
					startAgent();
					for (const guest of guests.values())
						guest.load = guest.load > 0.5 ? 0.1 : 0.9;
					await waitFor(`complaint about a missing right to ${verb} ${resource}`, 30,
						() => log.includes(`cannot ${verb} resource \\"${resource}\\"`));
					console.log(`   without the right to ${verb} ${resource} it says so`);
					agent.kill('SIGKILL');
					await agentEnd;
				}
			}
		}
		await call('PATCH', where, { rules: role.rules }, 'application/merge-patch+json');
	}
}

async function main() {
	const plugin = new Plugin();

	await call('POST', '/api/v1/namespaces', { metadata: { name: 'apps' } });
	await plugin.start(`${prefix}.3`);
	const pod = { metadata: { name: 'autoscale-scheduler-1', namespace: 'kube-system', labels: { name: 'autoscale-scheduler' } },
		spec: { containers: [{ name: 'scheduler', image: 'none' }] } };
	const created = await call('POST', '/api/v1/namespaces/kube-system/pods', pod);

	await call('PUT', '/api/v1/namespaces/kube-system/pods/autoscale-scheduler-1/status', { ...created, status: {
		phase: 'Running', podIP: `${prefix}.3`, podIPs: [{ ip: `${prefix}.3` }], conditions: [{ type: 'Ready', status: 'True' }] } });
	controller();
	await course(plugin);
	console.log('== from outside, by a kubeconfig');
	await byKubeconfig();
	console.log('== every right is needed');
	await everyRightIsNeeded();
}

main().then(() => process.exit(0), (error) => {
	console.error(`agent.js: ${error.message}`);
	console.error(log.split('\n').slice(-25).join('\n'));
	if (agent)
		agent.kill('SIGKILL');
	process.exit(1);
});
