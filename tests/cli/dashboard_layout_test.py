"""How kedge dashboard and kedge report look with many runs, on a desk's screen and on a phone's, in light and dark: what is where, what can be read,
what can be told apart. dashboard_layout_test.py KEDGE [FOLDER_FOR_SCREENSHOTS]"""

import json
import math
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import browser as browsers

KEDGE = sys.argv[1]
SHOTS = Path(sys.argv[2]) if len(sys.argv) > 2 else None
DESK, PHONE = (1280, 800), (390, 844)
LEAST_CONTRAST = 4.5  # WCAG 2, level AA, for text of any size

# In the page: every text that is seen and has less contrast than wanted, as "text: colour on colour, contrast". Half-transparent colours are laid
# over what is below them; the opacity of an element counts for its text.
PALE = """
  const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1]; };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (node) => { const layers = []; for (let one = node; one; one = one.parentElement) layers.push(parse(getComputedStyle(one).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]); };
  const pale = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), node = walker.currentNode.parentElement;
    if (!text || !node.checkVisibility({checkVisibilityCSS: true}) || node.closest("script, style, option, title, button:disabled")) continue;
    let opacity = 1;
    for (let one = node; one; one = one.parentElement) opacity *= Number(getComputedStyle(one).opacity);
    if (opacity === 0) continue;
    const style = getComputedStyle(node), ink = parse(node instanceof SVGElement ? style.fill : style.color), below = ground(node);
    ink[3] *= opacity;
    const [high, low] = [light(over(ink, below)), light(below)].sort((a, b) => b - a), contrast = (high + 0.05) / (low + 0.05);
    seen += 1;
    if (contrast < arguments[0]) pale.push(`${text.slice(0, 40)}: ${style.color} at ${opacity} on ${below.map(Math.round)}, ${contrast.toFixed(2)}`);
  }
  return {pale, seen};
"""
# Datasets of a chart: name, colour, dash, whether it is the pale raw curve.
SETS = """
  const chart = window.Chart && Chart.getChart(document.querySelector(`[id="chart-${arguments[0]}"] canvas`));
  return chart && chart.data.datasets.map((one) => ({run: one.run.name, series: one.series.name, tone: one.tone, dash: one.borderDash, raw: Boolean(one.raw),
    offset: one.borderDashOffset ?? 0, order: one.order ?? 0}));
"""
BOX = "const box = document.querySelector(arguments[0]).getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom]"
# What reaches over the right edge of the screen, and does not stand in a box that scrolls by itself.
WIDE = """
  const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth ? ["the page"] : [], end = document.documentElement.clientWidth + 0.5;
  for (const one of document.querySelectorAll("body *")) {
    if (!one.checkVisibility() || one.closest(".scroll, .wide, .tabs, svg, .skip, pre")) continue;
    if (one.getBoundingClientRect().right > end) wide.push(one.outerHTML.slice(0, 80));
  }
  return wide;
"""


def metrics_line(step, shift):
    value = math.tanh(step / 20) + 0.1 * math.sin(step) + shift
    numbers = {"train_rollouts/rewards": value, "val_rollouts/rewards": value, "train_rollouts/watch/polite": 1 - step / 30, "train_rollouts/init_policy_kl":
               step / 100, "train_rollouts/generation_length": 60 + step % 7, "train_rollouts/fraction_of_samples_properly_ended": min(1, 0.5 + step / 20),
               "timers/generate": 0.5, "train/step_time": 2.0, "train_optim/loss": 0.5 - value / 10}
    if step >= 10:  # a timer that came with a second start, as of a run resumed with another reward
        numbers["timers/critic_wait"] = 1.0
    return json.dumps({"step": step, "time": 1.8e9 + step, **numbers}) + "\n"


