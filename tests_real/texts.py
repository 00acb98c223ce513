"""Texts to tokenize and questions to ask, made from a seed: the same on every machine."""

from __future__ import annotations

import random

SAID: tuple[str, ...] = (
    "The quick brown fox jumps over the lazy dog, doesn't it? I'll say we've seen it; they'd agree.",
    "Die Straße führt über die Brücke nach Köln: 3,50 € für Äpfel und Öl.",
    "L'été dernier, où étiez-vous ? À l'hôtel, j'espère…",
    "¿Cuántos años tenía el señor Núñez en 1987? ¡Ninguno lo sabía!",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία· 2 × 2 = 4.",
    "床前明月光，疑是地上霜。举头望明月，低头思故乡。",
    "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "ภาษาไทยเป็นภาษาที่มีระดับเสียงของคำแน่นอน ๑๒๓๔๕ คน",
    "सभी मनुष्यों को गौरव और अधिकारों के मामले में १२३ जन्मजात स्वतन्त्रता है।",
    "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق ٢٠٢٦.",
    "כל בני אדם נולדו בני חורין ושווים בערכם.",
    "Tất cả mọi người sinh ra đều được tự do và bình đẳng.",
    "🙂🦅🧪👩‍👩‍👧‍👦🏳️‍🌈👍🏽 ok 🇩🇪🇯🇵",
    "def add(a: int, b: int) -> int:\n    return a + b  # 0x1F, 1e-9\n\n\tassert add(2, 3) == 5\n",
    'fn main() {\r\n    println!("{:?}", vec![1, 2, 3]);\r\n}\r\n',
    '{"id": 1234567890, "list": [1,2,3], "ok": true, "text": "\\u00e9\\n"}',
    "SELECT * FROM t WHERE a >= 10 AND b <> 'x''y' -- 2026-12-01T10:30:00Z",
    '<div class="a"><!-- &nbsp; --><p>Hello&amp;goodbye</p></div>',
    "\\int_0^1 x^{2}\\,dx = \\frac{1}{3}, \\quad \\alpha \\neq \\beta",
    "https://example.org/a/b?c=1&d=%20#e user@example.com +49-170-1234567",
    "1 12 123 1234 12345 1,234,567.89 ٣٤ ४५ ½ ² ① Ⅷ 三 10^100",
    "a  b   c    d\te\t\tf\n\ng\n\n\nh \n i\r\nj\u00a0k\u2003l\u3000m",
    "   leading and trailing   ",
    "don't DON'T Don'T we'Re I'M you'll it's 's 'x ''re",
    "e\u0301 \u00e9 A\u030a \u00c5 ﬁ \u200b\u200d\ufeff \u2028 …—–“”‘’",
    "!!! ??? ... --- === ### *** ((())) [[[]]] {{{}}} ~~~ ``` $$$",
    "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n",
    "a<|endoftext|>b <repo_name> c<|im_end|><|im_end|> d <|im_end |>",
    "\x00\x01\x02 \x7f \x1b[0m \x08",
    "x" * 300 + " " * 40 + "\n" * 20 + "0" * 50,
    "supercalifragilisticexpialidocious pneumonoultramicroscopicsilicovolcanoconiosis Rindfleischetikettierungsgesetz",
)
_TOPICS = (
    "the sea", "a red bicycle", "old maps", "the moon", "rice", "a lighthouse", "honey bees", "winter", "chess", "iron",
    "a small dog", "the violin", "volcanoes", "bread", "the number seven", "rivers", "a lost key", "glass", "tea",
    "the night train", "mountains", "a paper boat", "salt", "the city of Kyoto", "clouds",
)  # fmt: skip
_QUESTIONS = (
    "Write two sentences about {0} and {1}.",
    "Invent three strange new words for {0} and explain one of them.",
    "What do {0} and {1} have in common?",
    "Write a line about {0} with emoji, and one in French, Chinese or Russian.",
    "Give a short Python function about {0}.",
    "List five short facts about {0}.",
    "Write a tiny poem: {0}, then {1}.",
    "Explain {0} to a child, with a number such as {2}.",
)  # fmt: skip


def texts(count: int, seed: int = 0) -> list[str]:
    """So many different texts: those of SAID, then random cuts of them put together."""
    rng = random.Random(seed)
    found = dict.fromkeys(SAID)
    while len(found) < count:
        parts = (_cut(rng, rng.choice(SAID)) for _ in range(rng.randint(1, 5)))
        found[rng.choice(("", " ", "\n", "  ", "7")).join(parts)] = None
    return list(found)[:count]


def questions(count: int, seed: int = 0) -> list[str]:
    """So many different short questions, that a small model answers oddly and at various lengths."""
    rng = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        one, other = rng.sample(_TOPICS, 2)
        found[rng.choice(_QUESTIONS).format(one, other, rng.randint(2, 9999))] = None
    return list(found)


def _cut(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text))
    return text[start : start + rng.randint(1, 60)]
