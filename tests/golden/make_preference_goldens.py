"""Makes tests/golden/preference/: what TRL's own DPOTrainer and KTOTrainer compute for one batch with a tiny Llama over bytes, whose reference has
other weights: expected.json has the losses and the reported numbers, gradients_NAME.safetensors the complete gradients, all computed in fp64, so
that a difference is an error of ours alone. Needs TRL 1.16 (bench/rivals/requirements.txt); torch's generator may give other weights
elsewhere, so those that are there are kept.

    python tests/golden/make_preference_goldens.py
"""

import json
import os
import pathlib
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import datasets
import safetensors.torch
import tokenizers
import torch
import transformers
import trl
import trl.kernels.chunked_logprob

FOLDER = pathlib.Path(__file__).resolve().parent / "preference"
BETA = 0.3
WEIGHTS = dict(desirable_weight=1.5, undesirable_weight=0.75)


def make_models():
    """The reference, and a policy that has moved away from it."""
    torch.manual_seed(7)
    config = transformers.LlamaConfig(vocab_size=259, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2,
                                      num_key_value_heads=1, max_position_embeddings=256, bos_token_id=257, eos_token_id=258)
    model = transformers.LlamaForCausalLM(config)
    for name, noise in (("reference", 0.3), ("policy", 0.05)):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(noise * torch.randn_like(parameter))
        model.save_pretrained(FOLDER / name)
        (FOLDER / name / "generation_config.json").unlink(missing_ok=True)


def byte_tokenizer():
    """As kedge's: a byte is its own id. Byte-level tokenizers write a byte that is not printable as a character from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    vocab = {chr(byte if byte in printable else 256 + others.index(byte)): byte for byte in range(256)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<pad>", "<bos>", "<eos>"])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>")


class WideTorch:
    """torch for the part of TRL that turns hidden states into log-probabilities, which works in fp32 whatever the model has."""
    float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


def widen_head():
    trl.kernels.chunked_logprob.torch = WideTorch()
    torch.Tensor.float = torch.Tensor.double


def rows_of(name):
    return datasets.Dataset.from_list([json.loads(line) for line in (FOLDER / name).read_text().splitlines()])


def settings(out, count):
    return dict(output_dir=out, per_device_train_batch_size=count, train_sampling_strategy="sequential", beta=BETA, max_length=None, use_cpu=True,
                bf16=False, gradient_checkpointing=False, report_to="none", save_strategy="no", disable_tqdm=True)


def gradients_of(trainer, name):
    """One batch through the trainer's own collator and loss."""
    trainer.model.train()
    batch = next(iter(trainer.get_train_dataloader()))
    loss = trainer.compute_loss(trainer.model, batch)
    loss.backward()
    gradients = {key: parameter.grad.to(torch.float32).contiguous() for key, parameter in trainer.model.named_parameters()}
    safetensors.torch.save_file(gradients, FOLDER / f"gradients_{name}.safetensors")
    numbers = {key: values[-1] for key, values in trainer._metrics["train"].items() if key.startswith(("rewards/", "logps/")) or key == "kl"}
    return {"loss": loss.item(), **numbers}


def main():
    if not (FOLDER / "policy").exists():
        make_models()
    widen_head()
    load = lambda name: transformers.LlamaForCausalLM.from_pretrained(FOLDER / name, dtype=torch.float64)
    pairs, marked = rows_of("pairs.jsonl"), rows_of("marked.jsonl")  # TRL puts <eos> after every response
    tokenizer = byte_tokenizer()
    assert tokenizer("a\n<eos>")["input_ids"] == [97, 10, 258]
    expected = dict(trl=trl.__version__, beta=BETA, **WEIGHTS)
    with tempfile.TemporaryDirectory() as out:
        for loss in ("sigmoid", "ipo", "hinge"):
            trainer = trl.DPOTrainer(model=load("policy"), ref_model=load("reference"), args=trl.DPOConfig(**settings(out, len(pairs)), loss_type=loss),
                                     train_dataset=pairs, processing_class=tokenizer)
            expected[loss] = gradients_of(trainer, loss)
        trainer = trl.KTOTrainer(model=load("policy"), ref_model=load("reference"), args=trl.KTOConfig(**settings(out, len(marked)), **WEIGHTS),
                                 train_dataset=marked, processing_class=tokenizer)
        expected["kto"] = gradients_of(trainer, "kto")
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
