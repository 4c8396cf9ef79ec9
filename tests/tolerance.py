"""The tolerances of all numerical tests; no test loosens them.

A result is right when, for each element,

    |got - want| <= atol + rtol * max(|want|, rms(want))

``want`` is computed in float64. The root mean square of all of ``want`` approximates the size of
the terms of a sum: where terms cancel, an element can be far smaller than its terms.

fp32
    Adding K terms of random sign, each of size s, passes through partial sums of size s*sqrt(k).
    Rounding every one of them by eps/2 leaves an error near eps*s*K/3, while the result itself is
    of size s*sqrt(K): relative to it, eps*sqrt(K)/3. The largest of many elements is several
    times that, hence ``8 * eps * sqrt(K)``. Functions add a constant: OpenCL C allows exp and log
    3 ulp, tanh 5, pow 16, and some formulas chain two of them, hence ``24 * eps``.
fp16
    Tensors are stored in half, with relative errors up to 2**-11. Each input and each weight has
    such a random error, and so has the stored result; sums are kept in float, so their length adds
    the same error as in fp32. Functions multiply an input's error by their slope: exp by |x|. A
    factor of 8 covers both.
bf16
    As fp16, with relative errors up to 2**-8.
tf32
    Factors may be rounded to 10 bits of mantissa, like half; products and sums are as in fp32.

half_sums
    Such candidates round each of up to 16 partial sums to half before adding them in float: the
    last ones have the size of sqrt(16) terms, hence four times the error of fp16.

Below the normal numbers of a format the relative error has no bound: ``atol`` is its smallest
normal number for float (devices may flush what is smaller to zero) and its smallest subnormal one
for half, which OpenCL never flushes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

FLOAT_EPS = 2.0**-23
HALF_EPS = 2.0**-11
BFLOAT_EPS = 2.0**-8

# Whole networks: the L2 norm of the error, relative to that of the stock runtime's output. Where
# floats are rounded to int8 in the middle of a network ("hybrid"), an error of one unit in the last
# place flips some of these roundings, each by a 127th of the largest number of its row.
MODEL_L2 = {"fp32": 1e-5, "fp16": 5e-3, "bf16": 4e-2, "hybrid": 1e-3}


class Tolerance(NamedTuple):
    """The two numbers of the comparison above."""

    atol: float
    rtol: float


def tolerance(precision: str, accumulation: int = 1) -> Tolerance:
    """Tolerance of one operation.

    Parameters
    ----------
    precision
        ``"fp32"``, ``"fp16"``, ``"bf16"``, ``"tf32"`` or ``"half_sums"``.
    accumulation
        Number of terms of the sums that make up one element; 1 where nothing is summed.
    """
    single = FLOAT_EPS * (24 + 8 * math.sqrt(accumulation))
    if precision == "fp32":
        return Tolerance(2.0**-126, single)
    if precision == "bf16":
        return Tolerance(2.0**-126, 8 * BFLOAT_EPS + single)
    if precision == "tf32":
        return Tolerance(2.0**-126, 8 * HALF_EPS + single)
    if precision == "half_sums":
        return Tolerance(2.0**-24, 32 * HALF_EPS + single)
    return Tolerance(2.0**-24, 8 * HALF_EPS + single)


def relative_l2(got: np.ndarray, want: np.ndarray) -> float:
    """L2 norm of the error, relative to the norm of ``want``."""
    wanted = np.asarray(want, np.float64)
    error = float(np.linalg.norm(np.asarray(got, np.float64) - wanted))
    return error / max(float(np.linalg.norm(wanted)), np.finfo(np.float32).tiny)


def assert_close(
    got: np.ndarray, want: np.ndarray, precision: str, accumulation: int = 1, what: str = "output"
) -> None:
    """Assert that an output is right: exactly for integers and booleans, else as stated above.

    Parameters
    ----------
    got
        The delegate's result.
    want
        The correct result, of the same shape; float64 for real numbers.
    precision, accumulation
        As in `tolerance`.
    what
        Names the output in the message.
    """
    want = np.asarray(want)
    assert got.shape == want.shape, f"{what} has shape {got.shape}, expected {want.shape}"
    if got.size == 0:
        return
    if got.dtype.kind != "f":
        wrong = np.argwhere(got != want)
        if len(wrong):
            at = tuple(int(i) for i in wrong[0])
            raise AssertionError(
                f"{what} differs in {len(wrong)} of {got.size} elements, "
                f"first at {at}: {got[at]}, expected {want[at]}"
            )
        return
    atol, rtol = tolerance(precision, accumulation)
    want = want.astype(np.float64)
    finite = np.isfinite(want)
    rms = math.sqrt(float(np.mean(want[finite] ** 2))) if finite.any() else 0.0
    with np.errstate(invalid="ignore"):
        error = np.abs(got.astype(np.float64) - want)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        excess = error - (atol + rtol * np.maximum(np.abs(want), rms))
    excess = np.where(same, -np.inf, np.where(finite & np.isfinite(got), excess, np.inf))
    if excess.max() > 0:
        at = tuple(int(i) for i in np.unravel_index(int(excess.argmax()), got.shape))
        raise AssertionError(
            f"{what} is off in {int((excess > 0).sum())} of {got.size} elements ({precision}, "
            f"sums of {accumulation}), most at {at}: {got[at]!s}, expected {want[at]:.9g}; "
            f"error {error[at]:.3g}, allowed {error[at] - excess[at]:.3g}"
        )
