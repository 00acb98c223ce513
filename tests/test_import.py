"""`eyas import`: every form of row becomes the same answer, once, with a label that is no surer than its row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eyas.engine.compare import still_owed
from eyas.families import Loaded
from eyas.tokens import rebuild
from eyas.tokens.imported import OTHER_PROMPT
from eyas.types import Finish, Label, Verdict
from tests.importkit import Kit, Make, asked, forms, make_run, question, sampled

make = make_run
FORMS = (
    "sglang ids", "sglang messages", "sglang prompt", "sglang rendered", "vllm flat", "vllm output", "vllm chat",
    "vllm completion", "vllm batch", "vllm batch asked", "speculators", "speculators talk", "nested",
)  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_row_of_every_form_becomes_the_same_engine_answer(
    make: Make, kimi: Loaded, tmp_path: Path, name: str
) -> None:
    """Ids, texts, prompt, finish, cost and label are those of the row, and the row of the export holds the very ids."""
    kit, ids = make(), sampled(kimi)
    file = kit.write("a.jsonl", [forms(kimi, asked(question(1)), ids)[name]])
    found = kit.bring(file)
    assert (found.taken, len(found.bad), found.already) == ({Label.ENGINE: 1}, 0, 0)
    (record,) = kit.records().values()
    answer = record.completion
    assert (answer.token_ids, answer.reasoning, answer.content) == (tuple(ids), " Hm.", " It is well.")
    assert (answer.finish, answer.cut, record.cost, record.tag) == (Finish.STOP, None, 0, "import:a.jsonl")
    assert record.prompt.messages == tuple(asked(question(1)))
    (row,) = kit.export(tmp_path / "rows", labels="strict")
    prompt = kimi.prompt_ids(asked(question(1)), (), thinking=True)
    assert row["input_ids"] == prompt + ids
    assert row["loss_mask"] == [0] * len(prompt) + [1] * len(ids)
    assert (row["metadata"]["tag"], row["metadata"]["provider"]) == ("import:a.jsonl", "imported")


def test_importing_twice_changes_nothing(make: Make, kimi: Loaded) -> None:
    """The second import writes no event; its answers count as already there, and the quarantine stays as it was."""
    kit = make()
    file = kit.write("a.jsonl", [*(forms(kimi, asked(question(n)), sampled(kimi))["vllm flat"] for n in (0, 1, 9))])
    first = kit.bring(file)
    events, apart = _events(kit), kit.quarantine()
    second = kit.bring(file)
    assert (first.taken.total(), first.already, len(first.bad)) == (2, 0, 1)
    assert (second.taken.total(), second.already, len(second.bad)) == (0, 2, 1)
    assert (_events(kit), kit.quarantine()) == (events, apart)


def test_what_is_imported_counts_for_the_quota_and_only_the_rest_is_owed(make: Make, kimi: Loaded) -> None:
    """A resumed run asks the prompts that no row answered; tokens count, money does not move."""
    kit, ids = make(5, keys="output_tokens = 50\n"), sampled(kimi)
    kit.bring(kit.write("a.jsonl", [forms(kimi, asked(question(n)), ids)["sglang ids"] for n in (0, 2, 4)]))
    run = kit.run()
    state = run.state
    owed = {prompt.messages[0]["content"] for _, prompt in still_owed(kit.config, state, kit.inputs)}
    run.close()
    assert owed == {question(1), question(3)}
    assert (state.datasets["A"].quota.kept, state.datasets["A"].quota.limit) == (3 * len(ids), 50)
    assert (state.money.settled, state.money.wasted, state.money.unknown, state.money.reserved) == (0, 0, 0, 0)


def test_a_dry_run_says_the_same_and_writes_nothing(make: Make, kimi: Loaded) -> None:
    """Its counts are those of the import after it."""
    kit = make()
    file = kit.write("a.jsonl", [forms(kimi, asked(question(n)), sampled(kimi))["vllm chat"] for n in (0, 9)])
    events = _events(kit)
    dry = kit.bring(file, dry=True)
    assert _events(kit) == events
    real = kit.bring(file)
    for name in ("rows", "taken", "tokens", "already", "kept", "owed"):
        assert getattr(dry, name) == getattr(real, name)


def _bad(kimi: Loaded) -> dict[str, tuple[dict[str, Any], str]]:
    ids, messages = sampled(kimi), asked(question(0))
    good = forms(kimi, messages, ids)
    prompt = kimi.prompt_ids(messages, (), thinking=True)
    return {
        "other prompt": (forms(kimi, asked("Who?"), ids)["vllm flat"], "no prompt of dataset A"),
        "no such id": ({**good["sglang ids"], "output_ids": [10**7]}, "the vocabulary has no id 10000000"),
        "other text": ({**good["sglang ids"], "text": "Bonjour"}, "another tokenizer"),
        "other content": ({"messages": messages, "choices": [{"message": {"content": "Si"}, "token_ids": ids}]}, "not in what"),
        "ids are text": ({"output_ids": "1 2", "messages": messages}, "no list of token ids"),
        "mask is short": ({"input_ids": [*prompt, *ids], "loss_mask": [1]}, "zeros and ones"),
        "mask is empty": ({"input_ids": prompt, "loss_mask": [0] * len(prompt)}, "nothing in it was sampled"),
        "too short": ({**good["vllm flat"], "token_ids": ids[:2], "text": "", "finish_reason": "abort"}, "keep_from = 4"),
        "failed": ({"custom_id": "1", "response": None, "error": {"message": "boom"}}, "boom"),
        "user last": ({"messages": messages}, "does not end in an assistant's turn"),
        "nothing": ({"question": "?"}, "no answer is seen"),
        "picture": ({"messages": [{"role": "user", "content": [{"type": "image"}]}], "output_ids": ids}, "only text"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "other prompt", "no such id", "other text", "other content", "ids are text", "mask is short", "mask is empty",
        "too short", "failed", "user last", "nothing", "picture",
    ],
)  # fmt: skip
def test_a_row_that_does_not_fit_is_in_quarantine_with_the_reason(make: Make, kimi: Loaded, name: str) -> None:
    """File, line, and a sentence that says what is wrong and what to do; the row beside it is taken."""
    row, reason = _bad(kimi)[name]
    kit = make()
    kit.bring(kit.write("a.jsonl", [row, forms(kimi, asked(question(1)), sampled(kimi))["nested"]]))
    (apart,) = kit.quarantine()
    assert (apart["file"], apart["line"]) == ("a.jsonl", 1)
    assert reason in apart["reason"]
    assert ":" in apart["reason"]
    assert len(kit.records()) == 1


def test_a_second_answer_is_the_next_sample(make: Make, kimi: Loaded) -> None:
    """Two outputs of one row fill two samples, a third has no place; the same file again fills nothing."""
    kit = make(1, keys="samples = 2\n")
    ids = [sampled(kimi, content=f" Answer {n}.") for n in range(3)]
    row = forms(kimi, asked(question(0)), ids[0])["vllm output"]
    row["outputs"] = [{**row["outputs"][0], "text": "", "token_ids": each} for each in ids]
    file = kit.write("a.jsonl", [row])
    assert (kit.bring(file).taken.total(), kit.bring(file).taken.total()) == (2, 0)
    assert {work.sample: record.completion.token_ids for work, record in kit.records().items()} == {
        0: tuple(ids[0]),
        1: tuple(ids[1]),
    }
    more = kit.write("b.jsonl", [forms(kimi, asked(question(0)), ids[1])["vllm flat"]])
    assert kit.bring(more).already == 1


def test_the_same_file_with_one_of_two_samples_does_not_fill_the_other(make: Make, kimi: Loaded) -> None:
    """One answer, imported twice where two samples are wanted, stays one."""
    kit = make(1, keys="samples = 2\n")
    file = kit.write("a.jsonl", [forms(kimi, asked(question(0)), sampled(kimi))["vllm flat"]])
    assert [kit.bring(file).taken.total() for _ in range(3)] == [1, 0, 0]
    assert len(kit.records()) == 1


def test_conversations_of_text_are_rebuilt_and_not_counted(make: Make, tmp_path: Path) -> None:
    """Reasoning in a field or in marks is told; without a finish they are partial; no label is strict."""
    kit = make(4)
    said = {"role": "assistant", "content": "It is well, thank you.", "reasoning_content": " Hm."}
    inline = {"from": "gpt", "value": "<think> Hm.</think>It is well, thank you."}
    rows: list[dict[str, Any]] = [
        {"conversations": [*asked(question(0)), said]},
        {"conversations": [{"from": "human", "value": question(1)}, inline]},
        {"messages": [*asked(question(2)), said], "finish_reason": "stop"},
        {"messages": [*asked(question(3)), said], "finish_reason": "length"},
    ]
    found = kit.bring(kit.write("a.jsonl", rows))
    assert found.taken == {Label.UNCOUNTED: 4}
    records = list(kit.records().values())
    assert {(r.completion.reasoning, r.completion.content) for r in records} == {(" Hm.", "It is well, thank you.")}
    assert sorted(str(r.completion.finish) for r in records) == ["None", "None", "length", "stop"]
    run = kit.run()
    verdicts = sorted(str(known.verdict) for known in run.state.works.values())
    run.close()
    assert verdicts == ["done", "done", "partial", "partial"]
    assert {row["metadata"]["label"] for row in kit.export(tmp_path / "rows")} == {"uncounted"}


def test_a_body_without_ids_is_judged_by_its_counts(make: Make, kimi: Loaded) -> None:
    """A chat that returned text and usage is labelled like any answer of an API."""
    kit, ids = make(), sampled(kimi)
    row = forms(kimi, asked(question(0)), ids)["vllm batch asked"]
    del row["response"]["body"]["choices"][0]["token_ids"]
    found = kit.bring(kit.write("a.jsonl", [row]))
    (label,) = found.taken
    assert label in (Label.COUNTED, Label.STRIPPED)


def test_prompt_ids_of_another_template_are_a_mismatch(make: Make, kimi: Loaded, tmp_path: Path) -> None:
    """The messages are a prompt of the run, and what the engine saw is not how the family renders it: not strict."""
    kit = make()
    row = forms(kimi, asked(question(0)), sampled(kimi))["vllm chat"]
    row["prompt_token_ids"] = row["prompt_token_ids"][1:]
    assert kit.bring(kit.write("a.jsonl", [row])).taken == {Label.MISMATCH: 1}
    (record,) = kit.records().values()
    assert rebuild(record, kimi, {}, thinking=True).reason == OTHER_PROMPT
    assert not kit.export(tmp_path / "rows", labels="strict")


def test_ids_that_say_nothing_of_their_end_end_by_their_last_id(make: Make, kimi: Loaded) -> None:
    """A stop token is a whole answer; without one and without a finish it is partial; `length` is done."""
    kit = make(3)
    rows: list[dict[str, Any]] = []
    for number, (ids, finish) in enumerate(
        [(sampled(kimi), None), (sampled(kimi, stop=False), None), (sampled(kimi, stop=False), "length")]
    ):
        row = forms(kimi, asked(question(number)), ids)["vllm flat"]
        rows.append({**row, "finish_reason": finish})
    kit.bring(kit.write("a.jsonl", rows))
    run = kit.run()
    ends = {
        run.question(work).messages[0]["content"]: (known.verdict, run.state.attempt(known.answer or 0).settled)
        for work, known in run.state.works.items()
    }
    run.close()
    found = [
        (verdict, settled.finish if settled else None) for verdict, settled in (ends[question(n)] for n in range(3))
    ]
    assert found == [(Verdict.DONE, Finish.STOP), (Verdict.PARTIAL, None), (Verdict.DONE, Finish.LENGTH)]


def _events(kit: Kit) -> int:
    run = kit.run()
    found = len(list(run.store.events(0)))
    run.close()
    return found
