// The web chat. The server sends whole messages as they are now; this page makes the screen equal to the latest.

import { quiet } from "./aloud.js";
import { attaching } from "./attach.js";
import { $, announce, asleep, button, composing, free, keepingPlace, node, reconcile, toast } from "./dom.js";
import * as list from "./list.js";
import * as menu from "./menu.js";
import { NoKey, admit, ask, browser, call, headers, problem, reachable, whenKeyIsGiven } from "./net.js";
import { preferring } from "./prefer.js";
import * as store from "./store.js";
import { lingers, merged, sayNews, text, turnNode, wordsOf } from "./turns.js";
import { change, drop, heldUntil, holdUntil, keep, next, unsent } from "./unsent.js";
import { speaking } from "./voice.js";
import { fill, say } from "./words.js";

/** @typedef {import("./turns.js").Turn} Turn */
/** @typedef {import("./unsent.js").Unsent} Unsent */

const SILENCE_MS = 25_000;
const NAME = /^[A-Za-z0-9_-]{8,64}$/;
const newName = () => `c-${store.fresh()}`;
/** A conversation that is in no list, and deleted when it is left. @param {string} name */
const temporary = (name) => name.startsWith("c-t-");
/** Keeps something of this conversation in the browser. @param {string} what @param {any} value */
const note = (what, value) => { if (!temporary(session)) store.set(`${what}.${session}`, value); };

let session = "";
/** @type {Map<string, Turn>} */
let turns = new Map();
/** @type {AbortController | null} */
let connection = null;
let sending = false;
let holding = 0;
let failures = 0;
let lostSince = 0;
let lostSaid = false;
let noKey = false;
let editing = "";
const AT_ONCE = 50; // so many turns the gateway tells at first
/** There may be earlier messages than those that are shown. */
let more = false;
/** Those that were asked for. @type {Set<string>} */
const asked = new Set();

const files = attaching($("composer"), $("text"), () => { fit(); renderSoon(); });

speaking((recorded) => files.add(recorded));

// ---------------------------------------------------------------- what is not sent yet

/** What an older page kept in one list. */
function moveOld() {
  const old = store.get("unsent", null);
  if (Array.isArray(old)) for (const message of old) keep(message);
  if (old !== null) store.set("unsent", null);
  const draft = store.get("draft", "");
  if (draft) store.set(`draft.${session}`, draft);
  store.set("draft", null);
}

/** @param {string} words @param {boolean} [enclosed] What is attached goes along: not with words that a button says. @param {string} [shown] In their place. */
function speak(words, enclosed = false, shown = "") {
  const model = $("model").value;
  const id = store.fresh();
  const names = enclosed ? files.take(id) : [];
  keep({ id, session, text: words, at: Date.now(), accepted: false, ...(shown ? { shown } : {}), ...(model ? { model } : {}), ...(names.length ? { files: names } : {}) });
  render();
  toEnd();
  deliver();
}

async function deliver() {
  if (sending) return;
  sending = true;
  const theirs = new Set();
  try {
    for (;;) {
      const message = next(Date.now(), theirs);
      if (!message) return;
      if (message.files?.length && await files.elsewhere(message.id)) { theirs.add(message.id); continue; }
      const body = { id: message.id, text: message.text, browser, ...(message.model ? { model: message.model } : {}) };
      const path = `/api/sessions/${message.session}/messages`;
      const response = message.files?.length
        ? await files.post(path, body, headers(), message.id)
        : await call(path, { method: "POST", body: JSON.stringify(body) });
      if (response.status === 401) { await admit(response); continue; }
      if (response.ok) {
        message.accepted = true;
        const { command } = await response.json();
        if (command || message.session !== session || turns.has(message.id)) drop(message.id);
        else change(message);
        list.back();
        files.forget(message.id);
      } else if (response.status < 500) {
        message.until = holdUntil(response, Date.now());
        message.accepted = !message.until;
        message.refused = message.accepted ? await problem(response) : undefined;
        change(message);
        announce(message.refused ?? heldWords(message));
      } else {
        await wait(message, await problem(response));
      }
      render();
    }
  } catch (error) {
    if (error instanceof TypeError) lostSince ||= Date.now(); // nothing can be reached, though what is followed may not know it yet
    if (!(error instanceof NoKey)) setTimeout(deliver, 2000);
  } finally {
    sending = false;
    if (theirs.size) setTimeout(deliver, 2000);
    const until = heldUntil();
    clearTimeout(holding);
    if (until < Infinity) holding = setTimeout(deliver, Math.max(0, until - Date.now()));
  }
}

