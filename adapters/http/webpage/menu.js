// The commands, offered while one is being written: the arrows go through them, Tab or Enter takes one, Escape leaves it.

import { $, composing, node } from "./dom.js";

/** @typedef {{name: string, words: string}} Command */

/** @type {Command[]} */
let known = [];
/** @type {Command[]} */
let shown = [];
let at = 0;

/** @param {Command[]} commands */
export function offer(commands) {
  known = commands ?? [];
}

/** A text as it is meant that begins with a slash: keyboards for Chinese, Japanese and Korean write ／ｓｔｏｐ. @param {string} text */
export const asCommand = (text) => text.replace(/^[/／]\S{0,80}/, (word) => word.normalize("NFKC"));

/** The text is another now. */
export function typed() {
  const found = /^\/([a-z]*)$/i.exec(asCommand($("text").value));
  const before = shown[at]?.name;
  shown = found ? known.filter((one) => one.name.startsWith(found[1].toLowerCase())) : [];
  at = Math.max(0, shown.findIndex((one) => one.name === before));
  show();
}

function show() {
  $("menu").replaceChildren(...shown.map((one, place) => {
    const item = node("li", "", node("strong", "", `/${one.name}`), node("span", "", one.words));
    item.id = `menu-${one.name}`;
    item.role = "option";
    item.ariaSelected = String(place === at);
    item.addEventListener("mousedown", (event) => { event.preventDefault(); take(one); });
    return item;
  }));
  $("menu").hidden = shown.length === 0;
  if (shown.length) $("text").setAttribute("aria-activedescendant", `menu-${shown[at].name}`);
  else $("text").removeAttribute("aria-activedescendant");
  $("menu").children[at]?.scrollIntoView({ block: "nearest" });
}

/** @param {Command} one */
function take(one) {
  $("text").value = `/${one.name} `;
  $("text").dispatchEvent(new Event("input"));
  $("text").focus();
}

/** Whether a key was meant for the menu. @param {KeyboardEvent} event */
export function key(event) {
  if (!shown.length || composing(event)) return false;
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step) at = (at + step + shown.length) % shown.length;
  else if (event.key === "Escape") shown = [];
  else if (event.key === "Tab") take(shown[at]);
  else if (event.key === "Enter" && `/${shown[at].name}` !== asCommand($("text").value)) take(shown[at]);
  else return false;
  event.preventDefault();
  event.stopPropagation();
  show();
  return true;
}
