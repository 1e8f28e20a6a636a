"""Our adapters beside peft's: what either saves the other loads, and logits and gradients are equal. Takes the program model_probe."""

import copy
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

    def make_scores(self, family, base_has_head):
        """(folder of the base, peft's reward model with a trained head, folder of its adapter)"""
        base = peers.random_model(copy.deepcopy(peers.FAMILIES[family]), scores=2)
        base.save_pretrained(self.folder / family)
        if not base_has_head:
            language = peers.random_model(copy.deepcopy(peers.FAMILIES[family]))
            language.base_model.load_state_dict(base.base_model.state_dict())
            language.save_pretrained(self.folder / family)
        options = dict(fan_in_fan_out=True) if family == "gpt2" else {}
        targets = ["c_attn"] if family == "gpt2" else ["q_proj", "down_proj"]
        config = peft.LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, task_type="SEQ_CLS", target_modules=targets, **options)
        model = peft.get_peft_model(base, config)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.requires_grad:
                    parameter.copy_(torch.randn_like(parameter) * 0.1)
        model.save_pretrained(self.folder / "adapter")
        return self.folder / family, model.eval(), self.folder / "adapter"

    def test_reward_adapters_of_peft_load_with_their_head_and_give_its_scores_and_gradients(self):
        for family in ("llama", "qwen3", "gpt2"):
            for base_has_head in (True, False):
                with self.subTest(family=family, base_has_head=base_has_head):
                    base, model, adapter = self.make_scores(family, base_has_head)
                    rows = peers.random_rows(97, [19, 1, 33])
                    found = peers.probe(PROBE, base, rows, self.folder / "out.safetensors", "--score", "--adapter", str(adapter))
                    scores = torch.cat([model(input_ids=torch.tensor([row])).logits for row in rows])
                    self.assertLess((found["scores"] - scores).abs().max().item(), 1e-4)
                    (scores * torch.tensor([1, 2])).sum().backward()
                    wanted = {
                        n.removeprefix("base_model.model.").replace(".default", "").replace(".modules_to_save", ""): p.grad
                        for n, p in model.named_parameters()
                        if p.requires_grad
                    }
                    self.assertIn("score.weight", wanted)
                    self.assertEqual({"grad." + n for n in wanted}, {n for n in found if n.startswith("grad.")})
                    for tensor, gradient in wanted.items():
                        self.assertLess(peers.relative_error(found["grad." + tensor], gradient), 1e-4, tensor)

    def test_reward_adapters_saved_by_us_load_in_peft_with_their_head(self):
        for family in ("llama", "gpt2"):
            with self.subTest(family=family):
                base, model, adapter = self.make_scores(family, True)
                rows = peers.random_rows(97, [12, 7])
                ours = self.folder / "ours"
                peers.probe(PROBE, base, rows, self.folder / "out.safetensors", "--score", "--adapter", str(adapter), "--save", str(ours))
                # A base whose own head is another: what counts must come out of the adapter's folder.
                other = transformers.AutoModelForSequenceClassification.from_pretrained(base)
                torch.nn.init.normal_(other.score.weight)
                loaded = peft.PeftModel.from_pretrained(other, str(ours)).eval()
                for row in rows:
                    ids = torch.tensor([row])
                    self.assertLess((loaded(input_ids=ids).logits - model(input_ids=ids).logits).abs().max().item(), 1e-4)


if __name__ == "__main__":
    unittest.main()
