"""The page of a profile in a real browser: it draws, answers, and runs nothing of a model's names.

Needs chromium, its driver, and selenium.
"""

from __future__ import annotations

import importlib.util
import math
import shutil

import pytest

from clgpu_delegate import PrecisionChange, PrecisionPlan, PrecisionPoint
from clgpu_delegate.profiling import page
from tests.python import made_profile

pytestmark = pytest.mark.slow

_QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1300,1000",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if importlib.util.find_spec("selenium") is None:
        missing.append("selenium")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    from selenium import webdriver  # noqa: PLC0415

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in (*_QUIET, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )
    yield driver
    driver.quit()


@pytest.fixture
def report(browser, tmp_path):
    """The page of the profile made by hand, opened."""
    path = tmp_path / "report.html"
    path.write_text(page.text(made_profile.profile()))
    browser.get(path.as_uri())
    yield browser
    problems = browser.get_log("browser")
    assert problems == []


def find(browser, selector: str) -> list:
    return browser.find_elements("css selector", selector)


def text_of(browser, selector: str) -> str:
    (element,) = find(browser, selector)
    return element.text


def test_all_nodes_are_drawn_and_look_as_what_they_are(report):
    assert len(find(report, "#graph .node")) == 4
    assert len(find(report, "#graph .node.cpu-node")) == 1
    assert len(find(report, "#graph .node.idle")) == 1
    assert len(find(report, "#graph .end")) == 2
    assert len(find(report, "#graph .edge")) == 5
    # From the host to the CUMSUM on the CPU nothing is copied; else at both ends and around it.
    assert len(find(report, "#graph .edge.crosses")) == 4
    assert "315 µs" in text_of(report, "#tiles")
    assert text_of(report, "#name") == "model.tflite"


def test_click_shows_the_facts_of_a_node(report):
    report.find_element("css selector", '[data-node="0"] rect').click()
    facts = text_of(report, "#facts")
    for words in ("CONV_2D", "120 µs", "80 %", "direct (default)", "naive", "1 that cannot",
                  "bound by arithmetic", "t0", "1\u00d74"):  # fmt: skip
        assert words in facts
    report.find_element("css selector", '[data-node="1"] rect').click()
    assert "operation CUMSUM has no kernels" in text_of(report, "#facts")
    assert len(find(report, "#graph .node.selected")) == 1
    report.find_element("css selector", ".span[data-of='2']").click()
    assert "SOFTMAX" in text_of(report, "#facts .op")


def test_rows_are_sorted_by_what_is_clicked(report):
    def order() -> list[str]:
        return [row.get_attribute("data-row") for row in find(report, "#layer-rows tr")]

    assert order() == ["0", "2"]
    heads = find(report, "#layer-heads button")
    heads[[head.text for head in heads].index("op")].click()
    assert order() == ["0", "2"]
    assert text_of(report, "[aria-sort=ascending]") == "op"
    heads[[head.text for head in heads].index("op")].click()
    assert order() == ["2", "0"]


def test_timeline_zooms_and_has_the_other_inferences(report):
    assert len(find(report, ".span[data-kind=launch]")) == 3
    tracks = text_of(report, "#track-labels").split("\n")
    assert tracks == ["inference", "host", "enqueue calls", "kernels", "uploads", "downloads"]
    assert len(find(report, ".span[data-kind=cpu]")) == 3
    width = "return document.querySelector('.track').clientWidth"
    before = report.execute_script(width)
    report.find_element("css selector", "[data-zoom=timeline][data-step='1']").click()
    assert report.execute_script(width) == pytest.approx(1.5 * before, abs=2)
    report.find_element("css selector", "#which option[value=slowest]").click()
    assert "335 µs" in text_of(report, "#which")
    assert report.execute_script(width) == before


def test_memory_map_has_the_blocks_of_a_partition(report):
    assert len(find(report, "#memory .block")) == 2
    report.find_element("css selector", "#memory-partition option[value='1']").click()
    assert len(find(report, "#memory .block")) == 1


