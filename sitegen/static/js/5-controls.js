// Controls: each edits one parameter as text. Python alone judges values; a slider merely cannot leave its range.
class Controls {
  // onChange(): the reader changed something, already written to the address.
  constructor(form, address, onChange) {
    this.form = form;
    this.address = address;
    this.onChange = onChange;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => this.edited(event.target));
    for (const button of $$("[data-preset]")) button.addEventListener("click", () => this.preset(button.dataset.preset));
  }

  inputs(name) { return $$("[name]", this.form).filter((input) => input.name === name); }

  // Every control shows what the address says.
  show() {
    for (const param of page.experiment.params) this.showOne(param.name, this.address.get(param.name));
    const chosen = this.address.get("preset");
    for (const button of $$("[data-preset]")) button.setAttribute("aria-pressed", String(button.dataset.preset === chosen));
    for (const note of $$("[data-expect]")) note.hidden = note.dataset.expect !== chosen;
  }

  showOne(name, value) {
    for (const input of this.inputs(name)) {
      if (input.type === "checkbox") input.checked = ["true", "1", "on", "yes"].includes(value);
      else if (input.type === "radio") input.checked = input.value === value;
      else if (input !== document.activeElement || input.type === "range") input.value = value;
    }
  }

  edited(input) {
    const value = input.type === "checkbox" ? String(input.checked) : input.value;
    this.set(input.name, value);
  }

  set(name, value) {
    this.address.set(name, value);
    this.address.set("preset", undefined);
    this.show();
    this.onChange();
  }

  preset(name) {
    const preset = page.experiment.presets.find((candidate) => candidate.name === name);
    for (const param of page.experiment.params) {
      const value = preset.params[param.name];
      this.address.set(param.name, value === undefined ? undefined : text(value));
    }
    this.address.set("seed", preset.seed ? String(preset.seed) : undefined);
    this.address.set("preset", name);
    this.show();
    this.onChange();
  }

  // Marks the control whose value Python refused, and clears all others.
  blame(name) {
    for (const input of $$("[name]", this.form)) {
      if (input.name === name) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }
}

function text(value) {
  return Array.isArray(value) ? value.join(",") : String(value);
}

const defaults = Object.fromEntries(page.experiment ? page.experiment.params.map((p) => [p.name, text(p.default)]) : []);
