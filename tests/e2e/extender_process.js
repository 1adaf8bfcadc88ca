// An extender as a process (specification 18.7): its flags, start, health, certificates and end.
//
//   node extender_process.js PROGRAM FOLDER PREFIX
'use strict';

const assert = require('assert').strict;
const { execFileSync, spawn, spawnSync } = require('child_process');
const fs = require('fs');
const https = require('https');
const net = require('net');
const path = require('path');
const { ABC, Api, Extender, HEALTH_PORT, NODE_B, PENDING, PORT, TOKEN, conflict, makeArgs, makePod, makeReservation, makeStatus, matched, runTests,
	sleep, until } = require('./extender_peers.js');
const { scan } = require('./memory_scan.js');

const [program, folder, prefix] = process.argv.slice(2);
const api = new Api();
const probe = path.join(folder, 'health_probe');
const byName = path.join(folder, 'extender');
const readiness = path.join(folder, 'nodes.yaml');

function start(flags = [], environment = {}) {
	return new Extender({ program, folder, prefix, apiAddress: `${prefix}.2`, flags, environment });
}

async function withExtender(flags, test, environment) {
	const extender = start(flags, environment);

	try {
		await extender.ready();
		await test(extender);
	} finally {
		assert.equal(await extender.stop(), 0, extender.log);
	}
}

// Expects that it ends by itself.
async function expectEnd(extender, code, text) {
	const ended = await Promise.race([extender.ended, sleep(8000).then(() => 'nothing')]);

	assert.equal(ended, code, extender.log);
	assert.match(extender.log, text);
}

function listens(port, address = `${prefix}.1`) {
	return new Promise((resolve) => {
		const socket = net.connect(port, address);

		socket.on('connect', () => { socket.destroy(); resolve(true); });
		socket.on('error', () => resolve(false));
	});
}

function makeCertificate(name) {
	execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
		'-subj', `/CN=${name}`, '-addext', `subjectAltName=IP:${prefix}.1`, '-keyout', `${folder}/${name}.key`, '-out', `${folder}/${name}.crt`],
	{ stdio: 'ignore' });
}

// The certificate's name that a new connection sees.
function seenCertificate() {
	return new Promise((resolve, reject) => {
		const request = https.request({ host: `${prefix}.1`, port: PORT, path: '/filter', agent: false, rejectUnauthorized: false }, (response) => {
			resolve(response.socket.getPeerCertificate().subject.CN);
			response.resume();
		});

		request.on('error', reject);
		request.end();
	});
}

const KUBECONFIG = (server) => `
clusters:
- name: c
  cluster: {server: "${server}", certificate-authority: "${folder}/account/ca.crt"}
users:
- name: u
  user: {tokenFile: "${folder}/account/token"}
contexts:
- name: x
  context: {cluster: c, user: u}
current-context: x
`;

