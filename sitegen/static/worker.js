// The Python worker: loads the files of Pyodide, or takes them from the page, boots it, then answers JSON with JSON.
"use strict";

const BASE = "https://runtime.invalid/"; // never resolved: the replaced fetch answers it from memory
const SLICE_MS = 12; // how long to step before the message queue gets a turn
const fetchFile = self.fetch.bind(self); // the one that Pyodide and Python see is replaced below
const arriving = new Map(); // name of a file that the page hands over -> the promise of its blob, and what resolves it
let pyodide = null;
let sitePackages = "";
let dropped = true; // true: no run is under way, or the one under way is to be given up

self.onmessage = async ({ data }) => {
  try {
    if (data.do === "boot") await boot(data);
    else if (data.do === "take") arrival(data.name).resolve(data.blob);
    else if (data.do === "place") await placeExtra(data.file);
    else if (data.do === "drop") dropped = true;
    else if (data.do === "run") await run(data);
    else if (data.do === "ask") post(data.id, call(data.request));
  } catch (error) {
    self.postMessage({ kind: "fatal", message: String(error && error.message ? error.message : error) });
  }
};

// files: what the manifest says of each, and its url, or null where the page hands it over.
async function boot({ files, lock }) {
  const loading = new Map(files.map((file) => [file.name, load(file)]));
  answerFetch(loading);
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all(
    ["pyodide.mjs", "pyodide.asm.mjs"].map(async (name) => importBlob(await loading.get(name))),
  );
  phase("interpreter");
  pyodide = await loadPyodide({
    indexURL: BASE, packageBaseUrl: BASE, lockFileContents: lock, createPyodideModule,
    fsInit: (_, folders) => { sitePackages = folders.sitePackages; },
    enableRunUntilComplete: false, env: { PYTHONHASHSEED: "0" },
  });
  for (const { name } of files.filter((file) => file.name.endsWith(".whl"))) {
    const wheel = await loading.get(name);
    phase(name);
    for (const [path, bytes] of members(wheel)) place(path, bytes);
  }
  phase("import");
  pyodide.runPython("import importlib; importlib.invalidate_caches()");
  pyodide.runPython("from k3core.lab.host import handle as _k3_handle");
  const python = pyodide.runPython("import sys; sys.version.split()[0]");
  self.postMessage({ kind: "ready", python });
}

// A file's bytes, checked. Where it cannot be had the page is told, which then ends this worker or goes on without the
// file; either way nobody waits any longer, and the promise stays open.
async function load(file) {
  const lost = (why) => {
    self.postMessage({ kind: "lost", name: file.name, ...why });
    return new Promise(() => {});
  };
  let blob;
  try {
    blob = await (file.url ? download(file, lost) : arrival(file.name).promise);
  } catch {
    return lost({});
  }
  arriving.delete(file.name);
  const bytes = await unpack(blob);
  const digest = await sha256(bytes);
  if (bytes.length !== file.raw_bytes || (digest && digest !== file.sha256)) return lost({ got: bytes.length });
  if (file.url) self.postMessage({ kind: "held", name: file.name, blob });
  return bytes;
}

async function download({ name, url }, lost) {
  const response = await fetchFile(url);
  if (!response.ok) return lost({ status: response.status });
  const chunks = [];
  try {
    for (let reader = response.body.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value);
      self.postMessage({ kind: "loaded", name, bytes: value.length });
    }
  } catch {
    return lost({}); // the connection broke
  }
  return new Blob(chunks);
}

// Undoes gzip by what the bytes are: some hosts already do when they see the name. What is broken becomes nothing.
async function unpack(blob) {
  const head = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  const zipped = head[0] === 0x1f && head[1] === 0x8b;
  const stream = zipped ? blob.stream().pipeThrough(new DecompressionStream("gzip")) : blob.stream();
  try {
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    return new Uint8Array(0);
  }
}

// SHA-256 as hex digits; null where the browser offers none, which is on plain http to another host.
async function sha256(bytes) {
  if (!self.crypto || !crypto.subtle) return null;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function arrival(name) {
  if (!arriving.has(name)) {
    const entry = {};
    entry.promise = new Promise((resolve) => { entry.resolve = resolve; });
    arriving.set(name, entry);
  }
  return arriving.get(name);
}

// Pyodide asks for its files by URL.
function answerFetch(loading) {
  self.fetch = async (input) => {
    const url = String(input instanceof Request ? input.url : input);
    const name = decodeURIComponent(url.slice(BASE.length));
    if (!url.startsWith(BASE) || !loading.has(name)) {
      throw new Error(`the runtime asked for ${name || url}, which this site does not hold`);
    }
    const bytes = await loading.get(name);
    loading.delete(name); // Pyodide asks once; let go of the bytes
    phase(name);
    const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return new Response(bytes, { headers: { "content-type": type } });
  };
}

// A file that only some tabs need.
async function placeExtra(file) {
  const bytes = await load(file);
  place(file.target, bytes);
  self.postMessage({ kind: "placed", name: file.name });
}

// Writes a file into the folder that Python imports packages from; the bytes become the file, uncopied.
function place(path, bytes) {
  const { FS } = pyodide, whole = `${sitePackages}/${path}`;
  FS.mkdirTree(whole.slice(0, whole.lastIndexOf("/")));
  FS.writeFile(whole, bytes, { canOwn: true });
}

// Name and bytes of each file in a zip archive whose members are stored, not deflated, as the build writes them. It is
// read here because unpacking with Python, which would first have to import its zipfile, takes about a second.
function* members(zip) {
  const view = new DataView(zip.buffer, zip.byteOffset, zip.byteLength);
  const end = zip.byteLength - 22; // no comment follows the end record
  const count = view.getUint16(end + 10, true);
  for (let at = view.getUint32(end + 16, true), number = 0; number < count; number++) {
    const size = view.getUint32(at + 20, true), nameLength = view.getUint16(at + 28, true);
    const local = view.getUint32(at + 42, true);
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    yield [new TextDecoder().decode(zip.subarray(at + 46, at + 46 + nameLength)), zip.subarray(start, start + size)];
    at += 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
}

function importBlob(bytes) {
  const url = URL.createObjectURL(new Blob([bytes], { type: "text/javascript" }));
  return import(url).finally(() => URL.revokeObjectURL(url));
}

function phase(name) {
  self.postMessage({ kind: "phase", name });
}

// Strings in, string out: no proxy of a Python object lives longer than the call.
function call(request) {
  pyodide.globals.set("_k3_request", request);
  return pyodide.runPython("_k3_handle(_k3_request)");
}

async function run({ id, request }) {
  dropped = false;
  let reply = call(request);
  let sliceStart = performance.now();
  while (reply.startsWith('{"state":"progress"')) {
    if (performance.now() - sliceStart > SLICE_MS) {
      post(id, reply);
      await macrotask();
      sliceStart = performance.now();
    }
    reply = call(dropped ? '{"do":"drop"}' : '{"do":"step"}');
  }
  dropped = true;
  post(id, reply);
}

function post(id, reply) {
  self.postMessage({ kind: "reply", id, reply, memory: pyodide._module.HEAPU8.length });
}

function macrotask() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { port1.close(); resolve(); };
    port2.postMessage(null);
  });
}
