// The agent scales on what this machine really does: a VM whose page is a live page of node_exporter with its values under vector's
// names. For some seconds the machine is loaded; the VM must grow with it. A second VM serves the page as it is: the agent must say
// what it misses there, and leave that VM alone.
//
//   node real_metrics.js FOLDER PREFIX BALLAST EXPORTER-URL
'use strict';

const fs = require('fs');
const http = require('http');
const { spawn } = require('child_process');
const { Api, Guest, Plugin, agentEnvironment, makeVm, writeConfig } = require('./agent_peers.js');

const [folder, prefix, ballast, exporter] = process.argv.slice(2);
const SECONDS = 15;
const WORKERS = 4;
const UNIT_MILLI = 250;
const LOAD_PER_UNIT = 0.9 * 0.25; // loadAverageFractionTarget times the unit's CPUs

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function fetchPage() {
	return new Promise((resolve, reject) => {
		http.get(exporter, (response) => {
			const parts = [];

			response.on('data', (part) => parts.push(part));
			response.on('end', () => resolve(Buffer.concat(parts).toString()));
		}).on('error', reject);
	});
}

// node_exporter's names → those that the agent looks for.
const NAMES = {
	node_load1: 'host_load1',
	node_load5: 'host_load5',
	node_memory_MemTotal_bytes: 'host_memory_total_bytes',
	node_memory_MemAvailable_bytes: 'host_memory_available_bytes',
	node_memory_Cached_bytes: 'host_memory_cached_bytes',
};

function rename(page) {
	return page.split('\n').map((line) => {
		const name = line.match(/^(?:# (?:HELP|TYPE) )?([a-zA-Z_:][a-zA-Z0-9_:]*)/);

		return name && NAMES[name[1]] ? line.replace(name[1], NAMES[name[1]]) : line;
	}).join('\n');
}

const loads = []; // load1 of the pages served

function serve(guest, change) {
	guest.page = async (request, response) => {
		const page = change(await fetchPage());
		const load = page.match(/^host_load1 (\S+)/m);

		if (load)
			loads.push(Number(load[1]));
		response.setHeader('Content-Type', 'text/plain; version=0.0.4');
		response.end(page);
	};
}

const unitsFor = (load) => Math.max(1, Math.floor(load / LOAD_PER_UNIT + 0.5));

async function main() {
	const api = new Api(`${prefix}.3`);
	const plugin = new Plugin();
	const config = `${folder}/config.json`;
	let log = '';

	// Memory is no reason to grow here: a unit has more of it than the machine.
	writeConfig(config, (c) => {
		c.scaling.computeUnit.mem = '1Ti';
		c.metrics.system.secondsBetweenRequests = 1;
	});
	for (const [index, name] of ['renamed', 'raw'].entries()) {
		const vm = makeVm({ name, node: 'node-a', podIP: `${prefix}.${10 + index}` });
		const guest = new Guest();

		vm.spec.guest.cpus = { min: `${UNIT_MILLI}m`, max: 100, use: `${UNIT_MILLI}m` };
		vm.spec.guest.memorySlotSize = '1Ti';
		vm.spec.guest.memorySlots = { min: 1, max: 400, use: 1 };
		vm.status.memorySize = '1Ti';
		api.put(vm);
		serve(guest, name === 'raw' ? (page) => page : rename);
		await guest.start(`${prefix}.${10 + index}`);
	}
	await plugin.start(`${prefix}.3`);
	await api.start(folder, `${prefix}.2`);

	const agent = spawn(ballast, ['agent', `--listen-address=${prefix}.1`], { stdio: ['ignore', 'ignore', 'pipe'],
		env: agentEnvironment({ folder, prefix, node: 'node-a', config }) });

	agent.stderr.on('data', (part) => { log += part; });
	process.on('exit', () => agent.kill('SIGKILL'));
	while (loads.length < 2)
		await sleep(100);
	const workers = Array.from({ length: WORKERS }, () => spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }));

	await sleep(SECONDS * 1000);
	for (const worker of workers)
		worker.kill('SIGKILL');
	await sleep(2500); // a scrape and what follows from it

	const use = api.vms.get('renamed').spec.guest.cpus.use;
	const units = (String(use).endsWith('m') ? parseInt(use, 10) : use * 1000) / UNIT_MILLI;
	const possible = loads.slice(-4).map(unitsFor);

	console.log(`load1 went from ${loads[0]} to ${Math.max(...loads)}; the VM has ${units} units, pages call for ${possible}`);
	// What else the machine does may fall while this rises; but something must have moved.
	if (new Set(loads).size < 2 || !api.patches.some(({ name }) => name === 'renamed'))
		throw new Error('neither the load nor the VM has changed');
	if (!possible.includes(units))
		throw new Error('the VM does not have the size that its page calls for');
	const names = ['load1', 'load5', 'memory_total_bytes', 'memory_available_bytes', 'memory_cached_bytes'];
	const complaint = `failed to extract metrics: ${names.map((n) => `missing expected metric host_${n}`).join(': ')}`;

	if (!log.split('\n').some((line) => line.includes(complaint) && line.includes('"raw"')))
		throw new Error(`no such complaint about the raw page: ${complaint}`);
	if (api.patches.some(({ name }) => name === 'raw'))
		throw new Error('the VM with the raw page was scaled');
}

main().then(() => process.exit(0), (error) => {
	console.error(`real_metrics: ${error.message}`);
	process.exit(1);
});
