"""Makes tests/golden/model_families/: three tiny random models as transformers saves them, and beside each (expected.json) what transformers
computes with it: the logits of two rows, their tokens' log-probabilities, and every gradient's norm under the loss that
tests/interop/model_peers.py describes. Run with the Python of the interop tests; torch's generator may give other numbers elsewhere, so the
weights are kept.

    python tests/golden/make_model_families.py
"""

import json
import pathlib
import sys

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "interop"))
import model_peers as peers  # noqa: E402

SIZES = dict(vocab_size=16, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)
MODELS = {
    "llama3": transformers.LlamaConfig(**SIZES, rope_parameters=peers.LLAMA3),
    "qwen3": transformers.Qwen3Config(**SIZES, head_dim=6, tie_word_embeddings=True),
    "gpt2": transformers.GPT2Config(vocab_size=16, n_positions=24, n_embd=16, n_layer=2, n_head=4),
}


def main():
    for name, config in MODELS.items():
        folder = ROOT / "golden" / "model_families" / name
        model = peers.random_model(config)
        model.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        rows = peers.random_rows(16, [20, 5])
        loss, logits, logprobs, entropies = peers.token_loss(model, rows)
        loss.backward()
        norms = {key: parameter.grad.norm().item() for key, parameter in model.named_parameters()}
        expected = {"transformers": transformers.__version__, "rows": rows, "logits": logits.flatten().tolist(), "logprobs": logprobs.tolist(),
                    "entropy": entropies.tolist(), "gradient_norms": norms}
        numbers = json.loads(json.dumps(expected), parse_float=lambda text: float(f"{float(text):.9g}"))  # fp32 has no more digits
        (folder / "expected.json").write_text(json.dumps(numbers) + "\n")


if __name__ == "__main__":
    main()
