"""The HTML report in a real browser: filters, search, keyboard, copying, phones, light and dark."""

import json
import re
from dataclasses import replace

import browser
import pytest
from hostile_reports import SCRIPT, hostile_report
from made_reports import made_report
from steps_conformance.expectations.model import Condition, Expectation
from steps_conformance.outcomes import Outcome
from steps_conformance.reports import html
from steps_conformance.reports.model import CaseResult
from steps_conformance.reports.verdict import judge

pytestmark = pytest.mark.skipif(
    browser.PROGRAM is None, reason="chromium is not on the path; apt-get install chromium"
)

VECTOR = "CLIP-GLOBAL-001/v-rank-4-of-12-float32"
ODD = "CLIP-GLOBAL-001/an-odd-case[float16]"
ROWS = ("numpy", "torch", "jax")
OUTCOMES = {
    "ADAM-MUST-001/x": ["PASS", "PASS", "PASS"],
    "ADAM-SHOULD-002/x": ["PASS", "PASS", "UNSUPPORTED"],
    "CLIP-LAYER-001/x": ["FAIL", "PASS", "PASS"],
    VECTOR: ["PASS", "ERROR", "ERROR"],
    ODD: ["FAIL", "PASS", "PASS"],
}
REQUIREMENTS = ["ADAM-MUST-001", "ADAM-SHOULD-002", "CLIP-GLOBAL-001", "CLIP-LAYER-001"]
ODD_COMMAND = f"steps-conformance run --id '{ODD}' --backend numpy --target clipper.target:target"


def the_report():
    declared = Expectation(
        "CLIP-LAYER-001/x",
        Outcome.FAIL,
        "it rounds",
        when=Condition(backends=("numpy",)),
        file="e.toml",
        cases=("CLIP-LAYER-001/x",),
    )
    report = made_report(OUTCOMES, ROWS, not_run={"cupy": "no CUDA device"}, expectations=(declared,))
    report.results = [
        replace(one, message="the norm is 3.5") if one.id == ODD and one.row == "numpy" else one
        for one in report.results
    ]
    return report


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    found = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def page(chromium, tmp_path):
    """The page of the report, opened anew."""
    file = tmp_path / "report.html"
    report = the_report()
    file.write_text(html.render(report, judge(report)), encoding="utf-8")
    chromium.show(1200, 1600)
    chromium.messages.clear()
    chromium.requested.clear()
    chromium.open(file)
    return chromium


def shown(page):
    """Return the ids of the requirements that are seen in the matrix."""
    return sorted(
        page.run("[...document.querySelectorAll('.requirement')].filter(r => r.offsetParent).map(r => r.id)")
    )


def failures_shown(page):
    return page.run(
        "[...document.querySelectorAll('.case')].filter(c => c.offsetParent)"
        ".map(c => c.querySelector('code').textContent)"
    )


