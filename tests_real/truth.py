"""Labels against the ids that the server's log names: which request an answer is, and whether its ids are right.

`bench/truth.py` does the like with the simulator, and says when a row is right.
"""

from __future__ import annotations

import codecs
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher

from bench.truth import right

from eyas.families import Loaded
from eyas.tokens import evidence, learn, rebuild
from eyas.types import Finish, Label, Record, Sequence
from tests_real.serving import Task


@dataclass(frozen=True, slots=True)
class Judged:
    """One answer, what eyas makes of it, and the ids that were sampled for it, None where the log does not tell them."""

    record: Record
    sequence: Sequence
    truth: tuple[int, ...] | None

    @property
    def wrong(self) -> bool:
        """Whether its ids are known and the sequence's are not these."""
        return self.truth is not None and not right(self.record.completion, self.sequence, list(self.truth))

    @property
    def differing(self) -> int:
        """Tokens sampled that the sequence does not have, by alignment."""
        return 0 if self.truth is None or not self.wrong else _missing(self.truth, self.sequence.completion_ids)


def judge(records: list[Record], tasks: list[Task], family: Loaded) -> list[Judged]:
    """Every answer with its sequence, under what all of them teach, and with its truth."""
    habits = learn(found for record in records if (found := evidence(record, family, False)))
    by_text = _by_text(tasks, family)
    judged: list[Judged] = []
    for record in records:
        found = {tuple(task.ids) for task in by_text[record.completion.content] if _counted(task, record)}
        truth = found.pop() if len(found) == 1 else None
        judged.append(Judged(record, rebuild(record, family, habits, False), truth))
    return judged


def rows(route: str, judged: list[Judged]) -> list[str]:
    """Lines of the table: one for each label, the surest first, and one of answers that the log does not tell."""
    known = [each for each in judged if each.truth is not None]
    labels = [label for label in Label if any(each.sequence.label is label for each in known)]
    lines = [_row(route, label, [each for each in known if each.sequence.label is label]) for label in labels]
    unknown = len(judged) - len(known)
    return [*lines, *([f"| {route} | not found in the log | {unknown} | - | - | - |"] if unknown else [])]


def _row(route: str, label: Label, judged: list[Judged]) -> str:
    tokens = sum(len(each.truth or ()) for each in judged)
    wrong, differing = sum(each.wrong for each in judged), sum(each.differing for each in judged)
    return _line(route, label, (len(judged), tokens, wrong, differing))


def encoded_again(judged: list[Judged], family: Loaded) -> str:
    """The line of what one gets without eyas: the text of each answer, encoded."""
    known = [each for each in judged if each.truth is not None]
    tokens = wrong = differing = 0
    for each in known:
        ids = family.vocab.encode(each.record.completion.content)
        ids += [family.stop] if each.record.completion.finish is Finish.STOP else []
        truth = list(each.truth or ())
        tokens += len(truth)
        wrong += ids != truth
        differing += _missing(truth, ids)
    return _line("the texts, encoded again", "none", (len(known), tokens, wrong, differing))


def texts(ids: list[int], family: Loaded) -> set[str]:
    """What sampled ids read as: a character that the end cuts off is left out, or stands as U+FFFD."""
    said = ids[:-1] if ids and ids[-1] == family.stop else ids
    data = b"".join(map(family.vocab.token_bytes, said))
    held = codecs.getincrementaldecoder("utf-8")("replace").decode(data)
    return {held, data.decode(errors="replace")}


def _missing(truth: Iterable[int], ids: Iterable[int]) -> int:
    """Tokens of the truth that the ids do not have, by alignment."""
    sampled = list(truth)
    matcher = SequenceMatcher(None, sampled, list(ids), autojunk=False)
    return len(sampled) - sum(block.size for block in matcher.get_matching_blocks())


def _by_text(tasks: Iterable[Task], family: Loaded) -> defaultdict[str, list[Task]]:
    """Finished requests by the texts that a server can have made of their ids."""
    found: defaultdict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        if task.ended:
            for text in texts(task.ids, family):
                found[text].append(task)
    return found


def _counted(task: Task, record: Record) -> bool:
    """Whether an answer has the counts of a request."""
    usage = record.completion.usage
    return usage is None or (usage.completion_tokens, usage.prompt_tokens) == (len(task.ids), task.prompt_tokens)


def _line(route: str, label: str, counts: tuple[int, int, int, int]) -> str:
    """A line of the table: answers, their tokens, answers that differ, tokens that do."""
    answers, tokens, wrong, differing = counts
    share = f" ({100 * wrong / answers:.0f} %)" if wrong else ""
    part = f" ({100 * differing / tokens:.2f} %)" if differing else ""
    return f"| {route} | {label} | {answers} | {tokens} | {wrong}{share} | {differing}{part} |"
