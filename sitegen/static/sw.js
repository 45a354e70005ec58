// Keeps the site for use without a network. Pages come from the network first, files named by content from the cache
// first; a cache belongs to one build, so that nothing of two builds is ever mixed. The build fills in the first lines.
"use strict";
const BUILD = "{build}";
const PAGES = new Set({pages}); // paths below this file's folder
const FILES = new Set({files}); // likewise; what every page may need, kept from the start
const CACHE = `k3-serve-lab ${registration.scope} ${BUILD}`;
// Files of Python are kept unpacked, under their name without the last ending, so that later visits need not unpack.
const PACKED = /^(assets\/runtime\/.*)\.gz$/;
const SLOW_MS = 5000; // a page that is kept is shown when the network takes longer

self.addEventListener("install", (event) => event.waitUntil(install()));
self.addEventListener("activate", (event) => event.waitUntil(activate()));
self.addEventListener("fetch", (event) => {
  const path = ownPath(event.request);
  if (PAGES.has(path)) event.respondWith(page(event, path));
  else if (path && path.startsWith("assets/")) event.respondWith(asset(event.request, path));
});
self.addEventListener("message", (event) => {
  if (event.data.do === "take over") self.skipWaiting();
  else if (event.data.do === "keep") event.waitUntil(keep(event.data.urls));
});

// The path below this file's folder, without what comes after "?"; nothing for what is not ours to answer.
function ownPath({ method, url }) {
  const { scope } = registration;
  if (method !== "GET" || !url.startsWith(scope)) return null;
  const path = url.slice(scope.length).replace(/[?#].*$/, "");
  return path === "" || path.endsWith("/") ? `${path}index.html` : path;
}

// Everything of this build is there before it takes over; what an older one holds under the same name is the same.
async function install() {
  const cache = await caches.open(CACHE);
  for (const path of FILES) await store(cache, path);
  for (const url of await readPages()) {
    const response = await fetch(url, { cache: "no-cache" });
    if (response.ok) await cache.put(url, await plain(response));
  }
}

// Puts a file that is named by content where `caches.match(keyOf(path))` finds it, unless some cache of ours has it.
async function store(cache, path) {
  const key = keyOf(path), held = await caches.match(key);
  if (held) {
    await cache.put(key, held);
    return;
  }
  const response = await fetch(new URL(path, registration.scope), { cache: "force-cache" });
  if (!response.ok) throw new Error(`${response.url}: ${response.status}`);
  await cache.put(key, PACKED.test(path) ? await unpacked(response, path) : response);
}

function keyOf(path) {
  return new URL(path.replace(PACKED, "$1"), registration.scope);
}

// What gzip undoes a file to; some hosts already do when they see the name.
async function unpacked(response, path) {
  const blob = await response.blob(), [first, second] = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  const zipped = first === 0x1f && second === 0x8b;
  const type = path.includes(".wasm.") ? "application/wasm" : "application/octet-stream";
  return new Response(zipped ? blob.stream().pipeThrough(new DecompressionStream("gzip")) : blob,
    { headers: { "content-type": type } });
}

// Pages that were read under an older build: read again, so that they are still there without a network.
async function readPages() {
  const urls = [];
  for (const name of await ownCaches()) {
    const cache = await caches.open(name);
    for (const { url } of await cache.keys()) if (PAGES.has(ownPath({ method: "GET", url }))) urls.push(url);
  }
  return new Set(urls);
}

async function ownCaches() {
  return (await caches.keys()).filter((name) => name.startsWith(`k3-serve-lab ${registration.scope} `));
}

// This build's cache; nothing once a newer build has taken over, which a late answer must not bring back.
async function ownCache() {
  return await caches.has(CACHE) ? caches.open(CACHE) : null;
}

async function activate() {
  for (const name of await ownCaches()) if (name !== CACHE) await caches.delete(name);
  await self.clients.claim();
}

async function page(event, path) {
  const cache = await ownCache(), url = new URL(path, registration.scope);
  const held = cache && await cache.match(url);
  // Asked of the server itself: what the browser keeps for a while may be of an older build.
  const fresh = fetch(event.request.url, { cache: "no-cache" }).then(async (response) => {
    if (!response.ok) return response;
    const answer = await plain(response);
    if (cache) event.waitUntil(cache.put(url, answer.clone()));
    return answer;
  });
  if (!held) return fresh;
  fresh.catch(() => {}); // `held` stands in
  return Promise.race([fresh.catch(() => held), new Promise((resolve) => setTimeout(resolve, SLOW_MS, held))]);
}

async function asset(request, path) {
  if (PACKED.test(path)) return fetch(request); // asked for because it is not kept, or not to be trusted
  const held = await caches.match(keyOf(path));
  if (held) return held;
  const response = await fetch(request);
  const cache = response.ok && await ownCache();
  if (cache) await cache.put(keyOf(path), response.clone()).catch(() => {}); // the disk is full: it is not kept, but shown
  return response;
}

// What a page loaded before this worker was there.
async function keep(urls) {
  const cache = await ownCache();
  for (const url of cache ? urls : []) {
    const path = ownPath({ method: "GET", url });
    if (path && path.startsWith("assets/")) {
      if (!await cache.match(keyOf(path))) await store(cache, path).catch(() => {}); // what is gone stops no other
    } else if (PAGES.has(path) && !await cache.match(keyOf(path))) {
      const response = await fetch(url, { cache: "force-cache" });
      if (response.ok) await cache.put(keyOf(path), await plain(response));
    }
  }
}

// A response that remembers a redirect cannot answer a navigation.
async function plain(response) {
  const type = response.headers.get("content-type") || "text/html";
  return new Response(await response.blob(), { headers: { "content-type": type } });
}
