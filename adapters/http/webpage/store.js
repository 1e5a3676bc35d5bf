// What this browser keeps. Where it may keep nothing, the page goes on and says so.

/** @type {Map<string, string>} */
const instead = new Map();
export let blocked = false;

const PREFIX = "outspoken.";

/** @param {string} name @param {any} fallback @returns {any} */
export function get(name, fallback) {
  try {
    const kept = instead.get(name) ?? localStorage.getItem(PREFIX + name);
    return kept === null ? fallback : JSON.parse(kept) ?? fallback;
  } catch (error) {
    if (!(error instanceof SyntaxError)) blocked = true;
    return fallback;
  }
}

/** @param {string} name @param {any} value Null forgets it. */
export function set(name, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
    instead.delete(name);
  } catch {
    blocked = true;
    if (value === null) instead.delete(name);
    else instead.set(name, JSON.stringify(value));
  }
}

/** All names that begin so. @param {string} beginning */
export function names(beginning) {
  const found = [...instead.keys()];
  try {
    for (let i = 0; i < localStorage.length; i += 1) {
      const name = localStorage.key(i) ?? "";
      if (name.startsWith(PREFIX)) found.push(name.slice(PREFIX.length));
    }
  } catch { blocked = true; }
  return [...new Set(found)].filter((name) => name.startsWith(beginning));
}

/** The key as text, of this browser or this tab only. */
export function key() {
  try {
    return sessionStorage.getItem("outspoken.key") ?? localStorage.getItem("outspoken.key") ?? "";
  } catch { blocked = true; return ""; }
}

/** @param {string} given @param {boolean} keep */
export function keepKey(given, keep) {
  try {
    (keep ? localStorage : sessionStorage).setItem("outspoken.key", given);
    if (keep) sessionStorage.removeItem("outspoken.key");
  } catch { blocked = true; }
}

export const fresh = () => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
