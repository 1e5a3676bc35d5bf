// A turn on the screen: what was said, what is done about it, what came of it.

import { readButton } from "./aloud.js";
import { announce, asleep, button, copy, free, node, reconcile } from "./dom.js";
import { fileNode } from "./files.js";
import { ask } from "./net.js";
import { many, moment, number, say } from "./words.js";
import { colours, patched, plain, update, words } from "./written.js";

/** @typedef {{key: string, kind: string, text: string, final: boolean, tool: string, state: string, seconds: number, call: string, whole: string, change: string, actions: string[], options?: string[], offers: string[], file?: string, arguments?: string, result?: string, pieces?: import("./written.js").Piece[]}} Bubble */
/** @typedef {{key: string, order: number, state: string, person: string, turn: string, position: number, brought?: string[], bubbles: Bubble[], exit: string, at: number, summary: {seconds: number, steps: number, tool_calls: number} | null, undone: boolean, hidden: boolean, versions: string[], thoughts?: [string, string][]}} Turn */
/** @typedef {{say: (text: string) => void, edit: (text: string, turn: string) => void, redo: (turn: string, text: string) => void, show: (turn: string, from: HTMLElement) => void, branch: (turn: string) => void, decide: (turn: string, call: string, approve: boolean, lasts: string) => Promise<{done: boolean, words: string}>, answer: (turn: string, call: string, words: string) => Promise<{done: boolean, words: string}>, place: (file: string) => string, brought: (key: string, n: number) => string, again: () => void}} Doing */

const STATUS_MS = 2000; // so long what is told of a stall can be read
const MARKS = /** @type {Record<string, string>} */ ({ waiting: "·", approval: "?", running: "●", done: "✓", failed: "✕", not_run: "–", unsure: "?" });
const TEXTS = ["answer", "interim", "partial"];

/** @param {string} said @returns {(Node | string)[]} */
export const text = (said) => (said.length > 4000 ? [plain(said)] : words(said));

/** A message as it is now: what came of it, and what it was before where that has not changed. @param {any} came @param {Turn | undefined} before @returns {Turn} */
export function merged(came, before) {
  const bubbles = came.bubbles.map((/** @type {any} */ news) => {
    const was = before?.bubbles.find((b) => b.key === news.key);
    const { patch, ...said } = news;
    const now = "kind" in said ? said : was;
    return patch ? { ...now, pieces: patched(was?.pieces ?? [], patch) } : was === now ? was : { ...now, pieces: was?.pieces };
  });
  return { ...came, person: came.person ?? before?.person ?? "", bubbles, thoughts: thoughtsOf(before?.thoughts ?? [], came.thought ?? []) };
}

/** What was thought, and what has been thought since, each with the bubble behind which it was. @param {[string, string][]} before @param {[string, string][]} came @returns {[string, string][]} */
function thoughtsOf(before, came) {
  const all = [...before];
  for (const [behind, words] of came) {
    const last = all.at(-1);
    if (last && last[0] === behind) all[all.length - 1] = [behind, last[1] + words];
    else all.push([behind, words]);
  }
  return all;
}

/** What was told of a stall, and until when it stays. @type {Map<string, {text: string, since: number}>} */
const told = new Map();

/** The item of a turn; `before` is made equal to it if there is one.
 * @param {Turn} turn @param {HTMLElement | null} before @param {Doing | null} doing Null: it is there to be read. */
