// Stand-ins for the surroundings of an extender that runs as a process of its own: a Kubernetes API over TLS with the objects of
// the specification's fixture, the controller's answers by hand, and kube-scheduler's calls.
'use strict';

const { spawn } = require('child_process');
const assert = require('assert').strict;
const fs = require('fs');
const http = require('http');
const https = require('https');

const API_PORT = 6443;
const PORT = 8889;
const HEALTH_PORT = 9999;
const GROUP = '/apis/csi-baremetal.dell.com/v1';
const PATHS = {
	claims: '/api/v1/persistentvolumeclaims',
	classes: '/apis/storage.k8s.io/v1/storageclasses',
	volumes: `${GROUP}/volumes`,
	nodes: '/api/v1/nodes',
};
const RESERVATIONS = `${GROUP}/availablecapacityreservations`;
const TOKEN = 'extender-account-token-81c2f0'; // of the service account; looked for in logs and memory
const STORAGE_GROUP = 'drive.csi-baremetal.dell.com/storage-group';

function listen(server, port, address) {
	return new Promise((resolve, reject) => {
		server.once('error', reject);
		server.listen(port, address, resolve);
	});
}

function sleep(ms) {
	return new Promise((resolve) => setTimeout(resolve, ms));
}

// Repeats `test` until it is true.
async function until(what, test, ms = 8000) {
	const end = Date.now() + ms;

	while (!await test()) {
		if (Date.now() > end)
			throw new Error(`${what}: not within ${ms} ms`);
		await sleep(20);
	}
}

function makeStatus(code, reason, message) {
	return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code };
}

// ---- objects of the fixture (specification 18.1) ----

function makeClass(name, provisioner, parameters) {
	return { metadata: { name }, provisioner, ...(parameters ? { parameters } : {}) };
}

function makeClaim(name, { className, storage, phase = 'Pending', labels, namespace = 'shop' }) {
	return {
		metadata: { name, namespace, ...(labels ? { labels } : {}) },
		spec: {
			...(className === undefined ? {} : { storageClassName: className }),
			resources: storage === undefined ? {} : { requests: { storage } },
		},
		status: { phase },
	};
}

const CLASSES = [
	makeClass('bm-hdd', 'csi-baremetal', { storageType: 'hdd' }),
	makeClass('bm-nvmelvg', 'csi-baremetal', { storageType: 'NVMeLVG' }),
	makeClass('bm-default', 'csi-baremetal'),
	makeClass('bm-odd', 'csi-baremetal', { storageType: 'TAPE' }),
	makeClass('nfs', 'nfs.example.com', { storageType: 'HDD' }),
];

const CLAIMS = [
	makeClaim('data-cart-0', { className: 'bm-hdd', storage: '100Gi', labels: { [STORAGE_GROUP]: 'fast' } }),
	makeClaim('logs-cart-0', { className: 'bm-nvmelvg', storage: '1500M' }),
	makeClaim('bound-cart-0', { className: 'bm-hdd', storage: '1Gi', phase: 'Bound' }),
	makeClaim('lost-cart-0', { className: 'bm-hdd', storage: '1Gi', phase: 'Lost' }),
	makeClaim('nfs-cart-0', { className: 'nfs', storage: '1Gi' }),
	makeClaim('nosc', { storage: '1Gi' }),
	makeClaim('emptysc', { className: '', storage: '1Gi' }),
	makeClaim('ghost', { className: 'ghost-sc', storage: '1Gi' }),
	makeClaim('nosize', { className: 'bm-default' }),
	makeClaim('odd', { className: 'bm-odd', storage: '0.5', phase: '' }),
];

const NODE_A = { metadata: { name: 'wk-a', uid: 'uid-a', labels: { bm: 'yes' },
	annotations: { 'nodes.csi-baremetal.dell.com/uuid': 'bm-a', 'corp/id': 'x-a' } } };
const NODE_B = { metadata: { name: 'wk-b', uid: 'uid-b', labels: { bm: 'yes' },
	annotations: { 'nodes.csi-baremetal.dell.com/uuid': 'bm-b' } } };
const NODE_C = { metadata: { name: 'wk-c', uid: 'uid-c', labels: { bm: 'no' } } };
const NOID = { metadata: { name: 'nouid' } };
const ABC = [NODE_A, NODE_B, NODE_C];

// "pod P(x,y)": a pod whose volumes are these claims.
function makePod(name, claims = [], namespace = 'shop') {
	return { metadata: { name, namespace }, spec: { containers: [],
		volumes: claims.map((claimName, i) => ({ name: `v${i}`, persistentVolumeClaim: { claimName } })) } };
}

