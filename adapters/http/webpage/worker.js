// Keeps the page's own files, so that it opens without a connection. Nothing that was said is ever kept here.

const SHELF = "shell-5";
const SHELL = ["/", ...["page.css", "page.js", "aloud.js", "attach.js", "dom.js", "files.js", "list.js", "menu.js", "net.js", "prefer.js", "store.js", "theme.js", "turns.js", "unsent.js", "voice.js", "words.js", "written.js", "icon.svg", "app.webmanifest"].map((name) => `/static/${name}`)];
const PATIENCE_MS = 4000;
const worker = /** @type {any} */ (self);

worker.addEventListener("install", (/** @type {any} */ event) => {
  event.waitUntil(caches.open(SHELF).then((shelf) => shelf.addAll(SHELL)).then(() => worker.skipWaiting()));
});

worker.addEventListener("activate", (/** @type {any} */ event) => {
  event.waitUntil(caches.keys().then((names) => Promise.all(names.filter((name) => name !== SHELF).map((name) => caches.delete(name)))));
});

// What the gateway has now comes first; what was kept only where the gateway cannot be reached.
worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== location.origin || !SHELL.includes(url.pathname)) return;
  event.respondWith((async () => {
    const shelf = await caches.open(SHELF);
    try {
      const fresh = await fetch(event.request, { signal: AbortSignal.timeout(PATIENCE_MS) });
      if (fresh.ok) await shelf.put(url.pathname, fresh.clone());
      return fresh;
    } catch (error) {
      const kept = await shelf.match(url.pathname);
      if (kept) return kept;
      throw error;
    }
  })());
});

worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
  event.notification.close();
  const address = `/#${event.notification.tag}`;
  event.waitUntil(worker.clients.matchAll({ type: "window" }).then((/** @type {any[]} */ open) => {
    const there = open.find((one) => new URL(one.url).hash === `#${event.notification.tag}`) ?? open[0];
    return there ? there.focus() : worker.clients.openWindow(address);
  }));
});
