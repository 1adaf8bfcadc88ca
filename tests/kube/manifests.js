// What the manifests in deploy/ say, as the API server stored them: the rules for restricted pods, policies that let through what is
// needed, names that fit together, rights within those of existing installations; and that the daemons start with the manifests' own
// arguments, environment and rights, and answer the manifests' probes. Started by manifests.sh:
//
//   node manifests.js FOLDER PREFIX API BALLAST NAME...     FOLDER/NAME.json: what was applied of deploy/NAME, slashes as dashes
'use strict';

const assert = require('assert').strict;
const fs = require('fs');
const http = require('http');
const path = require('path');
const { spawn } = require('child_process');
const { sleep, waitFor } = require('./kube_api.js');

const [folder, prefix, apiUrl, ballast, ...names] = process.argv.slice(2);
const api = new URL(apiUrl);
const root = path.join(__dirname, '..', '..');
const config = JSON.parse(fs.readFileSync(path.join(root, 'deploy', 'agent', 'config.json')));
const version = fs.readFileSync(path.join(root, 'CMakeLists.txt'), 'utf8').match(/project\(ballast VERSION ([\d.]+)/)[1];

// Pod Security Standards, "restricted", of today; of a pod on the host's network, all but that.
function checkRestricted(where, spec, onHost) {
	assert.equal(spec.hostNetwork === true, onHost, where);
	for (const key of ['hostPID', 'hostIPC'])
		assert.ok(!spec[key], `${where}: ${key}`);
	assert.equal(spec.securityContext.runAsNonRoot, true, where);
	assert.ok(spec.securityContext.runAsUser > 0, where);
	assert.equal(spec.securityContext.seccompProfile.type, 'RuntimeDefault', where);
	for (const volume of spec.volumes || [])
		assert.ok(volume.configMap || volume.emptyDir || volume.secret || volume.projected || volume.downwardAPI, `${where}: volume ${volume.name}`);
	for (const container of spec.containers) {
		const { securityContext, ports } = container;

		assert.equal(securityContext.allowPrivilegeEscalation, false, where);
		assert.equal(securityContext.readOnlyRootFilesystem, true, where);
		assert.deepEqual(securityContext.capabilities, { drop: ['ALL'] }, where);
		assert.ok(!securityContext.privileged && !securityContext.procMount, where);
		for (const { hostPort } of ports)
			assert.ok(onHost || hostPort === undefined, `${where}: hostPort`);
	}
}

function checkWorkload(where, { spec: { template: { metadata, spec }, selector } }) {
	const [container] = spec.containers;
	const portNames = container.ports.map((p) => p.name);

	checkRestricted(where, spec, where.startsWith('DaemonSet ballast-extender'));
	assert.equal(spec.nodeSelector['kubernetes.io/os'], 'linux');
	assert.match(spec.priorityClassName, /^system-/);
	assert.equal(container.image.split(':')[1], version, `${where}: the image isn't of this version`);
	assert.equal(container.command, undefined, 'the image knows what to start');
	for (const kind of ['requests', 'limits'])
		assert.ok(container.resources[kind].cpu && container.resources[kind].memory, `${where}: ${kind}`);
	for (const probe of ['readinessProbe', 'livenessProbe'])
		assert.ok(portNames.includes(container[probe].httpGet.port), `${where}: the port of its ${probe}`);
	for (const [label, value] of Object.entries(selector.matchLabels))
		assert.equal(metadata.labels[label], value);
	return { labels: metadata.labels, ports: new Map(container.ports.map((p) => [p.name, p.containerPort])) };
}

const ports = (rules) => new Set((rules || []).flatMap((r) => r.ports.map((p) => `${p.port}/${p.protocol}`)));

function checkPolicy({ spec }, { labels, ports: own }, outward) {
	assert.deepEqual(spec.policyTypes, ['Ingress', 'Egress']);
	for (const [label, value] of Object.entries(spec.podSelector.matchLabels))
		assert.equal(labels[label], value, 'the policy is about other pods');
	const ingress = ports(spec.ingress), egress = ports(spec.egress);

	for (const port of own.values())
		assert.ok(ingress.has(`${port}/TCP`), `nothing may come in at ${port}`);
	// The API server behind its Service, names.
	for (const port of ['443/TCP', '6443/TCP', '53/UDP', '53/TCP', ...outward])
		assert.ok(egress.has(port), `nothing may go out to ${port}`);
	return egress;
}

// Rights that existing installations grant: those of ballast must lie within.
const REFERENCE_RIGHTS = {
	agent: { 'vm.neon.tech/virtualmachines': 'create delete get list patch update watch', '/pods': 'get list watch' },
	extender: { 'csi-baremetal.dell.com/volumes': 'get list watch', 'csi-baremetal.dell.com/availablecapacityreservations': 'get list create update',
		'/persistentvolumeclaims': 'get list watch', '/events': 'get list watch', 'storage.k8s.io/storageclasses': 'get list watch' },
};

function checkRights(daemon, objects) {
	for (const { rules } of objects.filter((o) => /^(Cluster)?Role$/.test(o.kind))) {
		for (const { apiGroups: [group], resources: [resource], verbs } of rules) {
			for (const verb of verbs) {
				assert.ok((REFERENCE_RIGHTS[daemon][`${group}/${resource}`] || '').split(' ').includes(verb),
					`${daemon} may ${verb} ${resource}, which existing installations don't grant`);
			}
		}
	}
}

// ---- the daemons, as a kubelet would start them ----

function get(address, port, where) {
	return new Promise((resolve, reject) => {
		http.get({ host: address, port, path: where, agent: false, timeout: 2000 }, (response) => {
			response.resume();
			response.on('end', () => resolve(response.statusCode));
		}).on('error', reject);
	});
}

// Nothing is changed but addresses, which here are those of the test.
async function start(where, { spec: { template: { spec } } }, daemon, extra) {
	const [container] = spec.containers;
	const values = { 'spec.nodeName': 'node-a', 'status.podIP': `${prefix}.1` };
	const env = Object.fromEntries(container.env.map(({ name, value, valueFrom }) => [name, value || values[valueFrom.fieldRef.fieldPath]]));
	const mount = (container.volumeMounts || []).find((m) => env.CONFIG_PATH && env.CONFIG_PATH.startsWith(`${m.mountPath}/`));

	if (env.CONFIG_PATH) {
		assert.ok(mount, `${where}: nothing is mounted at ${env.CONFIG_PATH}`);
		env.CONFIG_PATH = path.join(root, 'deploy', 'agent', path.basename(env.CONFIG_PATH));
	}
	const args = (container.args || []).map((a) => a.replace(/=(127.0.0.1|::)$/, `=${prefix}.1`).replace('=:', `=${prefix}.1:`));
	const child = spawn(ballast, [daemon, ...args, ...extra], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...env,
		KUBERNETES_SERVICE_HOST: api.hostname, KUBERNETES_SERVICE_PORT: api.port, BALLAST_SERVICEACCOUNT_DIR: `${folder}/account-${daemon}` } });
	const end = new Promise((resolve) => { child.on('exit', resolve); });
	let log = '';

	for (const stream of [child.stdout, child.stderr])
		stream.on('data', (part) => { log += part; });
	try {
		for (const probe of ['readinessProbe', 'livenessProbe']) {
			const { path: asked, port } = container[probe].httpGet;
			const { containerPort } = container.ports.find((p) => p.name === port);

			await waitFor(`${where}: ${probe}`, 20, async () => await get(`${prefix}.1`, containerPort, asked) === 200);
		}
		for (const { name, containerPort } of container.ports)
			await waitFor(`${where}: port ${name}`, 5, () => get(`${prefix}.1`, containerPort, '/metrics'));
		await sleep(300);
		assert.doesNotMatch(log, /forbidden/i);
		child.kill('SIGTERM');
		assert.equal(await end, 0, `${where}: exit status`);
	} catch (error) {
		console.error(log);
		throw error;
	} finally {
		child.kill('SIGKILL');
	}
	console.log(`   ${where} starts as it is deployed, and answers its probes`);
}