function makeArgs(pod, nodes = ABC) {
	return { Pod: pod, Nodes: { metadata: {}, items: nodes }, NodeNames: null };
}

// acr(S, req, res)
function makeReservation(name, status, requested, reserved, namespace = 'shop') {
	return {
		kind: 'AvailableCapacityReservation',
		apiVersion: 'csi-baremetal.dell.com/v1',
		metadata: { name, uid: 'u-1', resourceVersion: '77' },
		spec: {
			Namespace: namespace,
			Status: status,
			NodeRequests: { Requested: requested, ...(reserved.length > 0 ? { Reserved: reserved } : {}) },
			ReservationRequests: [{
				CapacityRequest: { Name: 'data-cart-0', StorageClass: 'HDD', Size: 107374182400, StorageGroup: 'fast' },
				Reservations: ['ac-1', 'ac-2'],
			}],
		},
	};
}

function makeVolume(name, nodeId, namespace = 'shop') {
	return { metadata: { name, namespace }, spec: { Id: name, ...(nodeId === '' ? {} : { NodeId: nodeId }) } };
}

// ---- the API ----

class Api {
	constructor() {
		this.kinds = {};
		this.version = 100;
		this.uids = 0;
		for (const kind of Object.keys(PATHS))
			this.kinds[kind] = new Map();
		for (const object of CLASSES)
			this.put('classes', object);
		for (const object of CLAIMS)
			this.put('claims', object);
		this.reservations = new Map();
		this.events = [];
		this.requests = []; // all but lists and watches of caches: { method, path, query, body }
		this.lists = [];    // paths of cache lists
		this.watches = new Set();
		this.fault = null;  // (method, path, query) → { status, body, fields, delay, hang } or nothing
		this.lastVersion = 200;
	}

	async start(folder, address) {
		const options = { key: fs.readFileSync(`${folder}/api.key`), cert: fs.readFileSync(`${folder}/api.crt`) };

		this.address = address;
		this.server = https.createServer(options, (request, response) => this.answer(request, response));
		this.server.keepAliveTimeout = 60000;
		await listen(this.server, API_PORT, address);
	}

	stop() {
		this.server.close();
		this.server.closeAllConnections();
	}

	key(object) {
		return `${object.metadata.namespace || ''}/${object.metadata.name}`;
	}

	put(kind, object) {
		const key = this.key(object);
		const before = this.kinds[kind].get(key);
		const stored = structuredClone(object);

		stored.metadata.uid = before ? before.metadata.uid : object.metadata.uid || `object-${++this.uids}`;
		stored.metadata.resourceVersion = String(++this.version);
		this.kinds[kind].set(key, stored);
		this.tell(kind, before ? 'MODIFIED' : 'ADDED', stored);
	}

	remove(kind, object) {
		const stored = this.kinds[kind].get(this.key(object));

		this.kinds[kind].delete(this.key(object));
		stored.metadata.resourceVersion = String(++this.version);
		this.tell(kind, 'DELETED', stored);
	}

	tell(kind, type, object) {
		for (const watch of this.watches || []) {
			if (watch.kind === kind)
				watch.response.write(`${JSON.stringify({ type, object })}\n`);
		}
	}

	// Ends all watches, as a restarted server does.
	cutWatches() {
		for (const watch of this.watches)
			watch.response.destroy();
	}

	answer(request, response) {
		const parts = [];

		request.on('error', () => {});
		response.on('error', () => {});
		request.on('data', (part) => parts.push(part));
		request.on('end', () => this.dispatch(request, Buffer.concat(parts).toString(), response));
	}

	async dispatch(request, body, response) {
		const url = new URL(request.url, 'https://api');
		const kind = Object.keys(PATHS).find((name) => PATHS[name] === url.pathname);
		const entry = { method: request.method, path: url.pathname, query: decodeURIComponent(url.search.slice(1)),
			body: body ? JSON.parse(body) : null, response };
		const fault = this.fault && this.fault(entry.method, entry.path, entry.query);

		if (kind)
			this.lists.push(`${url.searchParams.get('watch') === 'true' ? 'watch' : 'list'} ${kind}`);
		else
			this.requests.push(entry);
		if (request.headers.authorization !== `Bearer ${TOKEN}`) {
			this.send(response, 401, makeStatus(401, 'Unauthorized', 'Unauthorized'));
			return;
		}
		if (fault) {
			if (fault.delay)
				await sleep(fault.delay);
			if (fault.hang)
				return;
			if (fault.status) {
				this.send(response, fault.status, fault.body, fault.fields);
				return;
			}
		}
		if (kind && url.searchParams.get('watch') === 'true')
			this.watch(kind, url.searchParams.get('resourceVersion'), response);
		else if (kind)
			this.list(kind, url, response);
		else if (url.pathname.endsWith('/events'))
			this.send(response, 200, { items: this.events, metadata: {} });
		else if (url.pathname === RESERVATIONS && request.method === 'POST')
			this.create(entry.body, response);
		else if (url.pathname.startsWith(`${RESERVATIONS}/`))
			this.readOrReplace(entry, response);
		else
			this.send(response, 404, makeStatus(404, 'NotFound', 'the server could not find the requested resource'));
	}

