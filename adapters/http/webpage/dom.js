// Making and finding what is on the screen, and saying it aloud.

import { say } from "./words.js";

/** The element with this id. @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);

/** An element with a class and children; null is no child.
 * @param {string} name @param {string} className @param {...(Node | string | null)} children */
export function node(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  for (const child of children) if (child !== null) made.append(child);
  return made;
}

/** @param {string} label @param {(event: Event) => unknown} action @param {string} [hint] */
export function button(label, action, hint = "") {
  const made = /** @type {HTMLButtonElement} */ (node("button", "", label));
  made.type = "button";
  if (hint) made.title = hint;
  made.addEventListener("click", action);
  return made;
}

/** Says something to whoever listens to the page rather than looks at it. @param {string} words */
export function announce(words) {
  const live = $("live");
  live.append(node("p", "", words));
  while (live.childElementCount > 5) live.firstElementChild.remove();
}

/** Whether a key is the input method's. Safari ends what is composed before it tells of the key that ended it: 229 says whose that was. @param {KeyboardEvent} event */
export const composing = (event) => event.isComposing || event.keyCode === 229;

let closing = 0;
/** Shows a sentence at the foot for some seconds, and says it. @param {string} words */
export function toast(words) {
  $("toast").textContent = words;
  $("toast").hidden = false;
  announce(words);
  clearTimeout(closing);
  closing = setTimeout(() => { $("toast").hidden = true; }, 6000);
}

/** Copies text, also where the page came without HTTPS. @param {string} text @param {HTMLElement} from @param {Node} [shown] */
export async function copy(text, from, shown) {
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    const box = /** @type {HTMLTextAreaElement} */ (node("textarea", "hidden"));
    box.value = text;
    (from.closest("dialog") ?? document.body).append(box);
    box.select();
    try { done = document.execCommand("copy"); } catch { done = false; }
    box.remove();
    from.focus();
  }
  if (!done) {
    if (shown) getSelection()?.selectAllChildren(shown);
    return toast(say("copy.failed"));
  }
  const label = from.textContent;
  from.textContent = say("copied");
  announce(say("copied"));
  setTimeout(() => { from.textContent = label; }, 1500);
}

/** Nothing in the box can be pressed while what was pressed is done. It keeps the focus, which it would lose by being disabled. @param {HTMLElement} box @param {boolean} sleeps */
export function asleep(box, sleeps) {
  for (const each of [box, ...box.children]) if (each instanceof HTMLButtonElement) each.ariaDisabled = sleeps ? "true" : null;
}

/** Whether something in the box can be pressed. @param {HTMLElement} box */
export const free = (box) => ![box, ...box.children].some((each) => each.ariaDisabled);

const STOPS = "a[href], button, input, select, textarea, summary, [tabindex]";

/** One takes the place of the other. The focus stays where it was in it. @param {HTMLElement} before @param {HTMLElement} made */
function replace(before, made) {
  const at = before.contains(document.activeElement) ? [...before.querySelectorAll(STOPS)].indexOf(/** @type {Element} */ (document.activeElement)) : -1;
  before.replaceWith(made);
  if (at >= 0) /** @type {HTMLElement | undefined} */ (made.querySelectorAll(STOPS)[at])?.focus({ preventScroll: true });
}

/** Whoever goes by keys goes on at the message where what they were at is gone. @param {() => void} change */
export function keepingPlace(change) {
  const held = document.activeElement, byKeys = held?.matches(":focus-visible");
  change();
  const left = document.activeElement === held || document.activeElement === document.body; // nothing else has been given the focus
  if (byKeys && left && !held?.checkVisibility()) $("text")?.focus({ preventScroll: true });
}

/** Puts one before another. What has the focus in it keeps it: a browser takes it from whatever is moved. @param {HTMLElement} box @param {HTMLElement} one @param {Element | null} at */
function put(box, one, at) {
  const held = one.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement) : null;
  box.insertBefore(one, at);
  held?.focus({ preventScroll: true });
}

/** Makes the children of a box equal to what is wanted. What is the same stays, with its selection, its focus and what was opened in it.
 * @param {HTMLElement} box
 * @param {{key: string, state: string, make: (before: HTMLElement | null) => HTMLElement}[]} wanted */
export function reconcile(box, wanted) {
  /** @type {Map<string, HTMLElement>} */
  const there = new Map();
  for (const child of /** @type {HTMLElement[]} */ ([...box.children])) there.set(child.dataset.key ?? "", child);
  let at = box.firstElementChild;
  for (const { key, state, make } of wanted) {
    const before = there.get(key) ?? null;
    there.delete(key);
    let shown = before;
    if (before === null || before.dataset.state !== state) {
      shown = make(before);
      shown.dataset.key = key;
      shown.dataset.state = state;
    }
    const made = /** @type {HTMLElement} */ (shown);
    if (before && made !== before) {
      if (at === before) at = made;
      replace(before, made);
    }
    if (made === at) at = made.nextElementSibling;
    else put(box, made, at);
  }
  for (const left of there.values()) left.remove();
}
