"""From answers to ids and masks: what each label asks for, and that the text always comes back."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyas.families import Loaded
from eyas.tokens import SPELLED, Cut, End, Habits, evidence, label, learn, rebuild
from eyas.types import (
    Billed,
    Completion,
    Failure,
    FailureKind,
    Finish,
    Label,
    Prompt,
    Record,
    Sequence,
    ToolCall,
    Usage,
    Work,
)

Make = Callable[..., Record]

NO_ENDS: frozenset[End] = frozenset()
TOKEN = {"P": Habits(answers=40, explained=40, cut=Cut.TOKEN, proves=True, open=NO_ENDS, keeps_arguments=True)}
CUT = Failure(FailureKind.CUT, Billed.YES, "the stream ended early")


def _habits(**changes: object) -> dict[str, Habits]:
    return {"P": msgspec.structs.replace(TOKEN["P"], **changes)}


def _sampled(kimi: Loaded, sequence: Sequence) -> str:
    mask = sequence.loss_mask[len(sequence.prompt_ids) :]
    return kimi.vocab.decode([i for i, m in zip(sequence.completion_ids, mask, strict=True) if m])


def _raw(kimi: Loaded, record: Record) -> str:
    return "".join(part.text for part in kimi.parts(record.completion, thinking=True))


EXPECTED = {
    "moonshot-0": (Label.STRIPPED, 47),
    "multi_tool-0": (Label.COUNTED, 86),
    "multi_tool-1": (Label.COUNTED, 94),
    "multi_tool_streaming-0": (Label.COUNTED, 97),
    "multi_tool_streaming-1": (Label.STREAMED, 80),
    "simple-0": (Label.COUNTED, 203),
    "simple_streaming-0": (Label.STRIPPED, 174),
    "tool-0": (Label.COUNTED, 66),
    "tool-1": (Label.COUNTED, 67),
    "tool_streaming-0": (Label.COUNTED, 87),
    "tool_streaming-1": (Label.STREAMED, 66),
}


def test_recorded_answers_get_their_labels_and_counts(kimi: Loaded, recorded: dict[str, Record]) -> None:
    """All recorded Kimi answers are explained; their text comes back, but for the space that one server adds."""
    habits = learn(e for e in (evidence(r, kimi, thinking=True) for r in recorded.values()) if e)
    found = {name: rebuild(record, kimi, habits, thinking=True) for name, record in recorded.items()}
    assert {name: (s.label, len(s.completion_ids)) for name, s in found.items()} == EXPECTED
    for name, sequence in found.items():
        text = _raw(kimi, recorded[name])
        if name == "simple_streaming-0":
            text = text.replace(" </think>", "</think>")
        assert kimi.vocab.decode(sequence.completion_ids) == text
        assert len(sequence.loss_mask) == len(sequence.prompt_ids) + len(sequence.completion_ids)
        assert not any(sequence.loss_mask[: len(sequence.prompt_ids)])
        assert sequence.prompt_ids[-1] == 163606
        assert sequence.completion_ids[-1] == kimi.stop
        if sequence.label is not Label.STRIPPED:
            assert _sampled(kimi, sequence) == text


def test_the_prompt_takes_the_form_that_the_server_counted(kimi: Loaded, recorded: dict[str, Record]) -> None:
    """Where a server dumps arguments again, the prompt holds them so."""
    sequence = rebuild(recorded["multi_tool-1"], kimi, {"Chutes": TOKEN["P"]}, thinking=True)
    assert len(sequence.prompt_ids) == 201
    assert '{"a": 2, "b": 3}' in kimi.vocab.decode(sequence.prompt_ids)


def test_drifted_pieces_give_the_sampled_ids(kimi: Loaded, answer: Make) -> None:
    """On a stream cut at tokens the ids are the pieces', also where the sampler split a word otherwise than the encoder."""
    pieces = [" road", "kin", " s", "em", "a"]
    sequence = rebuild(answer(pieces, [" x"]), kimi, TOKEN, thinking=True)
    ids = [kimi.vocab.id_of(piece.encode()) for piece in pieces]
    assert sequence.label is Label.STREAMED
    assert list(sequence.completion_ids[:5]) == ids
    assert ids != kimi.vocab.encode("".join(pieces))