/** It is sent again in a moment; meanwhile it says why. @param {Unsent} message @param {string} why @returns {Promise<never>} */
async function wait(message, why) {
  const known = message.why === why;
  change({ ...message, why });
  render();
  if (!known) announce(why);
  throw new Error(why);
}

/** @param {Unsent} message */
const heldWords = (message) => say("held", { seconds: Math.max(1, Math.ceil(((message.until ?? 0) - Date.now()) / 1000)) });

// ---------------------------------------------------------------- following

// A browser opens six connections to one server (HTTP/1.1), for all of its tabs together. A page that nobody sees keeps none:
// it has all that was said when it is seen again. If it is to tell of answers, it looks for them now and then.
const UNSEEN_MS = 3000;
const LOOK_MS = 2000;
const NEXT_LOOK_MS = 15_000;
let resting = 0;

/** @param {number} [after] So long an unseen page still follows. */
function seen(after = UNSEEN_MS) {
  clearTimeout(resting);
  if (!document.hidden) return connection ?? follow();
  resting = setTimeout(() => {
    connection?.abort();
    connection = null;
    if (telling()) resting = setTimeout(() => { follow(); seen(LOOK_MS); }, NEXT_LOOK_MS);
  }, after);
}

/** Whether the person wants to be told of what comes while the page is not seen. */
const telling = () => "Notification" in window && Notification.permission === "granted";

async function follow() {
  const mine = new AbortController();
  connection?.abort();
  connection = mine;
  let silence = 0;
  const alive = () => { clearTimeout(silence); silence = setTimeout(() => mine.abort("silent"), SILENCE_MS); };
  try {
    alive();
    const response = await call(`/api/sessions/${session}/events?changes=1`, { signal: mine.signal });
    if (!response.ok || !response.body) throw new Error(`HTTP ${response.status}`);
    noKey = false;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error("the stream ended");
      alive();
      buffer += value;
      let end;
      while ((end = buffer.indexOf("\n\n")) >= 0) {
        receive(buffer.slice(0, end));
        buffer = buffer.slice(end + 2);
      }
    }
  } catch (error) {
    if (connection !== mine) return;
    if (error instanceof NoKey) { noKey = true; return; }
    failures += 1;
    lostSince ||= Date.now() - (mine.signal.reason === "silent" ? SILENCE_MS : 0);
    showLink();
    const pause = Math.min(15_000, 500 * 2 ** Math.min(failures, 6)) * (0.5 + Math.random() / 2);
    setTimeout(() => { if (connection === mine) follow(); }, pause);
  } finally {
    clearTimeout(silence);
  }
}

/** Something has come, so the gateway is there. A browser that is offline may have got what was on its way, or have a gateway on its own machine: that is looked at. */
async function found() {
  if (navigator.onLine || (await reachable())) lostSince = 0;
}

/** What a command or the gateway began has a key of its own. @param {{key: string}} turn */
function idOf(turn) {
  const [of, said] = turn.key.split(":");
  return of === session && said ? said : turn.key;
}

