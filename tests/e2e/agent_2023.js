// An agent with the configuration of late 2023 among peers of that time: what each of them sees of it, its pages and its
// state dump (README, "The package of late 2023").
//
//   node agent_2023.js BALLAST FOLDER PREFIX
'use strict';

const { spawn } = require('child_process');
const fs = require('fs');
const http = require('http');
const path = require('path');
const { Api, Guest, Plugin, agentEnvironment, makeVm } = require('./agent_peers.js');

const [ballast, folder, prefix] = process.argv.slice(2);
const NODE = 'node-a';
const AGENT = `${prefix}.1`;
const PLUGIN = `${prefix}.3`;
const GIB = 1024 ** 3;
let failures = 0;
let agent;

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

function check(holds, text) {
	if (holds)
		return;
	console.error(`agent_2023: ${text}`);
	failures++;
}

function same(actual, expected, what) {
	const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];

	check(a === b, `${what}: ${a} instead of ${b}`);
}

async function until(seconds, holds, what) {
	for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(0.05)) {
		if (await holds())
			return true;
	}
	check(false, `not within ${seconds} s: ${what}`);
	return false;
}

function get(port, body, method = 'GET') {
	return new Promise((resolve, reject) => {
		const headers = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
		const request = http.request({ host: AGENT, port, method, path: '/metrics', headers }, (response) => {
			let text = '';

			response.on('data', (part) => { text += part; });
			response.on('end', () => resolve({ status: response.statusCode, text }));
		});

		request.on('error', reject);
		request.end(body);
	});
}

const page = async (port) => (await get(port)).text;
const value = (text, series) => {
	const line = text.split('\n').find((each) => each.startsWith(`${series} `));

	return line === undefined ? undefined : Number(line.slice(series.length + 1));
};

function writeConfig(file, change = () => {}) {
	const config = JSON.parse(fs.readFileSync(path.join(__dirname, '..', 'data', 'agent', 'config-a.json')));

	Object.assign(config.scaling, { requestTimeoutSeconds: 2, retryFailedRequestSeconds: 3 });
	Object.assign(config.metrics, { loadMetricPrefix: 'node_', secondsBetweenRequests: 1 });
	Object.assign(config.scheduler, { requestAtLeastEverySeconds: 2, retryFailedRequestSeconds: 1 });
	Object.assign(config.monitor, { responseTimeoutSeconds: 1, connectionRetryMinWaitSeconds: 1,
		retryFailedRequestSeconds: 1 });
	delete config.billing;
	change(config);
	fs.writeFileSync(file, JSON.stringify(config));
}

// A guest whose page has names that begin with node_, and whose monitor keeps what it hears.
class OldGuest extends Guest {
	constructor() {
		super();
		this.heard = [];
		this.silent = false; // to downscales and upscales
		this.page = (request, response) => {
			response.end(`# nothing that Prometheus could read: {\nnode_load15 9\nnode_load1{a="b"} ${this.load} 1700000000000\n` +
				`node_load5 0.97\nnode_memory_total_bytes 5197705216\nnode_memory_available_bytes 5000000000\n`);
		};
		this.monitor = (connection) => {
			this.connection = connection;
			connection.on('message', (data) => {
				const message = JSON.parse(data.toString());

				this.heard.push(message);
				if (message.max !== undefined)
					connection.send('{"version":1}');
				else if (message.type === 'HealthCheck')
					connection.send(JSON.stringify({ type: 'HealthCheck', id: message.id }));
				else if (!this.silent && message.type === 'DownscaleRequest')
					connection.send(JSON.stringify({ type: 'DownscaleResult', Ok: true, Status: 'fine', id: message.id }));
				else if (!this.silent && message.type === 'UpscaleNotification')
					connection.send(JSON.stringify({ type: 'UpscaleConfirmation', id: message.id }));
			});
		};
	}
}

const api = new Api(PLUGIN);
const plugin = new Plugin();
const oak = new OldGuest();
const pine = new OldGuest();
const asked = []; // { at, message } of oak
const grant = (response, message) => response.end(JSON.stringify({ permit: message.resources, migrate: {},
	resourceUnit: { vCPUs: '250m', mem: 1 } }));

function vm(name, address, units) {
	const made = makeVm({ name, node: NODE, podIP: address, units });

	delete made.status.restartCount;
	return made;
}

function start(config) {
	const log = fs.openSync(`${folder}/agent.log`, 'a');

	agent = spawn(ballast, ['agent', '--listen-address', AGENT], {
		env: agentEnvironment({ folder, prefix, node: NODE, config }), stdio: ['ignore', log, log] });
	agent.ended = new Promise((resolve) => agent.on('exit', (code, signal) => resolve(code === null ? signal : code)));
	fs.writeFileSync(`${folder}/agent.pid`, String(agent.pid));
}

