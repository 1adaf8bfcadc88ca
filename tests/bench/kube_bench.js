// Start times and memory of agent and extender before a real API server. Started by kube_bench.sh:
//
//   node kube_bench.js FOLDER PREFIX API BALLAST PARTS
'use strict';

const fs = require('fs');
const http = require('http');
const { writeConfig } = require('../e2e/agent_peers.js');
const { connect, sleep, spawnTracked, waitFor } = require('../kube/kube_api.js');
const { Parts, VMS, createNode, createVm } = require('../kube/vm_parts.js');

const [folder, prefix, apiUrl, ballast, partsProgram] = process.argv.slice(2);
const call = connect(folder, apiUrl);
const parts = new Parts();
const COUNT = 100; // of nodes, VMs, claims and volumes each
const STARTS = 11;
const NODE_UNITS = 256; // of 250m CPU and 1 GiB
const SETTLE_MS = 15000; // with every VM connected and asked after

function residentKib(pid, name = 'VmRSS') {
	return Number(new RegExp(`${name}:\\s+(\\d+)`).exec(fs.readFileSync(`/proc/${pid}/status`))[1]);
}

// Starts the program, and resolves once it has logged that line.
function start(args, environment, line) {
	const before = process.hrtime.bigint();
	const child = spawnTracked(folder, args[0], ballast, args, { stdio: ['ignore', 'pipe', 'pipe'], env: environment });
	let log = '';

	return new Promise((resolve, reject) => {
		for (const output of [child.stdout, child.stderr])
			output.on('data', (part) => {
				if (child.startMs !== undefined)
					return;
				log += part;
				if (log.includes(line)) {
					child.startMs = Number(process.hrtime.bigint() - before) / 1e6;
					resolve(child);
				}
			});
		child.on('exit', () => reject(new Error(log.slice(-2000))));
	});
}

async function measureStarts(startOne) {
	const times = [];

	for (let i = 0; i < STARTS; i++) {
		const child = await startOne();

		times.push(child.startMs);
		child.kill('SIGTERM');
		await child.ended;
	}
	times.sort((a, b) => a - b);
	return { startLeastMs: times[0], startMedianMs: times[STARTS >> 1] };
}

async function fill() {
	for (const name of ['apps', 'shop'])
		await call('POST', '/api/v1/namespaces', { metadata: { name } });
	await call('POST', '/apis/storage.k8s.io/v1/storageclasses', { metadata: { name: 'bm-hdd' }, provisioner: 'csi-baremetal',
		volumeBindingMode: 'WaitForFirstConsumer', parameters: { storageType: 'HDD' } });
	const nodes = [];

	for (let i = 0; i < COUNT; i++)
		nodes.push(await createNode(call, `node-${i}`, NODE_UNITS));
	await parts.start(partsProgram, folder, prefix, 10);
	for (let i = 0; i < COUNT; i++) {
		await createVm(call, `vm-${i}`, 'node-0');
		await call('POST', '/api/v1/namespaces/shop/persistentvolumeclaims', { metadata: { name: `claim-${i}` }, spec: {
			storageClassName: 'bm-hdd', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } } } });
		await call('POST', '/apis/csi-baremetal.dell.com/v1/namespaces/shop/volumes', { apiVersion: 'csi-baremetal.dell.com/v1',
			kind: 'Volume', metadata: { name: `volume-${i}` }, spec: { Id: `volume-${i}`, NodeId: nodes[i].metadata.uid, Size: 1 } });
	}
	await waitFor('NeonVM starts the VMs', 120, async () => (await call('GET', VMS)).items.every(({ status }) =>
		status && status.phase === 'Running' && status.node));
}

function accountEnvironment(name) {
	const account = `${folder}/${name}-account`;
	const api = new URL(apiUrl);

	fs.mkdirSync(account, { recursive: true });
	fs.copyFileSync(`${folder}/pki/ca.crt`, `${account}/ca.crt`);
	fs.copyFileSync(`${folder}/tokens/${name}`, `${account}/token`);
	return { KUBERNETES_SERVICE_HOST: api.hostname, KUBERNETES_SERVICE_PORT: api.port, BALLAST_SERVICEACCOUNT_DIR: account };
}

async function measureAgent() {
	const config = `${folder}/config.json`;
	const environment = { ...accountEnvironment('agent'), CONFIG_PATH: config, K8S_NODE_NAME: 'node-0', K8S_POD_IP: `${prefix}.1` };
	const startAgent = () => start(['agent', `--listen-address=${prefix}.1`], environment, '"msg":"Entering main loop"');

	writeConfig(config, (c) => { c.monitor.connectionRetryMinWaitSeconds = 1; });
	const figures = await measureStarts(startAgent);
	const agent = await startAgent();

	await waitFor('monitors connected', 60, async () => Object.values((await parts.state()).vms).every((vm) => vm.connected));
	await sleep(SETTLE_MS);
	Object.assign(figures, { residentKib: residentKib(agent.pid), residentMostKib: residentKib(agent.pid, 'VmHWM') });
	agent.kill('SIGTERM');
	await agent.ended;
	return figures;
}

// As schedulers do: whole nodes, or their names.
async function filterCall(nodes, names) {
	const claims = [{ name: 'v', persistentVolumeClaim: { claimName: 'claim-0' } }];
	const body = JSON.stringify({ Pod: { metadata: { name: 'p', namespace: 'shop' }, spec: { volumes: claims } },
		Nodes: names ? null : nodes, NodeNames: names ? nodes.items.map((node) => node.metadata.name) : null });

	return new Promise((resolve, reject) => {
		const request = http.request({ host: `${prefix}.1`, port: 8889, method: 'POST', path: '/filter', agent: false }, (response) => {
			let text = '';

			response.on('data', (part) => { text += part; });
			response.on('end', () => resolve(JSON.parse(text)));
		});

		request.on('error', reject);
		request.end(body);
	});
}

async function measureExtender() {
	const environment = { ...accountEnvironment('extender'), KUBE_NODE_NAME: 'node-0' };
	const startExtender = () => start(['extender', '--provisioner=csi-baremetal', `--listen-address=${prefix}.1`, `--healthip=${prefix}.1`],
		environment, '"msg":"Serving"');
	const figures = await measureStarts(startExtender);
	const nodes = await call('GET', '/api/v1/nodes');
	const extender = await startExtender();

	await sleep(1000);
	figures.residentKib = residentKib(extender.pid);
	for (const names of [false, true]) {
		await waitFor('an answer', 10, async () => (await filterCall(nodes, names)).Error === '');
		for (let i = 0; i < 20; i++) {
			const { Error: error } = await filterCall(nodes, names);

			if (error !== '')
				throw new Error(error);
		}
		figures[names ? 'residentWithNodesKib' : 'residentAfterCallsKib'] = residentKib(extender.pid);
	}
	figures.residentMostKib = residentKib(extender.pid, 'VmHWM');
	extender.kill('SIGTERM');
	await extender.ended;
	return figures;
}

async function main() {
	await fill();
	const agent = await measureAgent();

	await parts.stop();
	console.log(JSON.stringify({ nodes: COUNT, vms: COUNT, agent, extender: await measureExtender() }, null, '\t'));
}

main().then(() => process.exit(0), (error) => {
	console.error(`kube_bench: ${error.stack}`);
	process.exit(1);
});
