"""Our network beside transformers: random tiny models of every family give the same logits, log-probabilities, entropies and gradients,
and folders travel both ways. Takes the program model_probe and, where it is there, a folder of real assets."""

import pathlib
import sys
import tempfile
import unittest

import torch
import transformers
from safetensors.torch import load_file

import model_peers as peers

PROBE = sys.argv.pop(1)


class Families(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)

    def tearDown(self):
        self.temp.cleanup()

    def save(self, model, name="model"):
        model.save_pretrained(self.folder / name)
        return self.folder / name

    def compare_gradients(self, model, found, limit):
        tied = getattr(model.config, "tie_word_embeddings", False)
        for name, parameter in model.named_parameters():
            if tied and name == "lm_head.weight":
                continue
            with self.subTest(tensor=name):
                self.assertLess(peers.relative_error(found["grad." + name], parameter.grad), limit)

    def test_every_family_gives_the_logits_and_gradients_of_transformers(self):
        for name, config in peers.FAMILIES.items():
            with self.subTest(family=name):
                model = peers.random_model(config)
                rows = peers.random_rows(config.vocab_size, [19, 1, 33, 8])
                found = peers.probe(PROBE, self.save(model, name), rows, self.folder / "out.safetensors")
                loss, logits, logprobs, entropies = peers.token_loss(model, rows)
                loss.backward()
                # fp32 through three layers: sums in another order, a few units in the last place of numbers around ten.
                self.assertLess((found["logits"] - logits).abs().max().item(), 1e-4)
                self.assertLess((found["logprobs"] - logprobs).abs().max().item(), 1e-4)
                self.assertLess((found["entropy"] - entropies).abs().max().item(), 1e-4)
                self.compare_gradients(model, found, 1e-4)

    def test_activation_checkpointing_gives_equal_gradients(self):
        for name in ("llama3-scaling", "qwen3", "gpt2"):
            with self.subTest(family=name):
                model = peers.random_model(peers.FAMILIES[name])
                folder = self.save(model, name)
                rows = peers.random_rows(97, [19, 5, 33])
                plain = peers.probe(PROBE, folder, rows, self.folder / "plain.safetensors")
                kept = peers.probe(PROBE, folder, rows, self.folder / "kept.safetensors", "--checkpoint")
                self.assertEqual(plain.keys(), kept.keys())
                for tensor in plain:
                    self.assertTrue(torch.equal(plain[tensor], kept[tensor]), tensor)

    def test_folders_saved_by_us_load_in_transformers_and_come_back_unchanged(self):
        for name, config in peers.FAMILIES.items():
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(family=name, dtype=dtype):
                    model = peers.random_model(config).to(dtype)
                    folder = self.save(model, f"{name}-{dtype}")
                    ours, again = self.folder / "ours", self.folder / "again"
                    rows = peers.random_rows(config.vocab_size, [12, 7])
                    peers.probe(PROBE, folder, rows, self.folder / "a.safetensors", "--save", str(ours))
                    loaded = transformers.AutoModelForCausalLM.from_pretrained(ours)
                    self.assertEqual(loaded.dtype, dtype)
                    ids = torch.tensor([rows[0]])
                    original = transformers.AutoModelForCausalLM.from_pretrained(folder)
                    self.assertTrue(torch.equal(loaded(ids).logits, original(ids).logits))
                    loaded.save_pretrained(again)
                    back = self.folder / "back"
                    peers.probe(PROBE, again, rows, self.folder / "b.safetensors", "--save", str(back))
                    first, last = load_file(ours / "model.safetensors"), load_file(back / "model.safetensors")
                    self.assertEqual(first.keys(), last.keys())
                    for tensor in first:
                        self.assertTrue(torch.equal(first[tensor], last[tensor]), tensor)

    def test_score_models_give_the_scores_and_gradients_of_transformers(self):
        for name in ("llama", "mistral-window", "qwen2", "qwen3", "gpt2"):
            for labels in (1, 3):
                with self.subTest(family=name, labels=labels):
                    config = type(peers.FAMILIES[name])(**peers.FAMILIES[name].to_diff_dict())
                    model = peers.random_model(config, scores=labels)
                    folder = self.save(model, f"{name}-{labels}")
                    rows = peers.random_rows(97, [9, 17, 4])
                    ours = self.folder / f"ours-{name}-{labels}"
                    found = peers.probe(PROBE, folder, rows, self.folder / "out.safetensors", "--score", "--save", str(ours))
                    scores = torch.cat([model(input_ids=torch.tensor([row])).logits for row in rows])
                    (scores * torch.arange(1, labels + 1)).sum().backward()
                    self.assertLess((found["scores"] - scores).abs().max().item(), 1e-4)
                    ends = torch.tensor([9, 26, 30]) - 1
                    self.assertTrue(torch.equal(found["token_scores"][ends], found["scores"]))
                    self.compare_gradients(model, found, 1e-4)
                    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(ours)
                    row = torch.tensor([rows[1]])
                    self.assertTrue(torch.equal(loaded(row).logits, model(row).logits))


if __name__ == "__main__":
    unittest.main()
