// The page's state lives in the address's fragment: parameters that differ from their defaults, seed, guess, the
// frame of each scene as frame.NAME, the SHA-256 of each dropped file as file.NAME, and the settings of a result that
// is kept for comparison, written the same way, as pin. A link may also name a preset; Controls.takePreset replaces it
// by its parameters.
const WRITE_MS = 150; // between two writes: a browser refuses a page that writes all the time
const NOT_COMPUTED = ["preset", "guess", "embed", "pin"]; // names on which no result depends

// The state of one page, read from the fragment and written back to it.
class Address {
  constructor(defaults) {
    this.defaults = defaults; // name -> default as text
    this.state = new Map();
    this.timer = 0; // of a write that is due
    this.written = -Infinity; // when the last one was
    this.path = location.pathname; // of the page whose state this is
    this.closed = false; // the page has gone
    this.read();
  }

  // False where the fragment is the name of a place on the page: then the state stays as it was.
  read() {
    const fragment = location.hash.slice(1);
    if (fragment && document.getElementById(decode(fragment))) return false;
    this.state = parseState(fragment);
    return true;
  }

  get shared() { return this.state.size > 0; }

  // Whether a file or a text of the reader's own is among the settings.
  get namesOwn() {
    const own = ({ name, kind }) => kind === "text" && this.state.has(name);
    return page.experiment.params.some(own) || [...this.state.keys()].some((name) => name.startsWith("file."));
  }

  get(name) { return this.state.has(name) ? this.state.get(name) : this.defaults[name]; }

  set(name, value) {
    if (this.closed) return;
    if (value === undefined || value === null || value === this.defaults[name]) this.state.delete(name);
    else this.state.set(name, value);
    if (!this.timer) this.timer = setTimeout(() => this.write(), Math.max(0, this.written + WRITE_MS - performance.now()));
  }

  // What is meant for Python: every name that the page does not use itself, known or not.
  params() { return paramsIn(this.state); }

  frames() { return Object.fromEntries([...this.state].filter(([name]) => name.startsWith("frame."))); }

  // What the result depends on.
  settings() {
    return formatState([...this.state].filter(([name]) => !NOT_COMPUTED.includes(name) && !name.startsWith("frame.")));
  }

  write() {
    clearTimeout(this.timer); // or it would undo a link that is followed in the meantime
    this.timer = 0;
    this.written = performance.now();
    if (this.closed || location.pathname !== this.path) return;
    const text = formatState([...this.state]);
    if (location.hash.slice(1) === text) return;
    replaceEntry(history.state, text ? "#" + text : location.pathname + location.search);
  }

  close() {
    clearTimeout(this.timer);
    this.closed = true;
  }
}

// The fragment as name -> value, and back.
function parseState(text) {
  return new Map(text.split("&").filter(Boolean).map((piece) => {
    const [name, ...value] = piece.split("=");
    return [decode(name), decode(value.join("="))];
  }));
}

function formatState(entries) {
  return entries.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value.toWellFormed())}`).join("&");
}

// Of a state, what is meant for Python.
function paramsIn(state) {
  return Object.fromEntries([...state].filter(([name]) =>
    name !== "seed" && !NOT_COMPUTED.includes(name) && !/^(frame|file)\./.test(name)));
}

// A link cut in the middle of an escape is still a link.
function decode(text) {
  try {
    return decodeURIComponent(text.replace(/\+/g, " "));
  } catch {
    return text;
  }
}
