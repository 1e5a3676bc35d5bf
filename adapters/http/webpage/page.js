// The web chat. The server sends whole messages as they are now; this page makes the screen equal to the latest.

import { attaching } from "./attach.js";
import { markdown, plain, words } from "./markdown.js";

const $ = (id) => document.getElementById(id);
const store = {
  get(name, fallback) { try { return JSON.parse(localStorage.getItem(name)) ?? fallback; } catch { return fallback; } },
  set(name, value) { localStorage.setItem(name, JSON.stringify(value)); },
};
const fresh = () => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
const SILENCE_MS = 25_000;
const TRIES = [
  ["list files", "Real tools, in a folder of this conversation."],
  ["rehearse stall in tool call", "Watch a model stall, and what happens then."],
  ["help", "Everything that can be tried."],
];

let session = store.get("outspoken.session", null) ?? fresh();
store.set("outspoken.session", session);
const browser = store.get("outspoken.browser", null) ?? fresh(); // whose memory it is; nobody else knows it
store.set("outspoken.browser", browser);
const files = attaching($("composer"), $("text"), () => renderSoon());
let unsent = store.get("outspoken.unsent", []).filter((m) => m.session === session);
let turns = new Map();
let nodes = new Map();
let connection = null;
let key = sessionStorage.getItem("outspoken.key") ?? localStorage.getItem("outspoken.key") ?? "";
let sending = false;
let failures = 0;
let lostSince = 0;

// ---------------------------------------------------------------- talking to the gateway

async function call(path, options = {}) {
  const headers = { ...(options.body ? { "Content-Type": "application/json" } : {}), ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const response = await fetch(path, { ...options, headers });
  if (response.status === 401) { await askKey(); return call(path, options); }
  return response;
}

let asking = null;
function askKey() {
  asking ??= new Promise((resolve) => {
    $("keywrong").hidden = !key;
    $("keydialog").showModal();
    $("keyform").onsubmit = () => {
      key = $("key").value.trim();
      ($("keep").checked ? localStorage : sessionStorage).setItem("outspoken.key", key);
      asking = null;
      resolve();
    };
  });
  return asking;
}

async function follow() {
  const mine = new AbortController();
  connection?.abort();
  connection = mine;
  let silence = 0;
  const alive = () => { clearTimeout(silence); silence = setTimeout(() => mine.abort("silent"), SILENCE_MS); };
  try {
    alive();
    const response = await call(`/api/sessions/${session}/events`, { signal: mine.signal });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
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
    failures += 1;
    lostSince ||= Date.now();
    showLink();
    const pause = Math.min(15_000, 500 * 2 ** Math.min(failures, 6)) * (0.5 + Math.random() / 2);
    setTimeout(() => { if (connection === mine) follow(); }, pause);
  } finally {
    clearTimeout(silence);
  }
}

function receive(block) {
  failures = 0;
  lostSince = 0;
  showLink();
  const event = /^event: (.*)$/m.exec(block)?.[1];
  const data = /^data: (.*)$/m.exec(block)?.[1];
  if (!data) return;
  const before = turns;
  if (event === "snapshot") turns = new Map();
  for (const turn of JSON.parse(data)) {
    const id = turn.key.split(":").pop();
    const same = before.has(id) && JSON.stringify(before.get(id)) === JSON.stringify(turn);
    turns.set(id, same ? before.get(id) : turn);
  }
  unsent = unsent.filter((m) => !turns.has(m.id));
  keepUnsent();
  renderSoon();
}

function keepUnsent() {
  const others = store.get("outspoken.unsent", []).filter((m) => m.session !== session);
  store.set("outspoken.unsent", [...others, ...unsent]);
}

function say(text) {
  const id = fresh();
  unsent.push({ id, session, text, at: Date.now(), accepted: false, files: files.take(id) });
  keepUnsent();
  render();
  toEnd();
  deliver();
}

async function deliver() {
  if (sending) return;
  sending = true;
  try {
    for (;;) {
      const message = unsent.find((m) => !m.accepted);
      if (!message) return;
      const path = `/api/sessions/${message.session}/messages`;
      const body = { id: message.id, text: message.text, browser };
      const response = message.files?.length
        ? await files.post(path, body, { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) }, message.id)
        : await call(path, { method: "POST", body: JSON.stringify(body) });
      if (response.status === 401) { await askKey(); continue; }
      if (response.ok) {
        message.accepted = true;
      } else if (response.status < 500) {
        const problem = await response.json().catch(() => ({}));
        message.refused = problem.error?.message ?? `The gateway answered with HTTP ${response.status}.`;
        message.accepted = true;
      } else {
        throw new Error(`HTTP ${response.status}`);
      }
      files.forget(message.id);
      keepUnsent();
      render();
    }
  } catch {
    setTimeout(() => { sending = false; deliver(); }, 2000);
    return;
  } finally {
    sending = false;
  }
}

