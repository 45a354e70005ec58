// Shared by all page scripts: the page's data, words in its language, and small DOM helpers.
const K3 = (window.K3 = window.K3 || {});

// What the page says of itself, read again whenever another page has taken this one's place.
let page = readPage();
const siteRoot = new URL(page.root || ".", location.href).href; // "" would be the page itself

function readPage() {
  return (K3.page = JSON.parse(document.getElementById("page").textContent));
}

// Words: an English template with {fields}; the page carries the translations of its language.
function say(template, fields = {}) {
  const words = page.words[template] || template;
  return words.replace(/\{(\w+)\}/g, (_, name) => String(fields[name]));
}

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// The part of the page for a metric, check, table, ... of this name; edited code may give a result others than it has.
const partFor = (kind, name) => $(`[data-${kind}="${CSS.escape(name)}"]`);

// An element with attributes and children; strings become text, never markup.
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

// A button that does something.
function makeButton(label, action, attributes = {}) {
  const button = make("button", { type: "button", ...attributes }, label);
  button.addEventListener("click", action);
  return button;
}

// SHA-256 as hex digits; null where the browser offers none, which is on plain http to another host.
async function sha256(bytes) {
  if (!window.crypto || !crypto.subtle) return null;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Puts a state and an address in place of the present ones. Browsers refuse when too many come at once, or one that is
// too long; the page goes on, and the next one says it all.
function replaceEntry(state, url = location.href) {
  try {
    history.replaceState(state, "", url);
  } catch {
    // As above.
  }
}

// A function that acts once its calls have paused for so long.
function debounce(milliseconds, action) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(action, milliseconds); };
}