	send(response, status, object, fields = {}) {
		response.writeHead(status, { 'Content-Type': 'application/json', ...fields });
		response.end(JSON.stringify(object));
	}

	list(kind, url, response) {
		const limit = Number(url.searchParams.get('limit')) || Infinity;
		const start = Number(url.searchParams.get('continue')) || 0;
		const all = [...this.kinds[kind].values()];
		const more = start + limit < all.length;

		this.send(response, 200, { kind: 'List', apiVersion: 'v1', items: all.slice(start, start + limit),
			metadata: { resourceVersion: String(this.version), ...(more ? { continue: String(start + limit) } : {}) } });
	}

	// Nothing is kept for those who missed it: they must list again.
	watch(kind, version, response) {
		const watch = { kind, response };

		if (version !== String(this.version)) {
			this.send(response, 410, makeStatus(410, 'Expired', 'too old resource version'));
			return;
		}
		response.writeHead(200, { 'Content-Type': 'application/json' });
		response.flushHeaders();
		this.watches.add(watch);
		response.on('close', () => this.watches.delete(watch));
	}

	create(object, response) {
		const name = object.metadata.name;

		if (this.reservations.has(name)) {
			this.send(response, 409, makeStatus(409, 'AlreadyExists',
				`availablecapacityreservations.csi-baremetal.dell.com "${name}" already exists`));
			return;
		}
		this.store(object);
		this.send(response, 201, this.reservations.get(name));
	}

	store(object) {
		const stored = structuredClone(object);

		stored.metadata.uid = stored.metadata.uid || `acr-${++this.uids}`;
		stored.metadata.resourceVersion = String(++this.lastVersion);
		this.reservations.set(stored.metadata.name, stored);
	}

	// As it is, resource version included.
	seed(object) {
		this.reservations.set(object.metadata.name, structuredClone(object));
	}

	readOrReplace(entry, response) {
		const name = decodeURIComponent(entry.path.split('/').pop());
		const stored = this.reservations.get(name);

		if (!stored) {
			this.send(response, 404, makeStatus(404, 'NotFound',
				`availablecapacityreservations.csi-baremetal.dell.com "${name}" not found`));
		} else if (entry.method === 'GET') {
			this.send(response, 200, stored);
		} else if (entry.body.metadata.resourceVersion !== stored.metadata.resourceVersion) {
			this.send(response, 409, conflict(name));
		} else {
			this.store(entry.body);
			this.send(response, 200, this.reservations.get(name));
		}
	}

	// The reservation requests since the last call, as "GET name", "POST name", …; `bodies` has those of writes.
	takeRequests() {
		const taken = this.requests.filter((entry) => !entry.path.endsWith('/events'));

		this.requests = this.requests.filter((entry) => entry.path.endsWith('/events'));
		return {
			lines: taken.map((entry) => `${entry.method} ${entry.body ? entry.body.metadata.name : entry.path.split('/').pop()}`),
			bodies: taken.filter((entry) => entry.body).map((entry) => entry.body),
		};
	}
}

function conflict(name) {
	return makeStatus(409, 'Conflict', `Operation cannot be fulfilled on availablecapacityreservations.csi-baremetal.dell.com "${name}": ` +
		'the object has been modified; please apply your changes to the latest version and try again');
}

// ---- the extender ----

