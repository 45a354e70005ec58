"""Every failure of a build: status 2, one line on stderr, the earlier site as it was, nothing left over."""

import errno
import socket
from pathlib import Path

import pytest
from fake_build import CONTENTS, FakeBuild

from sitegen import cli, runtime

WASM = "pyodide.asm.wasm"


@pytest.fixture
def build(tmp_path, monkeypatch):
    """A fake build with a good site in place, and an empty cache."""
    fake = FakeBuild(tmp_path, monkeypatch)
    assert fake.build("--runtime-dir", str(fake.runtime_dir)) == 0
    fake.page = "second"
    return fake


@pytest.fixture
def fails(build, capfd):
    """Call: run the build, check that it fails as every failure must, return its message."""

    def run(*arguments: str) -> str:
        before, beside = build.files(), sorted(build.folder.iterdir())
        capfd.readouterr()
        assert build.build(*arguments) == 2
        errors = capfd.readouterr().err.splitlines()
        assert len(errors) == 1 and errors[0].startswith("error: ")
        assert build.files() == before
        assert [
            path for path in sorted(build.folder.iterdir()) if path not in beside + [build.folder / "cache"]
        ] == []
        assert [path for path in (build.folder / "cache").rglob(".*")] == []
        return errors[0]

    return run


def test_nothing_is_reachable_and_nothing_cached(fails):
    message = fails()
    assert "127.0.0.1:9" in message and "pip" in message


def test_offline_with_an_empty_cache_asks_nobody(fails, monkeypatch):
    monkeypatch.setattr(runtime.urllib.request, "urlopen", None)
    monkeypatch.setattr(runtime, "_run_pip", None)
    message = fails("--offline")
    assert "pyodide.mjs" in message and "--offline" in message and "--runtime-dir" in message


def wrong_hash(message: str, source: str) -> bool:
    """Whether the message names the file, both hashes, and the source."""
    import hashlib

    return all(
        part in message for part in [WASM, runtime.FILES[WASM], hashlib.sha256(b"evil").hexdigest(), source]
    )


def test_wrong_hash_in_the_runtime_dir(build, fails):
    (build.runtime_dir / WASM).write_bytes(b"evil")
    assert wrong_hash(fails("--runtime-dir", str(build.runtime_dir)), str(build.runtime_dir))


def test_wrong_hash_in_the_cache(build, fails):
    build.fill_cache()
    (build.cache / WASM).write_bytes(b"evil")
    assert wrong_hash(fails(), str(build.cache))


def test_wrong_hash_from_the_carrier(build, fails, monkeypatch):
    monkeypatch.setattr(runtime, "_run_pip", build.pip_brings({**CONTENTS, WASM: b"evil"}))
    assert wrong_hash(fails(), "open_webui")
    assert not (build.cache / WASM).exists()


def test_wrong_hash_from_the_cdn(build, fails, monkeypatch, tmp_path):
    (build.runtime_dir / WASM).write_bytes(b"evil")
    with served(build.runtime_dir) as url:
        monkeypatch.setattr(runtime, "CDN", url)
        assert wrong_hash(fails(), url + WASM)
    assert not (build.cache / WASM).exists()


def test_carrier_without_a_file(build, fails, monkeypatch):
    monkeypatch.setattr(runtime, "_run_pip", build.pip_brings({}))
    assert "does not carry" in fails()


def test_runtime_dir_without_a_file(build, fails):
    (build.runtime_dir / "python_stdlib.zip").unlink()
    assert "has no python_stdlib.zip" in fails("--runtime-dir", str(build.runtime_dir))


@pytest.mark.parametrize("where", ["cache", "site", "pages"])
def test_no_space(build, fails, monkeypatch, where):
    def write_bytes(path: Path, data):
        if ("cache" in path.parts) == (where == "cache"):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path, data)

    def render(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device", "index.html")

    real = Path.write_bytes
    arguments = [] if where == "cache" else ["--runtime-dir", str(build.runtime_dir)]
    if where == "pages":
        build.stub.render = render
    else:
        monkeypatch.setattr(Path, "write_bytes", write_bytes)
    monkeypatch.setattr(runtime, "_run_pip", build.pip_brings(CONTENTS))
    assert "no space left" in fails(*arguments)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_unwritable_folder(build, fails, monkeypatch, number):
    def mkdtemp(dir, prefix):
        raise OSError(number, "no", str(dir))

    monkeypatch.setattr(cli.tempfile, "mkdtemp", mkdtemp)
    assert f"{build.folder} cannot be written" in fails("--runtime-dir", str(build.runtime_dir))


def test_out_below_a_file(build, fails):
    (build.folder / "file").write_text("mine")
    build_out = build.out
    try:
        build.out = build.folder / "file" / "site"
        assert build.build("--runtime-dir", str(build.runtime_dir)) == 2
    finally:
        build.out = build_out
    assert (build.folder / "file").read_text() == "mine"


@pytest.mark.parametrize("kind", ["folder with files", "file", "link"])
def test_out_that_is_not_a_site_is_refused(tmp_path, monkeypatch, capfd, kind):
    fake = FakeBuild(tmp_path, monkeypatch)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    fake.out = {"folder with files": mine, "file": mine / "thesis.txt", "link": tmp_path / "link"}[kind]
    if kind == "link":
        fake.out.symlink_to(mine)
    for arguments in [["--runtime-dir", str(fake.runtime_dir)], ["--clean"]]:
        assert fake.build(*arguments) == 2
        errors = capfd.readouterr().err.splitlines()
        assert len(errors) == 1 and str(fake.out) in errors[0]
    assert (mine / "thesis.txt").read_text() == "years of work"


def test_ctrl_c_leaves_everything_as_it_was(build, capfd):
    def render(*arguments):
        raise KeyboardInterrupt

    build.stub.render = render
    before, beside = build.files(), sorted(build.folder.iterdir())
    assert build.build("--runtime-dir", str(build.runtime_dir)) == 130
    assert "interrupted" in capfd.readouterr().err
    assert (build.files(), sorted(build.folder.iterdir())) == (before, beside)


def test_a_swap_that_fails_half_way_is_undone(build, fails, monkeypatch):
    def rename(path, target):
        if path.name == "new":
            raise OSError(errno.EACCES, "in use", str(path))
        return real(path, target)

    real = Path.rename
    monkeypatch.setattr(Path, "rename", rename)
    fails("--runtime-dir", str(build.runtime_dir))


def test_port_in_use(build, capfd):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert (
            build.build("--runtime-dir", str(build.runtime_dir), "--serve", str(taken.getsockname()[1])) == 2
        )
    assert "cannot serve on port" in capfd.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--serve", "http"],
        ["--serve", "0"],
        ["--serve", "65536"],
        ["--base-url", "site"],
        ["--base-url", "ftp://x/"],
        ["--out"],
        ["--nonsense"],
    ],
)
def test_wrong_options(build, capfd, arguments):
    with pytest.raises(SystemExit) as stopped:
        build.build(*arguments)
    assert stopped.value.code == 2
    assert arguments[0] in capfd.readouterr().err


def served(folder: Path):
    """Context manager: the address of a server of this folder on the loopback interface."""
    import contextlib
    import threading

    from sitegen import serve

    @contextlib.contextmanager
    def run():
        with serve.make_server(folder) as server:
            thread = threading.Thread(target=server.serve_forever, args=[0.01])
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}/"
            finally:
                server.shutdown()
                thread.join()

    return run()
