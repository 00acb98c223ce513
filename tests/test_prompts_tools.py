"""Tools: declarations as data sets write them become those of the OpenAI API."""

import json

import pytest

from eyas.families import Loaded
from eyas.prompts.shape import prompt_id
from eyas.prompts.tools import tools_of
from tests.shapekit import FUNCTION, TOOL, USER, make, refusal

ANY = ["object", "array", "string", "number", "boolean", "null"]


@pytest.mark.parametrize(
    "columns",
    [
        {"tools": [TOOL]},
        {"tools": json.dumps([TOOL])},
        {"tools": json.dumps(TOOL)},
        {"tools": [{"function": FUNCTION}]},
        {"tools": [FUNCTION]},
        {"tools": [{"type": "function", **FUNCTION}]},
        {"functions": [FUNCTION]},
        {"function": FUNCTION},
        {"function": [FUNCTION]},
        {"tools": None, "functions": json.dumps([FUNCTION])},
    ],
)
def test_tools_of_all_forms_are_one(columns):
    """OpenAI's form, bare functions, the aliases and JSON text give the same declaration and the same id."""
    made = make({"prompt": "Why?", **columns})
    assert made.tools == (TOOL,)
    assert made.id == prompt_id([USER], [TOOL])


def test_tools_keep_their_order_and_extra_keys():
    """Tools stand as given, since the order is part of what is asked; `strict` and the like stay."""
    tools = [{"name": "b", "strict": True}, {"name": "a"}]
    made = make({"prompt": "Why?", "tools": tools})
    assert [tool["function"] for tool in made.tools] == tools
    assert made.id != make({"prompt": "Why?", "tools": tools[::-1]}).id


def test_types_become_those_of_json_schema():
    """BFCL's type names are put right wherever a schema stands, and nowhere else."""
    given_ = {
        "type": "dict",
        "required": ["type"],
        "properties": {
            "type": {"type": "float", "default": {"type": "dict"}, "enum": ["dict", "tuple"]},
            "rows": {"type": "tuple", "items": {"type": "dict", "properties": {"x": {"type": ["float", "null"]}}}},
            "any": {"type": "any", "description": "d"},
            "one": {"anyOf": [{"type": "bool"}, {"type": "string"}], "additionalProperties": False},
        },
    }
    kept = json.dumps(given_)
    made = make({"prompt": "Why?", "function": [{"name": "f", "parameters": given_}]})
    assert made.tools[0]["function"]["parameters"] == {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"type": "number", "default": {"type": "dict"}, "enum": ["dict", "tuple"]},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": ["number", "null"]}}}},
            "any": {"type": ANY, "description": "d"},
            "one": {"anyOf": [{"type": "boolean"}, {"type": "string"}], "additionalProperties": False},
        },
    }
    assert json.dumps(given_) == kept


REFUSED = {
    "tools of bad text": ({"prompt": "a", "tools": "[{"}, "not valid JSON"),
    "tools of NaN": ({"prompt": "a", "tools": "[NaN]"}, "not valid JSON"),
    "tools of a number": ({"prompt": "a", "tools": 5}, "not a function's declaration"),
    "tool of another kind": ({"prompt": "a", "tools": [{"type": "web_search", "name": "x"}]}, "not a function's"),
    "tool without a function": ({"prompt": "a", "tools": [{"type": "function"}]}, "not a function's"),
    "tool without a name": ({"prompt": "a", "tools": [{"function": {"description": "d"}}]}, "no name"),
    "tool with bad parameters": ({"prompt": "a", "tools": [{"name": "f", "parameters": ["x"]}]}, "of the tool 'f'"),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_declaration_is_refused(data, reason):
    """Nothing unclear is guessed: the reason says what is wrong and, after a colon, what to do."""
    said = refusal(data)
    assert reason in said
    assert ": " in said


def test_parameters_by_name_become_a_schema():
    """Parameters by name as in xLAM, with Python's types, become an object's properties; those without a default are required."""
    parameters = {
        "ids": {"description": "which", "type": "List[int]"},
        "where": {"description": "town", "type": "str, optional"},
        "type": {"description": "kind", "type": "str", "default": "all"},
        "way": {"type": "Tuple[float, float]"},
        "one": {"type": "Union[int, str]"},
        "more": {"type": "Optional[Dict[str, Any]]"},
    }
    (tool,) = tools_of(json.dumps([{"name": "f", "description": "d", "parameters": parameters}]))
    assert tool["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "ids": {"description": "which", "type": "array", "items": {"type": "integer"}},
            "where": {"description": "town", "type": "string"},
            "type": {"description": "kind", "type": "string", "default": "all"},
            "way": {"type": "array"},
            "one": {"type": ["integer", "string"]},
            "more": {"type": "object"},
        },
        "required": ["ids", "way", "one"],
    }


