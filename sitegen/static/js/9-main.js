// One page: address -> request -> result -> page. Everything above is wired together here.
//
// The engine lives as long as the document. A Lab lives as long as its page: whatever it hangs on window or document
// takes its `signal`, and whatever comes late looks whether that is aborted.
const PHASES = {
  "pyodide.mjs": "the interpreter", "python_stdlib.zip": "the standard library", "pyodide.asm.wasm": "the interpreter",
  interpreter: "the interpreter", import: "k3core",
};

// What the engine does, in the header.
function showStatus(status) {
  document.documentElement.dataset.python = status.state;
  if (status.python) K3.python = status.python;
  const pill = $("#status");
  if (!pill) return;
  pill.dataset.state = status.state;
  setText($(".words", pill), statusWords(status));
  $("meter", pill).hidden = !status.total;
  if (status.total) $("meter", pill).value = status.done / status.total;
  $("#stop").hidden = status.state !== "running";
}

function statusWords({ state, phase, done, total }) {
  const live = () => say("Python {version} in this page", { version: K3.python });
  const megabytes = (count) => (count / 1e6).toFixed(1);
  const what = phase && (PHASES[phase] ? say(PHASES[phase]) : phase.split("-")[0]);
  return {
    held: () => say("Python is not loaded"),
    loading: () => say("loading Python, {done} of {total} MB", { done: megabytes(done), total: megabytes(total) }),
    booting: () => say("starting {what}", { what }),
    ready: live,
    running: () => (total ? say("computing, {done} of {total}", { done, total }) : say("computing")),
    idle: live,
    restarting: () => say("restarting Python"),
    failed: () => say("Python is not available"),
  }[state]();
}

// The experiment of one page.
class Lab {
  constructor(engine, signal) {
    this.engine = engine;
    this.signal = signal; // aborted when the page is left
    this.address = new Address(defaults);
    this.charts = new Charts(signal);
    this.result = page.result;
    this.shownFiles = {};
    const onFrame = (name, index) => this.address.set(`frame.${name}`, String(index));
    const scenes = $$("[data-scene]").map((node) => new SceneView(node, (...which) => this.frame(...which), onFrame));
    this.scenes = new Map(scenes.map((scene) => [scene.name, scene]));
    this.controls = new Controls($("#controls"), this.address, () => this.run());
    this.prediction = new PredictionView($("#prediction"), this.address);
    this.files = new Files(this.address, this.engine, () => { this.controls.show(); this.run(); });
    this.pin = new Pin($("#compare"), this.address, this.files);
    this.pace = new Pace($("#pace"), this);
    this.take = new Take(this);
    this.consent = new Consent(() => { this.engine.start(); this.run(); });
    this.editor = new Editor(this, signal);
    bindEmbed(this, signal);
    $("#stop").addEventListener("click", () => this.engine.stop());
    for (const button of $$("[data-copy]")) {
      const source = $("pre", button.closest("figure"));
      button.addEventListener("click", () => copyBy(button, say("Copy"), source.textContent));
    }
    const setParam = (name, value) => this.controls.set(name, value);
    bindDragging($("#lab"), this.address, setParam, signal);
    bindClicks($("#lab"), setParam);
    bindLinking(document.body, signal);
    const onLink = () => (this.address.read() ? this.follow() : this.address.write());
    window.addEventListener("hashchange", onLink, { signal });
    let { narrow } = this;
    window.addEventListener("resize", debounce(200, () => { // a phone was turned: the drawings have two widths
      if (narrow === this.narrow) return;
      narrow = this.narrow;
      for (const scene of this.scenes.values()) scene.redraw();
    }), { signal });
    signal.addEventListener("abort", () => this.close());
  }

  start() {
    if (this.consent.given) this.engine.start(); // first: after a failure it tries again, and the run with it
    this.follow();
    if (!this.consent.given) this.engine.hold();
  }

  close() {
    this.engine.stop();
    this.address.close();
    this.charts.close();
    for (const scene of this.scenes.values()) scene.pause();
  }

  // Until the first result, the page shows that of the defaults; where the address asks for another, it says so.
  get stale() { return this.result === page.result && this.address.settings() !== ""; }

  // Goes where the address says.
  follow() {
    this.controls.takePreset();
    this.controls.show();
    this.prediction.follow(this.result);
    $("#lab").classList.toggle("stale", this.stale);
    if (this.stale && !this.engine.ready && !this.engine.failed) {
      showNotice("info", say("The figures here are not yet those of this link but those of the default settings; the ones it asks for are computed as soon as Python is up."));
    }
    this.run();
  }

  get narrow() { return $("#lab .stage").clientWidth < 520; }

  request() {
    const { address } = this;
    for (const key of Object.values(this.shownFiles)) this.engine.use(key); // what is shown can be asked about
    return {
      slug: page.experiment.slug, params: address.params(), seed: address.get("seed"), preset: address.get("preset"),
      files: this.files.given(), pin: this.pin.request(), lang: page.lang, frames: address.frames(), narrow: this.narrow,
    };
  }

