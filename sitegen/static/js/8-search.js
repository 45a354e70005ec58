// Search: a dialog over every page, opened by "/" or a button. The index is a script of its own, fetched when it is
// first wanted, so that it works from a folder too. Everything hangs on the document: pages come and go below it.
const SEARCH_SHOWN = 30; // results that are listed; all are counted
const SEARCH_SNIPPET = 150; // characters of a result's text
const TYPING = "input:not([type=range], [type=checkbox], [type=radio]), textarea, select, [contenteditable]";

// Opens the dialog by key and button, for as long as the document lives.
function bindSearch() {
  let dialog = null;
  const open = () => {
    if (!dialog || !dialog.node.isConnected || dialog.lang !== page.lang) dialog = new SearchDialog();
    dialog.open();
  };
  document.addEventListener("click", (event) => event.target.closest("[data-search]") && open());
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest(TYPING);
    if (event.key !== "/" || event.altKey || event.ctrlKey || event.metaKey || typing) return;
    event.preventDefault();
    open();
  });
}

// The dialog of one language; a page that takes another's place has none at first.
class SearchDialog {
  constructor() {
    this.lang = page.lang;
    this.base = siteRoot + (this.lang === "en" ? "" : `${this.lang}/`);
    this.chosen = -1;
    const label = say("Search tabs, controls, situations, field reports, terms, claims");
    this.input = make("input", { type: "text", role: "combobox", "aria-expanded": "false",
      "aria-controls": "search-results", "aria-autocomplete": "list", "aria-label": label, placeholder: label,
      autocomplete: "off", spellcheck: "false", enterkeyhint: "go" });
    this.list = make("div", { role: "listbox", id: "search-results", "aria-label": say("Results"), hidden: true });
    this.status = make("p", { class: "search-count", role: "status" });
    this.none = make("p", { class: "search-none", hidden: true });
    const close = makeButton(say("Close"), () => this.node.close());
    this.node = make("dialog", { class: "search", "aria-label": say("Search") },
      make("div", { class: "search-bar" }, this.input, close), this.status, this.list, this.none);
    document.body.append(this.node);
    this.input.addEventListener("input", () => this.show());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.node.addEventListener("click", (event) => {
      // The dialog's own box is the backdrop around its content; a link leaves the page, or goes to a place on it.
      if (event.target === this.node || event.target.closest("a")) this.node.close();
    });
  }

  // Shows the dialog, then the index once it is there.
  async open() {
    if (this.node.open) return;
    this.node.showModal();
    this.input.select();
    try {
      await loadScript(K3.manifest.search[this.lang]);
      const { entries, places } = K3.found[this.lang];
      this.entries = entries.map((entry) => new SearchEntry(entry, places[entry.at(-1)]));
      this.show();
    } catch (error) {
      setText(this.status, say("The index of this search could not be loaded: {why}", { why: error.message }));
    }
  }

  // What is found for the words that are typed.
  show() {
    if (!this.entries) return;
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = searchFor(this.entries, words), shown = found.slice(0, SEARCH_SHOWN);
    this.list.replaceChildren(...shown.map((entry, index) => this.option(entry, index, words)));
    this.list.hidden = !shown.length;
    this.input.setAttribute("aria-expanded", String(shown.length > 0));
    setText(this.status, words.length ? howMany(found.length) : say("All tabs and workbenches"));
    this.none.hidden = shown.length > 0;
    if (!shown.length) {
      this.none.replaceChildren(say("Nothing has all these words: {query}", { query: this.input.value.trim() }), " ",
        make("a", { href: `${this.base}glossary.html` }, say("Look through the glossary")));
    }
    this.choose(words.length && shown.length ? 0 : -1);
    this.list.scrollTop = 0;
  }

  option(entry, index, words) {
    const where = [K3.found[this.lang].kinds[entry.kind], entry.where].filter(Boolean).join(" · ");
    const href = this.base + entry.address;
    return make("a", { role: "option", id: `search-${index}`, "aria-selected": "false", tabindex: "-1", href },
      make("span", { class: "search-title" }, ...marked(entry.title || entry.text.slice(0, 60), words)),
      make("span", { class: "search-where" }, where),
      make("span", { class: "search-text" }, ...marked(snippet(entry.text, words), words)));
  }