/** @param {string} block */
function receive(block) {
  failures = 0;
  if (lostSince) found();
  showLink();
  const told = (/** @type {string} */ name) => block.split("\n").find((line) => line.startsWith(name))?.slice(name.length);
  const [event, data] = [told("event: "), told("data: ")];
  if (!data) return;
  const before = turns;
  const first = event === "snapshot";
  const came = JSON.parse(data);
  if (first) {
    const [lowest] = [...came].sort((a, b) => a.order - b.order);
    const goesOn = lowest && before.has(idOf(lowest)); // then what was asked for is what comes before it
    if (!goesOn) asked.clear();
    turns = new Map([...before].filter(([id]) => asked.has(id)));
    if (!asked.size) more = came.filter((/** @type {Turn} */ one) => one.turn).length >= AT_ONCE;
  }
  const newest = before.size ? Math.max(...[...before.values()].map((turn) => turn.order)) : Infinity;
  let [ended, moved] = [false, false];
  for (const news of came) {
    if (news.hidden && !first) forgetEarlier();
    const id = idOf(news);
    const was = before.get(id);
    const turn = merged(news, first ? undefined : was);
    const same = first && was !== undefined && JSON.stringify(was) === JSON.stringify(turn);
    turns.set(id, same ? was : turn);
    if ((!first || before.size) && !turn.hidden) sayNews(turn, was);
    const came = turn.state === "closed" && !was && (first ? turn.order > newest : !turn.person); // a reminder, which no turn told; or it was begun and answered while nobody looked
    if (came || (turn.state === "closed" && was && was.state !== "closed")) { ended = true; notify(turn); }
    else if (standing(turn) === "asks" && (was ? standing(was) !== "asks" : !first || before.size)) notify(turn);
    moved ||= !first && standing(turn) !== (was && standing(was));
    drop(id);
  }
  if (ended) list.ended();
  else if (moved || (first && before.size && !turns.size)) list.load(true); // deleted, maybe in another tab
  renderSoon();
}

/** What the list says of a conversation with this turn. @param {Turn} turn */
function standing(turn) {
  return turn.state === "open" && turn.bubbles.some((one) => one.kind === "approval") ? "asks" : turn.state;
}

/** What was said before all that is shown. */
async function earlier() {
  const mine = session;
  const first = [...turns.values()].filter((turn) => turn.turn && !turn.hidden).sort((a, b) => a.order - b.order)[0];
  if (!first) return;
  $("earlier").disabled = true;
  try {
    const came = await ask(`/api/sessions/${session}/earlier?changes=1&before=${first.turn}`);
    if (mine !== session) return;
    more = came.length >= AT_ONCE;
    if (!came.length) toast(say("earlier.none"));
    for (const news of came) { turns.set(idOf(news), merged(news, undefined)); asked.add(idOf(news)); }
    const box = $("scroll"), below = box.scrollHeight - box.scrollTop;
    render();
    box.scrollTop = box.scrollHeight - below;
    if (came.length) $("turns").querySelector(".turn button")?.focus({ preventScroll: true });
  } catch (error) {
    toast(say("failed", { why: /** @type {Error} */ (error).message }));
  } finally { $("earlier").disabled = false; }
}

/** Another branch is shown: what was asked for may be of the one before. */
function forgetEarlier() {
  for (const id of asked) turns.delete(id);
  if (asked.size) more = true;
  asked.clear();
}

async function stop() {
  if (!free($("stop"))) return;
  asleep($("stop"), true);
  try {
    await ask(`/api/sessions/${session}/stop`, { method: "POST" });
  } catch (error) {
    toast(say("failed", { why: /** @type {Error} */ (error).message }));
  } finally { asleep($("stop"), false); }
}

function showLink() {
  const asked = $("keydialog").open || !$("keyless").hidden || !$("signedout").hidden; // the gateway is there, and wants to know who it is
  const lost = !asked && (failures > 1 || (lostSince > 0 && Date.now() - lostSince > 1500));
  $("link").textContent = lost ? say("link.lost", { seconds: Math.max(1, Math.round((Date.now() - lostSince) / 1000)) }) : "";
  $("link").classList.toggle("lost", lost);
  document.body.classList.toggle("lost", lost);
  if (lost !== lostSaid) announce(say(lost ? "link.lost.said" : "link.back"));
  lostSaid = lost;
}

/** @param {Turn} turn */
function notify(turn) {
  if (!document.hidden || !telling()) return;
  const asked = turn.state === "open" && turn.bubbles.find((b) => b.kind === "approval");
  const words = asked ? say("ask.said", { text: asked.text }) : turn.bubbles.filter((b) => ["answer", "notice", "note"].includes(b.kind)).map((b) => b.text).join(" ");
  const shown = { body: words.slice(0, 200), icon: "/static/icon.svg", tag: session };
  navigator.serviceWorker?.ready.then((ready) => ready.showNotification(list.title() || "outspoken", shown)).catch(() => {});
}

