// What the agent costs, as a process: see agent_bench.sh.
//
//   node agent_bench.js BUILD FOLDER PREFIX     prints one JSON object; progress goes to standard error
//
// Peers come from tests/e2e/agent_peers.js; memory with many VMs is measured in the sandbox, whose guests are livelier.
'use strict';

const { execFileSync, spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const { Api, Guest, Plugin, agentEnvironment, makeVm, writeConfig } = require('../e2e/agent_peers.js');

const [build, folder, prefix] = process.argv.slice(2);
const ballast = path.join(build, 'ballast');
const NODE = 'node-a';

const STARTS = 21;
const SANDBOX_S = 25; // long enough for every VM to be connected and scaled
const FEWER_VMS = 100;
const MORE_VMS = 160;
const LISTED_VMS = 5000;
const OUR_VMS = 100;
const OBJECT_PADDING = 3000; // makes an object of some 4 kB
const PAGE_BYTES = 60000;
const WINDOWS = 5;
const WINDOW_S = 8;
const RUNS = 3; // of programs that measure one thing

// Of figures that depend on time, the best counts: another program on the machine only makes them worse.
const BUDGETS = {
	binaryBytes: 2 * 1024 * 1024,
	startLeastMs: 20,
	residentKib: 12 * 1024,
	residentKibPerVm: 48,
	listPeakKib: 4 * 1024,
	cycleUserUs: 150,
	jsonMbPerS: -300, // at least
	decisionsPerS: -500000,
};

const running = new Set();
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const tell = (text) => process.stderr.write(`agent_bench: ${text}\n`);

function median(values) {
	return [...values].sort((a, b) => a - b)[values.length >> 1];
}

function statusKib(pid, name) {
	return Number(new RegExp(`${name}:\\s+(\\d+)`).exec(fs.readFileSync(`/proc/${pid}/status`))[1]);
}

// User and system time in µs, in steps of a clock tick.
function cpuUs(pid) {
	const fields = fs.readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ');

	return { user: Number(fields[11]) * 10000, system: Number(fields[12]) * 10000 };
}

// All time on a processor, exactly.
function runNs(pid) {
	return Number(fs.readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[0]);
}

function start(program, args, options) {
	const child = spawn(program, args, options);

	running.add(child);
	child.ended = new Promise((resolve) => child.on('exit', (code, signal) => {
		running.delete(child);
		resolve(signal || code);
	}));
	return child;
}

function startAgent(change) {
	const config = `${folder}/config.json`;

	writeConfig(config, change);
	return start(ballast, ['agent', '--listen-address', `${prefix}.1`], {
		env: { ...process.env, ...agentEnvironment({ folder, prefix, node: NODE, config }) },
		stdio: ['ignore', 'ignore', fs.openSync('/dev/null', 'w')],
	});
}

async function stop(child) {
	child.kill('SIGTERM');
	if (await child.ended !== 0)
		throw new Error('the agent ended badly');
}

function measureSize() {
	execFileSync('strip', ['-o', `${folder}/stripped`, ballast]);
	return fs.statSync(`${folder}/stripped`).size;
}

// From before the process is made to its first request, decrypted, in a server that is no part of it: an upper bound.
async function measureStart() {
	const times = [];

	for (let i = 0; i < STARTS; i++) {
		const api = new Api();

		await api.start(folder, `${prefix}.2`);
		const requested = new Promise((resolve) => { api.onFirstRequest = () => resolve(process.hrtime.bigint()); });
		const before = process.hrtime.bigint();
		const agent = startAgent();

		times.push(Number(await requested - before) / 1e6);
		await sleep(0.1);
		await stop(agent);
		api.stop();
	}
	return { startLeastMs: Math.min(...times), startMedianMs: median(times) };
}

function childOf(pid) {
	return Number(fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ')[0]);
}

// The agent's memory in a sandbox with so many VMs, all on one node: at the end, and at most.
async function measureSandbox(vms) {
	const sandbox = start(ballast, ['sandbox', '--vms', String(vms), '--nodes', '1', '--duration', `${SANDBOX_S + 10}s`,
		'--report', 'json'], { stdio: ['ignore', 'pipe', 'ignore'] });
	let report = '';

	sandbox.stdout.on('data', (part) => { report += part; });
	await sleep(SANDBOX_S);

	const resident = statusKib(childOf(sandbox.pid), 'VmRSS');

	await sandbox.ended;
	const { agent, monitor } = JSON.parse(report);

	if (monitor.connections < vms)
		throw new Error(`only ${monitor.connections} of ${vms} VMs were connected`);
	return { resident, most: agent.maxResidentKiB };
}

// Guests for our VMs, and as many VMs of other nodes as make up the list.
async function startCluster(total) {
	const api = new Api(`${prefix}.3`);
	const plugin = new Plugin();
	const guests = [];

	for (let i = 0; i < total; i++) {
		const ours = i % (total / OUR_VMS) === 0;
		const address = ours ? `${prefix}.${10 + guests.length}` : '10.0.0.1';

		if (ours) {
			const guest = new Guest();

			guest.paddingBytes = PAGE_BYTES;
			await guest.start(address);
			guests.push(guest);
		}
		api.put(makeVm({ name: `vm-${i}`, node: ours ? NODE : 'node-b', podIP: address, padding: OBJECT_PADDING }));
	}
	await plugin.start(`${prefix}.3`);
	await api.start(folder, `${prefix}.2`);
	return {
		api,
		guests,
		scrapes: () => guests.reduce((sum, guest) => sum + guest.scrapes, 0),
		stop: () => {
			guests.forEach((guest) => guest.stop());
			plugin.stop();
			api.stop();
		},
	};
}

// The peak while a list is read that changes nothing, above what is resident before it.
async function measureList() {
	const cluster = await startCluster(LISTED_VMS);
	const agent = startAgent((config) => { config.metrics.system.secondsBetweenRequests = 600; });

	await sleep(8);

	const afterStart = { rest: statusKib(agent.pid, 'VmRSS'), peak: statusKib(agent.pid, 'VmHWM') };
	const lists = cluster.api.vmLists;
	const objectBytes = JSON.stringify([...cluster.api.vms.values()][1]).length;

	fs.writeFileSync(`/proc/${agent.pid}/clear_refs`, '5'); // the peak is what is resident now
	const rest = statusKib(agent.pid, 'VmRSS');
	const runBefore = runNs(agent.pid);

	cluster.api.sendRaw('{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n');
	for (let i = 0; i < 100 && cluster.api.vmLists === lists; i++)
		await sleep(0.1);
	await sleep(0.5);
	const peak = statusKib(agent.pid, 'VmHWM');

	if (cluster.api.vmLists !== lists + 1)
		throw new Error('there was no list');
	const result = { listPeakKib: peak - rest, listRestKib: rest, listAtStartPeakKib: afterStart.peak - afterStart.rest,
		listObjectBytes: objectBytes, listRunMs: Math.round((runNs(agent.pid) - runBefore) / 1e6) };

	await stop(agent);
	cluster.stop();
	return result;
}

// Everything the agent does meanwhile is in it: a health check per VM each 5 s, a request to the plugin each minute.
async function measureCycles() {
	const cluster = await startCluster(OUR_VMS);
	const agent = startAgent((config) => {
		config.metrics.system.secondsBetweenRequests = 1;
		config.scheduler.requestAtLeastEverySeconds = 60;
	});

	await sleep(5);

	const cpu = cpuUs(agent.pid);
	const windows = [];
	let cycles = 0;

	for (let i = 0; i < WINDOWS; i++) {
		const runBefore = runNs(agent.pid);
		const scrapesBefore = cluster.scrapes();

		await sleep(WINDOW_S);

		const scrapes = cluster.scrapes() - scrapesBefore;

		cycles += scrapes;
		windows.push((runNs(agent.pid) - runBefore) / 1000 / scrapes);
	}

	const user = cpuUs(agent.pid).user - cpu.user;
	const system = cpuUs(agent.pid).system - cpu.system;

	if (cycles < OUR_VMS * WINDOWS * WINDOW_S / 4 || cluster.api.patches.length > 0)
		throw new Error(`${cycles} cycles, ${cluster.api.patches.length} patches`);
	const result = {
		cycleUserUs: Math.round(Math.min(...windows) * user / (user + system)),
		cycleUs: Math.round(Math.min(...windows)), // in the kernel too
		cycleMedianUs: Math.round(median(windows)),
		cycles,
		residentWithBigPagesKib: statusKib(agent.pid, 'VmRSS'),
	};

	await stop(agent);
	cluster.stop();
	return result;
}

// What the program prints when it does best by `figure`.
function runBest(name, figure) {
	const runs = [...Array(RUNS)].map(() => JSON.parse(execFileSync(path.join(build, 'tests', name), { encoding: 'utf8' })));

	return runs.reduce((best, other) => (other[figure] > best[figure] ? other : best));
}

async function main() {
	const figures = {};

	tell('size of the binary');
	figures.binaryBytes = measureSize();
	tell('start to first request');
	Object.assign(figures, await measureStart());
	tell(`memory with ${FEWER_VMS} and ${MORE_VMS} VMs, ${2 * (SANDBOX_S + 10)} s`);
	const fewer = await measureSandbox(FEWER_VMS);
	const more = await measureSandbox(MORE_VMS);

	figures.residentKib = fewer.most;
	figures.residentSteadyKib = fewer.resident;
	figures.residentKibPerVm = (more.most - fewer.most) / (MORE_VMS - FEWER_VMS);
	figures.residentSteadyKibPerVm = (more.resident - fewer.resident) / (MORE_VMS - FEWER_VMS);
	tell(`a list of ${LISTED_VMS} VMs`);
	Object.assign(figures, await measureList());
	tell(`CPU of a cycle, ${WINDOWS * WINDOW_S} s`);
	Object.assign(figures, await measureCycles());
	tell('decoding and deciding');
	figures.json = runBest('bench.json', 'split_and_decode_mb_per_s');
	figures.core = runBest('bench.core', 'decisions_per_s');
	figures.jsonMbPerS = figures.json.split_and_decode_mb_per_s;
	figures.decisionsPerS = figures.core.decisions_per_s;

	const missed = Object.keys(BUDGETS).filter((name) => !(BUDGETS[name] > 0 ? figures[name] <= BUDGETS[name]
		: figures[name] >= -BUDGETS[name]));

	console.log(JSON.stringify({ figures, budgets: BUDGETS, missed }, null, 2));
}

main().catch((error) => {
	tell(error.stack);
	process.exitCode = 1;
}).finally(() => {
	for (const child of running)
		child.kill('SIGKILL');
	process.exit();
});
