// The list of conversations: found, named, pinned, deleted, written out.

import { $, announce, button, copy, keepingPlace, node, reconcile, toast } from "./dom.js";
import { NoKey, ask, call, problem } from "./net.js";
import * as store from "./store.js";
import { say } from "./words.js";

/** @typedef {{id: string, title: string, named: boolean, pinned: boolean, archived: boolean, shared: boolean, state: string, turns: number, created_at: number, last_at: number, found: string}} Listed */

/** @type {Listed[]} */
let listed = [];
let whole = true;
let trouble = "";
let looks = 0;
let shownId = "";
/** Those are shown that were put aside. */
let aside = false;
const SOON_MS = 5000;
const NAMED_MS = [2500, 9000];
const UNNAMED_TURNS = 3;
let soon = 0;
/** @type {(id: string) => void} */
let gone = () => {};

/** @param {Listed} one */
const titled = (one) => one.title || say("new.title");

/** @param {string} title */
const short = (title) => (title.length > 60 ? `${title.slice(0, 59)}…` : title);

/** @param {(id: string) => void} whenGone Is told which conversation was deleted. */
export function begin(whenGone) {
  gone = whenGone;
  let pause = 0;
  $("archived").addEventListener("click", () => { aside = !aside; $("search").value = ""; load(); });
  $("search").addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(() => load(), 250); });
  addEventListener("focus", () => load());
}

/** The conversation that is shown now. @param {string} id */
export function current(id) {
  shownId = id;
  show();
}

export function title() {
  const one = listed.find((each) => each.id === shownId);
  return one ? titled(one) : "";
}

/** What comes now is said in a conversation of the list, and not in those that were put aside. */
export function back() {
  aside = false;
  load();
}

/** An answer has come. If that was one of the first, the model may be giving the conversation its title. */
export function ended() {
  load();
  const one = listed.find((each) => each.id === shownId);
  if (!one || (!one.named && one.turns <= UNNAMED_TURNS)) for (const pause of NAMED_MS) setTimeout(() => load(true), pause);
}

/** Asks the gateway for the list. @param {boolean} [unasked] Nobody waits for it. */
export async function load(unasked = false) {
  const look = (looks += 1);
  const search = $("search").value.trim();
  const before = store.get("session", "");
  const query = new URLSearchParams({ ...(search ? { search } : {}), ...(before && !before.startsWith("c-") ? { also: before } : {}) });
  try {
    const found = await ask(`/api/conversations?${query}`);
    if (look !== looks) return;
    listed = found.conversations;
    whole = found.whole;
    trouble = "";
  } catch (error) {
    if (look !== looks || error instanceof NoKey) return;
    trouble = say("list.failed", { why: /** @type {Error} */ (error).message });
  }
  show(search);
  if (search && !unasked) announce($("listwords").textContent || listed.map(titled).join(", "));
}

function show(search = $("search").value.trim()) {
  const now = Date.now();
  let before = "";
  if (!search) aside &&= listed.some((one) => one.archived);
  const some = search ? listed : listed.filter((one) => one.archived === aside);
  $("archived").hidden = Boolean(search) || !listed.some((one) => one.archived);
  $("archived").setAttribute("aria-pressed", String(aside));
  $("archived").textContent = say(aside ? "archived.hide" : "archived.show");
  const rows = some.flatMap((one) => {
    const day = one.pinned || search ? "" : when(one.last_at, now);
    const heading = day && day !== before ? [{ key: `when ${day}`, state: "", make: () => node("li", "when", day) }] : [];
    before = day;
    return [...heading, { key: one.id, state: JSON.stringify([one, one.id === shownId, Boolean(search)]), make: (/** @type {HTMLElement | null} */ was) => row(one, Boolean(search), was) }];
  });
  keepingPlace(() => reconcile($("list"), rows));
  $("listwords").textContent = trouble || (some.length === 0 ? say(search ? "list.nothing" : "list.empty") : search && !whole ? say("list.more") : "");
  const name = title();
  document.title = name ? `${name} – outspoken` : "outspoken";
  if (!soon && listed.some((one) => one.state !== "idle" && one.id !== shownId)) soon = setTimeout(lookAgain, SOON_MS);
}

/** What is shown is followed; what becomes of the others is asked for. */
function lookAgain() {
  soon = 0;
  if (!document.hidden) load(true);
}

/** The day, or further back the month, in the page's language. @param {number} at @param {number} now @returns {string} */
function when(at, now) {
  const language = document.documentElement.lang || undefined, day = new Date(at);
  const days = Math.round((new Date(now).setHours(0, 0, 0, 0) - new Date(at).setHours(0, 0, 0, 0)) / 86_400_000);
  const words = days < 2 ? new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(-Math.max(0, days), "day")
    : day.toLocaleDateString(language, days < 7 ? { weekday: "long" } : { month: "long", year: "numeric" });
  return words.charAt(0).toLocaleUpperCase(language) + words.slice(1);
}

/** A row; one that is there stays, as a dialog gives the focus back to the button that opened it.
 * @param {Listed} one @param {boolean} among All are found together, those that were put aside as well. @param {HTMLElement | null} was */
