"""`python -m benchmarks [name ...]` runs the named modules of this folder, or all of them."""

import sys
from importlib import import_module
from pathlib import Path

names = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
wanted = sys.argv[1:] or names
if unknown := [name for name in wanted if name not in names]:
    sys.exit(f"no benchmark called {unknown[0]!r}; there are: {', '.join(names)}")
for name in wanted:
    print(f"\n{name}")
    import_module(f"benchmarks.{name}").main()