async function stop() {
  $("stop").disabled = true;
  try { await call(`/api/sessions/${session}/stop`, { method: "POST" }); } finally { $("stop").disabled = false; }
}

// ---------------------------------------------------------------- showing

const node = (name, className, ...children) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children.filter((child) => child !== null));
  return made;
};

const text = (said) => (said.length > 4000 ? [plain(said)] : words(said));

function button(label, action) {
  const made = node("button", "", label);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}

function showLink() {
  const lost = failures > 1 || (lostSince && Date.now() - lostSince > 1500);
  $("link").textContent = lost ? `Connection lost ${Math.max(1, Math.round((Date.now() - lostSince) / 1000))} s ago; reconnecting …` : "";
  $("link").classList.toggle("lost", Boolean(lost));
}

function atEnd() {
  const box = $("scroll");
  return box.scrollHeight - box.scrollTop - box.clientHeight < 80;
}

function toEnd() {
  $("scroll").scrollTop = $("scroll").scrollHeight;
  $("jump").hidden = true;
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

function render() {
  const began = performance.now();
  const follows = following || atEnd();
  const ordered = [...turns.entries()].sort(([, a], [, b]) => a.order - b.order);
  const all = [...ordered.map(([id, turn]) => [id, turn, () => turnNode(turn)]), ...unsent.map((m) => [m.id, JSON.stringify(m) + files.progress(m.id), () => unsentNode(m)])];
  const wanted = new Set(all.map(([id]) => id));
  for (const [id, entry] of nodes) if (!wanted.has(id)) { entry.node.remove(); nodes.delete(id); }
  const rest = all.findIndex(([id, state, make]) => performance.now() - began > FRAME_MS || (place(id, state, make), false));
  following = follows && rest >= 0;
  if (rest >= 0) renderSoon();
  const running = ordered.some(([, turn]) => turn.state !== "closed");
  $("welcome").hidden = wanted.size > 0;
  $("stop").hidden = !running;
  $("send").hidden = running && !$("text").value.trim() && !files.any();
  if (follows) toEnd(); else $("jump").hidden = false;
  notBefore = performance.now() + REST * (performance.now() - began);
}

function place(id, state, make) {
  const entry = nodes.get(id);
  if (entry?.state === state) return;
  const made = make();
  if (entry) entry.node.replaceWith(made); else $("turns").append(made);
  nodes.set(id, { node: made, state });
}

function unsentNode(message) {
  const words = message.refused ?? (message.accepted ? "Accepted" : `Sending … ${files.progress(message.id)}`);
  const hint = node("div", "hint", words);
  if (message.refused) hint.append(" ", button("Remove", () => { unsent = unsent.filter((m) => m !== message); keepUnsent(); render(); }));
  return node("li", "turn unsent", node("div", "person", ...text([message.text, ...(message.files ?? []).map((name) => `📎 ${name}`)].filter(Boolean).join("\n"))), hint);
}

// A bubble that is as it was need not be made again while others of its turn grow.
const made = new Map();
function shownText(bubble, turn) {
  const name = [turn.key, bubble.key, bubble.kind, bubble.text].join("\n");
  const shown = made.get(name) ?? node("div", `bubble ${bubble.kind}`, markdown(bubble.text));
  made.delete(name);
  if (bubble.final) made.set(name, shown);
  if (made.size > 100) made.delete(made.keys().next().value);
  return shown;
}

function turnNode(turn) {
  const item = node("li", "turn", node("div", "person", ...text(turn.person)));
  if (turn.state === "queued") item.append(node("div", "hint", `Waiting, place ${turn.position} in the queue`));
  let steps = [];
  const flush = () => {
    if (!steps.length) return;
    item.append(stepsNode(steps, turn.state === "closed"));
    steps = [];
  };
  for (const bubble of turn.bubbles) {
    if (bubble.kind === "activity") { steps.push(bubble); continue; }
    flush();
    if (bubble.kind === "status") item.append(node("div", "status", bubble.text));
    else if (bubble.kind === "mended") item.append(node("div", "mended", `✓ ${bubble.text}`));
    else if (bubble.kind === "notice" || bubble.kind === "note") item.append(noticeNode(bubble, turn));
    else if (bubble.kind === "approval") item.append(approvalNode(bubble, turn));
    else item.append(shownText(bubble, turn));
  }
  flush();
  if (turn.state === "open" && !turn.bubbles.some((b) => ["status", "approval"].includes(b.kind))) item.append(node("div", "status", "Working …"));
  if (turn.summary) item.append(node("div", "figures", figures(turn.summary)));
  return item;
}

const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const figures = (s) => `${s.seconds.toFixed(1)} s · ${plural(s.steps, "step")} · ${plural(s.tool_calls, "tool call")}`;
const MARKS = { waiting: "·", approval: "?", running: "●", done: "✓", failed: "✕", not_run: "–", unsure: "?" };
const WORDS = { waiting: "waiting", approval: "waiting for approval", running: "running", done: "done", failed: "failed", not_run: "not run", unsure: "may or may not have run" };

function stepsNode(bubbles, closed) {
  const rows = bubbles.map((b) => {
    const mark = node("span", "mark", MARKS[b.state] ?? "·");
    mark.title = WORDS[b.state] ?? b.state;
    const time = b.state === "running" ? `${b.seconds} s` : b.state === "done" ? "" : WORDS[b.state];
    return node("div", `activity ${b.state}`, mark, node("strong", "", b.tool), node("span", "args", b.text.slice(b.tool.length)), node("span", "time", time));
  });
  if (!closed) return node("div", "steps open", ...rows);
  const box = node("details", "steps", node("summary", "", `${plural(bubbles.length, "tool call")}: ${[...new Set(bubbles.map((b) => b.tool))].join(", ")}`), ...rows);
  box.open = bubbles.some((b) => b.state !== "done");
  return box;
}

function noticeNode(bubble, turn) {
  const box = node("div", "notice", node("div", "who", "outspoken"), node("p", "", ...text(bubble.text)));
  const buttons = node("div", "buttons");
  if (bubble.actions.includes("continue")) buttons.append(button("Continue", () => say("continue")));
  if (bubble.actions.includes("retry")) buttons.append(button("Retry", () => say(turn.person)));
  if (bubble.actions.includes("why")) {
    const why = button("Why?", async () => {
      why.disabled = true;
      const { lines } = await (await call(`/api/turns/${turn.turn}/why`)).json();
      box.append(node("ul", "why", ...lines.map((line) => node("li", "", line))));
    });
    buttons.append(why);
  }
  box.append(buttons);
  return box;
}

function approvalNode(bubble, turn) {
  const answer = (approve) => call(`/api/sessions/${session}/approvals`, { method: "POST", body: JSON.stringify({ turn: turn.turn, call: bubble.call, approve }) });
  const all = bubble.whole ? node("details", "", node("summary", "", "Show all of it"), node("pre", "", plain(bubble.whole))) : null;
  return node("div", "approval", node("p", "asked", bubble.text), all, node("div", "buttons", button("Approve", () => answer(true)), button("Deny", () => answer(false))));
}

// ---------------------------------------------------------------- the person

function grow() {
  const box = $("text");
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
  const running = !$("stop").hidden;
  $("send").hidden = running && !box.value.trim();
}

$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("text").value.trim();
  if (!text && !files.any()) return;
  $("text").value = "";
  store.set("outspoken.draft", "");
  grow();
  say(text);
});
$("text").addEventListener("input", () => { grow(); store.set("outspoken.draft", $("text").value); });
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); $("composer").requestSubmit(); }
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !$("stop").hidden && !$("keydialog").open) stop(); });
$("stop").addEventListener("click", stop);
$("jump").addEventListener("click", toEnd);
$("scroll").addEventListener("scroll", () => { if (atEnd()) $("jump").hidden = true; });
$("new").addEventListener("click", () => {
  session = fresh();
  store.set("outspoken.session", session);
  turns = new Map();
  unsent = [];
  render();
  follow();
  $("text").focus();
});
for (const [words, hint] of TRIES) $("tries").append(button(words, () => say(words)));
[...$("tries").children].forEach((made, index) => made.append(node("small", "", TRIES[index][1])));
for (const name of ["online", "visibilitychange"]) {
  (name === "online" ? window : document).addEventListener(name, () => { if (lostSince && !document.hidden) { follow(); deliver(); } });
}
setInterval(showLink, 1000);

async function begin() {
  $("text").value = store.get("outspoken.draft", "");
  grow();
  render();
  follow();
  deliver();
  try {
    const about = await (await call("/api/about")).json();
    $("banner").textContent = about.notice;
    $("banner").hidden = !about.notice;
    files.limit(about.file_bytes);
  } catch { /* the connection's own state is shown in the header */ }
  $("text").focus();
}
begin();
