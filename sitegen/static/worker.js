// The Python worker: boots Pyodide from bytes that the page hands over as they come, then answers JSON with JSON. It
// fetches nothing.
"use strict";

const BASE = "https://runtime.invalid/"; // never resolved: the replaced fetch answers it from memory
const SLICE_MS = 12; // how long to step before the message queue gets a turn
const arriving = new Map(); // name of a file -> its promise, and what resolves it
let pyodide = null;
let sitePackages = "";
let dropped = true; // true: no run is under way, or the one under way is to be given up

self.onmessage = async ({ data }) => {
  try {
    if (data.do === "boot") await boot(data);
    else if (data.do === "take") arrival(data.name).resolve(data.bytes);
    else if (data.do === "place") place(data.target, data.bytes);
    else if (data.do === "drop") dropped = true;
    else if (data.do === "run") await run(data);
    else if (data.do === "ask") post(data.id, call(data.request));
  } catch (error) {
    self.postMessage({ kind: "fatal", message: String(error && error.message ? error.message : error) });
  }
};

// names: of the files that will come. packages: those of them that are wheels.
async function boot({ names, packages, lock }) {
  const started = performance.now();
  answerFetch(names);
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all(
    ["pyodide.mjs", "pyodide.asm.mjs"].map(async (name) => importBlob(await taken(name))),
  );
  phase("interpreter");
  pyodide = await loadPyodide({
    indexURL: BASE, packageBaseUrl: BASE, lockFileContents: lock, createPyodideModule,
    fsInit: (_, folders) => { sitePackages = folders.sitePackages; },
    enableRunUntilComplete: false, checkAPIVersion: true, env: { PYTHONHASHSEED: "0" },
  });
  for (const name of packages) {
    const wheel = await taken(name);
    phase(name);
    for (const [path, bytes] of members(wheel)) place(path, bytes);
  }
  phase("import");
  pyodide.runPython("import importlib; importlib.invalidate_caches(); import numpy; from k3core.lab.host import handle as _k3_handle");
  const python = pyodide.runPython("import platform; platform.python_version()");
  self.postMessage({ kind: "ready", python, milliseconds: performance.now() - started });
}

function arrival(name) {
  if (!arriving.has(name)) {
    const entry = {};
    entry.bytes = new Promise((resolve) => { entry.resolve = resolve; });
    arriving.set(name, entry);
  }
  return arriving.get(name);
}

// The bytes of a file, once; then they are let go.
async function taken(name) {
  const bytes = await arrival(name).bytes;
  arriving.delete(name);
  return bytes;
}

// Pyodide asks for its files by URL.
function answerFetch(names) {
  self.fetch = async (input) => {
    const url = String(input instanceof Request ? input.url : input);
    const name = decodeURIComponent(url.slice(BASE.length));
    if (!url.startsWith(BASE) || !names.includes(name)) {
      throw new Error(`the runtime asked for ${name || url}, which this site does not hold`);
    }
    const bytes = await taken(name);
    phase(name);
    const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return new Response(bytes, { headers: { "content-type": type } });
  };
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