def test_roofline_has_the_nodes_below_the_measured_rates(report):
    points = find(report, "#roofline .point")
    assert sorted(point.get_attribute("data-point") for point in points) == ["0", "2"]
    assert len(find(report, "#roofline .roof")) == 3
    words = text_of(report, "#roofline-body")
    for roof in (
        "multiply-adds, 1 GFLOP/s",
        "device memory, 1 GB/s",
        "caches, 4 GB/s",
        "0 CONV_2D",
    ):
        assert roof in words
    place = "const b = document.querySelector(arguments[0]).getBBox(); return [b.x, b.y, b.height]"
    convolution = report.execute_script(place, "#roofline [data-point='0']")
    softmax = report.execute_script(place, "#roofline [data-point='2']")
    # 5 operations a byte at 0.5 GFLOP/s, and 1/15 at 1/40: further to the right, and higher.
    assert convolution[0] > softmax[0]
    assert convolution[1] < softmax[1]
    assert convolution[2] > softmax[2], "it takes longer"
    report.find_element("css selector", "#roofline [data-point='2']").click()
    assert "SOFTMAX" in text_of(report, "#facts .op")
    assert len(find(report, "#roofline .point.selected")) == 1


def test_more_than_the_peak_is_explained(browser, tmp_path):
    slow = {**made_profile.PEAKS, "copy_bytes": 1e8}
    path = tmp_path / "report.html"
    path.write_text(page.text(made_profile.profile(peaks=slow)))
    browser.get(path.as_uri())
    browser.find_element("css selector", '[data-node="2"] rect').click()
    assert "Above 100 %: caches hold a part of its bytes" in text_of(browser, "#facts")


def test_roofline_needs_measured_rates(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page.text(made_profile.profile(peaks=None)))
    browser.get(path.as_uri())
    assert not browser.find_element("css selector", "#roofline").is_displayed()
    assert not browser.find_element("css selector", "nav a[href='#roofline']").is_displayed()
    assert browser.get_log("browser") == []


def test_names_of_a_model_stay_text(report):
    report.find_element("css selector", "#more summary").click()
    borders = find(report, "#more-body details")
    assert len(borders) == 2
    assert borders[1].text == "Borders of partition 1: 400 B"
    borders[1].click()
    assert "400 B from CPU, by copy" in borders[1].text
    report.find_element("css selector", '[data-node="0"] rect').click()
    assert made_profile.HOSTILE.split("{{")[0] in text_of(report, "#facts")
    assert find(report, "img") == []
    assert report.title == "model.tflite on Device"


@pytest.fixture
def with_plan(browser, tmp_path):
    """A function that opens the page of a model with a plan of precisions."""

    def opened(plan: PrecisionPlan | None, source: str = "given"):
        path = tmp_path / "report.html"
        path.write_text(page.text(made_profile.profile(source=source, plan=plan)))
        browser.get(path.as_uri())
        return browser

    yield opened
    assert browser.get_log("browser") == []


def place(browser, selector: str) -> tuple[float, float]:
    """The middle of an element of a drawing."""
    script = (
        "const b = document.querySelector(arguments[0]).getBBox();"
        "return [b.x + b.width / 2, b.y + b.height / 2]"
    )
    return tuple(browser.execute_script(script, selector))


def test_precision_is_hidden_without_a_plan(report):
    assert not report.find_element("css selector", "#precision").is_displayed()
    assert not report.find_element("css selector", "nav a[href='#precision']").is_displayed()
    heads = [head.text for head in find(report, "#layer-heads th")]
    assert "error alone" not in heads
    report.find_element("css selector", '[data-node="0"] rect').click()
    assert "changes alone" not in text_of(report, "#facts")


