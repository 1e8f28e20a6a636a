"""The keys of a YAML block of a page, with their paths. Reads the YAML that pages are written in: maps by indentation, flow maps and
lists, quoted and plain scalars, comments. Anything else is a ValueError."""
import re


def without_comment(line):
    quote = None
    for i, character in enumerate(line):
        if quote:
            quote = None if character == quote else quote
        elif character in "'\"" and (i == 0 or line[i - 1] in " [{:,"):
            quote = character
        elif character == "#" and (i == 0 or line[i - 1] == " "):
            return line[:i]
    return line


def flow_paths(text, path):
    """Of {a: {b: 1}, c: [x, {d: 2}]}: path + a, path + a.b, path + c; items of lists have their own keys."""
    paths, stack, i = [], [], 0
    while i < len(text):
        character = text[i]
        if character in "'\"":
            end = text.find(character, i + 1)
            if end < 0:
                raise ValueError(f"a quote is open: {text}")
            i = end
        elif character in "{[":
            stack.append((character, None))
        elif character in "}]":
            if not stack or "{["["}]".index(character)] != stack[-1][0]:
                raise ValueError(f"brackets do not match: {text}")
            stack.pop()
        elif stack and stack[-1][0] == "{":
            key = re.match(r"([A-Za-z_][\w.]*|'[^']*'|\"[^\"]*\")\s*:(?=\s|$)", text[i:])
            if key and re.search(r"[{,]\s*$", text[:i]):
                stack[-1] = ("{", key.group(1).strip("'\""))
                if not any(kind == "[" for kind, _ in stack):
                    paths.append(path + [name for _, name in stack if name])
                i += key.end() - 1
        i += 1
    if stack:
        raise ValueError(f"a bracket is open: {text}")
    return paths


def key_paths(lines):
    """(line from 0, path) of every key; keys inside lists are left out."""
    found, stack = [], []  # stack: (indent, key)
    for number, whole in enumerate(lines):
        line = without_comment(whole).rstrip()
        if not line.strip() or line.strip() == "...":
            continue
        indent = len(line) - len(line.lstrip())
        while stack and stack[-1][0] >= indent:
            stack.pop()
        if line.lstrip().startswith("- "):
            continue
        match = re.match(r"\s*([\w.<-]+|'[^']*'|\"[^\"]*\"):(?:\s+(.*))?$", line)
        if not match:
            raise ValueError(f"no key: {whole.strip()}")
        stack.append((indent, match.group(1).strip("'\"")))
        path = [key for _, key in stack]
        found.append((number, path))
        value = match.group(2) or ""
        if value[:1] in "{[":
            found.extend((number, inner) for inner in flow_paths(value, path))
    return found
