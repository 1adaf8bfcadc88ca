// The specification's vectors that need a process (18.2, 18.4 to 18.7), against a running extender.
//
//   node extender_vectors.js PROGRAM FOLDER PREFIX
'use strict';

const assert = require('assert').strict;
const { ABC, Api, CLASSES, Extender, NODE_A, NODE_B, NODE_C, NOID, PENDING, RESERVATIONS, RETRY, STORAGE_GROUP, conflict, failA, failB,
	makeArgs, makeClaim, makePod, makeReservation, makeStatus, makeVolume, matched, result, runTests, sleep, until } = require('./extender_peers.js');

const [program, folder, prefix] = process.argv.slice(2);
const NO_CAPACITY = (name) => `No available capacity found on the node ${name}`;

async function expectFilter(extender, args, wanted) {
	assert.deepEqual(await extender.filter(args), wanted);
}

function expectRequests(api, lines) {
	const taken = api.takeRequests();

	assert.deepEqual(taken.lines, lines);
	return taken.bodies;
}

// A reservation that stands for the pod's name; `write` is what the call must do.
function seed(api, reservation) {
	api.reservations.clear();
	api.takeRequests();
	api.seed(reservation);
}

const TESTS = {
	async T1_filter_without_a_body({ extender }) {
		for (const method of ['GET', 'POST']) {
			const { status, body, headers } = await extender.ask('/filter', null, { method });

			assert.equal(status, 200);
			assert.equal(headers['content-type'], 'application/json');
			assert.equal(body, '{"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":"EOF"}\n');
		}
	},

	async T2_to_T5_undecodable({ extender }) {
		assert.deepEqual(await extender.filter('{'), failA('unexpected EOF'));
		for (const body of ['[]', '{}', '{"Pod":null}', '{"Pod":{"metadata":{"name":5}},"Nodes":{"items":[]}}']) {
			const answer = await extender.filter(body);

			assert.notEqual(answer.Error, '', body);
			assert.deepEqual(answer, failA(answer.Error));
		}
	},

	async T6_what_follows_the_value_is_ignored({ extender }) {
		assert.deepEqual(await extender.filter('{"Pod":{"metadata":{"name":"p","namespace":"shop"}},"Nodes":{"items":[]}} tail'),
			matched([], null));
	},

	async T7_prioritize_undecodable({ extender }) {
		for (const body of [null, '{', '{"Pod":null}']) {
			const answer = await extender.ask('/prioritize', body);

			assert.deepEqual([answer.status, answer.body, answer.headers['content-length'], answer.headers['content-type']],
				[200, '', '0', 'application/json']);
		}
	},

	async T8_T9_bind({ extender }) {
		assert.equal((await extender.ask('/bind', null)).body, '{"Error":"EOF"}\n');
		assert.deepEqual(JSON.parse((await extender.ask('/bind', '{"PodName":"a","PodNamespace":"b","PodUID":"c","Node":"d"}')).body),
			{ Error: "don't know how to use bind API" });
	},

	async T10_other_paths({ extender }) {
		for (const path of ['/preempt', '/filter/', '/', '/debug/pprof/', '/Filter']) {
			const answer = await extender.ask(path, '{}');

			assert.deepEqual([answer.status, answer.headers['content-type'], answer.body],
				[404, 'text/plain; charset=utf-8', '404 page not found\n'], path);
		}
	},

	async every_method_and_any_type_is_taken({ extender }) {
		for (const method of ['PUT', 'DELETE', 'PATCH', 'GET'])
			assert.deepEqual(await extender.filter(makeArgs(makePod('p')), { method, headers: { 'Content-Type': 'text/html' } }),
				matched(ABC, null));
		assert.equal((await extender.ask('/filter?a=b', makeArgs(makePod('p')))).status, 200);
	},

	async T12_prioritize_names_without_requests({ extender }) {
		assert.equal(await extender.prioritize({ Pod: makePod('p'), Nodes: null, NodeNames: ['wk-a'] }), null);
	},

	async T13_many_large_nodes({ extender }) {
		const nodes = [];

		for (let i = 0; i < 300; i++)
			nodes.push({ metadata: { name: `n${i}`, uid: `u${i}`, annotations: { fill: 'ä\u2028"x'.repeat(8000) } }, status: { images: [] } });
		const { body } = await extender.ask('/filter', makeArgs(makePod('p'), nodes));

		assert.ok(body.includes(JSON.stringify(nodes).slice(1, -1)), 'the nodes are not byte for byte those of the request');
		assert.deepEqual(JSON.parse(body), matched(nodes, null));
	},

	async T14_no_volumes_no_call({ extender, api }) {
		api.takeRequests();
		api.requests = [];
		await expectFilter(extender, makeArgs(makePod('p')), matched(ABC, null));
		await expectFilter(extender, makeArgs(makePod('p', ['bound-cart-0', 'lost-cart-0', 'nfs-cart-0', 'nosc'])), matched(ABC, null));
		assert.equal(api.requests.length, 0);
	},

	async T15_T16_the_list_as_it_came({ extender }) {
		const pod = makePod('p');

		await expectFilter(extender, { Pod: pod, Nodes: { kind: 'NodeList', apiVersion: 'v1', metadata: { resourceVersion: '5' }, items: [] } },
			result({ kind: 'NodeList', apiVersion: 'v1', metadata: {}, items: [] }));
		await expectFilter(extender, { Pod: pod, Nodes: { metadata: {} } }, result({ metadata: {}, items: null }));
	},

	async T19_to_T23_not_known_yet({ extender, api }) {
		api.takeRequests();
		for (const claims of [['missing'], ['ghost'], ['emptysc'], ['data-cart-0', 'missing'], ['missing', 'nfs-cart-0']])
			await expectFilter(extender, makeArgs(makePod('p', claims)), RETRY);
		await expectFilter(extender, makeArgs(makePod('p', ['data-cart-0'], '')), RETRY);
		expectRequests(api, []);
	},

	async T29_T30_create({ extender, api }) {
		const pod = makePod('cart-0', ['data-cart-0', 'logs-cart-0']);
		const template = (className, storage, labels) => ({ ephemeral: { volumeClaimTemplate: { ...(labels ? { metadata: { labels } } : {}),
			spec: { storageClassName: className, resources: { requests: { storage } } } } } });

		api.takeRequests();
		pod.spec.volumes.push({ name: 'tmp', ...template('bm-default', '3Gi') });
		pod.spec.volumes.push({ name: 'grp', ...template('bm-hdd', '5G', { [STORAGE_GROUP]: 'slow' }) });
		await expectFilter(extender, makeArgs(pod), PENDING);
		assert.deepEqual(expectRequests(api, ['GET shop-cart-0', 'POST shop-cart-0'])[0], {
			kind: 'AvailableCapacityReservation', apiVersion: 'csi-baremetal.dell.com/v1', metadata: { name: 'shop-cart-0' },
			spec: { Namespace: 'shop', Status: 'REQUESTED', NodeRequests: { Requested: ['uid-a', 'uid-b', 'uid-c'] }, ReservationRequests: [
				{ CapacityRequest: { Name: 'data-cart-0', StorageClass: 'HDD', Size: 107374182400, StorageGroup: 'fast' } },
				{ CapacityRequest: { Name: 'logs-cart-0', StorageClass: 'NVMELVG', Size: 1500000000 } },
				{ CapacityRequest: { Name: 'cart-0-tmp', StorageClass: 'ANY', Size: 3221225472 } },
				{ CapacityRequest: { Name: 'cart-0-grp', StorageClass: 'HDD', Size: 5000000000, StorageGroup: 'slow' } }] } });
		await expectFilter(extender, makeArgs(makePod('cart-0', ['data-cart-0'])), PENDING);
		expectRequests(api, ['GET shop-cart-0']);
		assert.equal(api.reservations.get('shop-cart-0').spec.ReservationRequests.length, 4);
		await until('the line', () => /"pod":"cart-0".*"reservation":"shop-cart-0"/.test(extender.log));
	},

	async T31_zero_values_and_duplicates({ extender, api }) {
		await expectFilter(extender, makeArgs(makePod('cart-1', ['nosize', 'odd', 'odd']), [NODE_A]), PENDING);
		assert.deepEqual(expectRequests(api, ['GET shop-cart-1', 'POST shop-cart-1'])[0].spec, {
			Namespace: 'shop', Status: 'REQUESTED', NodeRequests: { Requested: ['uid-a'] }, ReservationRequests: [
				{ CapacityRequest: { Name: 'nosize', StorageClass: 'ANY' } },
				{ CapacityRequest: { Name: 'odd', StorageClass: 'ANY', Size: 1 } },
				{ CapacityRequest: { Name: 'odd', StorageClass: 'ANY', Size: 1 } }] });
	},

	async T32_empty_namespace({ extender, api }) {
		const pod = makePod('solo', [], '');

		api.requests = [];
		pod.spec.volumes.push({ name: 'd', ephemeral: { volumeClaimTemplate: { spec: { storageClassName: 'bm-hdd',
			resources: { requests: { storage: '1Gi' } } } } } });
		await expectFilter(extender, makeArgs(pod, [NODE_A]), PENDING);
		await until('the list of events', () => api.requests.some((entry) => entry.path === '/api/v1/events' &&
			entry.query === 'fieldSelector=involvedObject.name=solo'));
		assert.deepEqual(expectRequests(api, ['GET default-solo', 'POST default-solo'])[0].spec,
			{ Status: 'REQUESTED', NodeRequests: { Requested: ['uid-a'] }, ReservationRequests: [
				{ CapacityRequest: { Name: 'solo-d', StorageClass: 'HDD', Size: 1073741824 } }] });
	},

	async T33_no_node_to_ask_for({ extender, api }) {
		for (const nodes of [[NOID], []])
			await expectFilter(extender, makeArgs(makePod('cart-2', ['data-cart-0']), nodes), PENDING);
		expectRequests(api, ['GET shop-cart-2', 'GET shop-cart-2']);
	},

	async T34_to_T38_reserved({ extender, api }) {
		const pod = makePod('cart-3', ['data-cart-0']);

		seed(api, makeReservation('shop-cart-3', 'RESERVED', ['uid-a', 'uid-b', 'uid-c'], ['uid-b']));
		await expectFilter(extender, makeArgs(pod), matched([NODE_B], { 'wk-a': NO_CAPACITY('wk-a'), 'wk-c': NO_CAPACITY('wk-c') }));
		await expectFilter(extender, makeArgs(pod, [NODE_B]), matched([NODE_B], {}));
		expectRequests(api, ['GET shop-cart-3', 'GET shop-cart-3']);
		await expectFilter(extender, makeArgs(pod, [NODE_A, NODE_C]), PENDING);
		const wanted = makeReservation('shop-cart-3', 'REQUESTED', ['uid-a', 'uid-c'], ['uid-b']);

		delete wanted.spec.ReservationRequests[0].Reservations;
		assert.deepEqual(expectRequests(api, ['GET shop-cart-3', 'PUT shop-cart-3'])[0], wanted);

		seed(api, makeReservation('shop-cart-3', 'RESERVED', ['uid-a'], ['uid-b', 'uid-a']));
		const answer = await extender.filter(makeArgs(pod, [NODE_A, NOID, NODE_C]));

		assert.deepEqual(answer.Nodes.items, [NODE_A]);
		assert.deepEqual(Object.keys(answer.FailedNodes).sort(), ['nouid', 'wk-c']); // decision 10
		assert.notEqual(answer.FailedNodes.nouid, '');
		api.takeRequests();
		await expectFilter(extender, makeArgs(pod, [NOID]), PENDING);
		expectRequests(api, ['GET shop-cart-3']);
	},

	async T39_T40_rejected({ extender, api }) {
		seed(api, makeReservation('shop-cart-5', 'REJECTED', ['uid-z'], []));
		await expectFilter(extender, makeArgs(makePod('cart-5', ['data-cart-0'])), PENDING);
		assert.deepEqual(expectRequests(api, ['GET shop-cart-5', 'PUT shop-cart-5'])[0].spec,
			{ Namespace: 'shop', Status: 'REQUESTED', NodeRequests: { Requested: ['uid-a', 'uid-b', 'uid-c'] }, ReservationRequests: [
				{ CapacityRequest: { Name: 'data-cart-0', StorageClass: 'HDD', Size: 107374182400, StorageGroup: 'fast' } }] });
		await expectFilter(extender, makeArgs(makePod('cart-5', ['data-cart-0'])), PENDING);
		expectRequests(api, ['GET shop-cart-5']);
	},

	async T41_other_states({ extender, api }) {
		for (const status of ['CANCELLED', '', 'reserved']) {
			seed(api, makeReservation('shop-cart-6', status, ['uid-a'], ['uid-a']));
			await expectFilter(extender, makeArgs(makePod('cart-6', ['data-cart-0'])), failB(`unsupported reservation status: ${status}`));
		}
		expectRequests(api, ['GET shop-cart-6']);
	},

	async T42_conflicts({ extender, api }) {
		let conflicts = 1;

		api.fault = (method) => (method === 'PUT' && conflicts-- > 0 ? { status: 409, body: conflict('shop-cart-5') } : null);
		seed(api, makeReservation('shop-cart-5', 'REJECTED', ['uid-z'], []));
		await expectFilter(extender, makeArgs(makePod('cart-5', ['data-cart-0'])), PENDING);
		expectRequests(api, ['GET shop-cart-5', 'PUT shop-cart-5', 'GET shop-cart-5', 'PUT shop-cart-5']);
		assert.equal(api.reservations.get('shop-cart-5').spec.Status, 'REQUESTED');

		conflicts = 1000;
		seed(api, makeReservation('shop-cart-5', 'REJECTED', ['uid-z'], []));
		await expectFilter(extender, makeArgs(makePod('cart-5', ['data-cart-0'])), PENDING);
		const { lines } = api.takeRequests();

		assert.ok(lines.length >= 4 && lines.length <= 12, `${lines.length} calls`);
		api.fault = null;
	},

	// Deleted between reading and replacing, by the operator or the controller.
	async a_reservation_that_goes_meanwhile_is_created({ extender, api }) {
		api.fault = (method) => {
			if (method === 'PUT')
				api.reservations.clear();
		};
		seed(api, makeReservation('shop-cart-5', 'REJECTED', ['uid-z'], []));
		await expectFilter(extender, makeArgs(makePod('cart-5', ['data-cart-0'])), PENDING);
		expectRequests(api, ['GET shop-cart-5', 'PUT shop-cart-5', 'GET shop-cart-5', 'POST shop-cart-5']);
		assert.equal(api.reservations.get('shop-cart-5').spec.Status, 'REQUESTED');
		api.fault = null;
	},

	async T43_T45_refused({ extender, api }) {
		const message = 'availablecapacityreservations.csi-baremetal.dell.com "shop-cart-7" is forbidden: no rbac';
		const pod = makePod('cart-7', ['data-cart-0']);

		for (const method of ['GET', 'POST']) {
			api.fault = (asked, path) => (asked === method && path.startsWith(RESERVATIONS)
				? { status: 403, body: makeStatus(403, 'Forbidden', message) } : null);
			assert.equal((await extender.ask('/filter', makeArgs(pod))).body, '{"Nodes":{"metadata":{},"items":null},"NodeNames":null,' +
				'"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":"availablecapacityreservations.csi-baremetal.dell.com ' +
				'\\"shop-cart-7\\" is forbidden: no rbac"}\n');
		}
		api.fault = null;
	},

	async T44_created_by_another({ extender, api }) {
		api.takeRequests();
		api.fault = (method) => (method === 'POST' ? { status: 409, body: makeStatus(409, 'AlreadyExists', 'it exists') } : null);
		await expectFilter(extender, makeArgs(makePod('cart-8', ['data-cart-0'])), PENDING);
		expectRequests(api, ['GET shop-cart-8', 'POST shop-cart-8']);
		api.fault = null;
	},

	async T46_without_node_requests({ extender, api }) {
		for (const status of ['RESERVED', 'REJECTED']) {
			const reservation = makeReservation('shop-cart-9', status, [], []);

			delete reservation.spec.NodeRequests;
			seed(api, reservation);
			await expectFilter(extender, makeArgs(makePod('cart-9', ['data-cart-0'])), PENDING);
			assert.deepEqual(expectRequests(api, ['GET shop-cart-9', 'PUT shop-cart-9'])[0].spec.NodeRequests.Requested,
				['uid-a', 'uid-b', 'uid-c']);
		}
	},

	async T47_duplicates({ extender, api }) {
		seed(api, makeReservation('shop-cart-3', 'RESERVED', [], ['uid-b', 'uid-b']));
		await expectFilter(extender, makeArgs(makePod('cart-3', ['data-cart-0']), [NODE_B, NODE_B, NODE_A]),
			matched([NODE_B, NODE_B], { 'wk-a': NO_CAPACITY('wk-a') }));
	},

	async T48_two_pods_with_one_name({ extender, api }) {
		api.reservations.clear();
		api.put('claims', makeClaim('q', { className: 'bm-hdd', storage: '1Gi', namespace: 'team-a' }));
		api.put('claims', makeClaim('q', { className: 'bm-hdd', storage: '1Gi', namespace: 'team' }));
		api.takeRequests();
		await until('both claims are known', async () => {
			const answers = [await extender.prioritize(makeArgs(makePod('x', ['q'], 'team-a'))),
				await extender.prioritize(makeArgs(makePod('x', ['q'], 'team')))];

			return !answers.includes(null);
		});
		await expectFilter(extender, makeArgs(makePod('b', ['q'], 'team-a')), PENDING);
		assert.equal(expectRequests(api, ['GET team-a-b', 'POST team-a-b'])[0].spec.Namespace, 'team-a');
		await expectFilter(extender, makeArgs(makePod('a-b', ['q'], 'team')), PENDING);
		expectRequests(api, ['GET team-a-b']);
	},

	async T49_too_many_requests({ extender, api }) {
		const pod = makePod('cart-3', ['data-cart-0']);
		const refusal = { status: 429, body: makeStatus(429, 'TooManyRequests', 'too many') };
		let refusals = 3;
		let start = Date.now();

		seed(api, makeReservation('shop-cart-3', 'RESERVED', [], ['uid-b']));
		api.fault = (method, path) => (path.startsWith(RESERVATIONS) && refusals-- > 0 ? refusal : null);
		assert.deepEqual((await extender.filter(makeArgs(pod))).Nodes.items, [NODE_B]);
		assert.ok(Date.now() - start >= 305 && Date.now() - start < 2000, `${Date.now() - start} ms`);
		expectRequests(api, Array(4).fill('GET shop-cart-3'));
		refusals = 4;
		await expectFilter(extender, makeArgs(pod), PENDING);
		expectRequests(api, Array(4).fill('GET shop-cart-3'));

		// Retry-After is honoured, within the budget of a call.
		refusals = 1;
		refusal.fields = { 'Retry-After': '1' };
		start = Date.now();
		assert.deepEqual((await extender.filter(makeArgs(pod))).Nodes.items, [NODE_B]);
		assert.ok(Date.now() - start >= 1000 && Date.now() - start < 3000, `${Date.now() - start} ms`);
		refusals = 1;
		refusal.fields = { 'Retry-After': '60' };
		start = Date.now();
		await expectFilter(extender, makeArgs(pod), PENDING);
		assert.ok(Date.now() - start < 5000, `${Date.now() - start} ms`);
		api.fault = null;
	},

	async server_errors_are_pending({ extender, api }) {
		const pod = makePod('cart-3', ['data-cart-0']);

		for (const [status, reason, calls] of [[500, 'InternalError', 1], [500, 'ServerTimeout', 4], [503, 'ServiceUnavailable', 1],
			[504, 'Timeout', 4]]) {
			api.takeRequests();
			api.fault = (method, path) => (path.startsWith(RESERVATIONS) ? { status, body: makeStatus(status, reason, 'x') } : null);
			await expectFilter(extender, makeArgs(pod), PENDING);
			expectRequests(api, Array(calls).fill('GET shop-cart-3'));
		}
		api.fault = null;
	},

	async T50_a_whole_life({ extender, api }) {
		const pod = makePod('life', ['data-cart-0']);

		api.reservations.clear();
		api.takeRequests();
		await expectFilter(extender, makeArgs(pod), PENDING);
		const reservation = api.reservations.get('shop-life');

		reservation.spec.Status = 'RESERVED';
		reservation.spec.NodeRequests.Reserved = ['uid-b'];
		reservation.spec.ReservationRequests[0].Reservations = ['ac-b'];
		assert.deepEqual((await extender.filter(makeArgs(pod))).Nodes.items, [NODE_B]);
		api.reservations.delete('shop-life');
		api.takeRequests();
		await expectFilter(extender, makeArgs(pod), PENDING);
		expectRequests(api, ['GET shop-life', 'POST shop-life']);
		api.put('claims', makeClaim('data-cart-0', { className: 'bm-hdd', storage: '100Gi', phase: 'Bound' }));
		await until('the claim is bound', async () => JSON.stringify(await extender.filter(makeArgs(pod))) ===
			JSON.stringify(matched(ABC, null)));
		api.put('claims', makeClaim('data-cart-0', { className: 'bm-hdd', storage: '100Gi', labels: { [STORAGE_GROUP]: 'fast' } }));
		await until('the claim is back', async () => (await extender.filter(makeArgs(pod))).Nodes.items === null);
	},

	async the_request_has_changed({ extender, api }) { // decision 9
		const reservation = makeReservation('shop-cart-3', 'RESERVED', ['uid-a'], ['uid-b']);

		reservation.spec.ReservationRequests[0].CapacityRequest.Size = 1;
		seed(api, reservation);
		await expectFilter(extender, makeArgs(makePod('cart-3', ['data-cart-0'])), PENDING);
		assert.equal(expectRequests(api, ['GET shop-cart-3', 'PUT shop-cart-3'])[0].spec.ReservationRequests[0].CapacityRequest.Size, 107374182400);
	},

	async T60_to_T65_prioritize({ extender, api }) {
		const args = makeArgs(makePod('cart-3', ['data-cart-0']));
		const scores = (a, b, c) => [{ Host: 'wk-a', Score: a }, { Host: 'wk-b', Score: b }, { Host: 'wk-c', Score: c }];
		const becomes = (wanted, asked = args) => until(JSON.stringify(wanted), async () =>
			JSON.stringify(await extender.prioritize(asked)) === JSON.stringify(wanted));

		api.takeRequests();
		assert.deepEqual(await extender.prioritize(args), scores(0, 0, 0));
		for (const [name, node, namespace] of [['a1', 'uid-a'], ['a2', 'uid-a'], ['a3', 'uid-a', 'other'], ['b1', 'uid-b'], ['g1', 'uid-gone']])
			api.put('volumes', makeVolume(name, node, namespace));
		await becomes(scores(0, 2, 3));
		for (const items of [[], undefined])
			assert.deepEqual(await extender.prioritize({ Pod: args.Pod, Nodes: { items } }), []);
		for (const claims of [[], ['missing'], ['bound-cart-0']])
			assert.equal(await extender.prioritize(makeArgs(makePod('p', claims))), null);
		for (let i = 2; i <= 15; i++)
			api.put('volumes', makeVolume(`g${i}`, 'uid-gone'));
		await becomes(scores(12, 14, 15), makeArgs(args.Pod, [NODE_A, NOID, NODE_B, NODE_C]));
		for (let i = 0; i < 20; i++)
			api.put('volumes', makeVolume(`e${i}`, ''));
		await becomes(scores(17, 19, 20));
		for (let i = 0; i < 20; i++)
			api.remove('volumes', makeVolume(`e${i}`, ''));
		await becomes(scores(12, 14, 15));
		expectRequests(api, []);
	},

	async T77_T78_schedule_times({ extender, api }) {
		const event = (reason, seconds) => ({ reason, metadata: { name: `e${seconds}`, creationTimestamp: new Date(Date.now() - seconds * 1000).toISOString() } });
		const value = (page, name) => {
			const found = page.match(new RegExp(`^${name}{pod_name="cart-t",source="[A-Za-z]*"} (\\S+)$`, 'm'));

			return found ? Number(found[1]) : null;
		};

		seed(api, makeReservation('shop-cart-t', 'RESERVED', [], ['uid-b']));
		api.fault = (method, path) => (path.endsWith('/events') ? { status: 403, body: makeStatus(403, 'Forbidden', 'no events') } : null);
		assert.deepEqual((await extender.filter(makeArgs(makePod('cart-t', ['data-cart-0'])))).Nodes.items, [NODE_B]);
		await until('the refusal is logged', () => extender.log.includes('no events'));
		assert.deepEqual([value(await extender.metrics(), 'schedule_counter'), value(await extender.metrics(), 'schedule_total_time')], [1, null]);
		api.fault = null;
		api.events = [event('FailedScheduling', 1000), event('Killing', 900), event('FailedScheduling', 600), event('Scheduled', 500),
			event('FailedScheduling', 120)];
		await extender.filter(makeArgs(makePod('cart-t', ['data-cart-0'])));
		await until('the times', async () => value(await extender.metrics(), 'schedule_total_time') !== null);
		const page = await extender.metrics();

		assert.equal(value(page, 'schedule_counter'), 2);
		assert.ok(Math.abs(value(page, 'schedule_since_last_time') - 120) < 5);
		assert.ok(Math.abs(value(page, 'schedule_total_time') - 600) < 5);
		assert.ok(api.requests.some((entry) => entry.path === '/api/v1/namespaces/shop/events'));
		for (const method of ['ReadCR', 'CreateCR', 'UpdateCR'])
			assert.match(page, new RegExp(`^kubeclient_execution_duration_seconds_count{method="${method}"} [1-9]`, 'm'));
		assert.match(page, /^kubeclient_execution_duration_seconds_bucket{method="ReadCR",le="0?\.005"} /m);
		assert.match(page, /^process_resident_memory_bytes [1-9]/m);
	},

	async T24_no_class_of_ours({ extender, api }) { // decision 8
		for (const object of CLASSES) {
			if (object.provisioner === 'csi-baremetal')
				api.remove('classes', object);
		}
		await until('the classes are gone', async () => await extender.prioritize(makeArgs(makePod('p', ['data-cart-0']))) === null);
		await expectFilter(extender, makeArgs(makePod('p')), matched(ABC, null));
		await expectFilter(extender, makeArgs(makePod('p', ['nfs-cart-0'])), matched(ABC, null));
		await expectFilter(extender, makeArgs(makePod('p', ['data-cart-0'])), RETRY);
		for (const object of CLASSES)
			api.put('classes', object);
		await until('the classes are back', async () => await extender.prioritize(makeArgs(makePod('p', ['data-cart-0']))) !== null);
	},

	async no_watch_or_discovery_of_anything_else({ api }) {
		assert.deepEqual([...new Set(api.lists)].sort(), ['list claims', 'list classes', 'list volumes', 'watch claims', 'watch classes', 'watch volumes']);
	},
};

