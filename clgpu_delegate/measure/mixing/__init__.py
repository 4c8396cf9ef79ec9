"""The search for a plan of precisions: the fastest that holds a bound of the error."""

from clgpu_delegate.measure.mixing.searching import search
from clgpu_delegate.measure.mixing.trials import Metric, Subject, relative_l2, top_1

__all__ = ["Metric", "Subject", "relative_l2", "search", "top_1"]