  // Marks the result that Enter opens; -1: none.
  choose(index) {
    const options = [...this.list.children];
    if (options[this.chosen]) options[this.chosen].setAttribute("aria-selected", "false");
    this.chosen = index;
    const option = options[index];
    if (!option) {
      this.input.removeAttribute("aria-activedescendant");
      return;
    }
    option.setAttribute("aria-selected", "true");
    this.input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    const count = this.list.children.length;
    if (event.isComposing) return; // the keys belong to the input method
    if (event.key === "ArrowDown" && count) this.choose((this.chosen + 1) % count);
    else if (event.key === "ArrowUp" && count) this.choose((Math.max(this.chosen, 0) + count - 1) % count);
    else if (event.key === "Enter" && this.list.children[this.chosen]) this.list.children[this.chosen].click();
    else return;
    event.preventDefault();
  }
}

// One thing that can be found.
class SearchEntry {
  // where: the name of the tab that it belongs to, if any.
  constructor([kind, title, text, also, address, place], where) {
    Object.assign(this, { kind, title, text, address, where });
    this.head = `${title}\n${also}`.toLowerCase(); // names, one a line
    this.body = `${text}\n${where || ""}`.toLowerCase();
  }

  // How well a word fits, 0 best: a name begins with it, a word of a name does, a name has it, the text has it; -1 not
  // at all.
  rank(word) {
    if (this.head.startsWith(word) || this.head.includes(`\n${word}`)) return 0;
    if (this.head.includes(word)) return begins(this.head, word) ? 1 : 2;
    return this.body.includes(word) ? 3 : -1;
  }
}

function howMany(count) {
  if (count === 1) return say("1 found");
  return count > SEARCH_SHOWN ? say("{count} found; the first {shown} are listed", { count, shown: SEARCH_SHOWN })
    : say("{count} found", { count });
}

// Whether a word of `text` begins with `word`.
function begins(text, word) {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1])) return true;
  }
  return false;
}

// The entries that have every word, the best first; kind and then the order of the index decide among equals. Without
// words: the tabs.
function searchFor(entries, words) {
  if (!words.length) return entries.filter((entry) => entry.kind === 0);
  const found = [];
  for (const [order, entry] of entries.entries()) {
    const ranks = words.map((word) => entry.rank(word));
    if (!ranks.includes(-1)) found.push({ entry, order, rank: ranks.reduce((sum, rank) => sum + rank, 0) });
  }
  found.sort((a, b) => a.rank - b.rank || a.entry.kind - b.entry.kind || a.order - b.order);
  return found.map(({ entry }) => entry);
}

// `text` as nodes, the words in it marked.
function marked(text, words) {
  const lower = text.toLowerCase(), nodes = [];
  if (lower.length !== text.length) return [text]; // a letter that grows when it becomes small
  let done = 0;
  while (done < text.length) {
    const next = words.map((word) => [lower.indexOf(word, done), word.length]).filter(([at]) => at >= 0)
      .sort((a, b) => a[0] - b[0] || b[1] - a[1])[0];
    if (!next) break;
    nodes.push(text.slice(done, next[0]), make("mark", {}, text.slice(next[0], next[0] + next[1])));
    done = next[0] + next[1];
  }
  nodes.push(text.slice(done));
  return nodes.filter((node) => node !== "");
}

// The part of a text around the first of the words that it has.
function snippet(text, words) {
  const lower = text.toLowerCase();
  const first = Math.min(...words.map((word) => lower.indexOf(word)).filter((at) => at >= 0), text.length);
  const start = first === text.length || first < SEARCH_SNIPPET / 2 ? 0 : first - 40;
  const end = start + SEARCH_SNIPPET;
  return (start ? "…" : "") + text.slice(start, end) + (end < text.length ? "…" : "");
}
