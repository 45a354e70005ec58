"""Input files of points: known by their content, and read where a point is computed."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class File:
    """A file as a point sees it. Two files of the same content are the same.

    sha256: of the content. name: what messages call it. source: a path, or the content itself where the file was
    sent from another machine.
    """

    sha256: str
    name: str = field(compare=False)
    source: str | bytes = field(compare=False, repr=False)

    def read(self) -> bytes:
        """The content. Raises OSError, or ValueError where it is no longer what it was."""
        content = self.source if isinstance(self.source, bytes) else Path(self.source).read_bytes()
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise ValueError(f"{self.name} has changed since the sweep began")
        return content


def open_file(path: Path, name: str) -> File:
    """The file at `path`. Raises ValueError where it cannot be read."""
    try:
        with open(path, "rb") as content:
            return File(hashlib.file_digest(content, "sha256").hexdigest(), name, str(path.resolve()))
    except OSError as error:
        raise ValueError(f"cannot read {name}: {error.strerror or error}") from None
