#!/usr/bin/env bash
# Makes sure that the tests of commands find bubblewrap. Silent if it is there; else Debian's is installed if that can be done without asking.
# Where it cannot be had, or no sandbox works, those tests say that they are skipped, and why.
set -euo pipefail

[ "$(uname -s)" = Linux ] || exit 0
command -v bwrap >/dev/null 2>&1 && exit 0
[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1 || exit 0

echo "Installing bubblewrap for the tests of commands (once) ..."
export DEBIAN_FRONTEND=noninteractive
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
install() { apt-get install -y -qq --no-install-recommends bubblewrap >"$log" 2>&1; }
install || { apt-get update -qq >/dev/null 2>&1 && install; } || tail -n 3 "$log" >&2
