'use strict';
// Blobs in Azurite, Microsoft's emulator, which checks every signature: what is put there comes out again.

const assert = require('assert');
const h = require('./report_harness.js');
const { ACCOUNT, KEY, ask, readContainer, startAzurite } = require('./report_servers.js');

h.main(async () => {
	const { port } = await startAzurite();
	const url = `http://127.0.0.1:${port}/${ACCOUNT}`;
	const keys = { BALLAST_AZURE_SHARED_KEY_ACCOUNT: ACCOUNT, BALLAST_AZURE_SHARED_KEY: KEY };
	const created = await ask(port, 'PUT', `/${ACCOUNT}/events`, { restype: 'container' });
	assert.strictEqual(created.status, 201, String(created.body));

	// Three batches: two full ones and the rest.
	const sent = h.events(1, 25);
	const driver = await h.run(['azure', url, 'events', 'scaling'], keys, sent);
	h.assertClean(driver);
	h.assertHides(driver, KEY);
	const blobs = await readContainer(port, 'events');
	assert.strictEqual(blobs.length, 3);
	for (const { name } of blobs) assert.match(name, /^scaling\/\d{4}\/\d\d\/\d\d\/\d\d\/events_[2-9A-HJ-NP-Za-km-z]{13,22}\.ndjson\.gz$/);
	assert.deepStrictEqual(blobs.map((blob) => blob.lines.length).sort(), [10, 10, 5]);
	assert.deepStrictEqual(blobs.flatMap((blob) => blob.lines).sort(), [...sent].sort());

	// A prefix with everything that has to be escaped.
	const odd = await h.run(['azure', url, 'events', 'a b;c,d+e=f:g@h/é%2F'], keys, h.events(100, 1));
	h.assertClean(odd);
	const list = await ask(port, 'GET', `/${ACCOUNT}/events`, { comp: 'list', restype: 'container' });
	assert.ok(String(list.body).includes('<Name>a b;c,d+e=f:g@h/é%2F/'), String(list.body));

	// The wrong key, and a container that isn't there: refused, counted, and in the end given up.
	const wrong = Buffer.from(KEY, 'base64');
	wrong[0] ^= 1;
	const refused = await h.run(['azure', url, 'events', 'p'],
		{ ...keys, BALLAST_AZURE_SHARED_KEY: wrong.toString('base64'), DRIVER_GRACE_MS: '700' }, h.events(200, 3));
	assert.strictEqual(refused.status, 0);
	assert.ok(refused.errors().length >= 1 && refused.errors().every((line) => line === 'azureblob error Azure Blob error'));
	assert.deepStrictEqual(refused.dropped(), ['azureblob dropped 3']);
	assert.match(refused.log, /status 403, (AuthenticationFailed|AuthorizationFailure)/);
	h.assertHides(refused, wrong.toString('base64'));
	const missing = await h.run(['azure', url, 'elsewhere', 'p'], { ...keys, DRIVER_GRACE_MS: '700' }, h.events(300, 1));
	assert.match(missing.log, /status 404, ContainerNotFound/);

	// A token isn't sent over plain HTTP at all.
	const token = await h.run(['azure', url, 'events', 'p'], { DRIVER_GRACE_MS: '300' }, h.events(400, 1));
	assert.match(token.log, /not permitted for non TLS protected/);
});
