// Take it away: every figure, table and result of the page as a file, and the whole state as a program or an embed.
class Take {
  constructor(lab) {
    this.lab = lab;
    for (const figure of $$("#lab .scene, #lab .figure")) figure.append(this.saver(figure));
    for (const table of $$("#lab [data-table]")) table.parentElement.after(this.saveRow(this.saveTable(table.dataset.table, $("caption", table).textContent)));
    this.ways = make("div", { class: "ways" });
    this.menu = make("details", { class: "take" }, make("summary", {}, say("Take it away")), this.ways);
    this.menu.addEventListener("toggle", () => this.show());
    this.tools = make("div", { class: "tools" }, this.menu);
    $("#lab .numbers").append(this.tools);
  }

  // The ways as of the result that is shown; nothing is made before the menu is opened.
  show() {
    if (!this.menu.open) return;
    const { result } = this.lab, { edits } = result.edited ? this.lab.engine : { edits: null };
    const program = pythonProgram(result, this.files(), edits);
    const rows = [
      [say("Result"), this.button("JSON", () => this.saveJson(), say("the whole result, as Python wrote it")),
        this.button("CSV", () => this.save("numbers.csv", numbersCsv(result), "text/csv"), say("the numbers"))],
      [say("The same in Python"), this.button(say("Program"), () => this.save("py", program, "text/x-python")),
        this.button(say("Notebook"), () => this.save("ipynb", notebook(result, program), "application/x-ipynb+json"))],
      edits || Object.keys(this.files()).length ? [say("On a command line"), make("p", {}, say("Not with edited code or a file: take the program."))]
        : [say("On a command line"), ...this.copyable(commandLine(result))],
      [say("In another page"), ...this.copyable(embedCode(result)), ...(fromDisk ? [make("p", {}, say("This site was opened from a folder; serve it, and the address here is one that others can embed."))] : [])],
      [say("Link"), this.button(say("Copy link"), () => $("#copy").click()), make("p", {}, say("The address holds every setting. It holds no edited code and no dropped file."))],
    ];
    this.ways.replaceChildren(...rows.map(([label, ...content]) => make("div", { class: "way" }, make("h3", {}, label), make("div", {}, ...content))));
  }

  button(label, action, about) {
    const node = make("button", { type: "button", title: about, "aria-label": about && `${label}: ${about}` }, label);
    node.addEventListener("click", action);
    return node;
  }

  copyable(words) {
    const place = make("pre", { tabindex: "0" }, words);
    const copy = this.button(say("Copy"), async () => {
      await copyText(words);
      setText(copy, say("Copied"));
      setTimeout(() => setText(copy, say("Copy")), 2000);
    });
    return [place, copy];
  }

  // --- one figure or table ----------------------------------------------------------------------------------------

  saver(figure) {
    const name = figure.dataset.scene || figure.dataset.figure, title = $(".scene-title", figure).textContent;
    const drawing = () => drawingFile(figure, this.origin());
    const spec = () => this.lab.result.figures.find((candidate) => candidate.name === figure.dataset.figure);
    return this.saveRow(
      this.button("SVG", () => this.save(`${name}.svg`, drawing().text, "image/svg+xml"), say("save the drawing: {title}", { title })),
      this.button("PNG", async () => this.save(`${name}.png`, await pngOf(drawing()), "image/png"), say("save the picture: {title}", { title })),
      ...(figure.dataset.figure ? [this.saveTable(() => spec().data.name, title)] : []));
  }

  saveTable(name, title) {
    const table = () => (typeof name === "string" ? name : name());
    return this.button("CSV", () => this.save(`${table()}.csv`, tableCsv(this.lab.result.tables[table()]), "text/csv"), say("save the values: {title}", { title }));
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
    const { slug, params, seed } = this.lab.result;
    const reply = JSON.parse(await this.lab.engine.ask({ do: "result", slug, params, seed, files: this.lab.shownFiles, lang: page.lang }));
    if (reply.state === "result") this.save("json", reply.text, "application/json");
    else showNotice("info", say("The JSON is written by Python, which is not up yet."));
  }

  // Input name -> name and SHA-256 of the files that the shown result comes from.
  files() {
    const { shownFiles, engine } = this.lab;
    return Object.fromEntries(Object.entries(shownFiles).map(([input, key]) => [input, { name: engine.kept.get(key).name, key }]));
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

function tableCsv({ columns, rows }) {
  const shown = columns.map((column, index) => index).filter((index) => columns[index].key !== "id");
  const header = shown.map((index) => columns[index].label + (columns[index].unit ? ` (${columns[index].unit})` : ""));
  return csv([header, ...rows.map((row) => shown.map((index) => row[index]))]);
}

function numbersCsv({ metrics }) {
  return csv([["key", "label", "value", "unit", "badge"], ...metrics.map(({ key, label, value, unit, badge }) => [key, label, value, unit, badge])]);
}
