"""Makes tests/golden/policy/: a tiny random model, a batch of responses to it, and the loss and every gradient that TRL's own loss code gives them
under each variant of its GRPO and RLOO trainers (expected.json). Run with a Python that has TRL 1.16; torch's generator may give other numbers
elsewhere, so weights and batch are kept. Log-probabilities are of logits / TEMPERATURE, as TRL's trainers take them.

    python tests/golden/make_policy_goldens.py
"""

import json
import pathlib
import types
import unittest.mock

import torch
import transformers
import trl
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.rloo_trainer import RLOOTrainer

FOLDER = pathlib.Path(__file__).resolve().parent / "policy"
TEMPERATURE, MAX_LENGTH, GROUP, EPS = 0.7, 12, 4, 1e-4
MODEL = dict(vocab_size=16, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=32,
             bos_token_id=None, eos_token_id=None, initializer_range=0.5)
# Of TRL's GRPO trainer, over its defaults.
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


def make_model():
    torch.manual_seed(1)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**MODEL)).float()


def make_batch():
    torch.manual_seed(2)
    prompts = [torch.randint(0, 16, (length,)).tolist() for length in (3, 5)]
    rows = []
    for slot, prompt in enumerate(prompts):
        for sample in range(GROUP):
            length = int(torch.randint(2, MAX_LENGTH + 1, ()))
            rows.append({"slot": slot, "prompt": prompt, "response": torch.randint(0, 16, (length,)).tolist(), "reward": round(float(torch.rand(())) * 4) / 2})
    return rows


def padded(lists, left, value=0):
    width = max(map(len, lists))
    rows = [[value] * (width - len(one)) + one if left else one + [value] * (width - len(one)) for one in lists]
    masks = [[0] * (width - len(one)) + [1] * len(one) if left else [1] * len(one) + [0] * (width - len(one)) for one in lists]
    return torch.tensor(rows), torch.tensor(masks)


def logprobs_of(model, ids, mask, count):
    logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1][:, -count:] / TEMPERATURE
    logp = torch.log_softmax(logits, -1)
    return logp.gather(-1, ids[:, -count:].unsqueeze(-1)).squeeze(-1), -(logp.exp() * logp).sum(-1), None


class OneProcess:
    """What the loss code asks of accelerate."""
    num_processes, sync_gradients = 1, True

    @staticmethod
    def reduce(tensor, reduction="sum"):
        return tensor

    @staticmethod
    def gather(tensor):
        return tensor

    gather_for_metrics = gather


def trainer_of(kind, model, options):
    trainer = kind.__new__(kind)
    defaults = dict(loss_type="dapo", beta=0.0, epsilon=0.2, epsilon_high=None, delta=None, use_bias_correction_kl=True, importance_sampling_level="token",
                    scale_rewards="group", steps_per_generation=1, entropy_coef=0.0, entropy_target=None)
    args = types.SimpleNamespace(**{**defaults, **options})
    trainer.args, trainer.model, trainer.accelerator = args, model, OneProcess()
    trainer._metrics = unittest.mock.MagicMock()
    trainer.aux_loss_enabled = trainer.use_vllm = trainer.use_adaptive_entropy = False
    trainer.top_entropy_quantile, trainer.off_policy_mask_threshold, trainer.max_completion_length = 1.0, None, MAX_LENGTH
    trainer.loss_type, trainer.beta, trainer.importance_sampling_level = args.loss_type, args.beta, args.importance_sampling_level
    trainer.epsilon_low, trainer.epsilon_high = args.epsilon, args.epsilon if args.epsilon_high is None else args.epsilon_high
    trainer.entropy_coef, trainer._entropy_bonus_enabled = args.entropy_coef, args.entropy_coef != 0
    trainer.current_gradient_accumulation_steps = 1
    trainer._get_per_token_logps_and_entropies = lambda net, ids, mask, count, **_: logprobs_of(net, ids, mask, count)
    return trainer


def advantages_of(rewards, scale):
    groups = rewards.view(-1, GROUP)
    centred = rewards - groups.mean(1).repeat_interleave(GROUP)
    if scale == "none":
        return centred
    std = groups.std(1).repeat_interleave(GROUP) if scale == "group" else rewards.std()
    return centred / (std + EPS)


def main():
    FOLDER.mkdir(exist_ok=True)
    model, rows = make_model(), make_batch()
    model.save_pretrained(FOLDER)
    (FOLDER / "generation_config.json").unlink(missing_ok=True)
    prompt_ids, prompt_mask = padded([row["prompt"] for row in rows], left=True)
    completion_ids, completion_mask = padded([row["response"] for row in rows], left=False)
    ids, mask = torch.cat([prompt_ids, completion_ids], 1), torch.cat([prompt_mask, completion_mask], 1)
    with torch.no_grad():
        now, _, _ = logprobs_of(model, ids, mask, completion_ids.size(1))
    # The policy has moved from where the responses were sampled, more in some places than the clip allows, and from the reference.
    old, reference = now + 0.25 * torch.randn_like(now), now + 0.3 * torch.randn_like(now)
    rewards = torch.tensor([row["reward"] for row in rows])
    for i, row in enumerate(rows):
        length = len(row["response"])
        row["old"], row["reference"] = old[i, :length].tolist(), reference[i, :length].tolist()
    inputs = dict(prompt_ids=prompt_ids, prompt_mask=prompt_mask, completion_ids=completion_ids, completion_mask=completion_mask, old_per_token_logps=old,
                  ref_per_token_logps=reference, old_logps=(old * completion_mask).sum(1), num_items_in_batch=completion_mask.sum())
    losses = {}

    def add(name, kind, options, advantages):
        model.zero_grad()
        loss = trainer_of(kind, model, options)._compute_loss(model, {**inputs, "advantages": advantages})
        loss.backward()
        losses[name] = {"loss": loss.item(), "advantages": advantages.tolist(),
                        "gradients": {key: parameter.grad.flatten().tolist() for key, parameter in model.named_parameters()}}

    for name, options in GRPO.items():
        add(name, GRPOTrainer, options, advantages_of(rewards, options.get("scale_rewards", "group")))
    groups = rewards.view(-1, GROUP)
    add("rloo", RLOOTrainer, {}, (groups - (groups.sum(1, keepdim=True) - groups) / (GROUP - 1)).flatten())
    expected = {"trl": trl.__version__, "temperature": TEMPERATURE, "max_length": MAX_LENGTH, "rows": rows, "losses": losses}
    numbers = json.loads(json.dumps(expected), parse_float=lambda text: float(f"{float(text):.9g}"))  # fp32 has no more digits
    (FOLDER / "expected.json").write_text(json.dumps(numbers) + "\n")
    print({name: entry["loss"] for name, entry in losses.items()})


if __name__ == "__main__":
    main()
