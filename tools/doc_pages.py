"""Reads Markdown pages for tools/check_docs and tests/docs/run_commands.py: links, anchors, code spans, tables, fenced
blocks, and the commands in them.

A command is a line that begins with "$ " in a fenced block. It goes on with the next line where it ends with a backslash, | or &&, or a
quote is open. Lines below it, up to the next "$ ", are what it printed. A command that ends with & stays until the page ends. Where the next
command is "$ echo $?", the number below that is the exit code it ends with; otherwise it ends with 0.
"""
import re
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

SHELL = ("", "console", "sh", "bash", "shell")  # languages of blocks that may hold commands
PAGES = re.compile(r"(README|CHANGELOG|CONTRIBUTING)\.md|(docs|examples|launch|containers|bench)/(.+/)?[^/]+\.md")


@dataclass
class Command:
    line: int
    text: str
    output: list = field(default_factory=list)
    exit_code: int = 0

    @property
    def in_background(self):
        return bool(re.search(r"&\s*(#.*)?$", self.text))


@dataclass
class Block:
    line: int  # of its first line, after the fence
    language: str
    lines: list

    def commands(self):
        if self.language not in SHELL:
            return []
        found, i = [], 0
        while i < len(self.lines):
            if self.lines[i].startswith("$ "):
                command = Command(self.line + i, self.lines[i][2:])
                while i + 1 < len(self.lines) and goes_on(command.text):
                    i += 1
                    command.text += "\n" + self.lines[i]
                found.append(command)
            elif found:
                found[-1].output.append(self.lines[i])
            i += 1
        for command, following in zip(found, found[1:]):
            if following.text.split("#")[0].strip() == "echo $?":
                shown = "".join(following.output).strip()
                command.exit_code = int(shown) if shown.isdigit() else -1
        return found


@dataclass
class Span:
    line: int
    text: str


@dataclass
class Table:
    line: int
    header: list  # texts of cells
    rows: list  # (line, texts of cells)


@dataclass
class Page:
    path: str
    text: str
    prose: str = ""  # the text with fenced blocks blanked
    blocks: list = field(default_factory=list)
    spans: list = field(default_factory=list)
    links: list = field(default_factory=list)  # Spans with the target
    tables: list = field(default_factory=list)
    anchors: set = field(default_factory=set)


def goes_on(text):
    if text.endswith(("\\", "|", "&&")):
        return True
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return True
    return False


def words_of(text):
    """The words of a shell command without its comment; otherwise, the words between blanks."""
    try:
        return shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError:
        return text.split()


def spans_of(text, first_line=1):
    found = []
    for match in re.finditer(r"(?<!`)(`+)(?!`)((?:.|\n(?!\s*\n))+?)(?<!`)\1(?!`)", text):
        found.append(Span(first_line + text.count("\n", 0, match.start()), match.group(2).replace("\\|", "|").replace("\n", " ").strip()))
    return found


def anchor_of(heading):
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def cells_of(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def read_page(path, text):
    page = Page(path, text)
    prose, fence, lines = [], None, text.split("\n")
    for number, line in enumerate(lines, 1):
        mark = re.match(r"\s*(```+|~~~+)\s*([\w+-]*)", line)
        if fence is None and mark:
            fence = mark.group(1)
            page.blocks.append(Block(number + 1, mark.group(2), []))
        elif fence is not None and mark and mark.group(1) == fence and not mark.group(2):
            fence = None
        elif fence is not None:
            page.blocks[-1].lines.append(line)
        prose.append("" if fence is not None or mark else line)
    page.prose = "\n".join(prose)
    page.spans = spans_of(page.prose)
    without_code = re.sub(r"(?<!`)(`+)(?!`)[^\n]+?(?<!`)\1(?!`)", lambda match: "x" * len(match.group()), page.prose)
    for match in re.finditer(r"\[[^]]*\]\(\s*<?([^)\s>]*)>?[^)]*\)|^\s*\[[^]]+\]:\s*(\S+)", without_code, re.M):
        page.links.append(Span(1 + without_code.count("\n", 0, match.start()), match.group(1) or match.group(2)))
    seen = {}
    for line in prose:
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            anchor = anchor_of(heading.group(1))
            seen[anchor] = seen.get(anchor, -1) + 1
            page.anchors.add(anchor if seen[anchor] == 0 else f"{anchor}-{seen[anchor]}")
    page.anchors.update(re.findall(r'<a (?:id|name)="([^"]+)"', page.prose))
    for number, line in enumerate(prose, 1):
        if re.match(r"\s*\|?[\s:|-]*-[\s:|-]*\|", line) and number > 1 and "|" in prose[number - 2]:
            page.tables.append(Table(number - 1, cells_of(prose[number - 2]), []))
        elif page.tables and line.lstrip().startswith("|") and page.tables[-1].line + len(page.tables[-1].rows) + 2 == number:
            page.tables[-1].rows.append((number, cells_of(line)))
    return page


def tracked_files(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    return sorted(path for path in set(listed.stdout.split("\n")) if path and (Path(root) / path).is_file())


def read_pages(root, files=None):
    return [read_page(path, (Path(root) / path).read_text()) for path in files or tracked_files(root) if PAGES.fullmatch(path)]
