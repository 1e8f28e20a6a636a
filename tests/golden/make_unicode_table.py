"""Writes kedge/text/unicode/unicode_table.cpp: what the `tokenizers` package takes each code point for.

The package mixes Unicode versions (16 in its expressions, 9 in its normal forms, 8 in its punctuation), and models were
trained on what it does, so the tables are read off the package itself.

    pip install tokenizers==0.23.3 unicodedata2 && python make_unicode_table.py ../../kedge/text/unicode/unicode_table.cpp
"""

import sys

import unicodedata2
from tokenizers import Regex, normalizers, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CODES_PAIR, CASE_TRIPLE = "{0x%X, 0x%X}", "{0x%X, 0x%X, %d}"
CATEGORIES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()


def ranges(codes):
    out = []
    for code in sorted(codes):
        if out and out[-1][1] == code - 1:
            out[-1][1] = code
        else:
            out.append([code, code])
    return out


def matched(expression):
    split = pre_tokenizers.Split(Regex(expression), "removed", invert=True)
    found = set()
    for start in range(0, len(CODES), 20000):
        text = "".join(map(chr, CODES[start : start + 20000]))
        for piece, _ in split.pre_tokenize_str(text):
            found.update(map(ord, piece))
    return found


def category_runs():
    of = {}
    for index, name in enumerate(CATEGORIES):
        for code in matched(r"\p{%s}" % name):
            of[code] = index
    runs, last = [], None
    for code in range(0x110000):
        category = of.get(code, CATEGORIES.index("Cn"))  # surrogates never stand in text
        if category != last:
            runs.append((code << 8) | category)
        last = category
    return runs, of


def frozen(of):
    """Code points that the package's normal forms leave as they are and newer Unicode data would not."""
    strip = normalizers.StripAccents()
    mark = {CATEGORIES.index(name) for name in ("Mn", "Mc", "Me")}
    out = {c for c in CODES if of[c] in mark and strip.normalize_str("a" + chr(c)) != "a"}
    out |= {c for c in CODES if unicodedata2.combining(chr(c)) and strip.normalize_str("a" + chr(c)) != "a"}
    for form in ("NFD", "NFKD"):
        theirs = getattr(normalizers, form)()
        for code in CODES:
            newest = unicodedata2.normalize(form, chr(code))
            if theirs.normalize_str(chr(code)) != newest:
                out.add(code)
                if form == "NFD":
                    out.add(ord(newest[0]))
    return out


def late_punctuation(of):
    punctuation = pre_tokenizers.Punctuation("removed")
    marks = {CATEGORIES.index(name) for name in ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po")}
    late = {c for c in CODES if of[c] in marks and punctuation.pre_tokenize_str(chr(c))}
    early = {c for c in CODES if of[c] not in marks and c > 0x7F and not punctuation.pre_tokenize_str(chr(c))}
    assert early == {0x166D, 0x111C9}, early
    return late


def late_lower_case():
    lower = normalizers.Lowercase()
    moved = []
    for code in CODES:
        theirs = lower.normalize_str(chr(code))
        if theirs != chr(code).lower():  # this Python's Unicode 14 or newer; what it knows, utf8proc knows
            assert len(theirs) == 1, hex(code)
            step = ord(theirs) - code
            if moved and moved[-1][1] == code - 1 and moved[-1][2] == step:
                moved[-1][1] = code
            else:
                moved.append([code, code, step])
    return moved


def listing(values, per_line=12):
    lines = []
    for start in range(0, len(values), per_line):
        lines.append("    " + ", ".join(values[start : start + per_line]) + ",")
    return "\n".join(lines)


def main():
    runs, of = category_runs()
    text = f"""// Made by tests/golden/make_unicode_table.py; not for editing.
#include "kedge/text/unicode/unicode_table.h"

namespace kedge {{
namespace {{

// clang-format off
constexpr uint32_t kCategoryRuns[] = {{
{listing(["0x%X" % run for run in runs], 14)}
}};

constexpr CodeRange kFrozen[] = {{
{listing([CODES_PAIR % tuple(r) for r in ranges(frozen(of))], 6)}
}};

constexpr CodeRange kLatePunctuation[] = {{
{listing([CODES_PAIR % tuple(r) for r in ranges(late_punctuation(of))], 6)}
}};

constexpr CaseRange kLateLowerCase[] = {{
{listing([CASE_TRIPLE % tuple(r) for r in late_lower_case()], 5)}
}};
// clang-format on

}}  // namespace

std::span<const uint32_t> category_runs() {{ return kCategoryRuns; }}
std::span<const CodeRange> frozen_codes() {{ return kFrozen; }}
std::span<const CodeRange> late_punctuation() {{ return kLatePunctuation; }}
std::span<const CaseRange> late_lower_case() {{ return kLateLowerCase; }}

}}  // namespace kedge
"""
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(text)


main()
