// The other end for our websockets: the npm package `ws`, as a server or as a client.
//
//   node websocket_peer.js serve          prints the port it listens on, on 127.0.0.1; ends with its standard input
//   node websocket_peer.js connect PORT   goes through a conversation with an echoing server; prints "ok" or what went wrong
'use strict';

const path = require('path');
const WebSocket = require(path.join(__dirname, '..', 'npm', 'node_modules', 'ws'));

// What a message asks the server to do; anything else is echoed.
const COMMANDS = {
	fragments: (socket) => {
		socket.send('one ', { fin: false });
		socket.ping('between');
		socket.send('two \u20ac ', { fin: false });
		socket.send('three', { fin: true });
	},
	ping: (socket) => {
		socket.once('pong', (payload) => socket.send('pong ' + payload));
		socket.ping('payload');
	},
	close: (socket) => socket.close(4321, 'because \u00e9'),
	'close without code': (socket) => socket.close(),
	terminate: (socket) => socket.terminate(),
	big: (socket) => socket.send('x'.repeat(32768)),
	'too big': (socket) => {
		socket.once('close', (code, reason) => console.log(`closed ${code} ${reason}`));
		socket.send('x'.repeat(32769));
	},
};

function serve() {
	const server = new WebSocket.Server({ host: '127.0.0.1', port: 0 }, () => console.log(server.address().port));

	server.on('connection', (socket) => {
		socket.setMaxListeners(0);
		socket.on('message', (data, isBinary) => {
			const command = isBinary ? undefined : COMMANDS[data.toString()];

			if (command)
				command(socket);
			else
				socket.send(data, { binary: isBinary });
		});
		socket.on('error', (error) => console.log(`error ${error.message}`));
		socket.on('close', (code, reason) => console.log(`end ${code} ${reason}`));
	});
	process.stdin.on('end', () => process.exit(0)).resume();
}

function once(socket, event) {
	return new Promise((resolve, reject) => {
		socket.once(event, (...values) => resolve(values));
		if (event !== 'close')
			socket.once('close', (code, reason) => reject(new Error(`closed ${code} ${reason} instead of ${event}`)));
	});
}

function expect(actual, expected, what) {
	if (Buffer.compare(Buffer.from(actual), Buffer.from(expected)) !== 0)
		throw new Error(`${what}: ${String(actual).slice(0, 80)} instead of ${String(expected).slice(0, 80)}`);
}

async function echo(socket, data, what) {
	const reply = once(socket, 'message');

	socket.send(data);
	const [bytes, isBinary] = await reply;
	expect(bytes, data, what);
	if (isBinary !== (typeof data !== 'string'))
		throw new Error(`${what}: came back as ${isBinary ? 'binary' : 'text'}`);
}

async function converse(port) {
	let socket = new WebSocket(`ws://127.0.0.1:${port}/monitor`); // offers compression, which is declined

	socket.setMaxListeners(0);
	await once(socket, 'open');
	if (socket.extensions !== '')
		throw new Error(`extensions ${socket.extensions}`);
	await echo(socket, '', 'nothing');
	await echo(socket, 'h\u00e9llo \u20ac \u{1f600}', 'text');
	for (const length of [1, 125, 126, 127, 32767, 32768])
		await echo(socket, Buffer.alloc(length, length), `${length} bytes`);

	const joined = once(socket, 'message');

	socket.send('one ', { fin: false });
	socket.ping('between');
	socket.send('\u20ac', { fin: true });
	expect((await joined)[0], 'one \u20ac', 'fragments');

	const pong = once(socket, 'pong');

	socket.ping('payload');
	expect((await pong)[0], 'payload', 'pong');

	let closed = once(socket, 'close');

	socket.close(4000, 'done \u00e9');
	const [code, reason] = await closed;
	expect(`${code} ${reason}`, '4000 done \u00e9', 'close');

	socket = new WebSocket(`ws://127.0.0.1:${port}/monitor`, { perMessageDeflate: false });
	await once(socket, 'open');
	closed = once(socket, 'close');
	socket.send('x'.repeat(32769));
	const [tooBigCode, tooBigReason] = await closed;
	expect(`${tooBigCode} ${tooBigReason}`, '1009 read limited at 32769 bytes', 'too big');

	socket = new WebSocket(`ws://127.0.0.1:${port}/monitor`);
	await once(socket, 'open');
	closed = once(socket, 'close');
	socket.send('abort');
	expect(String((await closed)[0]), '1006', 'dropped without a close frame');
	console.log('ok');
}

if (process.argv[2] === 'serve')
	serve();
else
	converse(process.argv[3]).catch((error) => {
		console.log(error.message);
		process.exit(1);
	});
