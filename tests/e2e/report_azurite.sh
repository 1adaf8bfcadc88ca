#!/bin/sh
# Blobs in Azurite: see report_azurite.js.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/report_common.inc
run_report report_azurite.js