// Flags of node ids (18.5), and those of ours: each a process of its own.
const ID_FLAGS = [
	['T51', ['--usenodeannotation'], ABC, ['bm-a', 'bm-b']],
	['T53', ['--usenodeannotation', '--nodeselector=bm=yes'], ABC, ['bm-a', 'bm-b']],
	['T54', ['--usenodeannotation', '--nodeselector=bm'], ABC, null],
	['T55', ['-nodeselector', 'bm=nope'], ABC, ['uid-a', 'uid-b', 'uid-c']],
	['T56', ['--usenodeannotation', '--useexternalannotation', '--nodeidannotation=corp/id'], ABC, ['x-a']],
	['T57', ['--usenodeannotation', '--useexternalannotation'], ABC, null],
	['T58', ['--useexternalannotation', '--nodeidannotation=corp/id'], ABC, ['uid-a', 'uid-b', 'uid-c']],
	['T59', ['--usenodeannotation'], [{ metadata: { name: 'n', annotations: { 'nodes.csi-baremetal.dell.com/uuid': '' } } }], null],
];

async function withExtender(api, flags, test) {
	const extender = new Extender({ program, folder, prefix, apiAddress: api.address, flags });

	try {
		await extender.ready();
		await test(extender);
	} finally {
		assert.equal(await extender.stop(), 0, extender.log);
	}
}

