// Where the reader wants to save data, or the device is small, Python is loaded only when it is asked for. A button
// says yes, and so does moving a control; everything can be read either way.

// The question, and what was answered.
class Consent {
  // load(): what to do on yes.
  constructor(load) {
    this.load = load;
    this.asking = false;
  }

  // True where nothing stands in the way.
  get given() { return !K3.mustAsk; }

  // shared: the address asks for other settings than the page shows.
  ask(shared) {
    this.asking = true;
    const megabytes = (K3.manifest.files.reduce((sum, file) => sum + file.wire_bytes, 0) / 1e6).toFixed(1);
    const words = [
      shared ? say("This link asks for other settings than the ones shown.") : "",
      K3.refused ? say("Computing here needs Python, {megabytes} MB; moving a control loads it.", { megabytes })
        : say("This device saves data, so Python ({megabytes} MB) is not loaded yet. Everything can be read without it; moving a control loads it.", { megabytes }),
    ];
    const buttons = [[say("Load Python"), () => this.yes()]];
    if (!K3.refused) buttons.push([say("Not now"), () => this.no(shared)]);
    showNotice("info", words.filter(Boolean).join(" "), ...buttons);
  }

  yes() {
    if (!this.asking) return;
    this.asking = false;
    K3.mustAsk = false;
    remember("k3-load", "yes");
    showNotice("info", say("Python is loading; the settings are computed as soon as it is up."));
    this.load();
  }

  // Until the site is opened anew, the question is only a line with one button.
  no(shared) {
    K3.refused = true;
    this.ask(shared);
  }
}

// Keeps a value for later visits.
function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Storage is blocked or full: remembered until the site is opened anew.
  }
}
