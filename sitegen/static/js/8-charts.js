// Charts: the same Vega-Lite specifications as at build time, drawn live once the library is there.
class Charts {
  // views: figure name -> {text, view}, what is drawn; drawing: a promise, kept when all of the newest result is.
  // signal: aborted when the page is left; then nothing more is drawn.
  constructor(signal) {
    this.signal = signal;
    this.views = new Map();
    this.result = null;
    this.drawing = Promise.resolve();
    window.addEventListener("resize", debounce(200, () => this.result && this.show(this.result)), { signal });
  }

  // The newest result is drawn; while one is being drawn, only the newest of those that came is kept.
  show(result) {
    this.result = result;
    this.drawing = this.drawing.then(() => this.result === result && this.drawAll(result)).catch(({ message }) => {
      if (this.signal.aborted) return;
      showNotice("problem", say("The charts could not be drawn and do not show these settings: {why}", { why: message }));
    });
  }

  async drawAll(result) {
    await loadScript(K3.manifest.vega);
    for (const spec of result.figures) {
      if (this.signal.aborted) return;
      const holder = partFor("figure", spec.name);
      if (!holder) continue;
      setText($(".figure-title", holder), spec.usermeta.title);
      $(".chart", holder).setAttribute("aria-label", spec.usermeta.title);
      setText($("figcaption", holder), spec.description);
      await this.draw(holder, spec, records(result.tables[spec.data.name]));
    }
  }

  // One chart, unless it is there just so; it takes the place of the one the build drew, or of an older one.
  async draw(holder, spec, values) {
    const picture = $(".chart", holder);
    const full = { ...spec, data: { ...spec.data, values }, width: "container", background: null,
      autosize: { type: "fit-x", contains: "padding" }, height: spec.height || (picture.clientWidth < 480 ? 220 : 260) };
    const text = JSON.stringify(full) + picture.clientWidth;
    const old = this.views.get(spec.name);
    if (old && old.text === text) return;
    const place = make("div", { class: "vega" });
    picture.append(place);
    place.style.width = `${picture.clientWidth}px`;
    const view = await vegaEmbed(place, full, { mode: "vega-lite", actions: false, renderer: "svg", ast: true,
      config: K3.manifest.chart_config, tooltip: { theme: "custom" } });
    if (old) old.view.finalize();
    if (this.signal.aborted) {
      view.finalize();
      return;
    }
    for (const child of [...picture.children]) if (child !== place) child.remove();
    markLikes(place);
    this.views.set(spec.name, { text, view });
  }

  close() {
    for (const { view } of this.views.values()) view.finalize();
    this.views.clear();
  }
}

// A chart's mark lights with its like: a row {policy: "dense"} stands for what tables and drawings call policy:dense.
function markLikes(place) {
  const known = new Set($$("#lab [data-id]").map((node) => node.dataset.id));
  for (const node of $$("svg *", place)) {
    const { datum } = node.__data__ || {}; // Vega keeps each mark's row here
    const id = datum && Object.entries(datum).map((pair) => pair.join(":")).find((candidate) => known.has(candidate));
    if (id) node.dataset.id = id;
  }
}
