// The Python worker: boots Pyodide from bytes the page hands over, then answers JSON with JSON. It fetches nothing.
"use strict";

const BASE = "https://runtime.invalid/"; // never resolved: the replaced fetch answers it from memory
const SLICE_MS = 12; // how long to step before the message queue gets a turn
let pyodide = null;
let dropped = true; // true: no run is under way, or the one under way is to be given up

self.onmessage = async ({ data }) => {
  try {
    if (data.do === "boot") await boot(data);
    else if (data.do === "drop") dropped = true;
    else if (data.do === "run") await run(data);
    else if (data.do === "ask") post(data.id, call(data.request));
  } catch (error) {
    self.postMessage({ kind: "fatal", message: String(error && error.message ? error.message : error) });
  }
};

async function boot({ files, lock }) {
  const started = performance.now();
  answerFetch(files);
  phase("interpreter");
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all(
    ["pyodide.mjs", "pyodide.asm.mjs"].map((name) => importBlob(files[name])),
  );
  pyodide = await loadPyodide({
    indexURL: BASE, packageBaseUrl: BASE, lockFileContents: lock, createPyodideModule,
    enableRunUntilComplete: false, packages: ["k3core"], env: { PYTHONHASHSEED: "0" },
  });
  phase("import");
  pyodide.runPython("from k3core.lab.host import handle as _k3_handle");
  const python = pyodide.runPython("import platform; platform.python_version()");
  self.postMessage({ kind: "ready", python, milliseconds: performance.now() - started });
}

// Pyodide asks for its files by URL; each is asked for once, so its bytes are let go.
function answerFetch(files) {
  self.fetch = async (input) => {
    const url = String(input instanceof Request ? input.url : input);
    const name = decodeURIComponent(url.slice(BASE.length));
    const bytes = url.startsWith(BASE) ? files[name] : undefined;
    if (!bytes) throw new Error(`the runtime asked for ${name || url}, which this site does not hold`);
    delete files[name];
    phase(name);
    const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return new Response(bytes, { headers: { "content-type": type } });
  };
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
  self.postMessage({ kind: "reply", id, reply });
}

function macrotask() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { port1.close(); resolve(); };
    port2.postMessage(null);
  });
}
