#!/usr/bin/env python3
"""Writes kedge/text/unicode/python_unicode_tables.h from the str methods of the Python that runs it.

    tools/make_python_unicode.py >kedge/text/unicode/python_unicode_tables.h

A table is text: numbers in base 36 with a blank between them, each range given relative to the end of the one before it.
"""
import sys
import unicodedata

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def base36(number):
    text = ""
    while True:
        number, digit = divmod(number, 36)
        text = DIGITS[digit] + text
        if number == 0:
            return text


def signed(number):
    return base36(number) if number >= 0 else "-" + base36(-number)


def runs(points, same):
    """Consecutive points with a stride of 1 or 2 for which `same` holds: (first, last, stride)."""
    at = 0
    while at < len(points):
        best = (at, 1)
        for stride in (1, 2):
            end = at
            while end + 1 < len(points) and points[end + 1] - points[end] == stride and same(points[at], points[end + 1]):
                end += 1
            if end > best[0]:
                best = (end, stride)
        yield points[at], points[best[0]], best[1]
        at = best[0] + 1


def property_table(holds):
    """start - previous end, number of steps, stride."""
    numbers, previous = [], 0
    for first, last, stride in runs([ord(c) for c in CHARACTERS if holds(c)], lambda a, b: True):
        numbers += [base36(first - previous), base36((last - first) // stride), base36(stride)]
        previous = last
    return numbers


def mapping_table(mapped):
    """start - previous end, number of steps, stride, signed distance to the mapped character; only one-to-one mappings."""
    distance = {ord(c): ord(mapped(c)) - ord(c) for c in CHARACTERS if len(mapped(c)) == 1 and mapped(c) != c}
    numbers, previous = [], 0
    for first, last, stride in runs(list(distance), lambda a, b: distance[a] == distance[b]):
        numbers += [base36(first - previous), base36((last - first) // stride), base36(stride), signed(distance[first])]
        previous = last
    return numbers


def expansion_table(mapped, differs_from=lambda c: c):
    """character, number of characters it becomes, those characters."""
    numbers = []
    for c in CHARACTERS:
        if mapped(c) != differs_from(c) and (len(mapped(c)) > 1 or differs_from(c) != c):
            numbers += [base36(ord(c)), base36(len(mapped(c)))] + [base36(ord(m)) for m in mapped(c)]
    return numbers


def is_cased(c):
    return (c + "\u03a3").lower()[-1] == "\u03c2"


def is_ignorable_or_cased(c):
    return ("A" + c + "\u03a3").lower()[-1] == "\u03c2"


def main():
    for first, last, stride in runs([ord(c) for c in CHARACTERS if c.isdecimal()], lambda a, b: True):
        for c in range(first, last + 1, stride):  # digits come in tens, so a digit's value is its place in its range
            assert unicodedata.digit(chr(c)) == (c - first) % 10
    tables = [
        ("kAlpha", "str.isalpha", property_table(str.isalpha)),
        ("kPrintable", "str.isprintable", property_table(str.isprintable)),
        ("kDecimal", "str.isdecimal", property_table(str.isdecimal)),
        ("kDigit", "str.isdigit", property_table(str.isdigit)),
        ("kNumeric", "str.isnumeric", property_table(str.isnumeric)),
        ("kUpper", "str.isupper", property_table(str.isupper)),
        ("kLower", "str.islower", property_table(str.islower)),
        ("kCased", "what ends a word before a capital sigma", property_table(is_cased)),
        ("kCasedOrIgnored", "the same, and what is skipped when looking for it", property_table(is_ignorable_or_cased)),
        ("kToUpper", "str.upper", mapping_table(str.upper)),
        ("kToLower", "str.lower", mapping_table(str.lower)),
        ("kUpperExpands", "str.upper, one character to several", expansion_table(str.upper)),
        ("kLowerExpands", "str.lower, one character to several", expansion_table(str.lower)),
        ("kTitleDiffers", "str.title where it is not str.upper", expansion_table(str.title, str.upper)),
    ]
    print("#pragma once")
    print(f"// Written by tools/make_python_unicode.py with Python {sys.version.split()[0]}, Unicode {unicodedata.unidata_version}.")
    print("#include <string_view>\n\nnamespace kedge::python_unicode_tables {\n\n// clang-format off")
    for name, meaning, numbers in tables:
        print(f"\n// {meaning}\ninline constexpr std::string_view {name} =")
        lines = [""]
        for number in numbers:
            if len(lines[-1]) + len(number) > 132:
                lines.append("")
            lines[-1] += number + " "
        lines[-1] = lines[-1].rstrip()
        print("\n".join(f'    "{line}"' for line in lines) + ";")
    print("\n// clang-format on\n\n}  // namespace kedge::python_unicode_tables")


main()
