"""python -m sitegen.find_modules: write the allow-list runtime_modules.txt anew. Needs Node 18 or newer."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sitegen import bootstrap, compiler, exercise_modules, pack, runtime

HEADER = """\
# Modules of the standard library and of NumPy that the site ships for the browser; the rest is left out.
# Found, not chosen: exercise_modules.py ran in the whole Pyodide and this is what it loaded (modules that are
# built in or frozen into the interpreter are not listed). Where a page lacks a module, add a use of it there
# and run
#     python -m sitegen.find_modules
"""


def main() -> None:
    node = compiler.node()
    if not node:
        sys.exit("this needs Node 18 or newer on the PATH")
    with tempfile.TemporaryDirectory(prefix="k3-modules-") as temporary:
        folder = Path(temporary)
        whole = shutil.copytree(runtime.fetch(print), folder / "runtime")
        wheel = pack.build_wheel(Path(bootstrap.ROOT), whole)
        contents = {name: (whole / name).read_bytes() for name in [runtime.NUMPY_WHEEL, wheel.name]}
        command = compiler.in_node(
            node, whole, folder, Path(exercise_modules.__file__), lock=pack.lock_file(contents)
        )
        subprocess.run(command, check=True)
        names = (folder / "modules.txt").read_text()
    pack.ALLOW_LIST.write_text(HEADER + names)
    print(f"wrote {len(names.splitlines())} modules to {pack.ALLOW_LIST}")


if __name__ == "__main__":
    main()
