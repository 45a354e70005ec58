// The page's state lives in the address's fragment: parameters that differ from their defaults, seed, guess, the
// frame of each scene as frame.NAME, and the SHA-256 of each dropped file as file.NAME. A link may also name a
// preset; Controls.takePreset replaces it by its parameters.
class Address {
  constructor(defaults) {
    this.defaults = defaults; // name -> default as text
    this.state = new Map();
    this.save = debounce(150, () => this.write());
    this.read();
  }

  // False where the fragment is the name of a place on the page: then the state stays as it was.
  read() {
    const fragment = location.hash.slice(1);
    if (fragment && document.getElementById(decode(fragment))) return false;
    this.state.clear();
    for (const piece of fragment.split("&")) {
      if (!piece) continue;
      const [name, ...value] = piece.split("=");
      this.state.set(decode(name), decode(value.join("=")));
    }
    return true;
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
    return Object.fromEntries([...this.state].filter(([name]) =>
      !["seed", "preset", "guess", "embed"].includes(name) && !/^(frame|file)\./.test(name)));
  }

  frames() { return Object.fromEntries([...this.state].filter(([name]) => name.startsWith("frame."))); }

  text() {
    return [...this.state].map(([name, value]) => encodeURIComponent(name) + "=" + encodeURIComponent(value)).join("&");
  }

  write() {
    const text = this.text();
    if (location.hash.slice(1) !== text) history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
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