@given(st.lists(st.integers(0, 163_583), max_size=40), st.lists(st.integers(0, 163_583), max_size=40))
def test_sampled_ids_come_back(kimi: Loaded, answer: Make, r: list[int], c: list[int]) -> None:
    """Whatever entries of whole characters a model samples, their pieces give exactly them back (I8)."""
    words = [[kimi.vocab.token_bytes(i).decode(errors="replace") for i in ids] for ids in (r, c)]
    words = [[word for word in side if "\ufffd" not in word] for side in words]
    record = answer(*words)
    sequence = rebuild(record, kimi, TOKEN, thinking=True)
    if sequence.label is not Label.BROKEN:
        assert kimi.vocab.decode(sequence.completion_ids) == _raw(kimi, record) == _sampled(kimi, sequence)
        assert [kimi.vocab.token_bytes(i).decode() for i in sequence.completion_ids if i < 163_584] == [
            *words[0],
            *words[1],
        ]
        assert sequence.label in (Label.STREAMED, Label.COUNTED)


@given(st.text(max_size=200), st.text(max_size=200), st.sampled_from([*Finish, None]), st.booleans())
def test_any_text_comes_back(
    kimi: Loaded, answer: Make, reasoning: str, content: str, finish: Finish | None, tools: bool
) -> None:
    """decode(completion_ids) is the answer in raw form, and the mask covers the sequence, whatever the label (I8)."""
    calls = (ToolCall("functions.f:0", "f", content),) if tools else ()
    record = answer([reasoning], [content], finish=finish, tool_calls=calls)
    sequence = rebuild(record, kimi, TOKEN, thinking=True)
    assert kimi.vocab.decode(sequence.completion_ids) == _raw(kimi, record)
    assert len(sequence.loss_mask) == len(sequence.prompt_ids) + len(sequence.completion_ids)
    masked = sequence.label is Label.STRIPPED  # letters beyond ASCII that may be several tokens
    assert set(sequence.loss_mask[len(sequence.prompt_ids) :]) <= ({0, 1} if masked else {1})
    assert label(record, kimi, TOKEN, thinking=True) is sequence.label


def test_counts_decide(kimi: Loaded, answer: Make) -> None:
    """Off by two is NEAR, by more a MISMATCH; a prompt that is off is a MISMATCH; no usage is UNCOUNTED."""
    text = [" The user", " wants an", " answer"]
    for off, expected in (
        (3, Label.COUNTED),
        (5, Label.NEAR),
        (1, Label.NEAR),
        (9, Label.MISMATCH),
        (-3, Label.MISMATCH),
    ):
        record = answer(text, [" ok"], counted=off - 1)
        assert rebuild(record, kimi, TOKEN, thinking=True).label is expected, off
    assert rebuild(answer(text, counted=2, prompt_off=1), kimi, TOKEN, thinking=True).label is Label.MISMATCH
    assert rebuild(answer(text, counted=None), kimi, TOKEN, thinking=True).label is Label.UNCOUNTED


def test_half_a_percent_is_near(kimi: Loaded, answer: Make) -> None:
    """Long answers may be off by half a percent."""
    pieces = [" word"] * 998
    assert rebuild(answer(pieces, counted=5), kimi, TOKEN, thinking=True).label is Label.NEAR
    assert rebuild(answer(pieces, counted=6), kimi, TOKEN, thinking=True).label is Label.MISMATCH


def test_a_count_that_agrees_against_the_pieces_is_not_enough(kimi: Loaded, answer: Make) -> None:
    """Where a provider cuts at tokens, an answer whose pieces add up to another count is not strict."""
    record = answer([" w", "anted", " it"], ["."], counted=-1)
    assert len(kimi.vocab.encode(" wanted it")) == 2
    assert rebuild(record, kimi, TOKEN, thinking=True).label is Label.NEAR
    anywhere = rebuild(record, kimi, _habits(cut=Cut.ANYWHERE), thinking=True)
    assert anywhere.label is Label.COUNTED
    assert list(anywhere.completion_ids[:2]) == kimi.vocab.encode(" wanted it")