class Extender {
	constructor({ program, folder, prefix, apiAddress, flags = [], environment = {} }) {
		this.address = `${prefix}.1`;
		this.log = '';
		fs.mkdirSync(`${folder}/account`, { recursive: true });
		fs.copyFileSync(`${folder}/api.crt`, `${folder}/account/ca.crt`);
		fs.writeFileSync(`${folder}/account/token`, `${TOKEN}\n`);
		this.child = spawn(program, ['extender', '--namespace=default', '--provisioner=csi-baremetal', `--port=${PORT}`,
			`--healthport=${HEALTH_PORT}`, `--healthip=${this.address}`, `--listen-address=${this.address}`,
			'--certFile=', '--privateKeyFile=', ...flags], {
			env: { PATH: process.env.PATH, KUBE_NODE_NAME: 'cp-1', KUBERNETES_SERVICE_HOST: apiAddress,
				KUBERNETES_SERVICE_PORT: String(API_PORT), BALLAST_SERVICEACCOUNT_DIR: `${folder}/account`,
				...(process.env.ASAN_OPTIONS ? { ASAN_OPTIONS: process.env.ASAN_OPTIONS } : {}),
				...(process.env.UBSAN_OPTIONS ? { UBSAN_OPTIONS: process.env.UBSAN_OPTIONS } : {}), ...environment },
			stdio: ['ignore', 'pipe', 'pipe'],
		});
		this.child.stdout.on('data', (data) => { this.log += data; });
		this.child.stderr.on('data', (data) => { this.log += data; });
		this.ended = new Promise((resolve) => this.child.on('close', (code, signal) => resolve(signal || code)));
		this.agent = new http.Agent({ keepAlive: true });
	}

	// Health answers once the extender serves.
	async ready() {
		let over = false;

		this.ended.then(() => { over = true; });
		await until('the extender gets ready', async () => {
			if (over)
				throw new Error(`the extender ended: ${this.log}`);
			const { status } = await this.health('/healthz').catch(() => ({}));

			return status === 200;
		}, 15000);
	}

	request(port, path, body, { method = 'POST', headers = {}, agent = this.agent, protocol = http, ...more } = {}) {
		return new Promise((resolve, reject) => {
			const request = protocol.request({ host: this.address, port, path, method, agent, ...more,
				headers: { ...(body === null ? {} : { 'Content-Length': Buffer.byteLength(body) }), ...headers } }, (response) => {
				const parts = [];

				response.on('data', (part) => parts.push(part));
				response.on('error', reject);
				response.on('end', () => resolve({ status: response.statusCode, headers: response.headers,
					body: Buffer.concat(parts).toString() }));
			});

			request.on('error', reject);
			request.end(body === null ? undefined : body);
		});
	}

	health(path) {
		return this.request(HEALTH_PORT, path, null, { method: 'GET', agent: undefined });
	}

	ask(path, body, options) {
		return this.request(PORT, path, body === null || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body), options);
	}

	async filter(args, options) {
		const { status, headers, body } = await this.ask('/filter', args, options);

		if (status !== 200 || headers['content-type'] !== 'application/json' || !body.endsWith('\n'))
			throw new Error(`filter: ${status} ${headers['content-type']} ${body.slice(0, 500)}`);
		return JSON.parse(body);
	}

	async prioritize(args) {
		const { body } = await this.ask('/prioritize', args);

		return JSON.parse(body);
	}

	async metrics() {
		return (await this.ask('/metrics', null, { method: 'GET' })).body;
	}

	async stop(signal = 'SIGTERM') {
		this.child.kill(signal);
		this.agent.destroy();
		const code = await this.ended;

		// At no level does the log tell a secret, and the filter refuses nothing that is needed.
		assert.ok(!this.log.includes(TOKEN), 'the token is in the log');
		assert.ok(!/operation not permitted/i.test(this.log), this.log);
		return code;
	}
}

// ---- answers (specification J2) ----

function result(nodes, error = '', failed = null) {
	return { Nodes: nodes, NodeNames: null, FailedNodes: failed, FailedAndUnresolvableNodes: null, Error: error };
}

const RETRY = result(null);
const PENDING = result({ metadata: {}, items: null });

function failA(error) {
	return result(null, error);
}

function failB(error) {
	return result({ metadata: {}, items: null }, error);
}

function matched(items, failed) {
	return result({ metadata: {}, items }, '', failed);
}

// ---- running tests ----

// Runs each of an object's functions in order; a failure is told and counted. Exits with 0 if all is well.
async function runTests(tests, scene) {
	let failures = 0;

	for (const [name, test] of Object.entries(tests)) {
		try {
			await test(scene);
		} catch (error) {
			failures++;
			console.log(`${name}: ${error.stack}`);
		}
	}
	return failures;
}

module.exports = { ABC, API_PORT, Api, CLAIMS, CLASSES, Extender, GROUP, HEALTH_PORT, NODE_A, NODE_B, NODE_C, NOID, PENDING, PORT,
	RESERVATIONS, RETRY, STORAGE_GROUP, TOKEN, conflict, failA, failB, makeArgs, makeClaim, makeClass, makePod, makeReservation, makeStatus,
	makeVolume, matched, result, runTests, sleep, until };
