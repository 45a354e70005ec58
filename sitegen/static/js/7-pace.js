// How fast the trained model writes in this browser, plain and with drafts, measured when the reader asks.
class Pace {
  constructor(node, lab) {
    this.node = node; // null on most pages
    this.lab = lab;
    if (node) $("button", node).addEventListener("click", () => this.measure());
  }

  // What was measured belonged to the result before.
  show(result) {
    if (!this.node) return;
    this.node.hidden = result.params.source !== "text";
    this.tell("");
  }

  tell(words) { setText($("output", this.node), words); }

  async measure() {
    const { slug, params, seed } = this.lab.result, button = $("button", this.node);
    button.disabled = true;
    this.tell(say("measuring"));
    const parts = [];
    let request = { do: "pace", slug, params, seed }, reply = null;
    while (parts.length < 3) {
      const start = performance.now();
      reply = JSON.parse(await this.lab.engine.ask(request));
      if (reply.state !== "paced") break;
      parts.push({ ...reply, seconds: (performance.now() - start) / 1000 });
      request = { do: "pace" };
    }
    button.disabled = false;
    if (this.lab.result.params !== params) return; // another result came in the meantime
    const refused = reply.message || say("Not measured. Run it once more, then measure.");
    this.tell(parts.length === 3 ? paceWords(...parts) : refused);
  }
}

// A round that costs twice as much as a token must give more than two, or it loses.
function paceWords(_read, plain, drafted) {
  const rate = (part) => Math.round(part.tokens / part.seconds);
  const ratio = plain.seconds / drafted.seconds, tokens = drafted.tokens / drafted.passes;
  return [
    say("{plain} tokens per second plain, {drafted} with looked-up drafts: {gain} times as fast.",
      { plain: rate(plain), drafted: rate(drafted), gain: ratio.toFixed(2) }),
    say("A verify round gave {given} tokens and took as long as {cost}.",
      { given: tokens.toFixed(2), cost: (tokens / ratio).toFixed(2) }),
    ratio < 1 ? say("Too many drafts were wrong: reading them cost more than the right ones saved.") : "",
    drafted.same ? "" : say("The two texts differ: a near tie, see the smallest lead."),
  ].filter(Boolean).join(page.lang === "zh" ? "" : " ");
}
