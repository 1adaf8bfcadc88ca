// Stand-ins for the peers of an agent that runs as a process of its own: a Kubernetes API over TLS, the scheduler plugin, and
// guests with a metrics page and a vm-monitor. They behave well unless a test says otherwise; those that misbehave are the reason
// why they exist beside the sandbox.
//
// As a program, an API without VMs, which ends with its standard input:
//
//   node agent_peers.js FOLDER PREFIX     FOLDER has api.crt and api.key; listens on PREFIX.2:6443; prints "ready"
'use strict';

const fs = require('fs');
const http = require('http');
const https = require('https');
const path = require('path');
const WebSocket = require(path.join(__dirname, '..', 'npm', 'node_modules', 'ws'));

const API_PORT = 6443;
const PLUGIN_PORT = 10299;
const METRICS_PORT = 9100;
const MONITOR_PORT = 10301;
const VM_PATH = '/apis/vm.neon.tech/v1/virtualmachines';
const POD_PATH = '/api/v1/namespaces/kube-system/pods';
const GIB = 1024 ** 3;

// A running VirtualMachine with scaling enabled: 1 to 8 units of 250m and 1 GiB, using `units`.
function makeVm({ name, node, podIP, units = 1, namespace = 'apps', padding = 0 }) {
	return {
		apiVersion: 'vm.neon.tech/v1',
		kind: 'VirtualMachine',
		metadata: {
			name,
			namespace,
			uid: `uid-${name}`,
			resourceVersion: '1',
			creationTimestamp: '2026-01-01T00:00:00Z',
			labels: { 'autoscaling.neon.tech/enabled': 'true', 'neon/endpoint-id': `ep-${name}` },
			annotations: padding > 0 ? { 'example.com/padding': 'x'.repeat(padding) } : {},
		},
		spec: {
			schedulerName: 'autoscale-scheduler',
			guest: {
				cpus: { min: '250m', max: 2, use: `${250 * units}m` },
				memorySlotSize: '1Gi',
				memorySlots: { min: 1, max: 8, use: units },
			},
		},
		status: {
			phase: 'Running',
			node,
			podName: `${name}-pod`,
			podIP,
			cpus: `${250 * units}m`,
			memorySize: `${units}Gi`,
			restartCount: 0,
		},
	};
}

function listen(server, port, address) {
	return new Promise((resolve, reject) => {
		server.once('error', reject);
		server.listen(port, address, () => resolve(server));
	});
}

function end(server) {
	server.close();
	server.closeAllConnections();
}

function readBody(request, done) {
	const parts = [];

	request.on('data', (part) => parts.push(part));
	request.on('end', () => done(Buffer.concat(parts).toString()));
}

// VMs and the scheduler's pod, by list (in pages, if asked for) and watch; patches are carried out.
class Api {
	constructor(schedulerAddress) {
		this.vms = new Map();
		this.pods = schedulerAddress ? [this.schedulerPod(schedulerAddress)] : [];
		this.version = 1;
		this.watches = new Set();
		this.vmLists = 0; // whole ones
		this.patches = []; // { name, patch }
		this.onFirstRequest = null;
		this.listCache = null;
	}

	schedulerPod(podIP) {
		return {
			metadata: { name: 'scheduler', namespace: 'kube-system', uid: 'uid-scheduler', resourceVersion: '1',
				creationTimestamp: '2026-01-01T00:00:00Z' },
			status: { podIP, conditions: [{ type: 'Ready', status: 'True' }] },
		};
	}

	async start(folder, address, port = API_PORT) {
		const options = { key: fs.readFileSync(`${folder}/api.key`), cert: fs.readFileSync(`${folder}/api.crt`) };

		this.server = https.createServer(options, (request, response) => this.answer(request, response));
		await listen(this.server, port, address);
	}

	stop() {
		end(this.server);
	}