// ---------------------------------------------------------------- showing

/** Where nothing was said yet, the beginning is what is to be seen. */
const empty = () => !$("welcome").hidden;

function atEnd() {
  const box = $("scroll");
  return empty() || box.scrollHeight - box.scrollTop - box.clientHeight < 80;
}

function toEnd() {
  followed = true;
  $("scroll").scrollTop = scrolledTo = empty() ? 0 : $("scroll").scrollHeight;
  $("jump").hidden = true;
}

// The end was in sight: it stays so where what is above it grows later (code that comes to the screen, a picture), until somebody scrolls up or opens something.
let followed = true;
let scrolledTo = 0;

function scrolled() {
  const to = $("scroll").scrollTop;
  if (atEnd()) { followed = true; $("jump").hidden = true; }
  else if (to < scrolledTo) followed = false;
  scrolledTo = to;
}

// What is made anew in one frame ends with its time; the rest comes with the next ones, in order.
const FRAME_MS = 30;
const REST = 3; // so many times as long as it took it is left alone
let waiting = false;
let notBefore = 0;
let following = false;

function renderSoon() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => requestAnimationFrame(() => { waiting = false; render(); }), Math.max(0, notBefore - performance.now()));
}

const doing = {
  say: speak,
  /** @param {string} words @param {string} [turn] The turn in whose place the words come. */
  edit: (words, turn = "") => {
    editing = turn;
    $("text").value = words;
    typed();
    $("text").focus();
    if (turn) announce(say("editing"));
  },
  /** @param {string} turn @param {string} words Empty: those that were said. */
  redo: (turn, words) => speak(`/redo ${turn} ${words}`.trim(), false, words || say("again")),
  /** Another version of a message, and what came of it. @param {string} turn @param {HTMLElement} from The arrow. */
  show: async (turn, from) => {
    try {
      await ask(`/api/conversations/${session}/shown`, { method: "POST", body: JSON.stringify({ turn }) });
      wanted = { turn, arrow: from.className, foot: Boolean(from.closest(".foot")) };
      renderSoon();
    } catch (error) {
      toast(say("failed", { why: /** @type {Error} */ (error).message }));
    }
  },
  /** @param {string} turn */
  branch: async (turn) => {
    const name = newName();
    try {
      await ask(`/api/conversations/${session}/branches`, { method: "POST", body: JSON.stringify({ turn, name, title: say("branch.title", { title: list.title() || say("temporary") }).slice(0, 200) }) });
      store.set(`model.${name}`, $("model").value || null);
      history.pushState(null, "", `#${name}`);
      go(name);
      list.back();
      toast(say("branch.done"));
    } catch (error) {
      toast(say("failed", { why: /** @type {Error} */ (error).message }));
    }
  },
  /** @param {string} turn @param {string} callId @param {boolean} approve @param {string} lasts */
  decide: (turn, callId, approve, lasts) => ask(`/api/sessions/${session}/approvals`, { method: "POST", body: JSON.stringify({ turn, call: callId, approve, lasts }) }),
  /** @param {string} turn @param {string} callId @param {string} words */
  answer: (turn, callId, words) => ask(`/api/sessions/${session}/approvals`, { method: "POST", body: JSON.stringify({ turn, call: callId, answer: words }) }),
  /** @param {string} file */
  place: (file) => `/api/sessions/${session}/files/${file}`,
  /** @param {string} key @param {number} n */
  brought: (key, n) => `/api/sessions/${session}/messages/${encodeURIComponent(key)}/files/${n}`,
  again: renderSoon,
};

/** The version that was asked for, and where its arrows are wanted. @type {{turn: string, arrow: string, foot: boolean} | null} */
let wanted = null;

