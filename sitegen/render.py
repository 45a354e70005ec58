"""Pages: every experiment run once with its defaults, in both languages, into plain files with relative links."""

import hashlib
import html
import json
import re
import tomllib
from dataclasses import asdict
from pathlib import Path

import jinja2

from k3core import __version__
from k3core.lab.contract import Experiment
from k3core.lab.registry import everything, experiment
from k3core.lab.text import LANGUAGES
from sitegen import charts, content, glossary, search, sources, words
from sitegen.claims import words as claims
from sitegen.claims.evidence import Runs

HERE = Path(__file__).parent
STATIC = HERE / "static"
FOLDERS = {"en": "", "zh": "zh/"}  # where the pages of a language lie below the site's root
TAGS = {"en": "en", "zh": "zh-Hans"}  # what HTML calls it
NOT_FOUND = "404.html"  # what a host shows for an address that leads nowhere, so its links cannot be relative
# The number that the home page shows beside each tab, of its default settings.
HEADLINES = {
    "speculative-replay": "tokens_equal", "byte-cost": "times_smaller", "verify-and-replay": "detected_at",
    "replayssm-ring": "times_fewer", "page-table": "block_size", "allocation-jitter": "p99_work_unified",
    "unified-pool": "crossover_tokens", "prefix-hit": "hit_tokens", "prefix-miss": "recomputed_tokens",
    "checkpoint-atomicity": "states_explored", "consistent-hashing": "load_peak_to_mean",
    "minimal-disruption": "moved_fraction", "budget-isolation": "vip_p99_ms", "fleet-simulation": "vip_p99_isolated_ms",
}
FAMILY_TITLES = {"state": "State", "pages": "Pages", "prefix": "Prefix", "fleet": "Fleet", "workbench": "Workbench"}


def render(out: Path, assets, base_url: str | None, report) -> None:
    """Write all pages and static files below `out`. `assets` describes the runtime already there (sitegen.pack)."""
    scripts = "".join(path.read_text(encoding="utf-8") for path in sorted((STATIC / "js").glob("*.js")))
    static = write_static(out, assets, scripts)
    pages = Pages(out, assets, static, scripts, base_url)
    headlines, runs = {lang: {} for lang in LANGUAGES}, Runs()
    for chosen in pages.experiments:  # the home page's last: it shows a number of each
        report(f"computing and drawing {chosen.slug}")
        tab = Tab(chosen, pages.repository)
        runs.keep(tab.result)
        for lang in LANGUAGES:
            context = tab.context(lang)
            for metric in context["result"]["metrics"]:
                if metric["key"] == HEADLINES.get(chosen.slug):
                    headlines[lang][chosen.slug] = metric
            if chosen.family == "home":
                pages.write("home.html", lang, page_path(chosen), lead=content.prose(lang, "home"),
                            whom=content.prose(lang, "home-whom"), headlines=headlines[lang], **context)
            else:
                pages.write("tab.html", lang, page_path(chosen), tab_prose=tab.prose(lang),
                            **pages.neighbours(chosen, lang), **context)
    report("judging the claims")
    for lang in LANGUAGES:
        pages.write("claims.html", lang, claims.PAGE, **claims.page(runs, pages.places(lang), lang))
        pages.write("glossary.html", lang, glossary.PAGE, groups=glossary.groups(lang), tabs=pages.places(lang))
    (out / "robots.txt").write_text(robots(base_url), encoding="utf-8")
    if base_url:
        (out / "sitemap.xml").write_text(sitemap(base_url, pages.written), encoding="utf-8")
        for lang in LANGUAGES:
            pages.write(NOT_FOUND, lang, NOT_FOUND)