	answer(request, response) {
		const url = new URL(request.url, 'https://api');

		if (this.onFirstRequest) {
			this.onFirstRequest(request);
			this.onFirstRequest = null;
		}
		if (request.method === 'PATCH')
			readBody(request, (body) => this.patch(url.pathname.split('/').pop(), JSON.parse(body), response));
		else if (url.searchParams.get('watch') === 'true')
			this.watch(url.pathname, response);
		else if (url.pathname === VM_PATH)
			this.list(url, response);
		else if (url.pathname === POD_PATH)
			this.send(response, 200, { metadata: { resourceVersion: String(this.version) }, items: this.pods });
		else
			this.send(response, 404, { kind: 'Status', message: 'not found', code: 404 });
	}

	send(response, status, object) {
		response.writeHead(status, { 'Content-Type': 'application/json' });
		response.end(typeof object === 'string' ? object : JSON.stringify(object));
	}

	list(url, response) {
		const limit = Number(url.searchParams.get('limit')) || Infinity;
		const start = Number(url.searchParams.get('continue')) || 0;
		const all = [...this.vms.values()];
		const more = start + limit < all.length;

		if (!more)
			this.vmLists++;
		this.send(response, 200, {
			apiVersion: 'vm.neon.tech/v1',
			kind: 'VirtualMachineList',
			items: all.slice(start, start + limit),
			metadata: { resourceVersion: String(this.version), ...(more ? { continue: String(start + limit) } : {}) },
		});
	}

	watch(pathname, response) {
		response.writeHead(200, { 'Content-Type': 'application/json' });
		response.flushHeaders();
		response.isOfVms = pathname === VM_PATH;
		this.watches.add(response);
		response.on('close', () => this.watches.delete(response));
	}

	// Bytes to every watch of VMs.
	sendRaw(text) {
		for (const response of this.watches) {
			if (response.isOfVms)
				response.write(text);
		}
	}

	put(vm) {
		const type = this.vms.has(vm.metadata.name) ? 'MODIFIED' : 'ADDED';

		vm.metadata.resourceVersion = String(++this.version);
		this.vms.set(vm.metadata.name, vm);
		this.sendRaw(`${JSON.stringify({ type, object: vm })}\n`);
	}

	remove(vm) {
		vm.metadata.resourceVersion = String(++this.version);
		this.vms.delete(vm.metadata.name);
		this.sendRaw(`${JSON.stringify({ type: 'DELETED', object: vm })}\n`);
	}

	// The three replacements that agents ask for; the VM has the new size at once.
	patch(name, patch, response) {
		const vm = this.vms.get(name);

		this.patches.push({ name, patch });
		if (!vm) {
			this.send(response, 404, { kind: 'Status', message: 'no such VM', code: 404 });
			return;
		}
		for (const { path: where, value } of patch) {
			if (where === '/spec/guest/cpus/use')
				vm.spec.guest.cpus.use = vm.status.cpus = value;
			else if (where === '/spec/guest/memorySlots/use')
				vm.spec.guest.memorySlots.use = value;
			else if (where === '/spec/targetRevision')
				vm.status.currentRevision = value;
		}
		vm.status.memorySize = `${vm.spec.guest.memorySlots.use}Gi`;
		this.put(vm);
		this.send(response, 200, vm);
	}
}

// Permits what it is asked for, unless `faults` has an answer of its own for the pod: a function of the response.
class Plugin {
	constructor() {
		this.faults = new Map();
		this.requests = 0;
	}

	async start(address) {
		this.server = http.createServer((request, response) => {
			readBody(request, (body) => {
				const message = JSON.parse(body);
				const fault = this.faults.get(message.pod.name);

				this.requests++;
				if (fault)
					fault(response, message);
				else
					response.end(JSON.stringify({ permit: message.resources }));
			});
		});
		await listen(this.server, PLUGIN_PORT, address);
	}

	stop() {
		end(this.server);
	}
}

function metricsPage({ load = 0.1, usedBytes = 100e6, paddingBytes = 0 } = {}) {
	const total = 8 * GIB;
	let page = '';

	for (const [name, value] of [['load1', load], ['load5', load], ['memory_total_bytes', total],
		['memory_available_bytes', total - usedBytes], ['memory_cached_bytes', 50e6]])
		page += `# HELP host_${name} ${name}\n# TYPE host_${name} gauge\nhost_${name}{collector="host",host="vm"} ${value}\n`;
	page += '# HELP host_disk_read_bytes_total disk_read_bytes_total\n# TYPE host_disk_read_bytes_total counter\n';
	for (let i = 0; page.length < paddingBytes; i++)
		page += `host_disk_read_bytes_total{collector="disk",device="vd${i}",host="vm-compute-lively-oak-x7k2p"} ${i * 4096} 1772600767412\n`;
	return page;
}