export function turnNode(turn, before, doing) {
  const item = before ?? node("li", "turn");
  /** @type {{key: string, state: string, make: (before: HTMLElement | null) => HTMLElement}[]} */
  const parts = turn.person ? [{ key: "person", state: JSON.stringify([turn.person, turn.brought, turn.state === "closed", turn.undone, turn.versions]), make: (was) => personNode(turn, doing, was) }] : [];
  if (turn.state === "queued") {
    const place = say("queued", { n: turn.position });
    parts.push({ key: "hint", state: place, make: () => node("div", "hint", place) });
  }
  /** @type {Bubble[]} */
  let steps = [];
  const flush = () => {
    if (!steps.length) return;
    const [mine, closed] = [steps, turn.state === "closed"];
    parts.push({ key: `steps-${mine[0].key}`, state: JSON.stringify([mine, closed]), make: (was) => stepsNode(mine, closed, was) });
    steps = [];
  };
  /** @param {string} behind */
  const thought = (behind) => {
    for (const [place, words] of turn.thoughts ?? []) {
      if (place !== behind) continue;
      flush();
      parts.push({ key: `thought-${place}`, state: String(words.length), make: (was) => thoughtNode(words, was) });
    }
  };
  thought("");
  let last = "";
  for (const bubble of turn.bubbles) {
    if (last) thought(last);
    last = bubble.key;
    if (bubble.kind === "activity") { steps.push(bubble); continue; }
    flush();
    if (bubble.kind === "status") continue;
    const kind = TEXTS.includes(bubble.kind) ? "text" : bubble.kind;
    const state = kind === "text" ? textState(bubble) : JSON.stringify([bubble.text, bubble.kind === "question" && bubble.final, bubble.whole, bubble.actions, turn.turn]);
    parts.push({ key: `${kind}-${bubble.key}`, state, make: (was) => bubbleNode(bubble, turn, was, doing) });
  }
  flush();
  if (last) thought(last);
  const status = statusOf(turn, doing);
  const over = status !== "" && status !== say("working") && !turn.bubbles.some((b) => b.kind === "status");
  if (status) parts.push({ key: "status", state: `${status}${over}${turn.state}`, make: (was) => statusNode(status, over ? (turn.state === "closed" ? "past" : "status past") : "status", was) });
  const answer = saidIn(turn);
  if (doing && turn.summary) parts.push({ key: "figures", state: JSON.stringify([turn.summary, answer, turn.undone, turn.versions]), make: () => footNode(turn, answer, doing) });
  reconcile(turn.undone ? folded(item, turn) : item, parts);
  return item;
}

/** What the model said: its answer; of one that ended on its way, how far it came. @param {Turn} turn */
function saidIn(turn) {
  const answers = turn.bubbles.filter((b) => b.kind === "answer");
  return (answers.length ? answers : turn.bubbles.filter((b) => TEXTS.includes(b.kind))).map((b) => b.text).join("\n\n");
}

/** Where a turn stands that was taken back: it can be opened, and is in nobody's way. @param {HTMLElement} item @param {Turn} turn */
function folded(item, turn) {
  const there = item.querySelector(":scope > .undone > div");
  if (there) return /** @type {HTMLElement} */ (there);
  const inside = node("div", "");
  const short = turn.person.length > 60 ? `${turn.person.slice(0, 60)} …` : turn.person;
  item.replaceChildren(node("details", "undone", node("summary", "", say("undone", { text: short })), inside));
  return inside;
}

/** What is told of a turn that runs. What was told of a stall stays for a moment when it is over. @param {Turn} turn @param {Doing | null} doing */
function statusOf(turn, doing) {
  const status = turn.bubbles.find((b) => b.kind === "status")?.text ?? "";
  const now = performance.now();
  const before = told.get(turn.key);
  if (status) {
    const same = before && before.text.replace(/\d+/g, "") === status.replace(/\d+/g, ""); // only the seconds grow
    told.set(turn.key, { text: status, since: same ? before.since : now });
    return status;
  }
  if (before) {
    const rest = STATUS_MS - (now - before.since);
    if (rest > 0) {
      if (doing) setTimeout(doing.again, rest + 20);
      return before.text;
    }
    told.delete(turn.key);
  }
  const waits = turn.state === "open" && !turn.bubbles.some((b) => b.kind === "approval" || (b.kind === "question" && !b.final));
  return waits ? say("working") : "";
}

/** For how long still what is told of this turn has to stay, so that it is shown again. @param {Turn} turn */
export const lingers = (turn) => told.has(turn.key);

/** @param {string} status @param {string} className `past`: it is not so any more, and can still be read. @param {HTMLElement | null} was */
function statusNode(status, className, was) {
  const made = was ?? node("div", "");
  made.className = className;
  made.textContent = status;
  return made;
}

/** What was said, without the lines that name the files which stand below it. @param {Turn} turn */
export function wordsOf(turn) {
  const lines = turn.person.split("\n"), names = turn.brought ?? [];
  const named = names.length && names.every((name, n) => lines[lines.length - names.length + n] === `📎 ${name}`);
  return named ? lines.slice(0, -names.length).join("\n") : turn.person;
}

