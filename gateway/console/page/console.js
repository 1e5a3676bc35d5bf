// The operators' console. The server sends whole sections as they are now; this page makes the screen equal to the latest.

import { CLASSES, bars, byClass, chart, lines } from "./chart.js";

const $ = (id) => document.getElementById(id);
const SILENCE_MS = 20_000;
const VIEWS = [
  { id: "turns", key: "t", name: "Turns" },
  { id: "sessions", key: "s", name: "Sessions" },
  { id: "incidents", key: "i", name: "Incidents" },
  { id: "outbox", key: "o", name: "Outbox" },
  { id: "adapters", key: "a", name: "Adapters" },
  { id: "spend", key: "p", name: "Spend" },
  { id: "exits", key: "e", name: "Exits" },
  { id: "audit", key: "u", name: "Audit" },
];
const KEYS = [
  ["1 … 8", "A view; also g and its first letter (p: spend, u: audit)"],
  ["j  k", "The next, the one before (arrows too)"],
  ["Enter", "Open what is selected"],
  ["Esc", "Back"],
  ["/", "Filter the list; then what became of an id, or a search in the texts"],
  ["r  d  m", "Outbox: retry, drop, send elsewhere (with a preview first)"],
  ["?", "These keys"],
];
const ACTS = {
  retry: { key: "r", name: "Retry", title: "Try it again at once?", go: "Retry now" },
  drop: { key: "d", name: "Drop", title: "Drop it?", go: "Drop it" },
  redirect: { key: "m", name: "Redirect", title: "Send it to another chat", go: "Send it there" },
};

const state = { sections: {}, view: "turns", open: null, selected: {}, filter: "", offset: 0, ready: false };
let key = sessionStorage.getItem("outspoken.key") ?? "";
let rows = [];
let failures = 0, lostSince = 0, trouble = "";

// ---------------------------------------------------------------- talking to the gateway

async function call(path, options = {}) {
  const headers = { ...(options.body ? { "Content-Type": "application/json" } : {}), ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const response = await fetch(path, { ...options, headers, cache: "no-store" });
  if (response.status === 401 || response.status === 403) {
    const problem = await response.json().catch(() => ({}));
    if (response.status === 403) throw new Refused(problem.error?.message ?? "The gateway refused it.");
    await askKey();
    return call(path, options);
  }
  return response;
}

class Refused extends Error {}

let asking = null;
function askKey() {
  asking ??= new Promise((resolve) => {
    $("keywrong").hidden = !key;
    $("keywrong").textContent = "This key was not accepted.";
    $("keydialog").showModal();
    $("keyform").onsubmit = () => {
      key = $("key").value.trim();
      sessionStorage.setItem("outspoken.key", key);
      asking = null;
      resolve();
    };
  });
  return asking;
}

async function ask(path, body) {
  const response = await call(path, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(answer.error?.message ?? `The gateway answered with HTTP ${response.status}.`);
  return answer;
}

const UNSEEN_MS = 3000; // a browser opens six connections to one server, for all of its tabs together: what nobody sees keeps none for longer

/** Follow a stream until `stop` is called; it is opened anew when it ends, and when the console is seen again. */
function follow(path, receive, problem) {
  let current = null, stopped = false, failed = 0, resting = 0;
  const run = async () => {
    const mine = new AbortController();
    current = mine;
    let silence = 0;
    const alive = () => { clearTimeout(silence); silence = setTimeout(() => mine.abort("silent"), SILENCE_MS); };
    try {
      alive();
      const response = await call(path, { signal: mine.signal });
      if (!response.ok) {
        const told = await response.json().catch(() => ({}));
        throw new Refused(told.error?.message ?? `The gateway answered with HTTP ${response.status}.`);
      }
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let buffer = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) throw new Error("the stream ended");
        alive();
        buffer += value;
        let end;
        while ((end = buffer.indexOf("\n\n")) >= 0) {
          const block = buffer.slice(0, end);
          buffer = buffer.slice(end + 2);
          const told = (what) => block.split("\n").find((line) => line.startsWith(what))?.slice(what.length); // a name may have other ends of lines in it
          const name = told("event: "), data = told("data: ");
          if (data && !stopped) { failed = 0; receive(name, JSON.parse(data)); }
        }
      }
    } catch (error) {
      if (stopped || current !== mine) return;
      failed += 1;
      problem(error, failed);
      const pause = Math.min(10_000, 400 * 2 ** Math.min(failed, 5)) * (0.5 + Math.random() / 2);
      setTimeout(() => { if (!stopped && current === mine) run(); }, pause);
    } finally {
      clearTimeout(silence);
    }
  };
  const rest = () => { const mine = current; current = null; mine?.abort(); };
  const seen = () => {
    clearTimeout(resting);
    if (document.hidden) resting = setTimeout(rest, UNSEEN_MS);
    else if (!current) run();
  };
  document.addEventListener("visibilitychange", seen);
  run();
  seen();
  return { stop() { stopped = true; clearTimeout(resting); document.removeEventListener("visibilitychange", seen); rest(); } };
}

// ---------------------------------------------------------------- small things

