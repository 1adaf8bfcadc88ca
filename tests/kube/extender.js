// The extender between a real kube-scheduler and a real API server, with the rights of deploy/extender and nothing more. The
// reservation controller and provisioner are kube.reservation_controller. Started by extender.sh:
//
//   node extender.js FOLDER PREFIX API BALLAST CONTROL CONTROLLER
//
// FOLDER has pki/ca.crt, tokens/ and extender.kubeconfig. CONTROL is a script: `CONTROL scheduler NAME` starts the scheduler anew
// with the configuration NAME, `none` just stops it; `CONTROL nodes-rule` grants what names mode needs besides.
'use strict';

const assert = require('assert').strict;
const fs = require('fs');
const http = require('http');
const { execFileSync } = require('child_process');
const { connect, sleep, spawnTracked, waitFor } = require('./kube_api.js');
const { checkQueries } = require('./queries.js');

const [folder, prefix, apiUrl, ballast, control, controllerProgram] = process.argv.slice(2);
const api = new URL(apiUrl);
const call = connect(folder, apiUrl);
const GROUP = '/apis/csi-baremetal.dell.com/v1';
const RESERVATIONS = `${GROUP}/availablecapacityreservations`;
const PODS = '/api/v1/namespaces/shop/pods';
const CLAIMS = '/api/v1/namespaces/shop/persistentvolumeclaims';
const GIB = 1024 ** 3;

// ---- the cluster ----

async function createNode(name) {
	const node = await call('POST', '/api/v1/nodes', { metadata: { name, labels: { 'kubernetes.io/hostname': name } } });
	const amounts = { cpu: '16', memory: '64Gi', pods: '110' };

	await call('PUT', `/api/v1/nodes/${name}/status`, { ...node, status: {
		capacity: amounts, allocatable: amounts, conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }] } });
	return node.metadata.uid;
}

function createCapacity(name, nodeId, storageClass, gib) {
	return call('POST', `${GROUP}/availablecapacities`, { apiVersion: 'csi-baremetal.dell.com/v1', kind: 'AvailableCapacity',
		metadata: { name }, spec: { Location: `drive-${name}`, NodeId: nodeId, storageClass, Size: gib * GIB } });
}

function createClass(name, storageType) {
	return call('POST', '/apis/storage.k8s.io/v1/storageclasses', { metadata: { name }, provisioner: 'csi-baremetal',
		volumeBindingMode: 'WaitForFirstConsumer', parameters: { storageType } });
}

// claims: [[class, GiB], …]
async function createPod(name, claims) {
	for (const [i, [storageClassName, gib]] of claims.entries())
		await call('POST', CLAIMS, { metadata: { name: `${name}-${i}` }, spec: {
			storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: `${gib}Gi` } } } });
	return call('POST', PODS, { metadata: { name }, spec: { containers: [{ name: 'main', image: 'none' }],
		volumes: claims.map((_, i) => ({ name: `v${i}`, persistentVolumeClaim: { claimName: `${name}-${i}` } })) } });
}

const nodeOf = async (pod) => (await call('GET', `${PODS}/${pod}`)).spec.nodeName;

async function expectNode(pod, nodes, seconds = 40) {
	const begin = Date.now();
	const found = await waitFor(`${pod} gets a node`, seconds, () => nodeOf(pod));

	assert.ok(nodes.includes(found), `${pod} runs on ${found}, not on ${nodes}`);
	for (const { persistentVolumeClaim: { claimName } } of (await call('GET', `${PODS}/${pod}`)).spec.volumes || []) {
		const claim = await call('GET', `${CLAIMS}/${claimName}`);

		assert.equal(claim.status.phase, 'Bound');
		assert.equal(claim.metadata.annotations['volume.kubernetes.io/selected-node'], found);
	}
	console.log(`   ${pod} on ${found} after ${((Date.now() - begin) / 1000).toFixed(1)} s`);
}

