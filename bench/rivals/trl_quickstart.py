"""TRL's RLOOTrainer on the job of scripts/quickstart: the guide, the judge as reward, 16 questions x 4 answers of at most 64 tokens a step, one
thread. Prints a table with kedge's run for comparison.

    trl_quickstart.py --folder quickstart --run quickstart/reinforce/aligned/actor [--steps 40] [--seed 1234]

The same model, judge, questions, rate, optimizer and batch. TRL keeps answers without an end and sums its signed KL over an answer (beta 0.05, its
default); configs/quickstart/reinforce.yaml drops them, of which there are hardly any, and takes the mean of the absolute one (0.2). The judge is
asked here in the process, over the same ids that kedge's server gets.
"""

import argparse
import json
import os
import statistics
import tempfile

import rival_trainer
import trl_rloo

PROMPTS, SAMPLES = 16, 4


def kedge_steps(run):
    rows = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
    rewards = [row["train_rollouts/rewards"] for row in rows if "train_rollouts/rewards" in row]
    seconds = [row["train/step_time"] for row in rows if "train/step_time" in row]
    kl = [row["train_rollouts/init_policy_kl"] for row in rows if "train_rollouts/init_policy_kl" in row]
    return rewards, seconds, kl


def line(name, rewards, seconds, start):
    last = statistics.mean(rewards[-5:])
    print(f"      {name:8} reward {rewards[0]:6.2f} -> {last:5.2f}   {statistics.median(seconds):6.3f} s a step   {start}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1234)
    args = parser.parse_args()

    import datasets
    import torch
    import transformers
    import trl

    torch.set_num_threads(1)
    policy = os.path.join(args.folder, "sft", "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(policy)
    judge = transformers.AutoModelForSequenceClassification.from_pretrained(os.path.join(args.folder, "judge", "model"), dtype=torch.float32).eval()
    prompts = [json.loads(row)["messages"] for row in open(os.path.join(args.folder, "data", "prompts.jsonl"))]

    def judged(prompts, completion_ids, **_):
        rewards = []
        with torch.no_grad():
            for prompt, completion in zip(prompts, completion_ids):
                text = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
                ids = torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"] + list(completion)])
                rewards.append(judge(ids).logits[0, 0].item())
        return rewards

    settings = argparse.Namespace(trl_defaults=False, steps=args.steps, lr=3e-4, seed=args.seed)
    model = transformers.AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    with tempfile.TemporaryDirectory() as out:
        trainer = trl.RLOOTrainer(model=model, reward_funcs=judged, args=trl.RLOOConfig(**trl_rloo.settings(settings, out)),
                                  train_dataset=datasets.Dataset.from_dict({"prompt": prompts}), processing_class=tokenizer)
        rows = trl_rloo.record_steps(trainer, model)
        trainer.train()
    rewards, seconds, _ = kedge_steps(args.run)
    line("kedge", rewards, seconds, "with another run and two servers in parallel, killed once")
    line("TRL", [row["reward"] for row in rows], [row["seconds"] for row in rows], f"first step done {rows[0]['end']:.1f} s after its start")
    print(f"      a step of TRL takes {statistics.median(row['seconds'] for row in rows) / statistics.median(seconds):.1f} times as long")


if __name__ == "__main__":
    main()