def choose(page, **values):
    for name, value in values.items():
        page.run(
            f"(() => {{ const one = document.forms[0].elements[{name!r}]; one.value = {value!r};"
            "one.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )


def test_nothing_is_loaded_and_nothing_is_complained_of(page):
    assert page.messages == []
    assert len(page.requested) == 1 and page.requested[0].startswith("file:")


def test_everything_is_shown_at_first(page):
    assert shown(page) == REQUIREMENTS
    assert page.run("document.querySelector('output').value") == (
        "4 of 4 requirements, 3 of 3 failures and deviations shown"
    )


@pytest.mark.parametrize(
    ("values", "requirements"),
    [
        ({"outcome": "FAIL"}, ["CLIP-GLOBAL-001"]),
        ({"outcome": "XFAIL"}, ["CLIP-LAYER-001"]),
        ({"outcome": "UNSUPPORTED"}, ["ADAM-SHOULD-002"]),
        ({"outcome": "open"}, ["ADAM-SHOULD-002", "CLIP-GLOBAL-001", "CLIP-LAYER-001"]),
        ({"topic": "adam"}, ["ADAM-MUST-001", "ADAM-SHOULD-002"]),
        ({"level": "SHOULD"}, ["ADAM-SHOULD-002"]),
        ({"backend": "1"}, REQUIREMENTS),
        ({"backend": "1", "outcome": "open"}, ["CLIP-GLOBAL-001"]),
        ({"backend": "0", "outcome": "ERROR"}, []),
        ({"search": "global"}, ["CLIP-GLOBAL-001"]),
        ({"search": "SAYS clip-l"}, ["CLIP-LAYER-001"]),
        ({"search": "nothing like it"}, []),
        ({"search": "clip", "topic": "adam"}, []),
        # by the message of a failure, and by the id of a case
        ({"search": "norm 3.5"}, ["CLIP-GLOBAL-001"]),
        ({"search": "rank-4-of", "backend": "0"}, []),
        ({"search": "it rounds"}, ["CLIP-LAYER-001"]),
    ],
)
def test_filters_and_search_hide_requirements(page, values, requirements):
    choose(page, **values)

    assert shown(page) == requirements
    assert page.run("document.querySelector('output').value").startswith(f"{len(requirements)} of 4 ")


@pytest.mark.parametrize(
    ("values", "cases"),
    [
        ({}, [VECTOR, ODD]),
        ({"outcome": "FAIL"}, [ODD]),
        ({"backend": "2"}, [VECTOR]),
        ({"search": "norm 3.5"}, [ODD]),
        ({"search": "an-odd-case"}, [ODD]),
        ({"topic": "adam"}, []),
    ],
)
def test_filters_and_search_hide_failures(page, values, cases):
    choose(page, **values)

    assert [one for one in failures_shown(page) if one in (VECTOR, ODD)] == cases
    heading = "document.getElementById('failed-CLIP-GLOBAL-001').offsetParent !== null"
    assert page.run(heading) == bool(cases)


def test_a_backend_that_is_chosen_is_the_only_column(page):
    choose(page, backend="1")

    heads = "[...document.querySelectorAll('.matrix thead .row')].filter(h => h.offsetParent)"
    assert page.run(f"{heads}.map(h => h.innerText)") == ["torch"]
    assert page.run("document.querySelectorAll('.cell:not([hidden])').length") == 4


def test_clear_shows_everything_again(page):
    choose(page, search="global", outcome="FAIL")
    page.run("document.querySelector('button[type=reset]').click()")
    page.run("new Promise(done => setTimeout(done, 50))")

    assert shown(page) == REQUIREMENTS


@pytest.mark.parametrize("clipboard", ["there is one", "there is none"])
def test_the_copy_button_gives_the_command_that_runs_the_failure_again(page, clipboard):
    page.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    page.run("navigator.clipboard.writeText('before')")
    page.run("window.system = navigator.clipboard")
    if clipboard == "there is none":
        page.run("Object.defineProperty(navigator, 'clipboard', {value: undefined})")

    page.click(f".copy[aria-label='copy the command that runs {ODD}']")
    page.run("new Promise(done => setTimeout(done, 100))")

    assert page.run("window.system.readText()") == ODD_COMMAND
    assert (
        page.run("[...document.querySelectorAll('.copy')].filter(b => b.textContent === 'copied').length")
        == 1
    )


def test_the_input_of_a_vector_can_be_copied_as_json(page):
    text = page.run("document.querySelector('details .snippet code').textContent")

    vector = json.loads(text)
    assert vector["id"] == VECTOR
    assert vector["step"]["step"] == "GradientClippingStep"
    assert {"gradients", "expected"} <= set(vector["calls"][0])
    # an array's numbers stand in one line
    assert '"shape": [ 2, 1, 3, 2 ]' in text


def test_a_slash_goes_to_the_search_and_the_search_takes_a_slash(page):
    page.press("/", 191, "/")
    focused = page.run("document.activeElement.name")
    page.press("/", 191, "/")

    assert focused == "search"
    assert page.run("document.activeElement.value") == "/"


def test_the_first_tab_is_the_skip_link_and_it_is_seen(page):
    page.press("Tab", 9)

    assert page.run("document.activeElement.textContent") == "Skip to the requirements"
    assert page.run("document.activeElement.getBoundingClientRect().left") >= 0
    page.press("Enter", 13, "\r")
    assert page.run("document.activeElement.id") == "requirements"


def test_what_has_the_focus_has_an_outline(page):
    for _ in range(4):
        page.press("Tab", 9)
        outline = page.run("getComputedStyle(document.activeElement).outline")
        assert re.search(r"solid 3px|3px", outline), page.run("document.activeElement.outerHTML")


def test_arrows_go_from_cell_to_cell_past_what_is_hidden(page):
    where = "document.activeElement.closest('.cell').getAttribute('aria-label')"
    choose(page, outcome="open")
    page.run("document.querySelector('#ADAM-SHOULD-002 .cell').focus()")

    page.press("ArrowRight", 39)
    right = page.run(where)
    page.press("ArrowDown", 40)
    down = page.run(f"[{where}, document.activeElement.closest('tr').id]")
    page.press("ArrowLeft", 37)
    left = page.run(where)

    assert right == "torch: 1 PASS"
    # CLIP-LAYER-001 stands first, as it is planned first
    assert down == ["torch: 1 PASS", "CLIP-LAYER-001"]
    assert left == "numpy: 1 XFAIL"


def test_every_cell_and_control_has_a_name(page):
    assert page.run("[...document.querySelectorAll('.cell')].every(c => c.getAttribute('aria-label'))")
    assert page.run(
        "[...document.querySelectorAll('input, select')].every(one => one.labels.length) &&"
        "[...document.querySelectorAll('button')].every(one => one.textContent.trim())"
    )
    assert page.run("[...document.querySelectorAll('th')].every(head => head.scope)")
    regions = (
        "[...document.querySelectorAll('[role=region]')].every(r => r.ariaLabel || r.ariaLabelledByElements)"
    )
    assert page.run(regions)


def test_each_requirement_has_an_anchor_that_clears_a_filter_which_hides_it(page):
    choose(page, topic="adam")
    page.run("location.hash = '#CLIP-LAYER-001'")
    page.run("new Promise(done => setTimeout(done, 100))")

    assert "CLIP-LAYER-001" in shown(page)
    assert page.run("document.querySelector(':target').id") == "CLIP-LAYER-001"
    assert page.run(
        "[...document.querySelectorAll('.requirement')].every(r => r.querySelector(`a[href='#${r.id}']`))"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_the_page_is_not_wider_than_the_phone(page, scheme, tmp_path):
    page.show(360, 800, scheme=scheme)

    assert page.run("document.documentElement.scrollWidth") == 360
    too_wide = (
        "[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll') &&"
        " e.getBoundingClientRect().right > 361).map(e => e.outerHTML.slice(0, 80))"
    )
    assert page.run(too_wide) == []
    assert page.screenshot(tmp_path / "phone.png").startswith(b"\x89PNG")


def test_light_and_dark_both_can_be_read(page, tmp_path):
    pictures, grounds = {}, {}
    for scheme in ("light", "dark"):
        page.show(1200, 1600, scheme=scheme)
        pictures[scheme] = page.screenshot(tmp_path / f"{scheme}.png")
        assert page.run(CONTRASTS) == [], scheme
        grounds[scheme] = page.run("getComputedStyle(document.body).backgroundColor")

    assert pictures["light"] != pictures["dark"]
    assert grounds == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 29)"}


# The ratio of the Web Content Accessibility Guidelines, 4.5 to 1 for text, asked of every element with text.
CONTRASTS = r"""
(() => {
  const channels = color => color.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const linear = c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
    const [x, y, z] = [r, g, b].map(c => linear(c / 255));
    return .2126 * x + .7152 * y + .0722 * z;
  };
  const ground = element => {
    for (let one = element; one; one = one.parentElement) {
      const color = channels(getComputedStyle(one).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || !one.offsetParent || ["SCRIPT", "OPTION"].includes(one.tagName)) continue;
    const [high, low] = [luminance(channels(getComputedStyle(one).color)), luminance(ground(one))]
      .sort((a, b) => b - a);
    const ratio = (high + .05) / (low + .05);
    const faded = +getComputedStyle(one).opacity;
    if (ratio * (faded < 1 ? faded : 1) < 4.5 && !one.classList.contains("zero"))
      poor.push(`${one.tagName}.${one.className} ${ratio.toFixed(2)}`);
  }
  return [...new Set(poor)];
})()
"""


def test_a_page_of_four_thousand_failing_cases_on_six_backends_opens_in_time(chromium, tmp_path):
    rows = tuple("abcdef")
    report = made_report({f"T{n % 400 % 7}-RULE-{n % 400:03}/c-{n}": ["FAIL"] * 6 for n in range(4000)}, rows)
    report.results = [
        CaseResult(one.row, one.id, one.outcome, f"got this and that {one.row} " * 10, 0.1)
        for one in report.results
    ]
    (tmp_path / "large.html").write_text(html.render(report, judge(report)), encoding="utf-8")

    seconds = min(chromium.open(tmp_path / "large.html") for _ in range(3))

    assert (tmp_path / "large.html").stat().st_size < 5_000_000
    # alone on the machine it is well below; the best of three keeps the neighbours out
    assert seconds < 2
    chromium.run("document.forms[0].elements.search.value = 'RULE-399'")
    took = chromium.run("(() => { const t = performance.now(); choose(); return performance.now() - t; })()")
    assert took < 1000


def test_a_hostile_report_does_nothing_in_a_browser(chromium, tmp_path):
    report = hostile_report()
    (tmp_path / "hostile.html").write_text(html.render(report, judge(report)), encoding="utf-8")
    chromium.messages.clear()
    chromium.requested.clear()
    chromium.show(360, 800)

    chromium.open(tmp_path / "hostile.html")

    assert SCRIPT in chromium.run("document.querySelector('h1').textContent")
    assert chromium.run("document.querySelectorAll('script, img, link, iframe').length") == 1
    assert chromium.messages == []
    assert len(chromium.requested) == 1
    assert chromium.run("document.documentElement.scrollWidth") == 360


def test_a_script_that_slips_in_would_not_run(chromium, tmp_path):
    report = the_report()
    text = html.render(report, judge(report)).replace("</main>", "<script>window.slipped = 1</script></main>")
    (tmp_path / "slipped.html").write_text(text, encoding="utf-8")

    chromium.open(tmp_path / "slipped.html")

    assert chromium.run("window.slipped") is None
    assert any("Content Security Policy" in message for message in chromium.messages)
