// kube.vm_parts, which plays what runs VMs (see vm_parts.c), and the objects it works on.
'use strict';

const http = require('http');
const fs = require('fs');
const { makeVm } = require('../e2e/agent_peers.js');
const { spawnTracked, waitFor } = require('./kube_api.js');

const VMS = '/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines';

class Parts {
	// folder has peers.kubeconfig; speed divides the times of NeonVM and plugin.
	async start(program, folder, prefix, speed) {
		this.host = `${prefix}.2`;
		const log = fs.openSync(`${folder}/vm_parts.log`, 'w');

		this.child = spawnTracked(folder, 'vm_parts', program,
			[`${folder}/peers.kubeconfig`, prefix, String(speed)], { stdio: ['ignore', log, log] });
		fs.closeSync(log);
		this.child.ended.then((status) => {
			if (this.stopping)
				return;
			console.error(`vm_parts ended with ${status}: ${fs.readFileSync(`${folder}/vm_parts.log`, 'utf8').slice(-2000)}`);
			process.exit(1);
		});
		await waitFor('the parts are ready', 15, () => /^ready$/m.test(fs.readFileSync(`${folder}/vm_parts.log`, 'utf8')));
	}

	request(method, path, body) {
		return new Promise((resolve, reject) => {
			const request = http.request({ host: this.host, port: 8080, method, path, agent: false, timeout: 10000 }, (response) => {
				let text = '';

				response.on('data', (part) => { text += part; });
				response.on('end', () => {
					if (response.statusCode === 200)
						resolve(JSON.parse(text));
					else
						reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
				});
			});

			request.on('timeout', () => request.destroy(new Error('timeout')));
			request.on('error', reject);
			request.end(body === undefined ? undefined : JSON.stringify(body));
		});
	}

	state() {
		return this.request('GET', '/state');
	}

	async vm(name) {
		return (await this.state()).vms[name];
	}

	// What the VM's load asks for, and what its monitor insists on, in units.
	demand(vm, units, held = 0) {
		return this.request('POST', '/demand', { vm, units, held });
	}

	migrate(vm, node) {
		return this.request('POST', '/migrate', { vm, node });
	}

	// Its exit status.
	stop() {
		this.stopping = true;
		this.child.kill('SIGTERM');
		return this.child.ended;
	}
}

async function createNode(call, name, units) {
	const node = await call('POST', '/api/v1/nodes', { metadata: { name, labels: { 'kubernetes.io/hostname': name } } });
	const amounts = { cpu: `${units * 250}m`, memory: `${units}Gi`, pods: '250' };

	return call('PUT', `/api/v1/nodes/${name}/status`, { ...node, status: { capacity: amounts, allocatable: amounts,
		conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }] } });
}

// A new VM: NeonVM has yet to start it.
function createVm(call, name, node) {
	const { apiVersion, kind, metadata, spec } = makeVm({ name });

	return call('POST', VMS, { apiVersion, kind, metadata: { name, labels: metadata.labels,
		annotations: { 'autoscaling.neon.tech/billing-endpoint-id': `ep-${name}` } },
		spec: { ...spec, restartPolicy: 'Always', nodeSelector: { 'kubernetes.io/hostname': node } } });
}

module.exports = { Parts, VMS, createNode, createVm };
