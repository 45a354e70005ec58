// The header: copy the address, keep the state when the language changes, open the list of tabs.
function bindHeader(signal) {
  const languages = $$("[data-language]");
  const write = () => K3.lab && K3.lab.address.write(); // what was set a moment ago
  const keepState = () => { write(); languages.forEach((link) => { link.hash = location.hash; }); };
  for (const link of languages) {
    for (const type of ["pointerdown", "focus", "click"]) link.addEventListener(type, keepState);
  }
  $("#copy").addEventListener("click", ({ currentTarget }) => {
    write();
    const edited = K3.lab && K3.lab.result.edited;
    const done = edited ? say("Link copied, without the edits") : say("Link copied");
    copyBy(currentTarget, say("Copy link"), location.href, done, say("Copy it from the address bar"));
  });
  $("#menu").addEventListener("click", (event) => {
    event.preventDefault();
    const open = document.documentElement.classList.toggle("menu-open");
    $("#menu").setAttribute("aria-expanded", String(open));
    if (open) $("#tabs a").focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !document.documentElement.classList.contains("menu-open")) return;
    $("#menu").click();
    $("#menu").focus();
  }, { signal });
}

// Copies, and lets the button say for two seconds how it went; `usual` are its words otherwise.
async function copyBy(button, usual, words, done = say("Copied"), failed = say("Not copied: select the text")) {
  setText(button, await copyText(words) ? done : failed);
  clearTimeout(restoring.get(button));
  restoring.set(button, setTimeout(() => setText(button, usual), 2000));
}

const restoring = new WeakMap(); // button -> timer

// Whether words are in the clipboard now.
async function copyText(words) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    const area = make("textarea", {}, words);
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
