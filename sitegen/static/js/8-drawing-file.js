// A drawing of the page as a file: SVG that needs no style sheet, with its title and legend, and the same as PNG.
const INHERITED = { fill: "rgb(0, 0, 0)", "fill-opacity": "1", stroke: "none", "stroke-width": "1px", "stroke-opacity": "1",
  "stroke-dasharray": "none", "stroke-linecap": "butt", "stroke-linejoin": "miter", "font-size": "", "font-weight": "400",
  "font-style": "normal", "text-anchor": "start", "dominant-baseline": "auto", "paint-order": "normal", visibility: "visible" };
const PADDING = 16, LINE = 19, WORDS = "13px sans-serif", HEADING = "bold 16px sans-serif";

// The element with its looks as attributes; what it uses of the page's patterns is put into `defs`.
function selfContained(source, defs) {
  const node = document.createElementNS(SVG_NS, source.localName);
  for (const { name, value } of source.attributes) {
    if (!/^(class|style|tabindex|role|focusable|font-family|font)$|^(data|aria|xmlns|on)/.test(name) || name === "aria-label") node.setAttribute(name, value);
  }
  const looks = getComputedStyle(source);
  if (looks.display === "none") return node;
  if (looks.opacity !== "1") node.setAttribute("opacity", looks.opacity);
  if (/^(rect|path|line|circle|polygon|text|tspan)$/.test(source.localName)) {
    for (const [name, usual] of Object.entries(INHERITED)) {
      const value = looks.getPropertyValue(name).replace(/^url\("(#[^"]+)"\)/, "url($1)");
      if (/^font|^text|^dominant/.test(name) && !/^t/.test(source.localName)) continue;
      if (value && value !== usual) node.setAttribute(name, value); else node.removeAttribute(name);
      const used = value.match(/^url\(#(hatch-[\w-]+)\)/);
      if (used && !defs.has(used[1])) defs.set(used[1], selfContained(document.getElementById(used[1]), defs));
    }
  }
  for (const child of source.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) node.append(child.data);
    else if (child.nodeType === Node.ELEMENT_NODE && child.localName !== "style") node.append(selfContained(child, defs));
  }
  return node;
}

// {text, width, height}: the drawing of a figure of the page below its title, with legend, caption and where it is from.
function drawingFile(figure, origin) {
  const svg = $$(".picture svg, .chart svg", figure).find((candidate) => candidate.checkVisibility());
  const box = svg.viewBox.baseVal.width ? svg.viewBox.baseVal : { x: 0, y: 0, width: svg.clientWidth, height: svg.clientHeight };
  const root = document.createElementNS(SVG_NS, "svg"), defs = new Map();
  const ink = getComputedStyle(document.body), wide = box.width;
  let height = PADDING;
  const add = (tag, attributes, ...children) => {
    const node = document.createElementNS(SVG_NS, tag);
    for (const [name, value] of Object.entries(attributes)) if (value) node.setAttribute(name, value);
    node.append(...children);
    root.append(node);
    return node;
  };
  const write = (words, font, colour) => {
    for (const line of wrapped(words, font, wide)) {
      height += LINE;
      add("text", { x: PADDING, y: height - 5, fill: colour, "font-size": parseInt(font.match(/\d+/)[0], 10), "font-weight": font.startsWith("bold") && "bold" }, line);
    }
  };
  const paper = add("rect", { fill: ink.backgroundColor });
  write($(".scene-title", figure).textContent, HEADING, ink.color);
  height += 8;
  const drawing = add("g", { transform: `translate(${PADDING - box.x},${height - box.y})` });
  drawing.append(...selfContained(svg, defs).childNodes);
  height += box.height + 10;
  let x = PADDING;
  for (const entry of $$(".legend li", figure)) {
    const words = entry.textContent.trim(), length = 20 + measured(words, WORDS) + 18;
    if (x > PADDING && x + length > wide + PADDING) { x = PADDING; height += LINE; }
    add("rect", { x, y: height + 3, height: 12, ...swatchLooks($(".swatch", entry), defs) });
    add("text", { x: x + 20, y: height + 14, fill: ink.color, "font-size": 13 }, words);
    x += length;
  }
  height += x > PADDING ? LINE + 6 : 0;
  const caption = $(".caption, figcaption", figure);
  if (caption) write(caption.textContent.trim(), WORDS, ink.color);
  write(origin, "12px sans-serif", getComputedStyle($(".kicker") || document.body).color);
  height += PADDING;
  const width = wide + 2 * PADDING;
  for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif" })) root.setAttribute(name, value);
  paper.setAttribute("width", width);
  paper.setAttribute("height", height);
  if (defs.size) root.prepend(document.createElementNS(SVG_NS, "defs"));
  if (defs.size) root.firstChild.append(...defs.values());
  return { text: new XMLSerializer().serializeToString(root), width, height };
}

// The legend's swatch is HTML: its looks as those of a rectangle.
function swatchLooks(swatch, defs) {
  const looks = getComputedStyle(swatch);
  const hatch = ["snapshot", "padding"].find((name) => swatch.classList.contains(name));
  if (hatch && !defs.has(`hatch-${hatch}`)) defs.set(`hatch-${hatch}`, selfContained(document.getElementById(`hatch-${hatch}`), defs));
  const edge = parseFloat(looks.borderLeftWidth) > 0 && looks.borderLeftColor;
  return { width: Math.min(12, swatch.getBoundingClientRect().width), rx: looks.borderRadius === "50%" && 6, fill: hatch ? `url(#hatch-${hatch})` : looks.backgroundColor === "rgba(0, 0, 0, 0)" ? "none" : looks.backgroundColor, stroke: edge,
    "stroke-dasharray": edge && looks.borderLeftStyle === "dashed" && "3 2", opacity: looks.opacity !== "1" && looks.opacity };
}

const pen = document.createElement("canvas").getContext("2d");

function measured(words, font) {
  pen.font = font;
  return pen.measureText(words).width;
}

// Words in lines of at most this width; Chinese breaks between any two characters.
function wrapped(words, font, width) {
  const lines = [""];
  for (const piece of words.match(/[\u2e80-\uffef]|[^\s\u2e80-\uffef]+|\s+/g) || []) {
    if (lines.at(-1) && measured(lines.at(-1) + piece, font) > width) lines.push(piece.trim());
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
