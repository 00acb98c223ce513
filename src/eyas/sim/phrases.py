"""The sentences that simulated answers are made of; every one ends in punctuation, so that any may follow any."""

# ruff: noqa: RUF001 - real answers hold these letters

from __future__ import annotations

THOUGHTS = (
    "The user wants a short answer with one example.",
    "Let me think about what the question really asks for.",
    "First I should check whether the premise holds at all.",
    "I'll start from the definition and see where it leads.",
    "Hmm, that can't be right, because the sum would exceed 1,024.",
    "Wait, I need to re-read the second constraint.",
    "So we have 3.14159 × 2 ≈ 6.28318, which is close enough.",
    "They didn't say which version they use, so I'd better cover both.",
    "If n is even, then n² is even too; otherwise the claim fails.",
    "Another option is a hash map keyed by (user_id, timestamp).",
    "I could mention the naïve approach, but it's O(n²) and they'd notice.",
    "用户想要一个简短而准确的回答。",
    "这里需要先确认前提条件，然后再给出步骤。",
    "Let me double-check: 17 * 23 = 391, yes.",
    "The edge cases are an empty list, a single element and duplicates.",
    "That's basically the pigeonhole principle (in disguise).",
    "Okay, the structure will be: summary, code, caveats.",
    "I shouldn't over-explain; two paragraphs are plenty.",
    "Perhaps a table would be clearer than prose here?",
    'In Portuguese one would say "Olá" or "Oi"; "E aí?" is informal.',
)
"""Sentences of reasoning."""

SAYINGS = (
    "Sure, here's a compact way to do it.",
    "The key idea is to keep the invariant true after every step.",
    "You can run this on Python 3.11 or newer without any dependency.",
    "It takes about 250 ms for 10,000 rows on a laptop.",
    "Note that the second argument is optional and defaults to None.",
    "That's all there is to it 🎉!",
    "Ships 🚢, rockets 🚀 and eagles 🦅 all obey the same equation.",
    "当然可以，下面是一个简单的例子。",
    "请注意：第二个参数是可选的，默认值为 None。",
    "日本語でも同じように書けます。",
    "Это работает и с кириллицей, проверено.",
    "Der Größenvergleich fällt zugunsten der zweiten Lösung aus.",
    "For more detail see https://example.org/docs?page=2&lang=en.",
    "The formula is $E = mc^2$, as **everybody** knows.",
    "Use `json.loads(text)` rather than `eval(text)`.",
    "In 1969 two people walked on the Moon; 600 million watched it.",
    "Prices range from $0.45 to $3.00 per million tokens.",
    'สวัสดีครับ means "hello" in Thai.',
    "However, don't forget to close the file afterwards.",
    "We've now covered the basics, so let's look at an example:",
)
"""Sentences of answers."""

BLOCKS = (
    "## Overview\n\nIn short: yes.\n\n",
    "- **First**: check the input.\n- **Second**: split it at commas.\n- **Third**: add the parts.\n\n",
    "1. Install the package.\n2. Set the key.\n3. Run it again.\n\n",
    (
        '```python\ndef mean(values: list[float]) -> float:\n    if not values:\n        raise ValueError("empty")\n'
        "    return sum(values) / len(values)\n```\n\n"
    ),
    "```bash\ncurl -s http://127.0.0.1:8000/v1/models | jq '.data[0].id'\n```\n\n",
    "| name | value |\n|---|---:|\n| alpha | 0.5 |\n| beta | 12,345 |\n\n",
    '> "Simplicity is prerequisite for reliability."\n\n',
    '```json\n{"city": "München", "ids": [1, 22, 333], "ok": true}\n```\n\n',
    "### 步骤\n\n- 打开文件。\n- 逐行读取。\n- 统计词频。\n\n",
)
"""Pieces that start a line: headings, lists, code, tables."""

WORDS = (
    "Florence, Italy", "Paris", "巴黎", "München", "next week", "how do eagles learn to fly?", "3 + 4 * 2", "README.md",
    "line one\nline two", "https://example.org/a?b=1", "São Paulo", "🦅 eyas",
)  # fmt: skip
"""Values of string arguments of tool calls."""
