#!/usr/bin/env bash
# Makes sure that the browser tests find a Chromium. Silent if there is one; installs Debian's if that can be done without asking.
# The shell without windows is the same browser for a third of the processor time, so it is asked for once, also where another is there.
set -euo pipefail

asked=.venv/.browser-asked

have() {
  local name
  for name in "$@"; do
    command -v "$name" >/dev/null 2>&1 && return 0
  done
  return 1
}

have_browser() {
  have chromium-headless-shell chromium chromium-browser google-chrome
}

have chromium-headless-shell && exit 0
have_browser && [ -e "$asked" ] && exit 0

how="The browser tests need Chromium, and none was found: install it (Debian: apt install chromium-headless-shell; macOS: brew install --cask chromium; Fedora: dnf install chromium), then run make test again."

log="$(mktemp)"
trap 'rm -f "$log"' EXIT

if [ "$(id -u)" -eq 0 ] && have apt-get; then
  echo "Installing Chromium for the browser tests (once) ..."
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=30 >"$log" 2>&1 || true
  for package in chromium-headless-shell chromium; do
    apt-get install -y -qq --no-install-recommends --no-remove "$package" >>"$log" 2>&1 || true
    have_browser && break
  done
fi
touch "$asked" 2>/dev/null || true
have_browser && exit 0
tail -n 5 "$log" >&2
echo "$how" >&2
exit 1