// ---- PluginProtocolVersion, Scheduler, SchedulerConfig ----

async function plugins() {
	await until(10, () => asked.length >= 4, 'four requests to the plugin');
	same(asked[0].message, { protoVersion: 3, pod: { namespace: 'apps', name: 'oak-pod' },
		resources: { vCPUs: '500m', mem: 2 }, metrics: null }, 'the first request');
	same(Object.keys(asked[3].message.metrics), ['loadAvg1M', 'loadAvg5M', 'memoryUsageBytes'], 'metrics of a request');
	same([asked[3].message.metrics.loadAvg1M, asked[3].message.metrics.loadAvg5M], [0.4, 0.97], 'loads of a request');
	for (let i = 1; i < 4; i++) {
		const gap = asked[i].at - asked[i - 1].at;

		check(gap > 1900 && gap < 2600, `a tick of ${gap} ms`);
	}
	check(!plugin.pods.has('stranger-pod'), 'a VM of another scheduler is asked for');

	// Answers that aren't any.
	const faults = [
		['404', (response) => { response.statusCode = 404; response.end('pod not found'); }],
		['500', (response) => { response.statusCode = 500; response.end('no'); }],
		['garbage', (response) => response.end('{"permit":')],
		['bytes', (response) => response.end('{"permit":{"vCPUs":"500m","mem":"2Gi"},"resourceUnit":{"vCPUs":"250m","mem":1}}')],
		['no unit', (response) => response.end('{"permit":{"vCPUs":"500m","mem":2}}')],
		['too much', (response) => response.end('{"permit":{"vCPUs":"500m","mem":3},"resourceUnit":{"vCPUs":9,"mem":9}}')],
		['hang', () => {}],
	];

	for (const [name, fault] of faults) {
		const before = asked.length;

		plugin.next = fault;
		await until(5, () => plugin.next === null, `a request to be answered by ${name}`);
		await until(8, () => asked.length > before + 1, `another request after ${name}`);
		const { plugin: core } = await executor('oak-pod');

		same([core.permit, core.computeUnit], [{ vCPUs: '500m', mem: 2 }, { vCPUs: '250m', mem: 1 }], `kept after ${name}`);
	}
	const log = fs.readFileSync(`${folder}/agent.log`, 'utf8');

	for (const text of ['received response status 404 body \\"pod not found\\"', 'bad JSON response: ',
		'Invalid compute unit: vCPUs must be non-zero', 'Permit has resources greater than request (',
		'context deadline exceeded'])
		check(log.includes(text), `the log doesn't say ${text}`);
	const text = await page(9100);

	same([value(text, 'autoscaling_agent_scheduler_plugin_requests_total{code="404"}'),
		value(text, 'autoscaling_agent_scheduler_plugin_requests_total{code="500"}')], [1, 1], 'codes of requests');
}

// ---- the dump ----

async function dump() {
	const { status, text } = await get(10300, '{}');

	same(status, 200, 'status of the dump');
	return JSON.parse(text);
}

async function executor(pod) {
	return (await dump()).pods.find(({ podName }) => podName.name === pod).runner.executorState;
}

async function dumps() {
	same((await get(10300)).status, 400, 'M8: a dump without a body');
	same((await get(10300, '{}', 'POST')).status, 405, 'M8: a dump by POST');
	const whole = await dump();

	same(Object.keys(whole), ['stopped', 'buildInfo', 'pods'], 'keys of the dump');
	same(whole.pods.map(({ podName }) => podName.name), ['oak-pod', 'pine-pod'], 'pods of the dump');
	const { runner, status } = whole.pods[0];

	same(Object.keys(runner), ['podIP', 'executorState', 'scheduler', 'monitor', 'backgroundWorkerCount'], 'keys of a runner');
	same(runner.scheduler, { info: { PodName: { namespace: 'kube-system', name: 'scheduler' }, UID: 'uid-scheduler',
		IP: PLUGIN } }, 'the scheduler of the dump');
	same([runner.backgroundWorkerCount, status.state, status.previousEndStates], [13, 'ok', []], 'a runner');
	same(Object.keys(runner.executorState), ['config', 'vm', 'plugin', 'monitor', 'neonvm', 'metrics'], 'keys of an executor');
	check(runner.executorState.config.MonitorDownscaleFollowUpWait === 1e9, 'durations of the dump');
}

// ---- Runner, Dispatcher, ScalingConfig: a VM that grows and shrinks ----

