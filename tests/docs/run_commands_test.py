"""The runner of the pages' commands notices what it is there to notice: exit codes, servers, stale lines of not_run.txt."""
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import run_commands  # noqa: E402
from run_commands import doc_pages  # noqa: E402


def page_of(*lines):
    return doc_pages.read_page("docs/a.md", "# A\n```\n" + "\n".join(lines) + "\n```\n")


def commands_of(*lines):
    return [command for block in page_of(*lines).blocks for command in block.commands()]


class RunCommands(unittest.TestCase):
    def setUp(self):
        self.prepared = tempfile.TemporaryDirectory()
        (Path(self.prepared.name) / "here.txt").write_text("x")

    def tearDown(self):
        self.prepared.cleanup()

    def faults_of(self, *lines):
        commands = [command for command in commands_of(*lines) if command.text != "echo $?"]
        return run_commands.run_page(page_of(*lines), commands, self.prepared.name, "/bin/false")

    def test_commands_and_their_output(self):
        found = commands_of("$ one \\", "  two", "said", "$ three 'a", "b' | # x", "$ four", "said", "$ five |", " six")
        self.assertEqual([command.text for command in found], ["one \\\n  two", "three 'a\nb' | # x", "four", "five |\n six"])
        self.assertEqual(found[0].output, ["said"])
        self.assertEqual([command.line for command in found], [3, 6, 8, 10])

    def test_a_command_that_ends_with_another_code_is_a_fault(self):
        self.assertEqual(self.faults_of("$ cat here.txt"), [])
        self.assertIn("docs/a.md:3: $ cat there.txt\n  wanted exit code 0, found 1", self.faults_of("$ cat there.txt")[0])
        self.assertEqual(self.faults_of("$ (exit 3)", "$ echo $?", "3"), [])
        self.assertIn("wanted exit code 3, found 0", self.faults_of("$ true", "$ echo $?", "3")[0])
        self.assertIn("wanted exit code 0, found 1", self.faults_of("$ kedge show RUN")[0])

    def test_what_a_page_makes_it_may_use_and_no_other_page_sees(self):
        self.assertEqual(self.faults_of("$ mkdir new", "$ cd new", "$ export NAME=more.txt", "$ cp ../here.txt more.txt", "$ cat $NAME"), [])
        self.assertEqual(len(self.faults_of("$ cat new/more.txt")), 1)

    def test_a_server_is_waited_for_and_ended(self):
        note = Path(self.prepared.name) / "process"
        self.assertEqual(self.faults_of(f"$ echo $$ > {note}; sleep 0.2; touch up; echo ready at http://localhost:5555; sleep 100 &   # here", "$ cat up"), [])
        self.assertRaises(ProcessLookupError, os.kill, int(note.read_text()), 0)
        self.assertIn("ended with 3 before it was ready", self.faults_of("$ (exit 3) &")[0])

    def test_every_page_has_ports_of_its_own(self):
        faults = self.faults_of("$ test localhost:5555 != localhost:$((5000 + 555))", "$ test localhost:5555 = localhost:5555", "$ test 5555 = $((5000 + 555))")
        self.assertEqual(faults, [])

    def test_stale_lines_of_the_table_are_faults(self):
        table = Path(self.prepared.name) / "not_run.txt"
        table.write_text("# x\nscripts/test | it is this | scripts/test\nsudo x | y | scripts/nothing\n")
        not_run = run_commands.NotRun(table)
        self.assertTrue(not_run.takes(commands_of("$ scripts/test   --all")[0]))
        self.assertFalse(not_run.takes(commands_of("$ kedge scripts/test")[0]))
        self.assertEqual(list(not_run.faults(all_pages=True)), ["tests/docs/not_run.txt:3: scripts/nothing is not there",
                                                                "tests/docs/not_run.txt:3: no page has a command that begins with: sudo x"])
        table.write_text("scripts/test | it is this\n")
        self.assertRaises(SystemExit, run_commands.NotRun, table)


if __name__ == "__main__":
    unittest.main()
