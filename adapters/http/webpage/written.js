// What the gateway has read of the model's Markdown, as elements: lists of a name, its facts, and children. Never innerHTML: whatever a model writes stays text.

import { button, copy, node } from "./dom.js";
import { ask } from "./net.js";
import { number, say } from "./words.js";

/** @typedef {string | any[]} Piece a text, or [name, facts or null, ...children] */

const SAFE = /^(https?:|mailto:)/i;
const PLAIN = ["p", "h1", "h2", "h3", "h4", "hr", "ul", "ol", "li", "blockquote", "thead", "tbody", "tr", "th", "td", "strong", "em", "del", "code", "br", "wbr"];
const ANY_WAY = ["p", "h1", "h2", "h3", "h4", "ul", "ol", "blockquote"]; // each may be written from the right
const WITHIN = "ul, ol, blockquote, table"; // goes the way of its words; each line in it finds its own (page.css)
const UNBROKEN = 200; // a browser needs long for a run without a place to break
const CHUNK = 4_000;
const AT_ONCE = 300_000;
const COLOURED = 20_000;

// Text as it is. The places to break that are put into a long run are not seen, and not copied.
/** @param {string} text @returns {(Node | string)[]} */
export function words(text) {
  const long = /[^\s]{201,}/g; // UNBROKEN
  /** @type {(Node | string)[]} */
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
/** @param {string} text @returns {HTMLElement} */
export function plain(text) {
  const box = node("div", "plain");
  let at = 0;
  while (at < text.length && at < AT_ONCE) {
    let to = Math.min(text.length, at + CHUNK);
    if (to < text.length) {
      const line = text.lastIndexOf("\n", to - 1) + 1;
      if (line > at) to = line;
      else if ((text.charCodeAt(to) & 0xfc00) === 0xdc00) to += 1;
    }
    box.append(node("div", "", ...words(text.slice(at, to))));
    at = to;
  }
  if (at < text.length) {
    const more = button(say("more", { n: number(text.length - at) }), () => more.replaceWith(plain(text.slice(at))));
    box.append(more);
  }
  return box;
}

/** What a patch makes of pieces: so many stay, the next one grows, others follow. @param {Piece[]} pieces @param {any[]} patch @returns {Piece[]} */
export function patched(pieces, [keep, inner, ...more]) {
  if (inner === null) return [...pieces.slice(0, keep), ...more];
  const old = pieces[keep];
  const grown = typeof inner === "string" ? old + inner : [old[0], old[1], ...patched(/** @type {any[]} */ (old.slice(2)), inner)];
  return [...pieces.slice(0, keep), grown, ...more];
}

/** Where the children of a made element are. @type {WeakMap<Node, HTMLElement>} */
const inside = new WeakMap();

/** @param {Piece} piece @param {boolean} within A list, a quote or a table. @returns {Node} */
function made(piece, within) {
  if (typeof piece === "string") return document.createTextNode(piece);
  const [name, facts, ...children] = piece;
  const [outer, inner] = element(name, facts ?? {}, children);
  if (ANY_WAY.includes(name) && !within) outer.dir = "auto"; // a browser looks for the way of a box only in what has no way of its own
  if (name === "table" && !within) outer.dir = "auto";
  if (name !== "plain") inner.append(...children.map((child) => made(child, within || inner.matches(WITHIN))));
  inside.set(outer, inner);
  return outer;
}

/** The element of this name, and the one within it that has the children. @param {string} name @param {any} facts @param {Piece[]} children @returns {[HTMLElement, HTMLElement]} */
function element(name, facts, children) {
  switch (name) {
    case "a": {
      const link = node("a", "");
      if (SAFE.test(facts.href)) follow(/** @type {HTMLAnchorElement} */ (link), facts.href);
      return [link, link];
    }
    case "picture": return both(picture(facts));
    case "box": {
      const box = node("span", "box", facts.on ? "☑" : "☐");
      box.role = "img";
      box.ariaLabel = say(facts.on ? "task.done" : "task.open");
      return both(box);
    }
    case "formula": {
      const tex = node("code", "");
      const box = node("span", facts.display ? "formula display" : "formula", tex);
      if (facts.display) {
        box.tabIndex = 0; // it scrolls, also by keys
        box.role = "group";
        box.ariaLabel = say("formula");
      }
      return [box, tex];
    }
    case "part": return both(node("div", "part"));
    case "plain": return both(plain(String(children[0] ?? "")));
    case "pre": return codeBlock(facts.language);
    case "table": {
      const table = node("table", "");
      const box = node("div", "tablebox", table);
      box.tabIndex = 0; // it scrolls, also by keys
      box.role = "group";
      box.ariaLabel = say("table");
      return [box, table];
    }
    default: {
      const plainly = node(PLAIN.includes(name) ? name : "span", facts.align ? `to-${facts.align}` : "");
      if (name === "ol") /** @type {HTMLOListElement} */ (plainly).start = facts.start;
      if (facts.value !== undefined) /** @type {HTMLLIElement} */ (plainly).value = facts.value;
      return both(plainly);
    }
  }
}

/** @param {HTMLElement} one @returns {[HTMLElement, HTMLElement]} */
const both = (one) => [one, one];

/** @param {HTMLAnchorElement} link @param {string} href */
function follow(link, href) {
  link.href = href;
  link.rel = "noopener noreferrer nofollow";
  link.target = "_blank";
}

/** A picture elsewhere: whoever has it hears of its reader only when they open it. @param {{href: string, alt: string}} facts */
function picture(facts) {
  const link = /** @type {HTMLAnchorElement} */ (node("a", "picture"));
  let host = facts.href;
  try { host = new URL(facts.href).host; } catch { /* it is shown as it is */ }
  link.append(...(facts.alt ? [node("bdi", "", facts.alt), " "] : []), `(${say("picture", { host: `\u2068${host}\u2069` })})`);
  if (SAFE.test(facts.href)) follow(link, facts.href);
  return link;
}

/** @param {string} language @returns {[HTMLElement, HTMLElement]} */
function codeBlock(language) {
  const shown = node("code", "");
  const box = node("pre", "", shown);
  box.tabIndex = 0; // it scrolls, also by keys
  box.dir = "ltr";
  const copies = button(say("copy"), () => copy(shown.textContent ?? "", copies, shown));
  copies.setAttribute("aria-label", say("copy.code"));
  const head = node("div", "codehead", node("span", "", language), copies);
  head.dir = document.documentElement.dir; // its words are ours, and say nothing of the way of the text around it
  const whole = node("div", "code", head, box);
  whole.dataset.language = language;
  return [whole, shown];
}

/** Makes what is shown of some pieces what is to be shown of others. What is the same stays, with its selection, its focus and what was opened in it.
 * @param {HTMLElement} box @param {Piece[]} before @param {Piece[]} now */
export function update(box, before, now) {
  let at = 0;
  while (at < before.length && at < now.length && grown(box.childNodes[at], before[at], now[at])) at += 1;
  while (box.childNodes.length > at) box.lastChild?.remove();
  const within = box.closest(WITHIN) !== null;
  box.append(...now.slice(at).map((piece) => made(piece, within)));
}

/** Whether what is shown of a piece is now what is to be shown of the other. @param {Node} shown @param {Piece} before @param {Piece} now */
function grown(shown, before, now) {
  if (before === now) return true;
  if (typeof before === "string") {
    if (typeof now !== "string" || !now.startsWith(before)) return false;
    /** @type {Text} */ (shown).appendData(now.slice(before.length));
    return true;
  }
  if (typeof now === "string" || before[0] !== now[0] || now[0] === "plain" || JSON.stringify(before[1]) !== JSON.stringify(now[1])) return false;
  update(/** @type {HTMLElement} */ (inside.get(shown)), before.slice(2), now.slice(2));
  return true;
}

// ---------------------------------------------------------------- colours of code, drawn over it: the text stays as it is

const COLOURS = ["comment", "string", "number", "keyword", "name", "bad"];
const drawn = typeof Highlight === "function" && CSS.highlights ? Object.fromEntries(COLOURS.map((kind) => [kind, new Highlight()])) : null;
if (drawn) for (const kind of COLOURS) CSS.highlights.set(`code-${kind}`, drawn[kind]);

const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    if (target.matches(".formula")) draw(/** @type {HTMLElement} */ (target));
    else colour(/** @type {HTMLElement} */ (target));
  }
});

