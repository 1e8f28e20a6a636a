"""TRL's RLOOTrainer, or its GRPOTrainer, on the stories job, on the CPU: tinystories-656k, the lexicon's reward, 16 prompts x 4 samples of at most 64 tokens a
step. Writes a CSV with a line for each step, and prints one JSON line.

    trl_rloo.py --model DIR --prompts FILE --lexicon FILE --csv FILE [--lr 1e-4] [--steps 100] [--seed 0] [--threads N] [--trl-defaults] [--grpo]

--grpo: GRPOTrainer with its defaults for advantages, clipping, averaging and KL (none), which are those of `kedge grpo`; the rest as below.

Columns: step, seconds (of the whole step), generation_seconds, reward (mean of all samples, without the KL penalty), kl (the mean of
log p - log q over all tokens), entropy (the mean over tokens, nats), length (tokens of an answer).

What trl 1.16.0 and transformers 5.22.2 do, read in their source (trl/trainer/rloo_config.py, rloo_trainer.py, base_config.py;
transformers' TrainingArguments), and what stands for it in `kedge reinforce` (bench/stories_learning):

  precision      bf16=True and gradient_checkpointing=True unless set otherwise; both are off here: fp32, nothing computed twice.
                 --trl-defaults leaves them on.
  optimizer      AdamW, betas (0.9, 0.999), eps 1e-8, weight_decay 0, max_grad_norm 1.0: TRL's defaults, set here by name. The rate's default
                 is 1e-6, falling linearly to 0; here --lr, constant. kedge: model.optim.betas=[0.9,0.999] model.optim.weight_decay=0.
  a step         num_iterations=1, steps_per_generation=1: 64 fresh samples, one update. kedge: model.global_batch_size=64.
  prompts        shuffled anew each epoch; 256 are 16 steps. The tokenizer puts BOS before each: kedge: model.data.add_bos=true.
  sampling       temperature 1, top_p 1, top_k 0, repetition_penalty 1; generation_config's EOS ends an answer.
  unfinished     mask_truncated_completions=False: answers without an end are rewarded and trained on like others; EOS is trained on.
                 kedge: trainer.reinforce.unfinished=keep.
  KL             in the reward, and so in the baseline: reward - beta * sum over tokens of (log p - log q), both at the sampling
                 weights; beta 0.05 is TRL's default. kedge: kl_estimator=k1 kl_reduce=sum initial_policy_kl_penalty=0.05.
  baseline       the mean of a prompt's other samples; normalize_advantages=False.
  loss           -advantage * ratio of the answer's probability now and when it was sampled, mean over answers, the ratio clipped to 1 +- 0.2.
                 With one update it is 1, and the gradient that of -advantage * (sum of log p): longer answers weigh more, nothing is
                 divided by a length. The gradient's norm is 65 to 95 in the first steps, so the clip at 1.0 makes every gradient equally
                 long. Nine answers in ten have all 64 tokens: a mean over tokens has the same direction and about a 60th of that norm, 1 to 1.5,
                 and is mostly clipped too; below 1 AdamW does not see a factor either. kedge: model.micro_batch_size=64, all answers in one
                 micro-batch, so that every token weighs the same (as trainer.reinforce.loss_norm=tokens says it).
  rewards        a function gets completions decoded without special tokens. reward_clip_range bounds what is trained on but not what is
                 logged, so the bounds are in the function here.
  metrics        `reward` is the mean before the KL penalty, `kl` a mean over tokens (not over answers): beside kedge's rewards and
                 init_policy_kl.
  step's time    from on_step_begin to on_step_end, which includes generation, rewards, three forward passes (policy, reference, training),
                 backward and update; fetching the next prompts and logging are outside.
"""

import argparse
import csv
import json
import os
import statistics
import tempfile
import time

import lexicon
import rival_data
import rival_trainer

PROMPTS, SAMPLES, NEW_TOKENS = 16, 4, 64
COLUMNS = {"reward": "reward", "kl": "kl", "entropy": "entropy", "completions/mean_length": "length"}


