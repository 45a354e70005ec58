// The state of the page as a program: Python text, a notebook and a command line that give the same digest.

// A value as Python writes it, which is as JSON but for two words.
function literal(value) {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "boolean") return value ? "True" : "False";
  return JSON.stringify(value);
}

// What differs from the defaults, as Python parsed it.
function ownParams(result) {
  return page.experiment.params.filter(({ name, default: usual }) => written(result.params[name]) !== written(usual))
    .map(({ name }) => [name, result.params[name]]);
}

// Where the wheel that this site serves is: an address, or a path where the site is a folder.
function wheelPlace() {
  const url = new URL(K3.manifest.wheel, siteRoot);
  return fromDisk ? decodeURIComponent(url.pathname).replace(/^\/(?=[A-Za-z]:)/, "") : url.href;
}

// A Python program. `files`: input name -> {name, key}; `edits`: module -> text, or null.
function pythonProgram(result, files, edits) {
  const given = Object.entries(files);
  const lines = [`# ${say("The state that this page shows:")} ${location.href}`,
    `# pip install ${JSON.stringify(wheelPlace())}`];
  if (fromDisk) lines.push(`# ${say("The site was opened from a folder, so the wheel is a file in that folder.")}`);
  if (given.length) lines.push("from hashlib import sha256", "from pathlib import Path", "");
  if (edits) lines.push(...installEdits(edits), "");
  lines.push("from k3core.lab.registry import experiment", "");
  for (const [input, file] of given) lines.push(...readFile(input, file));
  const params = ownParams(result).map(([name, value]) => `${literal(name)}: ${literal(value)}`).join(", ");
  const texts = given.map(([input]) => `${literal(input)}: ${input}.decode("utf-8-sig")`).join(", ");
  lines.push(`result = experiment(${literal(result.slug)}).run({${params}}, ${result.seed}${texts && `, {${texts}}`})`,
    `for metric in result.to_json(${literal(page.lang)})["metrics"]:`,
    '    print(f"{metric[\'text\']:>16}  {metric[\'label\']}")',
    'print("digest     ", result.digest())', `print("on the page", ${literal(result.digest)})`);
  return lines.join("\n") + "\n";
}

// Lines that put edited modules in place.
function installEdits(edits) {
  const entries = Object.entries(edits).map(([module, words]) => `    ${literal(module)}: ${literal(words)},`);
  return ["from k3core.lab import edits", "", `# ${say("The modules as they were edited on the page.")}`,
    "edits.install({", ...entries, "})"];
}

// Lines that read a dropped file, and refuse another one.
function readFile(input, { name, key }) {
  const lines = [`# ${say("Put the file that was dropped on the page beside this program.")}`,
    `${input} = Path(${literal(name)}).read_bytes()`];
  if (!/^[0-9a-f]{64}$/.test(key)) return lines;
  return [...lines, `assert sha256(${input}).hexdigest() == ${literal(key)}, "not the file that the page used"`];
}

// The program as a notebook, below the page's question.
function notebook(result, program) {
  const lines = (words) => words.split(/(?<=\n)/);
  const cell = (id, kind, words) => ({ cell_type: kind, id, metadata: {}, source: lines(words),
    ...(kind === "code" ? { execution_count: null, outputs: [] } : {}) });
  const cells = [
    cell("about", "markdown", `# ${page.experiment.title}\n\n${page.experiment.question}\n\n<${location.href}>\n\n`
      + say("The last two lines that this prints are the digest computed here and the one on the page; they are the same.")),
    cell("install", "code", `%pip install ${JSON.stringify(wheelPlace())}`),
    cell("run", "code", program)];
  const kernelspec = { display_name: "Python 3", language: "python", name: "python3" };
  const metadata = { kernelspec, language_info: { name: "python" } };
  return JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 }, null, 1) + "\n";
}

// The command that gives the same result; it knows no files and no edits.
function commandLine(result) {
  const quoted = (words) => (/^[\w.,:+=-]+$/.test(words) ? words : `'${words.replaceAll("'", "'\\''")}'`);
  const settings = ownParams(result).map(([name, value]) => ` --set ${quoted(`${name}=${written(value)}`)}`).join("");
  return `python -m k3core run ${result.slug}${settings} --seed ${result.seed}`;
}