function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "onclick") made.addEventListener("click", value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const now = () => Date.now() + state.offset;
const plural = (n, word, many = `${word}s`) => `${n.toLocaleString("en")} ${n === 1 ? word : many}`;
const words = (code) => code.replaceAll("_", " ");

function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172_800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} days`;
}
/** An age that goes on by itself. */
function age(at, after = " ago", none = "never") {
  if (at === null || at === undefined) return none;
  const made = el("time", { datetime: new Date(at).toISOString(), title: new Date(at).toLocaleString() }, `${span(now() - at)}${after}`);
  made.dataset.at = at;
  made.dataset.after = after;
  return made;
}
setInterval(() => {
  for (const made of document.querySelectorAll("time[data-at]")) {
    const next = `${span(now() - Number(made.dataset.at))}${made.dataset.after}`;
    if (made.textContent !== next) made.textContent = next;
  }
  showLink();
}, 1000);

const minute = (at) => new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
const moment = (at) => new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
const dot = (kind, pulses = false) => el("span", { class: `dot k-${kind}${pulses ? " pulse" : ""}`, "aria-hidden": "true" });
const chip = (kind, text) => el("span", { class: `chip k-${kind}` }, text);
const facts = (...pairs) => el("dl", { class: "facts" }, ...pairs.filter(([, value]) => value !== "" && value !== null).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
const story = (lines) => el("ol", { class: "story" }, ...lines.map((line) => el("li", {}, line)));

let toastTimer = 0;
function toast(text) {
  $("toast").textContent = text;
  $("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").hidden = true; }, 6000);
}

function showLink() {
  const lost = failures > 1 || (lostSince && Date.now() - lostSince > 1500);
  const text = trouble || (lost ? `Connection lost ${Math.max(1, Math.round((Date.now() - lostSince) / 1000))} s ago; reconnecting …` : state.ready ? "live" : "connecting …");
  if ($("link").textContent !== text) $("link").textContent = text;
  $("link").className = trouble || lost ? "lost" : state.ready ? "live" : "";
}

// ---------------------------------------------------------------- lists: (what is listed) → rows, each with an id, a node, and what it opens

const item = (id, look, find, opens = null) => ({ id, state: JSON.stringify(look), look, find: find.toLowerCase(), opens });

const SHOWN = {
  turns() {
    const { running, ended } = state.sections.turns;
    const row = (t) => item(t.id, t, `${t.name} ${t.place} ${t.id} ${t.session} ${words(t.exit)} ${t.doing}`, { kind: "turn", id: t.id });
    return [{ name: "Running now", rows: running.map(row), none: "No turn runs just now." }, { name: "Latest", rows: ended.map(row), none: "No turn has ended yet." }];
  },
  sessions() {
    const row = (s) => item(s.id, s, `${s.name} ${s.place} ${s.id} ${words(s.exit)}`, { kind: "session", id: s.id });
    return [{ rows: state.sections.sessions.list.map(row), none: "Nobody has said anything yet." }];
  },
  incidents() {
    const row = (i) => item(i.id, i, `${i.words} ${i.id}`, { kind: "incident", id: i.id });
    const all = state.sections.incidents;
    return [
      { name: "Open", rows: all.filter((i) => i.state === "open").map(row), none: "No incident is open." },
      { name: "Over", rows: all.filter((i) => i.state !== "open").map(row) },
    ];
  },
  outbox() {
    const row = (p) => item(p.id, p, `${p.called} ${p.id} ${p.why} ${p.what}`, { kind: "part", id: p.id });
    const { waiting, failed } = state.sections.outbox;
    return [{ name: "Waits", rows: waiting.map(row), none: "Nothing waits." }, { name: "Refused for good", rows: failed.map(row) }];
  },
  adapters() {
    const gateways = (state.sections.nodes ?? []).map((n) => item(`gateway ${n.node}`, n, `gateway ${n.node} ${n.address} ${n.machine ?? ""} ${n.has.join(" ")} ${(n.problems ?? []).join(" ")}`));
    return [...(gateways.length ? [{ name: "Gateways", rows: gateways }] : []), { name: gateways.length ? "Platforms" : undefined, rows: state.sections.adapters.map((a) => item(a.id, a, `${a.id} ${a.state} ${a.words}`)), none: "No chat platform is configured. The web page and the API need none." },
      ...(state.sections.servers.length ? [{ name: "Servers of tools", rows: state.sections.servers.map((m) => item(m.id, m, `${m.id} ${m.state} ${m.words} ${m.tools.join(" ")}`)) }] : [])];
  },
  spend() {
    const s = state.sections.spend;
    return [{ rows: s.list.map((b) => item(b.id, b, `${b.name} ${b.owner}`)), none: "Nothing is counted: no limits and no prices are set in [budgets]." }];
  },
  exits() { return []; },
  audit() {
    const row = (a) => item(a.id, a, `${a.words} ${a.who} ${a.act} ${a.object}`, { kind: "entry", id: a.id });
    return [{ rows: state.sections.audit.map(row), none: "Nothing was done by hand yet." }];
  },
};

const ROWS = {
  turns: (t) => t.exit
    ? [dot(t.class), head(t.name), side(age(t.closed_at)), sub(chip(t.class, words(t.exit)), ` after ${((t.closed_at - t.opened_at) / 1000).toFixed(1)} s`, t.undone ? ", taken back" : "", tokens(t.tokens))]
    : [dot("running", true), head(t.name), side(age(t.opened_at, "")), sub(t.doing)],
  sessions: (s) => [
    dot(s.running ? "running" : s.class, Boolean(s.running)), head(s.name), side(s.last_at ? age(s.last_at) : ""),
    sub(s.running ? "a turn runs" : s.exit ? words(s.exit) : "no turn yet", s.turns ? ` · ${plural(s.turns, "turn")}` : "", s.waiting ? ` · ${plural(s.waiting, "message")} waiting, the first since ` : "", s.waiting ? age(s.waiting_since, "") : "", s.quarantined ? " · set aside after repeated failures" : ""),
  ],
  incidents: (i) => [dot(i.state === "open" ? i.class : "stopped", i.state === "open"), head(i.what), side(age(i.last_at)), sub(`${i.where} · ${plural(i.conversations, "conversation")}, ${plural(i.turns, "turn")}`)],
  outbox: (p) => [dot(p.state === "failed" ? "ours" : "limit", p.state !== "failed"), head(p.called), side(p.at ? age(p.at) : ""), sub(p.why), sub(p.what)],
  adapters: (a) => a.node ? gateway(a) : a.tools ? [
    dot(a.state === "down" ? "ours" : "clean", a.state === "starting"), head(a.about ? `${a.id} (${a.about})` : a.id), side(chip(a.state === "down" ? "ours" : "clean", a.state)),
    sub(`${plural(a.tools.length, "tool")} · ${plural(a.calls, "call")} · begun again ${plural(a.restarts, "time")}`), a.words ? sub(a.words) : "", a.last ? sub(a.last) : "", a.tools.length ? sub(a.tools.join(", ")) : "",
  ] : [
    dot(kindOf(a), !sound(a)), head(a.id), side(chip(kindOf(a), a.state)),
    sub("last in: ", age(a.inbound_at), " · last out: ", age(a.outbound_at)), a.words ? sub(a.words) : "",
  ],
  spend: (b) => [dot(b.measures.some((m) => m.share >= 1) ? "ours" : b.measures.some((m) => m.share >= 0.8) ? "limit" : "clean"), head(b.owner ? `${b.name}: ${b.owner}` : b.name), side(b.until ? `anew ${minute(b.until)}` : ""), el("div", { class: "meterbox" }, ...b.measures.map(measured), b.estimated ? el("span", { class: "soft" }, `${b.estimated} of it estimated`) : "")],
  audit: (a) => [dot(a.act === "drop" ? "limit" : ["show text", "show title", "search"].includes(a.act) ? "stopped" : "clean"), head(a.words), side(age(a.at)), sub(a.who)],
};

const SILENT_SECONDS = 2.5; // a gateway's pulse beats each second
const sound = (a) => a.state === "up" || a.state === "elsewhere";
const kindOf = (a) => (sound(a) ? "clean" : a.state === "needs a person" ? "ours" : "limit");

function gateway(n) {
  const silent = n.silent_seconds > SILENT_SECONDS;
  const [kind, says] = silent ? ["ours", `silent for ${Math.round(n.silent_seconds)} s`] : n.leaves ? ["limit", "ends"] : n.ready === false ? ["ours", "not ready"] : ["clean", "up"];
  const states = Object.fromEntries((n.adapters ?? []).map((a) => [a.name, a.state]));
  const held = n.has.map((name) => (name === "house" ? "the house" : name.replace(/^account\//, ""))).map((name) => (states[name.split("#")[0]] ? `${name} (${states[name.split("#")[0]]})` : name));
  return [
    dot(kind, kind !== "clean"), head(`Gateway ${n.node}${n.here ? ", this one" : ""}`), side(chip(kind, says)),
    sub(`${n.address}${n.machine ? ` on ${n.machine}` : ""} · ${n.version} · up for `, age(n.started_at, "")),
    sub([`${n.chats} of 64 slices of chats`, ...held].join(", "), ` · ${plural(n.running_turns, "running turn")}`, n.waiting_messages ? ` · ${plural(n.waiting_messages, "message")} waiting` : ""),
    ...(n.problems ?? []).map((problem) => sub(problem)), ...(n.model_answers === false ? [sub("The model does not answer there.")] : []),
  ];
}

const head = (text) => el("span", { class: "head" }, text);
const side = (...children) => el("span", { class: "side" }, ...children);
const sub = (...children) => el("span", { class: "sub" }, ...children);
const tokens = ([into, out]) => (into || out ? ` · ${into.toLocaleString("en")} tokens in, ${out.toLocaleString("en")} out` : "");

function measured(m) {
  const text = m.limit ? `${m.used} of ${m.limit} used, ${m.left} left` : `${m.used} used, no limit`;
  const box = el("div", {}, el("span", {}, text, m.held ? el("span", { class: "soft" }, ` (${m.held} held for calls under way)`) : ""));
  if (m.share === null) return box;
  const fill = el("i");
  fill.style.width = `${Math.max(m.share * 100, m.share > 0 ? 1 : 0)}%`;
  box.append(el("div", { class: `meter${m.share >= 1 ? " full" : m.share >= 0.8 ? " near" : ""}`, role: "meter", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(m.share * 100), "aria-label": text }, fill));
  return box;
}

// ---------------------------------------------------------------- the list on the screen

let shownView = null;
let shownNodes = new Map();
let shownExits = "";

function render() {
  if (!state.ready) return;
  badges();
  const groups = SHOWN[state.view]();
  const wanted = state.filter.toLowerCase();
  for (const group of groups) group.rows = group.rows.filter((row) => row.find.includes(wanted));
  rows = groups.flatMap((group) => group.rows);
  $("count").textContent = counted();
  $("filter").hidden = state.view === "exits";
  beyond();
  if (shownView !== state.view) { $("view").replaceChildren(); shownNodes = new Map(); shownExits = ""; shownView = state.view; }
  if (state.view === "exits") { renderExits(); return; }
  if (!rows.some((row) => row.id === state.selected[state.view])) state.selected[state.view] = rows[0]?.id ?? null;
  renderGroups(groups, wanted);
  select(state.selected[state.view], false);
  if (state.open?.kind === "part") renderPart();
}

function renderGroups(groups, wanted) {
  const view = $("view");
  let list = view.querySelector("ul.list");
  if (!list) {
    list = el("ul", { class: "list", role: "listbox", tabindex: "0", id: "list" });
    view.append(list, el("div", { id: "nothing", class: "empty", hidden: true }));
  }
  list.setAttribute("aria-label", VIEWS.find((v) => v.id === state.view).name);
  list.setAttribute("role", groups.some((group) => group.rows.length) ? "listbox" : "group"); // a box to choose from has something in it
  const nodes = [];
  const kept = new Map();
  for (const group of groups) {
    if (group.name && (group.rows.length || group.none)) nodes.push(kept.get(`#${group.name}`) ?? groupHead(group, wanted));
    for (const row of group.rows) {
      const before = shownNodes.get(row.id);
      const node = before?.state === row.state ? before.node : rowNode(row);
      kept.set(row.id, { state: row.state, node });
      nodes.push(node);
    }
  }
  shownNodes = kept;
  if (nodes.length !== list.children.length || nodes.some((node, i) => list.children[i] !== node)) list.replaceChildren(...nodes);
  const plain = groups.length === 1 && !rows.length;
  $("nothing").hidden = !plain;
  $("nothing").textContent = plain ? (wanted ? "Nothing fits this filter." : groups[0].none) : "";
}