// The scheduler looks at pods without a node again when something in the cluster changes, which here nothing does by itself; else
// after a minute.
let changing = true;

async function keepChanging() {
	for (let i = 0; ; i++) {
		if (changing)
			await call('PATCH', '/api/v1/nodes/node-a', { metadata: { labels: { turn: String(i) } } }, 'application/merge-patch+json')
				.catch(() => {});
		await sleep(700);
	}
}

// ---- the extender ----

let extender;
let extenderEnd;
let log = '';

function startExtender(flags = [], environment = {}) {
	log = '';
	extender = spawnTracked(folder, 'extender', ballast,
		['extender', '--provisioner=csi-baremetal', `--listen-address=${prefix}.1`, `--healthip=${prefix}.1`, ...flags],
		{ stdio: ['ignore', 'pipe', 'inherit'], env: { KUBE_NODE_NAME: 'node-a', KUBERNETES_SERVICE_HOST: api.hostname,
			KUBERNETES_SERVICE_PORT: api.port, BALLAST_SERVICEACCOUNT_DIR: `${folder}/account`, ...environment } });
	extender.stdout.on('data', (part) => { log += part.toString().replaceAll('\\"', '"'); });
	extenderEnd = new Promise((resolve) => { extender.on('exit', resolve); });
}

async function killExtender(signal = 'SIGKILL') {
	extender.kill(signal);
	return extenderEnd;
}

function ask(method, port, where, body = '') {
	return new Promise((resolve, reject) => {
		const request = http.request({ host: `${prefix}.1`, port, method, path: where, agent: false, timeout: 10000 }, (response) => {
			let text = '';

			response.on('data', (part) => { text += part; });
			response.on('end', () => resolve({ status: response.statusCode, text }));
		});

		request.on('error', reject);
		request.end(body);
	});
}

const isReady = async () => (await ask('GET', 9999, '/readyz')).status === 200;

async function startReady(flags, environment) {
	startExtender(flags, environment);
	await waitFor('the extender is ready', 10, isReady);
}

// A call as the scheduler makes it.
async function filter(podName, byNames = false) {
	const Nodes = await call('GET', '/api/v1/nodes');
	const pod = await call('GET', `${PODS}/${podName}`);
	const { text } = await ask('POST', 8889, '/filter', JSON.stringify(
		{ Pod: pod, Nodes: byNames ? null : Nodes, NodeNames: byNames ? Nodes.items.map((n) => n.metadata.name) : null }));

	return JSON.parse(text);
}

async function series(name, pod) {
	const { text } = await ask('GET', 8889, '/metrics');
	const line = text.split('\n').find((l) => l.startsWith(`${name}{`) && l.includes(`pod_name="${pod}"`));

	return line === undefined ? undefined : Number(line.split(' ')[1]);
}

function noRightIsMissing() {
	const line = log.split('\n').find((l) => /forbidden/i.test(l));

	assert.equal(line, undefined, 'the extender lacks a right');
}

const scheduler = (name) => execFileSync(control, ['scheduler', name], { stdio: ['ignore', 'ignore', 'inherit'] });

// ---- the course ----

async function kubeconfigs() {
	const file = `${folder}/extender.kubeconfig`;
	const outside = { KUBERNETES_SERVICE_HOST: '', KUBERNETES_SERVICE_PORT: '' };

	fs.mkdirSync(`${folder}/home/.kube`, { recursive: true });
	fs.writeFileSync(`${folder}/home/.kube/config`, fs.readFileSync(file, 'utf8').replace('pki/ca.crt', `${folder}/pki/ca.crt`));
	for (const [what, flags, environment] of [
		['--kubeconfig, before all else', [`--kubeconfig=${file}`], { ...outside, KUBECONFIG: '/none' }],
		['KUBECONFIG', [], { KUBECONFIG: file, ...outside, HOME: '/none' }],
		['the service account', [], { HOME: '/none' }],
		['~/.kube/config', [], { ...outside, HOME: `${folder}/home` }],
	]) {
		await startReady(flags, environment);
		assert.equal(await killExtender('SIGTERM'), 0);
		noRightIsMissing();
		console.log(`   ${what}`);
	}
}

