// The header: copy the address, keep the state when the language changes, open the list of tabs.
function bindHeader(signal) {
  const languages = $$("[data-language]");
  const write = () => K3.lab && K3.lab.address.write(); // what was set a moment ago
  const keepState = () => { write(); languages.forEach((link) => { link.hash = location.hash; }); };
  for (const link of languages) for (const type of ["pointerdown", "focus", "click"]) link.addEventListener(type, keepState);
  $("#copy").addEventListener("click", async () => {
    write();
    const copied = await copyText(location.href);
    const edited = K3.lab && K3.lab.result.edited;
    setText($("#copy"), copied ? (edited ? say("Link copied, without the edits") : say("Link copied")) : say("Copy it from the address bar"));
    setTimeout(() => setText($("#copy"), say("Copy link")), 2000);
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

// A button in a figure copies the text beside it.
async function copyFrom(button) {
  await copyText($("pre", button.closest("figure")).textContent);
  setText(button, say("Copied"));
  setTimeout(() => setText(button, say("Copy")), 2000);
}

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