def write_static(out: Path, assets, scripts: str) -> dict:
    """Style sheet, page scripts, worker, chart library and manifest, named by content; returns name -> path."""
    worker, every = '"use strict";\n' + _joined("worker/*.js"), [experiment(slug) for slug in everything()]
    style = _joined("css/*.css")
    static = {
        "style": _place(out, "site.css", style),
        "scripts": _place(out, "page.js", f'(() => {{\n"use strict";\n{scripts}}})();\n'),
        "vega": _place(out, "vega.js", charts.library()),
        "sources": _place(out, "sources.js",
                          f"K3.sources = {_script_json(sources.texts(every))};\n"),
        "icon": _place(out, "icon.svg", (STATIC / "icon.svg").read_text(encoding="utf-8")),
    }
    found = {lang: _place(out, f"search-{lang}.js", "K3.found = Object.assign(K3.found || {}, "
                          f"{_script_json({lang: search.index(every, lang, page_path)})});\n")
             for lang in LANGUAGES}
    terms = {lang: _place(out, f"terms-{lang}.js", "K3.terms = Object.assign(K3.terms || {}, "
                          f"{_script_json({lang: glossary.definitions(lang)})});\n") for lang in LANGUAGES}
    manifest = {"files": [asdict(file) for file in assets.files],
                "extras": [asdict(file) for file in assets.extras], "lock": assets.lock, "chart_config": charts.CONFIG,
                "search": found, "terms": terms, "wheel": assets.wheel,
                "worker": worker, "image": _digest(worker + "".join(file.sha256 for file in assets.files)),
                **{name: static[name] for name in ("vega", "sources")}}
    early = (STATIC / "early.js").read_text(encoding="utf-8")
    static["manifest"] = _place(out, "manifest.js", f"window.K3 = {{ manifest: {_script_json(manifest)} }};\n{early}")
    return static


