# Finds and installs what scripts/packages.txt lists. POSIX sh; source it after common.sh.

# require_packages GROUP...: returns when every package of the groups is there. Otherwise names what is missing and the
# one command for it, and runs that command when the user agrees: at the terminal, with $assume_yes = 1, or, as root,
# with CI=true. Leaves with exit code 1 when something is still missing.
require_packages() {
  check_machine
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  install="apt-get update && apt-get install -y --no-install-recommends $(echo $missing)"
  say "Missing on this machine: $(echo $missing)"
  command -v apt-get >/dev/null || die \
    "This system has no apt-get. Install what its packages of these Debian names are called here, then try again."
  if [ "$(id -u)" = 0 ]; then
    run=$install
  elif command -v sudo >/dev/null; then
    run="sudo sh -c '$install'"
  else
    die "You are not root and there is no sudo. Ask whoever looks after this machine to run:" "  $install"
  fi
  say "This command installs it:" "" "  $run" ""
  agreed || die "Run it, then try again (--yes runs it without asking)."
  sh -c "$run" </dev/null >&2 || die "The installation failed: what apt-get said stands above."
  missing=$(missing_packages "$@")
  [ -z "$missing" ] || die "Still missing after the installation: $(echo $missing)"
}

check_machine() {
  [ "$(uname -sm)" = "Linux x86_64" ] || die "stet runs on Linux on x86-64 processors; this is $(uname -sm)."
}

agreed() {
  [ "${assume_yes:-0}" = 0 ] || return 0
  if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ]; then return 0; fi
  [ -t 0 ] || return 1
  printf 'Run it now? [y/N] ' >&2
  read -r answer || return 1
  case $answer in [yY]*) return 0 ;; *) return 1 ;; esac
}

# The packages of the groups that are not there, a line each.
missing_packages() {
  headers=$(missing_headers)
  grep -v '^#' "$root/scripts/packages.txt" | while read -r group package probe; do
    case " $* " in *" $group "*) has "$package" "${probe%%:*}" "${probe#*:}" || name_here "$package" ;; esac
  done
}

# Of NAME|NAME the first that apt knows; the first where it knows none (its lists may be empty yet).
name_here() {
  for name in $(echo "$1" | tr '|' ' '); do
    if apt-cache show "$name" >/dev/null 2>&1; then echo "$name" && return; fi
  done
  echo "${1%%|*}"
}

has() { # package, kind of probe, what to look for
  case $2 in
    command) command -v "$3" >/dev/null ;;
    file) [ -e "$3" ] ;;
    module) command -v python3 >/dev/null && python3 -c "import $3" 2>/dev/null ;;
    header) case " $(echo $headers) " in *" $1 "*) false ;; esac ;;
  esac
}

# Packages whose header the compiler does not find. Without a compiler, those that dpkg does not know as installed.
missing_headers() {
  if command -v g++ >/dev/null; then
    awk '!/^#/ && sub(/^header:/, "", $3) { printf "#if !__has_include(<%s>)\n\"%s\"\n#endif\n", $3, $2 }' \
      "$root/scripts/packages.txt" | g++ -E -P -x c++ - | tr -d '"'
  else
    awk '!/^#/ && $3 ~ /^header:/ { print $2 }' "$root/scripts/packages.txt" | while read -r package; do
      dpkg-query -W -f '${Status}' $(echo "$package" | tr '|' ' ') 2>/dev/null | grep -q '^install ok installed' || echo "$package"
    done
  fi
}
