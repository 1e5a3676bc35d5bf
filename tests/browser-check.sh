#!/usr/bin/env bash
# Makes sure that the browser tests find a Chromium. Silent if there is one; installs Debian's if that can be done without asking.
set -euo pipefail

have_browser() {
  local name
  for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && return 0
  done
  return 1
}

have_browser && exit 0

how="The browser tests need Chromium, and none was found: install it (Debian: apt install chromium; macOS: brew install --cask chromium; Fedora: dnf install chromium), then run make test again."

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "Installing Chromium for the browser tests (once) ..."
  export DEBIAN_FRONTEND=noninteractive
  log="$(mktemp)"
  trap 'rm -f "$log"' EXIT
  if apt-get update -qq >"$log" 2>&1 && apt-get install -y -qq --no-install-recommends chromium >>"$log" 2>&1 && have_browser; then
    exit 0
  fi
  tail -n 5 "$log" >&2
fi

echo "$how" >&2
exit 1
