// A drawing of the page as a file: SVG that needs no style sheet, with its title and legend, and the same as PNG.

// What a shape or words may look like, and what they look like where nothing is said.
const INHERITED = {
  fill: "rgb(0, 0, 0)", "fill-opacity": "1", stroke: "none", "stroke-width": "1px", "stroke-opacity": "1",
  "stroke-dasharray": "none", "stroke-linecap": "butt", "stroke-linejoin": "miter", "font-size": "",
  "font-weight": "400", "font-style": "normal", "text-anchor": "start", "dominant-baseline": "auto",
  "paint-order": "normal", visibility: "visible",
};
// What the page's style sheet and scripts make of an element, and nobody else.
const OWN_ATTRIBUTES = /^(class|style|tabindex|role|focusable|font-family|font)$|^(data|aria(?!-label$)|xmlns|on)/;
const HEADING = { size: 16, weight: "bold" }, WORDS = { size: 13 }, ORIGIN = { size: 12 };
const PADDING = 16, LINE = 19, SWATCH = 20; // the last: from a swatch to its words

function svgNode(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG_NS, tag);
  for (const [name, value] of Object.entries(attributes)) if (value) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// The element with its looks as attributes; what it uses of the page's patterns is put into `defs`.
function selfContained(source, defs) {
  const node = document.createElementNS(SVG_NS, source.localName);
  for (const { name, value } of source.attributes) if (!OWN_ATTRIBUTES.test(name)) node.setAttribute(name, value);
  const looks = getComputedStyle(source);
  if (looks.display === "none") return node;
  if (looks.opacity !== "1") node.setAttribute("opacity", looks.opacity);
  if (/^(rect|path|line|circle|polygon|text|tspan)$/.test(source.localName)) setLooks(node, looks, defs);
  for (const child of source.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) node.append(child.data);
    if (child.nodeType === Node.ELEMENT_NODE && child.localName !== "style") node.append(selfContained(child, defs));
  }
  return node;
}

function setLooks(node, looks, defs) {
  for (const [name, usual] of Object.entries(INHERITED)) {
    const value = looks.getPropertyValue(name).replace(/^url\("(#[^"]+)"\)/, "url($1)");
    if (/^font|^text|^dominant/.test(name) && !/^t/.test(node.localName)) continue; // only words have them
    if (value && value !== usual) node.setAttribute(name, value); else node.removeAttribute(name);
    const used = value.match(/^url\(#(hatch-[\w-]+)\)/);
    if (used) takePattern(used[1], defs);
  }
}

// A pattern of the page, into `defs`.
function takePattern(id, defs) {
  if (!defs.has(id)) defs.set(id, selfContained(document.getElementById(id), defs));
}

// {text, width, height}: the drawing of a figure below its title, with legend, caption and where it is from.
function drawingFile(figure, origin) {
  const sheet = new Sheet($$(".picture svg, .chart svg", figure).find((candidate) => candidate.checkVisibility()));
  sheet.write($(".scene-title", figure).textContent, HEADING);
  sheet.draw();
  sheet.list($$(".legend li", figure));
  const caption = $(".caption, figcaption", figure);
  if (caption) sheet.write(caption.textContent.trim(), WORDS);
  sheet.write(origin, ORIGIN, getComputedStyle($(".kicker") || document.body).color);
  return sheet.finish();
}

// A sheet that grows downwards, as wide as its drawing.
class Sheet {
  constructor(svg) {
    const { width, height } = svg.viewBox.baseVal;
    this.svg = svg;
    this.box = width ? svg.viewBox.baseVal : { x: 0, y: 0, width: svg.clientWidth, height: svg.clientHeight };
    this.width = this.box.width;
    this.height = PADDING;
    this.defs = new Map(); // id -> pattern
    const { color, backgroundColor } = getComputedStyle(document.body);
    this.ink = color;
    this.paper = svgNode("rect", { fill: backgroundColor });
    this.root = svgNode("svg", { "font-family": "sans-serif" }, this.paper);
  }

  // Lines of words.
  write(words, { size, weight }, fill = this.ink) {
    for (const line of wrapped(words, font({ size, weight }), this.width)) {
      this.height += LINE;
      const looks = { x: PADDING, y: this.height - 5, fill, "font-size": size, "font-weight": weight };
      this.root.append(svgNode("text", looks, line));
    }
  }

  draw() {
    this.height += 8;
    const shift = `translate(${PADDING - this.box.x},${this.height - this.box.y})`;
    this.root.append(svgNode("g", { transform: shift }, ...selfContained(this.svg, this.defs).childNodes));
    this.height += this.box.height + 10;
  }

  // The legend: swatches and their words, side by side as far as there is room.
  list(entries) {
    let x = PADDING;
    for (const entry of entries) {
      const words = entry.textContent.trim(), length = SWATCH + measured(words, font(WORDS)) + 18;
      if (x > PADDING && x + length > this.width + PADDING) {
        x = PADDING;
        this.height += LINE;
      }
      const looks = swatchLooks($(".swatch", entry), this.defs);
      this.root.append(svgNode("rect", { x, y: this.height + 3, height: 12, ...looks }),
        svgNode("text", { x: x + SWATCH, y: this.height + 14, fill: this.ink, "font-size": WORDS.size }, words));
      x += length;
    }
    if (x > PADDING) this.height += LINE + 6;
  }

  finish() {
    const width = this.width + 2 * PADDING, height = this.height + PADDING;
    for (const node of [this.root, this.paper]) {
      node.setAttribute("width", width);
      node.setAttribute("height", height);
    }
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    if (this.defs.size) this.root.prepend(svgNode("defs", {}, ...this.defs.values()));
    return { text: new XMLSerializer().serializeToString(this.root), width, height };
  }
}

// The legend's swatch is HTML: its looks as those of a rectangle.
function swatchLooks(swatch, defs) {
  const looks = getComputedStyle(swatch);
  const hatch = ["snapshot", "padding"].find((name) => swatch.classList.contains(name));
  if (hatch) takePattern(`hatch-${hatch}`, defs);
  const plain = looks.backgroundColor === "rgba(0, 0, 0, 0)" ? "none" : looks.backgroundColor;
  const stroke = parseFloat(looks.borderLeftWidth) > 0 && looks.borderLeftColor;
  return {
    width: Math.min(12, swatch.getBoundingClientRect().width), rx: looks.borderRadius === "50%" && 6,
    fill: hatch ? `url(#hatch-${hatch})` : plain, stroke,
    "stroke-dasharray": stroke && looks.borderLeftStyle === "dashed" && "3 2",
    opacity: looks.opacity !== "1" && looks.opacity,
  };
}

const pen = document.createElement("canvas").getContext("2d");

function font({ size, weight }) {
  return `${weight || ""} ${size}px sans-serif`;
}

function measured(words, used) {
  pen.font = used;
  return pen.measureText(words).width;
}

// Words in lines of at most this width; Chinese breaks between any two characters.
function wrapped(words, used, width) {
  const lines = [""];
  for (const piece of words.match(/[\u2e80-\uffef]|[^\s\u2e80-\uffef]+|\s+/g) || []) {
    if (lines.at(-1) && measured(lines.at(-1) + piece, used) > width) lines.push(piece.trim());
    else lines.push(lines.pop() + piece);
  }
  return lines.filter(Boolean);
}

// Twice as many pixels, for paper and slides.
async function pngOf({ text, width, height }) {
  const image = new Image();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  await image.decode();
  const canvas = make("canvas", { width: Math.ceil(2 * width), height: Math.ceil(2 * height) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