def test_points_of_a_plan_have_time_to_the_right_and_error_upwards(with_plan):
    report = with_plan(made_profile.plan(metric="relative L2"))
    assert report.find_element("css selector", "nav a[href='#precision']").is_displayed()
    words = text_of(report, "#points-body")
    for word in ("fp32", "fp16", "the plan", "bound, 0.001", "error, relative L2", "300 µs"):
        assert word in words
    names = ("fp32", "fp16", "mixed")
    fp32, fp16, mixed = (place(report, f"#points [data-precision='{name}']") for name in names)
    assert fp16[0] < mixed[0] < fp32[0]
    assert fp16[1] < mixed[1] < fp32[1], "y grows downwards"
    bound = place(report, "#points .bound")
    assert fp16[1] < bound[1] < mixed[1]
    assert len(find(report, "#points .front")) == 1
    assert len(find(report, "#points .measured.on-front")) == 3
    assert len(find(report, "#points .measured.chosen")) == 1
    facts = text_of(report, "#plan-facts")
    for word in (
        "given as the option",
        "on Device:",
        "4 samples",
        "error of the plan 8e-4",
        "budget ended",
    ):
        assert word in facts


def test_changes_are_sorted_by_their_error_and_lead_to_nodes(with_plan):
    report = with_plan(made_profile.plan())
    rows = [row.text for row in find(report, "#change-rows tr")]
    assert [row.split(" ")[0] for row in rows] == ["2", "0", "0", "0"]
    for row, words in zip(rows, (
        ("2 SOFTMAX", "results as half", "∞", "\u22122 µs", "left out"),
        ("0 CONV_2D and 1 other node", "factors as TF32", "0.003", "1 of 2 taken"),
        ("0 CONV_2D", "results as half", "5e-4", "60 µs", "200 B", "taken"),
        ("0 CONV_2D", "weights as half", "0", "taken"),
    )):  # fmt: skip
        for word in words:
            assert word in row
    styles = [bar.get_attribute("class") for bar in find(report, "#change-rows .bar")]
    assert [style.split()[-1] for style in styles] == ["left", "part", "taken", "taken"]
    widths = [inner.size["width"] for inner in find(report, "#change-rows .bar i")]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 0
    find(report, "#change-rows tr")[0].click()
    assert "SOFTMAX" in text_of(report, "#facts .op")
    assert "results as half: ∞, left out" in text_of(report, "#facts")
    selected = [row.get_attribute("class") for row in find(report, "#change-rows tr")]
    assert selected == ["selected", "selected", "", ""], "the second row is about both nodes"


def test_layers_lead_to_the_errors_of_their_changes(with_plan):
    changes = made_profile.plan().changes
    report = with_plan(made_profile.plan(changes=changes * 10))
    assert len(find(report, "#change-rows tr")) == 25
    head = [head.text for head in find(report, "#layer-heads th")].index("error alone")
    cells = [find(row, "td")[head] for row in find(report, "#layer-rows tr")]
    assert [cell.text for cell in cells] == ["0.003", "∞"]
    find(cells[0], "button")[0].click()
    assert len(find(report, "#change-rows tr")) == 40
    assert "CONV_2D" in text_of(report, "#facts .op")
    in_sight = (
        "const r = document.querySelector('#change-rows tr.selected').getBoundingClientRect();"
        "return r.top >= 0 && r.bottom <= innerHeight"
    )
    assert report.execute_script(in_sight)
    report.find_element("css selector", "nav a[href='#precision']").click()  # below the header
    report.find_element("css selector", "#all-changes").click()
    assert len(find(report, "#change-rows tr")) == 25


@pytest.mark.parametrize("source", ["given", "kept"])
def test_plan_without_measurements_has_a_sentence(with_plan, source):
    report = with_plan(None, source)
    assert "Measured points and changes are not known" in text_of(report, "#plan-facts")
    assert "0.001 (relative L2)" in text_of(report, "#plan-facts")
    for hidden in ("#points", "#changes", "#all-changes"):
        assert not report.find_element("css selector", hidden).is_displayed()


