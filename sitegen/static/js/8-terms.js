// Terms of the glossary: while a link to one is pointed at or has the focus, its definition stands beside it. The
// definitions are fetched when the first is wanted. By touch, and without this script, the link is only a link.
function bindTerms(signal) {
  const card = make("div", { class: "term-card", id: "term-card", role: "tooltip", hidden: true });
  $("#main").append(card);
  let link = null, timer = 0;

  const show = async (next) => {
    await loadScript(K3.manifest.terms[page.lang]);
    if (signal.aborted || link !== next) return;
    const id = decode(next.hash.slice(1));
    if (!Object.hasOwn(K3.terms[page.lang], id)) return;
    const [title, text] = K3.terms[page.lang][id];
    card.replaceChildren(make("strong", {}, title), make("span", {}, text));
    card.hidden = false;
    next.setAttribute("aria-describedby", card.id);
    place(card, next);
  };
  const hide = () => {
    clearTimeout(timer);
    if (link) link.removeAttribute("aria-describedby");
    link = null;
    card.hidden = true;
  };
  const want = (next, delay) => {
    if (link === next) {
      clearTimeout(timer); // back before it went away
      return;
    }
    hide();
    link = next;
    timer = setTimeout(() => show(next).catch(hide), delay);
  };
  const part = () => {
    clearTimeout(timer);
    timer = setTimeout(hide, 200);
  };
  const on = (type, action) => document.addEventListener(type, action, { signal });
  const term = (event) => (event.target.closest ? event.target.closest("a.term") : null);

  on("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    if (term(event)) want(term(event), 150);
    else if (link && event.target.closest && event.target.closest("#term-card")) clearTimeout(timer);
  });
  on("pointerout", (event) => {
    if (event.pointerType !== "touch" && link && (term(event) || card.contains(event.target))) part();
  });
  on("focusin", (event) => term(event) && event.target.matches(":focus-visible") && want(term(event), 0));
  on("focusout", (event) => term(event) && hide());
  on("keydown", (event) => event.key === "Escape" && hide());
}

// Under the first line of the link, or above it where the window ends; never beyond its sides.
function place(card, link) {
  const line = link.getClientRects()[0], margin = 8;
  card.style.left = card.style.top = "0";
  const { width, height } = card.getBoundingClientRect();
  const right = document.documentElement.clientWidth - width - margin;
  const above = line.bottom + margin + height > window.innerHeight && line.top > height + margin;
  card.style.left = `${Math.max(margin, Math.min(line.left, right)) + window.scrollX}px`;
  card.style.top = `${(above ? line.top - height - 6 : line.bottom + 6) + window.scrollY}px`;
}
