// Agents whose billing receivers behave in all kinds of ways, side by side: whatever a receiver does, what it has in the end is
// each window of each VM, once, up to the end of the agent.
//
//   node agent_billing.js BALLAST FOLDER PREFIX     prints what is wrong; exit status 1 then
'use strict';

const assert = require('assert');
const { spawn } = require('child_process');
const fs = require('fs');
const http = require('http');
const { Api, agentEnvironment, makeVm, writeConfig } = require('./agent_peers.js');

const [ballast, folder, prefix] = process.argv.slice(2);
const COLLECT_S = 1;
const ACCUMULATE_S = 2;
const BATCH = 4; // events
const RUN_S = 9;
const CPUS = 0.25; // of each VM
const VMS_PER_NODE = 3;

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const api = new Api();
// Of the agents; what differs is set for each.
const environment = agentEnvironment({ folder, prefix, node: '', config: '' });
let failures = 0;

// Takes pushes: `answers` are used one after the other, the last for all that follow. An answer is a status, or a function of
// the response that sees to it itself, and returns whether the batch counts as taken.
class Receiver {
	constructor(answers) {
		this.answers = answers;
		this.pushes = []; // { body, traceId, taken }
		this.server = http.createServer((request, response) => {
			const parts = [];

			response.on('error', () => {});
			request.on('data', (part) => parts.push(part));
			request.on('end', () => this.take(request, response, Buffer.concat(parts).toString()));
		});
	}

	listen(port, address) {
		return new Promise((resolve, reject) => {
			this.server.once('error', reject);
			this.server.listen(port, address, resolve);
		});
	}

	take(request, response, body) {
		const answer = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
		let taken = answer === 200;

		this.requests = (this.requests || 0) + 1;
		if (typeof answer === 'number')
			response.writeHead(answer, answer === 429 ? { 'Retry-After': '1' } : {}).end('nope');
		else
			taken = answer(response);
		this.pushes.push({ at: Date.now() / 1000, body, taken, traceId: request.headers['x-trace-id'], request });
	}

	end() {
		this.server.close();
		this.server.closeAllConnections();
	}
}

// An agent of a node of its own, with its receiver.
class Scene {
	constructor(name, number, { answers = [200], grace, options = [], change = () => {}, vms = VMS_PER_NODE, absent = false,
		sample = 'config-b.json' }) {
		this.name = name;
		this.sample = sample;
		this.node = `node-${name}`;
		this.address = `${prefix}.${10 + number}`;
		this.log = `${folder}/${name}.log`;
		this.receiver = new Receiver(answers);
		this.grace = grace;
		this.options = options;
		this.change = change;
		this.absent = absent;
		this.vms = [];
		for (let i = 0; i < vms; i++) {
			const vm = makeVm({ name: `${name}-${i}`, node: this.node, podIP: `${prefix}.200` });

			vm.metadata.labels['autoscaling.neon.tech/enabled'] = 'false';
			vm.metadata.annotations['autoscaling.neon.tech/billing-endpoint-id'] = `ep-${name}-${i}`;
			this.vms.push(vm);
			api.put(vm);
		}
	}

	async start() {
		const config = `${folder}/${this.name}.json`;

		writeConfig(config, (c) => {
			const client = { url: `http://${this.address}:8080/v1`, pushEverySeconds: 1, pushRequestTimeoutSeconds: 1,
				maxBatchSize: BATCH };

			c.billing = { cpuMetricName: 'effective_compute_seconds', activeTimeMetricName: 'active_time_seconds',
				collectEverySeconds: COLLECT_S, accumulateEverySeconds: ACCUMULATE_S,
				...(this.sample === 'config-a.json' ? client : { clients: { http: client } }) };
			this.change(c);
		}, this.sample);
		if (!this.absent)
			await this.receiver.listen(8080, this.address);
		const log = fs.openSync(this.log, 'w');

		this.startedAt = Date.now() / 1000;
		this.process = spawn(ballast, ['agent', '--listen-address', this.address,
			...(this.grace ? ['--grace', this.grace] : []), ...this.options],
		{ env: { ...environment, K8S_NODE_NAME: this.node, CONFIG_PATH: config }, stdio: ['ignore', 'ignore', log] });
		fs.closeSync(log);
		this.ended = new Promise((resolve) => {
			this.process.on('exit', (code, signal) => {
				this.endedAt = Date.now() / 1000;
				resolve(signal || code);
			});
		});
	}

