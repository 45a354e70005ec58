// Use without a network, over http: a service worker keeps the site once Python is up, so that keeping never competes
// with loading. Where there is none, or the browser refuses, nothing is lost but that.
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

  // Python is up: have the site kept, and what this page has loaded so far.
  async keep() {
    if (this.asked || !this.container) return;
    this.asked = true;
    try {
      await this.container.register(siteRoot + "sw.js");
      const { active } = await this.container.ready;
      const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
      const held = [...engine.runtime.held.keys()].map((name) => siteRoot + described(name).path);
      const urls = [location.href.split("#")[0], ...loaded.filter((name) => name.startsWith(siteRoot)), ...held];
      const tell = () => (this.container.controller || active).postMessage({ do: "keep", urls });
      tell();
      this.container.addEventListener("controllerchange", tell);
    } catch {
      // A private window, a full disk, a server without the file: the site works as before.
    }
  },

  // A newer build that is ready takes over when a page is opened, not under one that is being read.
  async renew() {
    try {
      const registration = this.container && await this.container.getRegistration(siteRoot);
      if (registration && registration.waiting) registration.waiting.postMessage({ do: "take over" });
    } catch {
      // As above.
    }
  },
};