/** Its arrows have the focus that those of the other one had. */
function arrive() {
  const found = wanted && [...turns.values()].find((turn) => turn.turn === wanted?.turn && !turn.hidden);
  const item = found && items.get(idOf(found))?.item;
  if (!wanted || !found || !item?.isConnected) return;
  const arrows = /** @type {HTMLButtonElement[]} */ ([...item.querySelectorAll(`${wanted.foot ? ".foot" : ".acts"} .versions button`)]);
  (arrows.find((each) => each.className === wanted?.arrow && !each.disabled) ?? arrows.find((each) => !each.disabled))?.focus({ preventScroll: true });
  arrows[0]?.scrollIntoView({ block: "nearest" });
  announce(say("version.said", { n: found.versions.indexOf(found.turn) + 1, of: found.versions.length, text: found.person.slice(0, 200) }));
  wanted = null;
}

/** Each turn as it was when it was last shown, and where. @type {Map<string, {turn: Turn, item: HTMLElement}>} */
const items = new Map();

const render = () => keepingPlace(draw);

function draw() {
  const began = performance.now();
  const follows = following || followed || atEnd();
  const ordered = [...turns.entries()].filter(([, turn]) => !turn.hidden).sort(([, a], [, b]) => a.order - b.order);
  const mine = unsent().filter((m) => m.session === session && !turns.has(m.id));
  const rows = [];
  let late = false;
  for (const [id, turn] of ordered) {
    const was = items.get(id);
    if (!was || was.turn !== turn || lingers(turn)) {
      if (performance.now() - began > FRAME_MS) late = true;
      else items.set(id, { turn, item: turnNode(turn, was?.item ?? null, doing) });
    }
    const item = items.get(id)?.item;
    if (item) rows.push({ key: id, state: "", make: () => item });
  }
  for (const id of items.keys()) if (!turns.has(id)) items.delete(id);
  const held = mine.find((m) => !m.accepted && m.until);
  reconcile($("turns"), [...rows, ...mine.map((m) => ({ key: m.id, state: JSON.stringify(m) + unsentWords(m, held), make: () => unsentNode(m, unsentWords(m, held)) }))]);
  arrive();
  following = follows && late;
  if (late) renderSoon();
  const running = ordered.some(([, turn]) => turn.state !== "closed");
  $("earlier").hidden = !more;
  $("welcome").hidden = ordered.length + mine.length > 0;
  $("temporary").checked = temporary(session);
  $("passing").hidden = !temporary(session) || empty();
  $("stop").hidden = !running;
  $("send").hidden = running && !$("text").value.trim() && !files.any();
  if (follows) toEnd(); else $("jump").hidden = false;
  $("storage").hidden = !store.blocked;
  notBefore = performance.now() + REST * (performance.now() - began);
}

/** How it is with it, and what changes with the time. @param {Unsent} message @param {Unsent} [held] One of its conversation. */
const unsentWords = (message, held) => message.refused ?? (held && !message.accepted && message.at >= held.at ? heldWords(held) : message.accepted ? say("accepted") : [say("sending"), files.progress(message.id), message.why].filter(Boolean).join(" "));

/** @param {Unsent} message @param {string} words */
function unsentNode(message, words) {
  const hint = node("div", "hint", words);
  if (message.refused) hint.append(" ", button(say("send"), () => { keep({ ...message, accepted: false, refused: undefined }); deliver(); render(); }));
  if (message.refused || message.until) {
    hint.append(" ", button(say("edit"), () => { drop(message.id); doing.edit(message.text); files.back(message.id); render(); }),
      " ", button(say("remove"), () => { drop(message.id); files.forget(message.id); render(); }));
  }
  const shown = [message.shown ?? message.text, ...(message.files ?? []).map((name) => `📎 ${name}`)].filter(Boolean).join("\n");
  return node("li", "turn unsent", node("div", "person", ...text(shown)), hint);
}

// ---------------------------------------------------------------- the person

const LARGE = 20_000; // characters: from here on a browser needs seconds to find each line's direction

function fit() {
  const box = $("text");
  box.dir = box.value.length > LARGE ? "" : "auto";
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
  $("send").hidden = !$("stop").hidden && !box.value.trim() && !files.any();
}