function groupHead(group, wanted) {
  const text = group.rows.length ? group.name : wanted ? `${group.name}: nothing fits this filter` : `${group.name}: ${group.none}`;
  return el("li", { class: "row-item still", role: "presentation" }, el("span"), el("span", { class: "soft small" }, text));
}

function rowNode(row) {
  const made = el("li", { class: `row-item${row.opens ? "" : " still"}`, role: "option", id: `row-${row.id}`, "aria-selected": "false", onclick: () => { select(row.id); if (row.opens) openIt(row.opens); } }, ...ROWS[state.view](row.look));
  made.dataset.id = row.id;
  return made;
}

function select(id, visible = true) {
  state.selected[state.view] = id;
  const list = $("list");
  if (!list) return;
  for (const node of list.querySelectorAll("[role=option]")) node.setAttribute("aria-selected", String(node.dataset.id === id));
  if (id) list.setAttribute("aria-activedescendant", `row-${id}`); else list.removeAttribute("aria-activedescendant");
  if (id && visible) document.getElementById(`row-${id}`)?.scrollIntoView({ block: "nearest" });
}

function counted() {
  const { sections: s, view } = state;
  switch (view) {
    case "turns": return `${plural(s.turns.running.length + s.turns.more_running, "turn")} running`;
    case "sessions": return `${plural(s.sessions.list.length + s.sessions.more, "conversation")} of the latest turns`;
    case "incidents": return `${s.incidents.filter((i) => i.state === "open").length} open`;
    case "outbox": return `${plural(s.outbox.waiting.length + s.outbox.more_waiting, "part")} waiting, ${s.outbox.failed.length + s.outbox.more_failed} refused`;
    case "adapters": return `${plural(s.adapters.length, "adapter")}${s.servers.length ? `, ${plural(s.servers.length, "server")} of tools` : ""}`;
    case "spend": return `Today (${s.spend.zone}): ${plural(s.spend.turns, "turn")}${tokens(s.spend.tokens)}`;
    case "exits": return `How turns went, by day (${s.exits.zone})`;
    default: return "What was done by hand; kept for 400 days";
  }
}

