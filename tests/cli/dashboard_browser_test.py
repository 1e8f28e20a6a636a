"""kedge dashboard in a real browser: curves are drawn and follow a run, texts are searched and sorted, the keyboard works, light and dark, and nothing
leaves this machine. dashboard_browser_test.py KEDGE [FOLDER_FOR_SCREENSHOTS]"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import browser as browsers
from browser import wait_for

KEDGE = sys.argv[1]
SHOTS = Path(sys.argv[2]) if len(sys.argv) > 2 else None

# In the page: the curve of a chart as Chart.js has it.
CURVE = """
  const chart = window.Chart && Chart.getChart(document.querySelector(`[id="chart-${arguments[0]}"] canvas`));
  if (!chart) return null;
  const set = chart.data.datasets.find((one) => !one.raw);
  return {n: set.data.length, last: set.data.at(-1), datasets: chart.data.datasets.length, labels: chart.data.datasets.map((one) => one.label)};
"""
# Pixels of the canvas that are not empty.
INK = """
  const canvas = document.querySelector(`[id="chart-${arguments[0]}"] canvas`);
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let i = 3; i < pixels.length; i += 4) count += pixels[i] > 0;
  return count;
"""
TEXTS = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
NASTY = '<img src=x onerror="document.title=1"><script>window.hacked = 1</script>'


def metrics_line(step, shift=0.0):
    value = math.tanh(step / 20) + 0.1 * math.sin(step) + shift
    numbers = {"train_rollouts/rewards": value, "train_rollouts/watch/polite": 1 - value, "train_rollouts/init_policy_kl": step / 100,
               "train_rollouts/generation_length": 60 + step % 7, "train_rollouts/fraction_of_samples_properly_ended": 0.9,
               "train_rollouts/entropy": 2 - step / 100, "train_rollouts/distinct_2": 0.8, "timers/generate": 0.5 + 0.1 * math.cos(step),
               "timers/logprobs": 0.2, "timers/train_time": 0.4, "train/step_time": 1.3, "train_optim/loss": "NaN" if step == 3 else 0.5 - value / 10,
               "train_optim/grad_norm": 1 + value, "train_optim/lr": 1e-4}
    return json.dumps({"step": step, "time": 1.8e9 + step, **numbers}) + "\n"


def answer(prompt_id, prompt, response, reward):
    return {"prompt_id": prompt_id, "slot": prompt_id, "sample": 0, "prompt": prompt, "response": response, "ids": [1, 2, 3], "prompt_length": 1,
            "finished": True, "reward": reward, "parts": {"words": reward}, "error": None, "engine_logprobs": [-1.0, -1.0], "logprobs": [-1.0, -1.0],
            "reference": [-1.0, -1.1], "kl": 0.1 * reward, "kl_sum": 0.2, "entropy": 1.0, "reward_with_kl": reward, "baseline": 0.0,
            "advantage": -reward, "trains": True}


def make_run(folder, num_steps, lr, shift=0.0, records=True):
    (folder / "rollouts").mkdir(parents=True)
    (folder / "config.yaml").write_text(f"model: {{optim: {{lr: {lr}}}}}\nrollouts: {{keep: {'all' if records else 'none'}}}\n"
                                        "reward: {sources: {words: {kind: regex}}}\n")
    (folder / "run.json").write_text(json.dumps([{"command_line": ["kedge", "reinforce"], "folder": str(folder), "max_steps": 100}]))
    (folder / "metrics.jsonl").write_text("".join(metrics_line(step, shift) for step in range(num_steps)))
    (folder / "samples.jsonl").write_text("".join(json.dumps({"step": step, "time": 1.0, "table": "val_rollouts", "prompt": "Tell me", "response":
                                                              f"sample {step}", "reward": step / 2, "length": 5}) + "\n" for step in (0, 5, 10)))
    for step, word in ((0, "early"), (9, "late")) if records else ():
        rows = [answer(i, f"Prompt {i}", f"{word} answer {i}", i + step) for i in range(30)]
        rows[7]["response"] = f"{word} {NASTY}"
        lines = [{"step": step, "fingerprint": "x", "rows": len(rows)}, *rows]
        (folder / "rollouts" / f"step-{step}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


class Dashboard:
    def __init__(self, *folders):
        self.process = subprocess.Popen([KEDGE, "dashboard", *map(str, folders), "--port", "0"], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.page, self.url = re.match(r"((http://127\.0\.0\.1:\d+/)\?token=[0-9a-f]+) shows ", line).groups()

    def close(self):
        self.process.terminate()
        self.process.stdout.close()
        assert self.process.wait() == 0, self.process.returncode


class DashboardInABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = Path(cls.temporary.name)
        make_run(cls.root / "slow", 30, 1e-4)
        make_run(cls.root / "fast", 40, 1e-3, shift=0.3, records=False)
        cls.browser = browsers.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.temporary.cleanup()

    def open(self, *folders, view="curves"):
        dashboard = Dashboard(*folders)
        self.addCleanup(dashboard.close)
        self.browser.open("about:blank")
        self.browser.requests()
        self.browser.console()
        self.browser.open(dashboard.page + "#" + view)
        self.browser.wait("return performance.getEntriesByName('drawn').length > 0", "the page is drawn")
        self.url = dashboard.url
        return self.browser

    def shot(self, name):
        if SHOTS:
            self.browser.screenshot(SHOTS / f"{name}.png")

    def at_peace(self):
        """Nothing was complained about, and nothing was asked for elsewhere."""
        self.assertEqual(self.browser.console(), [])
        foreign = [url for url in self.browser.requests() if not url.startswith((self.url, "data:", "about:"))]
        self.assertEqual(foreign, [])
        names = self.browser.run("return performance.getEntriesByType('resource').map((one) => one.name)")
        self.assertTrue(names)
        self.assertEqual([name for name in names if not name.startswith(self.url)], [])

    def test_curves_are_drawn_and_follow_the_run(self):
        browser = self.open(self.root / "slow")
        for chart in ("reward", "watch", "kl", "loss"):
            curve = browser.wait(CURVE, chart, chart)
            self.assertEqual(curve["n"], 30)
            self.assertGreater(browser.run(INK, chart), 300)
        self.assertIn("1 not finite", browser.run("return document.getElementById('chart-loss').textContent"))
        self.assertEqual(browser.wait(CURVE, "reward", "reward")["last"]["x"], 29)
        with open(self.root / "slow" / "metrics.jsonl", "a") as file:
            file.write(metrics_line(30) + metrics_line(31)[:40])  # the second is still being written
            file.flush()
            browser.wait(f"const curve = (function() {{{CURVE}}})('reward'); return curve && curve.last.x === 30", "the new step is drawn")
            file.write(metrics_line(31)[40:])
        browser.wait(f"const curve = (function() {{{CURVE}}})('reward'); return curve && curve.last.x === 31", "the next too")
        self.assertIn("step 32", browser.run("return document.getElementById('runs').textContent"))
        self.shot("one_run")
        self.at_peace()

    def test_runs_are_compared(self):
        browser = self.open(self.root)
        labels = browser.wait(CURVE, "reward", "reward")["labels"]
        self.assertEqual(set(labels), {"slow", "fast"})
        browser.click(".run button.run-name")
        browser.wait(f"const curve = (function() {{{CURVE}}})('reward'); return curve && !curve.labels.includes('fast')", "a run is hidden")
        browser.click(".run button.run-name")
        browser.wait(f"const curve = (function() {{{CURVE}}})('reward'); return curve && curve.labels.includes('fast')", "and shown again")
        browser.keys("7")
        browser.wait("return document.querySelector('#main table')", "the settings")
        self.assertIn("model.optim.lr", " ".join(browser.run(TEXTS, "#main td")))
        browser.keys("2")
        browser.wait("return document.querySelectorAll('.timing canvas').length === 2", "the times of both")
        self.at_peace()

    def test_texts_are_searched_sorted_and_never_markup(self):
        browser = self.open(self.root / "slow", view="answers")
        browser.wait("return document.querySelectorAll('.item').length === 20", "a page of answers")
        self.assertIn("late answer 29", browser.run(TEXTS, ".item .response")[0])
        browser.run("const select = [...document.querySelectorAll('select')].find((one) => one.value === '0'); select.value = '1';"
                    "select.dispatchEvent(new Event('change'))")
        browser.wait("return document.querySelector('.item .response').textContent === 'late answer 0'", "lowest first")
        browser.keys("/")
        browser.keys("IMG SRC")
        browser.wait("return document.querySelectorAll('.item').length === 1", "one is found")
        self.assertEqual(browser.run(TEXTS, ".item .response"), [f"late {NASTY}"])
        self.assertEqual(browser.run("return [document.querySelectorAll('.item img').length, window.hacked ?? null]"), [0, None])
        browser.keys("\ue00c")  # Escape
        browser.keys(",")
        browser.wait("return document.querySelector('.item .response').textContent.startsWith('early')", "the step before")
        self.at_peace()

    def test_before_and_after_stand_side_by_side(self):
        browser = self.open(self.root / "slow", view="pairs")
        browser.wait("return document.querySelectorAll('.pair-item').length === 20", "pairs")
        sides = browser.run(TEXTS, ".pair-item:first-child .side")
        self.assertIn("before, step 0", sides[0])
        self.assertIn("early", sides[0])
        self.assertIn("after, step 9", sides[1])
        self.assertIn("late", sides[1])
        lefts = browser.run("return [...document.querySelectorAll('.pair-item:first-child .side')].map((one) => one.getBoundingClientRect().left)")
        self.assertGreater(lefts[1], lefts[0] + 200)
        browser.keys("5")
        browser.wait("return document.querySelectorAll('.item').length === 3", "samples")
        self.assertIn("sample 10", browser.run(TEXTS, ".item .response")[0])
        self.at_peace()

    def test_what_is_not_there_is_said(self):
        browser = self.open(self.root / "fast", view="answers")
        browser.wait("return document.querySelector('.empty')?.textContent === 'no records: rollouts.keep=none'", "why there are no records")
        browser.keys("6")
        browser.wait("return document.querySelector('.empty')?.textContent.startsWith('no servers')", "why there are no servers")
        self.at_peace()

    def test_the_keyboard_is_enough(self):
        browser = self.open(self.root / "slow")
        browser.keys("?")
        self.assertTrue(browser.wait("return document.getElementById('help').open", "the list of keys"))
        browser.keys("\ue00c")
        browser.wait("return !document.getElementById('help').open", "it is closed")
        before = browser.run("return Number(document.getElementById('smoothing').value)")
        browser.keys("]")
        browser.wait("return Number(document.getElementById('smoothing').value) > arguments[0]", "more smoothing", before)
        browser.wait(f"const curve = (function() {{{CURVE}}})('reward'); return curve && curve.datasets === 2", "a smooth curve and the raw one")
        browser.keys("m")
        browser.wait(CURVE, "more curves", "distinct")
        browser.run("document.activeElement.blur()")
        seen = []
        for _ in range(14):
            browser.keys("\ue004")  # Tab
            seen.append(browser.run("const one = document.activeElement; return one.id || one.textContent || one.tagName"))
        self.assertIn("tab-curves", seen)
        self.assertIn("smoothing", seen)
        self.assertNotEqual(browser.run("return getComputedStyle(document.activeElement).outlineStyle"), "none")
        self.at_peace()

    def test_light_and_dark(self):
        browser = self.browser
        colours = {}
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            self.open(self.root)
            browser.run("localStorage.removeItem('kedge.theme')")
            self.open(self.root)
            colours[scheme] = browser.run("return getComputedStyle(document.body).backgroundColor")
            self.shot(f"runs_{scheme}")
        self.assertNotEqual(colours["light"], colours["dark"])
        browser.keys("d")
        self.assertEqual(browser.wait("return document.documentElement.dataset.theme === 'light'", "the switch"), True)
        self.assertEqual(browser.run("return getComputedStyle(document.body).backgroundColor"), colours["light"])
        browser.run("localStorage.removeItem('kedge.theme')")
        browser.prefer("light")
        self.at_peace()

    def test_a_program_that_ends_is_noticed(self):
        dashboard = Dashboard(self.root / "slow")
        self.browser.open(dashboard.page)
        self.browser.wait("return performance.getEntriesByName('drawn').length > 0", "the page is drawn")
        dashboard.close()
        self.browser.wait("return !document.getElementById('banner').hidden", "a word about it")
        self.browser.console()

    def test_a_hundred_thousand_steps_are_drawn(self):
        folder = self.root.parent / (self.root.name + "-long")
        make_run(folder, 0, 1e-4, records=False)
        self.addCleanup(lambda: __import__("shutil").rmtree(folder))
        with open(folder / "metrics.jsonl", "w") as file:
            for step in range(100_000):
                value = 1000 if step == 54_321 else math.sin(step / 5000)
                file.write(f'{{"step": {step}, "time": {1.8e9 + step}, "train_rollouts/rewards": {value}, "train_optim/loss": {value / 2}, '
                           f'"train_rollouts/init_policy_kl": {step / 1e5}, "train_rollouts/entropy": {2 - step / 1e5}, "train/step_time": 1.0}}\n')
        browser = self.open(folder)
        curve = browser.wait(CURVE, "reward", "reward")
        self.assertLess(curve["n"], 1000)
        self.assertEqual(curve["last"]["x"], 99_999)
        top = browser.run("const chart = Chart.getChart(document.querySelector('#chart-reward canvas'));"
                          "return Math.max(...chart.data.datasets.flatMap((set) => set.data.map((point) => point.y)))")
        self.assertEqual(top, 1000)  # the spike is not lost
        drawn = browser.run("return performance.getEntriesByName('drawn')[0].startTime")
        print(f"100,000 steps: drawn {drawn:.0f} ms after the page was asked for")
        self.shot("long")
        self.at_peace()


if __name__ == "__main__":
    if not browsers.programs():
        print("skipped: no chromium and chromedriver; scripts/setup --tests installs them")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