/** What was said stays in its place, with what is selected in it, where only the buttons are others. @param {Turn} turn @param {Doing | null} doing @param {HTMLElement | null} was */
function personNode(turn, doing, was) {
  const kept = was?.dataset.said === turn.person && was.dataset.files === `${turn.brought?.length ?? 0}` ? /** @type {HTMLElement | null} */ (was.querySelector(".person")) : null;
  const over = turn.state === "closed"; // before that nothing can take its place: both would be answered
  const spoken = wordsOf(turn), said = kept ?? node("div", "person", ...text(spoken));
  said.hidden = !spoken.trim();
  said.dir = "auto";
  const acts = node("div", "acts", timeNode(turn),
    button(say("copy"), (event) => copy(spoken, /** @type {HTMLElement} */ (event.currentTarget), said)),
    ...(doing ? [over ? button(say("edit"), () => doing.edit(spoken, turn.undone ? "" : turn.turn), say("edit.hint")) : "", versionsNode(turn, doing) ?? ""] : []));
  if (was && kept) {
    was.querySelector(".acts")?.replaceWith(acts);
    return was;
  }
  const files = doing ? (turn.brought ?? []).map((name, n) => fileNode(doing.brought(turn.key, n), name)) : [];
  const mine = node("div", "mine", node("span", "hidden", say(doing ? "said.you" : "said.person")), said, ...files, acts);
  mine.dataset.said = turn.person;
  mine.dataset.files = `${files.length}`;
  return mine;
}

/** When it was said. @param {Turn} turn */
function timeNode(turn) {
  const at = new Date(turn.at);
  const made = /** @type {HTMLTimeElement} */ (node("time", "", moment(at)));
  made.dateTime = at.toISOString();
  made.title = moment(at, true);
  return made;
}

/** The arrows between the versions of a message, if there are several. @param {Turn} turn @param {Doing} doing */
function versionsNode(turn, doing) {
  const place = turn.versions.indexOf(turn.turn), of = turn.versions.length;
  if (place < 0 || of < 2) return null;
  /** @param {string} sign @param {string} name @param {string | undefined} to */
  const arrow = (sign, name, to) => {
    const made = button(sign, () => doing.show(to ?? "", made), say(name));
    made.setAttribute("aria-label", say(name));
    made.className = name.replace(".", "-");
    made.disabled = !to;
    return made;
  };
  return node("span", "versions", arrow("‹", "version.earlier", turn.versions[place - 1]), node("span", "", say("version.of", { n: place + 1, of })), arrow("›", "version.later", turn.versions[place + 1]));
}

/** @param {Bubble} bubble @param {Turn} turn @param {HTMLElement | null} was @param {Doing | null} doing */
function bubbleNode(bubble, turn, was, doing) {
  if (bubble.kind === "mended") return mendedNode(bubble, turn);
  if (bubble.kind === "notice" || bubble.kind === "note") return noticeNode(bubble, turn, doing);
  if (doing && bubble.kind === "approval") return reworded(was, bubble) ?? approvalNode(bubble, turn, doing);
  if (bubble.kind === "decided") return node("div", "mended", bubble.text);
  if (doing && bubble.kind === "question") return reworded(was, bubble) ?? questionNode(bubble, turn, doing);
  if (bubble.kind === "file") return doing && bubble.file ? fileNode(doing.place(bubble.file), bubble.text) : node("div", "bubble file", ...text(bubble.text));
  const box = was ?? node("div", "");
  box.className = `bubble ${bubble.kind}`;
  const pieces = bubble.pieces ?? [];
  update(box, shown.get(box) ?? [], pieces);
  shown.set(box, pieces);
  if (bubble.final) colours(box);
  return box;
}

/** Which pieces a box shows. @type {WeakMap<HTMLElement, import("./written.js").Piece[]>} */
const shown = new WeakMap();
/** A name for the pieces of a text, another one whenever they are others. @type {WeakMap<object, number>} */
const names = new WeakMap();
let named = 0;
/** @param {Bubble} bubble */
function textState(bubble) {
  const pieces = bubble.pieces ?? [];
  if (!names.has(pieces)) names.set(pieces, (named += 1));
  return `${bubble.kind} ${bubble.final} ${names.get(pieces)}`;
}