function badges() {
  const { sections: s } = state;
  const set = (id, count, kind) => {
    const badge = $(`badge-${id}`);
    badge.hidden = !count;
    badge.textContent = count;
    badge.className = `badge ${kind}`;
  };
  set("turns", s.turns.running.length + s.turns.more_running, "go");
  set("sessions", s.sessions.list.filter((one) => one.waiting).length, "");
  set("incidents", s.incidents.filter((i) => i.state === "open").length, "alarm");
  set("outbox", s.outbox.waiting.length + s.outbox.more_waiting + s.outbox.failed.length + s.outbox.more_failed, s.outbox.failed.length ? "alarm" : "");
  set("adapters", s.adapters.filter((a) => !sound(a)).length + (s.nodes ?? []).filter((n) => !n.here && (n.ready === false || n.silent_seconds > SILENT_SECONDS)).length + s.servers.filter((m) => m.state === "down").length, "alarm");
}

function renderExits() {
  const { exits, trends } = state.sections, width = Math.max(280, $("view").clientWidth - 32), as = `${width} ${JSON.stringify([exits, trends])}`;
  if (as === shownExits) return;
  shownExits = as;
  const { days, classes } = byClass(exits);
  const legend = el("div", { class: "legend" }, ...classes.map((name) => el("span", {}, dot(name), CLASSES[name])));
  const cell = (count) => el("td", { class: count ? null : "zero" }, String(count ?? 0));
  const table = el("table", {},
    el("caption", {}, `Turns that ended, by day and kind. Days begin at midnight ${exits.zone}.`),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Day"), el("th", { scope: "col" }, "Turns"), ...classes.map((name) => el("th", { scope: "col" }, CLASSES[name])))),
    el("tbody", {}, ...[...days].reverse().map((d) => el("tr", {}, el("th", { scope: "row" }, d.day), cell(d.total), ...classes.map((name) => cell(d.found[name]))))));
  const exact = el("table", {}, el("caption", {}, `By exit, over all ${days.length} days.`), el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Exit"), el("th", { scope: "col" }, "Turns"))),
    el("tbody", {}, ...exits.exits.map((e) => el("tr", {}, el("th", { scope: "row" }, chip(e.class, words(e.exit) || "unknown")), cell(e.count)))));
  $("view").replaceChildren(el("div", { class: "chartbox" }, chart(exits, width), legend), el("h2", { class: "part" }, "The same in figures"), el("div", { class: "tablebox", tabindex: "0", role: "region", "aria-label": "Exits by day" }, table), el("h2", { class: "part" }, "Exits"), el("div", { class: "tablebox" }, exact), ...trended(trends, width));
}

