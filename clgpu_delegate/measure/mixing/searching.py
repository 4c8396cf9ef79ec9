"""The search for a plan of precisions: the fastest that holds a bound of the error."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from clgpu_delegate.base.progress import Bar
from clgpu_delegate.errors import (
    InputError,
    ModelError,
    OptionError,
    QuantizationError,
)
from clgpu_delegate.measure import means
from clgpu_delegate.measure.mixing.changes import (
    SEVERAL,
    Change,
    Ids,
    grouped,
    halved,
    names_of,
    parts_of,
    united,
)
from clgpu_delegate.measure.mixing.settling import (
    Candidate,
    Held,
    Reasons,
    ids_of,
    named_point,
    started,
)
from clgpu_delegate.measure.mixing.trials import Measured, Over, Subject, Trials, Whole, spread_of
from clgpu_delegate.precision import (
    ChannelMeans,
    Int8Scale,
    PrecisionPlan,
    PrecisionPoint,
    plan_text,
)
from clgpu_delegate.quantization.regions import IntegerParts, integer_parts
from clgpu_delegate.report.explanation import Explanation
from clgpu_delegate.report.parts import Node

_HELD_BACK = 1 / 3  # of the samples
_ALONE_SAMPLES = 4  # that measure a group alone
_ALONE_SHARE = 0.4  # of the budget
_MEMORY_SHARE = 0.2  # of the budget, for the last step where the others have spent all of it
_FLOATS_SHARE = 0.5  # of the budget: the rest is left to integers
_FAR = 30  # times the bound: with a larger error of all integers, no budget is left to some
_MARGIN = 0.85  # of the bound: samples that the search has not seen may have larger errors
_HELD_MARGIN = 0.9  # the same of those that are held back, since others may have larger ones yet
_DEVIATIONS = 3  # standard deviations of the errors of samples, above their mean
_LEAST_SPREAD = 0.25  # of the mean: a few samples may be alike by chance
_ALIKE = 1.02  # times within this factor are equal, and so is memory
_SLIGHTLY_SLOWER = 1.1  # than the fastest, which a plan may be that saves a larger share of memory
_WORTH_AN_ERROR = 1e-3  # of the peak: what saves less memory is no reason for an error
_FAR_TOO_MUCH = (
    8  # times what is left of the bound, in squares: such a group is not tried as a whole
)
_LEAST_GROUPS = 4
_ROUNDS = 2  # of times of nodes that are compared with each other
_PASS = "quantize_activations"  # makes integers of the nodes of a plan
_NEGLIGIBLE = 0.1  # of the bound: an error that leaves the search as it is
_HOPELESS = 1  # times the bound: where one node with int8 has that error, no budget is left to them
_OFF_PEAK = 1e-3  # worth of a byte that does not lower the peak of memory


def search(subject: Subject, bar: Bar, told: Callable[[int, int, str, str], None]) -> PrecisionPlan:
    """Find a plan; ``told`` is called before each measurement of a group, as in `tune`.

    Raises
    ------
    OptionError
        If not even floats hold the bound.
    InputError
        If the samples are too few, or the metric returns no number.
    ClgpuError
        If the delegate claims no node.
    """
    return _Search(subject, bar, told).run()


class _Search:
    def __init__(
        self, subject: Subject, bar: Bar, told: Callable[[int, int, str, str], None]
    ) -> None:
        self._subject, self._bar, self._told = subject, bar, told
        self._trials = Trials(subject, bar)
        self._complete, self._stopped = True, False
        self._base: list[Change] = []  # is taken anyway
        self._best: list[Change] = []
        self._saved = 0.0  # by the best: seconds or bytes
        self._best_error = 0.0
        # More weights and results as half: beside the best and the base (true), or beside pairs
        # only.
        self._lighter: list[tuple[bool, list[Change]]] = []
        self._measured: list[Change] = []
        count = len(subject.samples)
        if count < 2:
            raise InputError(f"samples has {count}; allowed: 2 and more, of which some only check")
        order = [int(i) for i in np.random.default_rng(subject.seed).permutation(count)]
        back = max(1, round(count * _HELD_BACK))
        self._held_back, self._seen = order[:back], order[back:]
        self._alone = self._seen[:_ALONE_SAMPLES]
        # The fewer samples there are, the farther may the error of others be from theirs.
        self._allowed = _MARGIN * subject.max_error * len(self._seen) / (len(self._seen) + 1)
        self._model = ""
        self._halves_run = True
        self._parts: IntegerParts | None = None
        self._observed: dict[str, IntegerParts] = {}  # by the observer of their ranges
        self._inputs: dict[int, tuple[int, ...]] = {}  # tensors of each node
        self._without: list[Change] = []  # the best without integers
        self._observed_means: means.Means | None = None
        self._means = means.NONE  # of what weights in 16 bits multiply, if they lower the error
        self._int8_means = means.NONE  # the same of weights as int8
        self._borders: frozenset[int] = frozenset()  # that the option half_io makes half
        self._border_error = 0.0  # of nothing else
        # Factors as sums of two bfloat16 numbers, a part of the base.
        self._pairs: list[Change] = []
        self._pairs_error = 0.0
        self._whole_of_halves: list[Change] = []  # all of fp16, if that holds the bound
        self._spread = _LEAST_SPREAD  # of the errors of samples, relative to their mean
        self._byte_error = 0.0  # of a node with int8 weights, about
        self._weight_error = 0.0  # of one with weights as half, about
        self._starts: list[PrecisionPlan] = []  # that the search begins with
        self._device = ""
        self._held: list[Held] = []  # what holds the bound on the samples held back
        self._rounds = False  # whether tf32 of the whole differs from fp32
        self._why = Reasons(subject)

    def run(self) -> PrecisionPlan:
        subject, everything = self._subject, [*self._seen, *self._held_back]
        self._trials.compute_reference()
        self._model = self._trials.digest()
        self._starts = self._plans_to_start_with()
        floats = self._trials.whole("fp32", everything)
        self._device = floats.explanation.device
        self._peak = floats.explanation.peak_bytes
        if not floats.error <= subject.max_error:
            raise OptionError(
                f"max_error is {subject.max_error:g}, but fp32 itself has an error of "
                f"{floats.error:.2g} on these samples; allowed: more than that"
            )
        self._floats = self._nothing = floats
        try:
            if subject.options.half_io:
                self._round_borders(floats, everything)
            taken = self._found(floats, everything)
            return self._settle(taken)
        except KeyboardInterrupt:
            return self._what_held()

    def _plans_to_start_with(self) -> list[PrecisionPlan]:
        """The one that was given, and the one that the cache has; of this model."""
        subject = self._subject
        if subject.start is not None and subject.start.model != self._model:
            raise OptionError(
                f"start is a plan of another model: it is of {subject.start.model}, this one is "
                f"{self._model}; allowed: a plan that tune made of this model"
            )
        kept = subject.kept(self._model)
        return [plan for plan in (subject.start, kept) if plan is not None]

    def _found(self, floats: Whole, everything: Sequence[int]) -> list[Change]:
        """What holds the bound on the samples of the search."""
        subject = self._subject
        halves = self._trials.try_whole("fp16", everything)
        self._halves_run = halves is not None
        for whole in (floats, halves):
            if whole is not None:
                self._spread = max(self._spread, spread_of(whole.errors))
        half = [] if halves is None else self._halves(floats, halves)
        if halves is not None and self._holds_as_halves(half, floats, halves, everything):
            self._base = self._whole_of_halves = self._whole_base(half, floats, halves)
            if halves.error <= subject.max_error:
                self._keep_held(self._candidate(self._base), halves, halves.errors)
            changes = self._integers(floats, self._alone)
            # Floats between the kernels, which need no conversions, and less memory than floats.
            self._lighter.append((False, [change for change in half if change.kind == "weights"]))
        else:
            rounded = self._trials.try_whole("tf32", self._alone)
            self._rounds = rounded is not None and _rounds_factors(rounded.explanation)
            start = floats if rounded is None else self._with_pairs(floats, rounded)
            half = [] if halves is None else self._halves(start, halves)
            changes = self._integers(start, self._alone)
            changes += [*half, *([] if rounded is None else self._rounded(start, rounded))]
            self._correct_weights(changes)
        self._why.offer([*self._base, *changes])
        # Programs are compiled by now, which may take longer than the search.
        saves_time, end = subject.prefer == "time", time.monotonic() + subject.budget
        # Kernels of integers are compiled at their first trial, so it is made in their own time.
        with_integers = saves_time and self._byte_error <= _HOPELESS * subject.max_error
        left = (1 - _FLOATS_SHARE) * subject.budget if with_integers else 0.0
        self._trials.end = end - left
        self._spend(self._saving(changes))
        self._trials.end = end
        if saves_time:
            self._spend_sums()
        if with_integers and self._integers_may_hold():
            self._spend_integers()
        if saves_time:
            self._spend_memory(changes)
        return [*self._base, *self._best]

    # What may change.

    def _in_turns(self, *precisions: str) -> list[Whole]:
        """Each twice, with the smaller times: other programs may disturb a measurement."""
        rounds = [[self._trials.whole(p, self._alone) for p in precisions] for _ in range(_ROUNDS)]
        return [
            dataclasses.replace(
                same[0],
                times={n: min(w.times.get(n, math.inf) for w in same) for n in same[0].times},
            )
            for same in zip(*rounds)
        ]

    def _whole_base(self, half: Sequence[Change], floats: Whole, halves: Whole) -> list[Change]:
        """What makes all of fp16: its halves, and products of floats that it rounds to TF32."""
        base = [*half, *self._rounded(floats, halves)]
        return [dataclasses.replace(change, error=0.0) for change in base]

    def _holds_as_halves(
        self, half: Sequence[Change], floats: Whole, halves: Whole, numbers: Sequence[int]
    ) -> bool:
        """Whether all of fp16 holds the bound, as it is or with corrected biases.

        What rounded weights lose is the same in each inference. Its mean at a product's result is
        added to the bias, unless the error is as large with that.
        """
        if halves.error <= self._subject.max_error:
            return True
        whole = self._whole_base(half, floats, halves)
        plain = self._error_of(whole, self._seen)
        self._means = self._all_means()
        corrected = self._error_of(whole, self._seen) if self._means.channels else math.inf
        if not corrected < plain:
            self._means = means.NONE
            return False
        allowed = self._allowed
        return corrected <= allowed and self._error_of(whole, numbers) <= allowed

    def _with_pairs(self, floats: Whole, rounded: Whole) -> Whole:
        """Tensor cores multiply floats as sums of two bfloat16 numbers each, where that is faster.

        The error is almost that of floats, so all else is searched for beside it.
        """
        nodes = {n.index: n for n in rounded.explanation.nodes if n.rounds_factors}
        every = [Change("pairs", frozenset((n,)), nodes[n].op, 0.0, 0, node=n) for n in nodes]
        whole = self._trials.try_whole(self._text(every), self._alone) if every else None
        if whole is None:
            return floats
        gaining = [
            dataclasses.replace(change, gain=gain, error=0.0)
            for change in every
            if (gain := floats.times.get(change.node, 0.0) - whole.times.get(change.node, 0.0)) > 0
        ]
        if len(gaining) < len(every):
            whole = self._trials.try_whole(self._text(gaining), self._alone) if gaining else None
        if whole is None or whole.error > _NEGLIGIBLE * self._subject.max_error:
            return floats
        self._base = self._pairs = gaining
        self._pairs_error = whole.error
        return whole

    def _correct_weights(self, changes: Sequence[Change]) -> None:
        """Decide on corrected biases by what weights as half do alone, beside floats."""
        weights = [change for change in changes if change.kind == "weights"]
        self._means = means.NONE
        if not weights:
            return
        plain = self._error_of([*self._base, *weights], self._seen)
        self._means = self._all_means()
        channels = self._means.channels
        corrected = self._error_of([*self._base, *weights], self._seen) if channels else math.inf
        if not corrected < plain:
            self._means = means.NONE
        self._weight_error = min(plain, corrected) / math.sqrt(len(weights))

    def _all_means(self) -> means.Means:
        """Of what products read, on the samples of the search."""
        if self._observed_means is None:
            seen = [self._subject.samples[number] for number in self._seen]
            self._observed_means = means.observe(self._subject.content, self._subject.runtime, seen)
        return self._observed_means

    def _round_borders(self, floats: Whole, everything: Sequence[int]) -> None:
        """Inputs and outputs are half, as the option half_io says, whatever a plan lists."""
        rounded = self._trials.whole(self._text([]), everything)
        error = self._subject.combine(rounded.errors[: len(self._alone)])
        before = {t.id for t in floats.explanation.tensors if t.storage == "float32"}
        self._borders = frozenset(
            t.id for t in rounded.explanation.tensors if t.storage == "float16" and t.id in before
        )
        self._border_error, self._nothing = error, rounded
        if not error <= self._allowed:
            bound = self._subject.max_error
            raise OptionError(
                f"max_error is {bound:g}, but inputs and outputs alone have an error of "
                f"{error:.2g} as half; allowed: more than "
                f"{bound / self._allowed:.3g} times that, or no half_io"
            )

    def _borders_exceed(self, error: float) -> OptionError:
        return OptionError(
            f"max_error is {self._subject.max_error:g}, but inputs and outputs alone have an error "
            f"of {error:.2g} as half on the samples held back; allowed: more than that, or no "
            "half_io"
        )

    def _halves(self, floats: Whole, halves: Whole, storage: str = "float16") -> list[Change]:
        """Storage in 16 bits: of each kernel's results, and of its weights."""
        stored = {t.id: t for t in halves.explanation.tensors if t.storage == storage}
        for tensor in floats.explanation.tensors:
            if tensor.storage != "float32" or tensor.id in self._borders:
                stored.pop(tensor.id, None)
        root = _roots(halves.explanation)
        left = {i for i in stored if root[i] == i}
        own: dict[tuple[int, str], set[int]] = {}  # of a node with a kernel, and kind
        touched: dict[int, set[int]] = {}  # by a node with a kernel
        ops = {node.index: node.op for node in halves.explanation.nodes}
        for node in halves.explanation.nodes:
            at = node.index if node.fused_into is None else node.fused_into
            ids = {root[i] for i in (*node.output_ids, *node.input_ids)}.intersection(stored)
            touched.setdefault(at, set()).update(ids)
            for i in left.intersection(ids):
                if stored[i].constant or i in node.output_ids:
                    kind = "weights" if stored[i].constant else "results"
                    kind = kind if storage == "float16" else "bfloat"
                    own.setdefault((at, kind), set()).add(i)
                    left.discard(i)
        gains = dict.fromkeys(stored, 0.0)  # what a kernel gains its tensors share by their size
        for at, ids in touched.items():
            gain = floats.times.get(at, 0.0) - halves.times.get(at, 0.0)
            whole = max(1, sum(stored[i].bytes for i in ids))
            for i in ids:
                gains[i] += gain * stored[i].bytes / whole
        return [
            Change(
                kind,
                frozenset(ids),
                ops[at],
                sum(gains[i] for i in ids),
                sum(stored[i].bytes // 2 for i in ids),
                node=at,
            )
            for (at, kind), ids in own.items()
        ]

    def _bfloats(self, alone: Sequence[Change]) -> list[Change]:
        """bfloat16 instead of half, where half does not hold the bound even alone.

        Its range may be the reason: numbers beyond 65504, or below 6e-8. Where it is the number of
        bits, the error of bfloat16 is larger, and nothing is taken.
        """
        bound = self._subject.max_error
        over = [c for c in alone if c.kind in ("results", "weights") and not c.error <= bound]
        # In a group of several kinds, only numbers beyond the range are a reason.
        wide = [c for c in alone if c.kind == SEVERAL and not math.isfinite(c.error)]
        over += [part for change in wide for part in change.parts]
        ids = {i for c in over if c.kind in ("results", "weights") for i in c.ids}
        if not ids:
            return []
        whole = self._trials.try_whole(
            plan_text(self._model, None, (), (), (), bfloat=ids), self._alone
        )
        found = [] if whole is None else self._halves(self._floats, whole, "bfloat16")
        return self._saving(found)

    def _saving(self, changes: Sequence[Change]) -> list[Change]:
        """Those that save what the plan is to save."""
        saves_time = self._subject.prefer == "time"
        return [c for c in changes if (c.gain > 0 if saves_time else c.bytes > 0)]

    def _integers(self, floats: Whole, numbers: Sequence[int]) -> list[Change]:
        """Weights as int8: a change for each node whose kernels take such weights."""
        before = {t.id: t for t in floats.explanation.tensors if t.storage.startswith("float")}
        if not before:
            return []
        whole = self._trials.try_whole(plan_text(self._model, None, (), before, ()), numbers)
        if whole is None:
            return []
        stored = {t.id for t in whole.explanation.tensors if t.storage == "int8" and t.id in before}
        if stored:
            self._int8_means = self._all_means()
            every = Change("int8", frozenset(stored), "", 0, 0)
            channels = self._int8_means.of(stored)
            corrected = self._error_of([every], numbers) if channels else math.inf
            if not corrected < whole.error:
                self._int8_means = means.NONE
            # Roundings add up as their squares do.
            self._byte_error = min(corrected, whole.error) / math.sqrt(len(stored))
        changes = []
        for node in whole.explanation.nodes:
            own = stored.intersection(node.input_ids)
            stored -= own
            if own:
                gain = floats.times.get(node.index, 0.0) - whole.times.get(node.index, 0.0)
                parts = [3 if before[i].storage == "float32" else 1 for i in own]  # of 4
                saved = sum(before[i].bytes * part // 4 for i, part in zip(own, parts))
                changes.append(
                    Change("int8", frozenset(own), node.op, gain, saved, node=node.index)
                )
        return changes

    def _rounded(self, floats: Whole, rounded: Whole) -> list[Change]:
        """TF32: a change for each node that uses it, in tf32 or, of floats, in fp16.

        There a kernel may make halves of the floats, which round them as TF32 does.
        """
        changes = []
        for node in rounded.explanation.nodes:
            if node.rounds_factors:
                gain = floats.times.get(node.index, 0.0) - rounded.times.get(node.index, 0.0)
                own = frozenset((node.index,))
                changes.append(Change("factors", own, node.op, gain, 0, node=node.index))
        return changes

    # The search.

    def _spend(self, changes: Sequence[Change]) -> None:
        """Take those that hold the bound on the samples of the search, worthiest first."""
        with self._interruptible():
            for start in self._starts:
                ids = ids_of(start)
                if own := [c for c in changes if c.ids <= ids.of(c.kind)]:
                    self._holds(own)
            # Products of floats on tensor cores, and their weights as half, which that costs no
            # further error: alone, each of the two counts what the other one rounds, too.
            factors = [change for change in changes if change.kind == "factors"]
            weights = [change for change in changes if change.kind == "weights"]
            if factors and self._holds(factors):
                self._holds([*factors, *weights])
            elif self._pairs and weights:
                self._holds(weights)
            alone = self._alone_errors(changes)
            # The same, with the error of each.
            taken = names_of(self._best)
            self._best = parts_of(alone, lambda part: part.name in taken)
            alone += self._alone_errors(self._bfloats(alone))
            orders = [sorted(alone, key=self._worth, reverse=True)]
            if self._subject.prefer == "memory":
                # What is saved of results at the same moment does not add up, weights always do.
                orders.append(sorted(alone, key=self._worth_of_weights, reverse=True))
            for order in orders:
                self._prefix(order)
            for order in orders:
                self._refine(self._left_of(order))

    def _left_of(self, order: Sequence[Change]) -> list[Change]:
        """What the best does not have, in the same order."""
        taken = names_of(self._best)
        return parts_of(order, lambda part: part.name not in taken)

    def _spend_memory(self, changes: Sequence[Change]) -> None:
        """At last more weights as half, and results at the peak, as many as hold the bound.

        Beside what was found, and beside floats, which leave the whole bound to them. Largest
        first, since few have been measured alone. The end decides whether they cost time.
        """
        if self._stopped:
            return
        found, base, saved = self._best, self._base, self._saved
        taken = [*base, *found]
        for start in [taken] if len(taken) == len(self._pairs) else [taken, self._pairs]:
            least = time.monotonic() + _MEMORY_SHARE * self._subject.budget
            self._trials.end = max(self._trials.end, least)
            weights, results = self._left_as_float(changes, united(start))
            self._base, self._best, self._saved = list(start), [], 0.0
            with self._interruptible():
                self._prefix(
                    [
                        dataclasses.replace(c, gain=float(c.bytes), error=self._weight_error)
                        for c in weights
                    ]
                )
            names = names_of(self._best)
            more = [c for c in weights if c.name in names]
            with self._interruptible():
                self._lower_peak(results, more)
            if more:
                self._lighter.append((start is taken, more))
        self._base, self._best, self._saved = base, found, saved

    def _left_as_float(
        self, changes: Sequence[Change], ids: Ids
    ) -> tuple[list[Change], list[Change]]:
        """Weights and results that may be half beside a plan: large ones, the largest first."""
        stored = {*ids.half, *ids.int8, *ids.bfloat, *self._weights_of(ids.integers)}
        least = _WORTH_AN_ERROR * self._peak
        left = [c for c in changes if not c.ids & stored and c.bytes >= least]
        left.sort(key=lambda change: change.bytes, reverse=True)
        over = {c.name for c in self._measured if not c.error <= self._allowed}
        return (
            [change for change in left if change.kind == "weights"],
            [change for change in left if change.kind == "results" and change.name not in over],
        )

    def _lower_peak(self, results: Sequence[Change], taken: list[Change]) -> None:
        """Add those to what was taken beside the base that lower the peak of memory.

        Where two of them are needed to lower it, the first one alone does not.
        """
        start = self._trial([*self._base, *taken], self._alone[:1])
        if start is None:
            return
        least, tried = start.explanation.peak_bytes, list(taken)
        for number, change in enumerate(results):
            self._tell(number, len(results), change, "at the peak of memory")
            measured = self._trial([*self._base, *tried, change], self._seen)
            if measured is None or not self._within(measured):
                continue
            tried.append(change)
            if measured.explanation.peak_bytes < least - _WORTH_AN_ERROR * self._peak:
                least = measured.explanation.peak_bytes
                taken[:] = tried

    def _spend_sums(self) -> None:
        """Then sums in half, of nodes that the plan so far lets read halves.

        They need these halves, so their errors are not measured alone: those that save most come
        first. Devices whose first choice are float sums have none.
        """
        self._base, self._best, self._saved = [*self._base, *self._best], [], 0.0
        kinds = {part.kind for change in self._base for part in change.single}
        if self._stopped or not kinds & {"results", "weights"}:
            return
        with self._interruptible():
            before = self._trials.whole(self._text(self._base), self._alone)
            every = Change("sums", frozenset(n.index for n in before.explanation.nodes), "", 0, 0)
            after = self._trials.try_whole(self._text([*self._base, every]), self._alone)
            if after is None:
                return
            changes = []
            for node in after.explanation.nodes:
                gain = before.times.get(node.index, 0.0) - after.times.get(node.index, 0.0)
                if node.adds_halves and gain > 0:
                    changes.append(Change("sums", frozenset((node.index,)), node.op, gain, 0))
            changes.sort(key=lambda change: change.gain, reverse=True)
            self._why.offer(changes)
            self._prefix(changes)
            self._refine([change for change in changes if change not in self._best])

    def _spend_integers(self) -> None:
        """Then nodes that compute with int8, as many as hold the bound beside the plan so far.

        A product and the nodes behind it, up to the next product, change together, so that few
        tensors are converted. Connected nodes that are slower than before with the conversions
        around them are given up.
        """
        taken = [*self._base, *self._best]
        self._base, self._best, self._saved, self._without = taken, [], 0.0, taken
        if self._stopped:
            return
        with self._interruptible():
            before, self._base = self._base_of_integers(taken)
            after = self._every_integer()
            if after is None:
                return
            blocks = self._blocks(before, after)
            if not any(block.gain > 0 for block in blocks):
                return
            self._inputs = {node.index: node.input_ids for node in before.explanation.nodes}
            whole = self._holds(blocks)
            alone = self._alone_errors(blocks)
            if whole:
                self._best = alone  # the same, with the error of each
            else:
                allowed = self._allowed
                order = sorted(
                    (change for change in alone if change.error <= allowed),
                    key=self._worth,
                    reverse=True,
                )
                for start in self._starts:
                    if own := [c for c in order if c.ids <= set(start.integers)]:
                        self._holds(own)
                self._prefix(order)
                self._refine(self._nearest_first([c for c in order if c not in self._best]))
        if self._best:
            self._leave_slow()

    def _base_of_integers(self, taken: list[Change]) -> tuple[Whole, list[Change]]:
        """What was taken, or the part of it that is faster than floats, or nothing of it.

        Unless time is saved by it, the whole bound is left to the integers.
        """
        bases = [[], [change for change in taken if change.gain > 0], taken]
        bases = [base for i, base in enumerate(bases) if base not in bases[:i]]
        wholes = self._in_turns(*map(self._text, bases))
        seconds = [sum(whole.times.values()) for whole in wholes]
        best = min(range(len(bases)), key=seconds.__getitem__)
        if seconds[best] * _ALIKE >= seconds[0]:
            best = 0
        return wholes[best], bases[best]

    def _integers_may_hold(self) -> bool:
        """Whether some nodes may compute with int8 within the bound: all together come near it."""
        every: Whole | None = None
        if self._stopped:
            return False
        with self._interruptible():
            every = self._every_integer()
        return every is not None and every.error <= _FAR * self._subject.max_error

    def _every_integer(self) -> Whole | None:
        """The base with all integers, with the first observer of ranges that holds the bound.

        If none does, with that of the smaller error.
        """
        best: tuple[float, IntegerParts, Whole] | None = None
        seen = [self._subject.samples[number] for number in self._seen]
        for observer in self._subject.observers:
            try:
                if observer not in self._observed:
                    self._observed[observer] = integer_parts(
                        self._subject.content, self._subject.runtime, seen, observer
                    )
            except (QuantizationError, ModelError):
                break  # a value that is not finite, or a model that is not all float
            self._parts = self._observed[observer]
            if not self._parts.nodes:
                break
            every = Change("integers", frozenset(self._parts.nodes), "", 0, 0)
            whole = self._trials.try_whole(self._text([*self._base, every]), self._alone)
            if whole is not None and (best is None or whole.error < best[0]):
                best = whole.error, self._parts, whole
                if whole.error <= self._allowed:
                    break
        if best is None:
            return None
        self._parts = best[1]
        return best[2]

    def _blocks(self, before: Whole, after: Whole) -> list[Change]:
        """A product and what follows it up to the next one, of nodes that became integers."""
        assert self._parts is not None
        applied = {
            step.node
            for step in after.explanation.steps
            if (step.pass_name, step.outcome) == (_PASS, "applied")
        }
        nodes = [node for node in self._parts.nodes if node in applied]
        starts = [i for i, node in enumerate(nodes) if i == 0 or node in self._parts.products]
        stored = {t.id: t for t in before.explanation.tensors}
        ops = {node.index: node for node in before.explanation.nodes}
        changes = []
        for start, end in zip(starts, [*starts[1:], len(nodes)]):
            block = nodes[start:end]
            gain = sum(before.times.get(n, 0.0) - after.times.get(n, 0.0) for n in block)
            results = [stored[t] for n in block for t in ops[n].output_ids if t in stored]
            saved = sum(t.bytes * (3 if t.storage == "float32" else 1) // 4 for t in results)
            changes.append(Change("integers", frozenset(block), ops[block[0]].op, gain, saved))
        return changes

    def _nearest_first(self, changes: Sequence[Change]) -> list[Change]:
        """Those first that share most tensors with what is taken: a conversion less for each."""
        taken = self._integers_of(self._best)
        own = {t for node in taken for t in self._tensors_of(node)}

        def shared(change: Change) -> int:
            return len(own.intersection(t for n in change.ids for t in self._tensors_of(n)))

        return sorted(changes, key=shared, reverse=True)

    def _leave_slow(self) -> None:
        """Give up the groups of nodes that are not faster, with their conversions, than before.

        The nodes beside a group count with it, because their kernels may convert what they write
        or read.
        """
        regions = self._regions(self._integers_of(self._best))
        texts = self._text(self._base), self._text([*self._base, *self._best])
        before, now = self._in_turns(*texts)
        slow: set[int] = set()
        for region in regions:
            touched = region | _beside(region, before.explanation.nodes)
            if sum(now.times.get(n, 0.0) for n in touched) >= sum(
                before.times.get(n, 0.0) for n in touched
            ):
                slow |= region
        self._why.slow |= slow
        kept = [dataclasses.replace(c, ids=c.ids - slow, parts=()) for c in self._best]
        self._best = [change for change in kept if change.ids]

    def _regions(self, nodes: Iterable[int]) -> list[set[int]]:
        """The nodes in groups that share no tensor of int8 with each other."""
        found: list[tuple[set[int], set[int]]] = []
        for node in nodes:
            own, tensors = {node}, set(self._tensors_of(node))
            for other in [entry for entry in found if entry[1] & tensors]:
                found.remove(other)
                own |= other[0]
                tensors |= other[1]
            found.append((own, tensors))
        return [own for own, _ in found]

    def _tensors_of(self, node: int) -> frozenset[int]:
        assert self._parts is not None
        return self._parts.tensors.get(node, frozenset())

    def _integers_of(self, changes: Iterable[Change]) -> list[int]:
        return sorted(united(changes).integers)

    def _scales(self, nodes: Iterable[int]) -> tuple[Int8Scale, ...]:
        """Of the tensors that these nodes read and write."""
        if self._parts is None:
            return ()
        tensors = {t for node in nodes for t in self._tensors_of(node)}
        scales = self._parts.scales
        return tuple(Int8Scale(t, scales[t].scale, scales[t].zero_point) for t in sorted(tensors))

    def _alone_errors(self, changes: Sequence[Change]) -> list[Change]:
        """The changes in groups, with the error of each group alone."""
        if not changes:
            return []
        # Of neighbouring nodes all that may change changes together: between them is no border of
        # precisions, whose kernels would have to be compiled for each group anew.
        together = self._subject.prefer == "time"
        few = grouped(changes, _LEAST_GROUPS, together=together)
        start = time.monotonic()
        self._alone_of(few[len(few) // 2])
        each = time.monotonic() - start
        allowed = int((self._trials.end - time.monotonic()) * _ALONE_SHARE / each)
        groups = grouped(changes, max(_LEAST_GROUPS, allowed), together=together)
        earlier, measured = self._measured, []
        for done, group in enumerate(groups):
            self._tell(done, len(groups), group, "alone")
            measured.append(self._alone_of(group))
            self._measured = [*earlier, *measured]
        return measured

    def _alone_of(self, change: Change) -> Change:
        measured = self._trial([*self._pairs, change], self._alone)
        if measured is None:
            return dataclasses.replace(change, error=math.inf, peak=self._peak)
        # Errors add up as their squares do.
        other = self._border_error**2 + self._pairs_error**2
        error = math.sqrt(max(measured.error**2 - other, 0.0))
        return dataclasses.replace(change, error=error, peak=measured.explanation.peak_bytes)

    def _worth(self, change: Change) -> float:
        """What is gained per error spent; errors of several changes add up as their squares do."""
        gain = change.gain
        if self._subject.prefer == "memory":
            # Of two changes that leave the peak as it is, the one of larger tensors.
            gain = max(self._peak - change.peak, 0) + change.bytes * _OFF_PEAK
        if gain <= 0:  # integers between others, which would be converted
            return -(change.error**2)
        return gain / max(change.error, 1e-12) ** 2

    def _worth_of_weights(self, change: Change) -> float:
        share = _OFF_PEAK if change.kind == "results" else 1.0
        return change.bytes * share / max(change.error, 1e-12) ** 2

    def _prefix(self, order: Sequence[Change]) -> None:
        """Find the longest beginning of the order that holds the bound, by halving."""
        low, high = 0, len(order)
        # Where errors add up as their squares do, the end is near this place.
        sums = np.cumsum([change.error**2 for change in order])
        middle = int(np.searchsorted(sums, self._allowed**2))
        while low < high:
            middle = min(max(middle, low + 1), high)
            self._tell(low, len(order), order[middle - 1], f"{middle} groups together")
            if self._holds(order[:middle]):
                low = middle
            else:
                high = middle - 1
            middle = (low + high + 1) // 2

    def _refine(self, rest: Sequence[Change]) -> None:
        """Take parts of what is left, each where the whole still holds the bound."""
        queue = [part for change in rest for part in halved(change)]
        while queue:
            change = queue.pop(0)
            done = len(self._best)
            left = max(self._allowed**2 - self._best_error**2, 0.0)
            if change.parts and change.error**2 > _FAR_TOO_MUCH * left:
                queue += halved(change)
                continue
            self._tell(done, done + len(queue) + 1, change, "added")
            if self._holds([*self._best, change]):
                continue
            if change.parts:
                queue += halved(change)
            else:
                self._why.rejected.add(change.name)

    def _holds(self, changes: Sequence[Change]) -> bool:
        """Whether they hold the bound together; then they are the best, unless others save more."""
        measured = self._trial([*self._base, *changes], self._seen)
        if measured is None or not self._within(measured):
            return False
        if self._subject.prefer == "memory":
            saved: float = self._peak - measured.explanation.peak_bytes
        else:
            # What is slower alone may save conversions between its neighbours.
            saved = sum(max(change.gain, 0.0) for change in changes)
        if saved >= self._saved:
            self._best, self._saved = list(changes), saved
            self._best_error = measured.error
        return True

    def _within(self, measured: Measured) -> bool:
        """Whether the errors on samples of the search leave enough of the bound to others."""
        bound = self._subject.max_error
        return measured.error <= self._allowed and self._expected(measured.errors) <= bound

    def _tell(self, done: int, count: int, change: Change, what: str) -> None:
        self._bar.show(f"{change.op} {what}", done, count)
        self._told(done, count, change.op, what)

    # The end: a plan that holds on samples of its own.

    def _settle(self, taken: Sequence[Change]) -> PrecisionPlan:
        """The fastest of what holds the bound on the samples held back, or that of least memory."""
        saves_memory = self._subject.prefer == "memory"
        worth = self._worth_of_weights if saves_memory else self._worth
        taken = sorted(taken, key=worth, reverse=True)
        self._why.found = names_of(taken)
        while taken and not self._holds_there(self._candidate(taken)):
            taken = taken[: len(taken) * 3 // 4]
        self._why.held = names_of(taken)
        tried = [self._candidate(taken)] if taken else []
        for other in self._others(taken):
            known = [(candidate.names, candidate.text) for candidate in tried]
            alike = any(names == other.names or text == other.text for names, text in known)
            if not alike and self._holds_there(other):
                tried.append(other)
        base = [change for change in taken if change.kind == "pairs"]
        for beside_all, weights in self._lighter:
            start, count = taken if beside_all else base, len(weights)
            while count and not self._holds_there(self._candidate([*start, *weights[:count]])):
                count = count * 3 // 4
            if count:
                tried.append(self._candidate([*start, *weights[:count]]))
        return self._fastest(tried)

    def _others(self, taken: Sequence[Change]) -> Iterator[Candidate]:
        """What is tried beside all that was taken.

        Weights as int8 may cost time together, or more of the bound than on the samples before.
        """
        fast = [change for change in taken if change.gain > 0]
        floats = [change for change in taken if change.kind != "integers"]
        base = [change for change in taken if change.kind == "pairs"]
        for part in (fast, floats, self._without, base, self._whole_of_halves):
            if part:
                yield self._candidate(part)
        for start in self._starts:
            bound = self._subject.max_error if self._subject.metric is None else None
            yield started(start, bound, self._device)

    def _fastest(self, tried: Sequence[Candidate]) -> PrecisionPlan:
        """Measured in turns with the precisions of the whole."""
        bound, saves_memory = self._subject.max_error, self._subject.prefer == "memory"
        names = ["fp32", *(["fp16"] if self._halves_run else [])]
        names += ["tf32"] if self._tf32_differs() else []
        plans = [*tried, *([self._candidate([])] if self._borders else [])]
        texts = [candidate.text for candidate in plans]
        measured = self._trials.points([*names, *texts], self._held_back)
        wholes, own = measured[: len(names)], measured[len(names) :]
        if not self._borders:
            plans.append(self._candidate([]))
            own.append(wholes[0])
        right = [i for i, point in enumerate(own) if point.error <= bound]
        if not right and self._borders:
            raise self._borders_exceed(own[-1].error)
        right = right or [len(own) - 1]  # floats held the bound before the search
        if saves_memory:
            chosen = min(right, key=lambda i: (own[i].bytes, own[i].seconds))
        else:
            cost = [point.seconds * max(point.bytes, 1) for point in own]
            least = min(own[i].seconds for i in right)
            halves = [point.seconds for point in wholes if point.name == "fp16"]
            most = max(least * _ALIKE, min([least * _SLIGHTLY_SLOWER, *halves]))
            close = [i for i in right if own[i].seconds <= most]
            least_cost = min(cost[i] for i in close) * _ALIKE
            # What saves nothing is no reason for an error.
            close = [i for i in close if cost[i] <= least_cost]
            chosen = min(close, key=lambda i: (own[i].error, own[i].seconds))
        others = [
            named_point(point, f"candidate {number}", candidate.ids)
            for number, (point, candidate) in enumerate(
                ((own[i], plans[i]) for i in range(len(texts)) if i != chosen), 1
            )
        ]
        mixed = named_point(own[chosen], "mixed", plans[chosen].ids)
        return self._plan(plans[chosen], mixed.error, (*wholes, *others, mixed))

    def _tf32_differs(self) -> bool:
        """Whether tf32 of the whole has other kernels than fp32; where fp16 holds, now measured."""
        if self._whole_of_halves and not self._rounds:
            rounded = self._trials.once("tf32", self._alone[:1])
            self._rounds = rounded is not None and _rounds_factors(rounded.explanation)
        return self._rounds

    def _what_held(self) -> PrecisionPlan:
        """After Ctrl-C: the best that was measured on the samples held back, or floats."""
        self._complete, self._stopped = False, True
        if self._subject.prefer == "memory":
            known = [held for held in self._held if held.bytes < self._peak]
            best = min(known, key=lambda held: held.bytes, default=None)
        else:
            known = [held for held in self._held if held.candidate.gain > 0]
            best = max(known, key=lambda held: held.candidate.gain, default=None)
        if best is not None:
            return self._plan(best.candidate, best.error, ())
        error = self._subject.combine(self._nothing.errors[len(self._seen) :])
        if not error <= self._subject.max_error:
            raise self._borders_exceed(error)
        return self._plan(self._candidate([]), error, ())

    def _plan(
        self, chosen: Candidate, error: float, points: tuple[PrecisionPoint, ...]
    ) -> PrecisionPlan:
        ids = Ids(*map(set, chosen.ids))
        ids.int8.difference_update(self._weights_of(ids.integers))
        why = self._why
        why.ended = "" if self._complete else "interrupted" if self._stopped else "budget"
        return PrecisionPlan(
            model=self._model,
            half=tuple(sorted(ids.half)),
            int8=tuple(sorted(ids.int8)),
            tf32=tuple(sorted(ids.tf32)),
            half_sums=tuple(sorted(ids.half_sums)),
            bfloat=tuple(sorted(ids.bfloat)),
            integers=tuple(sorted(ids.integers)),
            scales=chosen.scales,
            means=chosen.means,
            bf16_pairs=tuple(sorted(ids.bf16_pairs)),
            device=self._device,
            max_error=self._subject.max_error,
            metric=self._subject.metric_name,
            error=error,
            samples=len(self._seen),
            held_back=len(self._held_back),
            points=points,
            changes=why.changes(self._measured, ids),
            complete=self._complete,
            interrupted=self._stopped,
        )

    def _candidate(self, changes: Sequence[Change]) -> Candidate:
        ids = united(changes)
        scales, means_ = self._scales(ids.integers), self._means_of(ids)
        gain = sum(change.gain for change in changes)
        return Candidate(ids, scales, means_, self._text(changes), names_of(changes), gain)

    def _holds_there(self, candidate: Candidate) -> bool:
        """Whether it holds the bound on the samples held back, and so probably on others."""
        held = len(self._held_back)
        measured = self._trials.once(candidate.text, [*self._held_back, *self._seen])
        if measured is None:
            return False
        bound = self._subject.max_error
        worst = self._subject.combine(measured.errors[:held])
        if candidate.names and candidate.names == names_of(self._whole_of_halves):
            holds = worst <= bound  # all of fp16, which held it on all samples
        else:
            holds = worst <= _HELD_MARGIN * bound and self._expected(measured.errors) <= bound
        if holds:
            self._keep_held(candidate, measured, [*measured.errors[held:], *measured.errors[:held]])
        return holds

    def _keep_held(
        self, candidate: Candidate, measured: Whole | Measured, errors: Sequence[float]
    ) -> None:
        """Remember it for Ctrl-C; the errors are of the samples of the search, then the others."""
        error = self._subject.combine(errors[len(self._seen) :])
        self._held.append(Held(candidate, error, measured.explanation.peak_bytes))

    def _expected(self, errors: Sequence[float]) -> float:
        """A bound that few other samples exceed, of the error of each sample.

        Errors of samples are seldom alike: in small networks the largest of ten is twice the mean.
        Where those of fp32 or fp16 differ more, the model is sensitive to some inputs, and that
        counts. A metric may be of any kind, such as 0 or 1: its value for all samples then.
        """
        if self._subject.metric is not None or not np.isfinite(errors).all():
            return self._subject.combine(errors)
        spread = max(self._spread, spread_of(errors))
        return float(np.mean(errors)) * (1 + _DEVIATIONS * spread)

    def _weights_of(self, integers: set[int]) -> set[int]:
        """What only these nodes read: they make int8 of their weights themselves."""
        others = {t for n, ids in self._inputs.items() if n not in integers for t in ids}
        return {t for n in integers for t in self._inputs[n]} - others

    # Measurements.

    def _text(self, changes: Sequence[Change]) -> str:
        ids = united(changes)
        bound = self._subject.max_error
        return ids.text(self._model, bound, self._scales(ids.integers), self._means_of(ids))

    def _means_of(self, ids: Ids) -> tuple[ChannelMeans, ...]:
        """Of what rounded weights multiply."""
        found = (
            *self._means.of((ids.half | ids.bfloat) - ids.int8),
            *self._int8_means.of(ids.int8),
        )
        return tuple(sorted(set(found), key=lambda of_one: of_one.tensor))

    def _error_of(self, changes: Sequence[Change], numbers: Sequence[int]) -> float:
        measured = self._trial(changes, numbers)
        return math.inf if measured is None else measured.error

    def _trial(self, changes: Sequence[Change], numbers: Sequence[int]) -> Measured | None:
        """Changes together; None where they do not run, as an infinite error."""
        return self._trials.once(self._text(changes), numbers)

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C and the end of the budget end the search, not the measurement of its result."""
        try:
            with self._trials.limited():
                yield
        except Over:
            self._complete = False
        except KeyboardInterrupt:
            self._complete, self._stopped = False, True


def _rounds_factors(explanation: Explanation) -> bool:
    return any(node.rounds_factors for node in explanation.nodes)


def _roots(explanation: Explanation) -> dict[int, int]:
    """Of each tensor the one whose memory it shares as a view, or itself."""
    root = {tensor.id: tensor.id for tensor in explanation.tensors}
    for node in explanation.nodes:
        if node.is_view and node.input_ids and node.output_ids:
            root[node.output_ids[0]] = root[node.input_ids[0]]
    return root


def _beside(nodes: AbstractSet[int], all_nodes: Iterable[Node]) -> set[int]:
    """The other nodes that write what these read, or read what they write."""
    own = [node for node in all_nodes if node.index in nodes]
    read = {t for node in own for t in node.input_ids}
    written = {t for node in own for t in node.output_ids}
    return {
        node.index
        for node in all_nodes
        if node.index not in nodes
        and (read.intersection(node.output_ids) or written.intersection(node.input_ids))
    }