async function pods() {
	await startReady();
	scheduler('nodes');
	await createPod('plain', []);
	await createPod('big', [['bm-hdd', 150]]);
	await createPod('group', [['bm-ssdlvg', 10]]);
	await createPod('both', [['bm-hdd', 50], ['bm-ssdlvg', 5]]);
	await createPod('giant', [['bm-hdd', 900]]);
	await expectNode('plain', ['node-a', 'node-b', 'node-c']);
	await expectNode('big', ['node-b']);
	await expectNode('group', ['node-c']);
	await expectNode('both', ['node-c']);
	await waitFor('giant is refused', 30, async () =>
		(await call('GET', `${RESERVATIONS}/shop-giant`)).spec.Status === 'REJECTED');
	// node-b has one of its two big drives left.
	await createPod('big-2', [['bm-hdd', 150]]);
	await createPod('big-3', [['bm-hdd', 150]]);
	const rest = await Promise.race([expectNode('big-2', ['node-b']), expectNode('big-3', ['node-b'])])
		.then(async () => ((await nodeOf('big-2')) ? 'big-3' : 'big-2'));

	await sleep(4000);
	assert.equal(await nodeOf(rest), undefined, `${rest} has a node without a drive`);
	assert.equal(await nodeOf('giant'), undefined);
	console.log(`   ${rest} and giant wait`);
	checkQueries('extender', { metrics: (await ask('GET', 8889, '/metrics')).text });
	noRightIsMissing();
}

async function restart() {
	scheduler('strict');
	await createPod('patient', [['bm-hdd', 60]]);
	await waitFor('a reservation', 20, () => call('GET', `${RESERVATIONS}/shop-patient`));
	await killExtender();
	await createPod('patient-2', [['bm-ssdlvg', 1]]);
	await sleep(3000);
	assert.equal(await nodeOf('patient-2'), undefined, 'a pod was placed without the extender');
	await startReady();
	await expectNode('patient', ['node-a']);
	await expectNode('patient-2', ['node-c']);
	noRightIsMissing();
}

async function waiting() {
	assert.equal(await killExtender('SIGTERM'), 0);
	await startReady(['--wait-for-reservation=2s']);
	scheduler('nodes');
	changing = false;
	await createPod('quick', [['bm-ssdlvg', 2]]);
	await expectNode('quick', ['node-c'], 15);
	assert.equal(await series('schedule_counter', 'quick'), 1);
	console.log('   by one filter call');
	changing = true;
	noRightIsMissing();
}

async function names() {
	const answer = await filter('giant', true);

	assert.match(answer.Error, /may not list/);
	assert.match(answer.Error, /nodes/);
	console.log(`   without the rule: ${answer.Error}`);
	scheduler('none'); // it would place pods without the extender meanwhile
	assert.equal(await killExtender('SIGTERM'), 0);
	execFileSync(control, ['nodes-rule'], { stdio: ['ignore', 'ignore', 'inherit'] });
	await sleep(500);
	await startReady();
	await waitFor('the nodes are known', 10, async () => (await filter('giant', true)).Error === '');
	scheduler('names');
	await createPod('named', [['bm-ssdlvg', 3]]);
	await expectNode('named', ['node-c']);
	noRightIsMissing();
}

