// The controls: each edits one parameter as text. Python alone judges values; a slider merely cannot leave its range.
class Controls {
  // onChange(): the reader changed something, already written to the address.
  constructor(form, address, onChange) {
    this.form = form;
    this.address = address;
    this.onChange = onChange;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => this.edited(event.target));
    for (const button of $$("[data-preset]")) {
      button.addEventListener("click", () => this.preset(button.dataset.preset));
    }
  }

  inputs(name) { return $$("[name]", this.form).filter((input) => input.name === name); }

  // Every control shows what the address says.
  show() {
    for (const { name, when } of page.experiment.params) {
      this.showOne(name, this.address.get(name));
      partFor("param", name).hidden = Boolean(when) && !when.values.map(String).includes(this.address.get(when.name));
    }
    for (const preset of page.experiment.presets) {
      const chosen = this.shows(preset);
      partFor("preset", preset.name).setAttribute("aria-pressed", String(chosen));
      partFor("expect", preset.name).hidden = !chosen;
    }
  }

  // Whether everything is set as the preset has it, however it came about.
  shows(preset) {
    const wanted = { ...defaults, ...settingsOf(preset) };
    return Object.entries(wanted).every(([name, value]) => this.address.get(name) === value)
      && !fileNames.some((name) => this.address.get(name));
  }

  showOne(name, value) {
    for (const input of this.inputs(name)) {
      if (input.type === "checkbox") input.checked = ["true", "1", "on", "yes"].includes(value);
      else if (input.type === "radio") input.checked = input.value === value;
      else if (input !== document.activeElement || input.type === "range") input.value = value;
    }
  }

  edited(input) {
    this.set(input.name, input.type === "checkbox" ? String(input.checked) : input.value);
  }

  // One parameter and its value, as the page calls them.
  words(name) {
    const { label, choices } = page.experiment.params.find((param) => param.name === name);
    const value = this.address.get(name);
    const choice = (choices || []).find((candidate) => String(candidate.value) === value);
    return say("{name}: {value}", { name: label, value: choice ? choice.label : value });
  }

  // Sets one parameter, whoever asks for it.
  set(name, value) {
    this.address.set(name, value);
    this.show();
    this.onChange();
  }

  preset(name) {
    for (const param of [...Object.keys(defaults), ...fileNames]) this.address.set(param, undefined);
    this.address.set("preset", name);
    this.takePreset();
    this.show();
    this.onChange();
  }

  // Settles what a preset's name in the address leaves open. A name that does not exist stays: Python refuses it.
  takePreset() {
    const preset = page.experiment.presets.find((candidate) => candidate.name === this.address.get("preset"));
    if (!preset) return;
    for (const [name, value] of Object.entries(settingsOf(preset))) {
      if (!this.address.state.has(name)) this.address.set(name, value);
    }
    this.address.set("preset", undefined);
  }

  // Marks the control whose value Python refused, and clears all others.
  blame(name) {
    for (const input of $$("[name]", this.form)) {
      if (input.name === name) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }
}

// A value as the address writes it.
function written(value) {
  return Array.isArray(value) ? value.join(",") : String(value);
}

// Parameters and seed of a preset, as the address writes them.
function settingsOf({ params, seed }) {
  return Object.fromEntries(Object.entries({ ...params, seed }).map(([name, value]) => [name, written(value)]));
}

let fileNames = []; // as the address writes them
let defaults = {}; // name -> default as text

// What the page's experiment names and starts from.
function readDefaults({ inputs, params }) {
  fileNames = inputs.map((input) => `file.${input.name}`);
  defaults = settingsOf({ seed: 0, params: Object.fromEntries(params.map((param) => [param.name, param.default])) });
}