const LATENCY = [["half within", "clean", "half"], ["19 of 20 within", "limit", "most"]];
const SPENT = [["person", "By person"], ["model", "By model"], ["key", "By key of the API"]];

/** A column's name; what has none, such as a bar, has no head. */
const columnHead = (text) => (text ? el("th", { scope: "col" }, text) : el("td"));

/** How long turns took, how often calls failed, and who used what. */
function trended({ days, spent }, width) {
  const kinds = ["provider", "limit", "loop", "ours", "refused", "stopped", "handed", "not_started"];
  const causes = [...new Set(days.flatMap((d) => Object.keys(d.broke)))].sort((a, b) => (b === "stalled") - (a === "stalled") || a.localeCompare(b));
  const kindOf = Object.fromEntries(causes.map((cause, index) => [cause, kinds[index % kinds.length]]));
  const counted = days.map(({ day, broke }) => ({ day, total: Object.values(broke).reduce((a, b) => a + b, 0), found: broke }));
  const called = Object.fromEntries(causes.map((cause) => [cause, words(cause)]));
  const cells = (row) => row.map((one) => el("td", { class: one ? null : "zero" }, one === null ? "–" : String(one)));
  const table = (caption, heads, body) => el("div", { class: "tablebox", tabindex: "0", role: "region", "aria-label": caption }, el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads.map(columnHead))), el("tbody", {}, ...body.map(([first, ...rest]) => el("tr", {}, el("th", { scope: "row" }, first), ...cells(rest))))));
  const newest = [...days].reverse();
  return [
    el("h2", { class: "part" }, "How long turns took"), el("div", { class: "chartbox" }, lines(days.map((d) => d.day), LATENCY.map(([name, kind, field]) => [name, kind, days.map((d) => d[field])]), width, "Seconds that turns took, by day"), el("div", { class: "legend" }, ...LATENCY.map(([name, kind]) => el("span", {}, dot(kind), `${name} so many seconds`)))),
    table("Seconds from a question to the end of its turn, about", ["Day", ...LATENCY.map(([name]) => name)], newest.map((d) => [d.day, d.half, d.most])),
    el("h2", { class: "part" }, "Stalls and other failures of model calls"), el("div", { class: "chartbox" }, bars(counted, causes, called, width, "Failures of model calls by day", "failures", kindOf), el("div", { class: "legend" }, ...causes.map((cause) => el("span", {}, dot(kindOf[cause]), words(cause))))),
    table("Model calls that failed, by day and cause; most were recovered", ["Day", ...causes.map(words)], newest.map((d) => [d.day, ...causes.map((cause) => d.broke[cause] ?? 0)])),
    el("h2", { class: "part" }, `What was used in these ${days.length} days`),
    ...SPENT.map(([kind, caption]) => spentTable(caption, spent[kind])),
  ];
}

function spentTable(caption, found) {
  const most = Math.max(1, ...found.map((one) => one.tokens));
  const meter = (one) => { const fill = el("i"); fill.style.width = `${(100 * one.tokens) / most}%`; return el("div", { class: "meter", "aria-hidden": "true" }, fill); };
  return el("div", { class: "tablebox" }, el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...["Who", "Tokens", "Turns", ""].map(columnHead))), el("tbody", {}, ...found.map((one) => el("tr", {}, el("th", { scope: "row" }, one.name), el("td", {}, one.tokens.toLocaleString("en")), el("td", {}, one.turns.toLocaleString("en")), el("td", { class: "wide" }, meter(one)))))));
}

// ---------------------------------------------------------------- what is open

let turnStream = null;
let turnSight = null;

function openIt(what, push = true) {
  closeStream();
  state.open = what;
  $("frame").classList.add("open");
  $("detail").hidden = false;
  $("detail").replaceChildren(top("…"));
  if (push) location.hash = `${state.view}/${what.kind}/${encodeURIComponent(what.id)}`;
  if (what.kind === "turn") followTurn(what.id);
  else if (what.kind === "part") renderPart();
  else if (what.kind === "entry") renderEntry(what.id);
  else if (what.kind === "search") search(what.id);
  else explain(what);
  $("detail").scrollTop = 0;
  $("detail").focus({ preventScroll: true });
}

function closeStream() {
  turnStream?.stop();
  turnStream = null;
  turnSight = null;
}

function back(push = true) {
  closeStream();
  const was = state.open;
  state.open = null;
  $("frame").classList.remove("open");
  $("detail").hidden = true;
  if (push) location.hash = state.view;
  if (was) $("list")?.focus({ preventScroll: true });
}

function top(title, ...more) {
  return el("div", { class: "top" }, el("button", { type: "button", class: "quiet small back", onclick: () => back() }, "← Back"), el("h2", {}, title), ...more, el("button", { type: "button", class: "quiet small close", onclick: () => back() }, "Close ", el("kbd", {}, "Esc")));
}

