"""What the scripts around transformers have in common: the flags that choose a model, and the model. Importing it is fast; torch and
transformers are imported when a model is made."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

SHAPES = {
    "30m": dict(hidden_size=512, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4, intermediate_size=1376,
                vocab_size=8192, tie_word_embeddings=False, max_position_embeddings=2048),
    "135m": dict(hidden_size=576, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3, intermediate_size=1536,
                 vocab_size=49152, tie_word_embeddings=True, max_position_embeddings=2048),
}


def add_flags(parser, repeats):
    parser.add_argument("--model")
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))


def make_model(args):
    """The folder's model, or random weights of the shape; sets threads and seed too."""
    import torch
    import transformers

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[args.dtype]
    if args.model:
        return transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=dtype)
    config = transformers.LlamaConfig(**SHAPES[args.shape])
    return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="sdpa")
