"""From tab to tab, as a reader goes, and what that leaves behind. Shared by a browser test and a benchmark."""

import itertools

ROUND = ("byte-cost", "page-table", "prefix-hit", "consistent-hashing")


def rail(visit, page: str):
    """Follow a link of the rail, and wait until the page it names is in place."""
    visit.page.locator(f'.rail a[href$="{page}.html"]').click()
    arrived(visit, page)


def arrived(visit, page: str):
    """Wait until this page is in place, and past its opening question."""
    visit.page.wait_for_function("""(page) => K3.navigation.shown.endsWith(page + ".html")
      && K3.navigation.shown === location.pathname + location.search""", arg=page)
    visit.page.evaluate("() => K3.lab && K3.lab.prediction.reveal()")


def wander(visit, steps: int):
    """So many switches between tabs, each with two runs."""
    for page in itertools.islice(itertools.cycle(ROUND), steps):
        rail(visit, page)
        visit.settle()
        visit.page.evaluate("() => K3.lab.run()")
        visit.settle()


def held(visit) -> dict:
    """What the page holds once everything that can go has gone: bytes of scripts and of Python, counts of the rest."""
    session = visit.context.new_cdp_session(visit.page)
    session.send("HeapProfiler.enable")
    session.send("Performance.enable")
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return {"heap": metrics["JSHeapUsedSize"], "nodes": metrics["Nodes"], "listeners": metrics["JSEventListeners"],
            "documents": metrics["Documents"], "python": visit.page.evaluate("() => K3.lab.engine.memory")}


def growth(visit, steps: int) -> dict:
    """By how much each figure of `held` grew over so many switches, after a round that is not counted."""
    wander(visit, len(ROUND))
    before = held(visit)
    wander(visit, steps)
    return {name: value - before[name] for name, value in held(visit).items()}