@pytest.mark.parametrize("seconds", [0.0, 1e-3])
@pytest.mark.parametrize("error", [0.0, 1e-6, math.inf])
def test_equal_points_are_one_mark(with_plan, seconds, error):
    points = (
        PrecisionPoint("fp32", error=error, seconds=seconds),
        PrecisionPoint("fp16", error=math.inf, seconds=seconds),
        PrecisionPoint("mixed", error=error, seconds=seconds),
    )
    report = with_plan(made_profile.plan(points=points, changes=(), device="Another"))
    marks = [mark.get_attribute("data-precision") for mark in find(report, "#points .measured")]
    infinite = error == math.inf
    assert marks == (["fp32 fp16 mixed"] if infinite else ["fp32 mixed", "fp16"])
    assert len(find(report, "#points .front")) == (0 if infinite else 1)
    assert "NaN" not in report.execute_script("return document.body.innerHTML")
    assert "Another, not on the device of this profile" in text_of(report, "#plan-facts")


def test_labels_of_many_points_do_not_overlap(with_plan):
    """Those that find no place are left out, but never that of the plan."""
    points = (
        PrecisionPoint("fp32", error=1e-6, seconds=300e-6),
        PrecisionPoint("fp16", error=2e-3, seconds=150e-6),
        PrecisionPoint("tf32", error=1.9e-3, seconds=152e-6),
        *(
            PrecisionPoint(
                f"candidate {i}", error=8e-4 + i * 1e-6, seconds=(200 + i) * 1e-6, half=i
            )
            for i in range(1, 13)
        ),
        PrecisionPoint("mixed", error=8e-4, seconds=200e-6, half=3),
    )
    report = with_plan(made_profile.plan(points=points, changes=()))
    boxes = report.execute_script(
        "return [...document.querySelectorAll('#points .names text')].map((text) => {"
        "const b = text.getBBox(); return [b.x, b.y, b.x + b.width, b.y + b.height, "
        "text.textContent]})"
    )
    names = [name for *_, name in boxes]
    assert {"the plan", "fp16", "tf32", "fp32"} <= set(names)
    assert len([name for name in names if name.startswith("candidate")]) >= 4
    for i, (left, top, right, bottom, _) in enumerate(boxes):
        for other in boxes[:i]:
            apart = right < other[0] or other[2] < left or bottom <= other[1] or other[3] <= top
            assert apart, (boxes[i], other)
    assert len(find(report, "#points .measured")) == len(points)


def test_changes_of_every_kind_have_words(with_plan):
    kinds = ("bfloat", "pairs", "sums")
    changes = tuple(
        PrecisionChange("CONV_2D", kind, (1,), (), 1e-3 * (i + 1), 1e-6, 8, taken=0, reason="bound")
        for i, kind in enumerate(kinds)
    )
    slow = PrecisionChange(
        "CONV_2D", "results", (1,), (), math.inf, -1e-6, 8, 0, measured=False, reason="slower"
    )
    report = with_plan(made_profile.plan(changes=(slow, *changes)))
    rows = [row.text for row in find(report, "#change-rows tr")]
    assert ["not measured" in row for row in rows] == [False, False, False, True]
    for row, words in zip(
        rows, ("sums as half", "factors as pairs of bfloat16", "stored as bfloat16")
    ):
        assert words in row
    assert not any(kind in row.split() for row in rows for kind in kinds[:1])


def test_names_in_a_plan_stay_text(with_plan):
    change = PrecisionChange(made_profile.HOSTILE, made_profile.HOSTILE, (99,), (), 1e-3, 0, 0, 0)
    report = with_plan(made_profile.plan(changes=(change,), device=made_profile.HOSTILE))
    assert find(report, "img") == []
    assert report.title == "model.tflite on Device"
    assert made_profile.HOSTILE.split("{{")[0] in text_of(report, "#change-rows")


def test_plan_fits_a_narrow_window(with_plan):
    report = with_plan(made_profile.plan())
    report.set_window_size(500, 900)
    try:
        wide = report.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
    finally:
        report.set_window_size(1300, 1000)


def test_narrow_window_needs_no_scrolling_sideways(report):
    report.set_window_size(500, 900)
    try:
        wide = report.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
    finally:
        report.set_window_size(1300, 1000)
