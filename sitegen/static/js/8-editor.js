// Edit and run: the text of k3core's modules, changed here, runs in a fresh interpreter with the same protection as any
// run. Edits live in this page's memory only. The shipped code never meets them: going back is another fresh
// interpreter.

// The sheet of one page, and what its edits come to.
class Editor {
  constructor(lab, signal) {
    this.lab = lab;
    this.places = page.code; // {module, name, line}; name is empty for a module as a whole
    this.texts = new Map(); // module -> its edited text, where it differs from the shipped one
    this.good = null; // the edits that gave the result that is shown; null: none
    this.module = null; // the one in the sheet
    this.node = null; // built when it is first opened
    this.banner = make("div", { class: "notice edited", role: "status", hidden: true });
    $("#notice").after(this.banner);
    if (this.places.length) {
      lab.take.tools.append(make("button", { type: "button", "data-edit": "0" }, say("Edit the code")));
    }
    for (const button of $$("[data-edit]")) {
      button.hidden = false;
      button.addEventListener("click", () => this.open(this.places[Number(button.dataset.edit)], button));
    }
    signal.addEventListener("abort", () => this.leave());
  }

  // The page goes, and its edits with it.
  leave() {
    document.documentElement.classList.remove("editing");
    if (this.lab.engine.edits) this.lab.engine.edit(null);
  }

  // --- opening and closing ----------------------------------------------------------------------------------------

  async open(place, opener) {
    try {
      await loadScript(K3.manifest.sources);
    } catch (error) {
      showNotice("problem", error.message);
      return;
    }
    if (!this.node) this.build();
    this.opener = opener;
    this.node.hidden = false;
    document.documentElement.classList.add("editing");
    this.goTo(place);
    if (this.faultLine) this.band.hidden = false;
    this.sheet.focus({ preventScroll: true });
  }

  close() {
    this.node.hidden = true;
    document.documentElement.classList.remove("editing");
    if (this.opener) this.opener.focus();
  }

  build() {
    const options = this.places.map(({ module, name }, index) =>
      make("option", { value: index }, name ? `${module}.${name}` : say("{module}, from its top", { module })));
    this.picker = make("select", { "aria-label": say("Part of the code") }, ...options);
    this.gutter = make("pre", { class: "gutter", "aria-hidden": "true" });
    this.band = make("div", { class: "band", hidden: true });
    this.sheet = make("textarea", { wrap: "off", spellcheck: "false", autocapitalize: "off", autocomplete: "off",
      "aria-describedby": "edit-hint" });
    this.fault = make("p", { class: "fault", role: "alert", hidden: true });
    this.printed = make("pre",
      { class: "printed", tabindex: "0", hidden: true, "aria-label": say("Printed by the code") });
    const keys = { title: "Ctrl+Enter", "aria-keyshortcuts": "Control+Enter Meta+Enter" };
    this.node = make("section", { id: "editor", class: "editor", "aria-label": say("Edit the code") },
      make("div", { class: "bar" }, this.picker,
        makeButton(say("Run"), () => this.run(), { class: "run", ...keys }),
        makeButton(say("Back to the shipped code"), () => this.reset(), { "data-reset": true }),
        makeButton(say("Close"), () => this.close(), { "data-close": true })),
      this.fault, this.printed,
      make("div", { class: "sheet" }, this.gutter, this.band, this.sheet),
      make("p", { class: "hint", id: "edit-hint" },
        say("Ctrl+Enter runs. Tab indents; Escape, then Tab leaves. Edits stay in this page's memory: no link holds them, and they are gone when you leave the page.")));
    $(".code").append(this.node);
    this.picker.addEventListener("change", () => this.goTo(this.places[Number(this.picker.value)]));
    this.sheet.addEventListener("input", () => this.typed());
    this.sheet.addEventListener("scroll", () => this.align());
    this.node.addEventListener("keydown", (event) => this.key(event));
  }

  // Shows a place, another module where it is of one.
  goTo({ module, name, line }) {
    if (module !== this.module) {
      this.module = module;
      this.sheet.value = this.texts.get(module) ?? K3.sources[module];
      this.sheet.setAttribute("aria-label", say("Source text of {module}", { module }));
      this.typed();
    }
    this.picker.value = this.places.findIndex((place) => place.module === module && place.name === name);
    this.showLine(line);
  }

  showLine(line) {
    const start = this.sheet.value.split("\n", line - 1).reduce((sum, words) => sum + words.length + 1, 0);
    this.sheet.setSelectionRange(start, start);
    this.sheet.scrollTop = Math.max(0, (line - 2) * this.lineHeight);
    this.sheet.scrollLeft = 0;
    this.align();
  }

  get lineHeight() { return parseFloat(getComputedStyle(this.sheet).lineHeight); }

  // --- typing -----------------------------------------------------------------------------------------------------

  // The text changed: it is kept where it differs from the shipped one.
  typed() {
    const text = this.sheet.value;
    if (text === K3.sources[this.module]) this.texts.delete(this.module);
    else this.texts.set(this.module, text);
    const lines = text.split("\n").length;
    if (lines !== this.lines) setText(this.gutter, Array.from({ length: lines }, (_, index) => index + 1).join("\n"));
    this.lines = lines;
    this.faultLine = 0;
    this.band.hidden = true;
  }

  // Line numbers and the marked line move with the text.
  align() {
    this.gutter.style.transform = `translateY(${-this.sheet.scrollTop}px)`;
    const top = (this.faultLine - 1) * this.lineHeight - this.sheet.scrollTop;
    if (this.faultLine) this.band.style.transform = `translateY(${top}px)`;
  }

