"""The commands for models beside transformers and peft: new folders load there, log-probabilities, rewards and merged adapters are the same.
Takes the program kedge and the folder of real assets, which need not be there."""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

import model_peers as peers

transformers.logging.disable_progress_bar()
KEDGE = sys.argv.pop(1)
ASSETS = pathlib.Path(os.environ.get("KEDGE_ASSETS", sys.argv.pop(1)))
STORIES = ASSETS / "models" / "tinystories-656k"
FAMILIES = {"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "gpt2": "GPT2LMHeadModel"}


def run(*arguments, lines=()):
    """(standard output, standard error) of a command that must succeed."""
    given = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([KEDGE, *map(str, arguments)], input=given, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"kedge {arguments}: {done.returncode}\n{done.stderr}")
    return done.stdout, done.stderr


def kedge(*arguments, lines=()):
    """What the command prints, a JSON value a line."""
    return [json.loads(line) for line in run(*arguments, lines=lines)[0].splitlines()]


def logprobs_of(model, ids):
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0].double()
    return logits[:-1].log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0]


class Commands(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)

    def tearDown(self):
        self.temp.cleanup()

    def compare_logprobs(self, folder, model, rows, *flags):
        for line, row in zip(kedge("logprobs", "--model", folder, *flags, lines=[{"ids": row} for row in rows]), rows, strict=True):
            self.assertEqual(line["ids"], row)
            found = torch.tensor(line["logprobs"], dtype=torch.float64)
            self.assertEqual(len(found), len(row) - 1)
            self.assertLess((found - logprobs_of(model, row)).abs().max().item(), 1e-4)

    def test_a_new_folder_of_every_family_loads_in_transformers_and_gives_its_logprobs(self):
        for family, architecture in FAMILIES.items():
            for tied in ("--tied", "--no-tied"):
                with self.subTest(family=family, tied=tied):
                    out = self.folder / f"{family}{tied}"
                    printed = kedge("init", out, "--shape", "tiny", "--family", family, tied)[0]
                    model, loading = transformers.AutoModelForCausalLM.from_pretrained(out, output_loading_info=True)
                    self.assertFalse(loading["missing_keys"] or loading["unexpected_keys"], loading)
                    self.assertEqual(type(model).__name__, architecture)
                    self.assertEqual(model.num_parameters(), printed["parameters"])
                    self.assertEqual(model.config.tie_word_embeddings, tied == "--tied")
                    self.assertIsNone(model.config.bos_token_id)
                    rows = peers.random_rows(512, [23, 2, 9])
                    self.compare_logprobs(out, model.eval(), rows)
                    self.compare_logprobs(out, model, rows, "--batch-tokens", 11)

    def test_the_named_shapes_are_configurations_transformers_accepts(self):
        for shape, parameters in {"nano": 31597056, "135m": 134515008}.items():
            with self.subTest(shape=shape):
                out = self.folder / shape
                kedge("init", out, "--shape", shape, "--dtype", "bf16")
                model, loading = transformers.AutoModelForCausalLM.from_pretrained(out, output_loading_info=True)
                self.assertFalse(loading["missing_keys"] or loading["unexpected_keys"], loading)
                self.assertEqual(model.num_parameters(), parameters)
                self.assertEqual(model.dtype, torch.bfloat16)

    def test_weights_are_drawn_as_transformers_draws_them(self):
        kedge("init", self.folder / "new", "--shape", "tiny", "--hidden-size", 256)
        for name, tensor in load_file(self.folder / "new" / "model.safetensors").items():
            if "norm" in name:
                self.assertTrue(torch.equal(tensor, torch.ones_like(tensor)), name)
            else:  # 16,384 draws at least: the standard error of the deviation is 0.55%
                self.assertLess(abs(tensor.std().item() / 0.02 - 1), 0.03, name)

    @unittest.skipUnless(STORIES.is_dir(), "no tinystories-656k; KEDGE_ASSETS names the assets folder")
    def test_a_real_model_gives_the_logprobs_of_transformers(self):
        model = transformers.AutoModelForCausalLM.from_pretrained(STORIES).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(STORIES)
        texts = ["Once upon a time, there was a little girl named Lily.", "The dog ran to the park. He was happy!", "Tom"]
        for flags, special in (((), False), (("--add-special",), True)):
            found = kedge("logprobs", "--model", STORIES, "--entropy", *flags, lines=[{"text": text} for text in texts])
            for line, text in zip(found, texts, strict=True):
                ids = tokenizer(text, add_special_tokens=special)["input_ids"]
                self.assertEqual(line["ids"], ids)
                if len(ids) < 2:
                    continue
                wanted = logprobs_of(model, ids)
                self.assertLess((torch.tensor(line["logprobs"], dtype=torch.float64) - wanted).abs().max().item(), 1e-4)
                with torch.no_grad():
                    log_softmax = model(input_ids=torch.tensor([ids])).logits[0, :-1].double().log_softmax(-1)
                entropy = -(log_softmax.exp() * log_softmax).sum(-1)
                self.assertLess((torch.tensor(line["entropy"], dtype=torch.float64) - entropy).abs().max().item(), 1e-4)

    @unittest.skipUnless(STORIES.is_dir(), "no tinystories-656k; KEDGE_ASSETS names the assets folder")
    def test_export_keeps_the_files_beside_the_weights_byte_for_byte(self):
        out = self.folder / "out"
        kedge("export", STORIES, out)
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
            self.assertEqual((out / name).read_bytes(), (STORIES / name).read_bytes(), name)
        ours, theirs = load_file(out / "model.safetensors"), transformers.AutoModelForCausalLM.from_pretrained(STORIES).state_dict()
        for name, tensor in ours.items():
            self.assertTrue(torch.equal(tensor, theirs[name]), name)
        loaded = transformers.AutoModelForCausalLM.from_pretrained(out)
        self.assertTrue(torch.equal(loaded.get_output_embeddings().weight, theirs["model.embed_tokens.weight"]))
        self.assertEqual(transformers.AutoTokenizer.from_pretrained(out)("Once upon")["input_ids"], transformers.AutoTokenizer.from_pretrained(STORIES)("Once upon")["input_ids"])

    def save_adapter(self, config, targets, dtype=torch.float32, **changes):
        """A random base and a random adapter (fp32) on it, saved; returns the PEFT model."""
        base = peers.random_model(config).to(dtype)
        base.save_pretrained(self.folder / "base")
        model = peft.get_peft_model(base, peft.LoraConfig(r=4, lora_alpha=10, target_modules=targets, task_type="CAUSAL_LM", **changes))
        torch.manual_seed(3)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "lora_" in name:
                    parameter.normal_(0, 0.2)
        model.save_pretrained(self.folder / "adapter")
        return model.eval()

    def test_a_merged_adapter_gives_the_model_that_peft_merges(self):
        cases = {
            "llama": (["q_proj", "v_proj", "down_proj"], {}),
            "qwen3": (["k_proj", "o_proj", "gate_proj"], {"use_rslora": True}),
            "gpt2": (["c_attn", "c_proj"], {"fan_in_fan_out": True}),
        }
        for family, (targets, changes) in cases.items():
            with self.subTest(family=family):
                model = self.save_adapter(peers.FAMILIES[family], targets, **changes)
                base, adapter = self.folder / "base", self.folder / "adapter"
                rows = peers.random_rows(97, [17, 5])
                with_adapter = kedge("logprobs", "--model", base, "--adapter", adapter, lines=[{"ids": row} for row in rows])
                kept = self.folder / f"kept-{family}"
                kedge("export", base, kept, "--adapter", adapter)
                out = self.folder / f"merged-{family}"
                kedge("export", base, out, "--adapter", adapter, "--merge")

                again = peft.PeftModel.from_pretrained(transformers.AutoModelForCausalLM.from_pretrained(base), kept).eval()
                for line, row in zip(with_adapter, rows, strict=True):
                    wanted = logprobs_of(model, row)
                    self.assertLess((torch.tensor(line["logprobs"], dtype=torch.float64) - wanted).abs().max().item(), 1e-4)
                    self.assertLess((logprobs_of(again, row) - wanted).abs().max().item(), 1e-4)
                merged = model.merge_and_unload()
                theirs = merged.state_dict()
                for name, tensor in load_file(out / "model.safetensors").items():
                    self.assertLess((tensor - theirs[name]).abs().max().item(), 1e-4, name)
                loaded = transformers.AutoModelForCausalLM.from_pretrained(out)
                ids = torch.tensor([rows[0]])
                self.assertLess((loaded(ids).logits - merged(ids).logits).abs().max().item(), 1e-4)

    def test_a_merged_bf16_model_is_rounded_once(self):
        name = "model.layers.0.self_attn.q_proj"
        for dtype in (torch.float32, torch.bfloat16):
            with self.subTest(base=dtype):
                self.save_adapter(peers.FAMILIES["llama"], ["q_proj"], dtype=dtype)
                out = self.folder / f"merged-{dtype}"
                kedge("export", self.folder / "base", out, "--adapter", self.folder / "adapter", "--merge", "--dtype", "bf16")
                weight = load_file(self.folder / "base" / "model.safetensors")[name + ".weight"]
                adapter = load_file(self.folder / "adapter" / "adapter_model.safetensors")
                a, b = (adapter[f"base_model.model.{name}.lora_{side}.weight"].double() for side in "AB")
                wanted = (weight.double() + 2.5 * b @ a).float().bfloat16()
                found = load_file(out / "model.safetensors")[name + ".weight"]
                self.assertEqual((weight.dtype, found.dtype), (dtype, torch.bfloat16))
                # fp32's own error may fall on the other side of a rounding border, one in thousands; a second rounding moves a fifth.
                self.assertGreater((found == wanted).float().mean().item(), 0.998)

    @unittest.skipUnless(STORIES.is_dir(), "no tinystories-656k; KEDGE_ASSETS names the assets folder")
    def test_a_run_and_its_checkpoints_are_exported_for_transformers_and_peft(self):
        base = self.folder / "base"
        kedge("init", base, "--shape", "tiny", "--tokenizer", STORIES)
        data = self.folder / "rows.jsonl"
        data.write_text("".join(json.dumps({"input": f"Tom has {i}", "output": f" and {i} more."}) + "\n" for i in range(32)))
        rows = peers.random_rows(512, [17, 5])
        for name, flags in {"whole": [], "lora": ["model.peft.peft_scheme=lora", "model.peft.lora_tuning.adapter_dim=4"]}.items():
            done = self.folder / name
            run("sft", "trainer.accelerator=cpu", "trainer.precision=32", "trainer.threads=1", f"model.restore_from_path={base}",
                f"model.data.train_ds.file_path={data}", f"model.data.validation_ds.file_path={data}", "model.data.train_ds.global_batch_size=4",
                "model.data.train_ds.micro_batch_size=4", "trainer.sft.max_steps=4", "trainer.sft.val_check_interval=2", "model.optim.lr=1e-2",
                "model.optim.sched.warmup_steps=0", "exp_manager.create_tensorboard_logger=false", f"exp_manager.explicit_log_dir={done}", *flags)
            checkpoint = next(one for one in (done / "checkpoints").iterdir() if "step=2-" in one.name)
            for source, step in (([done], 4), ([done, "--step", 2], 2), ([checkpoint], 2)):
                with self.subTest(name=name, source=source):
                    out = self.folder / f"{name}-{len(source)}-{step}"
                    told = kedge("export", source[0], out, *source[1:], *(["--merge"] if flags else []))[0]
                    self.assertEqual((told["holds"], told["step"]), ("model", step))
                    model, loading = transformers.AutoModelForCausalLM.from_pretrained(out, output_loading_info=True)
                    self.assertFalse(loading["missing_keys"] or loading["unexpected_keys"], loading)
                    self.compare_logprobs(out, model.eval(), rows)
                    transformers.AutoTokenizer.from_pretrained(out)
                    if flags:
                        kept = self.folder / f"kept-{len(source)}-{step}"
                        self.assertEqual(kedge("export", source[0], kept, *source[1:])[0]["holds"], "adapter")
                        again = peft.PeftModel.from_pretrained(transformers.AutoModelForCausalLM.from_pretrained(base), kept).eval()
                        for row in rows:
                            self.assertLess((logprobs_of(again, row) - logprobs_of(model, row)).abs().max().item(), 1e-4)
                    else:
                        self.compare_logprobs(done if step == 4 else checkpoint, model, rows)
            first, last = (transformers.AutoModelForCausalLM.from_pretrained(self.folder / f"{name}-{place}") for place in ("3-2", "1-4"))
            self.assertGreater((logprobs_of(first, rows[0]) - logprobs_of(last, rows[0])).abs().max().item(), 1e-3)

    def test_half_precision_comes_through_unchanged(self):
        peers.random_model(peers.FAMILIES["qwen2"]).half().save_pretrained(self.folder / "half")
        kedge("export", self.folder / "half", self.folder / "out")
        wanted, found = (load_file(self.folder / place / "model.safetensors") for place in ("half", "out"))
        self.assertEqual(found.keys(), wanted.keys())
        for name, tensor in found.items():
            self.assertEqual(tensor.dtype, torch.float16)
            self.assertTrue(torch.equal(tensor, wanted[name]), name)

    def test_inspect_tells_of_an_adapter(self):
        self.save_adapter(peers.FAMILIES["llama"], ["q_proj", "v_proj"])
        found = kedge("inspect", self.folder / "adapter", "--json")[0]
        self.assertEqual((found["rank"], found["alpha"], found["scale"]), (4, 10, 2.5))
        self.assertEqual(found["targets"], {"kinds": ["q_proj", "v_proj"], "modules": 6})
        # Three layers: rank 4, q_proj 48 to 48 and v_proj 48 to 16.
        self.assertEqual(found["trainable_parameters"], 3 * 4 * (48 + 48 + 48 + 16))

    def test_an_adapter_with_a_trained_head_scores_on_a_base_without_one(self):
        config = type(peers.FAMILIES["llama"])(**peers.FAMILIES["llama"].to_diff_dict())
        reward = peers.random_model(config, scores=1)
        language = peers.random_model(peers.FAMILIES["llama"])
        language.model.load_state_dict(reward.model.state_dict())
        language.save_pretrained(self.folder / "base")
        reward.save_pretrained(self.folder / "reward")
        model = peft.get_peft_model(reward, peft.LoraConfig(r=4, lora_alpha=10, target_modules=["q_proj"], task_type="SEQ_CLS")).eval()
        torch.manual_seed(3)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.normal_(0, 0.2)
        adapter = self.folder / "adapter"
        model.save_pretrained(adapter)
        rows = peers.random_rows(97, [9, 17, 4])
        lines = [{"ids": row} for row in rows]
        with torch.no_grad():
            wanted = [model(input_ids=torch.tensor([row])).logits.item() for row in rows]

        def compare(*flags):
            for line, score in zip(kedge("score", *flags, lines=lines), wanted, strict=True):
                self.assertAlmostEqual(line["reward"], score, delta=1e-4)

        for base in ("base", "reward"):
            compare("--model", self.folder / base, "--adapter", adapter)
            kept, out = self.folder / f"kept-{base}", self.folder / f"merged-{base}"
            kedge("export", self.folder / base, kept, "--adapter", adapter)
            compare("--model", self.folder / base, "--adapter", kept)
            kedge("export", self.folder / base, out, "--adapter", adapter, "--merge")
            compare("--model", out)
            merged = transformers.AutoModelForSequenceClassification.from_pretrained(out)
            self.assertAlmostEqual(merged(input_ids=torch.tensor([rows[0]])).logits.item(), wanted[0], delta=1e-4)
        found = kedge("inspect", adapter, "--json")[0]
        self.assertEqual((found["score_head"], found["trainable_parameters"]), (1, 3 * 4 * (48 + 48) + 48))
        self.assertEqual(found["targets"], {"kinds": ["q_proj"], "modules": 3})

    def test_an_adapter_without_a_head_is_exported_with_that_of_its_base(self):
        self.save_adapter(peers.FAMILIES["llama"], ["q_proj"])
        config = type(peers.FAMILIES["llama"])(**peers.FAMILIES["llama"].to_diff_dict())
        peers.random_model(config, seed=4, scores=2).save_pretrained(self.folder / "reward")
        kept = self.folder / "kept"
        kedge("export", self.folder / "reward", kept, "--adapter", self.folder / "adapter")
        head = load_file(kept / "adapter_model.safetensors")["base_model.model.score.weight"]
        self.assertTrue(torch.equal(head, load_file(self.folder / "reward" / "model.safetensors")["score.weight"]))
        self.assertEqual(kedge("inspect", self.folder / "adapter", "--json")[0]["score_head"], 0)

    def test_scores_are_those_of_transformers(self):
        for family in ("llama", "qwen2", "gpt2"):
            for labels in (1, 3):
                with self.subTest(family=family, labels=labels):
                    config = type(peers.FAMILIES[family])(**peers.FAMILIES[family].to_diff_dict())
                    model = peers.random_model(config, scores=labels)
                    folder = self.folder / f"{family}-{labels}"
                    model.save_pretrained(folder)
                    rows = peers.random_rows(97, [9, 17, 4])
                    with torch.no_grad():
                        wanted = torch.cat([model(input_ids=torch.tensor([row])).logits for row in rows])
                    lines = [{"ids": row, "n": i} for i, row in enumerate(rows)]
                    key = "reward" if labels == 1 else "rewards"
                    found = kedge("score", "--model", folder, lines=lines)
                    self.assertEqual([line["n"] for line in found], [0, 1, 2])
                    self.assertLess((torch.tensor([line[key] for line in found]).reshape(3, labels) - wanted).abs().max().item(), 1e-4)
                    if labels == 3:
                        weights = kedge("score", "--model", folder, "--attribute-weights", "1,-0.5,2", lines=lines)
                        mean = kedge("score", "--model", folder, "--merge", lines=lines)
                        rewards = torch.tensor([line["reward"] for line in weights])
                        self.assertLess((rewards - wanted @ torch.tensor([1, -0.5, 2])).abs().max().item(), 1e-4)
                        self.assertLess((torch.tensor([line["reward"] for line in mean]) - wanted.mean(1)).abs().max().item(), 1e-4)
                    else:
                        scaled = kedge("score", "--model", folder, "--reward-mean", 0.5, "--reward-std", 2, lines=lines)
                        rewards = torch.tensor([line["reward"] for line in scaled])
                        self.assertLess((rewards - (wanted[:, 0] - 0.5) / 2).abs().max().item(), 1e-4)

    def test_a_score_bias_counts_and_export_warns_that_transformers_does_not_read_it(self):
        config = type(peers.FAMILIES["llama"])(**peers.FAMILIES["llama"].to_diff_dict())
        model = peers.random_model(config, scores=1)
        folder = self.folder / "model"
        model.save_pretrained(folder)
        self.assertNotIn("score.bias", run("export", folder, self.folder / "plain")[1])
        tensors = load_file(folder / "model.safetensors")
        save_file({**tensors, "score.bias": torch.tensor([0.75])}, folder / "model.safetensors", {"format": "pt"})
        row = peers.random_rows(97, [11])[0]
        with torch.no_grad():
            wanted = model(input_ids=torch.tensor([row])).logits.item() + 0.75
        errors = run("export", folder, self.folder / "biased")[1]
        self.assertIn("the score head has a bias (score.bias), which transformers does not read", errors)
        for place in (folder, self.folder / "biased"):
            self.assertTrue(math.isclose(kedge("score", "--model", place, lines=[{"ids": row}])[0]["reward"], wanted, abs_tol=1e-4))
            self.assertEqual(kedge("inspect", place, "--json")[0]["head"], {"kind": "score", "labels": 1, "tied": False, "bias": True})

    def test_pooling_takes_the_mean_or_the_maximum_of_the_hidden_states(self):
        config = type(peers.FAMILIES["llama"])(**peers.FAMILIES["llama"].to_diff_dict())
        model = peers.random_model(config, scores=1)
        model.save_pretrained(self.folder / "model")
        row = peers.random_rows(97, [11])[0]
        with torch.no_grad():
            hidden = model.model(input_ids=torch.tensor([row])).last_hidden_state[0]
            wanted = {"mean": model.score(hidden.mean(0)).item(), "max": model.score(hidden.amax(0)).item()}
        for pooling, reward in wanted.items():
            found = kedge("score", "--model", self.folder / "model", "--pooling", pooling, lines=[{"ids": row}])[0]["reward"]
            self.assertTrue(math.isclose(found, reward, abs_tol=1e-4), pooling)


if __name__ == "__main__":
    unittest.main(verbosity=2)  # tools/test_summary counts what is skipped
