// The page's state lives in the address's fragment: parameters that differ from their defaults, seed, preset,
// guess, the frame of each scene as frame.NAME, and the SHA-256 of each dropped file as file.NAME.
class Address {
  constructor(defaults) {
    this.defaults = defaults; // name -> default as text
    this.state = new Map();
    this.save = debounce(150, () => this.write());
    this.read();
  }

  read() {
    this.state.clear();
    for (const piece of location.hash.slice(1).split("&")) {
      if (!piece) continue;
      const [name, ...value] = piece.split("=");
      this.state.set(decode(name), decode(value.join("=")));
    }
  }

  get shared() { return this.state.size > 0; }

  get(name) { return this.state.has(name) ? this.state.get(name) : this.defaults[name]; }

  set(name, value) {
    if (value === undefined || value === null || value === this.defaults[name]) this.state.delete(name);
    else this.state.set(name, value);
    this.save();
  }

  // What is meant for Python: every name that the page does not use itself, known or not.
  params() {
    const params = {};
    for (const [name, value] of this.state) {
      if (!["seed", "preset", "guess", "embed"].includes(name) && !name.startsWith("frame.") && !name.startsWith("file.")) params[name] = value;
    }
    return params;
  }

  text() {
    return [...this.state].map(([name, value]) => encodeURIComponent(name) + "=" + encodeURIComponent(value)).join("&");
  }

  write() {
    const text = this.text();
    if (location.hash.slice(1) !== text) history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
    document.dispatchEvent(new CustomEvent("k3:address", { detail: text }));
  }
}

// A link cut in the middle of an escape is still a link.
function decode(text) {
  try {
    return decodeURIComponent(text.replace(/\+/g, " "));
  } catch {
    return text;
  }
}
