// A result kept beside the present one. The address names its settings as pin=, so that a link shows both: Python runs
// them again where their metrics are not here.
class Pin {
  // files: the page's Files, for those that the kept settings name.
  constructor(node, address, files) {
    this.node = node;
    this.address = address;
    this.files = files;
    this.present = { settings: "", metrics: page.result.metrics }; // what the page shows
    this.kept = {}; // settings, metrics or the message why there are none
    $("button", node).addEventListener("click", () => this.toggle());
  }

  // What to run beside the next request, if anything.
  request() {
    const settings = this.address.get("pin");
    if (settings === undefined || (settings === this.kept.settings && !this.kept.missing)) return undefined;
    const state = parseState(settings), files = this.files.given(state);
    if (fileNames.filter((name) => state.has(name)).length > Object.keys(files).length) {
      this.kept = { settings, missing: true, message: say("The result to compare with used a file that is not here.") };
      return undefined;
    }
    return { settings, params: paramsIn(state), seed: state.get("seed") ?? 0, files };
  }

  // A result for `settings` has come; `asked` is what request() gave when it was started.
  took(settings, asked, reply) {
    const edited = Boolean(reply.result.edited);
    this.present = { settings, metrics: reply.result.metrics, edited };
    if (asked) this.kept = { settings: asked.settings, ...reply.pinned, edited };
    this.show();
  }

  toggle() {
    const keep = this.address.get("pin") === undefined;
    if (keep) this.kept = this.present;
    this.address.set("pin", keep ? this.present.settings : undefined);
    this.show();
  }

  show() {
    const pin = this.address.get("pin"), pinned = pin !== undefined;
    const { settings, metrics, message, edited } = pinned && this.kept.settings === pin ? this.kept : {};
    const button = $("button", this.node);
    button.setAttribute("aria-pressed", String(pinned));
    setText(button, pinned ? say("Let go of the comparison") : say("Keep for comparison"));
    setText($(".differences", this.node), message || (metrics ? differences({ settings, edited }, this.present) : ""));
    for (const node of $$("[data-metric]")) {
      const metric = (metrics || []).find((candidate) => candidate.key === node.dataset.metric);
      const place = $(".kept", node);
      place.hidden = !metric;
      if (metric) setText(place, say("kept: {value}", { value: metric.text }));
      place.classList.toggle("same", Boolean(metric) && metric.text === $(".value", node).textContent);
    }
  }
}

// Which settings differ between two results, in the words of the controls.
function differences(kept, present) {
  const states = [kept, present].map(({ settings }) => parseState(settings));
  const changed = page.experiment.params.map((param) => {
    const [before, now] = states.map((state) => {
      const value = state.get(param.name) ?? defaults[param.name];
      const choice = param.choices.find((candidate) => String(candidate.value) === value);
      return choice ? choice.label : value;
    });
    return before === now ? null : say("{name}: kept {before}, now {now}", { name: param.label, before, now });
  });
  for (const { name, label } of page.experiment.inputs) {
    const [before, now] = states.map((state) => state.get(`file.${name}`));
    if (before !== now) changed.push(say("{name}: another file", { name: label }));
  }
  if (present.edited && !kept.edited) changed.push(say("kept with the shipped code, now with edited code"));
  if (kept.edited && !present.edited) changed.push(say("kept with edited code, now with the shipped code"));
  return changed.filter(Boolean).join(say("; ")) || say("kept and present settings are the same");
}
