// How the page looks: as the system wants it, or as its person does. It is loaded before anything is drawn, so that nobody is dazzled at night.

import * as store from "./store.js";

const SCHEMES = ["light", "dark"];
const scheme = /** @type {HTMLMetaElement} */ (document.querySelector('meta[name="color-scheme"]'));
const bars = /** @type {HTMLMetaElement[]} */ ([...document.querySelectorAll('meta[name="theme-color"]')]);
const colours = bars.map((bar) => bar.content);

/** Empty: as the system wants it. @returns {string} */
export const theme = () => store.get("theme", "");

function wear() {
  const worn = SCHEMES.indexOf(theme());
  scheme.content = SCHEMES[worn] ?? SCHEMES.join(" ");
  bars.forEach((bar, n) => { bar.content = colours[worn] ?? colours[n]; });
}

/** @param {string} wanted */
export function wantTheme(wanted) {
  store.set("theme", wanted || null);
  wear();
}

addEventListener("storage", wear);
wear();
