"""What a build that succeeds writes, says and repeats."""

import base64
import gzip
import hashlib
import io
import json
import re
import urllib.request
import zipfile

import pytest
from fake_build import CONTENTS, WEIGHTS, FakeBuild
from test_build_failures import served

from sitegen import compiler, runtime, serve


@pytest.fixture
def build(tmp_path, monkeypatch):
    return FakeBuild(tmp_path, monkeypatch)


@pytest.fixture
def assets(build):
    """What the build handed to the pages."""
    handed = []
    build.stub.render = lambda out, assets, base_url, report: handed.append(assets)
    assert build.build("--runtime-dir", str(build.runtime_dir)) == 0
    return handed[0]


def test_a_build_says_what_it_did(build, capfd):
    assert build.build("--runtime-dir", str(build.runtime_dir), "--base-url", "https://example.org/lab") == 0
    out, err = capfd.readouterr()
    assert err == ""
    last = out.splitlines()[-5:]
    assert "k3core 0.1.0" in last[0] and "NumPy 2.4.3" in last[0] and "Pyodide 314.0.3" in last[0]
    assert last[1] == "Compile route: sources" and " MB" in last[2]
    assert last[3] == f"Where: {build.out}" and (build.out / "index.html").as_uri() in last[4]
    assert build.files()["index.html"].endswith(b"https://example.org/lab/")
    assert sorted(path.name for path in build.folder.iterdir()) == [
        "allowed.txt",
        "distribution",
        "project",
        "site",
    ]


def test_a_rebuild_replaces_the_site(build):
    assert build.build("--runtime-dir", str(build.runtime_dir)) == 0
    (build.out / "stale.html").write_text("of the first build")
    build.page = "second"
    assert build.build("--runtime-dir", str(build.runtime_dir)) == 0
    assert b"second" in build.files()["index.html"] and "stale.html" not in build.files()


def test_an_empty_folder_may_be_built_into(build):
    build.out.mkdir()
    assert build.build("--runtime-dir", str(build.runtime_dir)) == 0


def test_two_builds_are_byte_identical(build):
    assert build.build("--runtime-dir", str(build.runtime_dir)) == 0
    first = build.files()
    build.out = build.folder / "again"
    assert build.build("--runtime-dir", str(build.runtime_dir)) == 0
    assert build.files() == first


def test_both_forms_of_every_runtime_file_hold_what_the_manifest_says(build, assets):
    files = build.files()
    assert [file.name for file in assets.files] == [*CONTENTS, "k3core-0.1.0-py2.py3-none-any.whl"]
    for file in assets.files:
        packed = files[file.path]
        data = gzip.decompress(packed)
        assert (len(packed), len(data), hashlib.sha256(data).hexdigest()) == (
            file.wire_bytes,
            file.raw_bytes,
            file.sha256,
        )
        assert file.sha256[:8] in file.path
        calls = [
            re.fullmatch(r'K3\.file\("(.+)", "(.*)"\);\n', files[script].decode()) for script in file.scripts
        ]
        assert {call[1] for call in calls} == {file.name}
        assert base64.b64decode("".join(call[2] for call in calls), validate=True) == packed
        if file.name in ["pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm"]:
            assert data == CONTENTS[file.name]
    assert assets.wire_bytes == sum(len(files[file.path]) for file in assets.files)


def test_what_only_some_pages_need_is_beside_the_wheel_that_every_page_loads(build, assets):
    files = build.files()
    (extra,) = assets.extras
    assert (extra.name, extra.target) == ("tiny.npz", "k3core/models/tiny.npz")
    assert gzip.decompress(files[extra.path]) == WEIGHTS
    assert (extra.raw_bytes, extra.sha256) == (len(WEIGHTS), hashlib.sha256(WEIGHTS).hexdigest())
    scripts = "".join(files[script].decode().split('"')[3] for script in extra.scripts)
    assert base64.b64decode(scripts, validate=True) == files[extra.path]
    loaded = {file.name: gzip.decompress(files[file.path]) for file in assets.files}
    wheel = zipfile.ZipFile(io.BytesIO(loaded["k3core-0.1.0-py2.py3-none-any.whl"]))
    assert extra.target not in wheel.namelist()
    assert zipfile.ZipFile(io.BytesIO(files[assets.wheel])).read(extra.target) == WEIGHTS


