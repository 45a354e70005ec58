// The runtime's files as bytes: fetched over http, or unwrapped from classic scripts where the page is a file.
// Each is checked against the manifest, and kept, so that a fresh worker needs no second download.
const fromDisk = location.protocol === "file:";
const parts = new Map(); // name -> base64 pieces that the wrapper scripts handed over

K3.file = (name, base64) => { parts.set(name, [...(parts.get(name) || []), base64]); };

class Runtime {
  // onProgress(done, total): bytes over the wire.
  constructor(onProgress) {
    this.held = new Map(); // name -> promise of the file as it came, packed, so that a fresh worker needs no download
    this.arrived = new Map(); // name -> bytes over the wire so far
    this.onProgress = onProgress;
  }

  get total() {
    return [...this.held.keys()].reduce((sum, name) => sum + described(name).wire_bytes, 0);
  }

  get done() {
    return Math.min(this.total, [...this.arrived.values()].reduce((sum, part) => sum + part, 0));
  }

  // Starts to load a file, once.
  hold(name) {
    if (this.held.has(name)) return;
    const file = described(name);
    const coming = fromDisk ? this.unwrap(file) : this.download(file);
    coming.catch(() => {}); // `bytes` says so
    this.held.set(name, coming);
  }

  get complete() {
    return this.done >= this.total;
  }

  // A file's bytes, checked. A failure is forgotten, so that the next call tries again.
  async bytes(name) {
    this.hold(name);
    try {
      return await this.unpack(described(name), await this.held.get(name));
    } catch (error) {
      this.held.delete(name);
      this.arrived.delete(name);
      throw error;
    }
  }

  count(name, bytes) {
    this.arrived.set(name, (this.arrived.get(name) || 0) + bytes);
    this.onProgress(this.done, this.total);
  }

  async download(file) {
    let response;
    try {
      response = await (K3.early && K3.early.get(file.name)); // where the head has begun it
      if (K3.early) K3.early.delete(file.name);
      response ||= await fetch(siteRoot + file.path);
    } catch {
      throw new Error(say("{file} could not be fetched: the network is gone", { file: file.name }));
    }
    if (!response.ok) {
      throw new Error(say("{file} could not be fetched: the server answered {status}",
        { file: file.name, status: response.status }));
    }
    const chunks = [];
    try {
      for (let reader = response.body.getReader(); ;) {
        const { done, value } = await reader.read();
        if (done) break;
        chunks.push(value);
        this.count(file.name, value.length);
      }
    } catch {
      // The connection broke; what came is told from the whole file by its length.
    }
    return new Blob(chunks);
  }

  async unwrap(file) {
    parts.delete(file.name);
    for (const script of file.scripts) {
      await loadScript(script);
      scripts.delete(script); // a second attempt needs the file again
      this.count(file.name, file.wire_bytes / file.scripts.length);
    }
    const text = (parts.get(file.name) || []).join("");
    parts.delete(file.name);
    try {
      return await (await fetch("data:application/octet-stream;base64," + text)).blob();
    } catch {
      return new Blob([]); // not base64: `unpack` says so
    }
  }

  // Undoes gzip by what the bytes are: some hosts already do when they see the name.
  async unpack(file, blob) {
    const head = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
    const zipped = head[0] === 0x1f && head[1] === 0x8b;
    const stream = zipped ? blob.stream().pipeThrough(new DecompressionStream("gzip")) : blob.stream();
    let bytes;
    try {
      bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    } catch {
      bytes = new Uint8Array(0);
    }
    const digest = await sha256(bytes); // where there is none, the length still counts
    if (bytes.length !== file.raw_bytes || (digest && digest !== file.sha256)) {
      throw new Error(say("{file} is damaged: {got} of {want} bytes, or another content than this site was built with",
        { file: file.name, got: bytes.length, want: file.raw_bytes }));
    }
    return bytes;
  }
}

// What the manifest says of a file: those that Python starts from, and extras that only some tabs need.
function described(name) {
  const file = [...K3.manifest.files, ...(K3.manifest.extras || [])].find((candidate) => candidate.name === name);
  if (!file) throw new Error(say("{file} is missing", { file: name }));
  return file;
}

const scripts = new Map(); // path -> promise, so that a script is never run twice

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
