"""The report of a sweep: one HTML file that needs nothing else, not even a script."""

import json
from html import escape
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from .. import __version__
from ..lab.display import number
from . import charts
from .journal import REPORT, RESULTS, Written, cell, replacing, values_of
from .links import address
from .spec import Sweep

DRAWN, LISTED = 20_000, 1_000  # most points in the charts, and in the table
PANELS = 24

STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf7; --ink: #1a1a17; --muted: #63625b; --rule: #dcdad2; --bad: #b84a00;
  --s0: #0072b2; --s1: #d9480f; --s2: #008a5e; --s3: #b0308c; --s4: #947000; --s5: #33332f; --s6: #6a45d0;
  --s7: #85847b; }
@media (prefers-color-scheme: dark) { :root { --paper: #181816; --ink: #ecebe5; --muted: #a3a198; --rule: #3a3934;
  --bad: #f08a4b; --s0: #5fb4ec; --s1: #f4703a; --s2: #2bbf93; --s3: #ee82cc; --s4: #e2c23c; --s5: #f4f3ee;
  --s6: #a48cff; --s7: #98968d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 1.5rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 0.4rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 0.6rem; }
a { color: inherit; text-underline-offset: 0.18em; } a:focus-visible { outline: 2px solid var(--s0); }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(23rem, 100%), 1fr)); gap: 1.2rem; }
figure { margin: 0; } figure svg { display: block; width: 100%; height: auto; max-width: 30rem; }
figcaption { font-weight: 600; }
.lines { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; padding: 0; margin: 0 0 1rem; list-style: none; }
.lines svg { vertical-align: middle; margin-right: 0.4rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.86rem; }
th, td { padding: 0.2rem 0.7rem 0.2rem 0; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--rule); }
td.n, th.n { text-align: right; } .muted { color: var(--muted); } .bad { color: var(--bad); white-space: normal; }
pre { border-left: 3px solid var(--rule); padding-left: 0.9rem; overflow-x: auto; font-size: 0.86rem; }
"""


def check_site(site: str | None) -> None:
    """Raises ValueError for what cannot be the address of a site."""
    if site is not None and (not site or urlsplit(site).scheme not in ("", "http", "https", "file") or "#" in site):
        raise ValueError(f"--site is {site!r}; it must be the address of a built site, https://... or a folder")


def write_report(sweep: Sweep, written: Written, folder: Path, site: str | None) -> bool:
    """Write report.html -> whether its charts could be drawn. Raises OSError, ValueError for [report]."""
    with open(folder / RESULTS, encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(DRAWN + 1), strict=False)]
    base = None if site is None else site if site.endswith(("/", ".html")) else site + "/"
    addresses = [None] * len(rows)
    if base and len(rows) <= DRAWN:
        addresses = _addresses(sweep, rows, base)
    chosen = charts.plan(sweep, rows, written.metrics) if len(rows) <= DRAWN else None
    drawings = _charts(chosen, rows, addresses) if len(rows) <= DRAWN else (
        f"<p>{len(sweep):,} points are too many to draw here; {RESULTS} has them all.</p>")
    drawn = chosen.y if chosen else []
    parts = [_head(sweep, written), drawings, _table(sweep, rows, written, addresses, drawn), _failures(written),
             f'<h2>The sweep</h2>\n<pre tabindex="0">{escape(sweep.source.strip())}</pre>']
    with replacing(folder / REPORT) as file:
        file.write("\n".join(filter(None, parts)) + "\n</main>\n</body>\n</html>\n")
    return find_spec("vl_convert") is not None


def _addresses(sweep: Sweep, rows: list, base: str) -> list:
    """Where the site shows each row. Rows are all points here, in order."""
    found = (address(sweep.point(index)) for index in range(len(rows)))
    return [None if there is None else base + there for there in found]


def _head(sweep: Sweep, written: Written) -> str:
    sizes = ", ".join(f"{len(axis):,} × {' and '.join(dict.fromkeys(name for part in axis for name in part))}"
                      for axis in sweep.axes if len(axis) > 1)
    seeds = f"{len(sweep.seeds):,} seeds" if len(sweep.seeds) > 1 else ""
    title = f"{sweep.command}: {', '.join(filter(None, (sizes, seeds))) or 'one point'}"
    fixed = ", ".join(f"{name}={cell(value)}" for axis in sweep.axes if len(axis) == 1
                      for name, value in axis[0].items())
    failed = f', <span class="bad">{written.failed:,} failed</span>' if written.failed else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p>{len(sweep):,} points{failed}. Everywhere {escape(fixed) or "the defaults"}. <span class="muted">k3core {__version__}
</span></p>"""


