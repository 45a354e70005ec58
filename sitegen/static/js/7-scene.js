// Scenes: pictures that Python draws, stepped through here. SVG enters only through an allow-list.
const SVG_NS = "http://www.w3.org/2000/svg";
const SVG_ELEMENTS = new Set(["svg", "g", "rect", "path", "line", "circle", "text", "tspan", "title", "desc",
  "polygon"]);
const SVG_ATTRIBUTES = new Set(["viewBox", "width", "height", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx",
  "ry", "d", "points", "class", "transform", "text-anchor", "role", "aria-label", "dominant-baseline", "opacity",
  "stroke-dasharray", "data-id", "data-drag-x", "data-drag-y", "data-per-x", "data-per-y", "data-drag-turn",
  "data-centre-x", "data-centre-y", "data-item", "data-click", "data-value"]);
const PLAY_MS = 450;

// SVG text as DOM nodes: only known elements, only known attributes.
function safeSvg(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  if (parsed.documentElement.localName !== "svg" || parsed.querySelector("parsererror")) {
    throw new Error(say("a drawing could not be read"));
  }
  return copySvg(parsed.documentElement);
}

function copySvg(source) {
  const node = document.createElementNS(SVG_NS, source.localName);
  for (const { name, value } of source.attributes) if (SVG_ATTRIBUTES.has(name)) node.setAttribute(name, value);
  for (const child of source.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) node.append(child.data);
    else if (child.nodeType === Node.ELEMENT_NODE && SVG_ELEMENTS.has(child.localName)) node.append(copySvg(child));
  }
  return node;
}

// One scene of the page, and which frame of it is shown.
class SceneView {
  // ask(name, index): promise of a picture; onFrame(name, index): the reader moved to a frame.
  constructor(node, ask, onFrame) {
    this.node = node;
    this.name = node.dataset.scene;
    this.ask = ask;
    this.onFrame = onFrame;
    this.captions = $$(".captions li", node).map((item) => item.textContent);
    this.slider = $(".player input", node);
    this.index = this.wanted = Number(this.slider.value); // the frame that is shown, the one that was asked for
    this.results = 0; // so that a frame of an older result is not drawn over a newer one
    this.timer = 0;
    $(".player", node).hidden = this.captions.length < 2;
    this.slider.addEventListener("input", () => { this.pause(); this.go(Number(this.slider.value)); });
    $("[data-step='-1']", node).addEventListener("click", () => { this.pause(); this.go(this.wanted - 1); });
    $("[data-step='1']", node).addEventListener("click", () => { this.pause(); this.go(this.wanted + 1); });
    $("[data-play]", node).addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    node.addEventListener("keydown", (event) => this.key(event));
  }

  get last() { return this.captions.length - 1; }

  // A new result: its captions, and a picture; `asked` is the frame that the address names by now, if any.
  show(scene, picture, asked) {
    this.results += 1;
    this.captions = scene.captions;
    this.slider.max = this.last;
    $(".player", this.node).hidden = this.last < 1;
    $(".captions ol", this.node).replaceChildren(...scene.captions.map((words) => make("li", {}, words)));
    setText($(".scene-title", this.node), scene.title);
    this.draw(picture.index, picture);
    this.wanted = picture.index;
    const wanted = Math.min(Number(asked ?? picture.index), this.last);
    if (wanted >= 0 && wanted !== picture.index) this.go(wanted); // the reader went on while it was drawn
  }

  async go(index) {
    this.wanted = Math.min(Math.max(0, index), this.last);
    this.onFrame(this.name, this.wanted);
    await this.fetch();
  }

  // The same frame for another width; before Python's first picture the page has both.
  redraw() {
    if ($(".picture.live", this.node)) this.fetch();
  }

  // The picture and its words change together, once the picture is there.
  async fetch() {
    const { wanted, results } = this;
    const picture = await this.ask(this.name, wanted);
    if (picture && wanted === this.wanted && results === this.results) this.draw(wanted, picture);
  }

  // Puts a picture in place, with its legend and words. What is no drawing leaves the old one standing.
  draw(index, picture) {
    let svg;
    try {
      svg = safeSvg(picture.svg);
    } catch (error) {
      showNotice("problem", error.message);
      return;
    }
    this.index = index;
    this.mark();
    const holder = $(".picture", this.node);
    holder.replaceChildren(svg);
    holder.classList.add("live");
    $$(".picture.narrow", this.node).forEach((other) => other.remove());
    $(".legend", this.node).replaceChildren(...picture.legend.map((entry) =>
      make("li", {}, make("span", { class: `swatch ${entry.swatch}`, "aria-hidden": "true" }), entry.text)));
  }

