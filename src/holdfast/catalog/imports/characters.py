"""Which characters does nobody see, and which look like others?

The table of look-alikes is small on purpose: the Cyrillic, Greek and other letters that common fonts draw
like a Latin one, and the ASCII pairs people misread. What is compared is the *skeleton* (NFKC, case folded,
look-alikes replaced), as in Unicode TR 39, which has the full table.
"""

import re
import unicodedata
from collections.abc import Iterator

# Cyrillic, Greek, Armenian and extended Latin, by the Latin letter they are drawn like.
_LOOK_ALIKES = {
    "a": "\u0251\u0391\u03b1\u0410\u0430",
    "b": "\u0392\u0412",
    "c": "\u0421\u0441",
    "d": "\u0501",
    "e": "\u0395\u03b5\u0415\u0435",
    "g": "\u0261",
    "h": "\u0397\u041d\u04bb\u0570",
    "i": "\u0131\u0269\u0399\u03b9\u0406\u0456",
    "j": "\u0408\u0458",
    "k": "\u039a\u03ba\u041a",
    "l": "\u029f\u04cf",
    "m": "\u039c\u041c",
    "n": "\u039d\u03b7\u0578",
    "o": "\u039f\u03bf\u041e\u043e\u0585",
    "p": "\u03a1\u03c1\u0420\u0440",
    "q": "\u051b",
    "s": "\u0405\u0455",
    "t": "\u03a4\u03c4\u0422",
    "u": "\u03c5\u057d",
    "v": "\u03bd",
    "w": "\u03c9\u051d",
    "x": "\u03a7\u03c7\u0425\u0445",
    "y": "\u03a5\u03b3\u0423\u0443\u04af",
    "z": "\u0396",
}
CONFUSABLE = {other: letter for letter, others in _LOOK_ALIKES.items() for other in others}
"""A letter of another script, and the Latin letter it is drawn like."""

_MISREAD = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l"})
"""Within ASCII: `l`, `I` and `1`, `o` and `0`. After case folding, so `i` stands for `I`."""

_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and symbols by category, drawn as nothing."""
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SELECTORS = frozenset(map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_JOINERS = frozenset("\u200c\u200d")
_EMOJI_STYLE = frozenset("\ufe0e\ufe0f")
_LAYOUT = frozenset("\t\n\r")
_SCRIPTS = re.compile(r"^(LATIN|CYRILLIC|GREEK|ARMENIAN|HEBREW|ARABIC|CHEROKEE|COPTIC|GEORGIAN|DEVANAGARI)\b")


def hidden(text: str) -> Iterator[tuple[int, str]]:
    """Where something stands that nobody sees: formats, controls, bidi marks, tags, blanks, lone selectors.

    A joiner or selector where writing needs it (in an emoji, in a word of a joining script) is not hidden.
    """
    if text.isascii() and text.isprintable():
        return
    for index, character in enumerate(text):
        if _unseen(character) and not _belongs(text, index):
            yield index, character


def controls(text: str) -> bool:
    """Whether it holds control characters other than line ends and tabs; terminal escapes begin with one."""
    return any(unicodedata.category(c) == "Cc" and c not in _LAYOUT for c in text)


def bidi(text: str) -> bool:
    return any(c in _BIDI for c in text)


def visible(text: str) -> str:
    """The text with everything unseen or deceptive written out, as in `<U+200B>`."""
    if text.isascii() and text.isprintable():
        return text
    spots = {index for index, _ in hidden(text)} | set(_deceiving(text))
    shown = []
    for index, character in enumerate(text):
        odd_space = character != " " and unicodedata.category(character) in ("Zs", "Zl", "Zp")
        if index in spots and character in CONFUSABLE:
            shown.append(f"{character}<U+{ord(character):04X}>")
        elif index in spots or odd_space:
            shown.append(f"<U+{ord(character):04X}>")
        else:
            shown.append(character)
    return "".join(shown)


def skeleton(text: str) -> str:
    """What the text looks like; two names with one skeleton cannot be told apart."""
    seen = "".join(c for c in text if not _unseen(c))
    return latin(unicodedata.normalize("NFKC", seen)).casefold().translate(_MISREAD)


def latin(text: str) -> str:
    """The text with look-alikes of other scripts replaced by the Latin letters they look like."""
    return text if text.isascii() else "".join(CONFUSABLE.get(c, c) for c in text)


def scripts(text: str) -> set[str]:
    """The alphabets its letters are of; `OTHER` for those that deceive nobody (Han, Kana, Hangul, ...)."""
    found = set()
    for character in text:
        if character.isalpha():
            match = _SCRIPTS.match(unicodedata.name(character, ""))
            found.add("LATIN" if character.isascii() else match[1] if match else "OTHER")
    return found


def disguised(name: str) -> bool:
    """Whether letters of several alphabets are mixed in a name, or all of a foreign one look Latin."""
    if name.isascii():
        return False
    found = scripts(name) - {"OTHER"}
    if len(found) > 1:
        return True
    letters = [c for c in name if c.isalpha()]
    return bool(found) and "LATIN" not in found and len(letters) > 2 and all(c in CONFUSABLE for c in letters)


def deceptive(text: str) -> list[str]:
    """Words of a text that pass for Latin ones: foreign look-alikes beside Latin letters.

    A word of nothing but look-alikes is an honest one where its alphabet is really written in the text.
    """
    if text.isascii():
        return []
    foreign = [c for c in text if not c.isascii() and scripts(c) - {"LATIN", "OTHER"}]
    alien = bool(foreign) and all(c in CONFUSABLE for c in foreign)
    return [word for word in re.findall(r"\w+", text) if _passes_for_latin(word, alien=alien)]


def _passes_for_latin(word: str, *, alien: bool) -> bool:
    aliens = [c for c in word if c in CONFUSABLE]
    if not aliens:
        return False
    rest = [c for c in word if c.isalpha() and c not in CONFUSABLE]
    if rest:
        return scripts("".join(rest)) == {"LATIN"}
    return alien and len(aliens) > 2


def _deceiving(text: str) -> Iterator[int]:
    words = set(deceptive(text))
    for word in re.finditer(r"\w+", text) if words else ():
        if word[0] in words:
            yield from (i for i in range(word.start(), word.end()) if text[i] in CONFUSABLE)


def _unseen(character: str) -> bool:
    if character in _BLANK or character in _SELECTORS:
        return True
    if character in _LAYOUT or (character.isascii() and character.isprintable()):
        return False
    code = ord(character)
    nonsense = 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE
    return nonsense or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


def _belongs(text: str, index: int) -> bool:
    before = text[index - 1] if index else ""
    after = text[index + 1] if index + 1 < len(text) else ""
    if text[index] in _EMOJI_STYLE:
        return bool(before) and (unicodedata.category(before) in ("So", "Sm", "Po") or before.isdigit())
    if text[index] in _JOINERS and before and after:
        return (_pictured(before) and _pictured(after)) or (_joining(before) and _joining(after))
    return False


def _pictured(character: str) -> bool:
    return unicodedata.category(character) in ("So", "Sk") or character in _EMOJI_STYLE


def _joining(character: str) -> bool:
    """Of a script whose words need joiners: letters and marks beyond the European alphabets."""
    return ord(character) >= 0x0600 and unicodedata.category(character) in ("Lo", "Mn", "Mc")