def test_big_files_are_split_in_scripts_that_join_to_one_base64_text(build, monkeypatch):
    from sitegen import pack

    monkeypatch.setattr(pack, "SCRIPT_CHARACTERS", 8)
    data = bytes(range(256))
    file = pack._place("x.bin", data, build.folder)
    assert len(file.scripts) > 10
    text = "".join((build.folder / script).read_text().split('"')[3] for script in file.scripts)
    assert gzip.decompress(base64.b64decode(text, validate=True)) == data


def test_the_lock_names_numpy_and_k3core_as_shipped(assets):
    lock = json.loads(assets.lock)
    assert set(lock["packages"]) == {"numpy", "k3core"}
    shipped = {file.name: file.sha256 for file in assets.files}
    for package in lock["packages"].values():
        assert package["sha256"] == shipped[package["file_name"]]
    assert lock["packages"]["k3core"]["depends"] == ["numpy"] and lock["packages"]["numpy"]["depends"] == []
    assert lock["info"] == {
        "abi_version": "2026_0",
        "arch": "wasm32",
        "platform": "emscripten_5_0_3",
        "python": "3.14.0",
    }


def test_clean_removes_the_site_and_the_cache_and_says_so(build, capfd, monkeypatch):
    monkeypatch.setattr(runtime, "_run_pip", build.pip_brings(CONTENTS))
    assert build.build() == 0
    (build.folder / "cache" / "other").mkdir()
    capfd.readouterr()
    assert build.build("--clean") == 0
    assert capfd.readouterr().out.splitlines() == [f"removed {build.out}", f"removed {build.cache}"]
    assert not build.out.exists() and [path.name for path in (build.folder / "cache").iterdir()] == ["other"]
    assert build.build("--clean") == 0
    assert "nothing to remove" in capfd.readouterr().out


def test_open_shows_the_page_that_was_built(build, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert build.build("--runtime-dir", str(build.runtime_dir), "--open") == 0
    assert opened == [(build.out / "index.html").as_uri()]


def test_the_server_sends_types_that_a_browser_runs(build):
    assert build.build("--runtime-dir", str(build.runtime_dir)) == 0
    (build.out / "a.mjs").write_text("1")
    with served(build.out) as url:
        for path, kind in {"index.html": "text/html", "a.mjs": "text/javascript"}.items():
            with urllib.request.urlopen(url + path) as response:
                assert response.headers.get_content_type() == kind
        script = next(path for path in build.files() if path.endswith(".gz"))
        with urllib.request.urlopen(url + script) as response:
            assert response.headers["Content-Encoding"] is None
            assert response.read() == build.files()[script]


def test_the_server_takes_another_port_where_the_usual_one_is_taken(build, monkeypatch):
    with serve.make_server(build.folder) as first:
        monkeypatch.setattr(serve, "DEFAULT_PORT", first.server_port)
        with serve.make_server(build.folder) as second:
            assert second.server_port != first.server_port


def test_sources_are_announced(build, capfd):
    assert build.build("--runtime-dir", str(build.runtime_dir)) == 0
    assert "not byte-compiled" in capfd.readouterr().out


def test_a_route_that_fails_is_named_and_the_next_one_taken(build, capfd, monkeypatch):
    import sys

    code = "import sys; sys.exit('SyntaxError: no')"
    monkeypatch.setattr(
        compiler, "_routes", lambda folder: [("node", "x", lambda folder: [sys.executable, "-c", code])]
    )
    assert build.build("--runtime-dir", str(build.runtime_dir)) == 0
    out = capfd.readouterr().out
    assert "node could not compile: SyntaxError: no" in out and "Compile route: sources" in out