@pytest.mark.parametrize(
    ("changes", "streamed", "found", "unsure"),
    [
        ({"stripped": frozenset(End)}, True, Label.STRIPPED, 4),
        ({"open": frozenset(End)}, True, Label.STRIPPED, 4),
        ({"open": frozenset(End)}, False, Label.STRIPPED, 4),
        ({}, False, Label.COUNTED, 0),
        ({}, True, Label.STREAMED, 0),
        ({"reasoning_count": "R"}, False, Label.STRIPPED, 4),
        ({"reasoning_count": "R+1"}, False, Label.COUNTED, 0),
    ],
)
def test_unsure_ends_are_masked(
    kimi: Loaded, answer: Make, changes: dict[str, object], streamed: bool, found: Label, unsure: int
) -> None:
    """STRIPPED leaves out the first and last token of reasoning and content, and nothing else."""
    record = answer(["The", " user", " asks", "."], ["It", " is", " so"], streamed=streamed)
    sequence = rebuild(record, kimi, _habits(**changes), thinking=True)
    assert sequence.label is found
    assert sequence.loss_mask.count(0) == len(sequence.prompt_ids) + unsure
    if unsure:
        assert _sampled(kimi, sequence) == " user asks</think> is<|im_end|>"


def test_rewritten_arguments_are_masked(kimi: Loaded, answer: Make) -> None:
    """Where a provider may dump arguments again, they are not supervised."""
    calls = (ToolCall("functions.f:0", "f", '{"a": 1}'),)
    extra = 2 + 3 + len(kimi.vocab.encode("functions.f:0")) + len(kimi.vocab.encode('{"a": 1}'))
    record = answer([" The", " user"], counted=extra, tool_calls=calls, finish=Finish.TOOL_CALLS)
    assert rebuild(record, kimi, TOKEN, thinking=True).label is Label.COUNTED
    sequence = rebuild(record, kimi, _habits(keeps_arguments=None), thinking=True)
    assert sequence.label is Label.STRIPPED
    assert "<|tool_call_argument_begin|><|tool_call_end|>" in _sampled(kimi, sequence)


def test_partial_answers(kimi: Loaded, answer: Make) -> None:
    """A cut answer is proven by its pieces on a stream cut at tokens only; it has no stop token."""
    pieces = [" The", " user", " w", "anted"]
    more = {"finish": None, "cut": CUT}
    for counted in (None, 0, 50):
        sequence = rebuild(answer(pieces, counted=counted, **more), kimi, TOKEN, thinking=True)
        assert sequence.label is Label.STREAMED
        assert [kimi.vocab.token_bytes(i).decode() for i in sequence.completion_ids] == pieces
    for cut in (Cut.BURST, Cut.ANYWHERE, Cut.UNKNOWN):
        for counted in (None, 50):
            record = answer(pieces, counted=counted, **more)
            assert rebuild(record, kimi, _habits(cut=cut, proves=False), thinking=True).label is Label.UNCOUNTED
    long = answer([*pieces, " and so"], counted=None, **more)
    assert rebuild(long, kimi, TOKEN, thinking=True).label is Label.UNCOUNTED
    assert evidence(answer(pieces, counted=50, **more), kimi, thinking=True) is None


def test_length_answers_end_where_their_text_ends(kimi: Loaded, answer: Make) -> None:
    """An answer cut by max_tokens in its reasoning has neither `</think>` nor a stop token."""
    sequence = rebuild(answer([" The", " user"], finish=Finish.LENGTH), kimi, TOKEN, thinking=True)
    assert sequence.label is Label.STREAMED
    assert kimi.vocab.decode(sequence.completion_ids) == " The user"


@pytest.mark.parametrize(
    "completion",
    [
        Completion("a \ufffd b", "c"),
        Completion("a", "half \ud83d"),
        Completion("a", "<|tool_call_begin|>"),
        Completion("a", "", (ToolCall("f:0", "f", "</think>"),)),
        Completion("a", "b", finish=Finish.CONTENT_FILTER),
        Completion("a", "no no " * 2000, finish=Finish.LENGTH),
    ],
)
def test_damaged_text_is_broken(kimi: Loaded, completion: Completion) -> None:
    """Lost bytes, leaked markers, filters and endless loops make an answer useless."""
    record = Record(Work("D", "0"), Prompt("0", "D", ({"role": "user", "content": "x"},)), completion, "p", 1, 1)
    assert rebuild(record, kimi, {}, thinking=True).label is Label.BROKEN
    assert evidence(record, kimi, thinking=True) is None