// ---- all of it ----

async function checkFolder(name) {
	const { items: objects } = JSON.parse(fs.readFileSync(`${folder}/${name}.json`));
	const find = (kind) => objects.filter((o) => o.kind === kind);
	const [workload] = [...find('DaemonSet'), ...find('Deployment')];
	const daemon = name.startsWith('agent') ? 'agent' : 'extender';
	const where = `${workload.kind} ${workload.metadata.name} (${name})`;
	const found = checkWorkload(where, workload);
	const [account] = find('ServiceAccount');

	assert.equal(workload.spec.template.spec.serviceAccountName, account.metadata.name);
	for (const { subjects: [subject], roleRef } of [...find('RoleBinding'), ...find('ClusterRoleBinding')]) {
		assert.equal(subject.name, account.metadata.name);
		assert.equal(subject.namespace, account.metadata.namespace);
		assert.ok(objects.some((o) => o.kind === roleRef.kind && o.metadata.name === roleRef.name), `${roleRef.name} is nowhere`);
	}
	if (name === 'agent' || name === 'extender')
		checkRights(daemon, objects);
	for (const policy of find('NetworkPolicy')) {
		const outward = daemon === 'agent' ? [config.scheduler.requestPort, config.monitor.serverPort, config.metrics.system.port,
			config.metrics.lfc.port, 80].map((p) => `${p}/TCP`) : [];

		checkPolicy(policy, found, outward);
	}
	for (const { spec } of find('Service')) {
		for (const [label, value] of Object.entries(spec.selector))
			assert.equal(found.labels[label], value);
		for (const { targetPort } of spec.ports)
			assert.ok(found.ports.has(targetPort), `the Service's port ${targetPort}`);
	}
	if (daemon === 'agent') {
		assert.equal(find('NetworkPolicy').length, 1);
		assert.equal(found.ports.get('dump-state'), config.dumpState.port);
		assert.equal(found.ports.get('metrics'), 9100);
		assert.equal(found.ports.get('vm-metrics'), 9101);
	}
	const monitor = fs.readFileSync(path.join(root, 'deploy', 'monitoring', `podmonitor-${daemon}.yaml`), 'utf8');

	assert.equal(found.labels['app.kubernetes.io/name'], monitor.match(/matchLabels:\n +app.kubernetes.io\/name: (.*)/)[1]);
	for (const [, port] of monitor.matchAll(/- port: (.*)/g))
		assert.ok(found.ports.has(port), `the PodMonitor's port ${port}`);
	await start(where, workload, daemon, name === 'extender-deployment' ? [`--listen-address=${prefix}.1`] : []);
}

async function main() {
	for (const name of names)
		await checkFolder(name);
}

main().then(() => process.exit(0), (error) => {
	console.error(`manifests.js: ${error.stack}`);
	process.exit(1);
});
