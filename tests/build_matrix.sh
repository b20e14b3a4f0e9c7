#!/bin/sh
# The family "build": digests of tiny models under other compilers and options than those of the ordinary build, compared with
# tests/golden/digests.json. Then its mutant: kernels in which the compiler may contract multiply-adds must not get there.
#
#   tests/build_matrix.sh [FOLDER [JOBS]]    builds in FOLDER (build/matrix) and keeps what it built
#
# clang -O1 is the build with sanitizers, whose tests compare its digests (build_test.cpp). Only what computes digests is built. Needs g++, clang++-19,
# lld-19 and llvm-19 (Debian packages clang-19, lld-19, llvm-19).
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=${1:-$root/build/matrix}
golden=$root/tests/golden/digests.json
jobs=${2:-$(nproc)}
mkdir -p "$work"

# build NAME COMPILER FLAGS [cmake argument...]
build() {
  name=$1 compiler=$2 flags=$3
  shift 3
  cmake -S "$root" -B "$work/$name" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=None -DSTET_CUDA=OFF -DSTET_UNITE=ON \
    -DSTET_MUTANT_FLAGS= -DCMAKE_CXX_FLAGS="$flags" "$@" > "$work/$name.log" 2>&1 &&
    cmake --build "$work/$name" --target stet_digests -j "$jobs" >> "$work/$name.log" 2>&1 || {
    tail -n 30 "$work/$name.log" >&2
    echo "$name: does not build ($work/$name.log)" >&2
    exit 1
  }
}

# digests NAME: whether they are the golden ones
digests() {
  "$work/$1/tests/invariance/stet_digests" > "$work/$1.json" && cmp "$work/$1.json" "$golden"
}

expect_golden() {
  build "$@"
  digests "$1" || { echo "$1: the digests are not the committed ones" >&2; exit 1; }
  echo "$1: equal"
}

llvm_lto="-DCMAKE_AR=$(command -v llvm-ar-19) -DCMAKE_RANLIB=$(command -v llvm-ranlib-19) -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld-19"
expect_golden gcc-O1 g++ -O1
expect_golden gcc-O3-lto g++ "-O3 -flto=auto"
# shellcheck disable=SC2086  # three arguments
expect_golden clang-O3-lto clang++-19 "-O3 -flto=thin" $llvm_lto

# Only the files for an instruction set can have a fused multiply-add, so they alone are compiled again, in the folder of gcc-O1; g++
# contracts from -O2 on.
build gcc-O1 g++ -O1 '-DSTET_MUTANT_FLAGS=-O2;-ffp-contract=fast'
if digests gcc-O1 > "$work/mutant-contract.txt" 2>&1; then
  echo "mutant-contract: equal, so a contracted multiply-add would not be noticed" >&2
  exit 1
fi
echo "mutant-contract: caught ($(head -n 1 "$work/mutant-contract.txt"))"
