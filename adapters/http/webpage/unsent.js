// What was written and is not sent yet: kept by this browser, sent in its order, and held for a while where the gateway has no room for it.

import * as store from "./store.js";

/** @typedef {{id: string, session: string, text: string, at: number, accepted: boolean, refused?: string, until?: number, model?: string, files?: string[], shown?: string, why?: string}} Unsent */

const UNSENT = "unsent.";
/** So long the page itself waits with a message; what there is no room for until tomorrow is refused in words. */
const PATIENCE_S = 120;

/** @returns {Unsent[]} */
export function unsent() {
  const kept = store.names(UNSENT).map((name) => store.get(name, null)).filter((one) => one?.id && one.session);
  return kept.sort((a, b) => a.at - b.at);
}

/** @param {Unsent} message */
export const keep = (message) => store.set(UNSENT + message.id, message);
/** What was taken away meanwhile stays away. @param {Unsent} message */
export const change = (message) => { if (store.get(UNSENT + message.id, null)) keep(message); };
/** @param {string} id */
export const drop = (id) => store.set(UNSENT + id, null);

/** What is sent next: the oldest of a conversation before the others, and none before one that is held, but for commands. @param {number} now @param {Set<string>} theirs What another page sends. */
export function next(now, theirs) {
  const held = new Set();
  for (const message of unsent()) {
    if (message.accepted) continue;
    if (theirs.has(message.id)) { held.add(message.session); continue; }
    if (held.has(message.session) && !/^[/／]/.test(message.text)) continue;
    if ((message.until ?? 0) <= now) return message;
    held.add(message.session);
  }
  return undefined;
}

/** When the first of those that are held is sent; never if none is. */
export const heldUntil = () => Math.min(...unsent().filter((one) => !one.accepted && one.until).map((one) => one.until ?? 0), Infinity);

/** Until when a message waits that was not taken just now; 0 if it is refused. @param {Response} response @param {number} now */
export function holdUntil(response, now) {
  const seconds = Number(response.headers.get("Retry-After") ?? "");
  return response.status === 429 && seconds > 0 && seconds <= PATIENCE_S ? now + seconds * 1000 : 0;
}