  async run() {
    if (this.signal.aborted) return;
    if (this.consent.asking) {
      this.consent.yes();
      return;
    }
    $("#lab").setAttribute("aria-busy", "true");
    this.files.show();
    const request = this.request(), settings = this.address.settings();
    const reply = JSON.parse(await this.engine.run(request));
    if (reply.state === "superseded" || this.signal.aborted) return;
    this.stream("");
    $("#lab").setAttribute("aria-busy", "false");
    if (reply.state === "done") {
      this.shownFiles = request.files;
      this.show(reply);
      this.pin.took(settings, request.pin, reply);
      this.adopt(this.files.adopt(reply.result.suggested, request.files));
    } else if (reply.state !== "failed") { // `status` has said that
      this.showProblem(reply);
    }
    this.charts.drawing.then(() => offline.keep());
  }

  // A new file has set these parameters: once more, and the page says so.
  async adopt(names) {
    if (!names.length) return;
    this.controls.show();
    await this.run();
    if (this.signal.aborted || !$("#notice").hidden) return;
    const settings = names.map((name) => this.controls.words(name)).join(say("; "));
    showNotice("info", say("Taken from the file: {settings}.", { settings }));
  }

  show(reply) {
    this.result = reply.result;
    $("#lab").classList.remove("stale");
    showNotice("info", "");
    this.controls.blame(null);
    showResult(reply.result);
    this.editor.shown(reply);
    this.take.show();
    for (const scene of reply.result.scenes) {
      const view = this.scenes.get(scene.name), asked = this.address.get(`frame.${scene.name}`);
      if (view) view.show(scene, reply.pictures[scene.name], asked);
    }
    this.prediction.show(reply.result);
    this.pace.show(reply.result);
    this.charts.show(reply.result);
    document.dispatchEvent(new CustomEvent("k3:shown", { detail: reply }));
  }

  showProblem(reply) {
    this.editor.failed(reply);
    if (reply.state === "dropped") {
      showNotice("info", say("Stopped. The figures show the last finished run."));
    } else if (reply.state === "param_error") {
      this.controls.blame(reply.param);
      const known = page.experiment.params.some((param) => param.name === reply.param) || reply.param === "seed";
      const input = page.experiment.inputs.find(({ name }) => name === reply.param);
      const file = this.files.nameOf(reply.param);
      const problem = file ? say("{file}: {problem}", { file, problem: reply.message }) : reply.message;
      showNotice("problem", problem, [known ? say("Use the default") : input ? say("Without the file") : say("Remove it"),
        () => (input ? this.files.forget(input) : this.forget(reply.param))]);
    } else if (reply.state === "edit_error") {
      showNotice("problem", faultWords(reply), this.editor.remedy(reply));
    } else if (reply.state === "lost") {
      showNotice("problem", reply.message, [say("Try again"), () => this.run()]);
    } else {
      showNotice("problem", reply.message, [say("Back to the defaults"), () => this.reset()]);
    }
    document.dispatchEvent(new CustomEvent("k3:problem", { detail: reply }));
  }

  forget(name) {
    this.address.set(name, undefined);
    this.controls.show();
    this.run();
  }

  reset() {
    for (const name of [...this.address.state.keys()]) this.address.set(name, undefined);
    this.controls.show();
    this.run();
  }

  // A frame of the result that is shown; where Python is not up yet, the next result brings it along.
  async frame(scene, index) {
    if (!this.engine.ready) {
      this.run();
      return null;
    }
    const reply = await this.ask({ do: "frame", scene, index, narrow: this.narrow });
    return reply.state === "frame" ? reply.picture : null;
  }

  // A question about the result that is shown. Where Python cannot answer it, the page says why.
  async ask(question) {
    const { slug, params, seed } = this.result;
    const request = { ...question, slug, params, seed, files: this.shownFiles, lang: page.lang };
    const reply = JSON.parse(await this.engine.ask(request));
    if (reply.state.endsWith("error") && !this.signal.aborted) this.showProblem(reply);
    return reply;
  }

  // The text that a run is writing; "" when it has ended.
  stream(text) {
    const box = $("#stream");
    box.hidden = !text;
    if (text) setText(box, text);
  }

  status(status) {
    if (status.state === "running" && status.note) this.stream(status.note);
    if (status.state === "held") {
      $("#lab").setAttribute("aria-busy", "false");
      this.consent.ask(this.stale);
    }
    if (status.state === "failed") {
      const why = say("Python could not start: {why}. Everything here can be read; the figures show the default settings.",
        { why: status.message });
      showNotice("problem", why, [say("Try again"), () => { showNotice("info", ""); this.engine.start(); this.run(); }]);
    }
  }
}

// The page that is in place: the first one, or one that took another's place.
let visit = null;

function arrive() {
  page = readPage();
  visit = new AbortController();
  bindHeader(visit.signal);
  bindTerms(visit.signal);
  K3.lab = null;
  if (!page.experiment) return;
  readDefaults(page.experiment);
  K3.lab = new Lab(engine, visit.signal);
  if (engine.status) showStatus(engine.status);
  K3.lab.start();
}

function leave() {
  if (K3.lab) K3.lab.address.write();
  visit.abort();
}

const engine = new Engine((status) => {
  showStatus(status);
  if (K3.lab) K3.lab.status(status);
});
document.documentElement.classList.add("js");
bindSearch();
refuseFilesElsewhere();
arrive();
if (!fromDisk) K3.navigation = new Navigation(leave, arrive);
