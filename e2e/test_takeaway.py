"""Take it away: what is saved stands on its own, and the saved program gives the digest that the page shows."""

import csv
import io
import json
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from visit import EXPERIMENT, SLUG, TAB, expected

from k3core.lab.contract import dumps
from k3core.lab.registry import experiment
from k3core.lab.text import LANGUAGES

ROOT = Path(__file__).parents[1]
NAMESPACE = "{http://www.w3.org/2000/svg}"
WAY = '.way:has(h3:text-is("{}")) button:text-is("{}")'
FIGURES = ('[data-scene="window"]', '[data-figure="growth"]')


def saved(visit, selector: str) -> tuple:
    """Name and bytes of what a click on `selector` saves."""
    with visit.page.expect_download() as download:
        visit.page.locator(selector).first.click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def menu(visit):
    if not visit.page.locator(".take[open]").count():
        visit.page.locator(".take summary").click()
    visit.page.wait_for_selector(".ways .way")


def prefix(digest: str) -> str:
    return f"{SLUG}-{digest[:12]}"


def printed(program: str, folder: Path) -> list:
    """The last two lines of a program that is run by this Python with nothing but the package on its path."""
    command = [sys.executable, "-I", "-X", "utf8", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=folder, check=True)
    return [line.split()[-1] for line in done.stdout.splitlines()[-2:]]


# --- drawings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_saved_drawing_needs_no_style_sheet(live, figure, scheme):
    live.page.emulate_media(color_scheme=scheme)
    name, data = saved(live, f"{figure} .save button:text-is('SVG')")
    live.page.emulate_media(color_scheme="light")
    text = data.decode("utf-8")
    root = ElementTree.fromstring(text)
    assert name == f"{prefix(expected(SLUG)['digest'])}.{figure.split('\"')[1]}.svg"
    for foreign in ("var(", "class=", "data-", "<script", "http://", "https://", "currentcolor", "style="):
        assert foreign not in text.replace('xmlns="http://www.w3.org/2000/svg"', ""), foreign
    used = {value[5:-1] for node in root.iter() for value in node.attrib.values() if value.startswith("url(#")}
    assert used <= {node.get("id") for node in root.iter()}
    brightness = sum(int(part) for part in root.find(NAMESPACE + "rect").get("fill")[4:-1].split(","))
    assert brightness > 700 if scheme == "light" else brightness < 120
    words = " ".join("".join(node.itertext()) for node in root.iter(NAMESPACE + "text"))
    assert live.text(f"{figure} .scene-title") in words and expected(SLUG)["digest"][:12] in words
    for entry in live.page.locator(f"{figure} .legend li").all():
        assert entry.text_content().strip() in words


@pytest.mark.parametrize("figure", FIGURES)
def test_a_saved_picture_has_twice_the_pixels(live, figure):
    _, drawing = saved(live, f"{figure} .save button:text-is('SVG')")
    name, picture = saved(live, f"{figure} .save button:text-is('PNG')")
    width, height = struct.unpack(">II", picture[16:24])
    root = ElementTree.fromstring(drawing)
    assert picture[:8] == b"\x89PNG\r\n\x1a\n" and name.endswith(".png")
    assert abs(width - 2 * float(root.get("width"))) <= 1 and abs(height - 2 * float(root.get("height"))) <= 1
    colours = live.page.evaluate("""async (bytes) => {
      const image = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: "image/png" }));
      const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
      canvas.getContext("2d").drawImage(image, 0, 0);
      const { data } = canvas.getContext("2d").getImageData(0, 0, image.width, image.height);
      const seen = new Set();
      for (let at = 0; at < data.length; at += 4) seen.add(data.slice(at, at + 3).join());
      return [...seen];
    }""", list(picture))
    assert len(colours) > 20 and "251,250,247" in colours


def test_a_drawing_is_saved_before_python_is_there(visit, http_root):
    tab = visit(f"{http_root}/{TAB}#guess=1", python=False)
    for figure in FIGURES:
        _, data = saved(tab, f"{figure} .save button:text-is('SVG')")
        assert len(list(ElementTree.fromstring(data).iter())) > 20
    menu(tab)
    tab.page.click(WAY.format("Result", "JSON"))
    assert "not up yet" in tab.text("#notice p")


