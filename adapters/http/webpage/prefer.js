// What a person wants of the page and of every answer: how it looks, what the model is told, whether answers are notified.

import { $, announce, toast } from "./dom.js";
import { ask } from "./net.js";
import { theme, wantTheme } from "./theme.js";
import { say } from "./words.js";

/** @param {Error} error */
function wrong(error) {
  $("preferwrong").textContent = say("failed", { why: error.message });
  announce($("preferwrong").textContent);
}

async function shown() {
  const box = $("instructions");
  $("theme").value = theme();
  $("preferwrong").textContent = "";
  box.disabled = true; // until it is known what stands there, nothing can be put in its place
  $("preferences").showModal();
  try {
    box.value = (await ask("/api/instructions")).text;
    box.defaultValue = box.value;
    box.disabled = false;
  } catch (error) { wrong(/** @type {Error} */ (error)); }
}

async function save() {
  const box = $("instructions");
  try {
    if (!box.disabled && box.value !== box.defaultValue) {
      await ask("/api/instructions", { method: "POST", body: JSON.stringify({ text: box.value }) });
      toast(say(box.value.trim() ? "instructions.done" : "instructions.none"));
    }
    $("preferences").close();
  } catch (error) { wrong(/** @type {Error} */ (error)); }
}

/** Makes the dialog work. */
export function preferring() {
  const bell = $("bell");
  $("prefer").addEventListener("click", shown);
  $("preferclose").addEventListener("click", () => $("preferences").close());
  $("theme").addEventListener("change", () => wantTheme($("theme").value));
  $("preferform").addEventListener("submit", (/** @type {Event} */ event) => { event.preventDefault(); save(); });
  bell.hidden = !("Notification" in window && "serviceWorker" in navigator) || Notification.permission === "granted";
  bell.addEventListener("click", async () => {
    const answer = await Notification.requestPermission();
    $("preferences").close(); // what is said beneath it is neither seen nor heard
    toast(say(answer === "granted" ? "notify.on" : "notify.off"));
    bell.hidden = answer !== "default";
  });
}