// One VM's inside. `page` and `monitor` may be set to functions that misbehave: of (request, response), and of the websocket.
class Guest {
	constructor() {
		this.load = 0.1;
		this.paddingBytes = 0;
		this.scrapes = 0;
		this.monitorConnections = 0;
		this.monitorMessages = 0;
		this.cachedPage = null;
	}

	async start(address) {
		this.metrics = http.createServer((request, response) => {
			this.scrapes++;
			if (this.page) {
				this.page(request, response);
				return;
			}
			if (!this.cachedPage || this.cachedLoad !== this.load)
				this.cachedPage = metricsPage({ load: this.load, paddingBytes: this.paddingBytes });
			this.cachedLoad = this.load;
			response.writeHead(200, { 'Content-Type': 'text/plain; version=0.0.4',
				'Content-Length': this.cachedPage.length });
			response.end(this.cachedPage);
		});
		this.monitorServer = http.createServer();
		this.websockets = new WebSocket.Server({ noServer: true });
		this.monitorServer.on('upgrade', (request, socket, head) => {
			socket.on('error', () => {});
			this.monitorConnections++;
			if (this.upgrade)
				this.upgrade(request, socket);
			else
				this.websockets.handleUpgrade(request, socket, head, (connection) => this.talk(connection));
		});
		await listen(this.metrics, METRICS_PORT, address);
		await listen(this.monitorServer, MONITOR_PORT, address);
	}

	talk(connection) {
		connection.on('error', () => {});
		if (this.monitor) {
			this.monitor(connection);
			return;
		}
		connection.once('message', () => {
			connection.send('{"version":1}');
			connection.on('message', (data) => {
				const { type, id } = JSON.parse(data.toString());

				this.monitorMessages++;
				if (type === 'HealthCheck')
					connection.send(JSON.stringify({ type, id }));
				else if (type === 'DownscaleRequest')
					connection.send(JSON.stringify({ type: 'DownscaleResult', Ok: true, Status: 'fine', id }));
				else if (type === 'UpscaleNotification')
					connection.send(JSON.stringify({ type: 'UpscaleConfirmation', id }));
			});
		});
	}

	stop() {
		end(this.metrics);
		end(this.monitorServer);
		for (const connection of this.websockets.clients)
			connection.terminate();
	}
}

// The reference configuration of generation B, with shorter waits.
function writeConfig(file, change = () => {}, sample = 'config-b.json') {
	const config = JSON.parse(fs.readFileSync(path.join(__dirname, '..', 'data', 'agent', sample)));

	change(config);
	fs.writeFileSync(file, JSON.stringify(config, null, 2));
}

// What the agent finds in its environment: a service account's folder with the API's certificate as CA.
function agentEnvironment({ folder, prefix, node, config }) {
	fs.mkdirSync(`${folder}/account`, { recursive: true });
	fs.copyFileSync(`${folder}/api.crt`, `${folder}/account/ca.crt`);
	fs.writeFileSync(`${folder}/account/token`, 'secret\n');
	return {
		CONFIG_PATH: config,
		K8S_NODE_NAME: node,
		K8S_POD_IP: `${prefix}.1`,
		KUBERNETES_SERVICE_HOST: `${prefix}.2`,
		KUBERNETES_SERVICE_PORT: String(API_PORT),
		BALLAST_SERVICEACCOUNT_DIR: `${folder}/account`,
	};
}

module.exports = { Api, Guest, Plugin, agentEnvironment, makeVm, metricsPage, writeConfig };

async function main(folder, prefix) {
	const api = new Api();

	await api.start(folder, `${prefix}.2`);
	console.log('ready');
	process.stdin.on('end', () => process.exit(0)).resume();
}

if (require.main === module) {
	main(process.argv[2], process.argv[3]).catch((error) => {
		console.log(error.message);
		process.exit(1);
	});
}
