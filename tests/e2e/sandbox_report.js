// Checks a report of `ballast sandbox --report json`: its shape, that it has no mismatch, and what else is asked of it.
//
//   usage: node sandbox_report.js FILE [EXPRESSION...]     each is JavaScript that must be true of the report, `r`
'use strict';
const fs = require('fs');
const assert = require('assert');

const [file, ...expressions] = process.argv.slice(2);
const text = fs.readFileSync(file, 'utf8');
const lines = text.split('\n');
assert(lines.length === 2 && lines[1] === '', 'not one line of JSON');
const r = JSON.parse(lines[0]);

const shape = {
  generation: 'string', seed: 'number', durationSeconds: 'number', speed: 'number', nodes: 'number', phases: 'number',
  ignoredVMs: 'number', vms: 'object', scheduler: 'object', monitor: 'object', api: 'object', agent: 'object',
  outages: 'object', billing: 'object', mismatches: 'object', pods: 'object', capacity: 'object', faults: 'object',
};
const vm_shape = {
  name: 'string', workload: 'string', minCU: 'number', maxCU: 'number', finalCU: 'number', expectedFinalCU: 'number',
  judged: 'boolean', patches: 'number', upscales: 'number', downscales: 'number', deniedDownscales: 'number',
  secondsToReachGoal: 'object', goals: 'object',
};

function check_shape(value, wanted, where) {
  assert.deepStrictEqual(Object.keys(value).sort(), Object.keys(wanted).sort(), where);
  for (const key of Object.keys(wanted)) assert.strictEqual(typeof value[key], wanted[key], `${where}.${key}`);
}

if (r.pods.length > 0) Object.assign(shape, {placement: 'object', extender: 'object'});
check_shape(r, shape, 'report');
check_shape(r.capacity, {
  promisedTwice: 'number', reserved: 'number', rejected: 'number', volumes: 'number', refusedVolumes: 'number',
}, 'capacity');
assert.strictEqual(r.capacity.promisedTwice, 0);
for (const fault of r.faults) check_shape(fault, {kind: 'string', count: 'number'}, 'fault');
for (const pod of r.pods) {
  assert.deepStrictEqual(Object.keys(pod), ['name', 'volumes', 'node', 'filterCalls', 'secondsToBind', 'expected', 'judged']);
  assert(pod.expected === 'bound' || pod.expected === 'pending', pod.name);
  assert.strictEqual(pod.node === null, pod.secondsToBind === null, pod.name);
  if (pod.judged) assert.strictEqual(pod.node !== null, pod.expected === 'bound', pod.name);
  if (pod.node !== null) assert(/^node-[a-z]$/.test(pod.node) && pod.filterCalls > 0, pod.name);
}
if (r.pods.length > 0) {
  check_shape(r.placement, {bound: 'number', filterCalls: 'number', failedFilterCalls: 'number', podsPerMinute: 'number'},
    'placement');
  check_shape(r.extender, {maxResidentKiB: 'number', cpuSeconds: 'number', restarts: 'number'}, 'extender');
}
check_shape(r.scheduler, {requests: 'number', denials: 'number', protocolVersion: 'string'}, 'scheduler');
check_shape(r.monitor, {connections: 'number', upscales: 'number', downscales: 'number', healthChecks: 'number'}, 'monitor');
check_shape(r.api, {lists: 'number', watches: 'number', patches: 'number'}, 'api');
check_shape(r.agent, {maxResidentKiB: 'number', cpuSeconds: 'number'}, 'agent');
check_shape(r.billing, {
  expectedCpuSeconds: 'number', billedCpuSeconds: 'number', duplicates: 'number', lost: 'number', events: 'number',
  scalingEvents: 'number', vms: 'object',
}, 'billing');
for (const vm of r.billing.vms)
  check_shape(vm, {
    name: 'string', expectedCpuSeconds: 'number', billedCpuSeconds: 'number', billedActiveSeconds: 'number',
  }, `billing of ${vm.name}`);
assert(r.generation === 'A' || r.generation === 'B');
for (const vm of r.vms) {
  check_shape(vm, vm_shape, vm.name);
  if (vm.judged) assert.strictEqual(vm.finalCU, vm.expectedFinalCU, vm.name);
  assert(vm.finalCU >= vm.minCU && vm.finalCU <= vm.maxCU, vm.name);
  assert(vm.secondsToReachGoal.every((s) => s >= 0 && s <= r.durationSeconds), vm.name);
  assert.deepStrictEqual(vm.goals.map((g) => g.secondsToReachGoal).filter((s) => s !== null), vm.secondsToReachGoal);
  assert(vm.goals.every((g) => g.phase >= 1 && g.phase <= r.phases && g.expectedCU >= vm.minCU), vm.name);
}
assert.deepStrictEqual(r.mismatches, []);

function sum(key) {
  return r.vms.reduce((total, vm) => total + vm[key], 0);
}
for (const expression of expressions)
  assert(new Function('r', 'sum', `return (${expression});`)(r, sum), `not so: ${expression}`);