/** @param {Turn} turn @param {string} answer @param {Doing} doing */
function footNode(turn, answer, doing) {
  const { seconds, steps, tool_calls } = /** @type {NonNullable<Turn["summary"]>} */ (turn.summary);
  const figures = say("figures", { seconds: number(seconds, 1), steps: many("figures.steps", steps), calls: many("figures.calls", tool_calls) });
  const foot = node("div", "foot", turn.person ? null : timeNode(turn), node("span", "figures", figures));
  if (answer) foot.append(button(say("copy"), (event) => {
    const from = /** @type {HTMLElement} */ (event.currentTarget);
    const shown = from.closest(".turn")?.querySelector(".answer, .partial, .interim");
    copy(answer, from, shown ?? undefined);
  }), readButton(turn.key) ?? "");
  if (turn.turn && !turn.undone) {
    if (turn.person.trim()) foot.append(button(say("again"), () => doing.redo(turn.turn, ""), say("again.hint")));
    foot.append(button(say("branch"), () => doing.branch(turn.turn), say("branch.hint")), versionsNode(turn, doing) ?? "");
    if (turn.bubbles.some((b) => b.kind === "answer") && !turn.bubbles.some((b) => b.actions.includes("continue"))) {
      const on = button(say("continue"), () => { if (free(on)) doing.say("continue"); asleep(on, true); }, say("continue.hint"));
      on.className = "goon";
      foot.append(on);
    }
  }
  return foot;
}

/** @param {Bubble[]} bubbles @param {boolean} closed @param {HTMLElement | null} was */
function stepsNode(bubbles, closed, was) {
  const rows = bubbles.map((b) => ({ key: b.key, state: JSON.stringify(b), make: (/** @type {HTMLElement | null} */ before) => activityNode(b, before) }));
  if (!closed) {
    const open = was?.tagName === "DIV" ? was : node("div", "steps open");
    reconcile(open, rows);
    return open;
  }
  const names = [...new Set(bubbles.map((b) => b.tool))].join(", ");
  const made = /** @type {HTMLDetailsElement} */ (node("details", "steps", node("summary", "", say("steps", { n: many("figures.calls", bubbles.length), names }))));
  const list = node("div", "");
  reconcile(list, rows);
  made.append(list);
  made.open = was instanceof HTMLDetailsElement ? was.open : bubbles.some((b) => b.state !== "done");
  return made;
}

/** What the model thought: folded, as it is no answer. @param {string} words @param {HTMLElement | null} was */
function thoughtNode(words, was) {
  const made = was ?? node("details", "thought", node("summary", "", say("thought")), node("div", ""));
  const shown = /** @type {HTMLElement} */ (made.lastElementChild);
  const fill = () => { if (/** @type {HTMLDetailsElement} */ (made).open) shown.replaceChildren(...text(words)); };
  made.ontoggle = fill;
  shown.dir = "auto";
  fill();
  return made;
}

/** A call's arguments as one reads them. @param {string} written */
function readable(written) {
  try { return JSON.stringify(JSON.parse(written), null, 2); } catch { return written; }
}

/** What a call was given and what it gave. @param {string} name @param {string} shown */
function part(name, shown) {
  const box = node("pre", "", ...text(shown));
  box.tabIndex = 0;
  box.dir = "auto";
  return node("div", "part", node("small", "", say(name)), box);
}

/** A call: its line, and when it is opened all of it. @param {Bubble} b @param {HTMLElement | null} was */
function activityNode(b, was) {
  const line = activityLine(b);
  const given = b.arguments && b.arguments.trim() !== "{}" ? b.arguments : "";
  if (!given && !b.result) return line;
  const made = /** @type {HTMLDetailsElement} */ (node("details", "call"));
  made.append(node("summary", "", line), ...(given ? [part("call.arguments", readable(given))] : []), ...(b.result ? [part("call.result", b.result)] : []));
  made.open = was instanceof HTMLDetailsElement && was.open;
  return made;
}

