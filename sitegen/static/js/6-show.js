// Puts a result where the build put the default one: metrics, checks, tables. Text only, never markup.
function showResult(result) {
  for (const metric of result.metrics) {
    const node = $(`[data-metric="${metric.key}"]`);
    if (!node) continue;
    setText($(".value", node), metric.text);
    setText($(".name", node), metric.label);
    node.title = String(metric.value);
    $(".how", node).hidden = !metric.how.length;
    setText($(".how pre", node), metric.how.join("\n"));
  }
  for (const check of result.checks) showCheck(check);
  for (const { key, title, text } of result.snippets) {
    const node = $(`[data-snippet="${key}"]`);
    setText($(".scene-title", node), title);
    setText($("pre", node), text);
  }
  for (const [name, table] of Object.entries(result.tables)) showTable(name, table);
  $$("[data-digest]").forEach((node) => setText(node, result.digest));
}

function setText(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

function showCheck(check) {
  const node = $(`[data-check="${check.key}"]`);
  if (!node) return;
  node.className = check.passed ? "check pass" : "check fail";
  setText($(".mark", node), check.passed ? "✓" : "✗");
  setText($(".outcome", node), check.passed ? say("holds") : say("fails"));
  setText($(".name", node), check.label);
  setText($(".detail", node), check.text);
}

function showTable(name, table) {
  const node = $(`[data-table="${name}"]`);
  if (!node || !table.title) return;
  setText($("caption", node), table.title);
  const shown = table.columns.map((column, index) => index).filter((index) => table.columns[index].key !== "id");
  const marks = table.columns.findIndex((column) => column.key === "id");
  const numeric = shown.map((index) => table.rows.length > 0 && typeof table.rows[0][index] === "number");
  $$("thead th", node).forEach((cell, position) => setText(cell, table.columns[shown[position]].label));
  $("tbody", node).replaceChildren(...table.text.map((row, number) => make("tr",
    marks < 0 ? {} : { "data-id": table.rows[number][marks] },
    ...shown.map((index, position) => make(position ? "td" : "th",
      { class: numeric[position] && position ? "number" : false, scope: position ? false : "row" },
      row[index])))));
}

// Rows as objects, which is what charts read.
function records(table) {
  return table.rows.map((row) => Object.fromEntries(row.map((cell, index) => [table.columns[index].key, cell])));
}

// A card above the figure: something went wrong, or the page has something to say. The page goes on.
function showNotice(kind, message, ...buttons) {
  const card = $("#notice") || $("main").insertBefore(make("div", { id: "notice", role: "alert" }), $("main").firstChild);
  card.hidden = !message;
  card.className = `notice ${kind}`;
  card.replaceChildren(make("p", {}, message), ...buttons.map(([label, action]) => {
    const button = make("button", { type: "button" }, label);
    button.addEventListener("click", action);
    return button;
  }));
}
