// Runs in the head, right after the manifest: starts the downloads while the page is still being read in. Not where the
// reader wants to save data or the device is small: there the page asks first (3-consent.js). An embed is told from a
// page here, before anything is seen.
(() => {
  const { manifest } = window.K3;
  if (/[?&#]embed=1(?=[&#]|$)/.test(location.search + location.hash)) document.documentElement.classList.add("embed");
  const net = navigator.connection || {};
  const slow = net.saveData || /2g|3g/.test(net.effectiveType || "");
  const small = navigator.deviceMemory <= 2 || (net.type === "cellular" && matchMedia("(max-width: 500px)").matches);
  K3.mustAsk = Boolean(slow || small);
  try {
    if (localStorage.getItem("k3-load") === "yes") K3.mustAsk = false;
  } catch {
    // Storage is blocked: the page asks again.
  }
  const { src, dataset } = document.currentScript;
  K3.early = new Map(); // name -> promise of a response, or of nothing
  if (location.protocol === "file:" || K3.mustAsk || dataset.python === undefined) return;
  const root = new URL("..", src);
  for (const { name, path } of manifest.files) {
    K3.early.set(name, fetch(new URL(path, root)).catch(() => null)); // the page tries again, and says so
  }
})();
