// A conversation that somebody shows by a link, to be read. What opens it stands behind the "#" of the address, which no server is told.

import { $ } from "./dom.js";
import { NoKey, ask, enough, whenKeyIsGiven } from "./net.js";
import { turnNode } from "./turns.js";
import { fill, moment, say } from "./words.js";

/** @typedef {{number: number, at: number, person: string, bubbles: {key: string, kind: string, text: string, tool: string, state: string, nodes: import("./written.js").Piece[]}[]}} Message */

let behind = 0;
let asked = 0;

/** A message as the chat has it, with nothing that could be done about it. @param {Message} message @returns {import("./turns.js").Turn} */
function turnOf({ number, at, person, bubbles }) {
  const nothing = { final: true, seconds: 0, call: "", whole: "", change: "", actions: [], offers: [] };
  return {
    key: `${number}`, order: number, state: "closed", person, turn: "", position: 0, exit: "", at, summary: null, undone: false, hidden: false, versions: [],
    bubbles: bubbles.map(({ nodes, ...bubble }) => ({ ...nothing, ...bubble, pieces: nodes })),
  };
}

async function more() {
  const [first, look] = [behind === 0, (asked += 1)];
  $("later").disabled = true;
  try {
    const shown = await ask("/api/shared", { method: "POST", body: JSON.stringify({ link: location.hash.slice(1), behind }) });
    if (look !== asked) return;
    enough(true); // colours and formulas are for those who may do more here; without, it can be read as it was written
    const items = /** @type {Message[]} */ (shown.messages).map((message) => turnNode(turnOf(message), null, null));
    $("turns").append(...items);
    behind = shown.messages.at(-1)?.number ?? behind;
    $("later").hidden = !shown.more;
    if (shown.title) $("title").textContent = shown.title;
    document.title = `${$("title").textContent} – outspoken`;
    $("words").textContent = say("shared.words", { when: moment(new Date(shown.at)) });
    const next = items[0];
    if (!first && next) { next.tabIndex = -1; next.focus(); }
  } catch (error) {
    if (look === asked && !(error instanceof NoKey)) $("words").textContent = /** @type {Error} */ (error).message;
  } finally { $("later").disabled = false; }
}

/** What the address names is shown from its beginning. */
function open() {
  behind = 0;
  enough(false);
  $("turns").replaceChildren();
  $("later").hidden = true;
  $("title").textContent = say("shared.title");
  more();
}

fill(document);
$("later").addEventListener("click", more);
whenKeyIsGiven(open);
addEventListener("hashchange", open);
open();
