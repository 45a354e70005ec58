// The files of Python: loaded by this worker over the network, or taken from the page, and checked.
const TELL_BYTES = 200_000; // how often the page hears of a download's progress
const fetchFile = self.fetch.bind(self); // the one that Pyodide and Python see is replaced, see answerPyodide()
const downloaded = new Map(); // name of a file that came over the network -> its pieces, packed
const arrivals = new Map(); // name of a file that the page hands over -> the promise of its blob, and what resolves it

// Every file on its way: name -> promise of its bytes, of the program that a file of WebAssembly is, or of a module.
// Packages are needed last, so they are not unpacked before the modules have been read.
function loadAll(files) {
  const ending = (end) => files.filter(({ name }) => name.endsWith(end));
  const modules = ending(".mjs").map((file) => [file.name, load(file).then(importBytes)]);
  const read = Promise.all(modules.map(([, module]) => module));
  return new Map([
    ...modules,
    ...ending(".wasm").map((file) => [file.name, compile(file)]),
    ...ending(".zip").map((file) => [file.name, load(file)]),
    ...ending(".whl").map((file) => [file.name, load(file, read)]),
  ]);
}

function importBytes(bytes) {
  const url = URL.createObjectURL(new Blob([bytes], { type: "text/javascript" }));
  return import(url).finally(() => URL.revokeObjectURL(url));
}

// A file's bytes, checked. after: a promise to wait for before they are unpacked.
async function load(file, after = null) {
  const kept = await findKept(file.kept);
  if (kept) {
    const bytes = new Uint8Array(await kept.arrayBuffer());
    if (await isRight(bytes, file)) return have(file, bytes);
  }
  const lost = losing(file), pieces = [];
  for await (const piece of arriving(file, lost)) pieces.push(piece);
  await after;
  return checked(await unpacked(pieces), file, lost);
}

// A file of WebAssembly, compiled while it arrives.
async function compile(file) {
  const kept = await findKept(file.kept), sound = kept && await WebAssembly.compileStreaming(kept).catch(() => null);
  if (sound) return have(file, sound);
  const lost = losing(file), [stream, copy] = (await unpacked(arriving(file, lost))).tee();
  const headers = { "content-type": "application/wasm" };
  const compiled = WebAssembly.compileStreaming(new Response(stream, { headers })).catch((error) => error);
  await checked(copy, file, lost); // first: what is wrong with the bytes says more than what is wrong with the program
  const program = await compiled;
  if (program instanceof Error) throw program;
  return program;
}

// What the service worker keeps of earlier visits, unpacked, as a response; null where there is nothing.
async function findKept(url) {
  try {
    return (url && await caches.match(url)) || null;
  } catch {
    return null; // storage is blocked
  }
}

function have({ name, wire_bytes: bytes }, content) {
  self.postMessage({ kind: "loaded", name, bytes });
  return content;
}

// Hands the page what was downloaded, so that the next worker need not.
function hold() {
  for (const [name, chunks] of downloaded) self.postMessage({ kind: "held", name, blob: new Blob(chunks) });
  downloaded.clear();
}

// A function that tells the page that a file cannot be had, and why. The page then ends this worker or goes on without
// the file; either way nobody waits any longer, and the promise that is returned stays open.
function losing({ name }) {
  return (why) => {
    self.postMessage({ kind: "lost", name, ...why });
    return new Promise(() => {});
  };
}

// The pieces of a packed file, as they come.
async function* arriving(file, lost) {
  if (file.url) {
    yield* download(file, lost);
  } else {
    yield new Uint8Array(await (await arrival(file.name).promise).arrayBuffer());
    arrivals.delete(file.name);
  }
}

// What the network brings of a file, counted, and kept for a later worker.
async function* download({ name, url }, lost) {
  const response = await fetchFile(url).catch(() => lost({}));
  if (!response.ok) await lost({ status: response.status });
  const pieces = [], reader = response.body.getReader();
  let untold = 0;
  const tell = () => {
    self.postMessage({ kind: "loaded", name, bytes: untold });
    untold = 0;
  };
  for (;;) {
    const { done, value } = await reader.read().catch(() => lost({})); // the connection broke
    if (done) break;
    pieces.push(value);
    untold += value.length;
    if (untold > TELL_BYTES) tell();
    yield value;
  }
  tell();
  downloaded.set(name, pieces);
}

// A stream of what gzip undoes the pieces to; by what they are, because some hosts already do when they see the name.
async function unpacked(pieces) {
  const iterator = pieces[Symbol.asyncIterator] ? pieces : pieces.values();
  const first = await iterator.next(), [one, two] = first.value || [];
  const { readable, writable } = one === 0x1f && two === 0x8b ? new DecompressionStream("gzip") : new TransformStream();
  const writer = writable.getWriter();
  const pump = async () => {
    for (let step = first; !step.done; step = await iterator.next()) await writer.write(step.value);
    await writer.close();
  };
  pump().catch(() => {}); // who reads the stream finds it broken, too
  return readable;
}

// The bytes of a stream, if they are those that the site was built with.
async function checked(stream, file, lost) {
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer().catch(() => new ArrayBuffer(0)));
  return await isRight(bytes, file) ? bytes : lost({ got: bytes.length });
}

async function isRight(bytes, { raw_bytes: wanted, sha256: digest }) {
  return bytes.length === wanted && [null, digest].includes(await sha256(bytes));
}

// SHA-256 as hex digits; null where the browser offers none, which is on plain http to another host.
async function sha256(bytes) {
  if (!self.crypto || !crypto.subtle) return null;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function arrival(name) {
  if (!arrivals.has(name)) {
    const entry = {};
    entry.promise = new Promise((resolve) => { entry.resolve = resolve; });
    arrivals.set(name, entry);
  }
  return arrivals.get(name);
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
