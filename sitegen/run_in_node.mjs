// node run_in_node.mjs RUNTIME FOLDER SCRIPT [ARGUMENT...]: run a Python script in Pyodide.
// RUNTIME holds Pyodide's files and NumPy's wheel; FOLDER is seen by the script as /work.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [runtime, folder, script, ...args] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(runtime, "pyodide.mjs")).href);
const pyodide = await loadPyodide({
  indexURL: runtime + "/",
  packageBaseUrl: runtime + "/",
  lockFileContents: JSON.parse(readFileSync(join(folder, "lock.json"), "utf8")),
  env: { PYTHONHASHSEED: "0" },
});
pyodide.mountNodeFS("/work", folder);
for (const name of readdirSync(folder).filter((name) => name.endsWith(".whl")).sort()) {
  await pyodide.loadPackage(join(folder, name), { messageCallback: () => {} });
}
pyodide.globals.set("argv", pyodide.toPy(["/work/" + script, ...args]));
pyodide.runPython("import runpy, sys; sys.argv = argv; runpy.run_path(argv[0], run_name='__main__')");
