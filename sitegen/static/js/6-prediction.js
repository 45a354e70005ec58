// The guess made before the figure was shown; it never hides anything on a shared link or in an embed.
const settled = new Set(); // slugs whose question was answered or skipped since the site was opened

// The question of one page, and the answer beside the guess.
class PredictionView {
  constructor(node, address) {
    this.node = node;
    this.address = address;
    this.asking = !node.hidden && !settled.has(page.experiment.slug);
    for (const button of $$("[data-guess]", node)) {
      button.addEventListener("click", () => this.guess(button.dataset.guess));
    }
    $("[data-skip]", node).addEventListener("click", () => this.reveal());
  }

  // A shared link, or one that came while the question was asked, shows the figure at once.
  follow(result) {
    this.asking = this.asking && !this.address.shared && !isEmbed(this.address);
    this.show(result);
  }

  show(result) {
    this.result = result;
    if (this.address.namesOwn) this.asking = false; // who brought a file or words of their own wants the answer
    const guess = Number.parseInt(this.address.get("guess"), 10);
    const option = page.experiment.prediction.options[guess];
    document.documentElement.classList.toggle("asking", this.asking);
    for (const node of $$("#lab .stage > :not(#notice), #lab .charts, #lab .tables")) node.inert = this.asking;
    $(".ask", this.node).hidden = !this.asking;
    const answer = $(".answer", this.node);
    answer.hidden = this.asking;
    const right = guess === result.prediction.answer;
    const guessed = right ? say("You guessed: {option}. Right.", { option }) : say("You guessed: {option}.", { option });
    setText($(".guessed", answer), option ? guessed : "");
    setText($(".truth", answer), result.prediction.text);
  }

  // The reader's guess; the address holds it.
  guess(index) {
    this.address.set("guess", index);
    this.reveal();
  }

  // The figure is shown, and the question is not asked again.
  reveal() {
    settled.add(page.experiment.slug);
    this.asking = false;
    this.show(this.result);
    $("#lab .stage").focus({ preventScroll: true });
  }
}
