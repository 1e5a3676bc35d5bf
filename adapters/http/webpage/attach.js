// Files that go along with a message: chosen, pasted or dropped; shown with their sizes, and removable until the message is sent.

import { number, say } from "./words.js";

const MB = 1024 * 1024;
const MOST = 10;

const made = (name, className, text = "") => {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.textContent = text;
  return node;
};

const STILL_MS = 30_000; // nothing goes any more, and nothing comes: the connection is gone, though nobody says so
const ANSWER_MS = 500; // so long another page may take to say that it has a file
const LONG = 50_000; // characters: what is pasted in such a length goes along as a file
const TURNS = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g; // a name with one of these would be shown as another

const size = (bytes) => (bytes < 1024 ? `${number(bytes)} B` : bytes < MB ? `${number(bytes / 1024)} KB` : `${number(bytes / MB, 1)} MB`);

const encoded = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onerror = () => reject(new Error(say("attach.gone", { name: file.name })));
  reader.onload = () => resolve({ name: file.name, data: reader.result.replace(/^data:(;base64)?,/, "data:application/octet-stream;base64,") });
  reader.readAsDataURL(file);
});

/** What a gateway would answer that does not take it. */
const refused = (message) => new Response(JSON.stringify({ error: { message } }), { status: 410 });

/** When it may be tried again, as the answer says. */
const retryOf = (request) => { const after = request.getResponseHeader("Retry-After"); return after ? { "Retry-After": after } : {}; };

/** A paper clip, drawn: not every machine has a font with one. */
function clip() {
  const [drawn, line] = ["svg", "path"].map((name) => document.createElementNS("http://www.w3.org/2000/svg", name));
  drawn.setAttribute("viewBox", "0 0 24 24");
  drawn.setAttribute("aria-hidden", "true");
  line.setAttribute("d", "M20 11.5l-8.3 8.3a5 5 0 0 1-7.1-7.1l8.6-8.6a3.4 3.4 0 0 1 4.8 4.8l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4l7.6-7.6");
  drawn.append(line);
  return drawn;
}

/** Puts the button before the message's box, and the list of files above it. `changed` is told when there are others. */
export function attaching(form, box, changed) {
  let most = 10 * MB;
  let pending = [];
  const sent = new Map();
  const progress = new Map();
  const shown = made("ul", "files");
  const trouble = made("div", "trouble");
  trouble.setAttribute("role", "alert");
  const above = made("section");
  above.setAttribute("aria-label", say("attach.label"));
  above.append(trouble, shown);
  shown.hidden = true;
  const input = made("input");
  input.type = "file";
  input.multiple = true;
  input.hidden = true;
  const button = made("button", "attach");
  button.type = "button";
  button.append(clip());
  const told = () => { button.title = say("attach", { size: size(most) }); button.setAttribute("aria-label", button.title); };
  told();
  form.prepend(button, input);
  form.before(above);

  function render() {
    shown.replaceChildren(...pending.map((file) => {
      const item = made("li");
      item.append(made("bdi", "", file.name.replace(TURNS, "")), ` (${size(file.size)}) `);
      const remove = made("button", "", "×");
      remove.type = "button";
      remove.setAttribute("aria-label", say("attach.remove", { name: file.name }));
      remove.addEventListener("click", () => { pending = pending.filter((one) => one !== file); trouble.textContent = ""; render(); box.focus(); });
      item.append(remove);
      return item;
    }));
    shown.hidden = pending.length === 0;
    changed();
  }

  function add(files) {
    trouble.textContent = "";
    for (const file of files) {
      const all = pending.reduce((sum, one) => sum + one.size, file.size);
      if (file.size === 0) trouble.textContent = say("attach.empty", { name: file.name });
      else if (all > most) trouble.textContent = say("attach.large", { name: file.name, size: size(file.size), most: size(most) });
      else if (pending.length >= MOST) trouble.textContent = say("attach.most", { n: MOST });
      else pending.push(file);
    }
    render();
  }

  button.addEventListener("click", () => input.click());
  input.addEventListener("change", () => { add(input.files); input.value = ""; box.focus(); });
  box.addEventListener("paste", (event) => {
    const copied = event.clipboardData, text = copied?.getData("text/plain") ?? "";
    const drawn = text && copied?.getData("text/html"); // spreadsheets and word processors add a picture of the words
    const files = copied?.files.length && !drawn ? copied.files : text.length > LONG ? [new File([text], "pasted.txt")] : [];
    if (!files.length) return;
    event.preventDefault();
    add(files);
  });
  const carries = (event) => event.dataTransfer?.types.includes("Files");
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      document.body.classList.toggle("dropping", name === "dragover");
      if (name === "drop") { add(event.dataTransfer.files); box.focus(); }
    });
  }

  // Of the pages of this browser, which share what is not sent yet, one has the files of a message; it is asked for.
  const answers = new Map();
  let others = null;
  try {
    others = new BroadcastChannel("outspoken.files");
    others.onmessage = ({ data: { asked, had } }) => {
      if (asked && sent.has(asked)) others.postMessage({ had: asked });
      if (had) answers.get(had)?.(true);
    };
  } catch { /* a browser that keeps nothing shares nothing */ }

  return {
    /** Whether another page has the files of this message. */
    elsewhere: (id) => !sent.has(id) && others !== null && new Promise((resolve) => {
      answers.set(id, resolve);
      others.postMessage({ asked: id });
      setTimeout(() => resolve(false), ANSWER_MS);
    }),
    limit(bytes) { if (bytes > 0) { most = bytes; told(); } },
    any: () => pending.length > 0,
    add,
    /** The names of the files, which are the message's from now on. */
    take(id) {
      const names = pending.map((file) => file.name);
      if (names.length) sent.set(id, pending);
      pending = [];
      trouble.textContent = "";
      render();
      return names;
    },
    /** How much of a message's files has been sent, in words. */
    progress: (id) => progress.get(id) ?? "",
    forget(id) { sent.delete(id); progress.delete(id); },
    /** The message is not sent: its files go along with the next one. */
    back(id) { const kept = sent.get(id) ?? []; this.forget(id); add(kept); },
    /** Like `fetch`; raises if the connection breaks. */
    async post(path, message, headers, id) {
      const files = sent.get(id);
      if (!files) return refused(say("attach.lost"));
      let read;
      try { read = await Promise.all(files.map(encoded)); } catch (error) { return refused(error.message); } // to try it again would be in vain
      const body = JSON.stringify({ ...message, files: read });
      return new Promise((resolve, reject) => {
        const request = new XMLHttpRequest();
        request.open("POST", path);
        for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
        let late = 0;
        const alive = () => { clearTimeout(late); late = setTimeout(() => request.abort(), STILL_MS); };
        alive();
        request.onprogress = request.upload.onload = alive;
        request.upload.onprogress = (event) => { alive(); progress.set(id, `${Math.round((100 * event.loaded) / event.total)} %`); changed(); };
        request.onload = () => { clearTimeout(late); progress.delete(id); resolve(new Response(request.responseText, { status: request.status, headers: retryOf(request) })); };
        request.onerror = request.onabort = () => { clearTimeout(late); progress.delete(id); reject(new TypeError(say("attach.broke"))); };
        request.send(body);
      });
    },
  };
}
