// Puts a result where the build put the default one: metrics, checks, tables. Text only, never markup.
function showResult(result) {
  for (const metric of result.metrics) {
    const node = partFor("metric", metric.key);
    if (!node) continue;
    showValue($(".value", node), metric.text);
    setText($(".name", node), metric.label);
    node.title = String(metric.value);
    $(".how", node).hidden = !metric.how.length;
    setText($(".how pre", node), metric.how.join("\n"));
  }
  for (const check of result.checks) showCheck(check);
  for (const { key, title, text } of result.snippets) {
    const node = partFor("snippet", key);
    if (!node) continue;
    setText($(".scene-title", node), title);
    setText($("pre", node), text);
  }
  for (const [name, table] of Object.entries(result.tables)) showTable(name, table);
  $$("[data-digest]").forEach((node) => setText(node, result.digest));
}

// A value: the number at its start, and what follows it in smaller letters. The build does the same.
function showValue(node, text) {
  if (node.textContent === text) return;
  const [, number, rest] = text.match(/^([^\d\s]?\d(?:[\d.,e−]*\d)?)(.*)$/) || [text, text, ""];
  node.replaceChildren(number, ...(rest ? [make("small", {}, rest)] : []));
}

// Replaces the words of an element, unless they are these already: a status would be read aloud again.
function setText(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

function showCheck(check) {
  const node = partFor("check", check.key);
  if (!node) return;
  node.className = check.passed ? "check pass" : "check fail";
  setText($(".mark", node), check.passed ? "✓" : "✗");
  setText($(".outcome", node), check.passed ? say("holds") : say("fails"));
  setText($(".name", node), check.label);
  setText($(".detail", node), check.text);
}

function showTable(name, table) {
  const node = partFor("table", name);
  if (!node || !table.title) return;
  setText($("caption", node), table.title);
  const shown = table.columns.map((column, index) => index).filter((index) => table.columns[index].key !== "id");
  const marks = table.columns.findIndex((column) => column.key === "id");
  const numeric = shown.map((index) => table.rows.length > 0 && typeof table.rows[0][index] === "number");
  const heads = shown.map((index, position) =>
    make("th", { scope: "col", class: numeric[position] && "number" }, table.columns[index].label));
  const cell = (words, position) => (position ? make("td", { class: numeric[position] && "number" }, words)
    : make("th", { scope: "row" }, words));
  const rows = table.text.map((row, number) => make("tr", { "data-id": marks >= 0 && table.rows[number][marks] },
    ...shown.map((index, position) => cell(row[index], position))));
  $("thead tr", node).replaceChildren(...heads);
  $("tbody", node).replaceChildren(...rows);
}

// Rows as objects, which is what charts read.
function records(table) {
  return table.rows.map((row) => Object.fromEntries(row.map((cell, index) => [table.columns[index].key, cell])));
}

// A card above the figure: something went wrong, or the page has something to say. The page goes on. Without a message
// the card goes away. buttons: pairs of label and action.
function showNotice(kind, message, ...buttons) {
  if (!$("#notice")) $("main").prepend(make("div", { id: "notice", role: "alert" })); // a page without a lab
  const card = $("#notice");
  card.hidden = !message;
  card.className = `notice ${kind}`;
  card.replaceChildren(make("p", {}, message), ...buttons.map(([label, action]) => makeButton(label, action)));
}
