// Every word of the page, in one table: the gateway puts in its place what the catalogue of the browser's language says, so a line is a name and its
// words. {names} are filled in. What counts something has two lines, .one and .other; a language has as many as its grammar wants.

const WORDS = {
  "accepted": "Accepted",
  "again": "Regenerate",
  "again.hint": "Has this answered once more; what was there stays as an earlier version",
  "answered": "Answer: {text}",
  "attach": "Attach files: {size} in all",
  "attach.broke": "the connection broke",
  "attach.empty": "{name} is empty, or a folder.",
  "attach.gone": "{name} cannot be read any more.",
  "attach.label": "Files of your message",
  "attach.large": "{name} ({size}) is too large: the files of one message may have {most} in all.",
  "attach.lost": "Its files were lost when the page was loaded again. Attach them once more.",
  "attach.most": "A message takes {n} files.",
  "attach.remove": "Remove {name}",
  "question.answer": "Answer",
  "question.label": "Your answer",
  "question.over": "That is over; no answer is needed any more.",
  "ask.approve.once": "Approve",
  "ask.approve.conversation": "Approve for this conversation",
  "ask.approve.always": "Approve always",
  "ask.deny": "Deny",
  "ask.said": "A tool waits for your decision: {text}",
  "ask.whole": "Show all of it",
  "activity.approval": "waiting for approval",
  "activity.done": "done",
  "activity.failed": "failed",
  "activity.not_run": "not run",
  "activity.running": "running",
  "activity.unsure": "may or may not have run",
  "activity.waiting": "waiting",
  "call.arguments": "Arguments",
  "call.result": "Result",
  "branch": "Branch",
  "branch.done": "This is a conversation of its own, with what was said up to there. The other one stays as it is.",
  "branch.hint": "Begins another conversation with what was said up to here",
  "branch.title": "Branch of “{title}”",
  "cancel": "Cancel",
  "continue": "Continue",
  "continue.hint": "Has the answer go on where it ended",
  "copied": "Copied",
  "copy": "Copy",
  "copy.code": "Copy this code",
  "copy.failed": "This browser does not let the page copy. The text is selected: copy it with your keyboard or your browser's menu.",
  "delete": "Delete …",
  "delete.done": "The conversation “{title}” is deleted.",
  "delete.sure": "Delete it for good",
  "delete.words": "Everything that was said in it and its files are removed. This cannot be undone; export it first if you may need it.",
  "drawer.close": "Hide conversations",
  "drawer.open": "Show conversations",
  "earlier": "Show earlier messages",
  "earlier.none": "This is the beginning of the conversation.",
  "edit": "Edit",
  "edit.hint": "Puts these words into the message box, to be sent in the place of this message",
  "editing": "You are changing an earlier message. What was there stays as an earlier version.",
  "export.json": "Export as JSON",
  "export.markdown": "Export as Markdown",
  "failed": "That did not work: {why}",
  "failed.http": "the gateway answered with HTTP {status}",
  "failed.offline": "the gateway cannot be reached",
  "figures": "{seconds} s · {steps} · {calls}",
  "figures.calls.other": "{n} tool calls",
  "figures.calls.one": "{n} tool call",
  "figures.steps.other": "{n} steps",
  "figures.steps.one": "{n} step",
  "file.store": "⤓ {name}",
  "formula": "Formula",
  "gateway": "outspoken",
  "jump": "Jump to the latest",
  "key.go": "Go on",
  "key.keep": "Keep it in this browser",
  "key.label": "API key",
  "key.later": "Not now",
  "key.needed": "Without a key nothing can be shown or sent. What you write is kept in this browser.",
  "key.again": "Enter a key",
  "key.title": "This gateway needs a key",
  "key.wrong": "This key was not accepted.",
  "link.back": "Connected again.",
  "link.lost": "Connection lost {seconds} s ago; reconnecting …",
  "link.lost.said": "The connection to the gateway is lost. What you send is kept and delivered later.",
  "held": "There is no room for it just now. It is kept, and sent in {seconds} s.",
  "list.empty": "Conversations appear here.",
  "list.failed": "The list cannot be loaded: {why}",
  "list.label": "Conversations",
  "list.more": "Not everything was searched. Add words to find it.",
  "list.nothing": "Nothing found.",
  "list.of": "About this conversation",
  "list.pinned": "pinned",
  "list.search": "Search titles and texts",
  "list.state.queued": "waits",
  "list.state.running": "at work",
  "list.state.waiting_for_approval": "needs your decision",
  "list.title": "Title",
  "list.title.hint": "Leave it empty for the words that the conversation begins with",
  "menu.label": "Commands",
  "message": "Message",
  "message.label": "Your message",
  "model": "Model or agent",
  "more": "Show more ({n} characters)",
  "new": "New conversation",
  "new.title": "New conversation",
  "notify.ask": "Notify me of answers",
  "notify.off": "This browser does not allow notifications for this page.",
  "notify.on": "You are notified when an answer comes while this page is in the background.",
  "picture": "picture on {host}; opens in a new tab",
  "pin": "Pin",
  "queued": "Waiting, place {n} in the queue",
  "region.key": "A key is missing",
  "region.notice": "About this gateway",
  "region.signin": "Signed out",
  "region.storage": "About this browser",
  "region.toast": "What has just happened",
  "remove": "Remove",
  "retry": "Retry",
  "save": "Save",
  "send": "Send",
  "sending": "Sending …",
  "signin.again": "Load the page again",
  "signin.needed": "You are signed out. Load the page again to sign in; what you write is kept in this browser.",
  "settings": "Rename, pin, export, delete",
  "steps": "{n}: {names}",
  "stop": "Stop",
  "storage": "This browser keeps nothing for this page (its storage is blocked or full). Conversations go on, but after a reload this page cannot find them by itself, and a message that is not sent yet is lost with the tab.",
  "said.you": "You:",
  "table": "Table",
  "task.done": "Done",
  "task.open": "To do",
  "undone": "Taken back: {text}",
  "thought": "Reasoning",
  "try.files": "list files",
  "try.files.hint": "Real tools, in a folder of this conversation.",
  "try.help": "help",
  "try.help.hint": "Everything that can be tried.",
  "try.stall": "rehearse stall in tool call",
  "try.stall.hint": "Watch a model stall, and what happens then.",
  "unpin": "Unpin",
  "version.earlier": "Earlier version",
  "version.later": "Later version",
  "version.of": "{n} / {of}",
  "version.said": "Version {n} of {of}: {text}",
  "voice.on": "Your voice is recorded. Press the button again to end it.",
  "voice.record": "Record your voice",
  "voice.refused": "This browser does not let the page use a microphone.",
  "voice.stop": "End the recording",
  "welcome.title": "Ask, and you will hear back.",
  "welcome.words": "Every message here ends in an answer, or in a notice that says what was not done and what you can do next – also when the model stalls, returns nothing, or the gateway is restarted.",
  "why": "Why?",
  "why.none": "Nothing of it is kept any more.",
  "working": "Working …",
};

