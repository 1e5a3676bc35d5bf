#!/usr/bin/env bash
# Makes sure that the tests of the alert rules find Prometheus and its promtool. Silent if they are there; else Debian's are unpacked into
# .tools, and nothing is installed or started. Where that cannot be done, those tests say that they are skipped, and why.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v promtool >/dev/null 2>&1 && exit 0
[ -x .tools/usr/bin/promtool ] && exit 0
command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || exit 0

echo "Fetching promtool for the tests of the alert rules (once) ..."
there="$PWD/.tools"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
fetch() { (cd "$folder" && apt-get download -qq -o APT::Sandbox::User=root prometheus) >"$folder/log" 2>&1; }
if { fetch || { [ "$(id -u)" -eq 0 ] && apt-get update -qq >/dev/null 2>&1 && fetch; }; } \
  && dpkg-deb -x "$folder"/prometheus_*.deb "$folder/unpacked" 2>>"$folder/log"; then
  mkdir -p "$there/usr"
  cp -R "$folder/unpacked/usr/bin" "$there/usr/"
else
  tail -n 3 "$folder/log" >&2
fi
