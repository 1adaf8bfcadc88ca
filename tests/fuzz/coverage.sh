#!/bin/sh
# What the fuzz targets reach of the sources they are for, by their kept inputs, as a table: lines and branches (clang's
# source coverage).
#
#   usage: coverage.sh BUILD [-c FOLDER] [NAME...]      BUILD: made if it isn't there
#
#   -c FOLDER    inputs in FOLDER/NAME count as well: what a search has found (BUILD-fuzz/corpus)
#   -m           prints the lines that no input reaches (file:line) in place of the table
set -eu

build=${1:?BUILD}
shift
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
more=
missing=
while getopts c:m option; do
	case $option in
	c) more=$OPTARG ;;
	m) missing=yes ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))

# Which sources each target is there for.
sources_of() {
	case $1 in
	config) echo 'src/agent/config*.c src/agent/json_cause.c' ;;
	documents) echo 'gen/*.c' ;;
	extender_objects)
		echo 'src/extender/cached_object.c src/extender/event_lists.c src/extender/node_id.c src/extender/readiness_file.c
			src/extender/reservations.c src/extender/storage_size.c'
		;;
	extender_request)
		echo 'src/extender/answer.c src/extender/capacity_requests.c src/extender/filter.c src/extender/prioritize.c
			src/extender/request.c src/codec/json_stepper.c'
		;;
	http_chunked | http_request | http_response) echo 'src/net/http_parser.c' ;;
	http_client) echo 'src/net/http_client.c src/net/http_exchange.c src/net/http_parser.c' ;;
	http_server) echo 'src/net/http_server*.c src/net/http_parser.c' ;;
	json) echo 'src/codec/json_[bmprstv]*.c' ;;
	json_readers) echo 'src/codec/json_reader.c src/codec/json_s*.c src/codec/json_t*.c' ;;
	kube_watch)
		echo 'src/kube/call.c src/kube/error_reply.c src/kube/object_set.c src/kube/watch_*.c src/agent/vm_watch_object.c'
		;;
	kubeconfig) echo 'src/kube/kubeconfig.c src/kube/credentials.c src/codec/yaml.c' ;;
	late_2023) echo 'src/agent/plugin_messages.c src/agent/plugin_versions.c src/agent/scrape_lines.c' ;;
	metrics_text) echo 'src/metrics/text_*.c src/agent/core/metrics_input.c' ;;
	monitor_messages) echo 'src/agent/monitor_messages.c' ;;
	net_texts)
		echo 'src/net/address.c src/net/base64.c src/net/dns_server.c src/net/http_message.c src/net/http_url.c'
		;;
	protogen) echo 'src/protogen/parser*.c src/protogen/resolve.c src/protogen/schema.c' ;;
	replay) echo 'src/cli/replay_*.c src/agent/core/*.c' ;;
	report_replies)
		echo 'src/report/aws_container.c src/report/aws_web_identity.c src/report/retry_after.c src/report/xml_text.c'
		;;
	scalars) echo 'src/codec/duration_text.c src/codec/go_quote.c src/codec/quantity.c' ;;
	status) echo 'src/cli/status_read.c src/cli/status_table.c' ;;
	tls_files | tls_tamper) echo 'src/net/tls.c src/net/tls_connection.c src/net/tls_error.c' ;;
	vm_objects) echo 'src/agent/vm_info_extract.c src/agent/vm_watch_object.c src/agent/core/vm_info.c' ;;
	websocket) echo 'src/net/websocket_engine.c' ;;
	websocket_handshake) echo 'src/net/websocket_handshake.c' ;;
	yaml) echo 'src/codec/yaml.c' ;;
	*)
		echo "$1: say in coverage.sh which sources it is for" >&2
		exit 1
		;;
	esac
}

[ $# -gt 0 ] || set -- $(cd "$here" && for file in *_fuzz.c; do echo "${file%_fuzz.c}"; done)
if [ ! -f "$build/build.ninja" ]; then
	cmake -S "$root" -B "$build" -G Ninja -DBALLAST_COVERAGE=ON -DCMAKE_C_COMPILER=clang-14 >/dev/null
fi
targets=
for name; do targets="$targets fuzz.$name"; done
# shellcheck disable=SC2086 # words
cmake --build "$build" --target $targets >/dev/null

build=$(cd "$build" && pwd)
[ -z "$more" ] || more=$(cd "$more" && pwd)
mkdir -p "$build/fuzz-coverage"
cd "$root"
[ -n "$missing" ] || printf '%-20s %7s %7s %9s  %s\n' target inputs lines branches of
for name; do
	profile=$build/fuzz-coverage/$name
	sources=$(sources_of "$name")
	LLVM_PROFILE_FILE=$profile.raw "$build/tests/fuzz.$name" "tests/fuzz/corpus/$name" ${more:+"$more/$name"} \
		>"$profile.out" 2>"$profile.err" || {
		tail -n 1 "$profile.err"
		exit 1
	}
	llvm-profdata-14 merge -sparse "$profile.raw" -o "$profile.data"
	# Of everything that is linked, only the files that the target is for; what they are called depends on the build.
	llvm-cov-14 export -format=lcov "$build/tests/fuzz.$name" -instr-profile="$profile.data" |
		awk -F '[:,]' -v name="$name" -v inputs="$(sed -n 's/ inputs,.*//p' "$profile.out")" -v sources="$(echo $sources)" \
			-v missing="$missing" '
			BEGIN { count = split(sources, wanted, " ") }
			/^SF:/ {
				file = ""
				for (i = 1; i <= count; i++)
					if (substr($2, length($2) - length(wanted[i])) == "/" wanted[i])
						file = wanted[i]
			}
			file == "" { next }
			/^DA:/ { all++; hit += $3 > 0; if (missing && $3 == 0) print file ":" $2 }
			/^BRF:/ { branches += $2 }
			/^BRH:/ { taken += $2 }
			END {
				if (!missing)
					printf "%-20s %7s %6d%% %8d%%  %s\n", name, inputs, 100 * hit / all, 100 * taken / branches, sources
			}'
done