/** The words of this name, with what is to be filled in. @param {string} name @param {Record<string, string | number>} [facts] */
export function say(name, facts = {}) {
  const words = /** @type {Record<string, string>} */ (WORDS)[name] ?? name;
  return words.replace(/\{(\w+)\}/g, (_, fact) => String(facts[fact] ?? ""));
}

const LANGUAGE = document.documentElement.lang || "en";
const FORMS = new Intl.PluralRules(LANGUAGE);

/** The words for so many. @param {string} name @param {number} n */
export const many = (name, n) => say(`${name}.${FORMS.select(n)}`, { n: number(n) });

/** A number as it is written in the page's language. @param {number} value @param {number} [digits] behind the point */
export const number = (value, digits = 0) =>
  value.toLocaleString(`${LANGUAGE}-u-nu-latn`, { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** A time as one says it now: of another day with the day; or all of it. @param {Date} at @param {boolean} [whole] */
export function moment(at, whole = false) {
  const today = at.toDateString() === new Date().toDateString();
  /** @type {Intl.DateTimeFormatOptions} */
  const day = whole ? { dateStyle: "full", timeStyle: "medium" } : { hour: "numeric", minute: "2-digit", ...(today ? {} : { day: "numeric", month: "short" }), ...(at.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" }) };
  return at.toLocaleString(`${LANGUAGE}-u-nu-latn`, day);
}

/** Fills in the words of the page itself: data-say is its text, data-label its name for screen readers. @param {ParentNode} root */
export function fill(root) {
  for (const each of root.querySelectorAll("[data-say]")) each.textContent = say(/** @type {HTMLElement} */ (each).dataset.say ?? "");
  for (const each of root.querySelectorAll("[data-label]")) each.setAttribute("aria-label", say(/** @type {HTMLElement} */ (each).dataset.label ?? ""));
  for (const each of root.querySelectorAll("[data-hint]")) each.setAttribute("placeholder", say(/** @type {HTMLElement} */ (each).dataset.hint ?? ""));
}
