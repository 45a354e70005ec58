// The engine: one Python worker, the newest request wins, and a fresh worker when one hangs or dies.
const SILENT_MS = 2000; // a run yields at least every 50 ms; silence this long with something waiting means stuck
const DEAD_MS = 15000; // silence this long with nothing waiting means dead
const EDIT_MS = 8000; // the same for edited code, which may hold an endless loop
const FILES_KEPT = 8; // dropped files, each version of a pasted text among them

// Runs requests in the worker, one at a time.
class Engine {
  // onStatus({state, ...}): "held", "loading" {done, total}, "booting" {phase}, "ready" {python},
  // "running" {done, total, note}, "idle", "restarting", "failed" {message}
  constructor(onStatus) {
    this.onStatus = (status) => { this.status = status; onStatus(status); };
    this.status = null; // the last one told
    this.runtime = new Runtime((done, total) => this.loading(done, total));
    this.placed = new Set(); // names of extras, files that only some tabs need, that this worker has
    this.placing = new Set(); // those on their way to it
    this.worker = null;
    this.ready = false;
    this.running = null; // the request that Python works on
    this.stopping = false; // it is to be dropped
    this.waiting = null; // the newest one behind it
    this.asked = new Map(); // id -> resolve, of questions beside the runs
    this.kept = new Map(); // key -> {name, text} of a dropped file, last used last; a fresh worker is told again
    this.edits = null; // module -> text, where the reader edited some
    this.nextId = 1;
    this.deaths = 0;
    this.starting = false; // or started
    this.failed = false;
    this.plain = false; // a worker died: no other one starts from an image
    this.imaged = false; // this one did
    setInterval(() => this.watch(), 250);
  }

  // Once; and again after a failure.
  start() {
    if (this.worker || (this.starting && !this.failed)) return;
    this.starting = true;
    this.failed = false;
    if (!K3.manifest) {
      this.fail(say("{file} is missing", { file: "assets/manifest.js" }));
      return;
    }
    for (const name of runtimeNames()) this.runtime.wanted.add(name);
    this.loading(this.runtime.done, this.runtime.total);
    this.boot();
  }

  // Not started, because the reader was not asked yet.
  hold() {
    this.onStatus({ state: "held" });
  }

  loading(done, total) {
    if (!this.failed && (!this.ready || this.placing.size)) this.onStatus({ state: "loading", done, total });
  }

  // The whole reply text of the newest request; an older one that gave way resolves to {"state":"superseded"}, and
  // any to {"state":"failed"} where Python cannot be had. One that asks for an extra gets it and starts again; where
  // that cannot be had, {"state":"lost"}.
  run(request) {
    if (this.failed) return Promise.resolve('{"state":"failed"}');
    return new Promise((resolve) => {
      if (this.waiting) this.waiting.resolve('{"state":"superseded"}');
      const text = JSON.stringify({ do: "start", ...request });
      this.waiting = { id: this.nextId++, request: text, needs: [], resolve, tries: 0 };
      this.pump();
    });
  }

  // A question about the last result (a frame); it does not disturb a run.
  ask(request) {
    return new Promise((resolve) => {
      const id = this.nextId++;
      if (!this.running && !this.asked.size) this.heard = performance.now();
      this.asked.set(id, resolve);
      if (this.ready) this.worker.postMessage({ do: "ask", id, request: JSON.stringify(request) });
      else this.answer(id, '{"state":"superseded"}');
    });
  }

  // Hands a dropped file to Python, now and after every restart; of too many, those that were not used for longest go.
  keep(key, file) {
    this.kept.set(key, file);
    this.use(key);
    this.tell(key, file.text);
    for (const old of [...this.kept.keys()].slice(0, -FILES_KEPT)) {
      this.kept.delete(old);
      this.tell(old, null);
    }
  }

  // A request names this file.
  use(key) {
    const file = this.kept.get(key);
    this.kept.delete(key);
    this.kept.set(key, file);
  }

  tell(key, text) {
    if (this.ready) this.ask({ do: "file", key, text });
  }

  // From now on a fresh interpreter runs these edited modules; null: the shipped ones.
  edit(sources) {
    this.edits = sources;
    this.giveUp('{"state":"superseded"}');
    if (this.worker) this.restart();
  }