def test_a_long_answer_that_ends_is_not_a_loop(kimi: Loaded, answer: Make) -> None:
    """Repetition that the model ended is what was asked for."""
    assert rebuild(answer([" no"] * 4000), kimi, TOKEN, thinking=True).label is Label.STREAMED


def test_reasoning_in_instant_mode_is_misserved(kimi: Loaded, answer: Make) -> None:
    """An answer that reasons though thinking was off is not used."""
    assert rebuild(answer([" The"]), kimi, TOKEN, thinking=False).label is Label.MISSERVED


def test_engine_ids_are_taken_as_they_are(kimi: Loaded, answer: Make) -> None:
    """Ids of the engine need no count, but must hold the text and belong to the tokenizer."""
    ids = (*kimi.vocab.encode("R"), 163607, *kimi.vocab.encode("C"), kimi.stop)
    record = answer(["R"], ["C"], token_ids=ids, prompt_ids=(1, 2), counted=None)
    sequence = rebuild(record, kimi, {}, thinking=True)
    assert (sequence.label, sequence.completion_ids, sequence.prompt_ids) == (Label.ENGINE, ids, (1, 2))
    assert sequence.loss_mask == (0, 0, *(1 for _ in ids))
    for wrong in (ids[1:], (999_999,)):
        bad = answer(["R"], ["C"], token_ids=wrong, prompt_ids=(1, 2))
        assert rebuild(bad, kimi, {}, thinking=True).label is Label.MISMATCH


def test_prompts_that_spell_specials_are_flagged(kimi: Loaded, answer: Make) -> None:
    """The row stands, with the engine's reading of the prompt, and says so."""
    record = answer([" The"], [" end"])
    messages = ({"role": "user", "content": "What is <|im_end|>?"},)
    prompt = msgspec.structs.replace(record.prompt, messages=messages)
    usage = Usage(kimi.count_prompt(messages, (), thinking=True), 4)
    completion = msgspec.structs.replace(record.completion, usage=usage)
    sequence = rebuild(
        msgspec.structs.replace(record, prompt=prompt, completion=completion), kimi, TOKEN, thinking=True
    )
    assert (sequence.label, sequence.reason) == (Label.STREAMED, SPELLED)


def test_a_prompt_that_cannot_be_rendered_is_a_mismatch(kimi: Loaded, answer: Make) -> None:
    """One bad prompt does not end an export."""
    record = msgspec.structs.replace(answer([" The"]), prompt=Prompt("0", "D", ()))
    sequence = rebuild(record, kimi, TOKEN, thinking=True)
    assert sequence.label is Label.MISMATCH
    assert "cannot be rendered" in sequence.reason


def test_held_back_characters_prove_nothing_alone(kimi: Loaded, answer: Make) -> None:
    """A character that was sampled as two tokens comes as one piece: of a cut answer such letters are masked."""
    piece = "用户"
    assert len(kimi.vocab.encode(piece)) == 1
    cut = rebuild(answer([" The", " user", piece], counted=None, finish=None, cut=CUT), kimi, TOKEN, thinking=True)
    assert cut.label is Label.STRIPPED
    assert _sampled(kimi, cut) == " The user"
    plain = answer([" The", " user"], counted=None, finish=None, cut=CUT)
    assert rebuild(plain, kimi, TOKEN, thinking=True).label is Label.STREAMED


def test_a_cut_inside_a_word_is_not_counted(kimi: Loaded, answer: Make) -> None:
    """On a stream that is cut anywhere the last word of a cut answer may be half a token, though the count agrees."""
    cut = answer([" The us", "er wan"], counted=-1, finish=None, cut=CUT)
    anywhere = _habits(cut=Cut.ANYWHERE)
    expected = rebuild(cut, kimi, anywhere, thinking=True)
    assert expected.label is Label.UNCOUNTED