const TESTS = {
	async T79_flags() {
		for (const [flags, code, text] of [
			[['--bogus'], 2, /flag provided but not defined: -bogus[^]*-provisioner/],
			[['--port=x'], 2, /invalid value "x" for flag -port: parse error/],
			[['--port'], 2, /flag needs an argument: -port/],
			[['--usenodeannotation=maybe'], 2, /invalid boolean value "maybe" for -usenodeannotation: parse error/],
			[['--Port=1'], 2, /not defined: -Port/],
			[['--wait-for-reservation=5s'], 2, /out of range/],
			[['--log-format=xml'], 2, /xml/],
			[['-h'], 0, /-certFile/],
			[['--help'], 0, /Usage: ballast extender/],
			[['-version'], 0, /^ballast /],
		]) {
			const { status, stdout, stderr } = spawnSync(program, ['extender', ...flags], { encoding: 'utf8', env: {} });

			assert.equal(status, code, flags.join(' '));
			assert.match(code === 2 ? stderr : stdout, text);
		}
		const named = spawnSync(byName, ['--bogus'], { encoding: 'utf8', env: {} });

		assert.equal(named.status, 2);
		assert.match(named.stderr, /not defined: -bogus/);
	},

	async T79_single_dashes_and_words_behind() {
		await withExtender(['-port', '9001', '--usenodeannotation', 'true', '--port', '9002'], async (extender) => {
			assert.ok(await listens(9001));
			assert.ok(!await listens(9002));
			await until('the warning', () => /"level":"warn".*"first":"true"/.test(extender.log));
		});
		await withExtender([`--certFile=${folder}/none.crt`], async (extender) => {
			assert.deepEqual(await extender.filter(makeArgs(makePod('p'))), matched(ABC, null));
			await until('the warning', () => /"level":"warn".*plain HTTP/.test(extender.log));
		});
	},

	async T76_node_name_is_required() {
		await expectEnd(start([], { KUBE_NODE_NAME: '' }), 1, /nodeName parameter is empty/);
	},

	// The filter of system calls is there, and what it leaves is enough for TLS, names and files that are read again. No memory
	// is writable and executable, and tokens and keys are nowhere but where they are needed.
	async hardening() {
		const sanitized = /lib[a-z]*san/.test(spawnSync('ldd', [program], { encoding: 'utf8' }).stdout);
		const filters = !sanitized && fs.existsSync('/proc/sys/kernel/seccomp/actions_avail');
		const about = (pid, name) => new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1];
		const home = `${folder}/named.kubeconfig`;

		const agent = new https.Agent({ keepAlive: true, rejectUnauthorized: false });

		makeCertificate('guarded');
		fs.writeFileSync(home, KUBECONFIG('https://localhost:6443').replace('cluster: {', `cluster: {tls-server-name: ${prefix}.2, `));
		await withExtender(['--loglevel=trace', `--certFile=${folder}/guarded.crt`, `--privateKeyFile=${folder}/guarded.key`], async (extender) => {
			const { pid } = extender.child;
			const key = fs.readFileSync(`${folder}/guarded.key`, 'utf8').split('\n')[1];

			assert.deepEqual(await extender.filter(makeArgs(makePod('p')), { protocol: https, agent }), matched(ABC, null));
			agent.destroy();
			assert.ok(!extender.log.includes(key), 'the key is in the log');
			if (filters)
				assert.deepEqual([about(pid, 'Seccomp'), about(pid, 'NoNewPrivs')], ['2', '1']);
			if (!sanitized) {
				const maps = fs.readFileSync(`/proc/${pid}/maps`, 'utf8');

				assert.match(maps, / r-xp /);
				assert.ok(!/^\S+ .wx/m.test(maps), maps);
				// The token as it was read and as requests show it; the key's file, to see that it changes. Nothing else.
				for (const [text, most] of [[TOKEN, 2], [key, 1]]) {
					const copies = scan(pid, text);

					assert.ok(copies === null || copies.length <= most, `copies in memory: ${copies}`);
				}
				assert.ok(scan(pid, 'ballast') === null || scan(pid, 'ballast').length > 0);
			}
		});
		const named = start(['--loglevel=trace', `--kubeconfig=${home}`]);

		// The thread that looks names up begins under the filter.
		await until('an attempt at what the name stands for', () => /dial tcp \S+:6443: connect: connection refused/.test(named.log), 15000);
		assert.equal(await named.stop(), 0);
		await withExtender(['--no-seccomp'], async (extender) => {
			assert.equal(about(extender.child.pid, 'Seccomp'), about('self', 'Seccomp'));
		});
	},

	// In its order: flag, KUBECONFIG, service account, ~/.kube/config.
	async P4_credentials() {
		const home = `${folder}/home`, good = `${home}/.kube/config`, bad = `${folder}/bad.kubeconfig`, gone = `${folder}/gone`;
		const outside = { KUBERNETES_SERVICE_HOST: '', KUBERNETES_SERVICE_PORT: '' };

		fs.mkdirSync(path.dirname(good), { recursive: true });
		fs.writeFileSync(good, KUBECONFIG(`https://${prefix}.2:6443`));
		fs.writeFileSync(bad, 'current-context: nowhere\n');
		for (const [flags, environment] of [[[`--kubeconfig=${good}`], { ...outside, KUBECONFIG: bad, HOME: gone }],
			[[], { KUBERNETES_SERVICE_HOST: `${prefix}.9`, KUBECONFIG: good }], [[], { ...outside, HOME: home }],
			[[], { BALLAST_SERVICEACCOUNT_DIR: gone, HOME: home }]])
			await withExtender(flags, async (extender) => {
				assert.match(extender.log, new RegExp(`"msg":"Using a kubeconfig".*"file":"${good}"`));
				assert.deepEqual(await extender.filter(makeArgs(makePod('p'))), matched(ABC, null));
			}, environment);
		fs.writeFileSync(good, fs.readFileSync(bad));
		await withExtender([], (extender) => assert.doesNotMatch(extender.log, /kubeconfig/), { HOME: home });
		const nowhere = /there is no context \\"nowhere\\"/;

		await expectEnd(start([`--kubeconfig=${bad}`], { KUBECONFIG: gone }), 1, nowhere);
		await expectEnd(start([`--kubeconfig=${gone}`], { HOME: home }), 1, /gone: no such file/);
		await expectEnd(start([], { KUBECONFIG: bad }), 1, nowhere);
		await expectEnd(start([], { ...outside, HOME: home }), 1, nowhere);
		await expectEnd(start([], { ...outside, HOME: gone }), 1, /KUBERNETES_SERVICE_HOST/);
	},

	async fatal_at_the_start() {
		await expectEnd(start([], { KUBERNETES_SERVICE_HOST: '' }), 1, /KUBERNETES_SERVICE_HOST/);
		await expectEnd(start([`--certFile=${folder}/none`, `--privateKeyFile=${folder}/none`]), 1, /none: no such file/);
		fs.writeFileSync(`${folder}/bad.pem`, 'no certificate');
		await expectEnd(start([`--certFile=${folder}/bad.pem`, `--privateKeyFile=${folder}/bad.pem`]), 1, /bad\.pem/);
		for (const [port, flag] of [[PORT, 'port'], [HEALTH_PORT, 'healthport']]) {
			const taken = net.createServer();

			await new Promise((resolve) => taken.listen(port, `${prefix}.1`, resolve));
			await expectEnd(start([`--${flag}=${port}`]), 1, /address already in use/);
			taken.close();
		}
		api.fault = (method, where) => (where.endsWith('/volumes') ? { status: 404, body: makeStatus(404, 'NotFound', 'not here') } : null);
		await expectEnd(start(), 1, /volumes\.csi-baremetal\.dell\.com.*not here/);
		api.fault = null;
	},

	async P6_no_port_before_the_caches_are_complete() {
		let away = true;

		api.fault = (method, where) => (away && where.endsWith('/volumes') ? { status: 403, body: makeStatus(403, 'Forbidden', 'not yet') } : null);
		const extender = start([`--metrics-address=${prefix}.1:8787`]);

		await until('the first failure', () => extender.log.includes('not yet'));
		assert.deepEqual([await listens(PORT), await listens(HEALTH_PORT), await listens(8787)], [false, false, true]);
		away = false;
		await extender.ready();
		await until('the port', () => listens(PORT));
		api.fault = null;
		const page = await extender.request(8787, '/metrics', null, { method: 'GET', agent: undefined });

		assert.deepEqual([page.status, page.headers['content-type']], [200, 'text/plain; version=0.0.4; charset=utf-8']);
		assert.match(page.body, /^process_start_time_seconds /m);
		assert.equal((await extender.request(8787, '/filter', '{}', { agent: undefined })).status, 404);
		assert.equal(await extender.stop(), 0);
	},

	async a_metrics_port_that_is_taken_is_a_warning() {
		await withExtender([`--metrics-address=${prefix}.1:${PORT + 1}`], async () => {
			const second = start([`--metrics-address=${prefix}.1:${PORT + 1}`, '--port=9001', '--healthport=9002']);

			await until('the warning', () => /"level":"warn".*metrics port.*address already in use/.test(second.log));
			await until('it serves', () => listens(9001));
			assert.equal(await second.stop(), 0);
		});
		await withExtender(['--metrics-path='], async (extender) =>
			assert.equal((await extender.ask('/metrics', null, { method: 'GET' })).status, 404));
	},

	async T67_T68_to_T75_health() {
		const one = (restarted, name = 'cp-1') => `    - node_name: ${name}\n      kube_scheduler: kube-scheduler-${name}\n      restarted: ${restarted}\n`;
		const run = (address = `${prefix}.1:${HEALTH_PORT}`) => spawn(probe, [`-addr=${address}`]);
		const probed = (child) => new Promise((resolve) => child.on('close', resolve));
		const NOT_FOUND = 'node cp-1 is not found in extenders status list';
		const NOT_RESTARTED = 'kube-scheduler kube-scheduler-cp-1 is not restarted after patching';

		fs.rmSync(readiness, { force: true });
		await withExtender([`--readiness-file=${readiness}`], async (extender) => {
			assert.deepEqual(((answer) => [answer.status, answer.body])(await extender.health('/readyz')), [200, 'ok']);
			assert.equal(await probed(run()), 0);
		});
		await withExtender(['--isPatchingEnabled', `--readiness-file=${readiness}`], async (extender) => {
			for (const [content, wanted] of [
				[null, `open ${readiness}: no such file or directory`],
				[`nodes:\n${one('true')}`, 'ok'],
				[`nodes:\n${one('false')}`, NOT_RESTARTED],
				['nodes: []\n', NOT_FOUND],
				['', NOT_FOUND],
				[`nodes:\n${one('true', 'cp-2')}`, NOT_FOUND],
				[`nodes:\n${one('false')}${one('true')}`, NOT_RESTARTED],
				[`nodes:\n${one('yes')}`, 'ok'],
				[`nodes:\n${one('on')}`, 'ok'],
				['{"nodes":[{"node_name":"cp-1","restarted":true}]}', 'ok'],
				[`nodes:\n${one('"true"')}`, /yaml/],
				[`nodes:\n${one('1')}`, /yaml/],
				['nodes: 5\n', /yaml/],
				[`nodes:\n${one('true')}`, 'ok'],
			]) {
				// By symlink, as kubelet swaps it.
				fs.rmSync(readiness, { force: true });
				if (content !== null) {
					fs.writeFileSync(`${folder}/content.yaml`, content);
					fs.symlinkSync(`${folder}/content.yaml`, readiness);
				}
				const { status, body } = await extender.health('/readyz');

				assert.equal(status, wanted === 'ok' ? 200 : 503, `${content} → ${body}`);
				if (typeof wanted === 'string')
					assert.equal(body, wanted);
				else
					assert.match(body, wanted);
				assert.equal(await probed(run()), wanted === 'ok' ? 0 : 4);
				assert.equal((await extender.health('/healthz')).status, 200);
			}
			assert.equal((await extender.health('/')).status, 404);
		});
		assert.equal(await probed(run()), 2);
		for (const flags of [[], ['-addr=x'], ['-addr'], ['--bogus'], ['-addr=:1', 'word']])
			assert.equal(spawnSync(probe, flags).status, 1, flags.join(' '));
		assert.equal(spawnSync(probe, ['-h']).status, 0);
		const silent = net.createServer(() => {});

		await new Promise((resolve) => silent.listen(HEALTH_PORT, `${prefix}.1`, resolve));
		const begin = Date.now();
		const child = spawn(probe, [`-addr=${prefix}.1:${HEALTH_PORT}`, '-rpc-timeout=300ms', '-connect-timeout', '1s', '-service=x']);

		assert.equal(await probed(child), 3);
		assert.ok(Date.now() - begin < 2000);
		silent.close();
	},

	async certificates_are_read_again() {
		makeCertificate('first');
		makeCertificate('second');
		const use = (name) => {
			fs.copyFileSync(`${folder}/${name}.crt`, `${folder}/tls.crt`);
			fs.copyFileSync(`${folder}/${name}.key`, `${folder}/tls.key`);
		};

		use('first');
		await withExtender([`-certFile=${folder}/tls.crt`, `-privateKeyFile=${folder}/tls.key`], async (extender) => {
			const agent = new https.Agent({ keepAlive: true, rejectUnauthorized: false });
			const options = { protocol: https, agent };

			assert.deepEqual(await extender.filter(makeArgs(makePod('p')), options), matched(ABC, null));
			assert.equal(await seenCertificate(), 'first');
			fs.copyFileSync(`${folder}/second.crt`, `${folder}/tls.crt`); // the key doesn't fit yet
			await until('half a change is noticed', () => /can't be used/.test(extender.log), 15000);
			assert.equal(await seenCertificate(), 'first');
			use('second');
			await until('the new certificate', async () => await seenCertificate() === 'second', 15000);
			assert.deepEqual(await extender.filter(makeArgs(makePod('p')), options), matched(ABC, null));
			agent.destroy();
		});
	},

	async SIGTERM_lets_calls_end() {
		const extender = start();

		await extender.ready();
		api.reservations.clear();
		api.seed(makeReservation('shop-cart-3', 'RESERVED', [], ['uid-b']));
		api.fault = (method, where) => (where.endsWith('/shop-cart-3') ? { delay: 1000 } : null);
		const pending = extender.filter(makeArgs(makePod('cart-3', ['data-cart-0'])));

		await until('the read', () => api.requests.some((entry) => entry.path.endsWith('/shop-cart-3')));
		const begin = Date.now();

		extender.child.kill('SIGTERM');
		await until('it no longer accepts', async () => !await listens(PORT));
		assert.equal((await extender.health('/readyz')).status, 503);
		assert.deepEqual((await pending).Nodes.items, [NODE_B]);
		assert.equal(await extender.ended, 0);
		assert.ok(Date.now() - begin < 3000, `${Date.now() - begin} ms`);
		api.fault = null;
	},

	async SIGINT_while_nothing_is_complete() {
		api.fault = () => ({ hang: true });
		api.lists = [];
		const extender = start();

		await until('it asks', () => api.lists.length > 0);
		assert.equal(await extender.stop('SIGINT'), 0);
		api.fault = null;
		await sleep(50);
	},

	async a_client_that_goes_cancels_its_call() {
		await withExtender([], async (extender) => {
			let closed = false;

			api.requests = [];
			api.fault = (method, where) => (where.endsWith('/shop-cart-3') ? { hang: true } : null);
			const body = JSON.stringify(makeArgs(makePod('cart-3', ['data-cart-0'])));
			const socket = net.connect(PORT, `${prefix}.1`);

			socket.write(`POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
			await until('the read', () => api.requests.some((entry) => entry.path.endsWith('/shop-cart-3')));
			api.requests[0].response.on('close', () => { closed = true; });
			socket.destroy();
			await until('the call is cancelled', () => closed, 2000);
			// And one that stays gets its answer within the budget, whatever the API server does.
			const begin = Date.now();

			assert.deepEqual(await extender.filter(body), PENDING);
			assert.ok(Date.now() - begin >= 3500 && Date.now() - begin < 4900, `${Date.now() - begin} ms`);
			api.fault = null;
		});
	},

	async lines_of_one_call_belong_together_and_say_why_the_pod_waits() {
		await withExtender([], async (extender) => {
			const linesOf = (pod) => extender.log.split('\n').filter((text) => text.includes(`"pod":"${pod}"`)).map((text) => JSON.parse(text));

			api.reservations.clear();
			api.fault = (method, where) => (where.endsWith('/shop-away') ? { status: 503, body: makeStatus(503, 'ServiceUnavailable', 'not now') } : null);
			assert.deepEqual(await extender.filter(makeArgs(makePod('away', ['data-cart-0']))), PENDING);
			await until('both lines', () => linesOf('away').length >= 2);
			const [failed, waits] = linesOf('away');

			assert.deepEqual([failed.level, failed.status, waits.msg], ['warn', 503, 'The pod has to wait']);
			assert.equal(waits.reason, 'a call to the API server failed');
			assert.equal(waits.sessionUUID, failed.sessionUUID);
			api.fault = (method) => (method === 'PUT' ? { status: 409, body: conflict('shop-busy') } : null);
			api.seed(makeReservation('shop-busy', 'REJECTED', ['uid-z'], []));
			assert.deepEqual(await extender.filter(makeArgs(makePod('busy', ['data-cart-0']))), PENDING);
			await until('the line', () => linesOf('busy').length >= 1);
			assert.equal(linesOf('busy')[0].reason, 'the reservation was changed meanwhile, again and again');
			assert.notEqual(linesOf('busy')[0].sessionUUID, failed.sessionUUID);
			api.fault = null;

			// More ids than a reservation may have.
			const nodes = Array.from({ length: 40000 }, (_, i) => ({ metadata: { name: `n${i}`, uid: `${i}`.padStart(250, 'u') } }));

			assert.deepEqual(await extender.filter(makeArgs(makePod('vast', ['data-cart-0']), nodes)), PENDING);
			await until('both lines', () => linesOf('vast').length >= 2);
			assert.deepEqual(linesOf('vast').map((line) => line.level), ['error', 'info']);
			assert.match(linesOf('vast')[0].error, /8388608 bytes/);
			assert.equal(linesOf('vast')[1].reason, 'the extender has reached a limit');
		});
		await withExtender(['--wait-for-reservation=3s'], async (extender) => {
			api.reservations.clear();
			const waiting = extender.filter(makeArgs(makePod('late', ['data-cart-0'])));

			await until('the reservation', () => api.reservations.has('shop-late'));
			api.seed(makeReservation('shop-late', 'REJECTED', ['uid-a'], []));
			assert.deepEqual(await waiting, PENDING);
			assert.equal(api.reservations.get('shop-late').spec.Status, 'REJECTED'); // not asked again at once
			await until('the line', () => extender.log.includes('"reason":"the controller has just answered, without a node for it'));
		});
	},

	async lines_for_people() {
		await withExtender([], async (extender) => {
			await extender.filter(makeArgs(makePod('p', ['missing'])));
			await until('the line', () => /^\d{4}-\d\d-\d\dT\S+ INFO .* pod="p"/m.test(extender.log));
		}, { LOG_FORMAT: 'text' });
		await withExtender([], async (extender) => {
			await extender.filter(makeArgs(makePod('p', ['missing'])));
			await until('the line', () => extender.log.includes('"pod":"p"'));
			const line = JSON.parse(extender.log.split('\n').find((text) => text.includes('"pod":"p"')));

			assert.deepEqual([line.component, line.method, line.level, line.namespace], ['Extender', 'FilterHandler', 'info', 'shop']);
			assert.match(line.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.\d+Z$/);
			assert.match(line.sessionUUID, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
		});
	},
};

async function main() {
	fs.symlinkSync(program, probe);
	fs.symlinkSync(program, byName);
	await api.start(folder, `${prefix}.2`);
	const failures = await runTests(TESTS, {});

	api.stop();
	process.exit(failures > 0 ? 1 : 0);
}

main().catch((error) => {
	console.log(error.stack);
	process.exit(1);
});
