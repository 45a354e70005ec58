"""The page of claims: a link opens the state whose number it shows; no script is needed to read it."""

import pytest

from sitegen.claims import CLAIMS, words

# Claim, key of the figure, where the tab shows it.
FOLLOWED = [("bytes-at-16", "oblong_records", '[data-metric="projection_bytes"] .value'),
            ("few-keys-move", "modulo", '[data-metric="moved_fraction"] .value'),
            ("vip-p99", "isolated", '[data-metric="vip_p99_isolated_ms"] .value')]


@pytest.mark.parametrize("lang", ["", "zh/"])
@pytest.mark.parametrize("id, key, place", FOLLOWED)
def test_a_link_opens_the_number(visit, http_root, lang, id, key, place):
    claims = visit(f"{http_root}/{lang}claims.html")
    evidence = claims.page.locator(f"#{id} .evidence", has=claims.page.locator(f'[data-number="{key}"]'))
    number = evidence.locator(f'[data-number="{key}"] dd')
    rounded = number.locator(".tab")
    shown = rounded.inner_text().strip().removeprefix("=").strip() if rounded.count() else number.inner_text().strip()
    evidence.locator(".from a").click()
    claims.page.wait_for_selector("#lab")
    claims.wait("idle")
    claims.settle()
    assert claims.page.locator(place).inner_text().strip() == shown
    assert not claims.page.locator("#notice.problem").is_visible()


def test_a_link_works_from_disk(visit, roots):
    id, key, place = FOLLOWED[1]
    claims = visit(f"{roots['file']}/claims.html")
    shown = claims.page.locator(f'#{id} [data-number="{key}"] dd').inner_text()
    claims.page.locator(f"#{id} .further .from a").first.click()
    claims.wait("idle")
    claims.settle()
    assert claims.page.locator(place).inner_text() == shown


def test_it_reads_without_scripts(visit, http_root):
    page = visit(f"{http_root}/claims.html", python=False, java_script_enabled=False).page
    assert page.locator(".claim").count() == len(CLAIMS)
    assert page.locator(".tally a").all_inner_texts() != []
    assert sum(int(count) for count in page.locator(".tally .count").all_inner_texts()) == len(CLAIMS)
    for claim in page.locator(".claim").all():
        assert claim.locator(".verdict").inner_text().strip() and claim.locator(".verdict svg").count() == 1
    first = words.words()[CLAIMS[0].id]["claim"]["en"]
    assert page.locator(".claim .statement").first.inner_text() == first
