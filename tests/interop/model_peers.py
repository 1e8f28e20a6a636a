"""Shared by the tests beside transformers: random tiny models of every family, the probe program, and the loss it takes."""

import json
import pathlib
import subprocess

import torch
import transformers
from safetensors.torch import load_file

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
transformers.logging.disable_progress_bar()

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 10000.0}
SMALL = dict(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=128)


def llama(**changes):
    return transformers.LlamaConfig(**{**SMALL, **changes})


def rope(**changes):
    return {"rope_theta": 10000.0, **changes}


FAMILIES = {
    "llama": llama(),
    "llama-tied": llama(tie_word_embeddings=True),
    "llama-biases": llama(attention_bias=True, mlp_bias=True, num_key_value_heads=6),
    "llama3-scaling": llama(rope_parameters=LLAMA3),
    "llama-linear": llama(rope_parameters=rope(rope_type="linear", factor=4.0)),
    "llama-yarn": llama(rope_parameters=rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=32)),
    "llama-dynamic": llama(rope_parameters=rope(rope_type="dynamic", factor=2.0), max_position_embeddings=16),
    "llama-wide-heads": llama(head_dim=16),
    "llama-gelu": llama(hidden_act="gelu"),
    "llama-relu2": llama(hidden_act="relu2"),
    "mistral-window": transformers.MistralConfig(**SMALL, sliding_window=7),
    "mistral-full": transformers.MistralConfig(**SMALL, sliding_window=None),
    "qwen2": transformers.Qwen2Config(**SMALL),
    "qwen2-window": transformers.Qwen2Config(**SMALL, use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen3": transformers.Qwen3Config(**SMALL, head_dim=16),
    "qwen3-biases": transformers.Qwen3Config(**SMALL, head_dim=8, attention_bias=True, tie_word_embeddings=True),
    "gpt2": transformers.GPT2Config(vocab_size=97, n_positions=64, n_embd=48, n_layer=3, n_head=4),
    "gpt2-gelu": transformers.GPT2Config(vocab_size=97, n_positions=64, n_embd=48, n_layer=2, n_head=4, n_inner=56, activation_function="gelu"),
    "gpt2-untied": transformers.GPT2Config(vocab_size=97, n_positions=64, n_embd=48, n_layer=2, n_head=4, tie_word_embeddings=False),
}


def random_model(config, seed=0, scores=0):
    """Weights larger than the usual start, and norms and biases off their ones and zeros, so that a mistake shows."""
    torch.manual_seed(seed)
    if scores:
        config.num_labels = scores
        config.pad_token_id = 0
        model = transformers.AutoModelForSequenceClassification.from_config(config)
    else:
        model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.08)
    return model.float().eval()


def random_rows(vocab_size, lengths, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(1, vocab_size, (length,), generator=generator).tolist() for length in lengths]


def probe(program, folder, rows, out, *flags):
    file = pathlib.Path(out).with_suffix(".json")
    file.write_text(json.dumps(rows))
    subprocess.run([program, str(folder), str(file), str(out), *flags], check=True)
    return load_file(out)


def token_loss(model, rows, device="cpu"):
    """(loss, logits, logprobs, entropies) of the probe's own loss, rows one after another."""
    logits, logprobs, entropies = [], [], []
    for row in rows:
        ids = torch.tensor([row], device=device)
        out = model(input_ids=ids, use_cache=False).logits[0].float()
        log_softmax = out[:-1].log_softmax(-1)
        logits.append(out)
        logprobs.append(log_softmax.gather(1, ids[0, 1:, None])[:, 0])
        entropies.append(-(log_softmax.exp() * log_softmax).sum(-1))
    logits, logprobs, entropies = torch.cat(logits), torch.cat(logprobs), torch.cat(entropies)
    weights = torch.arange(len(logprobs), device=device) % 3 + 1
    return (logprobs * weights).sum() + 0.1 * entropies.sum(), logits, logprobs, entropies


def relative_error(found, wanted):
    """Largest difference over the largest wanted number: gradients of one tensor have one scale."""
    return ((found - wanted).abs().max() / wanted.abs().max().clamp_min(1e-12)).item()
