"""Every rule of tools/check_layout fires on a tree that breaks it, and a clean tree passes."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_layout"
HEADER = "#pragma once\n// A thing.\n"
CLEAN = {
    "README.md": "# x\n\n## The tree\n```\nkedge/  the library\nkedge/core/  basics\nkedge/data/  text\ntests/  tests\n```\n",
    "kedge/CMakeLists.txt": "core/a.cpp data/b.cpp",
    "kedge/data/files/CMakeLists.txt": "c.cpp",
    "tests/CMakeLists.txt": "core/a_test.cpp data/b_test.cpp data/files/c_test.cpp",
    "kedge/core/a.h": HEADER,
    "kedge/core/a.cpp": '#include "kedge/core/a.h"\n',
    "kedge/data/b.h": HEADER + '#include "kedge/core/a.h"\n',
    "kedge/data/b.cpp": '#include "kedge/data/b.h"\n',
    "kedge/data/files/c.h": HEADER,
    "kedge/data/files/c.cpp": "",
    "tests/core/a_test.cpp": "",
    "tests/data/b_test.cpp": "",
    "tests/data/files/c_test.cpp": "",
}


def run(changes):
    with tempfile.TemporaryDirectory() as root:
        subprocess.run(["git", "init", "-q", root], check=True)
        for name, text in {**CLEAN, **changes}.items():
            if text is None:
                continue
            path = Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        result = subprocess.run([sys.executable, str(TOOL), root], capture_output=True, text=True)
        return result.returncode, result.stdout


class CheckLayout(unittest.TestCase):
    def finds(self, changes, text):
        code, out = run(changes)
        self.assertEqual(code, 1, out)
        self.assertIn(text, out)

    def test_a_clean_tree_passes(self):
        self.assertEqual(run({}), (0, "the layout holds\n"))

    def test_rooms_include_only_upward(self):
        self.finds({"kedge/core/a.h": HEADER + '#include "kedge/data/b.h"\n'}, "room core may not include room data")
        self.finds({"kedge/core/a.h": HEADER + '#include "kedge/data/files/c.h"\n'}, "room core may not include room data")
        self.finds({"kedge/core/a.h": HEADER + '#include "cli/x.h"\n'}, "a room may not include cli/x.h")

    def test_unknown_rooms_are_refused(self):
        self.finds({"kedge/misc/c.h": HEADER}, "no room named misc")

    def test_circles_are_found(self):
        self.finds({"kedge/core/c.h": HEADER + '#include "kedge/core/d.h"\n', "kedge/core/d.h": HEADER + '#include "kedge/core/c.h"\n'},
                   "includes go in a circle")

    def test_headers(self):
        self.finds({"kedge/core/a.h": HEADER + "#ifdef X\n#endif\n"}, "kedge/core/a.h:3: no #if in a header")
        self.assertEqual(run({"kedge/core/simd.h": HEADER + "#if X\n#else\n#endif\n"}), (0, "the layout holds\n"))
        self.finds({"kedge/core/a.h": "// x\n"}, "a header opens with #pragma once")
        self.finds({"kedge/core/a.h": "#pragma once\nint x;\n"}, "a header says what it is")

    def test_libraries_stay_behind_one_file(self):
        self.finds({"kedge/core/a.cpp": "#include <torch/torch.h>\n"}, "includes <torch/torch.h>")
        self.finds({"kedge/core/a.cpp": "#include <yaml-cpp/yaml.h>\n"}, "belongs behind kedge/config/yaml.cpp")

    def test_sizes(self):
        self.finds({"kedge/core/a.cpp": "//\n" * 501}, "501 lines, at most 500")
        self.finds({"kedge/core/a.cpp": "int f() {\n" + "  g();\n" * 80 + "}\n"}, "a function of 82 lines")

    def test_folders_are_small_and_so_is_the_median_file(self):
        self.finds({f"kedge/core/h{i}.h": HEADER for i in range(40)}, "kedge/core/: 41 pairs, at most 40")
        self.finds({f"kedge/core/h{i}.h": HEADER + "//\n" * 90 for i in range(20)}, "the median file has 92 lines")

    def test_marks(self):
        self.finds({"kedge/core/a.cpp": "// TO" + "DO later\n"}, "an unfinished mark")

    def test_pairs_have_tests_and_sources_are_built(self):
        self.finds({"tests/core/a_test.cpp": None}, "no test file tests/core/a_test.cpp")
        self.finds({"tests/data/files/c_test.cpp": None, "tests/data/c_test.cpp": ""}, "no test file tests/data/files/c_test.cpp")
        self.finds({"kedge/data/files/CMakeLists.txt": ""}, "kedge/data/files/c.cpp: in no CMakeLists.txt")
        self.finds({"kedge/core/no_z.cpp": ""}, "stands in for nothing")
        self.finds({"kedge/core/z.cpp": "", "kedge/CMakeLists.txt": "core/a.cpp core/z.cpp data/b.cpp"}, "kedge/core/z.cpp: no header beside it")

    def test_a_pair_may_have_a_second_source(self):
        self.assertEqual(run({"kedge/core/a_more.cpp": "", "kedge/CMakeLists.txt": "core/a.cpp core/a_more.cpp data/b.cpp"})[0], 0)

    def test_launched_kernels_are_tested_through_the_source_that_calls_them(self):
        kernels = {"kedge/core/x_launch.h": HEADER, "kedge/core/x_launch.cu": "", "kedge/CMakeLists.txt": "core/a.cpp core/x_launch.cu data/b.cpp"}
        self.finds(kernels, "kedge/core/x_launch.cu: no source includes kedge/core/x_launch.h")
        called = {"kedge/core/a.cpp": '#include "kedge/core/a.h"\n#include "kedge/core/x_launch.h"\n'}
        self.assertEqual(run({**kernels, **called})[0], 0)
        self.finds({**kernels, **called, "tests/core/a_test.cpp": None}, "no test file tests/core/a_test.cpp")

    def test_sources_are_built(self):
        self.finds({"kedge/core/e.h": HEADER, "kedge/core/e.cpp": "", "tests/core/e_test.cpp": ""}, "kedge/core/e.cpp: in no CMakeLists.txt")

    def test_the_tree_is_true(self):
        self.finds({"README.md": CLEAN["README.md"].replace("kedge/data/  text\n", "")}, "the tree does not name kedge/data/")
        self.finds({"README.md": CLEAN["README.md"].replace("tests/  tests\n", "tests/  tests\nbench/  none\n")}, "names bench/, which is not there")


if __name__ == "__main__":
    unittest.main()
