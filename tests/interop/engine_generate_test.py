"""kedge generate beside transformers and peft: greedy completions of real and random models are the same ids with the same
log-probabilities; and kedge generate on a terminal. Takes the program kedge and the folder of real assets, which need not be there."""

import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

import model_peers as peers

KEDGE = sys.argv.pop(1)
ASSETS = pathlib.Path(os.environ.get("KEDGE_ASSETS", sys.argv.pop(1)))
STORIES = ASSETS / "models" / "tinystories-656k"
TEXTS = ["Once upon a time, there was a little girl named Lily.", "The dog ran to the park. He was happy!", "Tom", "One day"]


def run(*arguments, lines=(), code=0):
    given = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([KEDGE, "generate", *map(str, arguments)], input=given, capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError(f"kedge generate {arguments}: {done.returncode}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def greedy(model, ids, count, **settings):
    """(new ids, their log-probabilities) as transformers finds them."""
    prompt = torch.tensor([ids])
    with torch.no_grad():
        row = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=count, pad_token_id=0, **settings)[0]
        logits = model(input_ids=row[None]).logits[0].double()
    new = row[len(ids):]
    return new.tolist(), logits[len(ids) - 1:-1].log_softmax(-1).gather(1, new[:, None])[:, 0]


class Generate(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)

    def tearDown(self):
        self.temp.cleanup()

    def compare(self, line, wanted):
        ids, logprobs = wanted
        self.assertEqual(line["ids"], ids)
        # fp32 through a few layers: sums in another order, a few units in the last place of numbers around ten.
        self.assertLess((torch.tensor(line["logprobs"], dtype=torch.float64) - logprobs).abs().max().item(), 1e-4)

    def test_every_family_completes_as_transformers_does(self):
        for name, config in peers.FAMILIES.items():
            with self.subTest(family=name):
                model = peers.random_model(config)
                folder = self.folder / name
                model.save_pretrained(folder)
                # Frequencies that change with the length want a pass over all of it, which no cache gives: stay within the first length.
                count = 8 if name == "llama-dynamic" else 24
                rows = peers.random_rows(config.vocab_size, [5, 1, 7, 8] if name == "llama-dynamic" else [19, 1, 33, 8])
                lines = run("--model", folder, "--use-greedy", "--max-new-tokens", count, "--max-running", 3, lines=[{"ids": row} for row in rows])
                for line, row in zip(lines, rows, strict=True):
                    self.assertEqual(line["prompt_ids"], row)
                    wanted = greedy(model, row, count)
                    self.compare(line, wanted)
                    self.assertEqual(line["finish"], "length" if len(wanted[0]) == count and wanted[0][-1] != config.eos_token_id else "end")

    def test_adapters_complete_as_in_peft(self):
        cases = {"llama": ["q_proj", "v_proj", "down_proj"], "qwen3": ["k_proj", "o_proj", "gate_proj"], "gpt2": ["c_attn", "c_proj"]}
        for family, targets in cases.items():
            with self.subTest(family=family):
                base = peers.random_model(peers.FAMILIES[family])
                base.save_pretrained(self.folder / family)
                lora = peft.LoraConfig(r=4, lora_alpha=10, target_modules=targets, task_type="CAUSAL_LM", fan_in_fan_out=family == "gpt2")
                model = peft.get_peft_model(base, lora).eval()
                torch.manual_seed(3)
                with torch.no_grad():
                    for name, parameter in model.named_parameters():
                        if "lora_" in name:
                            parameter.normal_(0, 0.2)
                model.save_pretrained(self.folder / "adapter")
                rows = peers.random_rows(97, [17, 5])
                lines = run("--model", self.folder / family, "--adapter", self.folder / "adapter", "--use-greedy", "--max-new-tokens", 20, lines=[{"ids": row} for row in rows])
                for line, row in zip(lines, rows, strict=True):
                    self.compare(line, greedy(model, row, 20))

    @unittest.skipUnless(STORIES.is_dir(), "no tinystories-656k; KEDGE_ASSETS names the assets folder")
    def test_a_real_model_tells_the_story_that_transformers_tells(self):
        model = transformers.AutoModelForCausalLM.from_pretrained(STORIES).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(STORIES)
        for special, flags in ((False, ()), (True, ("--add-special",))):
            lines = run("--model", STORIES, "--use-greedy", "--max-new-tokens", 300, *flags, lines=[{"prompt": text} for text in TEXTS])
            for line, text in zip(lines, TEXTS, strict=True):
                prompt = tokenizer(text, add_special_tokens=special)["input_ids"]
                wanted = greedy(model, prompt, 300)
                self.compare(line, wanted)
                self.assertEqual(text + line["response"], tokenizer.decode(prompt + wanted[0], skip_special_tokens=True))
                self.assertEqual(line["finish"], "end" if wanted[0][-1] == tokenizer.eos_token_id else "length")
            if special:
                self.assertIn("end", [line["finish"] for line in lines])

    @unittest.skipUnless(STORIES.is_dir(), "no tinystories-656k; KEDGE_ASSETS names the assets folder")
    def test_the_end_of_text_may_not_come_before_the_least_length(self):
        model = transformers.AutoModelForCausalLM.from_pretrained(STORIES).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(STORIES)
        prompt = tokenizer(TEXTS[0])["input_ids"]
        free, _ = greedy(model, prompt, 400)
        self.assertEqual(free[-1], tokenizer.eos_token_id)
        least = len(free) + 20
        line = run("--model", STORIES, "--use-greedy", "--min-new-tokens", least, "--max-new-tokens", least + 30, lines=[{"ids": prompt}])[0]
        self.compare(line, greedy(model, prompt, least + 30, min_new_tokens=least))
        # All ids that end a text are held back, not only the tokenizer's own.
        shutil.copytree(STORIES, self.folder / "ends")
        ends = [tokenizer.eos_token_id, free[3]]
        (self.folder / "ends" / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
        line = run("--model", self.folder / "ends", "--use-greedy", "--min-new-tokens", 8, "--max-new-tokens", 20, lines=[{"ids": prompt}])[0]
        self.compare(line, greedy(model, prompt, 20, min_new_tokens=8, eos_token_id=ends))
        self.assertNotIn(free[3], line["ids"][:8])

    def test_logits_that_are_no_numbers_are_an_error_of_their_line(self):
        folder = self.folder / "model"
        peers.random_model(peers.FAMILIES["llama"]).save_pretrained(folder)
        tensors = load_file(folder / "model.safetensors")
        tensors["model.embed_tokens.weight"][7] = float("nan")
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        lines = run("--model", folder, "--max-new-tokens", 1, lines=[{"ids": [5]}, {"ids": [7]}, {"ids": [6]}], code=2)
        self.assertEqual([line["finish"] for line in lines], ["length", "error", "length"])
        self.assertIn("standard input:2", lines[1]["error"])

    def test_on_a_terminal_text_is_shown_as_it_comes(self):
        folder = self.folder / "model"
        tokenizer = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": {"type": "Fuse"},
                     "model": {"type": "BPE", "vocab": {letter: i for i, letter in enumerate("abcdefgh")}, "merges": []}}
        letters = self.folder / "letters"
        letters.mkdir()
        (letters / "tokenizer.json").write_text(json.dumps(tokenizer))
        (letters / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
        subprocess.run([KEDGE, "init", folder, "--shape", "tiny", "--tokenizer", letters], check=True, capture_output=True)
        flags = ["--model", folder, "--use-greedy", "--max-new-tokens", 5, "--text", "ab"]
        text = run(*flags)[0]["response"]
        self.assertEqual(len(text), 5)
        self.assertEqual(self.on_terminal(*flags), text + "\r\n")
        self.assertEqual(json.loads(self.on_terminal(*flags, "--json"))["response"], text)
        for end in [b"/quit", b"/exit"]:
            chat = self.on_terminal(*flags[:-2], "--chat", said=b"/help\nab\n" + end + b"\n")
            self.assertIn(text + "\r\n", chat)
        self.one_signal_ends_the_wait_for_a_terminal(folder)

    def one_signal_ends_the_wait_for_a_terminal(self, folder):
        master, slave = pty.openpty()
        child = subprocess.Popen([KEDGE, "generate", "--model", folder], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.close(slave)
        line = b""
        while b"reading JSON lines from the terminal" not in line:
            line = child.stderr.readline()
            self.assertTrue(line, "it ended without a word")
        child.send_signal(signal.SIGINT)
        try:
            child.communicate(timeout=120)
        finally:
            child.kill()
            os.close(master)
        self.assertEqual(child.returncode, 130)

    def on_terminal(self, *arguments, said=None):
        """What the program writes to a terminal that is its standard output, and its input too where something is said."""
        master, slave = pty.openpty()
        child = subprocess.Popen([KEDGE, "generate", *map(str, arguments)], stdin=subprocess.DEVNULL if said is None else slave, stdout=slave, stderr=subprocess.PIPE)
        os.close(slave)
        if said:
            os.write(master, said)
        shown = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # how Linux says that the other side is closed
                break
            if not piece:
                break
            shown += piece
        errors = child.stderr.read().decode()
        child.stderr.close()
        os.close(master)
        self.assertEqual(child.wait(), 0, errors)
        if said:
            self.assertIn("> ", errors)
        return shown.decode()


if __name__ == "__main__":
    unittest.main(verbosity=2)  # tools/test_summary counts what is skipped