def test_other_names_of_parameters():
    """MCP's and Anthropic's name for the schema is OpenAI's `parameters`; a schema may be JSON text."""
    schema = {"type": "object", "properties": {"a": {"type": "String"}}}
    fixed = {"type": "object", "properties": {"a": {"type": "string"}}}
    for key, value in (("input_schema", schema), ("inputSchema", schema), ("parameters", json.dumps(schema))):
        assert tools_of([{"name": "f", key: value}])[0]["function"] == {"name": "f", "parameters": fixed}


def test_the_order_of_a_schemas_keys_stays():
    """A template renders a schema as it stands, so keys are not moved."""
    schema = {"properties": {"a": {"description": "d", "type": "int", "minimum": 0}}, "type": "dict"}
    made = tools_of([{"name": "f", "parameters": schema}])[0]["function"]["parameters"]
    assert json.dumps(made) == json.dumps(schema).replace('"int"', '"integer"').replace('"dict"', '"object"')


@pytest.mark.parametrize(
    ("kind", "said"),
    {
        "any": {"type": ANY},
        "Optional[Any]": {"type": ANY},
        "Callable[[int], str]": {"type": ANY},
        "Union[int, List[str]]": {"type": ANY},
        "Union[int, float, double]": {"type": ["integer", "number"]},
        "List[Any]": {"type": "array"},
        "List[List[int]]": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    }.items(),
)
def test_a_type_of_python_is_always_a_type(kind: str, said: dict[str, object]):
    """Whatever a type is called, the schema has one: without it a template may fail, and Moonshot's API refuses the request."""
    (tool,) = tools_of({"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": kind}}}})
    assert tool["function"]["parameters"]["properties"]["a"] == said


@pytest.mark.parametrize("kind", [["any", "null"], ["str", "any"]])
def test_any_in_a_list_of_types_is_any(kind: list[str]):
    """A list of types with "any" in it allows all of them."""
    (tool,) = tools_of({"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": kind}}}})
    assert tool["function"]["parameters"]["properties"]["a"] == {"type": ANY}


@pytest.mark.parametrize("more", [{"enum": ["x"]}, {"anyOf": [{"type": "string"}]}])
def test_any_says_nothing_beside_what_says_more(more: dict[str, object]):
    """Values or schemas that stand beside "any" say what is allowed by themselves."""
    (tool,) = tools_of({"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "any", **more}}}})
    assert tool["function"]["parameters"]["properties"]["a"] == more


def test_declared_types_can_be_rendered(kimi: Loaded):
    """Every type that sets write is one that Kimi K2.5's template can declare, alone and within a list."""
    names = ["dict", "float", "tuple", "long", "char", "none", "any", "Union[int, str]", "List[Any]", "Optional[Any]"]
    properties = {f"p{at}": {"type": name, "description": "d"} for at, name in enumerate(names)}
    listed = {f"l{at}": {"type": "array", "items": {"type": name}} for at, name in enumerate(names)}
    parameters = {"type": "dict", "properties": {**properties, **listed}}
    made = make({"prompt": "Why?", "function": [{"name": "f", "parameters": parameters}]})
    assert kimi.count_prompt(made.messages, made.tools, True) > 0
