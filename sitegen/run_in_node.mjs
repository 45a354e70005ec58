// node run_in_node.mjs RUNTIME FOLDER SCRIPT [ARGUMENT...]: run a Python script in Pyodide.
// RUNTIME holds Pyodide's files and the wheels of FOLDER/lock.json, which are installed; the script sees FOLDER as /job.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

async function main(runtime, folder, script, ...args) {
  const lock = JSON.parse(readFileSync(join(folder, "lock.json"), "utf8"));
  const { loadPyodide } = await import(pathToFileURL(join(runtime, "pyodide.mjs")).href);
  const pyodide = await loadPyodide({
    indexURL: runtime + "/",
    packageBaseUrl: runtime + "/",
    lockFileContents: lock,
    packages: Object.keys(lock.packages),
    env: { PYTHONHASHSEED: "0" },
  });
  pyodide.mountNodeFS("/job", folder);
  pyodide.globals.set("argv", pyodide.toPy(["/job/" + script, ...args]));
  pyodide.runPython("import sys; sys.argv = argv");
  pyodide.runPython(readFileSync(join(folder, script), "utf8"), { filename: "/job/" + script });
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(error.message); // left to itself, Node would print Pyodide's source as well
  process.exit(1);
});
