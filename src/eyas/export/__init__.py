"""Answers of one or several runs → training sequences → one trainer format in shards; the manifest is written last.

    merge   which answer of which run stands for each work, and what was paid for none
    spent   the money and the works that brought no answer
    work    one chunk of works: read, rebuild, judge, pack; runs in any process
    pool    chunks over processes, their results in order
    write   all of it together

Work is cut into chunks of a fixed number of works in their order, so the bytes depend on neither the number of processes
nor the order of arrival.
"""

from __future__ import annotations

from eyas.export.options import LABELS, Manifest, Options
from eyas.export.work import exclusion, learn_habits
from eyas.export.write import export

__all__ = ["LABELS", "Manifest", "Options", "exclusion", "export", "learn_habits"]