	async stop() {
		this.stoppedAt = Date.now() / 1000;
		this.process.kill('SIGTERM');
		assert.strictEqual(await this.ended, 0, 'exit status');
	}

	async page() {
		const response = await fetch(`http://${this.address}:9100/metrics`);
		const series = new Map();

		for (const line of (await response.text()).split('\n')) {
			const at = line.lastIndexOf(' ');

			if (line && !line.startsWith('#'))
				series.set(line.slice(0, at), Number(line.slice(at + 1)));
		}
		return series;
	}

	// By idempotency key; each must be the same in all its deliveries.
	events() {
		const all = new Map();

		for (const { body, taken } of this.receiver.pushes) {
			if (!taken)
				continue;
			for (const event of JSON.parse(body).events) {
				if (all.has(event.idempotency_key))
					assert.deepStrictEqual(event, all.get(event.idempotency_key), 'an event changed');
				all.set(event.idempotency_key, event);
			}
		}
		return [...all.values()];
	}

	deliveries() {
		return this.receiver.pushes.filter((push) => push.taken).reduce((sum, push) => sum + JSON.parse(push.body).events.length, 0);
	}

	logged(message) {
		return fs.readFileSync(this.log, 'utf8').split('\n').filter((line) => line.includes(`"msg":"${message}"`))
			.map((line) => JSON.parse(line));
	}

	// Each VM's windows follow each other without a gap, up to the end, and sum up to what was used.
	checkComplete({ endpoints = this.vms.map((vm) => vm.metadata.annotations['autoscaling.neon.tech/billing-endpoint-id']) } = {}) {
		const events = this.events();

		for (const endpoint of endpoints) {
			for (const [metric, factor] of [['effective_compute_seconds', CPUS], ['active_time_seconds', 1]]) {
				const windows = events.filter((e) => e.endpoint_id === endpoint && e.metric === metric)
					.sort((a, b) => (a.start_time < b.start_time ? -1 : 1));
				const what = `${endpoint} ${metric}`;

				assert(windows.length > 2, `${what}: ${windows.length} windows`);
				for (let i = 1; i < windows.length; i++)
					assert.strictEqual(windows[i].start_time, windows[i - 1].stop_time, `${what}: a gap`);
				const first = Date.parse(windows[0].start_time) / 1000;
				const last = Date.parse(windows[windows.length - 1].stop_time) / 1000;
				const sum = windows.reduce((total, e) => total + e.value, 0);

				assert(last > this.stoppedAt - 0.1, `${what}: nothing for the last ${this.stoppedAt - last} s`);
				assert(Math.abs(sum - (last - first) * factor) <= 1, `${what}: ${sum} of ${(last - first) * factor} s`);
				assert(windows.every((e) => e.type === 'incremental'), what);
			}
		}
		const drains = new Map();

		for (const { idempotency_key: key } of events) {
			const [, drain, n, count] = /^(.*)-(\d+)\/(\d+)$/.exec(key);

			drains.set(drain, (drains.get(drain) || new Set([count])).add(`#${n}`));
		}
		for (const [drain, seen] of drains)
			assert.strictEqual(seen.size - 1, Number([...seen][0]), `${drain}: not all of its events`);
	}
}

const ERRORS = (cause) => `autoscaling_agent_billing_send_errors_total{cause="${cause}",client="http"}`;
const QUEUE = 'autoscaling_agent_billing_queue_size{client="http"}';
const DURATION = 'autoscaling_agent_billing_last_send_duration_seconds{client="http"}';
const DROPPED = 'ballast_events_dropped_total{client="http",subsystem="billing"}';

function hasErrors(page) {
	return [...page.keys()].some((key) => key.startsWith('autoscaling_agent_billing_send_errors_total'));
}