/** Colours the code in a text that does not grow any more, and draws its formulas, as soon as they are on the screen. @param {HTMLElement} box */
export function colours(box) {
  for (const formula of box.querySelectorAll(".formula:not(.asked)")) seen.observe(formula);
  if (!drawn) return;
  for (const code of /** @type {NodeListOf<HTMLElement>} */ (box.querySelectorAll(".code"))) if (code.dataset.language) seen.observe(code);
}

/** Formulas that came to the screen together are asked for together. @type {HTMLElement[]} */
let undrawn = [];
/** @param {HTMLElement} formula */
function draw(formula) {
  formula.classList.add("asked");
  if (undrawn.push(formula) === 1) setTimeout(async () => {
    const [boxes, rest] = [undrawn.slice(0, 100), undrawn.slice(100)];
    undrawn = [];
    for (const each of rest) draw(each);
    const asked = boxes.map((box) => ({ tex: (box.querySelector("code")?.textContent ?? "").slice(0, 2000), display: box.matches(".display") }));
    try {
      const { formulas } = await ask("/api/formulas", { method: "POST", body: JSON.stringify({ formulas: asked }) });
      boxes.forEach((box, at) => {
        if (!formulas[at] || !box.isConnected) return;
        box.append(math(formulas[at]));
        box.classList.add("drawn");
      });
    } catch { /* they can be read as they were written */ }
  });
}