def make_run(folder, shift, end="complete", server_port=None):
    (folder / "rollouts").mkdir(parents=True)
    server = f"remote_rm: {{reward_model: {{ip: 127.0.0.1, port: {server_port}}}}}\n" if server_port else "reward: {sources: {words: {kind: regex}}}\n"
    (folder / "config.yaml").write_text(f"model: {{optim: {{lr: {shift}}}}}\nrollouts: {{keep: all}}\n" + server)
    (folder / "run.json").write_text(json.dumps([{"command_line": ["kedge", "reinforce"], "folder": str(folder), "max_steps": 20, "time": 1.8e9}]))
    (folder / "metrics.jsonl").write_text("".join(metrics_line(step, shift) for step in range(20 if end == "complete" else 3)))
    (folder / "log.txt").write_text("" if end == "complete" else "2027-01-15 00:00:01 error step 3: the reward server refused the rows of a prompt with a name_that_has_no_place_to_break_anywhere_in_it\n")
    if end == "complete":
        (folder / "summary.json").write_text(json.dumps({"reason": "complete", "step": 20, "max_steps": 20}))
    rows = [{"prompt_id": i, "slot": i, "sample": 0, "prompt": f"Prompt {i}", "response": f"answer {i}", "ids": [1, 2, 3], "prompt_length": 1, "finished": True,
             "reward": i / 3, "parts": {"words": i / 3, "watch/polite": 0.25, "watch/brevity_of_the_whole": 0.125}, "error": None, "engine_logprobs": [-1.0, -1.0],
             "logprobs": [-1.0, -1.0], "reference": [-1.0, -1.1], "kl": 0.1, "kl_sum": 0.2, "entropy": 1.0, "reward_with_kl": i, "baseline": 0.0,
             "advantage": 0.1, "trains": True} for i in range(4)]
    lines = [{"step": 2, "fingerprint": "x", "rows": len(rows)}, *rows]
    (folder / "rollouts" / "step-2.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


class Layout(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = Path(cls.temporary.name)
        for name, shift in (("base", 0.0), ("base-again", 0.0), ("b", 0.1), ("c", 0.2), ("d", 0.3), ("e", 0.4), ("f", 0.5)):
            make_run(cls.root / name, shift)
        make_run(cls.root / "a-run-with-a-rather-long-name-as-people-give-them", 0.6)
        make_run(cls.root / "failed", 0.7, end="failed")
        make_run(cls.root / "served", 0.8, server_port=browsers.free_port())
        cls.dashboard = subprocess.Popen([KEDGE, "dashboard", str(cls.root), "--port", "0"], stdout=subprocess.PIPE, text=True)
        cls.page = re.match(r"(\S+) shows 10 runs", cls.dashboard.stdout.readline()).group(1)
        cls.browser = browsers.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.dashboard.terminate()
        cls.dashboard.stdout.close()
        cls.dashboard.wait()
        cls.temporary.cleanup()

    def open(self, view, size, scheme="light"):
        self.browser.resize(*size)
        self.browser.prefer(scheme)
        self.browser.open("about:blank")
        self.browser.open(self.page + "#" + view)
        self.browser.wait("return performance.getEntriesByName('drawn').length > 0", "the page is drawn")
        self.browser.wait("return document.querySelector('#main .card, #main .item, #main .empty, #main table')", f"{view} has something in it")
        return self.browser

    def shot(self, name):
        if SHOTS:
            self.browser.screenshot(SHOTS / f"{name}.png")

    def test_ten_runs_leave_the_view_most_of_the_screen(self):
        for size in (DESK, PHONE):
            browser = self.open("curves", size)
            browser.wait(SETS, "a chart", "reward")
            self.assertEqual(browser.run("return document.querySelectorAll('.run').length"), 10)
            self.assertLess(browser.run(BOX, "#chart-reward")[1], 0.5 * size[1])  # the first chart begins in the upper half
            self.assertLess(browser.run(BOX, "#chart-reward")[3], size[1])  # and is whole
            self.assertLess(browser.run(BOX, "#runs")[3], 0.4 * size[1])
            self.shot(f"many_{size[0]}")

    def test_two_runs_on_a_phone_leave_room_and_all_numbers_are_a_key_away(self):
        browser = self.open("curves", PHONE)
        few = browser.run("return document.querySelectorAll('.run:first-child .tile').length")
        browser.keys("n")
        browser.wait("return document.querySelectorAll('.run:first-child .tile').length > arguments[0]", "all numbers", few)
        self.assertLess(browser.run(BOX, "#runs")[3], 0.4 * PHONE[1])
        browser.keys("n")
        browser.wait("return document.querySelectorAll('.run:first-child .tile').length === arguments[0]", "few again", few)

    def test_watched_rewards_are_among_the_first_numbers(self):
        browser = self.open("curves", DESK)
        labels = browser.run("return [...document.querySelectorAll('.run:not(.off) .tile .label')].map((one) => one.textContent)")
        self.assertEqual(labels[0], "reward")
        self.assertIn("polite", labels[1])

    def test_runs_that_are_shown_have_different_colours(self):
        browser = self.open("curves", DESK)
        for _ in range(2):  # the newest eight; then all ten
            sets = browser.wait(SETS, "a chart", "reward")
            tones = {one["run"]: one["tone"] for one in sets}
            self.assertEqual(len(set(tones.values())), len(tones))
            browser.run("for (const one of document.querySelectorAll('.run.off .run-name')) one.click()")
            browser.wait("return !document.querySelector('.run.off')", "all are shown")
            browser.wait(f"return (function() {{{SETS}}})('reward').some((one) => one.run === 'failed')", "all are drawn")
        self.assertEqual(len(tones), 10)

    def test_equal_runs_do_not_hide_each_other(self):
        browser = self.open("curves", DESK)
        browser.wait(f"const sets = (function() {{{SETS}}})('reward'); return sets && sets.some((one) => one.run === 'base-again')", "both are drawn")
        for series in ("train_rollouts/rewards", "val_rollouts/rewards"):
            first, second = (next(one for one in browser.run(SETS, "reward") if one["run"] == run and one["series"] == series and not one["raw"])
                             for run in ("base", "base-again"))
            self.assertNotEqual(first["tone"], second["tone"])
            self.assertNotEqual(first["dash"], second["dash"])
            self.assertTrue(second["dash"])  # drawn last, with gaps in which the first is seen
            self.assertLess(second["order"], first["order"])
        self.assertIn("Equal, number by number: base, base-again.", browser.run("return document.querySelector('#chart-reward .equal').textContent"))
        ink = browser.run("""const chart = Chart.getChart(document.querySelector('#chart-reward canvas')), data = chart.ctx.getImageData(0, 0, chart.canvas.width, chart.canvas.height).data;
          const count = (hex) => { const want = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)); let n = 0;
            for (let i = 0; i < data.length; i += 4) n += want.every((v, j) => Math.abs(data[i + j] - v) < 12); return n; };
          return arguments[0].map(count)""", [first["tone"], second["tone"]])
        self.assertGreater(min(ink), 60)  # both are seen
        self.assertTrue(browser.run("return document.querySelector('#chart-reward .equal').checkVisibility()"))

    def test_nothing_reaches_over_the_edge_and_the_chosen_tab_is_seen(self):
        for view in ("curves", "timing", "answers", "pairs", "samples", "servers", "settings", "notes"):
            for size in (DESK, PHONE):
                browser = self.open(view, size)
                if view == "notes":
                    browser.run("for (const one of document.querySelectorAll('.run.off .run-name')) one.click()")
                    browser.wait("return document.querySelector('#main').textContent.includes('no_place_to_break')", "the failed run's note")
                self.assertEqual(browser.run(WIDE), [], f"{view} at {size}")
                left, _, right, _ = browser.run(BOX, f"#tab-{view}")
                tabs = browser.run(BOX, "#tabs")
                self.assertGreaterEqual(left, tabs[0] - 0.5, view)
                self.assertLessEqual(right, tabs[2] + 0.5, view)
                self.shot(f"{view}_{size[0]}")

    def test_notes_can_be_read_on_a_phone(self):
        browser = self.open("notes", PHONE)
        browser.run("for (const one of document.querySelectorAll('.run.off .run-name')) one.click()")
        browser.wait("return document.querySelector('#main').textContent.includes('no_place_to_break')", "the failed run's note")
        cells = browser.run("return [...document.querySelectorAll('.notes td')].filter((one) => one.textContent).map((one) => [one.textContent, one.getClientRects()[0].height])")
        self.assertTrue(cells)
        for text, height in cells:  # a word is not broken into letters below each other
            self.assertLess(height, 24 * math.ceil(len(text) / 30) + 8, text)

    def test_servers_of_a_finished_run_are_no_alarm(self):
        browser = self.open("servers", DESK)
        browser.run("for (const one of document.querySelectorAll('.run.off .run-name')) one.click()")
        browser.wait("return document.querySelector('.server .badge')?.textContent === 'ended'", "the server is known to be gone")
        self.assertEqual(browser.run("return document.querySelector('.server .badge').className.trim()"), "badge")
        self.assertIn("The run is not going on", browser.run("return document.querySelector('.server').textContent"))

    def test_all_text_has_contrast(self):
        for scheme in ("light", "dark"):
            for view in ("curves", "timing", "answers", "servers", "settings", "notes"):
                browser = self.open(view, DESK, scheme)
                told = browser.run(PALE, LEAST_CONTRAST)
                self.assertGreater(told["seen"], 40)
                self.assertEqual(told["pale"], [], f"{view}, {scheme}")
        self.assertEqual(len(self.browser.run(PALE, 22)["pale"]), self.browser.run(PALE, 22)["seen"])  # the measure measures

    def report(self, *names, size=PHONE, scheme="light"):
        page = self.root.parent / (self.root.name + ".html")
        self.addCleanup(page.unlink, missing_ok=True)
        subprocess.run([KEDGE, "report", *(str(self.root / name) for name in names), "--out", str(page)], check=True, stdout=subprocess.DEVNULL)
        self.browser.resize(*size)
        self.browser.prefer(scheme)
        self.browser.open(page.as_uri())
        return self.browser

    def test_a_report_can_be_read_on_a_phone(self):
        browser = self.report("base", "failed")
        self.assertEqual(browser.run(WIDE), [])
        texts = browser.run("return [...document.querySelectorAll('main > section svg.chart text')].filter((one) => one.checkVisibility())"
                            ".map((one) => [one.textContent, one.getBBox().height * one.getScreenCTM().a, one.getBoundingClientRect().left])")
        self.assertGreater(len(texts), 20)
        for text, height, left in texts:
            self.assertGreater(height, 10, text)  # of a line: letters of about 9 pixels
            self.assertGreaterEqual(left, 0, text)
        overlaps = browser.run("""return [...document.querySelectorAll('main > section svg.chart')].flatMap((chart) => {
          const boxes = [...chart.querySelectorAll('text')].filter((one) => one.checkVisibility()).map((one) => [one.textContent, one.getBoundingClientRect()]);
          return boxes.flatMap(([text, a], i) => boxes.slice(i + 1).filter(([, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom - 3 && b.top < a.bottom - 3)
            .map(([other]) => `${text} on ${other}`)); })""")
        self.assertEqual(overlaps, [])
        self.shot("report_phone")

    def test_a_reports_labels_stay_with_their_values(self):
        browser = self.report("base")
        broken = browser.run("return [...document.querySelectorAll('.pieces span, .legend span')].filter((one) => one.textContent.length < 40 && one.getClientRects().length"
                             " && (one.getClientRects().length > 1 || one.getBoundingClientRect().height > 30)).map((one) => one.textContent)")
        self.assertGreater(browser.run("return document.querySelectorAll('.pieces span').length"), 6)
        self.assertEqual(broken, [])

    def test_a_report_has_contrast_and_no_share_above_everything(self):
        for scheme in ("light", "dark"):
            browser = self.report("base", "b", size=DESK, scheme=scheme)
            told = browser.run(PALE, LEAST_CONTRAST)
            self.assertGreater(told["seen"], 100)
            self.assertEqual(told["pale"], [], scheme)
        shares = browser.run("return [...document.querySelectorAll('svg.chart text')].map((one) => one.textContent).filter((one) => one.endsWith('%'))")
        self.assertIn("100 %", shares)
        self.assertLessEqual(max(float(one[:-1]) for one in shares), 100)

    def test_a_report_times_steps_as_the_dashboard_does(self):
        browser = self.open("timing", DESK)
        rows = browser.wait("const card = [...document.querySelectorAll('.timing')].find((one) => one.querySelector('h3').textContent === 'base');"
                            "return card && [...card.querySelectorAll('tbody tr')].map((row) => [...row.children].map((one) => one.textContent))", "the table of times")
        legend = self.report("base", size=DESK).run("return [...document.querySelectorAll('figure')].find((one) => one.textContent.includes('a step took'))"
                                                    ".querySelector('.legend').textContent")
        # Half a second of 2 a step; 1 s of waiting in half of the steps; the rest.
        self.assertEqual([(name, share) for name, _, share in rows], [("generation", "25 %"), ("wait for rewards", "25 %"), ("the rest", "50 %")])
        for name, _, share in rows:
            self.assertRegex(legend, rf"{name} [0-9.]+ s, {share}")


if __name__ == "__main__":
    if not browsers.programs():
        print("skipped: no chromium and chromedriver; scripts/setup --tests installs them")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
