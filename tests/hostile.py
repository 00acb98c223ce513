"""Texts that would run, load or hide something if a page took them for markup, and reports that are full of them."""

from __future__ import annotations

from typing import Any

import msgspec

from eyas.report.document import Report

PAYLOADS = {
    "script": "<script>window.pwned=1</script>",
    "end of a script": "</script><script>window.pwned=1</script>",
    "end of a style": "</style><script>window.pwned=1</script>",
    "end of a title": "</title></textarea></noscript></template><img src=x onerror=window.pwned=1>",
    "comment": "<!--<script>window.pwned=1//--></script>-->",
    "cdata": "]]><script>window.pwned=1</script>",
    "image": "<img src=x onerror=alert(1)><img src='http://127.0.0.1:9/pixel'>",
    "svg": "<svg onload=window.pwned=1><animate onbegin=window.pwned=1 attributeName=x dur=1s>",
    "link": "<a href='javascript:window.pwned=1' id=main>x</a><base href='http://127.0.0.1:9/'>",
    "frame": "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe><object data=x>",
    "form": "<form action=http://127.0.0.1:9><input name=q autofocus onfocus=window.pwned=1></form>",
    "meta": "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'><link rel=stylesheet href=//127.0.0.1:9/x.css>",
    "style": "<style>@import url(http://127.0.0.1:9/x.css);*{display:none}</style>",
    "quotes": "\"' onmouseover=window.pwned=1 x=\"'",
    "entities": "&lt;script&gt;&#60;img src=x onerror=window.pwned=1&#62;&quot;",
    "template": "{{title}} ${window.pwned=1} `${alert(1)}` {{constructor.constructor('window.pwned=1')()}}",
    "prototype": "__proto__",
    "constructor": "constructor",
    "url": "javascript:window.pwned=1",
    "bidi": "\u202etxt.exe\u2066 \u2069\u200f\u061c",
    "ansi": "\x1b[2J\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b31m",
    "controls": "\x00\x01\x08\x0b\x0c\r\x1f\x7f\x85\xad\ufeff\u200b",
    "lines": "a\u2028b\u2029c\r\nd\te",
    "surrogates": "\ud800 \udfff x\udc00\ud800",
    "tags": "\U000e0001\U000e0041\U000e007f\ufffe\uffff",
    "long word": "W" * 3000,
    "combining": "Z" + "\u0350\u0361" * 200,
    "csv": "=cmd|' /C calc'!A0",
}
_KEPT = {"step"}
"""Keys of the yield table whose values are the table's own names."""


def poisoned(report: Report, payload: str) -> Report:
    """The report with the payload before each text of it: names, keys that are names, messages, tokens, details, notes."""
    fields = {name: _poisoned(value, payload) for name, value in _fields(report).items()}
    fields["yields"] = {
        "total": _values(report.yields["total"], payload),
        "datasets": {payload + name: _values(each, payload) for name, each in report.yields["datasets"].items()},
    }
    fields["status"] = _values(report.status, payload)
    return msgspec.structs.replace(report, **fields)


def _fields(value: msgspec.Struct) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in msgspec.structs.fields(value)}


def _poisoned(value: Any, payload: str) -> Any:
    if isinstance(value, str):
        return payload + value
    if isinstance(value, msgspec.Struct):
        parts = {
            name: _values(each, payload) if name in ("messages", "slowest") else _poisoned(each, payload)
            for name, each in _fields(value).items()
        }
        return msgspec.structs.replace(value, **parts)
    if isinstance(value, dict):
        return {payload + key: _poisoned(each, payload) for key, each in value.items()}
    return type(value)(_poisoned(each, payload) for each in value) if isinstance(value, list | tuple) else value


def _values(value: Any, payload: str) -> Any:
    """Only the values: the keys are the format's."""
    if isinstance(value, str):
        return payload + value
    if isinstance(value, dict):
        return {key: each if key in _KEPT else _values(each, payload) for key, each in value.items()}
    return [_values(each, payload) for each in value] if isinstance(value, list) else value
