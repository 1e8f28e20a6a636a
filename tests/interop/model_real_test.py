"""Our network on trained models made by others: their logits, activations and greedy texts, by whole passes and by the engine. Takes the
programs model_probe and kedge, and the folder of assets, which KEDGE_ASSETS may name instead."""

import base64
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

PROBE, KEDGE, ASSETS = sys.argv.pop(1), sys.argv.pop(1), pathlib.Path(os.environ.get("KEDGE_ASSETS") or sys.argv[1])
del sys.argv[1:2]
MODELS = ASSETS / "models"
if not MODELS.is_dir():  # before the slow imports
    print(f"skipped: no {MODELS}; KEDGE_ASSETS names the assets folder")
    sys.exit(77)

import sentencepiece
import torch
import transformers
from safetensors.torch import save_file

import model_peers as peers


class RealModels(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temp.name)

    def tearDown(self):
        self.temp.cleanup()

    def probe(self, folder, rows, *flags):
        return peers.probe(PROBE, folder, rows, self.folder / "out.safetensors", *flags)

    def greedy(self, folder, rows, steps):
        found = self.probe(folder, rows, "--greedy", str(steps))
        return [found[f"greedy.{i}"].int().tolist() for i in range(len(rows))]

    def write_model(self, name, config, tensors):
        folder = self.folder / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, folder / "model.safetensors")
        return folder


class TinyStories(RealModels):
    def setUp(self):
        super().setUp()
        self.path = MODELS / "tinystories-656k"
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.path)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(self.path, dtype=torch.float32).eval()
        stories = (ASSETS / "corpora" / "tinystories-sample" / "tinystories.txt").read_text().split("\n\n")
        self.texts = [text for text in stories if len(text) > 200][:20]

    def test_twenty_texts_give_the_logits_of_transformers(self):
        rows = [self.tokenizer(text, truncation=True, max_length=200)["input_ids"] for text in self.texts]
        self.assertEqual(len(rows), 20)
        logits = self.probe(self.path, rows)["logits"]
        with torch.no_grad():
            wanted = torch.cat([self.model(torch.tensor([row])).logits[0] for row in rows])
        difference = (logits - wanted).abs().max().item()
        print(f"tinystories-656k: {len(wanted)} tokens, logits up to {wanted.abs().max():.1f}, largest difference {difference:.2g}")
        self.assertLess(difference, 1e-4)

    def test_greedy_continuations_are_those_of_transformers(self):
        rows = [self.tokenizer(text)["input_ids"][:12] for text in self.texts[:4]]
        for row, ours in zip(rows, self.greedy(self.path, rows, 64)):
            with torch.no_grad():
                out = self.model.generate(torch.tensor([row]), max_new_tokens=64, min_new_tokens=64, do_sample=False, eos_token_id=None, pad_token_id=0)
            self.assertEqual(ours, out[0, len(row):].tolist())


class GptNanoSort(RealModels):
    """minGPT's nano model; its author published the activations of every step of one batch."""

    SIZE = 48

    def read(self, name):
        entries = json.loads((MODELS / "gpt-nano-sort" / name).read_text())
        return {key: torch.frombuffer(bytearray(base64.b64decode(e["data"])), dtype=torch.float32).view(e["shape"]) for key, e in entries.items() if key != "config"}

    def setUp(self):
        super().setUp()
        self.weights, self.partials = self.read("gpt-nano-sort-model.json"), self.read("gpt-nano-sort-t0-partials.json")
        self.rows = self.partials["idx"].int().tolist()

    def convert(self, name, layers, change=lambda tensors: None, vocab=3):
        """The first layers as a Hugging Face folder: linear weights are stored [in, out] there."""
        tensors = {}
        for key, value in self.weights.items():
            layer = re.match(r"transformer\.h\.(\d+)\.", key)
            if layer and int(layer[1]) >= layers:
                continue
            turned = value.dim() == 2 and re.search(r"c_(attn|proj|fc)\.weight$", key)
            tensors[key] = value.t() if turned else value
        change(tensors)
        config = dict(model_type="gpt2", vocab_size=vocab, n_embd=self.SIZE, n_layer=layers, n_head=3, n_positions=11, activation_function="gelu_new",
                      tie_word_embeddings=False)
        return self.write_model(name, config, tensors)

    def show_states(self, tensors):
        """An identity as the head: the logits are the states behind the last norm."""
        tensors["transformer.wte.weight"] = torch.nn.functional.pad(tensors["transformer.wte.weight"], (0, 0, 0, self.SIZE - 3))
        tensors["lm_head.weight"] = torch.eye(self.SIZE)

    def final_norm(self, states):
        return torch.nn.functional.layer_norm(states.view(-1, self.SIZE), (self.SIZE,), self.weights["transformer.ln_f.weight"], self.weights["transformer.ln_f.bias"])

    def states(self, name, layers, change=lambda tensors: None):
        def both(tensors):
            change(tensors)
            self.show_states(tensors)

        return self.probe(self.convert(name, layers, both, vocab=self.SIZE), self.rows)["logits"]

    def test_logits_are_the_published_ones(self):
        logits = self.probe(self.convert("whole", 3), self.rows)["logits"]
        self.assertLess((logits - self.partials["lm_head"].view(-1, 3)).abs().max().item(), 1e-4)
        self.assertLess((logits.softmax(-1) - self.partials["probs"].view(-1, 3)).abs().max().item(), 1e-4)

    def test_the_output_of_every_block_is_the_published_one(self):
        for layers in (1, 2, 3):
            wanted = self.final_norm(self.partials[f"block{layers - 1}"])
            self.assertLess((self.states(f"blocks{layers}", layers) - wanted).abs().max().item(), 1e-4)
        self.assertLess((self.states("norm", 3) - self.partials["ln_f"].view(-1, self.SIZE)).abs().max().item(), 1e-4)

    def test_the_first_attention_is_the_published_one(self):
        def without_mlp(tensors):
            for what in ("weight", "bias"):
                tensors[f"transformer.h.0.mlp.c_proj.{what}"] = torch.zeros_like(tensors[f"transformer.h.0.mlp.c_proj.{what}"])

        wanted = self.final_norm(self.partials["attnResid"])
        self.assertLess((self.states("attention", 1, without_mlp) - wanted).abs().max().item(), 1e-4)


