# What demo, check and the scripts in this folder share. POSIX sh; source it with $root set to the project's folder.

if [ -t 2 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$(printf '\033[1m') plain=$(printf '\033[0m')
else
  bold='' plain=''
fi

# What the scripts have to say goes to standard error, as with stet itself.
say() { printf '%s\n' "$@" >&2; }
title() { printf '%s%s%s\n' "$bold" "$*" "$plain" >&2; }
# Leaves with exit code 1; each argument is a line.
die() {
  printf '%s\n' "$@" >&2
  exit 1
}

# Bytes as MB.
megabytes() { awk -v bytes="$1" 'BEGIN { printf "%.1f MB", bytes / 1e6 }'; }

# How many compilers fit: one a processor, 1.5 GB of memory for each.
compile_jobs() {
  awk -v cpus="$(nproc)" '
    /^MemAvailable:/ { fit = int($2 / 1.5e6) }
    END { n = fit < cpus ? fit : cpus; print n < 1 ? 1 : n }' /proc/meminfo
}

# Configures and builds a preset of CMakePresets.json: all of it, or the targets named.
build_preset() {
  preset=$1
  shift
  cmake --preset "$preset" || return
  [ $# = 0 ] || set -- --target "$@"
  cmake --build --preset "$preset" --parallel "$(compile_jobs)" "$@"
}
