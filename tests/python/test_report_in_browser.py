"""The page of a profile in a real browser: it draws, answers, and runs nothing of a model's names.

Needs chromium, its driver, and selenium.
"""

from __future__ import annotations

import importlib.util
import shutil

import pytest

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


def test_narrow_window_needs_no_scrolling_sideways(report):
    report.set_window_size(500, 900)
    try:
        wide = report.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
    finally:
        report.set_window_size(1300, 1000)