def _joined(pattern: str) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted(STATIC.glob(pattern)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _place(out: Path, name: str, text: str) -> str:
    stem, dot, suffix = name.rpartition(".")
    path = f"assets/{stem}.{_digest(text)}{dot}{suffix}"
    (out / path).parent.mkdir(parents=True, exist_ok=True)
    (out / path).write_text(text, encoding="utf-8")
    return path


def _script_json(data) -> str:
    """JSON that is safe inside a script element and as JavaScript."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def page_path(experiment: Experiment) -> str:
    """Where the page of an experiment lies: tabs below tabs/, workbenches beside the home page."""
    if experiment.family == "home":
        return "index.html"
    return f"{experiment.slug}.html" if experiment.family == "workbench" else f"tabs/{experiment.slug}.html"


def robots(base_url: str | None) -> str:
    """What search engines may read, all of it, and where the list of pages lies (RFC 9309, sitemaps.org)."""
    return "User-agent: *\nAllow: /\n" + (f"\nSitemap: {base_url}sitemap.xml\n" if base_url else "")


def sitemap(base_url: str, paths: list) -> str:
    """The list of pages as search engines read it (sitemaps.org); paths are relative to base_url."""
    places = "".join(f"<url><loc>{html.escape(base_url + path)}</loc></url>\n" for path in paths)
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{places}</urlset>\n')


def shown_table(name: str, table: dict) -> dict:
    """A table of `Result.to_json` as the template lays it out: the column "id" becomes each row's mark."""
    shown = [index for index, column in enumerate(table["columns"]) if column["key"] != "id"]
    marks = [index for index, column in enumerate(table["columns"]) if column["key"] == "id"]
    numeric = {index for index in shown if table["rows"] and isinstance(table["rows"][0][index], (int, float))}
    return {
        "name": name, "title": table["title"],
        "columns": [{"label": table["columns"][index]["label"], "number": index in numeric} for index in shown],
        "rows": [{"id": row[marks[0]] if marks else None,
                  "cells": [{"text": texts[index], "number": index in numeric} for index in shown]}
                 for row, texts in zip(table["rows"], table["text"])],
    }


def parted(text: str) -> tuple:
    """The number at the start of a metric's value, and what follows it in smaller letters; as `showValue` does."""
    found = re.fullmatch(r"([^\d\s]?\d(?:[\d.,e−]*\d)?)(.*)", text)
    return found.groups() if found else (text, "")


class Tab:
    """One experiment, run once with its defaults, ready to be shown in either language."""

    def __init__(self, experiment: Experiment, repository: str | None):
        self.experiment = experiment
        self.result = experiment.run()
        self.code = [content.source(function, repository) for function in experiment.code]

    def context(self, lang: str) -> dict:
        """What tab.html and home.html need beside the frame."""
        data = self.result.to_json(lang)
        return {
            "experiment": self.experiment.to_json(lang), "result": data, "code": self.code,
            "places": sources.places(self.experiment),
            "figures": [{"spec": spec, "svg": charts.render(spec, data["tables"][spec["data"]["name"]])}
                        for spec in data["figures"]],
            "scenes": [scene | {"pictures": {name: self._picture(scene, name == "narrow", lang)
                                             for name in ("wide", "narrow")}} for scene in data["scenes"]],
            "tables": [shown_table(name, table) for name, table in data["tables"].items() if table["title"]],
        }

    def prose(self, lang: str) -> str:
        """The text below the figure."""
        return content.prose(lang, self.experiment.slug, "../" * page_path(self.experiment).count("/"))

    def _picture(self, scene: dict, narrow: bool, lang: str) -> dict:
        return self.experiment.picture(self.result, scene["name"], scene["poster"], lang, narrow).to_json(lang)


class Pages:
    """Writes pages from templates; knows the frame that all share."""

    def __init__(self, out: Path, assets, static: dict, scripts: str, base_url: str | None):
        self.out, self.assets, self.static, self.scripts, self.base_url = out, assets, static, scripts, base_url
        self.written = []  # paths, relative to the site's root
        self.experiments = [experiment(slug) for slug in everything()]
        project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        self.repository = project.get("urls", {}).get("Repository")
        self.jinja = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE / "templates"), autoescape=True,
                                        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        self.jinja.filters["script_json"] = lambda data: jinja2.filters.Markup(_script_json(data))
        self.jinja.filters["parted"] = parted
        self.jinja.filters["mathml"] = lambda tex: jinja2.filters.Markup(content.equation(tex))

    def write(self, template: str, lang: str, path: str, **context) -> None:
        """Render one page to `path` (English) or below zh/."""
        place = FOLDERS[lang] + path
        (self.out / place).parent.mkdir(parents=True, exist_ok=True)
        text = self.jinja.get_template(template).render(**self.frame(lang, path), **context)
        (self.out / place).write_text(text, encoding="utf-8")
        self.written.append(place)

    def places(self, lang: str) -> dict:
        """Slug -> what each tab and workbench is called and where its page lies, from the language's root."""
        return {tab.slug: {"tab": tab.tab, "name": tab.name.render(lang), "path": page_path(tab)}
                for tab in self.experiments}

    def neighbours(self, chosen: Experiment, lang: str) -> dict:
        """The pages before and after this one, for those who read in order: tabs, then workbenches."""
        order = [one for one in self.experiments if one.family != "home"]
        at = order.index(chosen)
        before, after = order[at - 1 : at] if at else [], order[at + 1 : at + 2]
        return {name: [{"n": one.tab, "name": one.name.render(lang), "path": page_path(one)} for one in ones]
                for name, ones in (("before", before), ("after", after))}

    def frame(self, lang: str, path: str) -> dict:
        """What every page needs: words, links, families with their tabs, the data that the scripts read."""
        here = "../" * path.count("/")
        root = here + "../" * FOLDERS[lang].count("/")
        if path == NOT_FOUND:
            root, here = self.base_url, self.base_url + FOLDERS[lang]
        return {
            "lang": lang, "folders": FOLDERS, "tags": TAGS, "path": path, "root": root, "here": here,
            "static": self.static, "assets": self.assets, "version": __version__, "base_url": self.base_url,
            "t": lambda template, **args: words.translate(template, lang).format(**args),
            "families": [(words.translate(title, lang), [tab.to_json(lang) | {"path": page_path(tab)}
                                                         for tab in self.experiments if tab.family == family])
                         for family, title in FAMILY_TITLES.items()],
            "family_titles": {family: words.translate(title, lang) for family, title in FAMILY_TITLES.items()},
            "script_words": words.script_words(self.scripts, lang),
        }