function typed() {
  fit();
  if (!$("text").value) editing = "";
  $("editing").hidden = !editing;
  menu.typed();
  note("draft", $("text").value || null);
  note("editing", editing || null);
}

/** A temporary conversation ends. @param {boolean} [closing] With the page. */
async function leave(closing = false) {
  if (!temporary(session)) return;
  const left = session, said = turns.size > 0;
  for (const one of unsent()) if (one.session === left) drop(one.id);
  try {
    const response = await call(`/api/conversations/${left}`, { method: "DELETE", keepalive: closing });
    if (!response.ok && response.status !== 404) throw new Error(await problem(response));
    if (said) toast(say("temporary.gone"));
  } catch { toast(say("temporary.later")); }
}

/** Shows another conversation. @param {string} name */
function go(name) {
  quiet();
  if (session !== name) leave();
  session = name;
  if (!temporary(session)) store.set("session", session);
  if (location.hash.slice(1) !== session) history.replaceState(null, "", `#${session}`);
  turns = new Map();
  asked.clear();
  more = false;
  items.clear();
  $("text").value = store.get(`draft.${session}`, "");
  editing = $("text").value ? store.get(`editing.${session}`, "") : ""; // else the words would be sent as a new message
  $("editing").hidden = !editing;
  $("model").value = store.get(`model.${session}`, "");
  fit();
  list.current(session);
  render();
  toEnd();
  follow();
  drawer(false);
}

/** @param {boolean} open */
function drawer(open) {
  document.body.classList.toggle("drawer", open);
  $("drawer").setAttribute("aria-expanded", String(open));
  $("drawer").setAttribute("aria-label", say(open ? "drawer.close" : "drawer.open"));
}

function begin() {
  fill(document);
  drawer(false);
  const asked = location.hash.slice(1);
  const last = store.get("session", "");
  const first = NAME.test(asked) && !temporary(asked) ? asked : NAME.test(last) ? last : newName();
  session = first;
  moveOld();
  for (const one of unsent()) if (one.accepted && !one.refused && one.session !== session) drop(one.id);
  list.begin((id) => { if (id === session) begun(); });
  whenKeyIsGiven(connect);
  go(first);
  seen();
  connect();
  $("text").focus();
}

/** Chooses a model or an agent for this conversation, if there is one of this name. @param {string} name */
function choose(name) {
  const found = [.../** @type {HTMLSelectElement} */ ($("model")).options].find((one) => one.textContent === name);
  if (!found) return;
  $("model").value = found.value;
  note("model", found.value || null);
}

function begun() {
  list.back();
  history.pushState(null, "", `#${newName()}`);
  go(location.hash.slice(1));
  $("text").focus();
}

async function connect() {
  if (noKey) follow();
  deliver();
  list.load();
  try {
    const about = await ask("/api/about");
    $("banner").textContent = about.notice;
    $("banner").hidden = !about.notice;
    $("tries").hidden = !about.rehearsal;
    list.linksFor(about.share_links);
    files.limit(about.file_bytes);
    menu.offer(about.commands);
    $("model").replaceChildren(.../** @type {string[]} */ (about.models).map((name, index) => {
      const option = /** @type {HTMLOptionElement} */ (node("option", "", name));
      option.value = index ? name : "";
      return option;
    }));
    $("model").value = store.get(`model.${session}`, "");
    if ($("model").selectedIndex < 0) $("model").value = "";
    $("modelbox").hidden = about.models.length === 0 || about.rehearsal;
  } catch (error) {
    if (!(error instanceof NoKey)) setTimeout(connect, 5000); // the connection's own state is shown in the header
  }
}