  // What is under way and what waits ends with this reply.
  giveUp(reply) {
    for (const lost of [this.running, this.waiting]) if (lost) lost.resolve(reply);
    this.running = this.waiting = null;
    this.stopping = false;
  }

  // Drops the run; the worker lives on.
  stop() {
    if (this.waiting) this.waiting.resolve('{"state":"dropped"}');
    this.waiting = null;
    this.stopping = Boolean(this.running);
    if (this.running && this.worker) this.worker.postMessage({ do: "drop" });
  }

  // Ends the worker and starts another from the files in memory; the newest request is tried again.
  restart() {
    this.onStatus({ state: "restarting" });
    this.end();
    const lost = this.running;
    this.running = null;
    if (lost && (this.stopping || this.waiting)) lost.resolve(this.whyUnfinished());
    else if (lost && (this.edits || lost.tries > 0)) lost.resolve(JSON.stringify(this.whyEnded()));
    else if (lost) this.waiting = { ...lost, tries: lost.tries + 1 };
    this.stopping = false;
    this.boot();
  }

  // The worker and what only it could answer.
  end() {
    if (this.worker) this.worker.terminate();
    this.worker = null;
    this.ready = false;
    for (const id of [...this.asked.keys()]) this.answer(id, '{"state":"superseded"}');
    this.runtime.forgetPieces();
  }

  // The reply to a run that the reader stopped, or that gave way to a newer one.
  whyUnfinished() { return this.stopping ? '{"state":"dropped"}' : '{"state":"superseded"}'; }

  // The reply to a run that cost its worker the life.
  whyEnded() {
    if (!this.edits) return { state: "error", message: say("the Python worker ended in the middle of this run, twice") };
    return { state: "edit_error", module: null, line: null,
      message: say("the edited code ran on without an end, or ended the interpreter; it was stopped") };
  }

  boot() {
    let started;
    try {
      const image = this.edits || this.plain ? null : K3.image;
      started = K3.early || K3.startWorker(this.runtime.held, { do: "boot", image });
    } catch (error) {
      this.fail(error.message); // the browser allows no worker
      return;
    }
    const { worker, heard } = started;
    K3.early = null; // that was the one which the head of the page started
    this.worker = worker;
    this.heard = performance.now();
    worker.onmessage = ({ data }) => {
      if (worker === this.worker && data) this.hear(data); // edited code may post nothing
    };
    worker.onerror = (event) => {
      event.preventDefault();
      if (worker === this.worker) this.died(event.message);
    };
    this.placed.clear();
    this.placing.clear();
    for (const name of runtimeNames()) this.hand(name);
    for (const data of heard) if (worker === this.worker) this.hear(data);
  }

  // Gives the worker a file that it cannot load itself.
  async hand(name) {
    const { worker } = this, { held } = this.runtime;
    if (!fromDisk && !held.has(name)) return;
    try {
      const blob = held.get(name) || await this.runtime.unwrap(name);
      worker.postMessage({ do: "take", name, blob });
    } catch (error) {
      if (worker === this.worker) this.lose(name, error.message);
    }
  }

  // Puts an extra where Python looks for it.
  place(name) {
    if (this.placing.has(name)) return;
    this.placing.add(name);
    this.runtime.wanted.add(name);
    this.worker.postMessage({ do: "place", file: K3.fileFor(described(name), this.runtime.held) });
    this.hand(name);
  }

  // A file cannot be had. Without an extra only the run that needs it fails.
  lose(name, message) {
    this.runtime.forget(name);
    if (!this.placing.has(name)) {
      this.fail(message);
      return;
    }
    this.placing.delete(name);
    this.runtime.wanted.delete(name);
    if (this.waiting && this.waiting.needs.includes(name)) {
      this.waiting.resolve(JSON.stringify({ state: "lost", message }));
      this.waiting = null;
    }
    this.onStatus({ state: "idle" });
  }

  hear(data) {
    this.heard = performance.now();
    if (data.memory) this.memory = data.memory; // bytes of Python's heap
    if (data.kind === "loaded") this.runtime.count(data.name, data.bytes);
    else if (data.kind === "held") this.runtime.held.set(data.name, data.blob);
    else if (data.kind === "lost") this.lose(data.name, whyLost(data));
    else if (data.kind === "placed") this.nowPlaced(data.name);
    else if (data.kind === "phase") this.phase(data.name);
    else if (data.kind === "ready") this.nowReady(data);
    else if (data.kind === "fatal") this.died(data.message);
    else if (this.asked.has(data.id)) this.answer(data.id, data.reply);
    else if (this.running && data.id === this.running.id) this.hearRun(data.reply);
  }