/** @param {Bubble} b */
function activityLine(b) {
  const mark = node("span", "mark", MARKS[b.state] ?? "·");
  mark.setAttribute("aria-hidden", "true");
  const state = say(`activity.${b.state}`);
  mark.title = state;
  const time = b.state === "running" ? `${b.seconds} s` : b.state === "done" ? "" : state;
  const row = node("div", `activity ${b.state}`, mark, node("strong", "", b.tool), node("span", "args", b.text.slice(b.tool.length)), node("span", "time", time));
  if (!time) row.append(node("span", "hidden", state));
  return row;
}

/** The story of a turn, put beneath a box when it is asked for. @param {HTMLElement} box @param {Turn} turn */
function whyButton(box, turn) {
  const why = button(say("why"), async () => {
    if (!free(why)) return;
    asleep(why, true);
    try {
      const { lines } = await ask(`/api/turns/${turn.turn}/why`);
      const list = node("ul", "why", .../** @type {string[]} */ (lines.length ? lines : [say("why.none")]).map((line) => node("li", "", line)));
      box.append(list);
      announce(list.textContent ?? "");
    } catch (error) {
      asleep(why, false);
      announce(say("failed", { why: /** @type {Error} */ (error).message }));
    }
  });
  return why;
}

/** @param {Bubble} bubble @param {Turn} turn */
function mendedNode(bubble, turn) {
  const box = node("div", "mended", node("span", "", `✓ ${bubble.text} `));
  if (turn.turn) box.append(whyButton(box, turn));
  return box;
}

/** @param {Bubble} bubble @param {Turn} turn @param {Doing | null} doing */
function noticeNode(bubble, turn, doing) {
  const box = node("div", bubble.kind === "note" ? "notice note" : "notice", node("div", "who", say("gateway")), node("p", "", ...text(bubble.text)));
  const buttons = node("div", "buttons");
  if (!doing) return box;
  if (bubble.actions.includes("continue")) buttons.append(button(say("continue"), () => doing.say("continue")));
  if (bubble.actions.includes("retry")) buttons.append(button(say("retry"), () => {
    if (turn.turn && turn.person.trim() && !turn.undone) doing.redo(turn.turn, ""); // with its files, and once, as everywhere
    else doing.say(wordsOf(turn));
  }));
  if (bubble.actions.includes("why")) buttons.append(whyButton(box, turn));
  if (buttons.childElementCount) box.append(buttons);
  return box;
}

/** Why somebody's word did not count, by the call; the question itself is drawn anew as its time goes by. @type {Map<string, string>} */
const refused = new Map();

/** A text in which the lines of a diff are marked. @param {string} text */
function diffNode(text) {
  const box = node("pre", "diff", ...text.split("\n").map((line) => node("span", line.startsWith("+") ? "more" : line.startsWith("-") ? "less" : "", `${line}\n`)));
  box.dir = "ltr"; // as code is: its signs stand before the lines, in every language
  return box;
}

/** The same question, in which only words have changed (how long there is to decide): what was opened, typed and focused in it stays. Null if it is another one. @param {HTMLElement | null} was @param {Bubble} bubble */
function reworded(was, bubble) {
  if (!was || was.dataset.asks !== asks(bubble)) return null;
  const now = askedNodes(bubble), there = was.querySelectorAll(":scope > .asked, :scope > .diff");
  if (now.length !== there.length) return null;
  there.forEach((one, n) => { if (one.textContent !== now[n].textContent) one.replaceWith(now[n]); });
  return was;
}

/** What there is to a question beside its words. @param {Bubble} bubble */
const asks = (bubble) => JSON.stringify([bubble.kind, bubble.call, bubble.final, bubble.whole, bubble.offers, bubble.options]);

/** @param {Bubble} bubble @param {HTMLElement[]} children */
function askingNode(bubble, ...children) {
  const box = node("div", bubble.kind === "question" && !bubble.final ? "approval question" : "approval", ...children);
  box.dataset.asks = asks(bubble);
  return box;
}

