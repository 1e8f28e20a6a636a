#include <array>
#include <cstdlib>
#include <exception>
#include <new>

#include <c10/util/Exception.h>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/core/stop.h"
#include "kedge/dist/mesh.h"

#include "cli/commands.h"
#include "cli/named_configs.h"

namespace {

using kedge::cli::Command;

constexpr std::array kCommands = {
    Command{"sft", "Training", "supervised fine-tuning on prompt-response rows, conversations or packs",
            "kedge sft [CONFIG.yaml] [key=value ...] [--fork CKPT]\n\n"
            "  kedge sft model.restore_from_path=DIR model.data.train_ds.file_path=train.jsonl \\\n"
            "            model.data.validation_ds.file_path=val.jsonl exp_manager.explicit_log_dir=runs/first\n"
            "  kedge sft configs/tiny/sft.yaml model.restore_from_path=DIR model.optim.lr=1e-4   a file, one key changed\n\n"
            "Rows are {\"input\": ..., \"output\": ...} or chats (docs/data.md); the model is left in runs/first/model. Started\n"
            "again with the same folder it goes on from the newest checkpoint. SIGTERM, SIGUSR1 and Ctrl-C save and exit\n"
            "with 143, 138 and 130.",
            kedge::cli::run_sft, kedge::cli::sft_flags},
    Command{"rm", "Training", "a reward model from pairs of a better and a worse answer, or from attribute values",
            "kedge rm [CONFIG.yaml] [key=value ...] [--fork CKPT]\n\n"
            "  kedge rm pretrained_checkpoint.restore_from_path=DIR \\\n"
            "           'model.data.data_prefix={train: [pairs.jsonl], validation: [val.jsonl], test: [val.jsonl]}' \\\n"
            "           exp_manager.explicit_log_dir=runs/judge\n"
            "  kedge score --model runs/judge/model --text 'How good is this?'    what it thinks of a text\n\n"
            "Started again with the same folder it goes on from the newest checkpoint.",
            kedge::cli::run_rm, kedge::cli::rm_flags},
    Command{"ppo", "Training", "online training by PPO, with a critic that learns beside the policy",
            "kedge ppo [CONFIG.yaml] [key=value ...] [--fork CKPT]\n\n"
            "  kedge serve critic pretrained_checkpoint.restore_from_path=JUDGE exp_manager.explicit_log_dir=runs/critic &\n"
            "  kedge ppo pretrained_checkpoint.restore_from_path=DIR \\\n"
            "            'model.data.data_prefix={train: [prompts.jsonl], validation: [val.jsonl], test: [val.jsonl]}' \\\n"
            "            remote_critic_rm.critic.ip=localhost remote_critic_rm.critic.port=5556 \\\n"
            "            exp_manager.explicit_log_dir=runs/aligned\n\n"
            "Tokens that lead to more reward than the critic expected become likelier. The critic's server gives rewards\n"
            "too (remote_critic_rm.combine_rm_and_critic_server), or they come from reward.sources. Started again with the\n"
            "same folder it goes on from the newest checkpoint, and brings the critic back to that step.",
            kedge::cli::run_ppo, kedge::cli::ppo_flags},
    Command{"reinforce", "Training", "online training: answers better than others to the same prompt become likelier (RLOO, GRPO)",
            "kedge reinforce [CONFIG.yaml] [key=value ...] [--fork CKPT]\n\n"
            "  kedge reinforce pretrained_checkpoint.restore_from_path=DIR \\\n"
            "        'model.data.data_prefix={train: [prompts.jsonl], validation: [val.jsonl], test: [val.jsonl]}' \\\n"
            "        remote_rm.host=localhost remote_rm.port=5555 exp_manager.explicit_log_dir=runs/aligned\n\n"
            "Rewards come from a server (kedge serve reward), from rules or from a program: reward.sources\n"
            "(docs/rewards.md). Started again with the same folder it goes on from the newest checkpoint. SIGTERM, SIGUSR1\n"
            "and Ctrl-C save and exit with 143, 138 and 130.",
            kedge::cli::run_reinforce, kedge::cli::reinforce_flags},
    Command{"rs", "Training", "online training by rejection sampling: the best of several answers are learned",
            "kedge rs [CONFIG.yaml] [key=value ...] [--fork CKPT]\n\n"
            "  kedge rs pretrained_checkpoint.restore_from_path=DIR \\\n"
            "           model.rs.num_rollouts_per_prompt=4 model.rs.top_n_rollouts=1 \\\n"
            "           'model.data.data_prefix={train: [prompts.jsonl], validation: [val.jsonl], test: [val.jsonl]}' \\\n"
            "           remote_rm.host=localhost remote_rm.port=5555 exp_manager.explicit_log_dir=runs/aligned\n\n"
            "Of four answers to a prompt the best is trained on as if it had been written for it. Rewards are as for kedge\n"
            "reinforce.",
            kedge::cli::run_rs, kedge::cli::rs_flags},
    Command{"serve", "Training", "a reward model or a trainable critic over HTTP, for online training (KServe v2, as Triton)",
            "kedge serve reward | critic [CONFIG.yaml] [key=value ...] [--token-file FILE] [--insecure]\n\n"
            "  kedge serve reward rm_model_file=DIR inference.port=5555\n"
            "  kedge serve critic pretrained_checkpoint.restore_from_path=DIR trainer.ppo.port=5556 \\\n"
            "                     exp_manager.explicit_log_dir=runs/critic\n\n"
            "Listens to this machine alone unless told otherwise (inference.ip, trainer.ppo.ip). SIGINT and SIGTERM end it\n"
            "after the call that runs. A critic started again with the same folder goes on where it was, also after\n"
            "kill -9: no training call is lost or repeated.",
            kedge::cli::run_serve, kedge::cli::serve_flags,
            [] {
              return std::vector<std::string>{"reward", "critic"};
            }},
    Command{"plan", "Training", "what a run will take: memory by phase, disk, steps, time; reads no weights and runs nothing",
            "kedge plan sft|rm|ppo|reinforce|rs|serve reward|serve critic [CONFIG.yaml] [key=value ...] [flags]\n"
            "       kedge plan CONFIG.yaml [key=value ...] [flags]\n\n"
            "  kedge plan sft model.restore_from_path=DIR model.data.train_ds.file_path=train.jsonl\n"
            "  kedge plan reinforce.yaml --beside 'serve reward rm_model_file=JUDGE'    both on one GPU",
            kedge::cli::run_plan, kedge::cli::plan_flags, kedge::cli::plan_words},
    Command{"tokenize", "Text and data", "text to token ids and back, one JSON line each way",
            "kedge tokenize --model DIR [--input FILE | --text TEXT] [flags]\n\n"
            "  kedge tokenize --model DIR --text 'Hello there'\n"
            "  echo '{\"text\": \"hello\"}' | kedge tokenize --model DIR        {\"ids\": [...]}\n"
            "  echo '{\"ids\": [1, 2]}'     | kedge tokenize --model DIR        {\"text\": ...}",
            kedge::cli::run_tokenize, kedge::cli::tokenize_flags},
    Command{"data", "Text and data", "look at a data file as the model will see it; prepare raw data",
            "kedge data check FILE [SECOND] --model DIR [--as prompts|sft|chat|preference|kto|regression] [flags]\n"
            "       kedge data prepare hh RAW.jsonl[.gz] --comparisons FILE --prompts FILE\n"
            "       kedge data pack ROWS.jsonl PACKS.jsonl --model DIR --pack-size 4096 [flags]\n"
            "       kedge data demo OUT [flags]\n\n"
            "  kedge data check prompts.jsonl --as prompts --model DIR       counts, lengths, faults, one row in tokens\n"
            "  kedge data check train.jsonl val.jsonl --as sft --model DIR   and how many prompts they share\n"
            "  kedge data prepare hh harmless.jsonl.gz --comparisons pairs.jsonl --prompts prompts.jsonl\n"
            "  kedge data pack rows.jsonl packs.jsonl --model DIR --pack-size 4096\n"
            "  kedge data demo town                                          what scripts/quickstart trains on",
            kedge::cli::run_data, kedge::cli::data_flags,
            [] {
              return std::vector<std::string>{"check", "prepare hh", "pack", "demo"};
            }},
    Command{"init", "Models", "a new model folder with random weights",
            "kedge init OUT --shape NAME [--tokenizer DIR] [flags]\n\n"
            "  kedge init small --shape nano --tokenizer DIR              30 million parameters for DIR's tokenizer\n"
            "  kedge init toy --shape tiny --family gpt2 --num-layers 3   any size can be changed\n"
            "  kedge init judge --shape tiny --num-labels 1               a reward model",
            kedge::cli::run_init, kedge::cli::init_flags},
    Command{"inspect", "Models", "a run on a page: what, on what, did it work; or what a checkpoint, a model or an adapter holds",
            "kedge inspect RUN | CHECKPOINT | MODEL [--json]\n\n"
            "  kedge inspect runs/aligned                      what was trained, did it work, where did it go wrong\n"
            "  kedge inspect runs/aligned --command            the command line that made it\n"
            "  kedge inspect runs/aligned --verify             are all its checkpoints as they were saved? Exit code 1: no\n"
            "  kedge inspect runs/aligned/checkpoints/NAME     one of them: counters, metrics, state, files\n"
            "  kedge inspect MODEL                             a model: its network, is it whole, the memory it takes",
            kedge::cli::run_inspect, kedge::cli::inspect_flags},
    Command{"logprobs", "Models", "log-probabilities of texts or token ids, one JSON line each; perplexity at the end",
            "kedge logprobs --model DIR [--input FILE | --text TEXT] [flags]\n\n"
            "  kedge logprobs --model DIR --text 'Once upon a time'\n"
            "  echo '{\"text\": \"hello\"}' | kedge logprobs --model DIR   {\"ids\": [...], \"logprobs\": [...]}, one less than ids\n"
            "  echo '{\"ids\": [1, 2]}'   | kedge logprobs --model DIR   the same without a tokenizer",
            kedge::cli::run_logprobs, kedge::cli::logprobs_flags},
    Command{"generate", "Models", "prompts to completions, one JSON line each; or text as it is drawn, or a chat",
            "kedge generate --model DIR [--input FILE | --text TEXT | --chat] [flags]\n\n"
            "Lines hold \"prompt\" (a text or messages), \"messages\" (by the chat template), \"text\" or \"ids\"; they come back\n"
            "with \"response\", \"ids\", \"logprobs\" and \"finish\" (end, length or error).\n\n"
            "  kedge generate --model DIR --text 'Once upon a time' --stream\n"
            "  kedge generate --model DIR --input prompts.jsonl --samples 4 --seed 7 > completions.jsonl\n"
            "  kedge generate --model DIR --chat --system 'Be brief.'",
            kedge::cli::run_generate, kedge::cli::generate_flags},
    Command{"score", "Models", "rewards of texts by a reward model, one JSON line each",
            "kedge score --model DIR [--input FILE | --text TEXT] [flags]\n\n"
            "Lines hold \"prompt\" and \"response\", or \"messages\" (by the chat template), or \"text\", or \"ids\"; they come back\n"
            "with \"reward\", or with \"rewards\" where the model has several labels.\n\n"
            "  kedge score --model DIR --input answers.jsonl > scored.jsonl",
            kedge::cli::run_score, kedge::cli::score_flags},
    Command{"export", "Models", "a model folder for transformers and others: adapter merged or kept, tokenizer beside it",
            "kedge export FROM OUT [--step N | --best | --last] [--adapter DIR] [--merge] [flags]\n\n"
            "  kedge export runs/aligned aligned                          its model, or else its best checkpoint\n"
            "  kedge export runs/aligned early --step 40 --merge          a checkpoint of it, adapters added to their base\n"
            "  kedge export BASE merged --adapter DIR --merge --dtype bf16\n"
            "  kedge export BASE adapter --adapter DIR                    the adapter alone, in PEFT's layout",
            kedge::cli::run_export, kedge::cli::export_flags},
    Command{"bench", "Look and check", "the benchmarks: one JSON line with settings, median and spread",
            "kedge bench CASE --model DIR | --shape NAME [flags]\n\n"
            "  kedge bench train.step --shape 30m --rows 16 --length 256 --dtype fp32\n"
            "  kedge bench engine.decode --shape 30m --batch 64 --prompt-tokens 32 --new-tokens 128 --dtype fp32\n"
            "  kedge bench server.reward --shape 30m --clients 64 --requests 256 --length 256",
            kedge::cli::run_bench, kedge::cli::bench_flags, kedge::cli::bench_words},
    Command{"eval", "Look and check", "every checkpoint of a run, or other policies, on the same prompts: reward, win rate, KL",
            "kedge eval RUN | CHECKPOINT | MODEL ... [flags] [key=value ...]\n\n"
            "  kedge eval runs/aligned                                  the start and every checkpoint, on its validation\n"
            "  kedge eval runs/aligned --every 100 --samples 4 --limit 256 --csv curve.csv\n"
            "  kedge eval runs/aligned --steps 400 --prompts test.jsonl --greedy --answers answers.jsonl\n"
            "  kedge eval runs/first runs/second                        two runs, by the rewards of the first\n"
            "  kedge eval runs/maths --samples 16 --pass 1 --pass-k 1,4,16\n"
            "  kedge eval base tuned --prompts test.jsonl --reward reward.yaml\n"
            "  kedge eval tuned --prompts test.jsonl reward.sources.brief.kind=length reward.sources.brief.target=50\n\n"
            "Every policy answers the same prompts with the same draws, so that they differ by their weights alone. Nothing\n"
            "is written into the run.",
            kedge::cli::run_eval, kedge::cli::eval_flags},
    Command{"show", "Look and check", "answers of an online run: by step, best or worst first, over steps, beside another run",
            "kedge show RUN [--step N | first | last] [--sort KEY] [--worst] [flags]\n\n"
            "  kedge show runs/aligned                                  the newest step, best rewards first\n"
            "  kedge show runs/aligned --steps                          every step in a line\n"
            "  kedge show runs/aligned --step 40 --worst --limit 3 --full\n"
            "  kedge show runs/aligned --sort kl                        where the policy went farthest from its start\n"
            "  kedge show runs/aligned --prompt 17                      how answers to one prompt changed\n"
            "  kedge show runs/first --diff runs/second                 the same prompts in two runs, greatest rise first\n"
            "  kedge show runs/aligned --step 0 --other-step 16         and in two steps of one\n"
            "  kedge show runs/aligned --limit 0 --json | jq 'select(.kl > 0.1) | .response'",
            kedge::cli::run_show, kedge::cli::show_flags},
    Command{"dashboard", "Look and check", "a local web page of runs: curves, timing, answers, servers, settings; live while they go on",
            "kedge dashboard RUN ... [--port N] [--ip ADDRESS]\n\n"
            "  kedge dashboard runs/aligned                             open the address that it prints\n"
            "  kedge dashboard runs/first runs/second                   both in the same charts\n"
            "  kedge dashboard runs                                     all runs in a folder, and those that begin later\n"
            "  ssh -L 6006:localhost:6006 HOST kedge dashboard runs     elsewhere; then open http://localhost:6006/ here\n\n"
            "Reads the runs' folders and writes nothing. Listens to this machine alone unless told otherwise, needs no\n"
            "network, and works with the keyboard: press ? on the page.",
            kedge::cli::run_dashboard, kedge::cli::dashboard_flags},
    Command{"report", "Look and check", "one HTML file of one or more runs to send to somebody: verdict, curves, answers, settings",
            "kedge report RUN... [--out FILE]\n\n"
            "  kedge report runs/aligned                                report.html, which opens in any browser\n"
            "  kedge report runs/slow runs/fast --out compared.html     both in the same charts; how their settings differ\n"
            "  kedge report runs/aligned --no-answers --out - | gzip > report.html.gz\n\n"
            "The file needs no network and no other file. Nothing is written into the run.",
            kedge::cli::run_report, kedge::cli::report_flags},
    Command{"replay", "Look and check", "computes a step of an online run again from its records, and compares every number",
            "kedge replay RUN [--step N | first | last] [--regenerate] [flags]\n\n"
            "  kedge replay runs/aligned --step 12                      log-probs, rewards, advantages, loss, weights\n"
            "  kedge replay runs/aligned --step 12 --regenerate         and the answers, drawn again by the policy\n"
            "  kedge replay runs/aligned --step 12 --json | jq '.quantities[] | select(.differ > 0)'\n\n"
            "Begins with the newest checkpoint before the step. Nothing is written. Exit code 0: all is equal,\n"
            "1: something differs.",
            kedge::cli::run_replay, kedge::cli::replay_flags},
    Command{"bisect", "Look and check", "the first step of an online run that does not replay, and what is to blame",
            "kedge bisect RUN [--from N] [--to N] [--regenerate] [flags]\n\n"
            "  kedge bisect runs/aligned                                the files first, then every step from the beginning\n"
            "  kedge bisect runs/aligned --from 40                      from the newest checkpoint before step 40\n\n"
            "Finds a record of which a token changed, a checkpoint of which a bit changed, an update that led elsewhere.\n"
            "Nothing is written. Exit code 0: all is equal, 1: something differs.",
            kedge::cli::run_bisect, kedge::cli::bisect_flags},
    Command{"config", "Look and check", "every key of a configuration with type, default, bounds and meaning",
            "kedge config NAME [--yaml | --json]\n\n"
            "  kedge config reinforce                          a table of every key\n"
            "  kedge config reinforce --yaml > mine.yaml       a file to start from: every key with its meaning",
            kedge::cli::run_config, kedge::cli::config_flags, kedge::cli::config_names},
    Command{"doctor", "Look and check", "this machine: devices, libraries, limits; what is missing and how to install it",
            "kedge doctor [--json]\n\n"
            "  kedge doctor                                    a line each\n"
            "  kedge doctor --json | jq .cuda                  for scripts",
            kedge::cli::run_doctor, kedge::cli::doctor_flags},
    Command{"completion", "Look and check", "a script that lets a shell complete commands, flags, settings and their values",
            "kedge completion bash | zsh | fish\n\n"
            "  source <(kedge completion bash)                 in this shell, from now on\n"
            "  kedge completion bash > ~/.local/share/bash-completion/completions/kedge",
            kedge::cli::run_completion, kedge::cli::completion_flags, kedge::cli::completion_words},
};

}  // namespace

// The one catch: what each kind of error means to the caller. end_job ends the other ranks of the job too.
int main(int argc, char** argv) {
  kedge::keep_freed_memory();
  try {
    if (const char* level = std::getenv("KEDGE_LOG"); level != nullptr && *level != '\0')
      kedge::set_screen_level(kedge::parse_log_level(level));
    return kedge::cli::run_commands(kCommands, kedge::cli::Arguments(argv + 1, argv + argc));
  } catch (const kedge::Interrupted& interrupted) {
    kedge::end_job(interrupted.what(), kedge::exit_code_of(interrupted.signal()));
  } catch (const kedge::UsageError& error) {
    kedge::end_job(error.what(), kedge::kExitUsage);
  } catch (const kedge::Error& error) {
    kedge::end_job(error.what(), kedge::kExitWorld);
  } catch (const std::bad_alloc&) {
    kedge::end_job("out of memory", kedge::kExitWorld);
  } catch (const c10::Error& error) {
    kedge::end_job(kedge::str("error inside torch, probably a bug in kedge: ", error.what_without_backtrace()), kedge::kExitWorld);
  } catch (const std::exception& error) {
    kedge::end_job(kedge::str("a bug in kedge, please report it: ", error.what()), kedge::kExitWorld);
  }
}