function followTurn(id) {
  turnStream = follow(`/console/api/turns/${encodeURIComponent(id)}/live`, (name, data) => {
    if (name === "turn" && state.open?.id === id) renderTurn(data);
  }, (error) => { if (error instanceof Refused && state.open?.id === id) $("detail").replaceChildren(top(id), el("p", { class: "wrong" }, error.message)); });
}

function renderTurn(turn) {
  const box = $("detail");
  const atEnd = turnSight !== null && box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  const kept = turnSight?.id === turn.id ? document.getElementById("timeline") : null;
  const line = (one) => el("li", {}, el("span", { class: "at" }, `+${((one.at - turn.opened_at) / 1000).toFixed(1)} s`), el("span", {}, one.event), ...one.decisions.map((d) => el("span", { class: "then" }, `→ ${d}`)));
  const list = kept ?? el("ol", { class: "timeline", id: "timeline", "aria-label": "Timeline" });
  const before = kept ? turnSight.timeline : [];
  let same = 0;
  while (same < before.length && same < turn.timeline.length && JSON.stringify(before[same]) === JSON.stringify(turn.timeline[same])) same += 1;
  while (list.children.length > same) list.lastChild.remove();
  list.append(...turn.timeline.slice(same).map(line));
  turnSight = turn;
  const running = !turn.exit, focused = [...box.querySelectorAll("button")].indexOf(document.activeElement);
  box.replaceChildren(
    top(turn.name || turn.place || turn.id, running ? chip("running", "running") : chip(turn.class, words(turn.exit))),
    facts(["Turn", el("code", {}, turn.id)], ["Began", moment(turn.opened_at)], ["Took", running ? age(turn.opened_at, "") : `${((turn.closed_at - turn.opened_at) / 1000).toFixed(1)} s`], ["Session", el("button", { type: "button", class: "quiet small", onclick: () => openIt({ kind: "session", id: turn.session }) }, turn.session)], ["Place", el("code", {}, turn.place)]),
    running ? el("div", { class: "now", role: "status" }, el("span", { class: "dot pulse" }), `Now: ${turn.doing || "it runs"}`) : "",
    el("h3", {}, "Why"), story(turn.story),
    el("h3", {}, `Timeline, ${plural(turn.rows, "row")} of the journal${turn.left_out ? `; ${plural(turn.left_out, "earlier line")} left out` : ""}`), list);
  if (atEnd && running) box.scrollTop = box.scrollHeight;
  box.querySelectorAll("button")[focused]?.focus({ preventScroll: true });
}

async function explain({ kind, id }) {
  const mine = () => state.open?.id === id;
  try {
    const told = await ask(`/console/api/explain/${encodeURIComponent(id)}`);
    if (!mine()) return;
    const parts = [];
    if (kind === "session") {
      const of = [...state.sections.turns.running, ...state.sections.turns.ended].filter((t) => t.session === id).slice(0, 20);
      const session = state.sections.sessions.list.find((s) => s.id === id);
      parts.push(top(session?.name ?? id), facts(["Session", el("code", {}, id)], ["Place", session ? el("code", {}, session.place) : ""], ["Title", titleOf(id)]), el("h3", {}, "What is stored"), story(told.lines));
      if (of.length) parts.push(el("h3", {}, "Its latest turns"), el("div", { class: "links" }, ...of.map((t) => el("button", { type: "button", class: "quiet", onclick: () => openIt({ kind: "turn", id: t.id }) }, dot(t.class), ` ${words(t.exit) || t.doing} · ${moment(t.opened_at)}`))));
    } else {
      const incident = state.sections.incidents.find((i) => i.id === id);
      parts.push(top(incident ? incident.what : id, incident ? chip(incident.state === "open" ? incident.class : "stopped", incident.state === "open" ? "open" : "over") : ""));
      if (incident) parts.push(el("p", {}, incident.words), incident.action ? el("p", { class: "why" }, incident.action) : "");
      parts.push(el("h3", {}, "What is stored"), story(told.lines));
      const turns = [...new Set(told.lines.flatMap((line) => line.match(/\bt_[0-9a-z]+/g) ?? []))];
      if (turns.length) parts.push(el("h3", {}, "Turns"), el("div", { class: "links" }, ...turns.map((t) => el("button", { type: "button", class: "quiet", onclick: () => openIt({ kind: "turn", id: t }) }, t))));
    }
    $("detail").replaceChildren(...parts.filter(Boolean));
  } catch (error) {
    if (mine()) $("detail").replaceChildren(top(id), el("p", { class: "wrong" }, error.message));
  }
}

/** Words of people are shown when somebody asks for them, which is noted. */
function titleOf(session) {
  const box = el("span", {}, "•••••• ");
  box.append(el("button", { type: "button", class: "quiet small", onclick: async () => {
    try { box.replaceChildren((await ask("/console/api/title", { session })).text); } catch (error) { toast(error.message); }
  } }, "Show the title"));
  return box;
}

async function search(text) {
  const mine = () => state.open?.kind === "search" && state.open.id === text;
  try {
    const told = await ask("/console/api/search", { text });
    if (!mine()) return;
    const row = (one) => el("li", {}, el("button", { type: "button", class: "quiet small", onclick: () => openIt({ kind: "turn", id: one.id }) }, `${one.name} · ${words(one.exit) || "running"} · ${moment(one.at)}`), el("p", { class: "why" }, one.text));
    $("detail").replaceChildren(top(`“${text}”`), el("p", { class: "soft" }, `${plural(told.found.length, "turn")} of the latest ${told.turns.toLocaleString("en")}${told.whole ? ", which are all" : ""}. That you searched is in the audit.`), el("ol", { class: "story" }, ...told.found.map(row)));
  } catch (error) {
    if (mine()) $("detail").replaceChildren(top(`“${text}”`), el("p", { class: "wrong" }, error.message));
  }
}

