#!/bin/sh
# What later steps of ./check need, one after another: it runs beside the steps before them, at the lowest priority.
#
#   scripts/check_beside.sh LOGS    writes LOGS/STEP.out, and LOGS/STEP.code when the step has ended
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/common.sh"
logs=$1
cd "$root" || exit

beside() { # STEP COMMAND...
  step=$1
  shift
  "$@" >"$logs/$step.out" 2>&1 </dev/null
  echo $? >"$logs/$step.code"
}

python_packages() {
  python3 -m venv build/venv &&
    build/venv/bin/pip install --quiet --disable-pip-version-check -r scripts/requirements.txt
}

# Every fuzz target for a while, from its seeds; what it finds stays in build-asan/found. A minute for an input, because it may
# have to wait for a processor.
fuzz() {
  for source in tests/fuzz/fuzz_*.cpp; do
    target=$(basename "$source" .cpp)
    found=build-asan/found/$target
    seeds=tests/fuzz/corpus/${target#fuzz_}
    mkdir -p "$found" || return
    [ -d "$seeds" ] || seeds=''
    "build-asan/tests/fuzz/$target" -max_total_time=12 -timeout=60 -rss_limit_mb=3000 -print_final_stats=1 \
      -artifact_prefix="$found/" "$found" $seeds || return
    echo "1 passed, 0 failed"
  done
}

beside fetch-model scripts/fetch_model.sh
beside python-packages python_packages
beside asan-build build_preset asan
beside tsan-build build_preset tsan device_tests replay_tests state_tests spec_tests server_tests stet
beside build-matrix sh tests/build_matrix.sh build/matrix "$(compile_jobs)"
beside fuzz fuzz