  // Slider, caption and counter say which frame this is.
  mark() {
    this.slider.value = this.index;
    this.slider.setAttribute("aria-valuetext", this.captions[this.index]);
    setText($(".caption", this.node), this.captions[this.index]);
    setText($(".counter", this.node), `${this.index} / ${this.last}`);
  }

  // From the first frame where the last one is shown.
  play() {
    if (this.wanted >= this.last) this.go(0);
    this.timer = setInterval(() => (this.wanted < this.last ? this.go(this.wanted + 1) : this.pause()), PLAY_MS);
    this.showPlaying();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = 0;
    this.showPlaying();
  }

  showPlaying() {
    const button = $("[data-play]", this.node);
    $(".caption", this.node).setAttribute("aria-live", this.timer ? "off" : "polite"); // nobody can listen that fast
    button.setAttribute("aria-pressed", String(Boolean(this.timer)));
    setText($(".words", button), this.timer ? say("pause") : say("play"));
    setText($(".sign", button), this.timer ? "❚❚" : "▶");
  }

  key(event) {
    const moves = { ArrowLeft: this.wanted - 1, ArrowRight: this.wanted + 1, Home: 0, End: this.last };
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in moves && event.target.closest(".picture")) {
      event.preventDefault();
      this.pause();
      this.go(moves[event.key]);
    } else if (event.key === " " && (event.target === this.slider || event.target.closest(".picture"))) {
      event.preventDefault();
      this.timer ? this.pause() : this.play();
    }
  }
}

// Grips in drawings set parameters: data-drag-x/-y name them, data-per-x/-y are drawing units per unit. data-drag-turn
// names one that counts degrees around data-centre-x/-y. data-item: the grip sets one number of a list.
function bindDragging(root, address, setParam, signal) {
  let drag = null;
  root.addEventListener("pointerdown", (event) => {
    const grip = event.target.closest(".grip");
    if (!grip) return;
    const svg = grip.ownerSVGElement, box = svg.getBoundingClientRect(), data = grip.dataset;
    const zoom = svg.viewBox.baseVal.width / box.width;
    const centre = { x: box.left + data.centreX / zoom, y: box.top + data.centreY / zoom };
    const degrees = (at) => Math.atan2(at.clientY - centre.y, at.clientX - centre.x) * 180 / Math.PI;
    const ways = [
      [data.dragX, (at) => (at.clientX - event.clientX) * zoom / data.perX],
      [data.dragY, (at) => (at.clientY - event.clientY) * zoom / data.perY],
      [data.dragTurn, (at) => degrees(at) - degrees(event)],
    ];
    drag = ways.filter(([name]) => name).map(([name, moved]) => {
      const param = page.experiment.params.find((candidate) => candidate.name === name);
      const start = numberOf(param, address, data.item);
      return { param, moved, item: data.item, start, round: name === data.dragTurn };
    });
    event.preventDefault();
  });
  window.addEventListener("pointermove", (event) => {
    for (const { param, moved, item, start, round } of drag || []) {
      const step = param.step || 1, turns = param.max + step - param.min;
      const wanted = start + Math.round(moved(event) / step) * step;
      const value = round ? param.min + ((wanted - param.min) % turns + turns) % turns
        : Math.min(param.max, Math.max(param.min, wanted));
      const text = withNumber(param, address, item, value);
      if (text !== address.get(param.name)) setParam(param.name, text);
    }
  }, { signal });
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => { drag = null; }, { signal });
}

// A list parameter's numbers; those that the address leaves out are as in the default.
function numbersOf(param, address) {
  const given = address.get(param.name).split(",").map(Number);
  return [...given, ...param.default.slice(given.length)];
}

function numberOf(param, address, item) {
  return item === undefined ? Number(address.get(param.name)) : numbersOf(param, address)[item];
}

function withNumber(param, address, item, value) {
  return item === undefined ? String(value) : numbersOf(param, address).with(item, value).join(",");
}

// Buttons in drawings: data-click names a parameter, data-value what to set it to.
function bindClicks(root, setParam) {
  root.addEventListener("click", (event) => {
    const target = event.target.closest("[data-click]");
    if (target && root.contains(target)) setParam(target.dataset.click, target.dataset.value);
  });
}

// Pointing at a marked thing lights the same thing everywhere on the page.
function bindLinking(root, signal) {
  let lit = null;
  const light = (id) => {
    if (id === lit) return;
    $$(".lit").forEach((node) => node.classList.remove("lit"));
    lit = id;
    if (id) $$(`[data-id="${CSS.escape(id)}"]`).forEach((node) => node.classList.add("lit"));
  };
  root.addEventListener("pointerover", (event) => {
    const marked = event.target.closest("[data-id]");
    light(marked ? marked.dataset.id : null);
  }, { signal });
  root.addEventListener("pointerleave", () => light(null), { signal });
}