/** What the filter cannot find: anything by its id, and words in texts. */
function beyond() {
  const text = state.filter.trim();
  $("beyond").hidden = !text;
  if (!text || $("beyond").dataset.text === text) return;
  $("beyond").dataset.text = text;
  $("beyond").replaceChildren(
    el("button", { type: "button", class: "quiet small", onclick: () => openIt({ kind: "id", id: text }) }, `What became of ${text}`),
    el("button", { type: "button", class: "quiet small", onclick: () => openIt({ kind: "search", id: text }, false) }, `Search the texts for “${text}” (noted in the audit)`));
}

const part = (id) => [...state.sections.outbox.waiting, ...state.sections.outbox.failed].find((p) => p.id === id);

let shownPart = "";
function renderPart() {
  const found = part(state.open.id);
  const as = JSON.stringify([state.open.id, found ?? null]);
  if (as === shownPart && $("detail").children.length > 1) return;
  shownPart = as;
  if (!found) {
    $("detail").replaceChildren(top("It does not wait any more"), el("p", { class: "soft" }, "It was sent, dropped, or sent elsewhere. The audit says what was done by hand."));
    return;
  }
  const turn = found.name.origin.split("!")[0];
  $("detail").replaceChildren(
    top(found.called, chip(found.state === "failed" ? "ours" : "limit", found.state === "failed" ? "refused" : found.state)),
    facts(["What", found.what], ["Part", `${found.name.bubble}, part ${found.name.part + 1}`], ["Of", turn.startsWith("t_") ? el("button", { type: "button", class: "quiet small", onclick: () => openIt({ kind: "turn", id: turn }) }, turn) : el("code", {}, found.name.origin)], ["Last change", found.at ? age(found.at) : ""], ["Failed calls", String(found.failures)], ["Place", el("code", {}, found.place)]),
    el("p", { class: "why" }, found.why),
    el("div", { class: "act" }, ...Object.entries(ACTS).map(([act, one]) => el("button", { type: "button", class: act === "drop" ? "danger" : "quiet", id: `do-${act}`, disabled: !found.can.includes(act), onclick: () => preview(found, act) }, `${one.name} `, el("kbd", {}, one.key)))),
    found.can.length ? "" : el("p", { class: "soft small" }, "Nothing can be done to it by hand just now."));
}

function renderEntry(id) {
  const entry = state.sections.audit.find((a) => a.id === id);
  if (!entry) { back(); return; }
  const shown = (text) => { try { return el("pre", {}, JSON.stringify(JSON.parse(text), null, 1)); } catch { return el("p", { class: "soft" }, "–"); } };
  $("detail").replaceChildren(top(words(entry.act)), el("p", {}, entry.words), facts(["When", moment(entry.at)], ["Who", `somebody ${entry.who}`], ["Object", el("code", {}, entry.object)]), ...(entry.before ? [el("h3", {}, "Before"), shown(entry.before), el("h3", {}, "After"), shown(entry.after)] : []));
}

// ---------------------------------------------------------------- doing something to a part, after a look at what it will do

let acting = null;

function preview(found, act) {
  if (!found?.can.includes(act)) { toast(`${ACTS[act].name} cannot be done to this part just now.`); return; }
  acting = { found, act, mark: "", to: "" };
  $("acttitle").textContent = ACTS[act].title;
  $("actpart").textContent = `${found.what}, for ${found.called}`;
  $("actwhere").hidden = act !== "redirect";
  $("actto").value = "";
  $("actgo").textContent = ACTS[act].go;
  $("actgo").className = act === "drop" ? "danger" : "";
  $("acttext").hidden = true;
  $("actshow").hidden = false;
  showLines([]);
  $("actdialog").showModal();
  if (act === "redirect") $("actto").focus(); else look();
}

function showLines(lines, wrong = "") {
  $("actwhat").hidden = !lines.length;
  $("actlines").replaceChildren(...lines.map((line) => el("li", {}, line)));
  $("actwrong").hidden = !wrong;
  $("actwrong").textContent = wrong;
  $("actgo").disabled = !lines.length;
}

async function look() {
  const mine = acting, to = $("actto").value.trim();
  try {
    const seen = await ask("/console/api/outbox/preview", { name: mine.found.name, act: mine.act, to });
    if (acting !== mine || $("actto").value.trim() !== to) return; // something else is wanted by now
    mine.mark = seen.mark;
    mine.to = to;
    showLines([...seen.lines, `An entry in the audit says that it was done by somebody ${seen.who}.`]);
    $("actgo").focus();
  } catch (error) {
    if (acting === mine && $("actto").value.trim() === to) showLines([], error.message);
  }
}

async function doIt() {
  const mine = acting;
  $("actgo").disabled = true;
  try {
    const done = await ask("/console/api/outbox/act", { name: mine.found.name, act: mine.act, to: mine.to, mark: mine.mark });
    toast(done.words);
    if (acting !== mine) return; // another one is looked at by now
    $("actdialog").close();
    $("detail").focus({ preventScroll: true });
  } catch (error) {
    if (acting === mine) showLines([], error.message);
    else toast(error.message);
  }
}

