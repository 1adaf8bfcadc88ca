'use strict';
// The agent itself, billing to all three kinds of clients at once: an HTTP receiver, an S3 server, Azurite. In the end each
// has the same events, the last window's among them, and the metrics and the log agree.
//
//   node report_agent.js BALLAST FOLDER PREFIX     exit status 1 when something is wrong

const assert = require('assert');
const { spawn } = require('child_process');
const fs = require('fs');
const http = require('http');
const { Api, agentEnvironment, makeVm, writeConfig } = require('./agent_peers.js');
const h = require('./report_harness.js');
const { ACCOUNT, KEY, ask, readBucket, readContainer, startAzurite, startS3 } = require('./report_servers.js');

const [ballast, folder, prefix] = process.argv.slice(2);
const VMS = 3;
const push = { pushEverySeconds: 1, pushRequestTimeoutSeconds: 5, maxBatchSize: 5 };

process.env.WORK = folder;

const makeReceiver = async () => {
	const lines = [];
	const server = http.createServer(async (request, response) => {
		lines.push(...JSON.parse(String(await h.readAll(request))).events.map((event) => JSON.stringify(event)));
		response.end();
	});
	return { lines, url: `http://127.0.0.1:${await h.listen(server)}` };
};

const startApi = async () => {
	const api = new Api();
	for (let i = 0; i < VMS; i++) {
		const vm = makeVm({ name: `vm-${i}`, node: 'node', podIP: `${prefix}.200` });
		vm.metadata.labels['autoscaling.neon.tech/enabled'] = 'false';
		vm.metadata.annotations['autoscaling.neon.tech/billing-endpoint-id'] = `ep-${i}`;
		api.put(vm);
	}
	await api.start(folder, `${prefix}.2`);
};

const startAgent = (config) => {
	const log = fs.openSync(`${folder}/agent.log`, 'w');
	const child = spawn(ballast, ['agent', '--listen-address', `${prefix}.1`], {
		env: {
			...agentEnvironment({ folder, prefix, node: 'node', config }),
			AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER',
			BALLAST_AZURE_SHARED_KEY_ACCOUNT: ACCOUNT, BALLAST_AZURE_SHARED_KEY: KEY,
		},
		stdio: ['ignore', 'ignore', log],
	});
	process.once('exit', () => child.kill('SIGKILL'));
	return { child, ended: new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal || code))) };
};

h.main(async () => {
	const [azurite, s3, receiver] = await Promise.all([startAzurite(), startS3(), makeReceiver(), startApi()]);
	await ask(azurite.port, 'PUT', `/${ACCOUNT}/billing`, { restype: 'container' });
	const config = `${folder}/config.json`;
	writeConfig(config, (c) => {
		c.billing.collectEverySeconds = 1;
		c.billing.accumulateEverySeconds = 2;
		c.billing.clients = {
			http: { url: receiver.url, ...push },
			azureBlob: { endpoint: `http://127.0.0.1:${azurite.port}/${ACCOUNT}/`, container: 'billing', prefixInContainer: 'agent//', ...push },
			s3: { bucket: 'metrics', region: 'us-east-1', endpoint: `http://127.0.0.1:${s3.port}`, prefixInBucket: 'agent', ...push },
		};
	});
	const agent = startAgent(config);
	await h.sleep(7000);
	const page = await (await fetch(`http://${prefix}.1:9100/metrics`)).text();
	agent.child.kill('SIGTERM');
	assert.strictEqual(await agent.ended, 0);

	const log = fs.readFileSync(`${folder}/agent.log`, 'utf8');
	for (const client of ['http', 'azureblob', 's3']) {
		assert.match(page, new RegExp(`autoscaling_agent_billing_queue_size\\{client="${client}"\\} \\d`));
		assert.match(page, new RegExp(`autoscaling_agent_billing_last_send_duration_seconds\\{client="${client}"\\} [\\d.e-]+`));
		assert.ok(log.includes(`autoscaler-agent.billing.send-${client}`), client);
	}
	assert.doesNotMatch(page, /billing_send_errors_total\{/);
	assert.ok(!log.includes(KEY));

	const blobs = await readContainer(azurite.port, 'billing');
	const objects = await readBucket(s3.port, '');
	for (const { name } of blobs) assert.match(name, /^agent\/year=\d{4}\/month=\d\d\/day=\d\d\/hour=\d\d\/\d\d:\d\d:\d\dZ_/);
	const inBlobs = blobs.flatMap((blob) => blob.lines).sort();
	const inObjects = objects.flatMap((object) => object.lines).sort();
	const posted = [...receiver.lines].sort();
	assert.ok(posted.length >= 3 * 2 * VMS, `${posted.length} events`);
	assert.strictEqual(new Set(posted.map((line) => JSON.parse(line).idempotency_key)).size, posted.length);
	assert.deepStrictEqual(inBlobs, posted);
	assert.deepStrictEqual(inObjects, posted);
	await s3.server.close();
});
