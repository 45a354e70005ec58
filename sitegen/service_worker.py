"""The service worker of a built site: its text names the build by content and lists what to keep."""

import hashlib
import json
from pathlib import Path

TEMPLATE = Path(__file__).parent / "static" / "sw.js"
PATH = "sw.js"  # at the root, because a service worker answers only for its own folder
# Only for pages opened from disk, or for use elsewhere than in the page.
NOT_KEPT = ("assets/runtime/*.js", "assets/*.whl")


def write(out: Path, extras: set) -> None:
    """Write the service worker of the site in `out`; everything else is there already.

    extras: paths of files that only some pages load. They are kept once one of these has loaded them.
    """
    paths = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
    paths.pop(PATH, None)
    digest = hashlib.sha256(TEMPLATE.read_bytes())
    for name, path in sorted(paths.items()):
        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    ignored = {path.relative_to(out).as_posix() for pattern in NOT_KEPT for path in out.glob(pattern)}
    fields = {
        "build": digest.hexdigest()[:16],
        "pages": json.dumps(sorted(name for name in paths if name.endswith(".html"))),
        "files": json.dumps(sorted(name for name in paths.keys() - ignored - extras if name.startswith("assets/"))),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, value in fields.items():
        text = text.replace("{" + name + "}", value, 1)
    (out / PATH).write_text(text, encoding="utf-8")
