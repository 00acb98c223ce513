"""Tool declarations in all forms that data sets write, as the OpenAI API takes them, with types of JSON Schema."""

from __future__ import annotations

import re
from typing import Any, cast

from eyas.prompts.parts import BadShape, cell
from eyas.prompts.read import decode

_TYPES = {
    **dict.fromkeys(("object", "dict", "dictionary", "map", "hashmap", "mapping"), "object"),
    **dict.fromkeys(("number", "float", "double", "decimal"), "number"),
    **dict.fromkeys(("integer", "int", "long", "short"), "integer"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("string", "str", "char"), "string"),
    **dict.fromkeys(("array", "list", "tuple", "set", "arraylist", "sequence", "iterable"), "array"),
    **dict.fromkeys(("null", "none"), "null"),
}
"""JSON Schema's names for the types, and Python's and Java's for the same."""

_ANY = ("any", "typing.any", "union", "callable")
_ALL_TYPES = ["object", "array", "string", "number", "boolean", "null"]
"""What "any" becomes. JSON Schema could leave the type out, but Kimi K2.5's template cannot write a parameter without one, and
Moonshot's API refuses it (https://github.com/MoonshotAI/walle, `docs/walle.md`: every subschema must declare its type)."""

_GENERIC = re.compile(r"([A-Za-z.]+)\s*\[(.*)\]", re.DOTALL)
_NESTED = 8
_OPTIONAL = ", optional"
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_SCHEMAS = ("items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf", "not")
_INSTEAD_OF_TYPE = ("enum", "const", "anyOf", "oneOf", "allOf", "$ref")
_PARAMETERS = ("parameters", "input_schema", "inputSchema")


def tools_of(value: Any) -> tuple[dict[str, Any], ...]:
    """The declarations in a cell: a list or one, or the JSON text of these.

    Raises:
        BadShape: it is text but no JSON, or something in it is no function's declaration.
    """
    if isinstance(value, str):
        try:
            value = decode(value) if value.strip() else None
        except ValueError as error:
            raise BadShape(f"the tools are text but not valid JSON ({error}): write a list of declarations") from error
    if value is None:
        return ()
    return tuple(_tool(item) for item in (cast("list[Any]", value) if isinstance(value, list) else [value]))


def declares(item: Any) -> bool:
    """Whether a value looks like a declaration, in OpenAI's form or bare: by its names, without reading its schema."""
    if not isinstance(item, dict):
        return False
    tool = cast("dict[str, Any]", item)
    function: Any = tool.get("function")
    bare = cast("dict[str, Any]", function) if isinstance(function, dict) else tool
    return isinstance(bare.get("name"), str) and any(key in bare for key in (*_PARAMETERS, "description"))


def _tool(item: Any) -> dict[str, Any]:
    tool: dict[str, Any] = _filled(cast("dict[str, Any]", item)) if isinstance(item, dict) else {}
    function: Any = tool.get("function")
    if function is None and "name" in tool:
        function = {key: value for key, value in tool.items() if key != "type"}
        tool = {"type": tool.get("type", "function")}
    if not isinstance(function, dict) or tool.get("type", "function") != "function":
        raise BadShape("a tool is not a function's declaration: write {'type': 'function', 'function': {…}}")
    return {**tool, "type": "function", "function": _function(_filled(cast("dict[str, Any]", function)))}


def _function(declared: dict[str, Any]) -> dict[str, Any]:
    name = declared.get("name")
    if not isinstance(name, str) or not name:
        raise BadShape("a tool's function has no name: name it")
    key = next((each for each in _PARAMETERS if each in declared), None)
    if key is None:
        return declared
    parameters = cell(declared[key])
    if not isinstance(parameters, dict):
        raise BadShape(f"the parameters of the tool '{name}' are not a JSON schema: write an object")
    schema = cast("dict[str, Any]", parameters)
    kept = {each: value for each, value in declared.items() if each != key}
    return {**kept, "parameters": _schema(_listed(schema) if _is_list(schema) else schema)}


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields without nulls, with which Parquet fills what is missing."""
    return {key: value for key, value in fields.items() if value is not None}


def _is_list(parameters: dict[str, Any]) -> bool:
    """Whether these are xLAM's parameters by name rather than a schema."""
    return bool(parameters) and all(
        isinstance(each, dict) and any(isinstance(cast("Any", each).get(key), str) for key in ("type", "description"))
        for each in parameters.values()
    )


def _listed(parameters: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The schema of xLAM's parameters; those that are neither optional nor have a default are required."""
    required = [name for name, each in parameters.items() if "default" not in each and not _is_optional(each)]
    return {"type": "object", "properties": parameters, **({"required": required} if required else {})}


def _is_optional(parameter: dict[str, Any]) -> bool:
    kind: Any = parameter.get("type")
    return isinstance(kind, str) and (kind.endswith(_OPTIONAL) or kind.lower().startswith("optional["))


def _schema(schema: Any) -> Any:
    """Puts JSON Schema's type names for Python's and Java's, in schemas only: a default or an enum stays as it is."""
    if isinstance(schema, list):
        return [_schema(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    fixed: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if value is None and key != "const":
            continue  # Parquet fills in what is missing; a null default, which it cannot tell from that, says no more
        if key == "type":
            said = _typed(value)
            if said["type"] != _ALL_TYPES or not any(word in schema for word in _INSTEAD_OF_TYPE):
                fixed |= {word: each for word, each in said.items() if word not in fixed}
        elif key in _SCHEMA_MAPS and isinstance(value, dict):
            fixed[key] = {name: _schema(one) for name, one in _filled(cast("dict[str, Any]", value)).items()}
        else:
            fixed[key] = _schema(value) if key in _SCHEMAS else value
    return fixed


def _typed(kind: Any) -> dict[str, Any]:
    """A type, or a list of them, as a schema's keywords."""
    if isinstance(kind, list):
        return {"type": _united([_typed(one).get("type", one) for one in cast("list[Any]", kind)])}
    if not isinstance(kind, str):
        return {"type": kind}
    name = kind.removesuffix(_OPTIONAL).strip()
    if name.count("[") <= _NESTED and (generic := _GENERIC.fullmatch(name)):
        return _generic(generic[1].lower().removeprefix("typing."), generic[2])
    if name.lower() in _ANY:
        return {"type": _ALL_TYPES}
    return {"type": _TYPES.get(name.lower(), name)}


def _generic(outer: str, inner: str) -> dict[str, Any]:
    if outer == "optional":
        return _typed(inner)
    if outer == "union" and "[" not in inner:
        return _typed(inner.split(","))
    kind = _TYPES.get(outer)
    if kind is None:
        return {"type": _ALL_TYPES}
    if kind == "array" and "," not in inner and inner.strip().lower() not in _ANY:
        return {"type": kind, "items": _typed(inner)}
    return {"type": kind}


def _united(types: list[Any]) -> list[Any]:
    """The types of a list, each once; one of them may be all types."""
    if _ALL_TYPES in types:
        return _ALL_TYPES
    return list(dict.fromkeys(types)) if all(isinstance(kind, str) for kind in types) else types
