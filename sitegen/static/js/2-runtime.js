// The files that Python starts from, and the extras that only some tabs need. Over http the worker loads them; from
// disk the page unwraps them from classic scripts. Either way they are kept here as they came, packed, so that a fresh
// worker needs no second download.
const fromDisk = location.protocol === "file:";
const parts = new Map(); // name -> base64 pieces that the wrapper scripts handed over

K3.file = (name, base64) => { parts.set(name, [...(parts.get(name) || []), base64]); };

// The files themselves, and how much of them is here.
class Runtime {
  // onProgress(done, total): bytes over the wire.
  constructor(onProgress) {
    this.held = new Map(); // name -> blob
    this.wanted = new Set(); // names
    this.arrived = new Map(); // name -> bytes over the wire so far
    this.unwrapping = new Map(); // name -> promise of a blob, while its scripts load
    this.onProgress = onProgress;
  }

  get total() {
    return [...this.wanted].reduce((sum, name) => sum + described(name).wire_bytes, 0);
  }

  get done() {
    return Math.min(this.total, [...this.arrived.values()].reduce((sum, bytes) => sum + bytes, 0));
  }

  get complete() {
    return this.done >= this.total;
  }

  count(name, bytes) {
    this.arrived.set(name, (this.arrived.get(name) || 0) + bytes);
    this.onProgress(this.done, this.total);
  }

  // A file that turned out wrong, so that the next try starts anew.
  forget(name) {
    this.held.delete(name);
    this.arrived.delete(name);
  }

  // What a worker that is gone had loaded of files that never came whole: the next one loads them from the start.
  forgetPieces() {
    for (const name of this.arrived.keys()) {
      if (!this.held.has(name) && !this.unwrapping.has(name)) this.arrived.delete(name);
    }
  }

  // From disk: the file as a blob, unwrapped once however many workers ask for it.
  unwrap(name) {
    if (!this.unwrapping.has(name)) {
      this.unwrapping.set(name, this.gather(name).finally(() => this.unwrapping.delete(name)));
    }
    return this.unwrapping.get(name);
  }

  // What the scripts of a file say is checked by the worker.
  async gather(name) {
    const file = described(name);
    parts.delete(name);
    for (const script of file.scripts) {
      await loadScript(script);
      scripts.delete(script); // a second attempt needs the file again
      this.count(name, file.wire_bytes / file.scripts.length);
    }
    const text = (parts.get(name) || []).join("");
    parts.delete(name);
    let blob;
    try {
      blob = await (await fetch("data:application/octet-stream;base64," + text)).blob();
    } catch {
      blob = new Blob([]); // not base64: the worker says that it is damaged
    }
    this.held.set(name, blob);
    return blob;
  }
}

// What the manifest says of a file.
function described(name) {
  const file = [...K3.manifest.files, ...K3.manifest.extras].find((candidate) => candidate.name === name);
  if (!file) throw new Error(say("{file} is missing", { file: name }));
  return file;
}

// The files that every page needs.
function runtimeNames() {
  return K3.manifest.files.map((file) => file.name);
}

// Why a file could not be had, as the worker tells it.
function whyLost({ name, status, got }) {
  if (got !== undefined) {
    return say("{file} is damaged: {got} of {want} bytes, or another content than this site was built with",
      { file: name, got, want: described(name).raw_bytes });
  }
  return status ? say("{file} could not be fetched: the server answered {status}", { file: name, status })
    : say("{file} could not be fetched: the network is gone", { file: name });
}

const scripts = new Map(); // path -> promise, so that a script is never run twice

// Runs a classic script of the site.
function loadScript(path) {
  if (!scripts.has(path)) {
    scripts.set(path, new Promise((resolve, reject) => {
      const node = make("script", { src: siteRoot + path });
      node.onload = () => { node.remove(); resolve(); };
      node.onerror = () => {
        node.remove();
        scripts.delete(path);
        reject(new Error(say("{file} is missing", { file: path })));
      };
      document.head.append(node);
    }));
  }
  return scripts.get(path);
}