class Stories260k(RealModels):
    """llama2.c's smallest model, with the text its author says it writes."""

    def convert(self):
        data = (MODELS / "stories260k" / "stories260K.bin").read_bytes()
        dim, hidden, layers, heads, kv_heads, vocab, length = struct.unpack("7i", data[:28])
        self.assertGreater(vocab, 0)  # a negative one would mean an output matrix of its own
        numbers, at = torch.frombuffer(bytearray(data[28:]), dtype=torch.float32), 0

        def take(*shape):
            nonlocal at
            size = torch.Size(shape).numel()
            at += size
            return numbers[at - size:at].view(shape)

        kv, head = dim * kv_heads // heads, dim // heads
        embedding, norm1 = take(vocab, dim), take(layers, dim)
        q, k, v, o = take(layers, dim, dim), take(layers, kv, dim), take(layers, kv, dim), take(layers, dim, dim)
        norm2, gate, down, up, norm = take(layers, dim), take(layers, hidden, dim), take(layers, dim, hidden), take(layers, hidden, dim), take(dim)

        def halves(weight):  # pairs of neighbours become pairs half a head apart
            return weight.view(-1, head // 2, 2, dim).transpose(1, 2).reshape(-1, dim)

        tensors = {"model.embed_tokens.weight": embedding, "model.norm.weight": norm}
        for i in range(layers):
            parts = {"input_layernorm": norm1[i], "self_attn.q_proj": halves(q[i]), "self_attn.k_proj": halves(k[i]), "self_attn.v_proj": v[i],
                     "self_attn.o_proj": o[i], "post_attention_layernorm": norm2[i], "mlp.gate_proj": gate[i], "mlp.up_proj": up[i], "mlp.down_proj": down[i]}
            tensors |= {f"model.layers.{i}.{name}.weight": weight for name, weight in parts.items()}
        config = dict(model_type="llama", vocab_size=vocab, hidden_size=dim, intermediate_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
                      num_key_value_heads=kv_heads, max_position_embeddings=length, rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=True)
        return self.write_model("stories", config, tensors)

    def test_it_writes_the_documented_story(self):
        readme = (MODELS / "stories260k" / "README.karpathy.md").read_text()
        story = re.search(r"-t 0\.0\n(.*?)\n```", readme, re.S)[1]
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(MODELS / "stories260k" / "tok512.model"))
        ids = self.greedy(self.convert(), [[pieces.bos_id()]], 256)[0]
        if pieces.bos_id() in ids:  # where its program stops
            ids = ids[:ids.index(pieces.bos_id())]
        self.assertEqual(pieces.decode(ids).strip(), story.strip())

    def test_the_engine_writes_what_whole_passes_write(self):
        folder = self.convert()
        prompts = [[1], [1, 403, 407, 261], list(range(3, 70)), [1] + list(range(100, 230))]
        wanted = self.greedy(folder, prompts, 150)
        for flags in (["--max-running", "1"], ["--max-running", "3"], ["--max-running", "64"], ["--max-batch-tokens", "1"], ["--memory", "700KiB"]):
            lines = "".join(json.dumps({"ids": ids}) + "\n" for ids in prompts * 4)
            done = subprocess.run([KEDGE, "generate", "--model", folder, "--use-greedy", "--max-new-tokens", "150", *flags], input=lines,
                                  capture_output=True, text=True, check=True)
            self.assertEqual([json.loads(line)["ids"] for line in done.stdout.splitlines()], wanted * 4, flags)


if __name__ == "__main__":
    unittest.main()