/** What is asked, with what would change as a block of its own. @param {Bubble} bubble */
function askedNodes(bubble) {
  const at = bubble.change ? bubble.text.indexOf(`\n${bubble.change}\n`) : -1;
  if (at < 0) return [node("p", "asked", bubble.text)];
  const [counts, ...lines] = bubble.change.split("\n");
  const behind = bubble.text.slice(at + bubble.change.length + 2);
  return [node("p", "asked", `${bubble.text.slice(0, at)}\n${counts}`), diffNode(lines.join("\n")), node("p", "asked", behind)];
}

/** @param {Bubble} bubble @param {Turn} turn @param {Doing} doing */
function approvalNode(bubble, turn, doing) {
  const all = bubble.whole ? node("details", "", node("summary", "", say("ask.whole")), node("pre", "", plain(bubble.whole))) : null;
  const buttons = node("div", "buttons"), wrong = node("p", "wrong", refused.get(bubble.call) ?? "");
  /** @param {boolean} approve @param {string} lasts */
  const answer = async (approve, lasts) => {
    if (!free(buttons)) return;
    asleep(buttons, true);
    try {
      const told = await doing.decide(turn.turn, bubble.call, approve, lasts);
      if (told.done) return;
      refused.set(bubble.call, told.words);
    } catch (error) {
      refused.set(bubble.call, say("failed", { why: /** @type {Error} */ (error).message }));
    }
    wrong.textContent = refused.get(bubble.call) ?? "";
    announce(wrong.textContent);
    asleep(buttons, false);
  };
  const deny = button(say("ask.deny"), () => answer(false, "once"));
  deny.className = "deny";
  buttons.append(...bubble.offers.map((lasts) => button(say(`ask.approve.${lasts || "once"}`), () => answer(true, lasts || "once"))), deny);
  return askingNode(bubble, ...askedNodes(bubble), ...(all ? [all] : []), buttons, wrong);
}

/** What a tool asks the person. @param {Bubble} bubble @param {Turn} turn @param {Doing} doing */
function questionNode(bubble, turn, doing) {
  const asked = askedNodes(bubble);
  if (bubble.final) return askingNode(bubble, ...asked);
  const wrong = node("p", "hint", "");
  /** @param {string} words */
  const answer = async (words) => {
    try {
      const told = await doing.answer(turn.turn, bubble.call, words);
      wrong.textContent = told.done ? told.words : say("question.over");
    } catch (error) {
      wrong.textContent = say("failed", { why: /** @type {Error} */ (error).message });
    }
    announce(wrong.textContent);
  };
  const field = /** @type {HTMLInputElement} */ (node("input", ""));
  field.setAttribute("aria-label", say("question.label"));
  const form = node("form", "buttons", field, ...(bubble.options ?? []).map((words) => button(words, () => answer(words))));
  form.append(button(say("question.answer"), () => answer(field.value)));
  form.addEventListener("submit", (event) => { event.preventDefault(); answer(field.value); });
  return askingNode(bubble, ...asked, form, wrong);
}

/** What of a turn is said aloud, given how it was before. @param {Turn} turn @param {Turn | undefined} before */
export function sayNews(turn, before) {
  /** @param {Turn | undefined} of @param {string[]} kinds */
  const texts = (of, ...kinds) => (of?.bubbles ?? []).filter((b) => kinds.includes(b.kind)).map((b) => b.text);
  for (const words of texts(turn, "question")) if (!texts(before, "question").includes(words)) announce(say("ask.said", { text: words }));
  const asked = (before?.bubbles ?? []).filter((b) => b.kind === "approval").map((b) => b.key);  // its text says how much time is left
  for (const b of turn.bubbles) if (b.kind === "approval" && !asked.includes(b.key)) announce(say("ask.said", { text: b.text }));
  for (const words of texts(turn, "notice", "note")) if (!texts(before, "notice", "note").includes(words)) announce(words);
  for (const words of texts(turn, "mended")) if (!texts(before, "mended").includes(words)) announce(words);
  const status = texts(turn, "status")[0];
  if (status && !texts(before, "status").length) announce(status);
  if (turn.state === "closed" && before?.state !== "closed") {
    const answer = texts(turn, "answer").join(" ");
    if (answer) announce(say("answered", { text: answer.length > 2000 ? `${answer.slice(0, 2000)} …` : answer }));
  }
}