/** @param {Piece} piece @returns {Node} */
function math(piece) {
  if (typeof piece === "string") return document.createTextNode(piece);
  const [name, facts, ...children] = piece;
  const one = document.createElementNS("http://www.w3.org/1998/Math/MathML", /^(math|none|m[a-z]+)$/.test(name) ? name : "mrow");
  for (const [key, value] of Object.entries(facts ?? {})) if (!/^(on|href|src|style|xlink)/.test(key)) one.setAttribute(key, String(value));
  one.append(...children.map(math));
  return one;
}

/** @param {HTMLElement} code */
async function colour(code) {
  const shown = code.querySelector("code");
  const text = shown?.textContent ?? "";
  if (!shown || !drawn || !text || text.length > COLOURED) return;
  let runs;
  try {
    ({ runs } = await ask("/api/highlight", { method: "POST", body: JSON.stringify({ language: code.dataset.language, text }) }));
  } catch { return; } // it can be read without
  if (shown.textContent !== text) return;
  const walker = document.createTreeWalker(shown, NodeFilter.SHOW_TEXT);
  let [piece, at] = [walker.nextNode(), 0];
  for (const [kind, length] of runs) {
    let left = length;
    while (left > 0 && piece) {
      const chars = [.../** @type {Text} */ (piece).data.slice(at, at + 2 * left)].slice(0, left); // characters, as the gateway counts them
      const to = at + chars.join("").length;
      if (kind in drawn) drawn[kind].add(new StaticRange({ startContainer: piece, startOffset: at, endContainer: piece, endOffset: to }));
      left -= chars.length;
      if (to >= /** @type {Text} */ (piece).data.length) [piece, at] = [walker.nextNode(), 0];
      else at = to;
    }
  }
}
