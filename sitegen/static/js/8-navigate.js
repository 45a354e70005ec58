// From page to page over http: the next page's content takes the place of this one's, and the document, with the Python
// in it, lives on. From disk, where a page may not be fetched, and wherever anything is unusual, the browser does it.

// What a page was built with; where it differs, the site was rebuilt and only a full load will do.
const ownAssets = assetsOf(document, location.href);

function assetsOf(root, base) {
  const urls = [...$$("script[src]", root).map((node) => node.getAttribute("src")),
    ...$$('link[rel="stylesheet"]', root).map((node) => node.getAttribute("href"))];
  return urls.map((url) => new URL(url, base).href).join(" ");
}

class Navigation {
  // leave(): the page is about to go, and the address with it. arrive(): another page is in place.
  constructor(leave, arrive) {
    this.leave = leave;
    this.arrive = arrive;
    this.shown = this.place(location);
    this.fetching = new AbortController();
    this.top = null; // how far down to be, until the first result is in place
    history.scrollRestoration = "manual"; // each entry's state holds how far down it was
    if (history.state && history.state.top) this.scroll(history.state.top);
    this.remember();
    const icon = $('link[rel="icon"]'); // asked for again whenever the address changes
    if (icon) icon.href = String(icon.href);
    document.addEventListener("click", (event) => this.clicked(event));
    window.addEventListener("popstate", (event) => this.travelled(event.state));
    window.addEventListener("scroll", debounce(200, () => this.remember()), { passive: true });
    for (const type of ["wheel", "touchmove", "keydown", "pointerdown"]) {
      window.addEventListener(type, () => { this.top = null; }, { passive: true });
    }
    document.addEventListener("k3:shown", () => { if (this.top !== null) this.scroll(this.top); this.top = null; });
  }

  // Scrolls; and once more when the first result is in place, unless the reader has moved by then.
  scroll(top) {
    this.top = top;
    window.scrollTo(0, top);
  }

  place({ pathname, search }) { return pathname + search; }

  // Kept with the entry of the history, unless the address is already another page's.
  remember() {
    if (this.place(location) === this.shown) replaceEntry({ ...history.state, top: window.scrollY });
  }

  clicked(event) {
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.hasAttribute("download") || (link.target && link.target !== "_self")) return;
    const url = new URL(link.href, location.href);
    const isPage = url.href.startsWith(siteRoot) && /(\/|\.html)$/.test(url.pathname);
    if (!isPage || (this.place(url) === this.shown && link.href.includes("#"))) return;
    event.preventDefault();
    this.go(url);
  }

  async go(url) {
    const next = await this.fetch(url, "default");
    if (!next) return;
    this.remember();
    this.leave();
    try {
      history[next.url === location.href ? "replaceState" : "pushState"]({ top: 0 }, "", next.url);
    } catch {
      this.load(url); // refused, as too many at once are
      return;
    }
    this.show(next.document, 0);
  }

  // Back or forward; between two states of one page the lab follows the fragment itself.
  async travelled(state) {
    const top = state && state.top;
    if (this.place(location) === this.shown) {
      this.fetching.abort();
      if (top !== null && top !== undefined) this.scroll(top);
      return;
    }
    this.leave();
    const next = await this.fetch(new URL(location.href), "force-cache");
    if (next) this.show(next.document, top);
  }

  // {url, document}, or nothing where the browser, a newer click or the reader takes over.
  async fetch(url, cache) {
    this.fetching.abort();
    const { signal } = (this.fetching = new AbortController());
    let response, text;
    try {
      response = await fetch(url, { signal, cache });
      text = await response.text();
    } catch {
      if (!signal.aborted) this.lost(url);
      return null;
    }
    if (signal.aborted) return null;
    const next = new DOMParser().parseFromString(text, "text/html");
    const final = new URL(response.url);
    final.hash = url.hash;
    if (!response.ok || !$("#page", next) || assetsOf(next, final) !== ownAssets) {
      this.load(url);
      return null;
    }
    return { url: final.href, document: next };
  }

  load(url) {
    if (url.href === location.href) location.reload(); else location.assign(url);
  }

  lost(url) {
    if (url.href === location.href) {
      location.reload();
      return;
    }
    showNotice("problem", say("The page could not be fetched: the network is gone. This one goes on working."),
      [say("Try again"), () => { showNotice("info", ""); this.go(url); }]);
    $("#notice").scrollIntoView({ block: "nearest" });
  }

  // Everything but the scripts, which run once.
  show(next, top) {
    const railTop = $(".rail") ? $(".rail").scrollTop : 0;
    for (const node of $$("script[src]", next)) node.remove();
    document.title = next.title;
    document.documentElement.lang = next.documentElement.lang;
    document.documentElement.classList.remove("asking", "menu-open");
    document.body.className = next.body.className;
    document.body.replaceChildren(...next.body.childNodes, ...$$("script[src]", document.body));
    this.shown = this.place(location);
    if ($(".rail")) $(".rail").scrollTop = railTop;
    this.arrive();
    this.settle(top);
  }

  // Reading goes on at the heading, or at the place that the link names.
  settle(top) {
    const named = location.hash && document.getElementById(decode(location.hash.slice(1)));
    const place = named || $("main h1") || $("main");
    if (!place.hasAttribute("tabindex")) place.setAttribute("tabindex", "-1");
    place.focus({ preventScroll: true });
    if (named && !top) named.scrollIntoView(); else this.scroll(top || 0);
  }
}
