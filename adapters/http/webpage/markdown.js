// Markdown to DOM nodes. Never innerHTML: whatever a model writes stays text. Half-written Markdown is closed.
//
// A model may write anything, so the work has an end. Every scan goes forward only (what is not found once is not looked for again), nesting is
// bounded, and each text has so many units of work; what is left then is shown as it was written.

import { copy } from "./dom.js";
import { say } from "./words.js";

const SAFE = /^(https?:|mailto:)/i;
const WORK = 60_000; // characters that are looked at, and more for each node
const NODE = 12;
const DEPTH = 6; // of quotes, of lists, and of emphasis within emphasis
const COLUMNS = 50;
const LONGEST_MARK = 1_000; // a longer line is no rule and no head of a table
const UNBROKEN = 200; // a browser needs long for a run without a place to break
const CHUNK = 4_000;
const AT_ONCE = 300_000;

function el(name, ...children) {
  const node = document.createElement(name);
  node.append(...children);
  return node;
}

// Text as it is. The places to break that are put into a long run are not seen, and not copied.
export function words(text) {
  const long = /[^\s]{201,}/g; // UNBROKEN
  const out = [];
  let at = 0;
  for (let found = long.exec(text); found; found = long.exec(text)) {
    const end = found.index + found[0].length;
    for (let from = found.index; from < end;) {
      let to = Math.min(end, from + UNBROKEN);
      if (to < end && (text.charCodeAt(to) & 0xfc00) === 0xdc00) to += 1;
      out.push(text.slice(at, to), document.createElement("wbr"));
      at = from = to;
    }
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

// Text as it was written, in blocks that cost nothing as long as they are not on the screen.
export function plain(text) {
  const box = el("div");
  box.className = "plain";
  let at = 0;
  while (at < text.length && at < AT_ONCE) {
    let to = Math.min(text.length, at + CHUNK);
    if (to < text.length) {
      const line = text.lastIndexOf("\n", to - 1) + 1;
      if (line > at) to = line;
      else if ((text.charCodeAt(to) & 0xfc00) === 0xdc00) to += 1;
    }
    box.append(el("div", ...words(text.slice(at, to))));
    at = to;
  }
  if (at < text.length) {
    const more = el("button", `Show more (${(text.length - at).toLocaleString("en")} characters)`);
    more.type = "button";
    more.addEventListener("click", () => more.replaceWith(plain(text.slice(at))));
    box.append(more);
  }
  return box;
}

// Where a piece of text comes next; `from` never goes back, so all searches for it together look at each character once.
function finder(text) {
  const known = new Map();
  return (piece, from) => {
    const last = known.get(piece);
    if (last !== undefined && last >= from) return last;
    const found = text.indexOf(piece, from);
    const at = found < 0 ? Infinity : found;
    known.set(piece, at);
    return at;
  };
}

const WORD = /[\w]/;
const MARK = /`+|\*\*|\*|__|_|~~|\[|https?:\/\/[^\s<>()]{0,2000}/g;

// [node, where it ends] for the mark at `at`; null if it is none.
function marked(text, at, mark, next, work, depth) {
  if (mark[0] === "`") {
    const end = next(mark, at + mark.length + 1);
    if (end === Infinity) return null;
    const body = text.slice(at + mark.length, end);
    return [el("code", ...words(body.trim() || body)), end + mark.length];
  }
  if (mark === "**" || mark === "__" || mark === "~~") {
    const end = next(mark, at + 3);
    if (end === Infinity) return null;
    return [el(mark === "~~" ? "del" : "strong", ...inline(text.slice(at + 2, end), work, depth + 1)), end + 2];
  }
  if (mark === "*" || mark === "_") {
    const end = next(mark, at + 2);
    const alone = mark === "_" && (WORD.test(text[at - 1] ?? "") || WORD.test(text[end + 1] ?? ""));
    if (end === Infinity || alone || /[\s*_]/.test(text[at + 1])) return null;
    return [el("em", ...inline(text.slice(at + 1, end), work, depth + 1)), end + 1];
  }
  if (mark === "[") {
    const close = next("]", at + 2);
    if (text[close + 1] !== "(") return null;
    const end = next(")", close + 3);
    if (end === Infinity) return null;
    const target = /^[^\s]+/.exec(text.slice(close + 2, end))?.[0];
    return target ? [link(target, text.slice(at + 1, close), text.slice(at, end + 1)), end + 1] : null;
  }
  const address = mark.replace(/[.,;:!?'"]{1,50}$/, "");
  return address.length > 8 ? [link(address, address, address), at + address.length] : null;
}

function inline(text, work, depth = 0) {
  work.left -= text.length;
  if (work.left <= 0 || depth > DEPTH) return words(text);
  const out = [];
  const next = finder(text);
  const marks = new RegExp(MARK);
  let at = 0;
  for (let found = marks.exec(text); found && work.left > 0; found = marks.exec(text)) {
    const made = marked(text, found.index, found[0], next, work, depth);
    if (!made) continue;
    work.left -= NODE;
    out.push(...words(text.slice(at, found.index)), made[0]);
    at = marks.lastIndex = made[1];
  }
  out.push(...words(text.slice(at)));
  return out;
}

function link(target, label, source) {
  if (!SAFE.test(target)) return el("span", ...words(source));
  const node = el("a", ...words(label));
  node.href = target;
  node.rel = "noopener noreferrer nofollow";
  node.target = "_blank";
  return node;
}

function lines(rows, work) {
  const nodes = [];
  for (let i = 0; i < rows.length; i += 1) {
    if (work.left <= 0) return [...nodes, plain(rows.slice(i).join("\n"))];
    if (i) nodes.push(el("br"));
    work.left -= NODE;
    nodes.push(...inline(rows[i], work));
  }
  return nodes;
}

function codeBlock(text, language) {
  const shown = el("code", ...(text.length > CHUNK ? [plain(text)] : words(text)));
  const box = el("pre", shown);
  box.tabIndex = 0; // it scrolls, also by keys
  box.dir = "ltr";
  const copies = el("button", say("copy"));
  copies.type = "button";
  copies.addEventListener("click", () => copy(text, copies, shown));
  const head = el("div", el("span", language), copies);
  head.className = "codehead";
  const whole = el("div", head, box);
  whole.className = "code";
  return whole;
}

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+([^]*)$/;

function newList(found) {
  const node = el(/\d/.test(found[2]) ? "ol" : "ul");
  if (node.tagName === "OL") node.start = parseInt(found[2], 10);
  return node;
}

// Rows of which the first is an item: each belongs to the list whose depth it has.
function list(rows, work) {
  const open = [];
  const bodies = [];
  let at = 0;
  for (; at < rows.length && work.left > 0; at += 1) {
    const row = rows[at];
    const found = ITEM.exec(row);
    if (!found) {
      bodies.at(-1).rows.push(row.trim());
      continue;
    }
    const depth = found[1].length;
    while (open.length > 1 && open.at(-1).depth > depth && open.at(-2).depth >= depth) open.pop();
    if (!open.length || (depth > open.at(-1).depth && open.length < DEPTH)) {
      const node = newList(found);
      bodies.at(-1)?.item.append(node);
      open.push({ depth, node });
    }
    const item = el("li");
    open.at(-1).node.append(item);
    bodies.push({ item, rows: [found[3]] });
    work.left -= NODE;
  }
  for (const body of bodies) body.item.prepend(...lines(body.rows, work));
  const rest = at < rows.length ? [plain(rows.slice(at).join("\n"))] : [];
  return open.length ? [open[0].node, ...rest] : rest;
}

const cells = (row) => row.trim().replace(/^\||\|$/g, "").split("|", COLUMNS).map((cell) => cell.trim());

function tableRow(name, row, work) {
  return el("tr", ...cells(row).map((cell) => { work.left -= NODE; return el(name, ...inline(cell, work)); }));
}

function table(rows, work) {
  if (rows[0].split("|").length > COLUMNS) return [plain(rows.join("\n"))];
  const body = el("tbody");
  const made = el("table", el("thead", tableRow("th", rows[0], work)), body);
  const box = el("div", made);
  box.className = "tablebox";
  let i = 2;
  while (i < rows.length && work.left > 0) body.append(tableRow("td", rows[i++], work));
  return i < rows.length ? [box, plain(rows.slice(i).join("\n"))] : [box];
}

const isRule = (row) => row.length < LONGEST_MARK && /^\s*([-*_])(\s*\1){2,}\s*$/.test(row);
const isHead = (row) => row.length < LONGEST_MARK && row.includes("-") && /^[\s|:-]+$/.test(row) && /^\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?$/.test(row.trim());
const fenceOf = (row) => /^\s*(```+|~~~+)/.exec(row);

// The parts of a text by what they begin with: [what it is, its rows].
function take(rows, from) {
  const row = rows[from];
  let i = from + 1;
  const fence = fenceOf(row);
  if (fence) {
    while (i < rows.length && !rows[i].trim().startsWith(fence[1])) i += 1;
    return ["code", rows.slice(from, i), i + 1];
  }
  if (!row.trim()) return ["nothing", [], i];
  if (/^#{1,6}\s/.test(row)) return ["heading", [row], i];
  if (isRule(row)) return ["rule", [row], i];
  if (ITEM.test(row)) {
    while (i < rows.length && (ITEM.test(rows[i]) || /^\s+\S/.test(rows[i]))) i += 1;
    return ["list", rows.slice(from, i), i];
  }
  if (/^\s*>/.test(row)) {
    while (i < rows.length && /^\s*>/.test(rows[i])) i += 1;
    return ["quote", rows.slice(from, i), i];
  }
  if (row.includes("|") && isHead(rows[i] ?? "")) {
    while (i < rows.length && rows[i].includes("|")) i += 1;
    return ["table", rows.slice(from, i), i];
  }
  while (i < rows.length && rows[i].trim() && !/^\s*(```|~~~|>|#{1,6}\s)/.test(rows[i]) && !ITEM.test(rows[i])) i += 1;
  return ["text", rows.slice(from, i), i];
}

function block(kind, rows, work, depth) {
  switch (kind) {
    case "code":
      work.left -= 5 * NODE;
      return [codeBlock(rows.slice(1).join("\n"), /^\s*[`~]+\s*([\w+#.-]{1,30})/.exec(rows[0])?.[1] ?? "")];
    case "nothing": return [];
    case "heading": {
      const level = Math.min(4, rows[0].match(/^#+/)[0].length);
      return [el(`h${level}`, ...inline(rows[0].replace(/^#+\s*/, "").replace(/\s#+$/, ""), work))];
    }
    case "rule": return [el("hr")];
    case "list": return list(rows, work);
    case "quote":
      if (depth >= DEPTH) return [plain(rows.join("\n"))];
      return [el("blockquote", blocks(rows.map((row) => row.replace(/^\s*> ?/, "")), work, depth + 1))];
    case "table": return table(rows, work);
    default: return [el("p", ...lines(rows, work))];
  }
}

function blocks(rows, work, depth) {
  const out = document.createDocumentFragment();
  for (let i = 0; i < rows.length;) {
    if (work.left <= 0) {
      out.append(plain(rows.slice(i).join("\n")));
      break;
    }
    const [kind, part, end] = take(rows, i);
    work.left -= NODE;
    out.append(...block(kind, part, work, depth));
    i = end;
  }
  return out;
}

export function markdown(text) {
  const work = { left: WORK };
  const most = text.length > WORK ? Math.max(text.lastIndexOf("\n", WORK), 0) || WORK : text.length;
  const out = blocks(text.slice(0, most).replace(/\r\n?/g, "\n").split("\n"), work, 0);
  if (most < text.length) out.append(plain(text.slice(most)));
  return out;
}
