#!/bin/sh
# The schemas in proto/ are genuine proto3: protoc accepts each.
set -eu
cd "$(dirname "$0")/../.."
exec protoc --proto_path=proto --descriptor_set_out=/dev/null proto/*.proto
