#!/usr/bin/env python3
"""What tools/test_summary makes of a JUnit file of ctest."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "test_summary"

PASSED_SHARD = '<testcase name="unit.core.1" time="1.5" status="run"><system-out>[  PASSED  ] 12 tests.\n</system-out></testcase>'
SKIPPING_SHARD = """<testcase name="unit.data.1" time="2.5" status="run"><system-out>/a/b_test.cpp:7: Skipped
no "/x/assets/models"; KEDGE_ASSETS names the assets folder

[  SKIPPED ] Data.Real (0 ms)
[  PASSED  ] 3 tests.
[  SKIPPED ] 1 test, listed below:
</system-out></testcase>"""
PARTLY_SKIPPED_SCRIPTS = """<testcase name="cli.models" time="2" status="run"><system-out>test_a (m.A.test_a) ... ok
test_b (m.A.test_b) ... skipped 'no stories; KEDGE_ASSETS names the assets folder'
test_c (m.A.test_c)
What it does. ... skipped 'no stories; KEDGE_ASSETS names the assets folder'

OK (skipped=2)
</system-out></testcase><testcase name="data.training" time="2" status="run"><system-out>left out: /x/assets/corpus.txt is not there
12 cases, 0 differ
</system-out></testcase>"""
PASSED_SCRIPT = '<testcase name="cli.train" time="9" status="run"><system-out>fine</system-out></testcase>'
SKIPPED_SCRIPT = """<testcase name="net.peer" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>skipped: no /home/me/python; scripts/setup --tests installs it</system-out></testcase>"""
FAILED_SHARD = """<testcase name="unit.net.2" time="1" status="fail"><failure message=""/><system-out>[  PASSED  ] 5 tests.
[  FAILED  ] 1 test, listed below:</system-out></testcase>"""


def summary(*cases, floor=0):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write("<testsuite>" + "".join(cases) + "</testsuite>")
        file.flush()
        done = subprocess.run([sys.executable, TOOL, file.name, "--floor", str(floor)], capture_output=True, text=True)
    return done.returncode, done.stdout


class Summary(unittest.TestCase):
    def test_counts_the_tests_of_a_program_and_a_script_as_one(self):
        code, out = summary(PASSED_SHARD, PASSED_SCRIPT, floor=13)
        self.assertEqual(code, 0)
        self.assertIn("13 passed, 0 failed, 0 skipped", out)

    def test_says_why_tests_were_skipped(self):
        code, out = summary(SKIPPING_SHARD, SKIPPED_SCRIPT)
        self.assertEqual(code, 0)
        self.assertIn("1    no models; KEDGE_ASSETS names the assets folder", out)
        self.assertIn("1    no python; scripts/setup --tests installs it", out)
        self.assertIn("3 passed, 0 failed, 2 skipped", out)

    def test_what_a_script_that_passes_did_not_try_is_counted(self):
        code, out = summary(PARTLY_SKIPPED_SCRIPTS)
        self.assertEqual(code, 0)
        self.assertIn("2    no stories; KEDGE_ASSETS names the assets folder", out)
        self.assertIn("1    corpus.txt is not there", out)
        self.assertIn("2 passed, 0 failed, 3 skipped", out)

    def test_a_failure_is_named(self):
        code, out = summary(PASSED_SHARD, FAILED_SHARD)
        self.assertEqual(code, 1)
        self.assertIn("FAILED: unit.net.2", out)
        self.assertIn("17 passed, 1 failed", out)

    def test_too_few_tests_are_a_failure(self):
        code, out = summary(PASSED_SHARD, floor=13)
        self.assertEqual(code, 1)
        self.assertIn("at least 13 tests", out)

    def test_the_slowest_come_first(self):
        _, out = summary(PASSED_SHARD, PASSED_SCRIPT, SKIPPING_SHARD)
        self.assertLess(out.index("cli.train"), out.index("unit.data.1"))
        self.assertLess(out.index("unit.data.1"), out.index("unit.core.1"))


if __name__ == "__main__":
    unittest.main()
