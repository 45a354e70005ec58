// The files of Python: loaded by this worker over the network, or taken from the page, and checked.
const TELL_BYTES = 200_000; // how often the page hears of a download's progress
const fetchFile = self.fetch.bind(self); // the one that Pyodide and Python see is replaced, see interpreter()
const downloaded = new Map(); // name of a file that came over the network -> its pieces, packed
const arriving = new Map(); // name of a file that the page hands over -> the promise of its blob, and what resolves it

// Every file on its way: name -> promise of its bytes, or of the program that a file of WebAssembly is.
function loadAll(files) {
  const isProgram = ({ name }) => name.endsWith(".wasm");
  return new Map(files.map((file) => [file.name, isProgram(file) ? compile(file) : load(file)]));
}

// A file's bytes, checked.
async function load(file) {
  const kept = await findKept(file.kept);
  if (kept) {
    const bytes = new Uint8Array(await kept.arrayBuffer());
    if (bytes.length === file.raw_bytes && [null, file.sha256].includes(await sha256(bytes))) return have(file, bytes);
  }
  return new Uint8Array(await new Response(await open(file)).arrayBuffer());
}

// A file of WebAssembly, compiled while it arrives.
async function compile(file) {
  const kept = await findKept(file.kept);
  if (kept) return have(file, WebAssembly.compileStreaming(kept));
  const headers = { "content-type": "application/wasm" };
  return WebAssembly.compileStreaming(new Response(await open(file), { headers }));
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

// A stream of a file's bytes, which ends only if they are right. Where the file cannot be had the page is told, which
// then ends this worker or goes on without the file; either way nobody waits any longer, and what was promised stays
// open.
async function open(file) {
  const lost = (why) => {
    self.postMessage({ kind: "lost", name: file.name, ...why });
    return new Promise(() => {});
  };
  const packed = file.url ? await download(file, lost) : (await arrival(file.name).promise).stream();
  arriving.delete(file.name);
  return checked(await unpack(packed), file, lost);
}

// What the network brings of a file, counted, and kept for a later worker.
async function download({ name, url }, lost) {
  const response = await fetchFile(url).catch(() => lost({}));
  if (!response.ok) return lost({ status: response.status });
  const reader = response.body.getReader(), chunks = [];
  let untold = 0;
  const tell = () => {
    self.postMessage({ kind: "loaded", name, bytes: untold });
    untold = 0;
  };
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read().catch(() => lost({})); // the connection broke
      if (done) {
        tell();
        downloaded.set(name, chunks);
        controller.close();
      } else {
        chunks.push(value);
        untold += value.length;
        if (untold > TELL_BYTES) tell();
        controller.enqueue(value);
      }
    },
  });
}

// Undoes gzip by what the bytes are: some hosts already do when they see the name.
async function unpack(stream) {
  const reader = stream.getReader(), first = await reader.read();
  const whole = new ReadableStream({
    start(controller) {
      if (first.done) controller.close();
      else controller.enqueue(first.value);
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
  const zipped = first.value && first.value[0] === 0x1f && first.value[1] === 0x8b;
  return zipped ? whole.pipeThrough(new DecompressionStream("gzip")) : whole;
}

// The same stream; it does not end before its bytes were found to be those that the site was built with.
function checked(stream, { raw_bytes: wanted, sha256: digest }, lost) {
  const reader = stream.getReader(), bytes = new Uint8Array(wanted);
  let got = 0;
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read().catch(() => lost({ got })); // a broken archive
      if (!done) {
        if (got + value.length > wanted) await lost({ got: got + value.length });
        bytes.set(value, got);
        got += value.length;
        controller.enqueue(value);
      } else {
        if (got !== wanted || ![null, digest].includes(await sha256(bytes))) await lost({ got });
        controller.close();
      }
    },
  });
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