const scenes = {
	good: {
		async run(scene) {
			const page = await scene.page();

			assert.strictEqual(page.get(QUEUE), 0, 'queue size at the start');
			assert.strictEqual(page.get(DROPPED), 0, 'dropped events at the start');
			await sleep(RUN_S - 1);
			const later = await scene.page();

			assert.strictEqual(later.get(
				'autoscaling_agent_billing_vms_current{autoscaling_enabled="false",is_endpoint="true",phase="Running"}'), 3);
			assert(later.get('autoscaling_agent_billing_vms_processed_total{autoscaling_enabled="false",is_endpoint="true",' +
				'phase="Running"}') >= 3 * (RUN_S - 2));
			assert(!hasErrors(later), 'errors');
			assert(later.get(DURATION) >= 1e-6 && later.get(DURATION) < 1, `last duration ${later.get(DURATION)}`);
			assert(later.get(QUEUE) < 2 * VMS_PER_NODE + 1, `queue size ${later.get(QUEUE)}`);
			assert(![...later.keys()].some((key) => key.includes('scalingevents_queue_size')), 'a client that isn\'t configured');
		},
		end(scene) {
			const [{ request, body }] = scene.receiver.pushes;

			scene.checkComplete();
			assert.strictEqual(scene.deliveries(), scene.events().length, 'something came twice');
			assert.strictEqual(request.method, 'POST');
			assert.strictEqual(request.url, '/v1/usage_events');
			assert.strictEqual(request.headers['content-type'], 'application/json');
			assert.match(request.headers['x-trace-id'], /^[2-9A-HJ-NP-Za-km-z]{13,22}$/);
			assert.strictEqual(Number(request.headers['content-length']), Buffer.byteLength(body));
			assert.match(body, /^\{"events":\[\{"idempotency_key":"[^"]*","metric":"effective_compute_seconds","type":"incremental","endpoint_id":"ep-good-\d","start_time":"[^"]*","stop_time":"[^"]*","value":\d+\},\{.*\}\]\}$/);
			assert(scene.receiver.pushes.every((push) => JSON.parse(push.body).events.length <= BATCH));
			const created = scene.logged('Created HTTP client for billing events');

			assert.strictEqual(created.length, 1);
			assert.strictEqual(created[0].logger, 'autoscaler-agent.billing');
			assert.strictEqual(created[0].config.url, `http://${scene.address}:8080/v1`);
			assert.strictEqual(created[0].config.maxBatchSize, BATCH);
			for (const [message, logger] of [['Collecting billing state', 'collect'], ['Creating billing batch', 'collect'],
				['Adding event to batch', 'collect'], ['Pushing all available event batches', 'send-http'],
				['Current queue size is non-zero', 'send-http'], ['Pushing events batch', 'send-http'],
				['Successfully pushed some events', 'send-http'], ['All available event batches have been sent', 'send-http'],
				['Received notification that events submission is done', 'send-http'], ['Ending events sender loop', 'send-http']]) {
				const lines = scene.logged(message);

				assert(lines.length > 0, `not logged: ${message}`);
				assert(lines.every((line) => line.logger === `autoscaler-agent.billing.${logger}` && line.level === 'info'),
					message);
			}
			const [pushed] = scene.logged('Successfully pushed some events');

			for (const field of ['count', 'after', 'url', 'method', 'traceID', 'totalEvents', 'totalBatches', 'totalTime'])
				assert(field in pushed, `no field ${field}`);
			assert(scene.receiver.pushes.some((push) => push.traceId === pushed.traceID), 'the trace id in the log');
			assert.strictEqual(pushed.url, `http://${scene.address}:8080/v1/usage_events`);
		},
	},
	failing: {
		answers: [500, 500, 503, 200],
		async run(scene) {
			let page;

			for (let i = 0; i < 100 && scene.receiver.pushes.length < 2; i++)
				await sleep(0.05);
			await sleep(0.1);
			page = await scene.page();
			assert(page.get(ERRORS('HTTP code 500')) >= 1);
			assert.strictEqual(page.get(DURATION), 0, 'duration after a failure');
			assert(page.get(QUEUE) >= 2 * VMS_PER_NODE, `queue size ${page.get(QUEUE)}`);
			await sleep(RUN_S - 3);
			page = await scene.page();
			assert.strictEqual(page.get(ERRORS('HTTP code 500')), 2);
			assert.strictEqual(page.get(ERRORS('HTTP code 503')), 1);
			assert(page.get(DURATION) >= 1e-6);
			assert.strictEqual(page.get(DROPPED), 0);
		},
		end(scene) {
			const [first, second, third, fourth] = scene.receiver.pushes;

			scene.checkComplete();
			assert.strictEqual(scene.deliveries(), scene.events().length, 'something came twice');
			/* The same bytes under another id, until they are taken. */
			for (const again of [second, third, fourth]) {
				assert.strictEqual(again.body, first.body);
				assert.notStrictEqual(again.traceId, first.traceId);
			}
			const [failed] = scene.logged('Failed to push billing events');

			assert.strictEqual(failed.level, 'error');
			assert.strictEqual(failed.error, 'Unexpected HTTP status code 500');
		},
	},
	created: {
		answers: [201, 202, 204, 200],
		async run(scene) {
			await sleep(RUN_S);
			const page = await scene.page();

			for (const status of [201, 202, 204])
				assert.strictEqual(page.get(ERRORS(`HTTP code ${status}`)), 1, `${status}`);
		},
		end(scene) {
			scene.checkComplete();
			assert.strictEqual(scene.receiver.pushes[1].body, scene.receiver.pushes[0].body);
		},
	},
	limited: {
		answers: [429, 429, 200],
		async run(scene) {
			await sleep(RUN_S);
			assert.strictEqual((await scene.page()).get(ERRORS('HTTP code 429')), 2);
		},
		end: (scene) => scene.checkComplete(),
	},
	redirected: {
		answers: [(response) => {
			response.writeHead(307, { Location: '/v1/elsewhere' }).end();
			return false;
		}, 200],
		async run(scene) {
			await sleep(RUN_S);
			assert.strictEqual((await scene.page()).get(ERRORS('HTTP code 307')), 1);
		},
		end(scene) {
			scene.checkComplete();
			assert(scene.receiver.pushes.every((push) => push.request.url === '/v1/usage_events'));
		},
	},
	// It has the events, but the agent can't know: they come again, with the same keys.
	cut: {
		answers: [(response) => {
			response.socket.destroy();
			return true;
		}, 200, (response) => {
			response.socket.destroy();
			return true;
		}, 200],
		async run(scene) {
			await sleep(RUN_S);
			assert((await scene.page()).get(ERRORS('EOF')) >= 2);
		},
		end(scene) {
			scene.checkComplete();
			assert(scene.deliveries() >= scene.events().length + 2, 'nothing came again');
			assert.strictEqual(scene.receiver.pushes[1].body, scene.receiver.pushes[0].body);
		},
	},
	torn: {
		answers: [(response) => {
			response.writeHead(200, { 'Content-Length': 100 });
			response.write('half');
			setTimeout(() => response.socket.resetAndDestroy(), 50);
			return true;
		}, 200],
		run: () => sleep(RUN_S),
		end: (scene) => scene.checkComplete(),
	},
	slow: {
		answers: [(response) => {
			setTimeout(() => response.writeHead(200).end(), 3000);
			return true;
		}, 200, (response) => {
			setTimeout(() => response.writeHead(200).end(), 700);
			return true;
		}],
		async run(scene) {
			await sleep(RUN_S);
			assert.strictEqual((await scene.page()).get(ERRORS('context deadline exceeded')), 1);
		},
		end: (scene) => scene.checkComplete(),
	},
	absent: {
		absent: true,
		async run(scene) {
			await sleep(5);
			const page = await scene.page();

			assert(page.get(ERRORS('connection refused')) >= 1);
			assert.strictEqual(page.get(DURATION), 0);
			assert(page.get(QUEUE) >= 4 * VMS_PER_NODE, `queue size ${page.get(QUEUE)}`);
			await scene.receiver.listen(8080, scene.address);
			await sleep(RUN_S - 5);
		},
		end(scene) {
			scene.checkComplete();
			assert.strictEqual(scene.deliveries(), scene.events().length, 'something came twice');
		},
	},
	// A full queue at SIGTERM, and the receiver comes to its senses two seconds later.
	late: {
		answers: [500],
		async run(scene) {
			await sleep(RUN_S);
			assert((await scene.page()).get(QUEUE) >= 3 * 2 * VMS_PER_NODE);
			setTimeout(() => {
				scene.receiver.answers = [200];
			}, 2000);
		},
		end(scene) {
			scene.checkComplete();
			assert.strictEqual(scene.deliveries(), scene.events().length, 'something came twice');
			assert(scene.endedAt > scene.stoppedAt + 1.9, 'it ended too early');
			assert(scene.endedAt < scene.stoppedAt + 8, `it took ${scene.endedAt - scene.stoppedAt} s to end`);
		},
	},
	// … or never.
	never: {
		answers: [500],
		grace: '1500ms',
		async run(scene) {
			await sleep(RUN_S);
			scene.queued = (await scene.page()).get(QUEUE);
		},
		end(scene) {
			const waited = scene.endedAt - scene.stoppedAt;
			const [lost] = scene.logged('Some events could not be sent and are lost');

			assert(waited > 1.4 && waited < 4, `it took ${waited} s to end`);
			assert(scene.queued >= 6 * VMS_PER_NODE);
			assert.strictEqual(lost.level, 'error');
			assert(lost.count >= scene.queued, `${lost.count} lost of ${scene.queued}`);
			assert.strictEqual(scene.events().length, 0);
			assert.strictEqual(scene.logged('Main loop returned without issue. Exiting.').length, 1);
		},
	},
	hurried: {
		answers: [500],
		grace: '0',
		run: () => sleep(3),
		end(scene) {
			assert(scene.endedAt - scene.stoppedAt < 1.5, 'no grace period takes time');
			assert(scene.receiver.pushes.length >= 1, 'nothing was tried');
		},
	},
	// What a full queue has no room for is counted and told once; what it has, and what comes later, arrives once.
	bounded: {
		answers: [500],
		options: ['--event-queue-events', '10'],
		async run(scene) {
			await sleep(RUN_S);
			const DROPPED = 'ballast_events_dropped_total{client="http",subsystem="billing"}';
			const page = await scene.page();

			assert.strictEqual(page.get(QUEUE), 10);
			assert(page.get(DROPPED) >= 2 * VMS_PER_NODE, `${page.get(DROPPED)} dropped`);
			scene.receiver.answers = [200];
			await sleep(2 * ACCUMULATE_S + 1);
			assert(scene.events().length >= 10, 'what waited was not sent');
			scene.dropped = (await scene.page()).get(DROPPED);
		},
		end(scene) {
			const lost = scene.logged('The queue of events takes no more: some are lost');
			const made = scene.logged('Adding event to batch').length;

			assert.strictEqual(lost.length, 1);
			assert.strictEqual(lost[0].level, 'error');
			assert.strictEqual(scene.deliveries(), scene.events().length, 'something came twice');
			assert.strictEqual(scene.events().length, made - scene.dropped);
		},
	},
	// Nothing has been collected yet; and being told twice changes nothing.
	brief: {
		answers: [500],
		async run(scene) {
			scene.process.kill('SIGTERM');
			setTimeout(() => scene.process.kill('SIGINT'), 1);
		},
		end(scene) {
			assert(scene.endedAt - scene.stoppedAt < 3, 'there was nothing to wait for');
			assert.strictEqual(scene.receiver.pushes.length, 0);
		},
	},
	impatient: {
		answers: [500],
		async run(scene) {
			await sleep(RUN_S);
			scene.process.kill('SIGTERM');
			setTimeout(() => scene.process.kill('SIGTERM'), 300);
			setTimeout(() => {
				scene.receiver.answers = [200];
			}, 1500);
		},
		end(scene) {
			scene.checkComplete();
			assert.strictEqual(scene.deliveries(), scene.events().length, 'something came twice');
		},
	},
	// VMs that come and go, and one that others have billed.
	comings: {
		vms: 2,
		async run(scene) {
			const brief = makeVm({ name: 'comings-brief', node: scene.node, podIP: `${prefix}.200` });
			const late = makeVm({ name: 'comings-late', node: scene.node, podIP: `${prefix}.200` });

			for (const vm of [brief, late]) {
				vm.metadata.labels['autoscaling.neon.tech/enabled'] = 'false';
				vm.metadata.annotations['autoscaling.neon.tech/billing-endpoint-id'] = `ep-${vm.metadata.name}`;
			}
			await sleep(2.2); // between two collections, which come with each whole second
			api.put(brief);
			await sleep(0.4);
			api.remove(brief);
			await sleep(1);
			api.put(late);
			await sleep(3);
			api.remove(scene.vms[1]);
			await sleep(RUN_S - 6.6);
		},
		end(scene) {
			const of = (name) => scene.events().filter((e) => e.endpoint_id === `ep-comings-${name}`);

			scene.checkComplete({ endpoints: ['ep-comings-0'] });
			assert.strictEqual(of('brief').length, 0, 'a VM that was never seen twice is billed');
			const active = (name) => of(name).filter((e) => e.metric === 'active_time_seconds').reduce((s, e) => s + e.value, 0);

			assert(active('late') >= 3 && active('late') <= 6, `late: ${active('late')} s`);
			assert(active('1') >= 4 && active('1') <= 7, `deleted: ${active('1')} s`);
		},
	},
	unbilled: {
		change: (config) => {
			config.billing.clients = {};
		},
		async run(scene) {
			await sleep(5);
			const page = await scene.page();

			assert(![...page.keys()].some((key) => key.includes('queue_size')), 'a queue without a client');
			assert(page.get(
				'autoscaling_agent_billing_vms_current{autoscaling_enabled="false",is_endpoint="true",phase="Running"}') === 3);
		},
		end(scene) {
			assert(scene.logged('Adding event to batch').length >= 2 * 2 * VMS_PER_NODE);
			assert.strictEqual(scene.receiver.pushes.length, 0);
		},
	},
	// M9, late 2023: single events, drained at each tick in chunks cut anew; after a failure the rest waits for the next.
	ticks: {
		sample: 'config-a.json',
		answers: [200, 500, 200],
		async run(scene) {
			const first = await scene.page();

			assert.strictEqual(first.get('autoscaling_agent_billing_queue_size'), 0, 'queue size at the start');
			for (let i = 0; i < 100 && scene.receiver.pushes.length < 2; i++)
				await sleep(0.05);
			await sleep(0.1);
			const page = await scene.page();

			assert.strictEqual(page.get('autoscaling_agent_billing_queue_size'), 2 * VMS_PER_NODE - BATCH, 'queue size');
			assert.strictEqual(page.get('autoscaling_agent_billing_send_errors_total{cause="HTTP code 500"}'), 1);
			assert.strictEqual(page.get(
				'autoscaling_agent_billing_vms_current{autoscaling_enabled="false",is_endpoint="true",phase="Running"}'), 3);
			for (const key of page.keys()) {
				assert(!key.startsWith('autoscaling_agent_') || !key.includes('client='), `a client: ${key}`);
				assert(!/_last_send_duration|_scalingevents_|_scaling_events_/.test(key), `not of late 2023: ${key}`);
			}
			await sleep(RUN_S - 3);
			assert.strictEqual((await scene.page()).get('autoscaling_agent_billing_queue_size'), 0, 'queue size at last');
		},
		end(scene) {
			const pushes = scene.receiver.pushes;
			const keys = (push) => JSON.parse(push.body).events.map((event) => event.idempotency_key);
			const [first, second, third] = pushes;

			scene.checkComplete();
			assert.strictEqual(scene.deliveries(), scene.events().length, 'something came twice');
			assert.deepStrictEqual([keys(first).length, keys(second).length], [BATCH, 2 * VMS_PER_NODE - BATCH]);
			assert.deepStrictEqual(keys(third).slice(0, keys(second).length), keys(second), 'other keys than in the failed push');
			assert.strictEqual(new Set(pushes.map((push) => push.traceId)).size, pushes.length, 'a trace id came again');
			assert(second.at - first.at < 0.5 && third.at - second.at > 0.5, 'the rest didn\'t wait for the next tick');
			// Until SIGTERM each drain begins with a tick: whole periods after the first.
			for (let i = 1; i < pushes.length && pushes[i].at < scene.stoppedAt; i++) {
				const periods = pushes[i].at - first.at;

				if (pushes[i].at - pushes[i - 1].at > 0.5)
					assert(Math.abs(periods - Math.round(periods)) < 0.25, `a drain ${periods} s after the first`);
			}
			assert.strictEqual(first.request.url, '/v1/usage_events');
			assert.strictEqual(first.request.headers['content-type'], 'application/json');
			assert.match(first.traceId, /^[2-9A-HJ-NP-Za-km-z]{13,22}$/);
			assert.match(first.body, /^\{"events":\[\{"idempotency_key":"[^"]*Z-[^"]*-\d+\/\d+","metric":"[^"]*","type":"incremental","endpoint_id":"ep-ticks-\d","start_time":"[^"]*","stop_time":"[^"]*","value":\d+\},/);
		},
	},
	// … whose queue is full at SIGTERM, and whose receiver comes to its senses two seconds later.
	ticksLate: {
		sample: 'config-a.json',
		answers: [500],
		async run(scene) {
			await sleep(RUN_S);
			assert((await scene.page()).get('autoscaling_agent_billing_queue_size') >= 3 * 2 * VMS_PER_NODE);
			setTimeout(() => {
				scene.receiver.answers = [200];
			}, 2000);
		},
		end(scene) {
			scene.checkComplete();
			assert(scene.receiver.pushes.every((push) => JSON.parse(push.body).events.length <= BATCH));
			assert(scene.endedAt > scene.stoppedAt + 1.9, 'it ended too early');
			assert(scene.endedAt < scene.stoppedAt + 8, `it took ${scene.endedAt - scene.stoppedAt} s to end`);
		},
	},
	// Late 2023 with neither of the sections that may be left out: no collection, no families, no sender; no state dump.
	off: {
		sample: 'config-a.json',
		change: (config) => {
			delete config.billing;
			delete config.dumpState;
		},
		async run(scene) {
			await sleep(4);
			await assert.rejects(fetch(`http://${scene.address}:10300/`), (error) => error.cause.code === 'ECONNREFUSED');
			for (const key of (await scene.page()).keys())
				assert(!key.includes('billing') && !key.startsWith('ballast_events_dropped'), `billing is off, but: ${key}`);
		},
		end(scene) {
			assert(!fs.readFileSync(scene.log, 'utf8').includes('autoscaler-agent.billing'), 'the log speaks of billing');
			assert.strictEqual(scene.receiver.pushes.length, 0);
			assert(scene.endedAt - scene.stoppedAt < 2, 'it took long to end');
		},
	},
};

async function play(name, number) {
	const description = scenes[name];
	const scene = new Scene(name, number, description);

	try {
		await scene.start();
		for (let i = 0; i < 200 && scene.logged('Entering main loop').length === 0; i++)
			await sleep(0.05);
		await description.run(scene);
		await scene.stop();
		await description.end(scene);
	} catch (error) {
		failures++;
		console.error(`agent_billing: ${name}: ${error.stack}`);
		console.error(fs.readFileSync(scene.log, 'utf8').split('\n').slice(-12)
			.map((line) => line.slice(0, 400)).join('\n'));
	} finally {
		scene.process.kill('SIGKILL');
		scene.receiver.end();
	}
}

async function main() {
	await api.start(folder, `${prefix}.2`);
	await Promise.all(Object.keys(scenes).map(play));
	process.exit(failures > 0 ? 1 : 0);
}

main();
