// Runs in the head, right after the manifest: starts Python's worker, which loads its files, while the page is still
// being read in. Not where the reader wants to save data or the device is small: there the page asks first
// (3-consent.js).
(() => {
  const { manifest } = window.K3;
  const fromDisk = location.protocol === "file:";
  const { src, dataset } = document.currentScript;
  const root = new URL("..", src);
  // From disk a worker can only start from a data: URL; elsewhere a blob: is the usual way.
  const worker = fromDisk ? "data:text/javascript;charset=utf-8," + encodeURIComponent(manifest.worker)
    : URL.createObjectURL(new Blob([manifest.worker], { type: "text/javascript" }));

  // What the worker needs to know of a file: where it lies, or nothing where the page hands it over; and where it may be
  // kept, unpacked, since an earlier visit.
  K3.fileFor = (file, held) => {
    const url = fromDisk || held.has(file.name) ? null : new URL(file.path, root).href;
    return { ...file, url, kept: url && url.replace(/\.gz$/, "") };
  };

  // Where an image of Python's memory may be kept, which only the browser that made it can use.
  K3.image = fromDisk ? null : new URL(`assets/image.${manifest.image}?${navigator.userAgent}`, root).href;

  // A worker that starts Python, and what it has said so far. held: name -> blob of files that are here already.
  // order: what to do and how, "boot" unless said otherwise.
  K3.startWorker = (held, order = { do: "boot", image: K3.image }) => {
    const started = { worker: new Worker(worker, { type: "module" }), heard: [] };
    started.worker.onmessage = ({ data }) => started.heard.push(data);
    started.worker.onerror = (event) => started.heard.push({ kind: "fatal", message: event.message });
    const files = manifest.files.map((file) => K3.fileFor(file, held));
    started.worker.postMessage({ ...order, files, lock: manifest.lock });
    return started;
  };

  const net = navigator.connection || {};
  const slow = net.saveData || /2g|3g/.test(net.effectiveType || "");
  const small = navigator.deviceMemory <= 2 || (net.type === "cellular" && matchMedia("(max-width: 500px)").matches);
  K3.mustAsk = Boolean(slow || small);
  try {
    if (localStorage.getItem("k3-load") === "yes") K3.mustAsk = false;
  } catch {
    // Storage is blocked: the page asks again.
  }
  if (fromDisk || K3.mustAsk || dataset.python === undefined) return;
  try {
    K3.early = K3.startWorker(new Map());
  } catch {
    // The engine tries once more, and says why it cannot.
  }
})();
