"""A capsule that was read, and how this machine differs from the recorded one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from clgpu_delegate import _core
from clgpu_delegate.capsule import archive, facts
from clgpu_delegate.capsule.outcome import KINDS, Outcome, outcome_of
from clgpu_delegate.capsule.protocol import in_order
from clgpu_delegate.capsule.trials import Trial
from clgpu_delegate.errors import ModelError
from clgpu_delegate.tflite.graph import Array


class Record:
    """A capsule that was read; its content is not trusted."""

    def __init__(self, manifest: Mapping[str, Any], members: Mapping[str, bytes]) -> None:
        self._manifest, self._members = manifest, members
        told = manifest["outcome"]
        names = {f.name for f in dataclasses.fields(Outcome)}
        told = {k: v for k, v in told.items() if k in names}
        self.outcome = Outcome(**{**told, "signs": tuple(map(str, told.get("signs", ())))})
        if self.outcome.kind not in KINDS or not isinstance(self.outcome.text, str):
            raise ModelError("is damaged: its outcome is unknown")
        str(self.outcome)  # fields that must be numbers
        self.tolerance = float(manifest["tolerance"])
        self.reference = bool(manifest["reference_kernels"])
        self.nodes = tuple((int(n["original"]), str(n["op"])) for n in manifest["nodes"])
        self.inputs = self._arrays("inputs.npz")
        used = dict(self._json("options.json")["used"])
        # A capsule must not choose which files are written.
        self.options = {str(k): v for k, v in used.items() if k not in facts.LOCAL}
        facts_of_device = self._json("device.json").get("device") or {}
        self.device = str(facts_of_device.get("name", "")), str(facts_of_device.get("platform", ""))
        nodes = (self._json("explain.json") or {}).get("nodes", [])
        self._kernels_of_nodes = [_kernel(node) for node in nodes]
        self._expected = self._arrays("expected.npz")
        self.runtime = {str(k): str(v) for k, v in dict(manifest["runtime"]).items()}

    def texts(self) -> dict[str, str]:
        """The recorded kernels that this package has, too, as overrides."""
        known = set(_core.kernel_sources())
        return {
            file: facts.text_to_override(content, file)
            for file, content in self._kernels().items()
            if file in known
        }

    def differences(self) -> list[str]:
        """Versions and kernels that differ from the recorded ones."""
        told = []
        then, now = self._manifest.get("package", {}), facts.packages()
        for name in ("clgpu_delegate", "numpy"):
            if then.get(name) != now.get(name):
                told.append(f"{name} was {then.get(name)} and is {now.get(name)}")
        known = set(_core.kernel_sources())
        kernels = self._kernels()
        gone = sorted(set(kernels) - known)
        changed = [
            file
            for file in sorted(set(kernels) & known)
            if _core.assembled_source(file).encode() != kernels[file]
        ]
        if changed:
            told.append(
                f"kernels are not as recorded: {', '.join(changed)} "
                "(--kernels recorded runs the recorded ones)"
            )
        if gone:
            told.append(f"kernels no longer exist: {', '.join(gone)[:200]}")
        return told

    def other_numbers(self, trial: Trial) -> list[str]:
        """Whether the CPU's results here differ from the recorded ones."""
        if len(self._expected) != len(trial.expected):
            return []
        found = outcome_of(trial.expected, self._expected, self.tolerance)
        return [f"the CPU's own results differ from the recorded ones: {found}"] * found.failed

    def other_candidates(self, trial: Trial) -> list[str]:
        """Nodes that another kernel computes than recorded."""
        now = (trial.facts.get("explain") or {}).get("nodes", [])
        return [
            f"node {n['index']} {n['op']} was computed by {then} and is by {_kernel(n)}"
            for then, n in zip(self._kernels_of_nodes, now)
            if then != _kernel(n)
        ]

    def _kernels(self) -> dict[str, bytes]:
        return {
            name.removeprefix("kernels/"): content
            for name, content in self._members.items()
            if name.startswith("kernels/") and name.endswith(".cl")
        }

    def _json(self, name: str) -> Any:
        try:
            return archive.without_controls(archive.from_json(self._members[name]))
        except KeyError:
            raise ModelError(f"is damaged: it lacks {name!r}") from None

    def _arrays(self, name: str) -> list[Array]:
        return in_order(archive.from_npz(self._members.get(name, b"")), "")


def _kernel(node: Mapping[str, Any]) -> str:
    if not node.get("claimed"):
        return "the CPU"
    return f"{node.get('family')}/{node.get('candidate')}" if node.get("candidate") else "no kernel"
