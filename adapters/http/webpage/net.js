// Talking to the gateway: with the key, if one is needed, and in the name of this browser.

import { $, announce } from "./dom.js";
import * as store from "./store.js";
import { say } from "./words.js";

let key = store.key();
/** Whose conversations and whose memory it is where no key says so; nobody else knows it. */
export const browser = store.get("browser", null) ?? store.fresh();
store.set("browser", browser);

/** The person has not given a key. */
export class NoKey extends Error {}

/** Who asks. @param {boolean} [json] whether it has a body @returns {Record<string, string>} */
export const headers = (json = true) => ({
  "X-Outspoken-Browser": browser,
  ...(json ? { "Content-Type": "application/json" } : {}),
  ...(key ? { Authorization: `Bearer ${key}` } : {}),
});

/** So long an answer is waited for: a connection that a network has forgotten (a laptop slept, a NAT let go) never gives one, and says nothing of it. What is posted is stored at once. */
const POSTED_MS = 20_000;
const ASKED_MS = 120_000;

/** Like `fetch`; raises what it does for a connection that breaks if no answer begins in time. @param {string} path @param {RequestInit} options */
async function answered(path, options) {
  if (options.signal) return fetch(path, options);
  const patience = new AbortController();
  const late = setTimeout(() => patience.abort(new TypeError("no answer")), options.method === "POST" ? POSTED_MS : ASKED_MS);
  try {
    return await fetch(path, { ...options, signal: patience.signal });
  } finally { clearTimeout(late); }
}

/** @param {string} path @param {RequestInit} [options] @returns {Promise<Response>} */
export async function call(path, options = {}) {
  const shown = key;
  const response = await answered(path, { ...options, headers: headers(Boolean(options.body)) });
  if (response.status !== 401) return response;
  if (shown === key) await admit(response);
  return call(path, options);
}

/** Nobody is served so: asks for a key, if it is the gateway that wants one; what a proxy in front of it wants is found by loading the page anew. @param {Response} response */
export async function admit(response) {
  if (content) throw new NoKey(say("key.needed"));
  const { error } = await response.clone().json().catch(() => ({}));
  if (error?.code === "invalid_api_key") return askKey();
  $("signedout").hidden = false;
  announce(say("signin.needed"));
  throw new NoKey(say("signin.needed"));
}

let content = false;
/** Whether what is shown is enough, so that nobody is asked for a key for the rest. @param {boolean} enough */
export function enough(enough) { content = enough; }

/** Whether the gateway can be reached now. */
export const reachable = () => fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(5000) }).then((response) => response.ok, () => false);

/** What went wrong, in words. @param {Response} response */
export async function problem(response) {
  const body = await response.json().catch(() => ({}));
  return body.error?.message ?? say("failed.http", { status: response.status });
}

/** The answer as JSON; raises an error in words. @param {string} path @param {RequestInit} [options] */
export async function ask(path, options = {}) {
  let response;
  try {
    response = await call(path, options);
  } catch (error) {
    if (error instanceof NoKey) throw error;
    throw new Error(say("failed.offline"), { cause: error });
  }
  if (!response.ok) throw new Error(await problem(response));
  return response.json();
}

/** @type {Promise<void> | null} */
let asking = null;
let refused = false;

/** Asks for a key; raises `NoKey` if the person does not want to give one now. */
function askKey() {
  if (refused) return Promise.reject(new NoKey(say("key.needed")));
  asking ??= new Promise((resolve, reject) => {
    $("keywrong").hidden = !key;
    if (key) announce(say("key.wrong"));
    const dialog = $("keydialog");
    const given = () => {
      if (!$("key").value.trim()) { $("key").focus(); return; }
      key = $("key").value.trim();
      store.keepKey(key, $("keep").checked);
      asking = null;
      dialog.onclose = null;
      dialog.close();
      resolve();
    };
    $("keyform").onsubmit = (/** @type {Event} */ event) => { event.preventDefault(); given(); };
    dialog.onclose = () => {
      asking = null;
      refused = true;
      keyless(true);
      reject(new NoKey(say("key.needed")));
    };
    dialog.showModal();
  });
  return asking;
}

/** @param {boolean} shown */
function keyless(shown) {
  $("keyless").hidden = !shown;
  if (shown) announce(say("key.needed"));
}

$("signin").addEventListener("click", () => location.reload());
$("keylater").addEventListener("click", () => $("keydialog").close());
/** @param {() => void} again What is done once there is a key. */
export function whenKeyIsGiven(again) {
  $("keyagain").addEventListener("click", () => {
    refused = false;
    keyless(false);
    again();
  });
}
