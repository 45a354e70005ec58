// Files that the reader drops, picks or pastes: text, kept by the engine, named in the address by SHA-256 as file.NAME.
const PASTE_LIMIT = 100000; // characters; a longer file is not shown in the box
class Files {
  // onChange(): a file came or went, already written to the address.
  constructor(address, engine, onChange) {
    this.address = address;
    this.engine = engine;
    this.onChange = onChange;
    this.texts = engine.kept;
    for (const node of $$("[data-input]")) this.bind(node);
  }

  bind(node) {
    const input = page.experiment.inputs.find((candidate) => candidate.name === node.dataset.input);
    $("input", node).addEventListener("change", (event) => this.take(input, event.target.files[0]));
    $(".forget", node).addEventListener("click", () => this.forget(input));
    for (const type of ["dragenter", "dragover"]) {
      node.addEventListener(type, (event) => { event.preventDefault(); node.classList.add("over"); });
    }
    for (const type of ["dragleave", "drop"]) node.addEventListener(type, () => node.classList.remove("over"));
    node.addEventListener("drop", (event) => { event.preventDefault(); this.take(input, event.dataTransfer.files[0]); });
    const box = $("textarea", node);
    box.addEventListener("input", debounce(300, () => {
      if (box.value.trim()) this.take(input, new File([box.value], say("pasted text")));
      else this.forget(input);
    }));
  }

  forget(input) {
    this.address.set(`file.${input.name}`, undefined);
    this.onChange();
  }

  async take(input, file) {
    if (!file) return;
    if (file.size > input.max_bytes) {
      showNotice("problem", say("{file} has {size} bytes; at most {limit} are read", { file: file.name, size: file.size, limit: input.max_bytes }));
      return;
    }
    const bytes = await file.arrayBuffer();
    let words;
    try {
      words = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
      showNotice("problem", say("{file} is not a text file", { file: file.name }));
      return;
    }
    const key = await contentKey(bytes);
    this.engine.keep(key, { name: file.name, text: words });
    this.address.set(`file.${input.name}`, key);
    this.onChange();
  }

  // Input name -> key, for the files that are here; a link may name one that only its sender has.
  given(state = this.address.state) {
    const keys = {};
    for (const { name } of page.experiment.inputs) {
      const key = state.get(`file.${name}`);
      if (this.texts.has(key)) keys[name] = key;
    }
    return keys;
  }

  show() {
    for (const node of $$("[data-input]")) {
      const key = this.address.get(`file.${node.dataset.input}`);
      const held = this.texts.get(key);
      $(".forget", node).hidden = !key;
      const box = $("textarea", node);
      if (box !== document.activeElement) box.value = held && held.text.length <= PASTE_LIMIT ? held.text : "";
      setText($(".held", node), held ? held.name
        : key ? say("This link was made with a file (SHA-256 {key}…). Drop the same file to see its result.", { key: key.slice(0, 12) }) : "");
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

// SHA-256, or the size and a checksum where there is none.
async function contentKey(bytes) {
  const digest = await sha256(bytes);
  if (digest) return digest;
  let sum = 0;
  for (const byte of new Uint8Array(bytes)) sum = (sum * 31 + byte) % 4294967291;
  return `unhashed-${bytes.byteLength}-${sum}`;
}
