"""--quick keeps a part of all tests, and one case of every test function on a device."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict

from tests import quick
from tests.python.subprocesses import ROOT

PART = ["tests/ops/test_softmax.py", "tests/tools"]


class Case:
    """What stands in for a test that pytest has collected."""

    def __init__(self, name: str, mark: str | None = None, **parameters: object) -> None:
        self.nodeid, self.mark, self.callspec, self.params = name, mark, self, parameters

    def get_closest_marker(self, mark: str) -> str | None:
        return mark if mark == self.mark else None


def names(items) -> list[str]:
    return [item.nodeid for item in items]


def collected(*options: str) -> list[str]:
    """Names of tests that pytest would run."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider",
         *options, *PART],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_device_is_the_one_that_compiles_fast_or_the_first():
    assert quick.device_of({"pocl": "0", "intel": "1"}) == "intel"
    assert quick.device_of({"pocl": "0", "oclgrind": "1"}) == "pocl"
    assert quick.device_of({}) is None


def test_one_case_of_a_function_stays_on_the_device():
    items = [Case(f"f.py::f[{d}-{n}]", device=d, n=n) for d in "ab" for n in range(9)]
    (name,) = names(quick.kept(items, "b"))
    assert name.startswith("f.py::f[b-")
    assert names(quick.kept(items[::-1], "b")) == [name], "whatever the order"


def test_a_case_stays_for_each_runtime():
    items = [
        Case(f"f.py::f[{d}-{r}-{n}]", device=d, runtime=r)
        for d in "ab" for r in "xy" for n in range(5)
    ]  # fmt: skip
    assert sorted(name[8:11] for name in names(quick.kept(items, "a"))) == ["a-x", "a-y"]


def test_a_case_without_a_device_stays_for_each_runtime():
    items = [Case(f"f.py::f[{r}-{n}]", runtime=r) for r in "xy" for n in range(5)]
    assert sorted(name[8:9] for name in names(quick.kept(items, "a"))) == ["x", "y"]


def test_function_that_runs_elsewhere_only_keeps_a_case():
    assert names(quick.kept([Case("f.py::f[b]", device="b")], "a")) == ["f.py::f[b]"]


def test_other_tests_stay_unless_they_are_slow():
    items = [Case("f.py::f[1]"), Case("f.py::f[2]"), Case("f.py::g", "slow")]
    assert names(quick.kept(items, "a")) == ["f.py::f[1]", "f.py::f[2]"]


def test_every_function_of_this_run_that_is_not_slow_keeps_a_case(request):
    items = request.session.items
    stay = quick.kept(items, None)
    assert set(stay) <= set(items)
    wanted = {quick.function_of(i) for i in items if i.get_closest_marker("slow") is None}
    assert {quick.function_of(item) for item in stay} == wanted
    families = [i for i in items if i.path.parent.name in ("ops", "quantized")]
    assert not [i.nodeid for i in families if i.get_closest_marker("slow")]


def test_option_keeps_a_part_of_all():
    every, kept = collected(), collected("--quick")
    assert set(kept) < set(every)
    cases = defaultdict(list)
    for name in kept:
        cases[name.partition("[")[0]].append(name)
    assert set(cases) == {name.partition("[")[0] for name in every}
    assert len(cases["tests/ops/test_softmax.py::test_softmax"]) == 1


def test_suite_knows_the_mark(pytestconfig):
    marks = [line.partition(":")[0] for line in pytestconfig.getini("markers")]
    assert "slow" in marks