$("composer").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  const words = $("text").value.trim();
  if (!words && !files.any()) return;
  const turn = editing;
  $("text").value = "";
  typed();
  const [first, ...rest] = menu.asCommand(words).split(/\s+/);
  if (first === "/new" && !files.any()) { begun(); if (rest.length) speak(words.slice(first.length).trim()); return; }
  if (["/model", "/agent"].includes(first) && rest.length === 1) choose(rest[0]);
  if (turn) doing.redo(turn, words);
  else speak(words, true);
});
$("noedit").addEventListener("click", () => { $("text").value = ""; typed(); $("text").focus(); });
$("text").addEventListener("input", typed);
$("text").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
  if (menu.key(event)) return;
  if (event.key === "ArrowUp" && !$("text").value) {
    const last = [...turns.values()].filter((turn) => turn.person.trim() && turn.turn && turn.state === "closed" && !turn.undone && !turn.hidden).sort((a, b) => b.order - a.order)[0];
    if (last) { event.preventDefault(); doing.edit(wordsOf(last), last.turn); }
  }
  if (event.key === "Enter" && !event.shiftKey && !composing(event)) { event.preventDefault(); $("composer").requestSubmit(); }
});
$("model").addEventListener("change", () => note("model", $("model").value || null));
$("temporary").addEventListener("change", () => {
  const [words, model] = [$("text").value, $("model").value];
  if (!temporary(session)) note("draft", null);
  history.replaceState(null, "", `#${$("temporary").checked ? `c-t-${store.fresh().slice(0, 24)}` : newName()}`);
  go(location.hash.slice(1));
  $("text").value = words;
  $("model").value = model;
  note("model", model || null);
  typed();
  announce(say(temporary(session) ? "temporary.words" : "new.title"));
  $("temporary").focus();
});
addEventListener("pagehide", () => { leave(true); });
addEventListener("pageshow", (event) => { if (event.persisted && temporary(session)) begun(); });
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "o") { event.preventDefault(); begun(); }
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "k") { event.preventDefault(); if (narrow.matches) drawer(true); $("search").focus(); }
  const field = event.target instanceof HTMLInputElement ? event.target : null; // Escape in one is meant for what stands in it
  if (event.key !== "Escape" || composing(event) || field?.value || document.querySelector("dialog[open]")) return;
  if (document.body.classList.contains("drawer")) { drawer(false); $("drawer").focus(); }
  else if (editing) $("noedit").click();
  else if (field) $("text").focus();
  else if (!$("stop").hidden) stop();
});
$("stop").addEventListener("click", stop);
$("earlier").addEventListener("click", earlier);
$("jump").addEventListener("click", () => { toEnd(); $("text").focus(); });
$("scroll").addEventListener("scroll", scrolled);
$("turns").addEventListener("click", (/** @type {Event} */ event) => { if (/** @type {Element} */ (event.target).closest("summary, .plain button")) followed = false; }, true);
$("new").addEventListener("click", begun);
$("drawer").addEventListener("click", () => { drawer(!document.body.classList.contains("drawer")); if (document.body.classList.contains("drawer") && !matchMedia("(pointer: coarse)").matches) $("search").focus(); });
$("shade").addEventListener("click", () => drawer(false));
$("settingscancel").addEventListener("click", () => $("settings").close());
for (const name of ["hashchange", "popstate"]) {
  addEventListener(name, () => { const asked = location.hash.slice(1); if (NAME.test(asked) && asked !== session) go(asked); });
}
for (const [words, hint] of [["try.files", "try.files.hint"], ["try.stall", "try.stall.hint"], ["try.help", "try.help.hint"]]) {
  const made = button(say(words), () => speak(say(words)));
  made.append(node("small", "", say(hint)));
  $("tries").append(made);
}
addEventListener("storage", () => render());
const growth = new ResizeObserver(() => { if (followed) toEnd(); });
for (const box of ["scroll", "turns"]) growth.observe($(box));
addEventListener("offline", async () => { if (!(await reachable())) lostSince ||= Date.now(); });
for (const name of ["online", "visibilitychange"]) {
  (name === "online" ? window : document).addEventListener(name, () => { if (lostSince && !document.hidden) { follow(); deliver(); } seen(); });
}
setInterval(() => { showLink(); if (heldUntil() < Infinity) renderSoon(); }, 1000);

const narrow = matchMedia("(max-width: 800px)");
preferring();
if ("serviceWorker" in navigator) navigator.serviceWorker.register("/static/worker.js", { scope: "/" }).catch(() => {});

begin();
