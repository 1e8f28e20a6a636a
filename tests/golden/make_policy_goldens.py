"""Makes tests/golden/policy/: what TRL's own GRPOTrainer and RLOOTrainer compute for one batch with a tiny Llama over bytes. expected.json has the
rewards, advantages and losses, gradients_NAME.safetensors the complete gradients. Everything from the weights to the gradients is computed in fp64,
so that a difference is an error of ours alone; only TRL's rewards and advantages are in fp32. Needs TRL 1.16 (bench/rivals/requirements.txt);
torch's generator may give other weights elsewhere, so those that are there are kept.

TRL's: tokenization, padding, log-probabilities at the sampling temperature, old ones and the reference's, the KL in rewards, advantages, loss,
gradients. Ours: the text of prompts and responses (responses.jsonl), which takes the place of generation; the reward, a rule on that text; and the
weights: the policy answers as `old`, then is `policy`, as if it had learned from the responses before.

    python tests/golden/make_policy_goldens.py
"""

import json
import os
import pathlib
import re
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import datasets
import safetensors.torch
import torch
import transformers
import trl
from make_preference_goldens import byte_tokenizer, widen_head

FOLDER = pathlib.Path(__file__).resolve().parent / "policy"
TEMPERATURE, MAX_LENGTH, GROUP = 0.7, 48, 4
PATTERN = "(?i)sun|warm|bright|happy|good"  # the reward of a response is how often it is found
# Over TRL's defaults. The first word is the name of the variant here and in the test.
GRPO = {
    "grpo": dict(loss_type="grpo"),
    "grpo_kl": dict(loss_type="grpo", beta=0.04),
    "grpo_kl_plain": dict(loss_type="grpo", beta=0.04, use_bias_correction_kl=False),
    "grpo_delta": dict(loss_type="grpo", delta=1.4),
    "grpo_entropy": dict(loss_type="bnpo", entropy_coef=0.01),
    "dapo": dict(loss_type="dapo", epsilon_high=0.28),
    "dr_grpo": dict(loss_type="dr_grpo", scale_rewards="none"),
    "bnpo": dict(loss_type="bnpo"),
    "gspo": dict(loss_type="grpo", importance_sampling_level="sequence", epsilon=3e-4, epsilon_high=4e-4),
    "cispo": dict(loss_type="cispo", epsilon_high=5.0),
    "batch_std": dict(loss_type="dapo", scale_rewards="batch"),
}
RLOO = {"rloo": dict(beta=0.05)}


def make_models():
    """The reference, the policy that gave the responses, and the same one after updates: further than the clip allows in some places."""
    torch.manual_seed(11)
    config = transformers.LlamaConfig(vocab_size=259, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
                                      num_key_value_heads=1, max_position_embeddings=128, bos_token_id=257, eos_token_id=258,
                                      initializer_range=0.2)
    model = transformers.LlamaForCausalLM(config)
    for name, noise in (("reference", 0.05), ("old", 0.05), ("policy", 0.05)):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(noise * torch.randn_like(parameter))
        model.save_pretrained(FOLDER / name)
        (FOLDER / name / "generation_config.json").unlink(missing_ok=True)


def load(name):
    return transformers.LlamaForCausalLM.from_pretrained(FOLDER / name, dtype=torch.float64)


def cheerful_words(completions, **_):
    return [float(len(re.findall(PATTERN, text))) for text in completions]


def trainer_of(kind, config, options, rows, tokenizer, out):
    # Two updates from the same responses: TRL then takes old log-probabilities before them.
    settings = dict(output_dir=out, per_device_train_batch_size=len(rows), num_generations=GROUP, num_iterations=2, max_completion_length=MAX_LENGTH,
                    temperature=TEMPERATURE, use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none", save_strategy="no",
                    disable_tqdm=True)
    # The reference is what the model's folder has when the trainer is made.
    trainer = kind(model=load("reference"), reward_funcs=cheerful_words, args=config(**settings, **options),
                   train_dataset=datasets.Dataset.from_list([{"prompt": row["prompt"]} for row in rows]), processing_class=tokenizer)
    responses = [tokenizer(row["response"])["input_ids"] + [tokenizer.eos_token_id] * row["finished"] for row in rows]
    assert all(len(ids) <= MAX_LENGTH and (row["finished"] or len(ids) == MAX_LENGTH) for ids, row in zip(responses, rows))
    trainer._generate_single_turn = lambda *_, **__: responses if kind is trl.RLOOTrainer else (responses, None)
    return trainer


def numbers_of(trainer, rows, name):
    trainer.model.train()
    trainer.model.load_state_dict(load("old").state_dict())
    inputs = trainer._generate_and_score_completions([{"prompt": row["prompt"]} for row in rows])
    trainer.model.load_state_dict(load("policy").state_dict())
    trainer.current_gradient_accumulation_steps = 1
    loss = trainer.compute_loss(trainer.model, inputs)
    assert loss.dtype == torch.float64
    loss.backward()
    gradients = {key: parameter.grad.to(torch.float32).contiguous() for key, parameter in trainer.model.named_parameters()}
    safetensors.torch.save_file(gradients, FOLDER / f"gradients_{name}.safetensors")
    return {"loss": loss.item(), "advantages": inputs["advantages"].tolist()}


def main():
    if not (FOLDER / "policy").exists():
        make_models()
    widen_head()
    rows = [json.loads(line) for line in (FOLDER / "responses.jsonl").read_text().splitlines()]
    tokenizer, losses = byte_tokenizer(), {}
    with tempfile.TemporaryDirectory() as out:
        for kind, config, variants in ((trl.GRPOTrainer, trl.GRPOConfig, GRPO), (trl.RLOOTrainer, trl.RLOOConfig, RLOO)):
            for name, options in variants.items():
                losses[name] = numbers_of(trainer_of(kind, config, options, rows, tokenizer, out), rows, name)
    expected = dict(trl=trl.__version__, temperature=TEMPERATURE, max_length=MAX_LENGTH, pattern=PATTERN,
                    rewards=cheerful_words([row["response"] for row in rows]), losses=losses)
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    print({name: entry["loss"] for name, entry in losses.items()})


if __name__ == "__main__":
    main()
