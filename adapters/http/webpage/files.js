// A file that was sent: a picture or a sound in its place, and every one to be stored. What comes is fetched with the key, like all else.

import { announce, button, node } from "./dom.js";
import { call, problem } from "./net.js";
import { say } from "./words.js";

/** Of what types something is shown here; of all others it is only stored. @type {Record<string, "img" | "audio">} */
const SHOWN = {
  "image/png": "img", "image/jpeg": "img", "image/gif": "img", "image/webp": "img",
  "audio/mpeg": "audio", "audio/ogg": "audio", "audio/wav": "audio", "audio/mp4": "audio", "audio/flac": "audio",
};
const ENDINGS = /\.(png|jpe?g|gif|webp|mp3|ogg|oga|opus|wav|m4a|flac)$/i;

/** @param {string} path @returns {Promise<Blob>} */
async function fetched(path) {
  const response = await call(path);
  if (!response.ok) throw new Error(await problem(response));
  return response.blob();
}

/** Has the browser store it. @param {Blob} blob @param {string} name */
function stored(blob, name) {
  const link = /** @type {HTMLAnchorElement} */ (node("a", ""));
  const bare = new Blob([blob], { type: "application/octet-stream" }); // never a page of ours, whatever is in it
  link.href = URL.createObjectURL(bare);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** What is fetched when it comes into sight. @type {WeakMap<Element, () => void>} */
const waiting = new WeakMap();
const sight = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    sight.unobserve(entry.target);
    waiting.get(entry.target)?.();
  }
}, { rootMargin: "400px" });

/** @param {string} path @param {string} name */
export function fileNode(path, name) {
  const wrong = node("p", "wrong", "");
  /** @param {unknown} error */
  const failed = (error) => {
    wrong.textContent = say("failed", { why: /** @type {Error} */ (error).message });
    announce(wrong.textContent);
  };
  const keep = button(say("file.store", { name }), async () => {
    wrong.textContent = "";
    keep.disabled = true;
    try { stored(await fetched(path), name); } catch (error) { failed(error); }
    keep.disabled = false;
  });
  const box = node("div", "bubble file", keep, wrong);
  if (!ENDINGS.test(name)) return box;
  waiting.set(box, async () => {
    try {
      const blob = await fetched(path);
      const shown = SHOWN[blob.type.split(";")[0]];
      if (!shown) return;
      const seen = /** @type {HTMLImageElement | HTMLAudioElement} */ (node(shown, ""));
      seen.src = URL.createObjectURL(blob);
      if (seen instanceof HTMLImageElement) {
        seen.alt = name;
        seen.onload = () => URL.revokeObjectURL(seen.src);
      } else seen.controls = true;
      box.prepend(seen);
    } catch (error) { failed(error); }
  });
  sight.observe(box);
  return box;
}