# --- values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_saved_table_has_every_value_in_full(visit, roots, lang):
    tab = visit(f"{roots['file']}/{'' if lang == 'en' else 'zh/'}{TAB}#guess=1&dk=63")
    tab.settle()
    result = experiment(SLUG).run({"dk": 63})
    for selector, name in ((".tables .save button", "model_scale"),
                           (f"{FIGURES[1]} .save button:text-is('CSV')", "growth")):
        _, data = saved(tab, selector)
        text = data.decode("utf-8")
        assert text.startswith("\ufeff") == (lang == "zh")
        header, *rows = csv.reader(io.StringIO(text.removeprefix("\ufeff")))
        table = json.loads(dumps(result.tables[name].to_json(lang)))
        shown = [index for index, column in enumerate(table["columns"]) if column["key"] != "id"]
        columns = [table["columns"][index] for index in shown]
        assert header == [column["label"] + (f" ({column['unit']})" if column["unit"] else "") for column in columns]
        assert len(rows) == len(table["rows"])
        for row, native in zip(rows, table["rows"]):
            for cell, value in zip(row, [native[index] for index in shown]):
                assert (float(cell) == value) if isinstance(value, (int, float)) else cell == (value or "")


def test_big_integers_and_awkward_words_stay_as_they_are(live):
    text = live.page.evaluate("""() => {
      const result = { ...K3.lab.result, metrics: [
        { key: "big", label: 'a, "b"\\nc', value: "9007199254740993", unit: "B", badge: "computed" },
        { key: "small", label: "", value: 1e-300, unit: "", badge: "" },
        { key: "none", label: "", value: null, unit: "", badge: "" }] };
      const own = K3.lab.result;
      K3.lab.result = result;
      return new Promise((resolve) => {
        K3.lab.take.save = (ending, content) => { delete K3.lab.take.save; K3.lab.result = own; resolve(content); };
        const menu = document.querySelector(".take");
        menu.open = true;
        K3.lab.take.show();
        [...menu.querySelectorAll("button")].find((button) => button.textContent === "CSV").click();
      });
    }""")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[1][:3] == ["big", 'a, "b"\nc', "9007199254740993"]
    assert float(rows[2][2]) == 1e-300 and rows[3][2] == ""


def test_the_saved_json_is_the_text_that_python_wrote(live):
    live.go("dk=100")
    live.settle()
    menu(live)
    name, data = saved(live, WAY.format("Result", "JSON"))
    assert data.decode("utf-8") == dumps(EXPERIMENT.run({"dk": 100}).to_json("en"))
    assert name == f"{prefix(expected(SLUG, {'dk': 100})['digest'])}.json"


def test_an_edited_result_says_so_wherever_it_goes(live):
    live.page.locator(".tools [data-edit]").click()
    live.page.wait_for_selector("#editor textarea")
    live.page.evaluate("""() => {
      const sheet = document.querySelector("#editor textarea");
      sheet.value = sheet.value.replace("kept if p.count_gate", "kept if not p.count_gate") + "# \\u4e00 '''\\n";
      sheet.dispatchEvent(new Event("input", { bubbles: true }));
    }""")
    live.page.locator("#editor .run").click()
    live.settle()
    live.page.locator("#editor [data-close]").click()
    menu(live)
    name, data = saved(live, WAY.format("Result", "JSON"))
    assert json.loads(data)["edited"] == ["k3core.lab.byte_cost"] and name.endswith("-edited.json")
    name, drawing = saved(live, f"{FIGURES[0]} .save button:text-is('SVG')")
    assert "edited code" in drawing.decode("utf-8") and name.endswith("-edited.window.svg")
    _, program = saved(live, WAY.format("The same in Python", "Program"))
    digest = live.shown()["digest"]
    assert digest == expected(SLUG, {"count_gate": False})["digest"]
    assert printed(program.decode("utf-8"), ROOT.parent) == [digest, digest]
    assert live.page.locator('.way:has(h3:text-is("On a command line")) pre').count() == 0
    live.page.evaluate("async () => { await K3.lab.editor.reset(); document.querySelector('.take').open = false; }")
    live.settle()


