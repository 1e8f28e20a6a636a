"""Our network on a GPU beside transformers on the same one. Takes the program model_probe of a CUDA build. Not part of scripts/test: bench/gpu_model
runs it where there is a GPU.

fp32: the same bounds as on the CPU. bf16: both sides round every intermediate result, in different places, so neither is the truth; each is
held against transformers in fp32 (on the bf16 weights), and ours may be at most one and a half times as far from it as transformers' own bf16
is, in the mean over all numbers."""

import pathlib
import sys
import tempfile
import unittest

import torch
import transformers

import model_peers as peers

PROBE = sys.argv.pop(1)
torch.backends.cuda.matmul.allow_tf32 = False


def gradients(model, rows):
    model.zero_grad()
    loss, logits, _, _ = peers.token_loss(model, rows, "cuda")
    loss.backward()
    tied = getattr(model.config, "tie_word_embeddings", False)
    return logits, {n: p.grad.float().cpu() for n, p in model.named_parameters() if not (tied and n == "lm_head.weight")}


class OnTheGpu(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)

    def tearDown(self):
        self.temp.cleanup()

    def test_fp32_equals_transformers(self):
        worst_logit = worst_gradient = 0
        for name, config in peers.FAMILIES.items():
            with self.subTest(family=name):
                model = peers.random_model(config)
                model.save_pretrained(self.folder / name)
                rows = peers.random_rows(config.vocab_size, [19, 1, 33, 8])
                found = peers.probe(PROBE, self.folder / name, rows, self.folder / "out.safetensors", "--device", "cuda")
                logits, wanted = gradients(model.cuda(), rows)
                difference = (found["logits"] - logits.cpu()).abs().max().item()
                worst_logit = max(worst_logit, difference)
                self.assertLess(difference, 1e-4)
                for tensor, gradient in wanted.items():
                    error = peers.relative_error(found["grad." + tensor], gradient)
                    worst_gradient = max(worst_gradient, error)
                    self.assertLess(error, 1e-4, tensor)
        print(f"fp32: largest logit difference {worst_logit:.2e}, largest relative gradient error {worst_gradient:.2e}")

    def test_bf16_is_as_close_to_fp32_as_transformers(self):
        worst = 0
        for name, config in peers.FAMILIES.items():
            with self.subTest(family=name):
                folder = self.folder / name
                peers.random_model(config).to(torch.bfloat16).save_pretrained(folder)
                rows = peers.random_rows(config.vocab_size, [19, 4, 33, 8])
                found = peers.probe(PROBE, folder, rows, self.folder / "out.safetensors", "--device", "cuda", "--dtype", "bf16")
                load = transformers.AutoModelForCausalLM.from_pretrained
                truth_logits, truth = gradients(load(folder, dtype=torch.float32).cuda(), rows)
                their_logits, theirs = gradients(load(folder, dtype=torch.bfloat16).cuda(), rows)
                ours = (found["logits"].cuda() - truth_logits).abs().mean() / (their_logits - truth_logits).abs().mean()
                worst = max(worst, ours.item())
                self.assertLess(ours.item(), 1.5)
                far = {t: (found["grad." + t] - g).norm() for t, g in truth.items()}
                their_far = {t: (theirs[t] - g).norm() for t, g in truth.items()}
                ratio = (sum(d**2 for d in far.values()) / sum(d**2 for d in their_far.values())) ** 0.5
                worst = max(worst, ratio.item())
                self.assertLess(ratio.item(), 1.5)
        print(f"bf16: at most {worst:.2f} times as far from fp32 as transformers")


if __name__ == "__main__":
    unittest.main()