$("actform").addEventListener("submit", (event) => { event.preventDefault(); if (!$("actgo").disabled) doIt(); });
$("actto").addEventListener("input", () => showLines([]));
$("actto").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); look(); } });
$("actlook").addEventListener("click", look);
$("actcancel").addEventListener("click", () => $("actdialog").close());
$("actdialog").addEventListener("close", () => { acting = null; });
$("actshow").addEventListener("click", async () => {
  const mine = acting;
  try {
    const { text } = await ask("/console/api/outbox/text", { name: mine.found.name });
    if (acting !== mine) return;
    $("acttext").textContent = text;
    $("acttext").hidden = false;
    $("actshow").hidden = true;
  } catch (error) { if (acting === mine) showLines([], error.message); }
});

// ---------------------------------------------------------------- views and keys

function show(view, push = true) {
  if (state.open) back(false);
  state.view = view;
  state.filter = "";
  $("filter").value = "";
  $("title").textContent = VIEWS.find((v) => v.id === view).name;
  document.title = `${$("title").textContent} – outspoken console`;
  for (const button of $("views").children) {
    if (button.dataset.view === view) { button.setAttribute("aria-current", "page"); button.scrollIntoView({ block: "nearest", inline: "center" }); } else button.removeAttribute("aria-current");
  }
  if (push) location.hash = view;
  render();
  $("listing").scrollTop = 0;
}

function fromHash() {
  const [view, kind, id] = location.hash.slice(1).split("/");
  const wanted = VIEWS.some((v) => v.id === view) ? view : "turns";
  if (wanted !== state.view || shownView === null) show(wanted, false);
  let open = null;
  try { open = id ? decodeURIComponent(id) : null; } catch { /* nobody has that id */ }
  if (open && (state.open?.id !== open || state.open.kind !== kind)) openIt({ kind, id: open }, false);
  if (!open && state.open) back(false);
}

function move(step) {
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.id === state.selected[state.view]);
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  select(next.id);
  $("list")?.focus({ preventScroll: true });
  if (state.open && next.opens && $("view").offsetParent) openIt(next.opens), $("list")?.focus({ preventScroll: true });
}

let chord = -Infinity;
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const typing = event.target.matches("input, textarea");
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") { if (typing) { leaveFilter(); } else if (state.open) back(); else if (state.filter) leaveFilter(true); event.preventDefault(); return; }
  if (typing) { if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); $("list")?.focus(); } return; }
  if (!state.ready) return;
  const after = performance.now() - chord < 1500;
  chord = -Infinity;
  const named = after ? VIEWS.find((v) => v.key === event.key) : VIEWS[Number(event.key) - 1];
  if (named) { event.preventDefault(); show(named.id); $("list")?.focus({ preventScroll: true }); return; }
  const act = Object.entries(ACTS).find(([, one]) => one.key === event.key)?.[0];
  const onButton = event.target.matches("button, a, summary");
  switch (event.key) {
    case "g": chord = performance.now(); break;
    case "j": case "ArrowDown": event.preventDefault(); move(1); break;
    case "k": case "ArrowUp": event.preventDefault(); move(-1); break;
    case "Home": move(-rows.length); break;
    case "End": move(rows.length); break;
    case "Enter": if (!onButton) openSelected(); break;
    case "/": event.preventDefault(); $("filter").focus(); break;
    case "?": $("helpdialog").showModal(); break;
    default: if (act && state.view === "outbox") { event.preventDefault(); const found = part(state.open?.kind === "part" ? state.open.id : state.selected.outbox); if (found) preview(found, act); }
  }
}

function leaveFilter(clear = false) {
  if (clear || $("filter").value) { $("filter").value = ""; state.filter = ""; render(); }
  $("filter").blur();
  $("list")?.focus({ preventScroll: true });
}

function openSelected() {
  const row = rows.find((one) => one.id === state.selected[state.view]);
  if (row?.opens) openIt(row.opens);
}

document.addEventListener("keydown", onKey);
$("filter").addEventListener("input", () => { state.filter = $("filter").value; render(); });
$("help").addEventListener("click", () => $("helpdialog").showModal());
$("keydialog").addEventListener("cancel", (event) => event.preventDefault());
window.addEventListener("hashchange", fromHash);
window.addEventListener("resize", render);
VIEWS.forEach((view, index) => {
  const made = el("button", { type: "button", onclick: () => show(view.id), "aria-keyshortcuts": `${index + 1}` }, el("span", {}, view.name), el("span", { id: `badge-${view.id}`, class: "badge", hidden: true }), el("kbd", { "aria-hidden": "true" }, String(index + 1)));
  made.dataset.view = view.id;
  $("views").append(made);
});
$("keys").append(...KEYS.flatMap(([keys, text]) => [el("dt", {}, ...keys.split("  ").map((one) => el("kbd", {}, one)).flatMap((one) => [one, " "])), el("dd", {}, text)]));

showLink();
follow("/console/api/live", (name, data) => {
  failures = 0;
  lostSince = 0;
  trouble = name === "trouble" ? data.words : "";
  if (name === "sections") {
    state.offset = data.now - Date.now();
    const { now: _, ...changed } = data;
    Object.assign(state.sections, changed);
    const first = !state.ready;
    state.ready = true;
    if (first) { fromHash(); $("list")?.focus({ preventScroll: true }); } else if (Object.keys(changed).length) render();
  }
  showLink();
}, (error, failed) => {
  failures = failed;
  lostSince ||= Date.now();
  trouble = error instanceof Refused ? error.message : "";
  showLink();
});