  key(event) {
    const leaving = this.leaving;
    this.leaving = event.key === "Escape" || (leaving && event.key === "Shift");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.run();
    } else if (event.target !== this.sheet || event.altKey || event.ctrlKey || event.metaKey) {
      return;
    } else if (event.key === "Tab" && !leaving) {
      event.preventDefault();
      this.indent(event.shiftKey);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const before = this.sheet.value.slice(0, this.sheet.selectionStart).split("\n").pop();
      this.insert("\n" + before.match(/^ */)[0] + (/:\s*$/.test(before) ? "    " : ""));
    }
  }

  // Tab: spaces at the cursor, or a step for every selected line; with Shift a step less.
  indent(less) {
    const { selectionStart: from, selectionEnd: to, value } = this.sheet;
    if (from === to && !less) {
      const column = from - (value.lastIndexOf("\n", from - 1) + 1);
      this.insert(" ".repeat(4 - (column % 4)));
      return;
    }
    const start = value.lastIndexOf("\n", from - 1) + 1;
    const old = value.slice(start, to);
    const changed = old.replace(/^.*$/gm, (line) => (less ? line.replace(/^ {1,4}/, "") : line && "    " + line));
    if (changed === old) return;
    this.sheet.setSelectionRange(start, to);
    this.insert(changed);
    const cursor = Math.max(start, from - old.length + changed.length);
    if (from === to) this.sheet.setSelectionRange(cursor, cursor);
    else this.sheet.setSelectionRange(start, start + changed.length);
  }

  // As if typed, so that it can be undone.
  insert(words) {
    if (!(words ? document.execCommand("insertText", false, words) : document.execCommand("delete"))) {
      this.sheet.setRangeText(words, this.sheet.selectionStart, this.sheet.selectionEnd, "end");
      this.typed();
    }
  }

  // --- running ----------------------------------------------------------------------------------------------------

  // Runs the edited modules; where nothing is edited, the shipped ones.
  run() {
    this.blame(null);
    if (!this.texts.size) return this.reset();
    this.lab.engine.edit(Object.fromEntries(this.texts));
    const done = this.lab.run();
    const { top, bottom } = $("#lab .stage").getBoundingClientRect();
    if (bottom < 120 || top > window.innerHeight / 2) $("#lab").scrollIntoView();
    return done;
  }

  // Back to the shipped code.
  reset() {
    this.texts.clear();
    if (this.node) {
      this.blame(null);
      const { module } = this;
      if (this.sheet.value !== K3.sources[module]) {
        const top = this.sheet.scrollTop;
        this.sheet.value = K3.sources[module];
        this.sheet.scrollTop = top;
        this.typed();
        this.align();
      }
    }
    this.good = null;
    const failed = $("#notice").classList.contains("problem"); // then a run takes the card away
    if (!this.lab.engine.edits && !failed) return undefined;
    if (this.lab.engine.edits) this.lab.engine.edit(null);
    return this.lab.run();
  }

  // A result is on the page: say where it comes from.
  shown({ result, printed }) {
    const { edits } = this.lab.engine;
    this.good = result.edited ? edits : null;
    this.banner.hidden = !result.edited;
    document.documentElement.classList.toggle("edited", Boolean(result.edited));
    if (!this.node) return;
    this.blame(null);
    this.tell(printed);
    if (!result.edited) return;
    const parts = Object.entries(edits)
      .map(([module, text]) => `${module} (${changedLines(K3.sources[module], text)})`).join(say("; "));
    this.banner.replaceChildren(make("p", {}, say("These figures come from edited code: {parts}.", { parts })),
      makeButton(say("Back to the shipped code"), () => this.reset()));
  }

  // A run gave no result. Edits that never gave one are not kept running: the figures that are shown go on to work.
  failed(reply) {
    const { engine } = this.lab;
    if (reply.state === "edit_error") this.blame(reply);
    if (engine.edits !== this.good && reply.state !== "param_error") engine.edit(this.good);
  }

  // Shows what is wrong, and where.
  blame(reply) {
    if (!this.node) return;
    this.fault.hidden = !reply;
    this.band.hidden = true;
    this.faultLine = 0;
    if (!reply) return;
    setText(this.fault, faultWords(reply));
    this.tell(reply.printed);
    if (!reply.line) return;
    if (reply.module !== this.module) this.goTo({ module: reply.module, name: "", line: reply.line });
    this.faultLine = reply.line;
    this.band.hidden = false;
    this.showLine(reply.line);
  }

  // The button of the card above the figure.
  remedy(reply) {
    const { module, line } = reply;
    return line ? [say("Show the line"), () => this.open({ module, name: "", line }, null)]
      : [say("Back to the shipped code"), () => this.reset()];
  }

  // What the code printed.
  tell(printed) {
    this.printed.hidden = !printed;
    setText(this.printed, printed || "");
  }
}

// What is wrong with an edit, in one line.
function faultWords({ module, line, message }) {
  return module ? say("{module}, line {line}: {message}", { module, line, message }) : message;
}

// "lines 3 to 5": from the first to the last line that differs, in the edited text.
function changedLines(shipped, edited) {
  const [before, after] = [shipped, edited].map((words) => words.split("\n"));
  let first = 0, end = 0;
  while (first < after.length && before[first] === after[first]) first += 1;
  const most = Math.min(before.length, after.length) - first;
  while (end < most && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const from = first + 1, to = Math.max(from, after.length - end);
  return from === to ? say("line {from}", { from }) : say("lines {from} to {to}", { from, to });
}
