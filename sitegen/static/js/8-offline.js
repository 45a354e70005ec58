// Use without a network, over http: a service worker keeps the site once the first result is drawn, so that keeping
// never competes with loading. Where there is none, or the browser refuses, nothing is lost but that.
const IMAGE_MS = 15_000; // after the first result: by then nothing is loading any more

const offline = {
  asked: false,

  // The worker's own container, or nothing.
  get container() {
    try {
      return fromDisk ? null : navigator.serviceWorker;
    } catch {
      return null; // storage is blocked
    }
  },

  // The addresses of this page and of what it has loaded.
  get loaded() {
    const names = performance.getEntriesByType("resource").map(({ name }) => name);
    const held = [...engine.runtime.held.keys()].map((name) => siteRoot + described(name).path);
    return [location.href.split("#")[0], ...names.filter((name) => name.startsWith(siteRoot)), ...held];
  },

  // The first result is drawn: have the site kept. A newer build that is ready takes over now: not under a page that is
  // being read, and while the old worker has nothing to do, which also must not be given anything any more: Chromium
  // would start it once more, and leave the next navigation without an answer.
  async keep() {
    if (this.asked || !this.container) return;
    this.asked = true;
    try {
      const { waiting } = await this.container.register(siteRoot + "sw.js");
      const tell = (worker) => worker.postMessage({ do: "keep", urls: this.loaded });
      this.container.addEventListener("controllerchange", () => tell(this.container.controller));
      if (waiting) waiting.postMessage({ do: "take over" });
      else tell((await this.container.ready).active);
      setTimeout(() => engine.makeImage().catch(() => {}), IMAGE_MS);
    } catch {
      // A private window, a full disk, a server without the file: the site works as before.
    }
  },
};
