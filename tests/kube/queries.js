// What the alerts and the dashboard in deploy/monitoring ask for, against pages of running programs: each metric must be there, with each
// label that is matched, grouped by or shown. Prometheus adds the labels of TARGET_LABELS itself.
'use strict';

const assert = require('assert').strict;
const fs = require('fs');
const path = require('path');

const FOLDER = path.join(__dirname, '..', '..', 'deploy', 'monitoring');
const TARGET_LABELS = ['container', 'endpoint', 'instance', 'job', 'namespace', 'pod'];
const OWNERS = [ // who exposes a metric
	[/^up$/, 'prometheus'],
	[/^(autoscaling|process|ballast_events)_/, 'agent'],
	[/^(schedule|kubeclient|ballast_extender)_/, 'extender'],
];
const WORDS = new Set(['and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan']);

// Sample name → its label names and, for each, the values seen.
function readPage(text) {
	const samples = new Map();

	for (const [, name, labels = ''] of text.matchAll(/^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/gm)) {
		const seen = samples.get(name) || new Map();

		samples.set(name, seen);
		for (const [, label, value] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
			seen.set(label, (seen.get(label) || new Set()).add(value));
	}
	return samples;
}

// { metrics: [[name, [[label, operator, value], …]], …], labels: [those grouped by or joined on] }
function readQuery(query) {
	const labels = [];
	const metrics = [];
	let rest = query.replace(/\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g, (_, word, list) => {
		labels.push(...list.split(',').map((l) => l.trim()).filter((l) => l !== ''));
		return ' ';
	}).replace(/\[[^\]]*\]/g, ' ');

	rest = rest.replace(/([a-zA-Z_:][\w:]*)\s*\{((?:[^}"]|"[^"]*")*)\}/g, (_, name, matchers) => {
		metrics.push([name, [...matchers.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g)].map((m) => m.slice(1))]);
		return ' ';
	});
	for (const [, name] of rest.matchAll(/(?<![\w.$])([a-zA-Z_:][\w:]*)(?!\s*\(|[\w:])/g)) {
		if (!WORDS.has(name.toLowerCase()))
			metrics.push([name, []]);
	}
	return { metrics, labels };
}

// [{ where, query, shown: labels of its texts }]
function readQueries() {
	const queries = [];
	const rules = fs.readFileSync(path.join(FOLDER, 'rules.yaml'), 'utf8').split(/^ {4}- alert: /m).slice(1);

	for (const rule of rules) {
		const query = rule.match(/^ {6}expr: (?:\|\n((?: {8}.*\n)+)|(.*)\n)/m);

		queries.push({ where: rule.split('\n')[0], query: query[1] || query[2], shown: [...rule.matchAll(/\$labels\.(\w+)/g)].map((m) => m[1]) });
	}
	const dashboard = JSON.parse(fs.readFileSync(path.join(FOLDER, 'dashboard.json')));

	for (const { title, targets = [] } of dashboard.panels) {
		for (const { expr, legendFormat = '' } of targets)
			queries.push({ where: title, query: expr, shown: [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map((m) => m[1]) });
	}
	for (const { name, type, query } of dashboard.templating.list) {
		const [, metric, label] = type === 'query' ? query.query.match(/^label_values\((\w+), (\w+)\)$/) : [];

		if (metric)
			queries.push({ where: `variable ${name}`, query: metric, shown: [label] });
	}
	return queries;
}

function checkQuery({ where, query, shown }, owner, samples) {
	const { metrics, labels } = readQuery(query);
	const known = new Set(TARGET_LABELS);
	let checked = 0;

	assert.ok(metrics.length > 0, `${where}: no metric in ${query}`);
	for (const [name, matchers] of metrics) {
		const [, itsOwner] = OWNERS.find(([pattern]) => pattern.test(name)) || assert.fail(`${where}: whose is ${name}?`);

		if (itsOwner !== owner)
			continue;
		checked++;
		const seen = samples.get(name);

		assert.ok(seen, `${where}: no page has ${name}`);
		for (const label of seen.keys())
			known.add(label);
		for (const [label, operator, value] of matchers) {
			assert.ok(known.has(label), `${where}: ${name} has no label ${label}`);
			if (operator === '=')
				assert.ok(seen.get(label).has(value), `${where}: no ${name} has ${label}="${value}"`);
		}
	}
	for (const label of checked > 0 ? [...labels, ...shown] : [])
		assert.ok(known.has(label), `${where}: there is no label ${label}`);
	return checked;
}

// pages: { PORT-NAME: text of the page }, by the names of the PodMonitor's ports; owner: agent or extender.
function checkQueries(owner, pages) {
	const samples = new Map();
	let checked = 0;

	for (const [port, text] of Object.entries(pages)) {
		const monitor = fs.readFileSync(path.join(FOLDER, `podmonitor-${owner}.yaml`), 'utf8');
		const endpoint = monitor.split(/^ {2}- /m).find((part) => part.startsWith(`port: ${port}\n`));

		assert.ok(endpoint, `the PodMonitor doesn't scrape ${port}`);
		for (const [name, labels] of readPage(text)) {
			const clash = [...labels.keys()].find((l) => TARGET_LABELS.includes(l));

			// Prometheus would call it exported_….
			assert.ok(!clash || endpoint.includes('honorLabels: true'), `${name} has a label ${clash}, as its target: honorLabels is needed`);
			samples.set(name, labels);
		}
	}
	for (const query of readQueries())
		checked += checkQuery(query, owner, samples);
	assert.ok(checked > 3, `only ${checked} metrics are asked for`);
	console.log(`   ${checked} metrics of alerts and dashboard are on its pages`);
}

module.exports = { checkQueries };
