// Speaking instead of writing: what is recorded goes along as a file, and is heard on the gateway.

import { $, announce, node, toast } from "./dom.js";
import { say } from "./words.js";

const LONGEST_MS = 10 * 60_000;
const KINDS = ["audio/webm;codecs=opus", "audio/ogg;codecs=opus", "audio/mp4"];
const DRAWN = "M12 3a3 3 0 0 1 3 3v6a3 3 0 0 1-6 0V6a3 3 0 0 1 3-3zM5 11v1a7 7 0 0 0 14 0v-1M12 19v3";

/** Puts the button before the one that sends. `add` takes what was recorded. @param {(files: File[]) => void} add */
export function speaking(add) {
  const kind = "MediaRecorder" in window && /** @type {any} */ (navigator).mediaDevices?.getUserMedia ? KINDS.find((each) => MediaRecorder.isTypeSupported(each)) : "";
  if (!kind) return; // the browser cannot, or the page came without HTTPS
  const button = /** @type {HTMLButtonElement} */ (node("button", "attach voice"));
  const time = node("span", "time");
  const [drawn, line] = ["svg", "path"].map((name) => document.createElementNS("http://www.w3.org/2000/svg", name));
  drawn.setAttribute("viewBox", "0 0 24 24");
  drawn.setAttribute("aria-hidden", "true");
  line.setAttribute("d", DRAWN);
  drawn.append(line);
  button.type = "button";
  button.append(drawn, time);
  /** @type {MediaRecorder | null} */
  let recorder = null;
  const label = () => {
    button.title = say(recorder ? "voice.stop" : "voice.record");
    button.setAttribute("aria-label", `${button.title} ${time.textContent}`.trim());
    button.classList.toggle("on", recorder !== null);
  };
  const begin = async () => {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    /** @type {Blob[]} */
    const pieces = [];
    const began = Date.now();
    const mine = recorder = new MediaRecorder(stream, { mimeType: kind });
    const clock = setInterval(() => {
      const seconds = Math.round((Date.now() - began) / 1000);
      time.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
      label();
      if (Date.now() - began > LONGEST_MS) mine.stop();
    }, 500);
    mine.ondataavailable = ({ data }) => { if (data.size) pieces.push(data); };
    mine.onstop = () => {
      clearInterval(clock);
      for (const track of stream.getTracks()) track.stop();
      recorder = null;
      time.textContent = "";
      label();
      const [type] = kind.split(";");
      if (pieces.length) add([new File(pieces, `voice.${type.slice("audio/".length)}`, { type })]);
      $("text").focus();
    };
    mine.start(1000);
    label();
    announce(say("voice.on"));
  };
  let asking = false;
  button.addEventListener("click", async () => {
    if (recorder) { recorder.stop(); return; }
    if (asking) return;
    asking = true;
    try { await begin(); } catch { toast(say("voice.refused")); } finally { asking = false; }
  });
  label();
  $("send").before(button);
}
