"""The steps of a capture, and the state after each."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

from clgpu_delegate.capsule import archive, facts
from clgpu_delegate.capsule.cutting import Cut, Cutter
from clgpu_delegate.capsule.privacy import scrub, scrub_all
from clgpu_delegate.capsule.protocol import numbered
from clgpu_delegate.capsule.shrinking import Shrinking, Stopped
from clgpu_delegate.capsule.trials import Bench, Trial
from clgpu_delegate.errors import DependencyError, ModelError
from clgpu_delegate.runtimes import Runtime
from clgpu_delegate.tflite.graph import Array

_HANG_TIMEOUT = 30.0  # seconds for parts of a model that hangs
_TRIES = 3  # to reproduce a failure


class Work:
    """A model that is being captured."""

    def __init__(
        self,
        bench: Bench,
        runtime: Runtime,
        content: bytes,
        inputs: list[Array],
        options: dict[str, Any],
        progress: Callable[[int, int, str], None] | None,
    ) -> None:
        self._bench, self._runtime, self._progress = bench, runtime, progress
        self._content, self._inputs, self._options = content, inputs, options
        self._used = options
        self.part: Cut | None = None
        self.nodes: tuple[tuple[int, str], ...] = ()
        self.total = 0
        self.remark = ""
        self.trial: Trial

    def first_run(self) -> None:
        """The whole model."""
        if self._progress is not None:
            self._progress(1, 0, "the whole model")
        self.trial = self._bench.run(self._content, self._inputs, self._options)
        if self.trial.outcome.kind == "unusable":
            raise ModelError(f"{self._runtime} cannot run the model: {self.trial.outcome.text}")
        explain = self.trial.facts.get("explain") or {"nodes": []}
        self.nodes = tuple((node["index"], node["op"]) for node in explain["nodes"])
        self.total = len(self.nodes)

    def shrink(self, budget: float, *, explicitly: bool) -> None:
        """Look for the smallest part that fails in the same way."""
        try:
            cutter = Cutter(self._content, self._inputs, self._runtime)
        except (DependencyError, ModelError) as error:
            if explicitly and isinstance(error, DependencyError):
                raise
            self.remark = f"not shrunk: {error}"
            return
        self.total = len(cutter.model.main.operators)
        self.nodes = tuple((i, cutter.name(i)) for i in range(self.total))
        end = time.monotonic() + budget
        if self.trial.outcome.kind == "hang":
            self._bench.timeout = min(self._bench.timeout, _HANG_TIMEOUT)

        def attempt(cut: Cut) -> Trial:
            if time.monotonic() > end:
                raise Stopped
            return self._bench.run(cut.content, cut.inputs, self._options_of(cut))

        def show(left: int, what: str) -> None:
            if self._progress is not None:
                self._progress(self._bench.trials + 1, left, what)

        search = Shrinking(cutter, attempt, self.trial.outcome, self._bench.tolerance, show)
        finished = search.search()
        if search.best is None:
            self.remark = "not shrunk: after rewriting, the model does not fail in this way"
        else:
            self.part, self.trial = search.best, search.trial or self.trial
            self._used = self._options_of(self.part)
            self.nodes = tuple((i, cutter.name(i)) for i in self.part.nodes)
        if not finished:
            self.remark = f"the search was stopped after {budget:g} s"

    def look_closer(self) -> None:
        """Run the model to be written once more, to record all facts."""
        if self.trial.outcome.kind in ("crash", "hang"):
            # The plan is known without a run, unless loading fails.
            planned = self._once({**self._used, "warm_up": False}, plan_only=True)
            log = "\n".join(filter(None, [planned.log, self.trial.log]))
            self.trial = dataclasses.replace(
                self.trial,
                facts=planned.facts,
                log=log,
                expected=self.trial.expected or planned.expected,
            )
            return
        self.trial = self._again(self.trial)
        explain = self.trial.facts.get("explain")
        pins = facts.pinned_engines(explain) if explain else ""
        if pins and not self._used.get("engines"):
            # Another machine may have no tuned choices, or others.
            used = {**self._used, "engines": pins}
            pinned = self._once(used)
            if pinned.outcome.kind == self.trial.outcome.kind:
                self.trial, self._used = pinned, used

    def _again(self, before: Trial) -> Trial:
        """A trial with all facts that has the same outcome as one before."""
        for _ in range(_TRIES):
            trial = self._once(self._used)
            if trial.outcome.is_like(before.outcome):
                return trial
        self.remark = "; ".join(
            filter(None, [self.remark, "the failure does not occur every time"])
        )
        return dataclasses.replace(
            trial, outcome=before.outcome, got=before.got, expected=before.expected
        )

    def model_facts(self) -> dict[str, Any]:
        """What the manifest says about the model."""
        return {
            "shrunk": self.part is not None,
            "remark": self.remark,
            "nodes": [{"original": i, "op": name} for i, name in self.nodes],
            "total_nodes": self.total,
        }

    def members(self, asked: Mapping[str, Any]) -> dict[str, bytes]:
        """The files of the capsule, without its manifest."""
        content, inputs = self._written()
        trial, told = self.trial, self.trial.facts
        log = scrub("\n".join(filter(None, [trial.log, trial.outcome.text])))
        programs = told.get("programs") or []
        used = {k: v for k, v in self._used.items() if k not in facts.LOCAL}
        return {
            "model.tflite": content,
            "inputs.npz": archive.to_npz(numbered(inputs, "")),
            "expected.npz": archive.to_npz(numbered(trial.expected, "")),
            "got.npz": archive.to_npz(numbered(trial.got, "")),
            "options.json": archive.to_json({"asked": asked, "used": used}),
            "build_log.txt": f"{log}\n".encode(),
            "device.json": archive.to_json({**facts.device_facts(told), "doctor": self._doctor()}),
            "explain.json": archive.to_json(scrub_all(told.get("explain"))),
            "memory_map.json": archive.to_json(scrub_all(told.get("memory_map"))),
            "kernels/programs.json": archive.to_json(programs),
            **facts.kernel_members(programs, log),
        }

    def _doctor(self) -> Any:
        if self.trial.outcome.kind not in ("error", "crash", "hang"):
            return None  # it takes seconds, and a set-up that computes is not at fault
        if self._progress is not None:
            self._progress(self._bench.trials, len(self.nodes), "examining the machine")
        return facts.diagnosis(str(self._options.get("device", "")))

    def _once(self, options: Mapping[str, Any], *, plan_only: bool = False) -> Trial:
        content, inputs = self._written()
        return self._bench.run(content, inputs, options, details=True, plan_only=plan_only)

    def _written(self) -> tuple[bytes, list[Array]]:
        if self.part is None:
            return self._content, self._inputs
        return self.part.content, self.part.inputs

    def _options_of(self, cut: Cut) -> dict[str, Any]:
        """Options under which a part is claimed as it was in the whole."""
        kept = {k: v for k, v in self._options.items() if k not in ("placement", "min_nodes")}
        if "exclude" in kept:
            kept["exclude"] = facts.exclude_in_part(str(kept["exclude"]), cut.nodes)
        return kept