function row(one, among, was) {
  const item = was ?? node("li", "", node("a", ""), button("⋯", () => {}, say("settings")));
  const link = /** @type {HTMLAnchorElement} */ (item.firstElementChild), more = /** @type {HTMLElement} */ (item.lastElementChild);
  item.className = one.id === shownId ? "current" : "";
  link.replaceChildren(node("span", "title", titled(one)));
  link.href = `#${one.id}`;
  link.dir = "auto";
  const marks = [one.pinned ? say("list.pinned") : "", one.archived && among ? say("archived") : "", one.shared ? say("shared") : "", one.state === "idle" ? "" : say(`list.state.${one.state}`)].filter(Boolean);
  if (marks.length) link.append(node("small", one.state === "idle" ? "" : "busy", marks.join(" · ")));
  if (one.found) link.append(node("small", "", one.found));
  if (one.id === shownId) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
  more.className = "more";
  more.onclick = () => settings(one);
  more.setAttribute("aria-label", `${say("settings")}: ${titled(one)}`);
  return item;
}

/** @param {Listed} one */
function settings(one) {
  const dialog = $("settings");
  const name = /** @type {HTMLInputElement} */ ($("settingstitle"));
  name.value = one.named ? one.title : "";
  name.placeholder = one.title;
  $("settingsof").textContent = say("list.of");
  $("pin").textContent = say(one.pinned ? "unpin" : "pin");
  $("archive").textContent = say(one.archived ? "unarchive" : "archive");
  $("sure").hidden = true;
  sharing(one);
  $("delete").hidden = false;
  $("settingswrong").textContent = "";
  /** @param {() => Promise<unknown>} work */
  const doing = async (work) => {
    try {
      await work();
      dialog.close();
      await load();
    } catch (error) {
      $("settingswrong").textContent = say("failed", { why: /** @type {Error} */ (error).message });
      announce($("settingswrong").textContent);
    }
  };
  /** @param {object} change */
  const change = (change) => ask(`/api/conversations/${one.id}`, { method: "POST", body: JSON.stringify(change) });
  $("settingsform").onsubmit = (/** @type {Event} */ event) => { event.preventDefault(); doing(() => change({ title: name.value.trim() })); };
  $("pin").onclick = () => doing(() => change({ pinned: !one.pinned }));
  $("archive").onclick = () => doing(async () => {
    await change({ archived: !one.archived });
    if (!one.archived) toast(say("archive.done", { title: short(titled(one)) }));
  });
  $("asmarkdown").onclick = () => doing(() => download(one, "markdown"));
  $("asjson").onclick = () => doing(() => download(one, "json"));
  $("delete").onclick = () => { $("sure").hidden = false; $("delete").hidden = true; announce(say("delete.words")); $("really").focus(); };
  $("really").disabled = false;
  $("really").onclick = () => doing(async () => {
    $("really").disabled = true; // a long one takes its time
    await ask(`/api/conversations/${one.id}`, { method: "DELETE" }).finally(() => { $("really").disabled = false; });
    toast(say("delete.done", { title: short(titled(one)) }));
    gone(one.id);
  });
  dialog.showModal();
}

/** For whom links open; empty: there are none. */
let opensFor = "";

/** @param {string} whom */
export function linksFor(whom) {
  opensFor = whom === "off" ? "" : whom;
}

/** What may be done about the link to one. @param {Listed} one */
function sharing(one) {
  let there = one.shared;
  const put = (/** @type {string} */ address) => {
    $("sharethere").hidden = !there || Boolean(address);
    $("sharedlink").hidden = !address;
    $("address").value = address;
    $("withdraw").hidden = !there;
    $("sharemake").hidden = !opensFor;
    $("sharemake").textContent = say(there ? "share.again" : "share.make");
  };
  /** @param {() => Promise<unknown>} work */
  const doing = async (work) => {
    $("settingswrong").textContent = "";
    try { await work(); } catch (error) { $("settingswrong").textContent = say("failed", { why: /** @type {Error} */ (error).message }); }
    load();
  };
  const path = `/api/conversations/${one.id}/link`;
  $("share").hidden = !(opensFor || there);
  $("share").setAttribute("aria-expanded", "false");
  $("sharing").hidden = true;
  $("sharewords").textContent = opensFor ? say(`share.${opensFor}`) : "";
  put("");
  $("share").onclick = () => {
    const shown = $("sharing").hidden;
    $("sharing").hidden = !shown;
    $("share").setAttribute("aria-expanded", String(shown));
  };
  $("sharemake").onclick = () => doing(async () => {
    const { link } = await ask(path, { method: "POST" });
    there = true;
    put(`${location.origin}/shared#${link}`);
    $("address").focus();
    $("address").select();
    announce(say("share.made"));
  });
  $("sharecopy").onclick = () => copy($("address").value, $("sharecopy"));
  $("withdraw").onclick = () => doing(async () => {
    await ask(path, { method: "DELETE" });
    there = false;
    put("");
    $("sharemake").focus();
    $("sharewords").textContent = say("share.withdrawn");
  });
}

/** @param {Listed} one @param {"json" | "markdown"} format */
async function download(one, format) {
  const response = await call(`/api/conversations/${one.id}/export?format=${format}`);
  if (!response.ok) throw new Error(await problem(response));
  const link = /** @type {HTMLAnchorElement} */ (node("a", "hidden"));
  link.href = URL.createObjectURL(await response.blob());
  link.download = `${titled(one).replace(/[^\p{L}\p{N} _-]+/gu, " ").trim().slice(0, 60) || "conversation"}.${format === "json" ? "json" : "md"}`;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