async function growth() {
	await until(10, () => pine.heard.some(({ type }) => type === 'HealthCheck'), 'a health check');
	same(pine.heard[0], { min: 1, max: 1 }, 'the first frame to a monitor');
	same(pine.heard.filter(({ type }) => type === 'HealthCheck')[0].id % 2, 0, 'ids of the agent');
	pine.load = 1; // round(1 / 0.9 / 0.25) = 4 units
	await until(10, () => api.vms.get('pine').spec.guest.memorySlots.use === 4, 'pine has 4 units');
	same(api.patches.filter(({ name }) => name === 'pine').map(({ patch }) => patch), [[
		{ op: 'replace', path: '/spec/guest/cpus/use', value: '1' },
		{ op: 'replace', path: '/spec/guest/memorySlots/use', value: 4 }]], 'patches of pine');
	await until(5, () => pine.heard.some(({ type }) => type === 'UpscaleNotification'), 'the monitor hears of 4 units');

	// Down to one unit in one step.
	pine.load = 0;
	await until(10, () => api.vms.get('pine').spec.guest.memorySlots.use === 1, 'pine has 1 unit');
	same(pine.heard.filter(({ type }) => type === 'DownscaleRequest').map(({ content }) => content.target.mem), [GIB],
		'downscale requests');

	// An API that doesn't answer: the patch is given up after 2 s, and tried again 3 s after it was sent.
	const times = [];

	api.hold = (name) => {
		times.push(Date.now());
		return name === 'pine' && times.length === 1;
	};
	pine.load = 0.45;
	await until(15, () => api.vms.get('pine').spec.guest.memorySlots.use === 2, 'pine has 2 units');
	api.hold = null;
	check(times[1] - times[0] > 2900 && times[1] - times[0] < 4500, `${times[1] - times[0]} ms between two patches`);
	const text = await page(9100);

	same(value(text, 'autoscaling_agent_neonvm_outbound_requests_total{result="[error: context deadline exceeded]"}'), 1,
		'patches that were given up');
}

// ---- Dispatcher.Call, HandleMessage, ExitSignal; MonitorState ----

async function monitors() {
	// A call that waits is in the dump; its answer comes too late.
	pine.silent = true;
	pine.load = 0;
	await until(10, () => pine.heard.filter(({ type }) => type === 'DownscaleRequest').length >= 2, 'another downscale request');
	same((await dump()).pods[1].runner.monitor, { waitersSize: 1 }, 'calls that wait');
	const { id } = pine.heard.filter(({ type }) => type === 'DownscaleRequest').pop();

	await sleep(1.3);
	pine.connection.send(JSON.stringify({ type: 'DownscaleResult', Ok: true, Status: '', id }));
	await until(5, () => pine.heard.some((message) => message.type === 'InvalidMessage' && message.id === id), 'an answer to that');
	same(pine.heard.find(({ type }) => type === 'InvalidMessage').content.error,
		`Received DownscaleResult with id ${id} but no record of previous message with that id`, 'the answer');
	pine.silent = false;
	const connections = pine.monitorConnections;

	pine.connection.send('{"type":"Nonsense","id":3}');
	await until(5, () => pine.heard.some(({ type, id: about }) => type === 'InvalidMessage' && about === 3), 'an answer to nonsense');
	same(pine.monitorConnections, connections, 'connections after nonsense');
	pine.connection.close(1000);
	await until(5, () => pine.monitorConnections > connections, 'another connection');
	const text = await page(9100);

	for (const endpoint of ['UpscaleNotification', 'DownscaleRequest', 'HealthCheck'])
		check(value(text, `autoscaling_agent_monitor_outbound_requests_total{code="ok",endpoint="${endpoint}"}`) >= 1,
			`no answer to a ${endpoint}`);
	check(value(text, 'autoscaling_agent_monitor_outbound_requests_total{code="[error: timed out waiting for response]",' +
		'endpoint="DownscaleRequest"}') >= 1, 'calls that timed out');
}

// ---- GlobalMetrics, PerVMMetrics ----