const MORE_TESTS = {
	async T51_to_T59_node_ids({ api }) {
		for (const [name, flags, nodes, requested] of ID_FLAGS) {
			await withExtender(api, flags, async (extender) => {
				api.reservations.clear();
				api.takeRequests();
				await expectFilter(extender, makeArgs(makePod('a1', ['data-cart-0']), nodes), PENDING);
				const bodies = expectRequests(api, requested ? ['GET shop-a1', 'POST shop-a1'] : ['GET shop-a1']);

				assert.deepEqual(requested && bodies[0].spec.NodeRequests.Requested, requested, name);
				if (name !== 'T51')
					return;
				seed(api, makeReservation('shop-a1', 'RESERVED', [], ['bm-b'])); // T52
				const answer = await extender.filter(makeArgs(makePod('a1', ['data-cart-0'])));

				assert.deepEqual(answer.Nodes.items, [NODE_B]);
				assert.deepEqual(Object.keys(answer.FailedNodes).sort(), ['wk-a', 'wk-c']); // decision 10
				assert.deepEqual((await extender.prioritize(makeArgs(makePod('a1', ['data-cart-0'])))).map(({ Host }) => Host), // T66
					['wk-a', 'wk-b']);
			});
		}
	},

	async T11_node_names({ api }) {
		api.kinds.nodes.clear();
		for (const node of ABC)
			api.put('nodes', node);
		await withExtender(api, [], async (extender) => {
			const pod = makePod('names', ['data-cart-0']);

			assert.deepEqual(await extender.filter({ Pod: makePod('p'), Nodes: null, NodeNames: ['wk-a'] }), { ...RETRY, NodeNames: ['wk-a'] });
			api.reservations.clear();
			api.takeRequests();
			// The first call starts the cache of nodes, and waits for it.
			assert.deepEqual(await extender.filter({ Pod: pod, Nodes: null, NodeNames: ['wk-c', 'wk-a', 'unknown'] }), { ...RETRY, NodeNames: [] });
			assert.deepEqual(expectRequests(api, ['GET shop-names', 'POST shop-names'])[0].spec.NodeRequests.Requested, ['uid-c', 'uid-a']);
			seed(api, makeReservation('shop-names', 'RESERVED', [], ['uid-c']));
			const answer = await extender.filter({ Pod: pod, Nodes: null, NodeNames: ['wk-a', 'wk-c', 'unknown'] });

			assert.deepEqual([answer.Nodes, answer.NodeNames], [null, ['wk-c']]);
			assert.deepEqual(Object.keys(answer.FailedNodes).sort(), ['unknown', 'wk-a']);
		});
		api.fault = (method, path) => (path === '/api/v1/nodes' ? { status: 403, body: makeStatus(403, 'Forbidden', 'nodes is forbidden') } : null);
		await withExtender(api, [], async (extender) => {
			const answer = await extender.filter({ Pod: makePod('names', ['data-cart-0']), Nodes: null, NodeNames: ['wk-a'] });

			assert.deepEqual(answer, failA(answer.Error));
			assert.match(answer.Error, /nodes/);
			assert.match(answer.Error, /list/);
		});
		api.fault = null;
	},

	async wait_for_reservation({ api }) {
		await withExtender(api, ['--wait-for-reservation=2s'], async (extender) => {
			const pod = makePod('eager', ['data-cart-0']);
			const decide = (status, reserved) => setTimeout(() => {
				const reservation = api.reservations.get('shop-eager');

				reservation.spec.Status = status;
				reservation.spec.NodeRequests.Reserved = reserved;
			}, 300);

			api.reservations.clear();
			api.takeRequests();
			decide('RESERVED', ['uid-b']);
			let start = Date.now();

			assert.deepEqual((await extender.filter(makeArgs(pod))).Nodes.items, [NODE_B]);
			assert.ok(Date.now() - start >= 250 && Date.now() - start < 1500, `${Date.now() - start} ms`);
			// A rejection isn't asked anew at once.
			seed(api, makeReservation('shop-eager', 'REJECTED', [], []));
			decide('REJECTED', []);
			await expectFilter(extender, makeArgs(pod), PENDING);
			assert.equal(api.takeRequests().lines.filter((line) => line.startsWith('PUT')).length, 1);
			// Nobody answers.
			api.reservations.clear();
			start = Date.now();
			await expectFilter(extender, makeArgs(pod), PENDING);
			assert.ok(Date.now() - start >= 1700 && Date.now() - start < 3500, `${Date.now() - start} ms`);
		});
	},

	async inline_volumes_and_normalized_scores({ api }) {
		const pod = makePod('web');

		pod.spec.volumes = [{ name: 'data', csi: { driver: 'csi-baremetal', volumeAttributes: { storageType: 'HDD', size: '3Gi' } } },
			{ name: 'bad', csi: { driver: 'csi-baremetal', volumeAttributes: { size: '4096' } } },
			{ name: 'other', csi: { driver: 'other' } }];
		await withExtender(api, ['--inline-volumes', '--normalize-scores'], async (extender) => {
			api.takeRequests();
			await expectFilter(extender, makeArgs(pod), PENDING);
			assert.deepEqual(expectRequests(api, ['GET shop-web', 'POST shop-web'])[0].spec.ReservationRequests, [
				{ CapacityRequest: { Name: 'web-data', StorageClass: 'HDD', Size: 3221225472 } },
				{ CapacityRequest: { Name: 'web-bad', StorageClass: 'ANY' } }]);
			await until('the warning', () => /"level":"warn".*"pod":"web".*"volume":"bad"/.test(extender.log));
			const scores = await extender.prioritize(makeArgs(pod));

			assert.ok(scores.every(({ Score }) => Score >= 0 && Score <= 10), JSON.stringify(scores));
			assert.equal(Math.max(...scores.map(({ Score }) => Score)), 10);
		});
		await withExtender(api, [], async (extender) => expectFilter(extender, makeArgs(pod), matched(ABC, null)));
	},

	async the_api_goes_away_and_comes_back({ api }) {
		await withExtender(api, [], async (extender) => {
			api.stop();
			api.watches.clear();
			await sleep(100);
			await expectFilter(extender, makeArgs(makePod('p', ['nfs-cart-0'])), matched(ABC, null));
			const start = Date.now();

			await expectFilter(extender, makeArgs(makePod('cart-3', ['data-cart-0'])), PENDING);
			assert.ok(Date.now() - start < 4800, `${Date.now() - start} ms`);
			assert.deepEqual((await extender.prioritize(makeArgs(makePod('cart-3', ['data-cart-0'])))).length, 3);
			await until('the metric', async () => /^ballast_extender_watch_failing{resource="persistentvolumeclaims"} 1$/m.test(await extender.metrics()));
			await api.start(folder, api.address);
			api.put('claims', makeClaim('late', { className: 'bm-hdd', storage: '1Gi' }));
			await until('the watch is back', async () => await extender.prioritize(makeArgs(makePod('p', ['late']))) !== null, 20000);
		});
	},
};

async function main() {
	const api = new Api();
	const scene = { api };
	let failures = 0;

	await api.start(folder, `${prefix}.2`);
	await withExtender(api, [], async (extender) => {
		failures += await runTests(TESTS, { api, extender });
		if (failures > 0)
			console.log(extender.log.split('\n').slice(-6).join('\n'));
	});
	failures += await runTests(MORE_TESTS, scene);
	api.stop();
	process.exit(failures > 0 ? 1 : 0);
}

main().catch((error) => {
	console.log(error.stack);
	process.exit(1);
});
