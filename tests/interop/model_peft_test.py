"""Our adapters beside peft's: what either saves the other loads, and logits and gradients are equal. Takes the program model_probe."""

import json
import pathlib
import sys
import tempfile
import unittest

import peft
import torch
import transformers

import model_peers as peers

PROBE = sys.argv.pop(1)

CASES = {
    "llama": ("llama", dict(target_modules=["q_proj", "v_proj", "down_proj"])),
    "rank-stabilised": ("llama", dict(target_modules=["q_proj", "up_proj"], use_rslora=True)),
    "one-layer": ("llama", dict(target_modules=["k_proj", "o_proj"], layers_to_transform=[1])),
    "here-and-there": ("llama", dict(target_modules=["model.layers.0.self_attn.q_proj", "model.layers.2.mlp.up_proj"])),
    "everything": ("qwen3", dict(target_modules="all-linear")),
    "gpt2": ("gpt2", dict(target_modules=["c_attn", "mlp.c_proj"], fan_in_fan_out=True)),
}


class Adapters(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)

    def tearDown(self):
        self.temp.cleanup()

    def make(self, name):
        """(folder of the base, peft's model with adapters off zero, folder of its adapter)"""
        family, options = CASES[name]
        base = peers.random_model(peers.FAMILIES[family])
        base.save_pretrained(self.folder / name)
        model = peft.get_peft_model(base, peft.LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, task_type="CAUSAL_LM", **options))
        with torch.no_grad():
            for parameter_name, parameter in model.named_parameters():
                if "lora_" in parameter_name:
                    parameter.copy_(torch.randn_like(parameter) * 0.1)
        model.save_pretrained(self.folder / (name + "-adapter"))
        return self.folder / name, model.eval(), self.folder / (name + "-adapter")

    def test_adapters_of_peft_load_and_give_its_logits_and_gradients(self):
        for name in CASES:
            with self.subTest(case=name):
                base, model, adapter = self.make(name)
                rows = peers.random_rows(97, [19, 1, 33])
                found = peers.probe(PROBE, base, rows, self.folder / "out.safetensors", "--adapter", str(adapter))
                loss, logits, logprobs, entropies = peers.token_loss(model, rows)
                loss.backward()
                self.assertLess((found["logits"] - logits).abs().max().item(), 1e-4)
                self.assertLess((found["logprobs"] - logprobs).abs().max().item(), 1e-4)
                wanted = {n.removeprefix("base_model.model.").replace(".default", ""): p.grad for n, p in model.named_parameters() if p.requires_grad}
                self.assertEqual({"grad." + n for n in wanted}, {n for n in found if n.startswith("grad.")})
                for tensor, gradient in wanted.items():
                    self.assertLess(peers.relative_error(found["grad." + tensor], gradient), 1e-4, tensor)

    def test_adapters_saved_by_us_load_in_peft(self):
        for name in CASES:
            with self.subTest(case=name):
                base, model, adapter = self.make(name)
                rows = peers.random_rows(97, [12, 7])
                ours = self.folder / (name + "-ours")
                peers.probe(PROBE, base, rows, self.folder / "out.safetensors", "--adapter", str(adapter), "--save", str(ours))
                loaded = peft.PeftModel.from_pretrained(transformers.AutoModelForCausalLM.from_pretrained(base), str(ours)).eval()
                theirs = {n for n, _ in model.named_parameters() if "lora_" in n}
                self.assertEqual({n for n, _ in loaded.named_parameters() if "lora_" in n}, theirs)
                for row in rows:
                    ids = torch.tensor([row])
                    self.assertLess((loaded(input_ids=ids).logits - model(input_ids=ids).logits).abs().max().item(), 1e-4)
                self.assertEqual(json.loads((ours / "adapter_config.json").read_text())["r"], 4)


if __name__ == "__main__":
    unittest.main()
