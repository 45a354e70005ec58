// Take it away: every figure, table and result of the page as a file, and the whole state as a program or an embed.
class Take {
  constructor(lab) {
    this.lab = lab;
    for (const figure of $$("#lab .scene, #lab .figure")) figure.append(this.saver(figure));
    for (const table of $$("#lab [data-table]")) {
      const saver = this.saveTable(() => table.dataset.table, $("caption", table).textContent);
      table.parentElement.after(this.saveRow(saver));
    }
    this.ways = make("div", { class: "ways" });
    this.menu = make("details", { class: "take" }, make("summary", {}, say("Take it away")), this.ways);
    this.menu.addEventListener("toggle", () => this.show());
    this.tools = make("div", { class: "tools" }, this.menu);
    $("#lab .numbers").append(this.tools);
  }

  // The ways as of the result that is shown; nothing is made before the menu is opened.
  show() {
    if (!this.menu.open) return;
    if (this.lab.stale) {
      this.ways.replaceChildren(make("p", {}, say("The result of this link is not here yet; once it is, so are the ways to take it away.")));
      return;
    }
    this.lab.address.write(); // what was set a moment ago: some of the ways name the address
    const { result } = this.lab, { edits } = result.edited ? this.lab.engine : { edits: null };
    const files = this.files(), program = pythonProgram(result, files, edits);
    const note = (words) => make("p", {}, words);
    const command = edits || Object.keys(files).length
      ? [note(say("Not with edited code or a file: take the program."))] : this.copyable(commandLine(result));
    const served = fromDisk
      ? [note(say("This site was opened from a folder; serve it, and the address here is one that others can embed."))] : [];
    this.ways.replaceChildren(
      this.way(say("Result"),
        this.button("JSON", () => this.saveJson(), say("the whole result, as Python wrote it")),
        this.button("CSV", () => this.save("numbers.csv", numbersCsv(result), "text/csv"), say("the numbers"))),
      this.way(say("The same in Python"),
        this.button(say("Program"), () => this.save("py", program, "text/x-python")),
        this.button(say("Notebook"), () => this.save("ipynb", notebook(result, program), "application/x-ipynb+json"))),
      this.way(say("On a command line"), ...command),
      this.way(say("In another page"), ...this.copyable(embedCode()), ...served),
      this.way(say("Link"), this.button(say("Copy link"), () => $("#copy").click()),
        note(say("The address holds every setting. It holds no edited code and no dropped file."))));
  }

  way(label, ...content) {
    return make("div", { class: "way" }, make("h3", {}, label), make("div", {}, ...content));
  }

  // about: what a short label leaves out.
  button(label, action, about) {
    return makeButton(label, action, { title: about, "aria-label": about && `${label}: ${about}` });
  }

  copyable(words) {
    const copy = this.button(say("Copy"), () => copyBy(copy, say("Copy"), words));
    return [make("pre", { tabindex: "0" }, words), copy];
  }

  // --- one figure or table ----------------------------------------------------------------------------------------

  saver(figure) {
    const name = figure.dataset.scene || figure.dataset.figure, title = $(".scene-title", figure).textContent;
    const saveSvg = () => this.save(`${name}.svg`, drawingFile(figure, this.origin()).text, "image/svg+xml");
    const savePng = async () => this.save(`${name}.png`, await pngOf(drawingFile(figure, this.origin())), "image/png");
    const spec = () => this.lab.result.figures.find((candidate) => candidate.name === figure.dataset.figure);
    return this.saveRow(
      this.button("SVG", saveSvg, say("save the drawing: {title}", { title })),
      this.button("PNG", savePng, say("save the picture: {title}", { title })),
      ...(figure.dataset.figure ? [this.saveTable(() => spec().data.name, title)] : []));
  }

  // name(): which table of the result that is shown then.
  saveTable(name, title) {
    const save = () => this.save(`${name()}.csv`, tableCsv(this.lab.result.tables[name()]), "text/csv");
    return this.button("CSV", save, say("save the values: {title}", { title }));
  }

  saveRow(...buttons) { return make("p", { class: "save" }, ...buttons); }

  // --- files ------------------------------------------------------------------------------------------------------

  // Where a file is from, in one line.
  origin() {
    const { slug, digest, edited } = this.lab.result;
    return `K3 Serve Lab · ${slug} · ${digest.slice(0, 12)}${edited ? ` · ${say("edited code")}` : ""}`;
  }

  // SLUG-DIGEST[-edited].ENDING
  save(ending, content, type) {
    const { slug, digest, edited } = this.lab.result;
    const url = URL.createObjectURL(new Blob([content], { type }));
    make("a", { href: url, download: `${slug}-${digest.slice(0, 12)}${edited ? "-edited" : ""}.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }

  async saveJson() {
    const reply = await this.lab.ask({ do: "result" });
    if (reply.state === "result") this.save("json", reply.text, "application/json");
    else if (reply.state === "superseded") showNotice("info", say("The JSON is written by Python, which is not up yet."));
  }

  // Input name -> name and SHA-256 of the files that the shown result comes from.
  files() {
    const { shownFiles, engine } = this.lab;
    const named = Object.entries(shownFiles).map(([input, key]) => [input, { name: engine.kept.get(key).name, key }]);
    return Object.fromEntries(named);
  }
}

// --- tables as text -------------------------------------------------------------------------------------------------

// RFC 4180. A page in Chinese starts with a mark, without which spreadsheets take the words for another encoding.
function csv(rows) {
  const cell = (value) => {
    const words = value === null ? "" : String(value);
    return /[",\r\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
  };
  return (page.lang === "zh" ? "\ufeff" : "") + rows.map((row) => row.map(cell).join(",") + "\r\n").join("");
}

// A table of the result; what only links its rows to drawings is left out.
function tableCsv({ columns, rows }) {
  const shown = columns.map((column, index) => index).filter((index) => columns[index].key !== "id");
  const header = shown.map((index) => columns[index].label + (columns[index].unit ? ` (${columns[index].unit})` : ""));
  return csv([header, ...rows.map((row) => shown.map((index) => row[index]))]);
}

// The numbers of the result, one a row.
function numbersCsv({ metrics }) {
  const columns = ["key", "label", "value", "unit", "badge"];
  return csv([columns, ...metrics.map((metric) => columns.map((name) => metric[name]))]);
}
