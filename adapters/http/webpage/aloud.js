// An answer read aloud, by the voices that the browser has.

import { button, toast } from "./dom.js";
import { say } from "./words.js";

const can = "speechSynthesis" in window;
const PIECE = 200; // some browsers fall silent in the middle of what is longer
/** How letters tell a language, where they do. @type {[RegExp, string][]} */
const LETTERS = [[/[\u3040-\u30ff]/, "ja"], [/[\uac00-\ud7af]/, "ko"], [/[\u4e00-\u9fff]/, "zh"], [/[\u0600-\u06ff]/, "ar"], [/[\u0590-\u05ff]/, "he"], [/[\u0900-\u097f]/, "hi"], [/[\u0400-\u04ff]/, "ru"], [/[\u0370-\u03ff]/, "el"]];
/** And the small words of those that share theirs. @type {[RegExp, string][]} */
const SMALL = [[/\b(the|and|of|is|to|you)\b/gi, "en"], [/\b(der|die|und|ist|nicht|das)\b/gi, "de"], [/\b(le|les|et|est|des|une)\b/gi, "fr"], [/\b(el|los|y|es|una|que)\b/gi, "es"], [/\b(o|os|e|uma|não|que)\b/gi, "pt"]];

/** Which turn is being read. */
let read = "";

/** In which language a text seems to be. @param {string} words */
function tongue(words) {
  const piece = words.slice(0, 2000), letters = piece.match(/\p{L}/gu)?.length ?? 0;
  const found = LETTERS.find(([those]) => (piece.match(new RegExp(those, "g"))?.length ?? 0) > letters / 5);
  if (found) return found[1];
  const [most] = SMALL.map(([those, name]) => ({ name, n: piece.match(those)?.length ?? 0 })).sort((a, b) => b.n - a.n);
  return most.n ? most.name : document.documentElement.lang;
}

/** What can be spoken at once, in order. @param {string} words */
function pieces(words) {
  const found = [""];
  for (const part of words.match(/[^.!?。！？؟।\n]+[.!?。！？؟।\n]*|[.!?。！？؟।\n]+/g) ?? []) {
    for (let rest = part; rest; rest = rest.slice(PIECE)) {
      if (found[found.length - 1].length + rest.length > PIECE) found.push("");
      found[found.length - 1] += rest.slice(0, PIECE);
    }
  }
  return found.filter((one) => /[\p{L}\p{N}]/u.test(one));
}

/** What an answer says, without what belongs to the page. @param {Element} shown */
function spoken(shown) {
  const copy = /** @type {Element} */ (shown.cloneNode(true));
  for (const each of copy.querySelectorAll("button, .codehead, .hidden")) each.remove();
  for (const each of copy.querySelectorAll("p, li, h1, h2, h3, h4, h5, h6, pre, td, th, blockquote")) each.append("\n");
  return copy.textContent ?? "";
}

/** @param {string} turn */
function now(turn) {
  read = turn;
  for (const each of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-read]"))) each.textContent = say(each.dataset.read === turn ? "read.stop" : "read");
}

export function quiet() {
  if (!read) return;
  now("");
  speechSynthesis.cancel();
}

/** The button that begins and ends it; null if the browser cannot. @param {string} turn */
export function readButton(turn) {
  if (!can) return null;
  const made = button(say(read === turn ? "read.stop" : "read"), () => {
    const again = read === turn;
    quiet();
    if (again) return;
    const words = [...(made.closest(".turn")?.querySelectorAll(".answer, .partial, .interim") ?? [])].map(spoken).join("\n");
    const language = tongue(words), parts = pieces(words);
    if (!parts.length) return;
    now(turn);
    const voice = speechSynthesis.getVoices().find((one) => one.lang.toLowerCase().startsWith(language));
    parts.forEach((part, n) => {
      const said = new SpeechSynthesisUtterance(part);
      said.lang = voice?.lang ?? language;
      if (voice) said.voice = voice;
      said.onend = () => { if (read === turn && n === parts.length - 1) now(""); };
      said.onerror = ({ error }) => {
        if (read !== turn || error === "interrupted" || error === "canceled") return;
        quiet();
        toast(say("read.none"));
      };
      speechSynthesis.speak(said);
    });
  });
  made.dataset.read = turn;
  return made;
}

addEventListener("pagehide", quiet);