  // While files are on their way, how many of them are here says more.
  phase(name) {
    if (this.runtime.complete) this.onStatus({ state: "booting", phase: name });
  }

  hearRun(reply) {
    if (reply.startsWith('{"state":"progress"')) {
      if (!this.stopping) this.onStatus({ ...JSON.parse(reply), state: "running" }); // else it may be another page's
      return;
    }
    const run = this.running, givesWay = this.stopping || this.waiting;
    const needs = reply.startsWith('{"state":"needs"'), unfinished = needs || reply.startsWith('{"state":"dropped"');
    this.running = null;
    this.deaths = 0;
    if (unfinished && givesWay) run.resolve(this.whyUnfinished());
    else if (!needs) run.resolve(reply);
    else this.fetchFor(run, JSON.parse(reply).name);
    this.stopping = false;
    if (!this.waiting) this.onStatus({ state: "idle" });
    this.pump();
  }

  // Starts the run again once the extra is there.
  fetchFor(run, name) {
    if (run.needs.includes(name)) {
      run.resolve(JSON.stringify({ state: "error", message: say("{file} is damaged", { file: name }) }));
    } else {
      this.waiting = { ...run, needs: [...run.needs, name] };
    }
  }

  nowReady(data) {
    this.ready = true;
    this.imaged = data.imaged;
    if (this.edits) this.ask({ do: "edit", sources: this.edits });
    for (const [key, { text }] of this.kept) this.tell(key, text);
    this.onStatus({ state: "ready", python: data.python });
    this.pump();
  }

  nowPlaced(name) {
    this.placing.delete(name);
    this.placed.add(name);
    this.pump();
  }

  // The worker ended by itself; another one tries, but not for ever.
  died(message) {
    const why = message || say("the Python worker could not start");
    this.plain = true;
    if (!this.edits || !this.ready) this.deaths += 1; // what an edit does says nothing of the interpreter
    if (this.deaths > 2) this.fail(why);
    else this.restart();
  }

  // Python cannot be had, until `start` is called again.
  fail(message) {
    this.end();
    this.failed = true;
    this.deaths = 0;
    this.giveUp('{"state":"failed"}');
    this.onStatus({ state: "failed", message });
  }

  // Sends what waits, once the worker is free and has what that needs.
  pump() {
    if (!this.ready || !this.waiting) return;
    if (this.running) {
      this.worker.postMessage({ do: "drop" });
      return;
    }
    const missing = this.waiting.needs.filter((name) => !this.placed.has(name));
    for (const name of missing) this.place(name);
    if (missing.length) return;
    this.running = this.waiting;
    this.waiting = null;
    this.heard = performance.now();
    this.worker.postMessage({ do: "run", id: this.running.id, request: this.running.request });
  }

  answer(id, reply) {
    const resolve = this.asked.get(id);
    this.asked.delete(id);
    resolve(reply);
  }

  // Has another worker make an image for later visits, unless this visit started from one, nothing of the site is kept,
  // or there is too little memory for two workers.
  async makeImage() {
    const { kept } = K3.fileFor(described(runtimeNames()[0]), new Map());
    if (this.imaged || navigator.deviceMemory <= 2 || !await caches.match(kept)) return;
    const { worker } = K3.startWorker(new Map(), { do: "image", image: K3.image });
    worker.onmessage = ({ data }) => {
      if (["imaged", "fatal", "lost"].includes(data.kind)) worker.terminate();
    };
    worker.onerror = (event) => event.preventDefault();
  }

  // Whether the worker still speaks.
  watch() {
    if (!this.running && !this.asked.size) return;
    const silent = performance.now() - this.heard;
    if (silent > SILENT_MS && (this.waiting || this.stopping)) this.restart();
    else if (silent > (this.edits ? EDIT_MS : DEAD_MS)) this.died(say("the Python worker stopped answering"));
    else if (silent > 300 && this.running) this.onStatus({ state: "running" });
  }
}
