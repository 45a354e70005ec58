// Python's worker: boots Pyodide, then answers JSON with JSON.
const BASE = "https://runtime.invalid/"; // never resolved: the replaced fetch answers it from memory
const SLICE_MS = 12; // how long to step before the message queue gets a turn
let pyodide = null;
let disk = null; // Python's file system
let sitePackages = "";
let dropped = true; // true: no run is under way, or the one under way is to be given up

self.onmessage = async ({ data }) => {
  try {
    if (data.do === "boot") await boot(data);
    else if (data.do === "image") await makeImage(data);
    else if (data.do === "take") arrival(data.name).resolve(data.blob);
    else if (data.do === "place") await placeExtra(data.file);
    else if (data.do === "drop") dropped = true;
    else if (data.do === "run") await run(data);
    else if (data.do === "ask") post(data.id, call(data.request));
  } catch (error) {
    fatal(error);
  }
};

function fatal(error) {
  self.postMessage({ kind: "fatal", message: String(error && error.message ? error.message : error) });
}

// files: what the manifest says of each, and its url, or null where the page hands it over. image: where one may be
// kept, or null.
async function boot({ files, lock, image }) {
  const loading = loadAll(files), memory = await findImage(image);
  if (memory) {
    pyodide = await interpreter(loading, lock, { _loadSnapshot: memory }, installing(loading, memory.length));
  } else {
    pyodide = await interpreter(loading, lock);
    await install(pyodide._module, loading);
    phase("import");
    pyodide.runPython("import sys; sys.path_importer_cache.clear()"); // it had seen an empty folder
    pyodide.runPython("from k3core.lab.host import handle as _k3_handle");
  }
  const python = pyodide.runPython("import sys; sys.version.split()[0]");
  self.postMessage({ kind: "ready", python, imaged: Boolean(memory) });
  hold();
}

// Puts the wheels where Python imports packages from, and links their extension modules, which Python would do one by
// one as it imports them, looking through every symbol there is each time.
async function install(module, loading) {
  const options = { loadAsync: true, nodelete: true, allowUndefined: true };
  for (const name of [...loading.keys()].filter((candidate) => candidate.endsWith(".whl"))) {
    const wheel = await loading.get(name);
    phase(name);
    for (const [path, content] of members(wheel)) {
      if (path.includes(".dist-info/")) continue; // Pyodide would list it, and an image cannot hold that list
      const whole = place(path, content);
      if (path.endsWith(".so")) module.preloadedWasm[whole] = await module.loadWebAssemblyModule(content, options, whole, {});
    }
  }
  module.reportUndefinedSymbols();
}

// A started Pyodide. prepare: an asynchronous function that gets its module before Python starts.
async function interpreter(loading, lock, options = {}, prepare = async () => {}) {
  answerPyodide(loading);
  const { loadPyodide } = await loading.get("pyodide.mjs"), { default: create } = await loading.get("pyodide.asm.mjs");
  phase("interpreter");
  return loadPyodide({
    indexURL: BASE, packageBaseUrl: BASE, lockFileContents: lock,
    createPyodideModule: (settings) => create({ ...settings, preRun: [...settings.preRun, (module) => {
      module.addRunDependency("prepare");
      prepare(module).then(() => module.removeRunDependency("prepare"), fatal);
    }] }),
    fsInit: (FS, folders) => {
      disk = FS;
      ({ sitePackages } = folders);
    },
    enableRunUntilComplete: false, env: { PYTHONHASHSEED: "0" }, ...options,
  });
}

// Pyodide asks for its files by URL, and for the program to be compiled from what it gets.
function answerPyodide(loading) {
  let program = "";
  self.fetch = async (input) => {
    const url = String(input instanceof Request ? input.url : input);
    const name = decodeURIComponent(url.slice(BASE.length));
    if (!url.startsWith(BASE) || !loading.has(name)) {
      throw new Error(`the runtime asked for ${name || url}, which this site does not hold`);
    }
    if (name.endsWith(".wasm")) {
      program = name;
      return new Response();
    }
    const bytes = await loading.get(name);
    loading.delete(name); // Pyodide asks once; let go of the bytes
    phase(name);
    return new Response(bytes);
  };
  WebAssembly.instantiateStreaming = async (_, imports) => {
    const module = await loading.get(program);
    phase(program);
    return { module, instance: await WebAssembly.instantiate(module, imports) };
  };
}

// A file that only some tabs need.
async function placeExtra(file) {
  const bytes = await load(file);
  place(file.target, bytes);
  hold();
  self.postMessage({ kind: "placed", name: file.name });
}

// Writes a file into the folder that Python imports packages from, and says where; the bytes become the file, uncopied.
function place(path, bytes) {
  const whole = `${sitePackages}/${path}`;
  disk.mkdirTree(whole.slice(0, whole.lastIndexOf("/")));
  disk.writeFile(whole, bytes, { canOwn: true });
  return whole;
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
