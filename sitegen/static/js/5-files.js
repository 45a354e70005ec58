// Files that the reader drops, picks or pastes: text, kept by the engine, named in the address by SHA-256 as file.NAME.
const PASTE_LIMIT = 100000; // characters; a longer file is not shown in the box

// The inputs of one page.
class Files {
  // onChange(): a file came or went, already written to the address.
  constructor(address, engine, onChange) {
    this.address = address;
    this.engine = engine;
    this.onChange = onChange;
    this.texts = engine.kept;
    this.newest = new Map(); // input name -> the file that came last, however long each takes to read
    this.fresh = null; // key of a file that has come and whose first result has not
    this.adopted = new Map(); // parameter -> value that a file brought along
    for (const node of $$("[data-input]")) this.bind(node);
  }

  bind(node) {
    const input = page.experiment.inputs.find((candidate) => candidate.name === node.dataset.input);
    const picker = $("input", node);
    picker.addEventListener("click", () => { picker.value = ""; }); // or the same file, mended, could not be chosen again
    picker.addEventListener("change", () => this.take(input, picker.files[0]));
    $(".forget", node).addEventListener("click", () => this.forget(input));
    for (const type of ["dragenter", "dragover"]) {
      node.addEventListener(type, (event) => { event.preventDefault(); node.classList.add("over"); });
    }
    for (const type of ["dragleave", "drop"]) node.addEventListener(type, () => node.classList.remove("over"));
    node.addEventListener("drop", (event) => {
      event.preventDefault();
      this.take(input, event.dataTransfer.files[0]);
    });
    const box = $("textarea", node);
    box.addEventListener("input", debounce(300, () => {
      if (box.value.trim()) this.take(input, new File([box.value], say("pasted text")));
      else this.forget(input);
    }));
  }

  // The reader goes on without the file, and without what it brought along.
  forget(input) {
    this.newest.delete(input.name);
    for (const [name, value] of this.adopted) if (this.address.get(name) === value) this.address.set(name, undefined);
    this.adopted.clear();
    this.address.set(`file.${input.name}`, undefined);
    this.onChange();
  }

  // Reads a file and has it used, unless another has come in the meantime.
  async take(input, file) {
    if (!file) return;
    this.newest.set(input.name, file);
    const { text, key, problem } = await readText(file, input.max_bytes);
    if (this.address.closed || this.newest.get(input.name) !== file) return;
    if (problem) {
      showNotice("problem", problem);
      return;
    }
    this.engine.keep(key, { name: file.name, text });
    if (this.address.get(`file.${input.name}`) !== key) this.fresh = key; // else a link names it, with its own settings
    this.address.set(`file.${input.name}`, key);
    this.onChange();
  }

  // Input name -> key, for the files that are here; a link may name one that only its sender has.
  given(state = this.address.state) {
    const keys = {};
    for (const { name } of page.experiment.inputs) {
      const key = state.get(`file.${name}`);
      if (!this.texts.has(key)) continue;
      keys[name] = key;
      this.engine.use(key);
    }
    return keys;
  }

  // What the reader calls the file of an input; undefined where none is here.
  nameOf(input) {
    return this.texts.get(this.address.get(`file.${input}`))?.name;
  }

  // Sets what the first result of a new file suggests and the reader has not set; the names of what that changed. given:
  // the files of that result, input name -> key.
  adopt(suggested, given) {
    if (!Object.values(given).includes(this.fresh)) return [];
    this.fresh = null;
    const { state } = this.address;
    const free = (name) => !state.has(name) || state.get(name) === this.adopted.get(name);
    const differs = (name) => this.address.get(name) !== String(suggested[name]);
    const names = Object.keys(suggested).filter((name) => free(name) && differs(name));
    for (const name of names) {
      this.address.set(name, String(suggested[name]));
      this.adopted.set(name, String(suggested[name]));
    }
    return names;
  }

  // What is given, in words, and in the box.
  show() {
    for (const node of $$("[data-input]")) {
      const key = this.address.get(`file.${node.dataset.input}`);
      const held = this.texts.get(key);
      $(".forget", node).hidden = !key;
      const box = $("textarea", node);
      if (box !== document.activeElement) box.value = held && held.text.length <= PASTE_LIMIT ? held.text : "";
      const lacking = key && !held && say("This link was made with a file (SHA-256 {key}…). Drop the same file to see its result.",
        { key: key.slice(0, 12) });
      setText($(".held", node), lacking || (held ? held.name : ""));
      const { replaces } = page.experiment.inputs.find(({ name }) => name === node.dataset.input);
      for (const control of $$("#controls [name]")) if (control.name === replaces) control.disabled = Boolean(held);
    }
  }
}

// A file that misses its box would take the place of the page, and all that was set there with it.
function refuseFilesElsewhere() {
  for (const type of ["dragover", "drop"]) {
    document.addEventListener(type, (event) => {
      if (event.defaultPrevented || !event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "none";
    });
  }
}

// {text, key} of a file, or {problem} in words.
async function readText(file, limit) {
  const { name, size } = file;
  if (size > limit) return { problem: say("{file} has {size} bytes; at most {limit} are read", { file: name, size, limit }) };
  let bytes;
  try {
    bytes = await file.arrayBuffer();
  } catch {
    return { problem: say("{file} cannot be read", { file: name }) }; // a folder, or changed since it was chosen
  }
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return { problem: say("{file} is not a text file", { file: name }) };
  }
  return { text, key: await contentKey(bytes) };
}

// SHA-256, or the size and a checksum where there is none.
async function contentKey(bytes) {
  const digest = await sha256(bytes);
  if (digest) return digest;
  let sum = 0;
  for (const byte of new Uint8Array(bytes)) sum = (sum * 31 + byte) % 4294967291;
  return `unhashed-${bytes.byteLength}-${sum}`;
}
