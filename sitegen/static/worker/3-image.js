// An image of Python's memory, taken once everything is imported. A later visit starts from it in a fraction of the time
// that starting and importing takes. It is made by a worker of its own on this machine, from the same files in the same
// browser, and kept beside them; where there is none, or it cannot be kept, Python starts as ever.
const PAGE = 4096; // bytes; of a memory that is mostly empty only the pages that hold something are kept
const DIGEST = "x-sha256";
const IMPORT_EVERYTHING = `
import gc, importlib.readers, numpy.random
from k3core.lab.host import handle as _k3_handle
from k3core.lab.registry import everything, experiment
for slug in everything(): experiment(slug)
gc.collect()
`;

// The memory that is kept at this address, as Pyodide takes it; null where there is none.
async function findImage(url) {
  const kept = await findKept(url), packed = kept && await kept.arrayBuffer();
  return packed && await sha256(packed) === kept.headers.get(DIGEST) ? unpackPages(packed) : null;
}

// Starts Python, imports everything, and keeps the image where the service worker keeps the files that it is made from.
async function makeImage({ files, lock, image }) {
  const loading = loadAll(files);
  pyodide = await interpreter(loading, lock, { _makeSnapshot: true }, installing(loading));
  pyodide.runPython(IMPORT_EVERYTHING);
  forgetLibraries(pyodide._module);
  const body = await packPages(pyodide.makeMemorySnapshot()).arrayBuffer();
  const headers = { [DIGEST]: await sha256(body) };
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    if (!await cache.match(files[0].kept)) continue;
    await cache.delete(image, { ignoreSearch: true }); // one that an older browser made
    await cache.put(image, new Response(body, { headers }));
  }
  self.postMessage({ kind: "imaged" });
}

// The C library holds on to the bytes of each extension module that it opened, which nobody reads again.
function forgetLibraries({ LDSO, HEAPU32, HEAPU8 }) {
  for (const library of Object.keys(LDSO.loadedLibsByHandle).map(Number).filter(Boolean)) {
    const [at, size] = HEAPU32.subarray((library + 28) / 4, (library + 36) / 4); // file_data, file_data_size
    HEAPU8.fill(0, at, at + size);
  }
}

// For an image the packages are put in place before Python starts, so that extension modules lie at the same addresses
// when it is made and when it is used. bytes: how large memory has to be.
function installing(loading, bytes = 0) {
  return async (module) => {
    await install(module, loading);
    if (bytes > module.HEAPU8.length) module.growMemory(bytes);
  };
}

// Of a memory, its length, how many pages hold something, which ones, and these pages.
function packPages(memory) {
  const words = new Uint32Array(memory.buffer, 0, memory.length / 4), perPage = PAGE / 4, used = [];
  for (let page = 0; page * perPage < words.length; page++) {
    if (words.subarray(page * perPage, (page + 1) * perPage).some((word) => word)) used.push(page);
  }
  const head = new Uint32Array([memory.length, used.length, ...used]);
  return new Blob([head, ...used.map((page) => memory.subarray(page * PAGE, (page + 1) * PAGE))]);
}

function unpackPages(packed) {
  const [length, count] = new Uint32Array(packed, 0, 2), memory = new Uint8Array(length);
  const used = new Uint32Array(packed, 8, count), pages = new Uint8Array(packed, 8 + 4 * count);
  used.forEach((page, index) => memory.set(pages.subarray(index * PAGE, (index + 1) * PAGE), page * PAGE));
  return memory;
}
