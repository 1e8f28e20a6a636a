"""The folder that the commands of the pages run in: tiny models, data and finished runs under the names that pages use, so that a
command runs as it is written. A name that a page needs and that is not here is added to prepare() or to the lists above it."""
import json
import os
import shutil
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PREPARED = ".prepared"  # marks a run that was made here: a page's own run of that name takes its place
MODELS = ["DIR", "MODEL_FOLDER", "MODEL", "BASE", "base", "runs/chat/aligned"]  # all the same small language model
RUNS = ["RUN", "OTHER", "runs/stories", "runs/reinforce", "runs/commas", "runs/first", "runs/second", "runs/fast"]  # all the same finished run
LINKED = ["configs", "examples", "scripts", "bench", "launch"]  # of this repository
SMALL = ["trainer.accelerator=cpu", "trainer.precision=32", "trainer.threads=1"]
LOCAL_CRITIC = ["local_critic.model.encoder_seq_length=192", "local_critic.model.global_batch_size=4", "local_critic.model.micro_batch_size=4"]
CHAT_TEMPLATE = ("{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n' }}{% endfor %}"
                 "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}")


def byte_letters():
    """The letters that byte-level tokenizers write bytes as."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte) if byte in shown else chr(256 + hidden.index(byte)) for byte in range(256)]


def write_tokenizer(folder):
    """One token a byte, <eos>, and a chat template: every text can be said in it."""
    folder.mkdir()
    letters = byte_letters()
    added = [{"id": 256, "content": "<eos>", "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "vocab": {letter: byte for byte, letter in enumerate(letters)}, "merges": []}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<eos>", "bos_token": "<eos>", "chat_template": CHAT_TEMPLATE}))


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_data(folder):
    """Rows that are prompts, prompt and response, and pairs at once: pages name one file for several jobs."""
    def row(i):
        prompt = f"Q: {i} + {i % 7}?\nA:"
        return {"input": prompt, "output": str(i + i % 7), "prompt": prompt, "chosen": f" {i + i % 7}", "rejected": " no", "answer": str(i + i % 7)}

    write_lines(folder / "train.jsonl", [row(i) for i in range(48)])
    write_lines(folder / "pairs.jsonl", [row(i) for i in range(48)])
    for name in ("val.jsonl", "dev.jsonl", "test.jsonl", "val_pairs.jsonl"):
        write_lines(folder / name, [row(i) for i in range(50, 58)])
    for name, rows in (("marked.jsonl", range(48)), ("val_marked.jsonl", range(50, 58))):
        write_lines(folder / name, [{"prompt": row(i)["prompt"], "completion": row(i)["chosen" if i % 2 else "rejected"], "label": i % 2 == 1} for i in rows])
    for name, rows in (("prompts.jsonl", range(48)), ("val_prompts.jsonl", range(50, 58))):
        write_lines(folder / name, [{"text": row(i)["prompt"], "answer": row(i)["answer"]} for i in rows])
    write_lines(folder / "answers.jsonl", [{"prompt": row(i)["prompt"], "response": row(i)["chosen"]} for i in range(8)])
    talk = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]
    write_lines(folder / "chat.jsonl", [{"messages": talk}] * 24)
    write_lines(folder / "raw.jsonl", [{"chosen": "\n\nHuman: Q\n\nAssistant: good", "rejected": "\n\nHuman: Q\n\nAssistant: bad"}] * 4)
    config = (REPOSITORY / "configs/tiny/reinforce.yaml").read_text().replace("restore_from_path: ???", "restore_from_path: DIR")
    (folder / "reinforce.yaml").write_text(config.replace("data_prefix: ???", "data_prefix: {train: [prompts.jsonl], validation: [val.jsonl], test: [val.jsonl]}"))
    (folder / ".curlrc").write_text("fail-with-body\n")  # an answer that is an error fails the command
    (folder / "lexicon.txt").write_text("good\t2.0\nbad\t-2.0\n")
    (folder / "reward.yaml").write_text("reward:\n  sources:\n    digits: {kind: regex, use: count, pattern: '[0-9]'}\n")


def training(algorithm, steps, interval):
    """Overrides that make a run of it tiny."""
    keys = [*SMALL, f"trainer.{algorithm}.max_steps={steps}", f"trainer.{algorithm}.val_check_interval={interval}"]
    if algorithm == "sft":
        for part in ("train_ds", "validation_ds"):
            keys += [f"model.data.{part}.global_batch_size=4", f"model.data.{part}.micro_batch_size=4", f"model.data.{part}.max_seq_length=128"]
        return keys
    keys += ["model.global_batch_size=4", "model.encoder_seq_length=192", f"trainer.{algorithm}.save_interval={interval}"]
    if algorithm in ("rm", "dpo", "kto"):
        return [*keys, "model.micro_batch_size=4"]
    return [*keys, "model.micro_batch_size=1", f"model.{algorithm}.num_rollout_samples=4", f"model.{algorithm}.num_val_samples=4",
            f"model.{algorithm}.length_params.max_length=8", f"model.{algorithm}.sampling_params.end_strings=[]"]


def serving(kind, ports):
    """Overrides that make a server small, on a port of its own."""
    if kind == "reward":
        return [*SMALL, "model.encoder_seq_length=192"], f"inference.port={ports['5555']}"
    return [*SMALL, "model.encoder_seq_length=192", "model.global_batch_size=4", "model.micro_batch_size=4"], f"trainer.ppo.port={ports['5556']}"


class Maker:
    def __init__(self, kedge, folder):
        self.kedge, self.folder = kedge, Path(folder)

    def run(self, *arguments):
        done = subprocess.run([self.kedge, *arguments], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        if done.returncode != 0:
            raise SystemExit(f"fixtures: kedge {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")

    def train(self, algorithm, run, *keys, steps=2, interval=2):
        self.run(algorithm, *training(algorithm, steps, interval), "exp_manager.create_tensorboard_logger=false", *keys,
                 f"exp_manager.explicit_log_dir={run}")
        (self.folder / run / PREPARED).touch()


def link(folder, name, target):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(os.path.relpath(folder / target, (folder / name).parent))


def prepare(kedge, folder):
    """Fills `folder`; returns the metrics.jsonl of a run of every kind."""
    make, folder = Maker(kedge, folder), Path(folder)
    for name in LINKED:
        if (REPOSITORY / name).exists():
            (folder / name).symlink_to(REPOSITORY / name)
    write_tokenizer(folder / "letters")
    write_data(folder)
    make.run("init", "DIR", "--shape", "tiny", "--tokenizer", "letters", "--threads", "1")
    make.run("init", "tuned", "--shape", "tiny", "--tokenizer", "letters", "--threads", "1", "--seed", "2")
    make.run("init", "JUDGE", "--shape", "tiny", "--tokenizer", "letters", "--threads", "1", "--num-labels", "1", "--seed", "3")
    for name in MODELS[1:]:
        link(folder, name, "DIR")
    prefix = "model.data.data_prefix={{train: [{0}.jsonl], validation: [val_{0}.jsonl], test: [val_{0}.jsonl]}}"
    rows = ["model.restore_from_path=DIR", "model.data.train_ds.file_path=train.jsonl", "model.data.validation_ds.file_path=val.jsonl"]
    make.train("sft", "runs/sft", *rows)
    make.train("sft", "runs/lora", *rows, "model.peft.peft_scheme=lora")
    make.train("rm", "runs/judge", "pretrained_checkpoint.restore_from_path=DIR", prefix.format("pairs"))
    for algorithm, data in (("dpo", "pairs"), ("kto", "marked")):
        make.train(algorithm, f"runs/{algorithm}", "pretrained_checkpoint.restore_from_path=DIR", prefix.format(data))
    rule = ["pretrained_checkpoint.restore_from_path=DIR", prefix.format("prompts"), "reward.sources.digits.kind=regex",
            "reward.sources.digits.use=count", r"reward.sources.digits.pattern=\d", "reward.watch.brief.kind=length", "reward.watch.brief.target=4"]
    make.train("reinforce", "runs/aligned", *rule, "exp_manager.checkpoint_callback_params.save_top_k=-1", "trainer.reinforce.unfinished=keep",
               "trainer.reinforce.max_epochs=10", steps=50, interval=10)
    make.train("grpo", "runs/corrected", *rule, "trainer.grpo.use_dynamic_sampling=true", "trainer.grpo.rollout_correction=tis",
               "trainer.grpo.reference_policy_kl_penalty=0.01")
    make.train("rs", "runs/rs", *rule)
    make.train("ppo", "runs/ppo", *rule, "local_critic.restore_from_path=JUDGE", *LOCAL_CRITIC, "remote_critic_rm.combine_rm_and_critic_server=false")
    shutil.copytree(folder / "runs/ppo/critic", folder / "runs/critic")
    (folder / "runs/critic" / PREPARED).touch()
    for name in RUNS:
        link(folder, name, "runs/aligned")
    shutil.copytree(folder / "runs/aligned", folder / "runs/slow")  # a report refuses one run under two names
    return [folder / "runs" / run / "metrics.jsonl" for run in ("sft", "judge", "dpo", "kto", "aligned", "corrected", "rs", "ppo", "ppo/critic")]
