"""Answers made elsewhere: rows of files in, answers with what they reply to out (pure). A row is told by its own keys."""

from __future__ import annotations

from eyas.answers.answer import TAG, Answer, BadAnswer, Form
from eyas.answers.read import answers_of, form_of, question_of

__all__ = ["TAG", "Answer", "BadAnswer", "Form", "answers_of", "form_of", "question_of"]
