// How often a text stands in the memory that a process may write to: to see that no copies of a secret are left behind.
//
//   node memory_scan.js PID TEXT      prints the number, and where they are; or "unreadable" where the system says no
'use strict';

const fs = require('fs');

const CHUNK = 1 << 20;

// The addresses of every occurrence; null if the memory can't be read.
function scan(pid, text) {
	const needle = Buffer.from(text);
	const found = [];
	let memory;

	try {
		memory = fs.openSync(`/proc/${pid}/mem`, 'r');
	} catch {
		return null;
	}
	for (const line of fs.readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
		const match = /^([0-9a-f]+)-([0-9a-f]+) .w.. .*?(\[\S+\])?$/.exec(line);

		if (!match)
			continue;
		const end = BigInt(`0x${match[2]}`);

		for (let at = BigInt(`0x${match[1]}`); at < end; at += BigInt(CHUNK)) {
			const buffer = Buffer.alloc(Number(end - at < CHUNK ? end - at : BigInt(CHUNK)) + needle.length - 1);
			let length;

			try {
				length = fs.readSync(memory, buffer, 0, buffer.length, at);
			} catch {
				length = 0;
			}
			for (let hit = buffer.indexOf(needle); hit >= 0 && hit + needle.length <= length; hit = buffer.indexOf(needle, hit + 1))
				if (hit < CHUNK)
					found.push(`${(at + BigInt(hit)).toString(16)} ${match[3] || 'memory'}`);
		}
	}
	fs.closeSync(memory);
	return found;
}

module.exports = { scan };

if (require.main === module) {
	const found = scan(process.argv[2], process.argv[3]);

	console.log(found === null ? 'unreadable' : [found.length, ...found].join('\n'));
}
