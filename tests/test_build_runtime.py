"""Where the browser's Python comes from: the order of the sources, and what each leaves in the cache."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
from fake_build import CONTENTS, FakeBuild
from test_build_failures import served

from sitegen import runtime
from sitegen.failure import Failure

ROOT = Path(__file__).parent.parent
PINNED = dict(runtime.FILES)
run_pip = runtime._run_pip


@pytest.fixture
def fake(tmp_path, monkeypatch):
    return FakeBuild(tmp_path, monkeypatch)


def cached(fake) -> dict:
    return fake.files(fake.cache)


def test_the_cdn_fills_the_cache_and_the_cache_is_enough_afterwards(fake, monkeypatch):
    with served(fake.runtime_dir) as url:
        monkeypatch.setattr(runtime, "CDN", url)
        assert runtime.fetch(print) == fake.cache
    assert cached(fake) == CONTENTS
    monkeypatch.setattr(runtime.urllib.request, "urlopen", None)
    assert runtime.fetch(print) == fake.cache
    assert runtime.fetch(print, offline=True) == fake.cache


def test_pip_brings_what_the_cdn_does_not(fake, monkeypatch, capsys):
    monkeypatch.setattr(runtime, "_run_pip", fake.pip_brings(CONTENTS))
    assert runtime.fetch(print) == fake.cache
    assert cached(fake) == CONTENTS
    out = capsys.readouterr().out
    assert out.count("fetching http") == 1  # one try tells that the CDN is not reachable
    assert "106 MB" in out


def test_only_what_is_missing_is_fetched(fake, monkeypatch, capsys):
    fake.fill_cache()
    (fake.cache / "pyodide.mjs").unlink()
    with served(fake.runtime_dir) as url:
        monkeypatch.setattr(runtime, "CDN", url)
        runtime.fetch(print)
    assert cached(fake) == CONTENTS and capsys.readouterr().out.count("fetching") == 1


def test_a_cdn_without_one_file_leaves_the_rest_to_pip(fake, monkeypatch):
    (fake.runtime_dir / "python_stdlib.zip").unlink()
    monkeypatch.setattr(runtime, "_run_pip", fake.pip_brings(CONTENTS))
    with served(fake.runtime_dir) as url:
        monkeypatch.setattr(runtime, "CDN", url)
        runtime.fetch(print)
    assert cached(fake) == CONTENTS


def test_a_portal_that_answers_everything_with_a_web_page_is_not_the_cdn(fake, monkeypatch):
    for name in CONTENTS:
        (fake.runtime_dir / name).unlink()
        folder = fake.runtime_dir / name
        folder.mkdir()
        (folder / "index.html").write_text("<h1>Please log in</h1>")
    monkeypatch.setattr(runtime, "_run_pip", fake.pip_brings(CONTENTS))
    with served(fake.runtime_dir) as url:
        monkeypatch.setattr(runtime, "CDN", url)
        runtime.fetch(print)
    assert cached(fake) == CONTENTS


def test_a_runtime_dir_is_used_alone(fake, monkeypatch):
    monkeypatch.setattr(runtime.urllib.request, "urlopen", None)
    assert runtime.fetch(print, fake.runtime_dir) == fake.runtime_dir
    assert not fake.cache.exists()


def test_pip_that_fails_is_quoted_and_its_files_are_gone(tmp_path):
    code = "import sys; sys.exit('WARNING: x\\nERROR: No matching distribution found\\n[notice] hello')"
    with pytest.raises(Failure, match="CDN is down; .*ERROR: No matching distribution found"):
        run_pip([sys.executable, "-c", code], tmp_path, print, "CDN is down")


def test_pip_writes_into_the_given_folder_only(tmp_path):
    code = "import tempfile; open(tempfile.gettempdir() + '/here', 'w').write('x')"
    run_pip([sys.executable, "-c", code], tmp_path, print, "")
    assert (tmp_path / "here").read_text() == "x"


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    runtime.write_atomically(tmp_path / "f", b"old")
    monkeypatch.setattr(Path, "replace", lambda path, target: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        runtime.write_atomically(tmp_path / "f", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("f", b"old")]


def test_the_pins_belong_together():
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert (
        f"numpy=={runtime.NUMPY}" in groups["build"]
    )  # the numbers of the build and of the browser must agree
    assert all(
        re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", pin) for pins in groups.values() for pin in pins
    )
    assert set(PINNED) == set(CONTENTS) and all(re.fullmatch("[0-9a-f]{64}", pin) for pin in PINNED.values())