# --- programs ---------------------------------------------------------------------------------------------------

STATES = [(SLUG, "dk=64&conv=true&layout=mixed"), ("fleet-simulation", ""), ("consistent-hashing", "seed=7"),
          ("unified-pool", ""), ("traces", ""), ("sizing", ""), ("verify-and-replay", "seed=3")]


@pytest.mark.parametrize("way, lang", [("http", "en"), ("file", "zh")])
def test_program_notebook_and_command_give_the_digest_of_the_page(visit, roots, tmp_path, way, lang):
    root = f"{roots[way]}{'' if lang == 'en' else '/zh'}"
    tab = visit(f"{root}/{TAB}#guess=1")
    for slug, state in STATES:
        place = f"{slug}.html" if slug in ("traces", "sizing") else f"tabs/{slug}.html"
        tab.page.goto(f"{root}/{place}#guess=1&{state}")
        tab.settle()
        digest = tab.shown()["digest"]
        menu(tab)
        labels = {"en": ("The same in Python", "Program", "Notebook"), "zh": ("用 Python 重现", "程序", "笔记本")}[lang]
        name, program = saved(tab, WAY.format(labels[0], labels[1]))
        assert name == f"{slug}-{digest[:12]}.py"
        assert printed(program.decode("utf-8"), tmp_path) == [digest, digest], (slug, state)
        _, notebook = saved(tab, WAY.format(labels[0], labels[2]))
        check_notebook(json.loads(notebook), roots[way], program.decode("utf-8"))
        command = tab.text(".way:nth-child(3) pre").split()
        done = subprocess.run([sys.executable, *command[1:], "--json"], capture_output=True, cwd=ROOT, check=True)
        assert json.loads(done.stdout)["digest"] == digest, command


def check_notebook(notebook: dict, root: str, program: str):
    """Notebook format 4.5, as its schema has it."""
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"] == {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        wanted = {"cell_type", "id", "metadata", "source"}
        wanted |= {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == wanted and all(isinstance(line, str) for line in cell["source"])
    install, run = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    wheel = json.loads(install.removeprefix("%pip install "))
    assert run == program and wheel.startswith(root.removeprefix("file://")) and wheel.endswith(".whl")
    if root.startswith("file://"):
        assert Path(wheel).is_file()


def test_a_dropped_file_goes_into_the_program_by_name_and_hash(visit, http_root, tmp_path):
    path = tmp_path / "my 'own' trace \"1\".jsonl"
    lines = [{"timestamp": 1000 * n, "input_length": 1000 + n, "output_length": 10, "hash_ids": [n // 3, n]}
             for n in range(12)]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(map(json.dumps, lines)).encode())
    tab = visit(f"{http_root}/traces.html#guess=1")
    tab.settle()
    tab.page.set_input_files('[data-input="trace"] input', path)
    tab.page.wait_for_function('() => "trace" in K3.lab.shownFiles')
    tab.settle()
    digest = tab.shown()["digest"]
    menu(tab)
    _, program = saved(tab, WAY.format("The same in Python", "Program"))
    assert printed(program.decode("utf-8"), tmp_path) == [digest, digest]
    path.write_text("{}")
    with pytest.raises(subprocess.CalledProcessError):
        printed(program.decode("utf-8"), tmp_path)


def test_what_is_copied_is_what_is_shown(live):
    menu(live)
    row = live.page.locator('.way:has(h3:text-is("On a command line"))')
    row.locator("button").click()
    assert live.page.evaluate("() => navigator.clipboard.readText()") == f"python -m k3core run {SLUG} --seed 0"
    live.page.fill("#p-dk", "9")
    live.settle()
    assert row.locator("pre").text_content() == f"python -m k3core run {SLUG} --set dk=9 --seed 0"
    live.page.evaluate("() => { document.querySelector('.take').open = false; }")