def _charts(chosen: charts.Plan | None, rows: list, addresses: list) -> str:
    found = charts.panels(chosen, rows, addresses) if chosen else []
    if not found:
        return ""
    if find_spec("vl_convert") is None:
        return "<p>To see charts here: <code>pip install 'k3core[report]'</code>, then the same command again.</p>"
    styles, bounds = charts.styles_of(found), {metric: charts.bounds_of(found, metric) for metric in chosen.y
                                               if any(panel.metric == metric for panel in found)}
    text = [f"<h2>{escape(', '.join(chosen.y))} against {escape(chosen.x)}</h2>"]
    if chosen.averaged:
        text.append(f"<p>Lines are means over {escape(' and '.join(chosen.averaged))}, bands reach from the least to "
                    "the greatest.</p>")
    if chosen.color:
        text.append(_legend(chosen.color, styles))
    text.append('<div class="panels">')
    for panel in found[:PANELS]:
        title = panel.metric + (f", {chosen.facet}={panel.facet}" if chosen.facet else "")
        drawing = charts.draw(panel, chosen, bounds[panel.metric], styles)
        text.append(f'<figure role="group" aria-label="{escape(title)} against {escape(chosen.x)}">'
                    f"<figcaption>{escape(title)}</figcaption>{drawing}</figure>")
    text.append("</div>")
    if len(found) > PANELS:
        text.append(f"<p>The first {PANELS} of {len(found):,} panels; [report] can choose others.</p>")
    return "\n".join(text)


def _legend(name: str, styles: dict) -> str:
    items = "".join(
        f'<li><svg width="56" height="12" aria-hidden="true"><line x1="0" y1="6" x2="56" y2="6" '
        f'stroke="var(--s{colour})" stroke-width="2" stroke-dasharray="{" ".join(map(str, dashes))}"/>'
        f'<path transform="translate(28 6) scale(4.5)" d="{mark}" fill="var(--s{colour})"/></svg>{escape(line)}</li>'
        for line, (colour, dashes, mark) in styles.items())
    return f'<ul class="lines" aria-label="lines"><li class="muted">{escape(name)}</li>{items}</ul>'


def _table(sweep: Sweep, rows: list, written: Written, addresses: list, drawn: list) -> str:
    """Every point. What the charts draw comes first, so that it is on the screen beside the names."""
    names, fixed = sweep.varying, {}
    for name in written.metrics:
        values = {cell(one["metrics"].get(name)) for one in rows if "metrics" in one}
        if len(values) == 1:
            fixed[name] = next(one["metrics"][name] for one in rows if "metrics" in one)
    metrics = [name for name in (*drawn, *(other for other in written.metrics if other not in drawn))
               if name not in fixed]
    head = "".join(f"<th>{escape(name)}</th>" for name in names or ["command"])
    head += "".join(f'<th class="n">{escape(name)}</th>' for name in metrics)
    text = ["<h2>Points</h2>"]
    if fixed:
        same = ", ".join(f"{escape(name)} {_shown(value)}" for name, value in fixed.items())
        text.append(f"<p>The same at every point: {same}.</p>")
    text += ['<div class="wide" tabindex="0" role="region" aria-label="Points"><table>',
             f"<thead><tr>{head}</tr></thead><tbody>"]
    for one, there in list(zip(rows, addresses, strict=True))[:LISTED]:
        values = values_of(one)
        cells = [escape(cell(values.get(name))) for name in names] or [sweep.command]
        if there:
            cells[0] = f'<a href="{escape(there)}">{cells[0] or "point"}</a>'
        line = "".join(f"<td>{value}</td>" for value in cells)
        if "error" in one:
            line += f'<td class="bad" colspan="{max(1, len(metrics))}">{escape(one["error"])}</td>'
        else:
            line += "".join(f'<td class="n">{_shown(one["metrics"].get(name))}</td>' for name in metrics)
        text.append(f"<tr>{line}</tr>")
    text.append("</tbody></table></div>")
    if len(sweep) > LISTED:
        text.append(f"<p>The first {LISTED:,} of {len(sweep):,}; {RESULTS} and the CSV have them all.</p>")
    return "\n".join(text)


def _shown(value) -> str:
    if isinstance(value, (int, float)):
        return number(value, 6)
    return escape(cell(value))


def _failures(written: Written) -> str:
    if not written.failed:
        return ""
    items = "".join(f'<li class="bad">{escape(error)}</li>' for error in written.errors)
    shown = len(written.errors)
    more = f"<p>The first {shown} of {written.failed:,}.</p>" if written.failed > shown else ""
    return f"<h2>Points that failed</h2>\n<ul>{items}</ul>{more}"