def settings(args, out):
    exact = {} if args.trl_defaults else dict(bf16=False, gradient_checkpointing=False)
    own = dict(beta=0.0) if args.grpo else dict(beta=0.05, normalize_advantages=False)
    return dict(output_dir=out, per_device_train_batch_size=PROMPTS * SAMPLES, num_generations=SAMPLES, max_completion_length=NEW_TOKENS,
                temperature=1.0, top_p=1.0, top_k=0, repetition_penalty=1.0, num_iterations=1,
                mask_truncated_completions=False, shuffle_dataset=True, max_steps=args.steps, learning_rate=args.lr,
                lr_scheduler_type="constant", warmup_steps=0, optim="adamw_torch_fused", adam_beta1=0.9, adam_beta2=0.999, adam_epsilon=1e-8,
                weight_decay=0.0, max_grad_norm=1.0, use_cpu=True, seed=args.seed, logging_steps=1, save_strategy="no", report_to="none",
                disable_tqdm=True, **own, **exact)


def record_steps(trainer, model):
    """The list that gets a row for every step: its times, and what TRL logs of it."""
    import transformers

    rows = []
    clock = dict(generation=0.0)
    generate = model.generate

    def timed_generate(*args, **kwargs):
        begin = time.perf_counter()
        try:
            return generate(*args, **kwargs)
        finally:
            clock["generation"] += time.perf_counter() - begin

    class Recorder(transformers.TrainerCallback):
        def on_step_begin(self, *_, **__):
            clock.update(generation=0.0, begin=time.perf_counter())

        def on_step_end(self, _, state, *__, **___):
            end = time.perf_counter()
            rows.append(dict(step=state.global_step - 1, seconds=end - clock["begin"], generation_seconds=clock["generation"],
                             end=end - rival_trainer.STARTED))

        def on_log(self, *_, logs=None, **__):
            if "reward" in logs:
                rows[-1].update({name: float(logs.get(key, 0)) for key, name in COLUMNS.items()})  # GRPO without KL logs none

    model.generate = timed_generate
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.add_callback(Recorder())
    return rows


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["step", "seconds", "generation_seconds", *COLUMNS.values()])
        for row in rows:
            table.writerow([row["step"], *(format(row[name], ".5g") for name in ("seconds", "generation_seconds", *COLUMNS.values()))])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompts", required=True)
    parser.add_argument("--lexicon", required=True)
    parser.add_argument("--csv", required=True)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--trl-defaults", action="store_true", help="bf16 and gradient checkpointing, as TRL has them")
    parser.add_argument("--grpo", action="store_true", help="GRPOTrainer in place of RLOOTrainer")
    args = parser.parse_args()

    import datasets
    import torch
    import transformers
    import trl

    torch.set_num_threads(args.threads)
    score = lexicon.Lexicon(args.lexicon)
    prompts = [row["text"] for row in rival_data.read_rows(args.prompts)]
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    encoder = rival_data.Encoder(args.model)
    assert all(tokenizer(text)["input_ids"] == [encoder.bos] + encoder.ids(text) for text in prompts), "prompts are not cut as kedge cuts them"

    def lexicon_reward(completions, **_):
        return [score(text) for text in completions]

    model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32)
    with tempfile.TemporaryDirectory() as out:
        trainer_type, config_type = (trl.GRPOTrainer, trl.GRPOConfig) if args.grpo else (trl.RLOOTrainer, trl.RLOOConfig)
        trainer = trainer_type(model=model, reward_funcs=lexicon_reward, args=config_type(**settings(args, out)),
                               train_dataset=datasets.Dataset.from_dict({"prompt": prompts}), processing_class=tokenizer)
        rows = record_steps(trainer, model)
        trainer.train()

    write_csv(args.csv, rows)
    later = rows[1:] or rows  # the first step warms things up
    print(json.dumps(dict(rival="trl " + trl.__version__, model=args.model, lr=args.lr, steps=len(rows), seed=args.seed, threads=args.threads,
                          trl_defaults=args.trl_defaults, s_per_step=statistics.median(row["seconds"] for row in later),
                          s_generation=statistics.median(row["generation_seconds"] for row in later), first_step_s=rows[0]["end"],
                          reward_first5=statistics.mean(row["reward"] for row in rows[:5]),
                          reward_last5=statistics.mean(row["reward"] for row in rows[-5:]))))


if __name__ == "__main__":
    main()
