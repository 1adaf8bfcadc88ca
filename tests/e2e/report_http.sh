#!/bin/sh
# An HTTP receiver that misbehaves: see report_http.js.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/report_common.inc
run_report report_http.js
