"""The rules that decide whether an endpoint may answer, by the names that `eyas providers` shows."""

from __future__ import annotations

from enum import StrEnum


class Rule(StrEnum):
    """What decided. `--json` gives these names, so they are never renamed.

    PRICE: no usable price is listed. IGNORE, ONLY, QUANTIZATIONS, MAX_PRICE: the key of [providers] of that name.
    ANY: precision = "any" lets every format through. KNOWLEDGE: a dated row of what that provider really serves.
    LABEL: the quantization that it declares, held against the native one. AUTHOR: the author's own endpoint, without a
    label that says otherwise. UNKNOWN: nobody says what it serves, or what is native. STATUS: degraded or down.
    TAG: a request cannot tell it from an endpoint that is excluded.
    """

    PRICE = "price"
    IGNORE = "ignore"
    ONLY = "only"
    QUANTIZATIONS = "quantizations"
    ANY = "any"
    KNOWLEDGE = "knowledge"
    LABEL = "label"
    AUTHOR = "author"
    UNKNOWN = "unknown"
    STATUS = "status"
    MAX_PRICE = "max_price"
    TAG = "tag"