async function pages() {
	const text = await page(9100);
	const families = text.split('\n').filter((line) => line.startsWith('# TYPE autoscaling_agent_'))
		.map((line) => line.split(' ')[2].slice('autoscaling_agent_'.length));
	const known = ['scheduler_plugin_requests_total', 'monitor_outbound_requests_total', 'neonvm_outbound_requests_total',
		'runners_current', 'runner_fatal_errors_total', 'runner_thread_panics_total', 'runner_starts', 'runner_restarts',
		'runner_next_actions_total', 'watchers_client_calls_total', 'watchers_events_total', 'watchers_alive_current',
		'watchers_failing_current', 'neonvm_requested_cpu_change_total', 'neonvm_requested_mem_changed_total'];

	for (const one of ['scheduler_plugin_requested', 'scheduler_plugin_accepted', 'monitor_requested', 'monitor_approved'])
		known.push(`${one}_cpu_change_total`, `${one}_mem_change_total`);
	// Present once there was something to count.
	const seldom = ['monitor_inbound_requests_total', 'watchers_relist_requests_total', 'watchers_errors_total'];

	same(families.filter((name) => !seldom.includes(name)).sort(), known.sort(), 'families of :9100');
	same(value(text, 'autoscaling_agent_runners_current{is_endpoint="true",state="errored"}'), 0, 'errored runners');
	same(value(text, 'autoscaling_agent_runners_current{is_endpoint="true",state="ok"}'), 2, 'runners that are well');
	same(value(text, 'autoscaling_agent_runner_starts'), 2, 'starts of runners');

	const series = (resource, what) => `autoscaling_vm_resources{endpoint_id="ep-oak",resource="${resource}",` +
		`value="${what}",vm_name="oak",vm_namespace="apps"}`;
	const ofVms = async (resource, what) => value(await page(9101), series(resource, what));

	same([await ofVms('cpu', 'min'), await ofVms('cpu', 'max'), await ofVms('cpu', 'spec_use'), await ofVms('mem', 'min'),
		await ofVms('mem', 'status_use')], [0.25, 2, 0.5, GIB, 2 * GIB], 'resources of oak');
	const oakNow = api.vms.get('oak');

	delete oakNow.status.cpus;
	oakNow.spec.guest.cpus.max = 3;
	api.put(oakNow);
	await until(5, async () => await ofVms('cpu', 'max') === 3, 'the changed maximum on :9101');
	same(await ofVms('cpu', 'status_use'), undefined, 'the CPU of a VM that has no status of it');
	same((await page(9101)).split('\n').filter((line) => line.startsWith('# TYPE autoscaling')),
		['# TYPE autoscaling_vm_resources gauge'], 'families of :9101');
}

// ---- a VM that goes; the end ----

async function ends() {
	const gone = api.vms.get('oak');

	api.vms.delete('oak');
	api.sendRaw(`${JSON.stringify({ type: 'DELETED', object: gone })}\n`);
	await until(5, async () => !(await page(9101)).includes('vm_name="oak"'), 'oak is no longer on :9101');
	await until(5, async () => (await dump()).pods.length === 1, 'oak is no longer in the dump');
	agent.kill('SIGTERM');
	same(await agent.ended, 0, 'exit status after SIGTERM');
}

async function main() {
	const config = `${folder}/config.json`;

	writeConfig(config);
	// Without an API it ends.
	start(config);
	same(await agent.ended, 2, 'exit status without an API');
	fs.truncateSync(`${folder}/agent.log`);

	const patch = api.patch.bind(api);

	api.patch = (name, body, response) => {
		if (!api.hold || !api.hold(name))
			patch(name, body, response);
	};
	plugin.pods = new Set();
	plugin.next = null;
	const answer = (response, message) => {
		const fault = plugin.next;

		plugin.pods.add(message.pod.name);
		if (message.pod.name === 'oak-pod') {
			asked.push({ at: Date.now(), message });
			plugin.next = null;
			if (fault) {
				fault(response, message);
				return;
			}
		}
		grant(response, message);
	};

	for (const pod of ['oak-pod', 'pine-pod', 'stranger-pod'])
		plugin.faults.set(pod, answer);
	oak.load = 0.4; // round(0.4 / 0.9 / 0.25) = 2 units, as it has
	pine.load = 0.2;
	await api.start(folder, `${prefix}.2`);
	await plugin.start(PLUGIN);
	await oak.start(`${prefix}.10`);
	await pine.start(`${prefix}.11`);
	api.put(vm('oak', `${prefix}.10`, 2));
	api.put(vm('pine', `${prefix}.11`, 1));
	const stranger = vm('stranger', `${prefix}.12`, 1);

	stranger.spec.schedulerName = 'another-scheduler';
	api.put(stranger);
	start(config);
	await until(10, () => oak.scrapes > 0 && pine.scrapes > 0 && oak.monitorConnections > 0, 'all peers see the agent');
	const scrapes = oak.scrapes;

	await Promise.all([plugins(), growth().then(monitors), sleep(8).then(dumps)]);
	check(oak.scrapes > scrapes + 8, `${oak.scrapes - scrapes} scrapes`);
	await pages();
	await ends();
}

main().catch((error) => {
	console.error(error);
	failures++;
}).finally(() => {
	if (agent && agent.exitCode === null)
		agent.kill('SIGKILL');
	process.exit(failures === 0 ? 0 : 1);
});