// Takes each right away in turn: the extender must say which one it lacks.
async function everyRightIsNeeded() {
	const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles';

	scheduler('none');
	await createPod('fresh', [['bm-hdd', 1]]);
	await waitFor('giant is refused again', 10, async () => (await call('GET', `${RESERVATIONS}/shop-giant`)).spec.Status === 'REJECTED');
	await filter('giant');
	await waitFor('gauges of a pod that waits', 10, async () => await series('schedule_since_last_time', 'giant') > 0 &&
		await series('schedule_total_time', 'giant') > 0);
	noRightIsMissing();
	for (const name of ['ballast-extender', 'ballast-extender-nodes']) {
		const role = await call('GET', `${roles}/${name}`);
		const put = (rules) => call('PATCH', `${roles}/${name}`, { rules }, 'application/merge-patch+json').then(() => sleep(500));

		for (const rule of role.rules) {
			for (const resource of rule.resources) {
				for (const verb of rule.verbs) {
					await put(role.rules.map((r) => (r === rule ? { ...rule, verbs: rule.verbs.filter((v) => v !== verb) } : r))
						.filter((r) => r.verbs.length > 0));
					await killExtender();
					startExtender();
					await withoutRight(verb, resource);
					console.log(`   without the right to ${verb} ${resource} it says so`);
				}
			}
		}
		await put(role.rules);
	}
}

async function withoutRight(verb, resource) {
	const complaint = `cannot ${verb} resource "${resource}"`;
	const complains = () => waitFor(`complaint "${complaint}"`, 20, () => log.includes(complaint));

	if (resource === 'availablecapacityreservations') {
		await waitFor('the extender is ready', 10, isReady);
		assert.ok((await filter(verb === 'update' ? 'giant' : 'fresh')).Error.includes(complaint));
	} else if (resource === 'events') {
		await waitFor('the extender is ready', 10, isReady);
		assert.equal((await filter('giant')).Error, '');
		await complains();
		assert.equal(await series('schedule_counter', 'giant'), 1);
		assert.equal(await series('schedule_since_last_time', 'giant'), undefined);
		assert.equal(await series('schedule_total_time', 'giant'), undefined);
	} else {
		if (resource === 'nodes') { // they are only read once a scheduler sends names
			await waitFor('the extender is ready', 10, isReady);
			await filter('giant', true);
		}
		await complains();
		if (verb === 'list' && resource !== 'nodes')
			await assert.rejects(isReady(), { code: 'ECONNREFUSED' });
	}
}

async function main() {
	await call('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
	const [a, b, c] = [await createNode('node-a'), await createNode('node-b'), await createNode('node-c')];

	for (const [name, node, type, gib] of [['a1', a, 'HDD', 100], ['b1', b, 'HDD', 200], ['b2', b, 'HDD', 200],
		['c1', c, 'HDD', 55], ['c2', c, 'SSDLVG', 500]])
		await createCapacity(name, node, type, gib);
	await createClass('bm-hdd', 'HDD');
	await createClass('bm-ssdlvg', 'SSDLVG');
	console.log('== credentials');
	await kubeconfigs();
	const output = fs.openSync(`${folder}/controller.log`, 'w');
	const controller = spawnTracked(folder, 'reservation_controller', controllerProgram, [`${folder}/peers.kubeconfig`],
		{ stdio: ['ignore', output, output] });

	controller.on('exit', (status, signal) => {
		if (signal !== 'SIGTERM' && status !== 0)
			console.error(`the reservation controller ended: ${status} ${signal}`);
	});
	process.on('exit', () => {
		controller.kill();
		extender.kill('SIGKILL');
	});
	keepChanging();
	for (const [title, part] of [['pods go where their disks fit', pods], ['the extender is killed and started again', restart],
		['--wait-for-reservation', waiting], ['nodeCacheCapable: true', names], ['every right is needed', everyRightIsNeeded]]) {
		console.log(`== ${title}`);
		await part();
	}
}

main().then(() => {
	console.log('extender: all is well');
	process.exit(0);
}, (error) => {
	console.error(`extender.js: ${error.stack}`);
	console.error(log.split('\n').slice(-25).join('\n'));
	process.exit(1);
});
