"""Every rule of tools/check_docs fires on a page that breaks it, and true pages pass."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_docs"
# Speaks as the program does of two commands and two configurations.
PROGRAM = r'''#!/bin/sh
case "$*" in
  --help) printf 'Training\n  ppo  trains\n  serve  serves\n\nLook\n  config  keys\n' ;;
  'help ppo') echo 'Usage: kedge ppo [CONFIG.yaml] [key=value ...] [--fork CKPT]' ;;
  'help config') printf 'Usage: kedge config NAME [--yaml | --json]\n\nConfigurations\n  ppo  PPO\n  reward_source  a source\n' ;;
  'help serve') printf 'Usage: kedge serve reward [key=value ...]\n  --tied  yes\n' ;;
  'config ppo --json') cat <<'JSON'
{"key": "trainer.ppo.max_steps", "type": "integer"}
{"key": "model.ppo.rollout_size", "type": "integer"}
{"key": "model.optim.sched.name", "type": "a | b"}
{"key": "model.data.data_prefix", "type": "any"}
{"key": "reward.sources", "type": "map of section"}
{"key": "model.data.file", "same_as": "model.data.data_prefix"}
{"key": "trainer.ppo.trt_llm", "no_effect": "not here"}
JSON
  ;;
  'config reward_source --json') printf '{"key": "kind", "type": "a | b"}\n{"key": "weight", "type": "number"}\n' ;;
esac
'''
METRICS = [{"step": 0, "train_rollouts/rewards": 1, "train_rollouts/rewards/digits": 1, "timers/generate": 2, "train/loss": 1}]
CLEAN = {
    "README.md": "# x\n[a page](docs/a.md#two-words), `kedge/core/a.h`\n",
    "docs/a.md": "# A\n## Two words\nPlain.\n",
    "docs/commands.md": "# Commands\n```text\nkedge ppo CONFIG   trains\nkedge serve reward   serves\nkedge config NAME   keys\n```\n",
    "docs/numbers.md": "# Numbers\n`rewards`, `failed_rewards`, `train/loss`, `timers/generate`, `skipped`, `skipped_updates`\n",
    "kedge/core/a.h": "int known_name();  // failed_rewards, skipped, skipped_updates\n",
    "tests/cli/a_test.sh": "kedge ppo --fork X; kedge config ppo --yaml --json; kedge serve reward --no-tied\n",
    "scripts/build": "#!/bin/sh\n# --quick\n",
}


def run(changes, with_program=True):
    with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as other:
        subprocess.run(["git", "init", "-q", root], check=True)
        for name, text in {**CLEAN, **changes}.items():
            path = Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        program, metrics = Path(other) / "kedge", Path(other) / "metrics.jsonl"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        metrics.write_text("".join(json.dumps(line) + "\n" for line in METRICS))
        more = ["--kedge", str(program), "--metrics", str(metrics)] if with_program else []
        result = subprocess.run([sys.executable, str(TOOL), root, *more], capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr


class CheckDocs(unittest.TestCase):
    def finds(self, page, text):
        code, out = run({"docs/a.md": "# A\n## Two words\n" + page})
        self.assertEqual(code, 1, out)
        self.assertIn(text, out)

    def passes(self, page):
        self.assertEqual(run({"docs/a.md": "# A\n## Two words\n" + page}), (0, "the documentation holds\n"))

    def test_true_pages_pass(self):
        self.assertEqual(run({}), (0, "the documentation holds\n"))
        self.assertEqual(run({}, with_program=False), (0, "the documentation holds\n"))

    def test_links_and_anchors_lead_somewhere(self):
        self.finds("[x](b.md)\n", "docs/a.md:3: a link to b.md, which is not there; nearest: docs/a.md")
        self.finds("[x](../README.md#nowhere)\n", "README.md has no heading #nowhere")
        self.finds("[x](#two-word)\n", "no heading #two-word; nearest: two-words")
        self.passes("[x](../README.md#x), [y](https://nobody.invalid/), [z](../kedge/core/a.h), [w](#two-words), `[v](b.md)`\n")

    def test_tests_that_are_named_are_there(self):
        code, out = run({"docs/a.md": "# A\n## Two words\n`Gate.IsOpen`\n", "tests/core/a_test.cpp": "TEST_F(Gate, IsShut) {\n"})
        self.assertEqual(code, 1, out)
        self.assertIn("docs/a.md:3: no test `Gate.IsOpen`; nearest: Gate.IsShut", out)
        code, out = run({"docs/a.md": "# A\n## Two words\n`Gate.IsShut`\n", "tests/core/a_test.cpp": "TEST_F(Gate, IsShut) {\n"})
        self.assertEqual(code, 0, out)

    def test_files_that_are_named_are_there(self):
        self.finds("`kedge/core/b.h`\n", "docs/a.md:3: no file or folder `kedge/core/b.h`; nearest: kedge/core/a.h")
        self.finds("`scripts/{build,test}`\n", "no file or folder `scripts/test`")
        self.finds("```\n$ scripts/bild\n```\n", "docs/a.md:4: no file or folder `scripts/bild`; nearest: scripts/build")
        self.finds("`b.h`\n", "no file `b.h`")
        self.passes("`kedge/core/`, `kedge/core/*.h`, `core/a.h`, `a.h`, `runs/sft/model`, `scripts/{build,build}`\n")

    def test_names_are_in_the_code(self):
        self.finds("`unknown_name`\n", "`unknown_name` is not in the code")
        self.passes("`known_name`, `log_metric`\n")

    def test_keys_exist(self):
        self.finds("`trainer.ppo.max_step`\n", "docs/a.md:3: no key `trainer.ppo.max_step`; nearest: trainer.ppo.max_steps")
        self.finds("`max_step=3`\n", "no key `max_step`")
        self.finds("`model.A.rollout_sizes`\n", "no key `model.A.rollout_sizes`")
        self.finds("`reward.sources.x.wait`\n", "no key `reward.sources.x.wait`")
        self.finds("`sched.names`\n", "no key `sched.names`")
        self.passes("`trainer.ppo.max_steps`, `max_steps=3`, `model.A.rollout_size`, `reward.sources.x.weight=1`, `sched.name`, `a.b=v`, `model.data.file`,\n"
                    "`model.data.data_prefix.train`, `trainer.ppo.trt_llm.x`, `model.{ppo.rollout_size,optim}`, `~reward.sources`, `config.json`\n")

    def test_tables_of_keys(self):
        self.finds("| `trainer.ppo.` | |\n|---|---|\n| `max_step` | x |\n", "docs/a.md:5: no key `trainer.ppo.max_step`")
        self.finds("| key | |\n|---|---|\n| `weigh` | x |\n", "no key `weigh`; nearest: weight")
        self.passes("| `trainer.ppo.` | |\n|---|---|\n| `max_steps` | x |\n\n| key | |\n|---|---|\n| `weight` | x |\n\n| other | |\n|---|---|\n| `weigh` | x |\n")

    def test_commands_and_flags_exist(self):
        self.finds("`kedge pp CONFIG`\n", "no command `kedge pp`; nearest: ppo")
        self.finds("`kedge ppo CONFIG --frok X`\n", "kedge ppo has no flag --frok; nearest: --fork")
        self.finds("`--frok`\n", "no command has a flag --frok; nearest: --fork")
        self.finds("`kedge serve critic`\n", "kedge serve takes no `critic`")
        self.finds("```\n$ kedge ppo x.yaml trainer.ppo.max_step=3\n```\n", "docs/a.md:4: no key `trainer.ppo.max_step` of kedge config ppo")
        self.finds("```\n$ kedge ppo max_steps=3\n```\n", "no key `max_steps` of kedge config ppo")
        self.finds("```text\nkedge ppo CONFIG --frok    trains\n```\n", "kedge ppo has no flag --frok")
        self.passes("`kedge ppo CONFIG --fork X`, `mpirun -n 4 kedge ppo ...`, `--no-tied`, `--quick`, `--bind-to none`, `kedge COMMAND --help`\n")

    def test_flags_are_run(self):
        self.finds("`kedge serve reward --tied`\n", "docs/a.md:3: no test, script or command of a page runs --tied")
        self.passes("`kedge serve reward --tied`\n```\n$ kedge serve reward --tied\n```\n")

    def test_commands_in_blocks_are_marked(self):
        self.finds("```\nkedge ppo x.yaml\n```\n", 'docs/a.md:4: a command wants "$ " before it: kedge ppo x.yaml')
        self.finds("```\n$ kedge ppo x.yaml\n$ echo $?\nwhat\n```\n", 'below "$ echo $?" stands the exit code')
        self.passes("```\n$ kedge ppo x.yaml\nkedge said so\n```\n```cpp\nkedge ppo\n```\n")

    def test_the_page_of_commands_lists_every_command(self):
        code, out = run({"docs/commands.md": "# Commands\n```text\nkedge ppo CONFIG   trains\nkedge serve reward   serves\n```\n"})
        self.assertEqual((code, out), (1, "docs/commands.md: the list of commands does not name kedge config\n"))
        code, out = run({"docs/commands.md": "# Commands\n", "README.md": CLEAN["README.md"] + CLEAN["docs/commands.md"]})
        self.assertEqual(code, 1, out)
        self.assertIn("docs/commands.md: the list of commands does not name kedge ppo\n", out)

    def test_the_index_links_every_page(self):
        self.assertEqual(run({"docs/index.md": "# x\n[b](numbers.md), [c](commands.md)\n"}), (1, "docs/index.md: no link to a.md\n"))
        self.assertEqual(run({"docs/index.md": "# x\n[a](a.md#two-words), [b](numbers.md), [c](commands.md)\n"})[0], 0)

    def test_keys_of_yaml_blocks(self):
        self.finds("```yaml\ntrainer:\n  ppo:\n    max_step: 3\n```\n", "docs/a.md:6: no key `trainer.ppo.max_step`")
        self.finds("```yaml\nreward:\n  sources:\n    x: {kind: a, wait: [1, 2]}   # y\n```\n", "docs/a.md:6: no key `reward.sources.x.wait`")
        self.finds("```yaml\ntrainer: {ppo: 3\n```\n", "a bracket is open")
        self.passes("```yaml\n# x\ntrainer:\n  ppo: {max_steps: 3}\nreward:\n  sources:\n    x: {kind: 'a: {b', weight: 1}\nmodel.data.data_prefix: [{z: 1}]\n```\n")

    def test_every_number_is_named(self):
        code, out = run({"docs/numbers.md": "# Numbers\n`rewards`, `failed_rewards`, `train/loss`, `skipped`, `skipped_updates`\n"})
        self.assertEqual((code, out), (1, "no page names the number timers/generate\n"))

    def test_numbers_are_those_of_runs(self):
        self.finds("`train_rollouts/reward`\n", "no number `train_rollouts/reward` in any run's metrics; nearest: train_rollouts/rewards")
        self.finds("```\n$ jq '.\"timers/generates\"' x\n```\n", "docs/a.md:4: no number `timers/generates`")
        self.finds("`train/los`\n", "no number `train/los`")
        self.finds("| name | is |\n|---|---|\n| `reward` | x |\n", "no number `reward`")
        self.passes("`train_rollouts/rewards`, `train_rollouts/...`, `timers/`, `train_rollouts/rewards/NAME`, `train_rollouts/rewards/mine`, `train/loss`, `train_rollouts/failed_rewards`\n\n"
                    "| name | is |\n|---|---|\n| `rewards` | x |\n")


if __name__ == "__main__":
    unittest.main()
