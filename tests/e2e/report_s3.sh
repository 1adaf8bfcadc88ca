#!/bin/sh
# Objects in s3rver, signatures checked by AWS's own signer: see report_s3.js.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/report_common.inc
make_report_certificate ''
make_report_certificate other-
run_report report_s3.js
