"""Every rule of tools/check_prose fires on a page that breaks it; plain English, code and link targets pass."""
import importlib.machinery
import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_prose"
# Sentences that break a rule, and the words that are reported.
BROKEN = [
    ("A run can be gone on with.", "gone on with"),
    ("It goes on from the newest checkpoint.", "goes on from"),
    ("It goes on where it stopped.", "goes on where"),
    ("The run is still going on.", "still going on"),
    ("You can read it while it goes on.", "while it goes on"),
    ("The file is read anew.", "anew"),
    ("The client must come again later.", "come again later"),
    ("It reads every whole checkpoint.", "every whole checkpoint"),
    ("It needs a sound checkpoint.", "sound checkpoint"),
    ("The file is whole.", "is whole"),
    ("The last checkpoint stands.", "checkpoint stands"),
    ("A damaged line is passed over.", "passed over"),
    ("The fault was mended.", "mended"),
    ("Deaths of a server are counted.", "Deaths of a server"),
    ("It waits for a server that is away.", "server that is away"),
    ("A batch waits for company.", "waits for company"),
    ("A step leaves a record.", "leaves a record"),
    ("The error is told.", "is told"),
    ("The log tells which.", "tells which"),
    ("It prints a word about it.", "a word about"),
    ("They are skipped, with a word, in this case.", "with a word"),
    ("A line that is no JSON ends it.", "is no JSON"),
    ("There is memory that will not do.", "memory that will not do"),
    ("A faster judge helps.", "judge"),
    ("It is compared with rivals.", "rivals"),
    ("It draws a token.", "draws a token"),
    ("How tokens are drawn.", "tokens are drawn"),
    ("It keeps the drawn ids.", "drawn ids"),
    ("The policy looks at log-probabilities.", "looks at log-probabilities"),
    ("It checks logged numbers.", "logged numbers"),
    ("It checks every number that a run logs.", "number that a run logs"),
    ("They are equal number by number.", "number by number"),
    ("It keeps the least and the greatest.", "the least and the greatest"),
    ("It ends after so many tokens.", "so many tokens"),
    ("These are the reference's defaults.", "the reference's defaults"),
    ("It rounds as the reference does.", "as the reference does"),
    ("Nothing is installed beside it.", "beside"),
    ("It prints the text behind the prompt.", "text behind"),
    ("It is for programs of one's own.", "of one's own"),
    ("Write a program of your own.", "program of your own"),
    ("The server wants a token.", "server wants"),
    ("Pages are held true.", "held true"),
    ("It speaks what others do.", "speaks what"),
    ("It sends tensors as Triton speaks it.", "as Triton speaks it"),
    ("It is made by hand of the user.", "by hand of"),
]
PLAIN = """# A page
The run resumes from its newest valid checkpoint. There is no run in this folder, and there
  is no model. Each curve is drawn with at most 240 points. Values are passed over the bus. The two can be told apart. A flag `--beside` and
`runs/judge` are names, and so are runs/judge, judge.yaml, --rival and `so many
tokens`. See [the page](judge.md), https://example.com/anew and [another](a/beside/b.md "title").
There are so many steps that the file is split. The critic is two steps behind. It stores the reference's keys and values. X stands for a name.
It polls the servers of your own runs.
```
$ kedge eval judge      # anew, beside rivals
```
"""
# Speaks as the program does of one command and its configurations.
PROGRAM = """#!/bin/sh
case "$*" in
  --help) printf 'Training\\n  ppo  trains\\n  kedge ppo judge.yaml  an example\\n' ;;
  'help ppo') printf 'Usage: kedge ppo\\n  kedge ppo judge beside  trains a policy\\n%s\\n' "$HELP" ;;
  'config '*) printf '%s: key\\n%s\\n' "$2" "$CONFIG" ;;
esac
"""


def run(pages, **texts):
    with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as other:
        subprocess.run(["git", "init", "-q", root], check=True)
        for name, text in pages.items():
            path = Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        program = Path(other) / "kedge"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        more = ["--help-text", str(program)] if texts else []
        result = subprocess.run([sys.executable, str(TOOL), root, *more], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", **texts})
        return result.returncode, result.stdout + result.stderr


def load_tool():
    loader = importlib.machinery.SourceFileLoader("check_prose", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_prose", loader))
    loader.exec_module(module)
    return module


class CheckProse(unittest.TestCase):
    def test_plain_english_and_code_pass(self):
        self.assertEqual(run({"README.md": PLAIN, "docs/a.md": PLAIN}), (0, "the prose is plain\n"))

    def test_every_sentence_is_found(self):
        code, out = run({"docs/a.md": "\n\n".join(sentence for sentence, _ in BROKEN) + "\n"})
        self.assertEqual(code, 1, out)
        lines = out.splitlines()
        self.assertEqual(len(lines), len(BROKEN), out)
        for number, (_, words) in enumerate(BROKEN):
            self.assertTrue(lines[number].startswith(f'docs/a.md:{2 * number + 1}: "{words}"; better: '), lines[number])

    def test_every_rule_has_a_sentence(self):
        tool = load_tool()
        for (expression, _), (pattern, _) in zip(tool.RULES, tool.PATTERNS):
            self.assertTrue(any(pattern.search(sentence) for sentence, _ in BROKEN), expression)

    def test_phrases_are_found_over_the_end_of_a_line_but_not_of_a_paragraph(self):
        self.assertEqual(run({"docs/a.md": "- It goes\n  on from here.\n"}), (1, 'docs/a.md:1: "goes on from"; better: resumes from\n'))
        self.assertEqual(run({"docs/a.md": "It goes\n\non from here.\n"})[0], 0)

    def test_tables_and_headings_are_read(self):
        self.assertEqual(run({"docs/a.md": "# A rival\n| a | b |\n|---|---|\n| x | done anew |\n"}),
                         (1, 'docs/a.md:1: "rival"; better: baseline\ndocs/a.md:4: "anew"; better: again, from scratch\n'))

    def test_pages_are_those_for_readers(self):
        for page in ("README.md", "CONTRIBUTING.md", "launch/README.md", "examples/a/README.md", "docs/a.md"):
            self.assertEqual(run({page: "anew\n"}), (1, f'{page}:1: "anew"; better: again, from scratch\n'))
        self.assertEqual(run({"notes.md": "anew\n", "kedge/a.h": "// anew\n"})[0], 0)

    def test_help_and_configurations_are_read(self):
        self.assertEqual(run({}, HELP="plain", CONFIG="# plain"), (0, "the prose is plain\n"))
        self.assertEqual(run({}, HELP="  --fork CKPT  begins anew", CONFIG="# plain"),
                         (1, 'kedge help ppo:3: "anew"; better: again, from scratch\n'))
        code, out = run({}, HELP="plain", CONFIG="# a judge")
        self.assertEqual((code, [line.split(":")[0] for line in out.splitlines()]), (1, [f"kedge config {name}" for name in
                                                                                        ("sft", "rm", "ppo", "reinforce", "rs")]))


if __name__ == "__main__":
    unittest.main()
