#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>

#include <c10/util/Exception.h>

#include "kedge/core/error.h"
#include "kedge/core/first_process.h"
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
            "Rows are {\"input\": ..., \"output\": ...} or chats (docs/data.md); the model is written to runs/first/model.\n"
            "Started again with the same folder, the run resumes from its newest checkpoint. SIGTERM, SIGUSR1 and Ctrl-C\n"
            "save and exit with 143, 138 and 130.",
            kedge::cli::run_sft, kedge::cli::sft_flags},
    Command{"rm", "Training", "train a reward model on pairs of a better and a worse response, or on attribute values",
            "kedge rm [CONFIG.yaml] [key=value ...] [--fork CKPT]\n\n"
            "  kedge rm pretrained_checkpoint.restore_from_path=DIR \\\n"
            "           'model.data.data_prefix={train: [pairs.jsonl], validation: [val.jsonl], test: [val.jsonl]}' \\\n"
            "           exp_manager.explicit_log_dir=runs/judge\n"
            "  kedge score --model runs/judge/model --text 'How good is this?'    the reward of a text\n\n"
            "Started again with the same folder, the run resumes from its newest checkpoint.",
            kedge::cli::run_rm, kedge::cli::rm_flags},
    Command{"dpo", "Training", "train on pairs of a better and a worse response, without rollouts (DPO, IPO, hinge, RPO)",
            "kedge dpo [CONFIG.yaml] [key=value ...] [--fork CKPT]\n\n"
            "  kedge dpo pretrained_checkpoint.restore_from_path=DIR model.dpo.beta=0.1 \\\n"
            "            'model.data.data_prefix={train: [pairs.jsonl], validation: [val.jsonl], test: [val.jsonl]}' \\\n"
            "            exp_manager.explicit_log_dir=runs/preferred\n"
            "  kedge dpo configs/tiny/dpo.yaml model.dpo.loss_type=ipo            a file, one key changed\n\n"
            "Rows are {\"prompt\": ..., \"chosen\": ..., \"rejected\": ...}, text or messages (docs/data.md). The model it starts\n"
            "from is the reference, whose log-probabilities are computed once, before the first step. Started again with\n"
            "the same folder, the run resumes from its newest checkpoint.",
            kedge::cli::run_dpo, kedge::cli::dpo_flags},
    Command{"kto", "Training", "train on single responses that are marked good or bad, without rollouts (KTO)",
            "kedge kto [CONFIG.yaml] [key=value ...] [--fork CKPT]\n\n"
            "  kedge kto pretrained_checkpoint.restore_from_path=DIR model.kto.beta=0.1 \\\n"
            "            'model.data.data_prefix={train: [marked.jsonl], validation: [val.jsonl], test: [val.jsonl]}' \\\n"
            "            exp_manager.explicit_log_dir=runs/preferred\n\n"
            "Rows are {\"prompt\": ..., \"completion\": ..., \"label\": true}, text or messages (docs/data.md). If one kind is\n"
            "rarer, model.kto.desirable_loss_weight and undesirable_loss_weight balance them. Started again with the same\n"
            "folder, the run resumes from its newest checkpoint.",
            kedge::cli::run_kto, kedge::cli::kto_flags},
    Command{"ppo", "Training", "online training with PPO and a critic that is trained together with the policy",
            "kedge ppo [CONFIG.yaml] [key=value ...] [--fork CKPT]\n\n"
            "  kedge serve critic pretrained_checkpoint.restore_from_path=RM exp_manager.explicit_log_dir=runs/critic &\n"
            "  kedge ppo pretrained_checkpoint.restore_from_path=DIR \\\n"
            "            'model.data.data_prefix={train: [prompts.jsonl], validation: [val.jsonl], test: [val.jsonl]}' \\\n"
            "            remote_critic_rm.critic.ip=localhost remote_critic_rm.critic.port=5556 \\\n"
            "            exp_manager.explicit_log_dir=runs/aligned\n\n"
            "RM is a reward model's folder. Rewards come from the critic's server\n"
            "(remote_critic_rm.combine_rm_and_critic_server) or from reward.sources. Started again with the same folder,\n"
            "the run resumes from its newest checkpoint and restores the critic to that step.",
            kedge::cli::run_ppo, kedge::cli::ppo_flags},
    Command{"reinforce", "Training", "online training with REINFORCE and a leave-one-out or group baseline (RLOO, GRPO)",
            "kedge reinforce [CONFIG.yaml] [key=value ...] [--fork CKPT]\n\n"
            "  kedge reinforce pretrained_checkpoint.restore_from_path=DIR \\\n"
            "        'model.data.data_prefix={train: [prompts.jsonl], validation: [val.jsonl], test: [val.jsonl]}' \\\n"
            "        remote_rm.host=localhost remote_rm.port=5555 exp_manager.explicit_log_dir=runs/aligned\n\n"
            "Rewards come from a server (kedge serve reward), from rules or from a program: reward.sources\n"
            "(docs/rewards.md). Started again with the same folder, the run resumes from its newest checkpoint. SIGTERM,\n"
            "SIGUSR1 and Ctrl-C save and exit with 143, 138 and 130.",
            kedge::cli::run_reinforce, kedge::cli::reinforce_flags},
    Command{"grpo", "Training", "online training with GRPO: several responses per prompt are compared; recipes such as DAPO",
            "kedge grpo [CONFIG.yaml] [--recipe NAME] [key=value ...] [--fork CKPT]\n\n"
            "  kedge grpo pretrained_checkpoint.restore_from_path=DIR \\\n"
            "        'model.data.data_prefix={train: [prompts.jsonl], validation: [val.jsonl], test: [val.jsonl]}' \\\n"
            "        remote_rm.host=localhost remote_rm.port=5555 exp_manager.explicit_log_dir=runs/aligned\n"
            "  kedge grpo --recipe dapo mine.yaml          a published variant of it, with the settings of a file\n\n"
            "Defaults: 8 responses per prompt, advantages divided by the group's deviation, clip 0.2, mean over tokens,\n"
            "no KL, learning rate 1e-6. Rewards are configured as for kedge reinforce. Started again with the same folder,\n"
            "the run resumes from its newest checkpoint.",
            kedge::cli::run_grpo, kedge::cli::grpo_flags},
    Command{"rloo", "Training", "online training with RLOO: each response compared with the mean of the prompt's others",
            "kedge rloo [CONFIG.yaml] [key=value ...] [--fork CKPT]\n\n"
            "  kedge rloo pretrained_checkpoint.restore_from_path=DIR \\\n"
            "        'model.data.data_prefix={train: [prompts.jsonl], validation: [val.jsonl], test: [val.jsonl]}' \\\n"
            "        remote_rm.host=localhost remote_rm.port=5555 exp_manager.explicit_log_dir=runs/aligned\n\n"
            "Defaults are those of TRL: 2 responses per prompt, KL 0.05 in the reward, the ratio of a whole response\n"
            "clipped at 0.2, learning rate 1e-6. Rewards are configured as for kedge reinforce.",
            kedge::cli::run_rloo, kedge::cli::rloo_flags},
    Command{"rs", "Training", "online training by rejection sampling: fine-tune on the best of several responses",
            "kedge rs [CONFIG.yaml] [key=value ...] [--fork CKPT]\n\n"
            "  kedge rs pretrained_checkpoint.restore_from_path=DIR \\\n"
            "           model.rs.num_rollouts_per_prompt=4 model.rs.top_n_rollouts=1 \\\n"
            "           'model.data.data_prefix={train: [prompts.jsonl], validation: [val.jsonl], test: [val.jsonl]}' \\\n"
            "           remote_rm.host=localhost remote_rm.port=5555 exp_manager.explicit_log_dir=runs/aligned\n\n"
            "Samples num_rollouts_per_prompt responses to each prompt and fine-tunes on the top_n_rollouts best ones.\n"
            "Rewards are configured as for kedge reinforce.",
            kedge::cli::run_rs, kedge::cli::rs_flags},
    Command{"serve", "Training", "serve a reward model or trainable critic over HTTP for online training (KServe v2, like Triton)",
            "kedge serve reward | critic [CONFIG.yaml] [key=value ...] [--token-file FILE] [--insecure]\n\n"
            "  kedge serve reward rm_model_file=DIR inference.port=5555\n"
            "  kedge serve critic pretrained_checkpoint.restore_from_path=DIR trainer.ppo.port=5556 \\\n"
            "                     exp_manager.explicit_log_dir=runs/critic\n\n"
            "Listens on localhost only by default (inference.ip, trainer.ppo.ip). SIGINT and SIGTERM stop the server after\n"
            "the current call. A critic restarted with the same folder continues where it stopped, even after kill -9:\n"
            "no training call is lost or applied twice.",
            kedge::cli::run_serve, kedge::cli::serve_flags,
            [] {
              return std::vector<std::string>{"reward", "critic"};
            }},
    Command{"plan", "Training", "estimate a run's memory by phase, disk, steps and time, without reading weights or training",
            "kedge plan COMMAND [CONFIG.yaml] [key=value ...] [flags]\n"
            "       kedge plan CONFIG.yaml [key=value ...] [flags]\n\n"
            "  kedge plan sft model.restore_from_path=DIR model.data.train_ds.file_path=train.jsonl\n"
            "  kedge plan reinforce.yaml --beside 'serve reward rm_model_file=RM'    both on the same GPU\n\n"
            "COMMAND: sft, rm, dpo, kto, ppo, reinforce, grpo, rloo, rs, serve reward or serve critic.",
            kedge::cli::run_plan, kedge::cli::plan_flags, kedge::cli::plan_words},
    Command{"tokenize", "Text and data", "convert text to token ids and back, as JSON lines",
            "kedge tokenize --model DIR [--input FILE | --text TEXT] [flags]\n\n"
            "  kedge tokenize --model DIR --text 'Hello there'\n"
            "  echo '{\"text\": \"hello\"}' | kedge tokenize --model DIR        {\"ids\": [...]}\n"
            "  echo '{\"ids\": [1, 2]}'     | kedge tokenize --model DIR        {\"text\": ...}",
            kedge::cli::run_tokenize, kedge::cli::tokenize_flags},
    Command{"data", "Text and data", "check a data file as the model will see it; prepare, pack or generate data",
            "kedge data check FILE [SECOND] --model DIR [--as prompts|sft|chat|preference|kto|regression] [flags]\n"
            "       kedge data prepare hh RAW.jsonl[.gz] --comparisons FILE --prompts FILE\n"
            "       kedge data pack ROWS.jsonl PACKS.jsonl --model DIR --pack-size 4096 [flags]\n"
            "       kedge data demo OUT [flags]\n\n"
            "  kedge data check prompts.jsonl --as prompts --model DIR       counts, lengths, errors, one row as tokens\n"
            "  kedge data check train.jsonl val.jsonl --as sft --model DIR   also how many prompts both contain\n"
            "  kedge data prepare hh harmless.jsonl.gz --comparisons pairs.jsonl --prompts prompts.jsonl\n"
            "  kedge data pack rows.jsonl packs.jsonl --model DIR --pack-size 4096\n"
            "  kedge data demo town                                          the data that scripts/quickstart uses",
            kedge::cli::run_data, kedge::cli::data_flags,
            [] {
              return std::vector<std::string>{"check", "prepare hh", "pack", "demo"};
            }},
    Command{"init", "Models", "create a model folder with random weights",
            "kedge init OUT --shape NAME [--tokenizer DIR] [flags]\n\n"
            "  kedge init small --shape nano --tokenizer DIR              30 million parameters, DIR's tokenizer\n"
            "  kedge init toy --shape tiny --family gpt2 --num-layers 3   any size can be changed\n"
            "  kedge init judge --shape tiny --num-labels 1               a reward model",
            kedge::cli::run_init, kedge::cli::init_flags},
    Command{"inspect", "Models", "summarize a run: settings, data, result; or the contents of a checkpoint, a model or an adapter",
            "kedge inspect RUN | CHECKPOINT | MODEL [--json]\n\n"
            "  kedge inspect runs/aligned                      what was trained, whether it worked, what went wrong\n"
            "  kedge inspect runs/aligned --command            the command line that started it\n"
            "  kedge inspect runs/aligned --verify             check every checkpoint for damage; exit code 1 if any\n"
            "  kedge inspect runs/aligned/checkpoints/NAME     one checkpoint: counters, metrics, state, files\n"
            "  kedge inspect MODEL                             a model: architecture, completeness, memory needed",
            kedge::cli::run_inspect, kedge::cli::inspect_flags},
    Command{"logprobs", "Models", "compute log-probabilities of texts or token ids, as JSON lines; perplexity at the end",
            "kedge logprobs --model DIR [--input FILE | --text TEXT] [flags]\n\n"
            "  kedge logprobs --model DIR --text 'Once upon a time'\n"
            "  echo '{\"text\": \"hello\"}' | kedge logprobs --model DIR   {\"ids\": [...], \"logprobs\": [...]}, one less than ids\n"
            "  echo '{\"ids\": [1, 2]}'   | kedge logprobs --model DIR   the same without a tokenizer",
            kedge::cli::run_logprobs, kedge::cli::logprobs_flags},
    Command{"generate", "Models", "generate completions of prompts as JSON lines, stream text, or chat",
            "kedge generate --model DIR [--input FILE | --text TEXT | --chat] [flags]\n\n"
            "Input lines have \"prompt\" (text or messages), \"messages\" (chat template applied), \"text\" or \"ids\"; output\n"
            "lines add \"response\", \"ids\", \"logprobs\" and \"finish\" (end, length or error).\n\n"
            "  kedge generate --model DIR --text 'Once upon a time' --stream\n"
            "  kedge generate --model DIR --input prompts.jsonl --samples 4 --seed 7 > completions.jsonl\n"
            "  kedge generate --model DIR --chat --system 'Be brief.'",
            kedge::cli::run_generate, kedge::cli::generate_flags},
    Command{"score", "Models", "score texts with a reward model, as JSON lines",
            "kedge score --model DIR [--input FILE | --text TEXT] [flags]\n\n"
            "Input lines have \"prompt\" and \"response\", or \"messages\" (chat template applied), or \"text\", or \"ids\"; output\n"
            "lines add \"reward\", or \"rewards\" if the model has several labels.\n\n"
            "  kedge score --model DIR --input answers.jsonl > scored.jsonl",
            kedge::cli::run_score, kedge::cli::score_flags},
    Command{"export", "Models", "write a model folder for transformers: adapter merged or separate, with the tokenizer",
            "kedge export FROM OUT [--step N | --best | --last] [--adapter DIR] [--merge] [flags]\n\n"
            "  kedge export runs/aligned aligned                          the final model, otherwise the best checkpoint\n"
            "  kedge export runs/aligned early --step 40 --merge          a checkpoint, its adapter merged into the base\n"
            "  kedge export BASE merged --adapter DIR --merge --dtype bf16\n"
            "  kedge export BASE adapter --adapter DIR                    only the adapter, in PEFT's layout",
            kedge::cli::run_export, kedge::cli::export_flags},
    Command{"bench", "Evaluate and inspect", "run a benchmark; prints one JSON line with settings, median and spread",
            "kedge bench CASE --model DIR | --shape NAME [flags]\n\n"
            "  kedge bench train.step --shape 30m --rows 16 --length 256 --dtype fp32\n"
            "  kedge bench engine.decode --shape 30m --batch 64 --prompt-tokens 32 --new-tokens 128 --dtype fp32\n"
            "  kedge bench server.reward --shape 30m --clients 64 --requests 256 --length 256",
            kedge::cli::run_bench, kedge::cli::bench_flags, kedge::cli::bench_words},
    Command{"eval", "Evaluate and inspect", "evaluate a run's checkpoints, or other policies, on the same prompts: reward, win rate, KL",
            "kedge eval RUN | CHECKPOINT | MODEL ... [flags] [key=value ...]\n\n"
            "  kedge eval runs/aligned                                  start and checkpoints, on the validation prompts\n"
            "  kedge eval runs/aligned --every 100 --samples 4 --limit 256 --csv curve.csv\n"
            "  kedge eval runs/aligned --steps 400 --prompts test.jsonl --greedy --answers answers.jsonl\n"
            "  kedge eval runs/first runs/second                        two runs, with the rewards of the first\n"
            "  kedge eval runs/maths --samples 16 --pass 1 --pass-k 1,4,16\n"
            "  kedge eval base tuned --prompts test.jsonl --reward reward.yaml\n"
            "  kedge eval tuned --prompts test.jsonl reward.sources.brief.kind=length reward.sources.brief.target=50\n\n"
            "Every policy gets the same prompts and the same random numbers, so only the weights differ. Nothing is\n"
            "written into the run.",
            kedge::cli::run_eval, kedge::cli::eval_flags},
    Command{"show", "Evaluate and inspect",
            "show responses of an online run: by step, best or worst first, over steps, against another run",
            "kedge show RUN [--step N | first | last] [--sort KEY] [--worst] [flags]\n\n"
            "  kedge show runs/aligned                                  the newest step, best rewards first\n"
            "  kedge show runs/aligned --steps                          one line per step\n"
            "  kedge show runs/aligned --step 40 --worst --limit 3 --full\n"
            "  kedge show runs/aligned --sort kl                        largest KL from the reference policy first\n"
            "  kedge show runs/aligned --prompt 17                      how the responses to one prompt changed\n"
            "  kedge show runs/first --diff runs/second                 the same prompts in two runs, largest gain first\n"
            "  kedge show runs/aligned --step 0 --other-step 16         the same prompts in two steps of a run\n"
            "  kedge show runs/aligned --limit 0 --json | jq 'select(.kl > 0.1) | .response'",
            kedge::cli::run_show, kedge::cli::show_flags},
    Command{"dashboard", "Evaluate and inspect",
            "local web page of runs: curves, timing, responses, servers, settings; updates during training",
            "kedge dashboard RUN ... [--port N] [--ip ADDRESS]\n\n"
            "  kedge dashboard runs/aligned                             open the printed address\n"
            "  kedge dashboard runs/first runs/second                   both in the same charts\n"
            "  kedge dashboard runs                                     all runs in a folder, including new ones\n"
            "  ssh -L 6006:localhost:6006 HOST kedge dashboard runs     on another machine: open http://localhost:6006/\n\n"
            "Reads the runs' folders and writes nothing. Listens on localhost only unless --ip is given, needs no\n"
            "network, and works with the keyboard: press ? for the keys.",
            kedge::cli::run_dashboard, kedge::cli::dashboard_flags},
    Command{"report", "Evaluate and inspect", "write one HTML file about one or more runs, to share: verdict, curves, responses, settings",
            "kedge report RUN... [--out FILE]\n\n"
            "  kedge report runs/aligned                                writes report.html, for any browser\n"
            "  kedge report runs/slow runs/fast --out compared.html     both in the same charts, and settings that differ\n"
            "  kedge report runs/aligned --no-answers --out - | gzip > report.html.gz\n\n"
            "The file needs no network and no other file. Nothing is written into the run.",
            kedge::cli::run_report, kedge::cli::report_flags},
    Command{"track", "Evaluate and inspect", "send a run's metrics to MLflow or Weights & Biases: what is missing there, or all of them",
            "kedge track RUN [key=value ...]\n\n"
            "  kedge track runs/aligned                                 what the run's own trackers have not confirmed\n"
            "  kedge track runs/aligned exp_manager.create_mlflow_logger=true \\\n"
            "        exp_manager.mlflow_logger_kwargs.tracking_uri=http://localhost:5000    a run that had no tracker\n\n"
            "A run sends its metrics itself (exp_manager.create_mlflow_logger, create_wandb_logger); this is for runs that\n"
            "ended while a tracker was away. Exit code 0: every number is there, 1: the tracker is away or refuses.",
            kedge::cli::run_track, kedge::cli::track_flags},
    Command{"replay", "Evaluate and inspect", "recompute a step of an online run from its records and compare every value",
            "kedge replay RUN [--step N | first | last] [--regenerate] [flags]\n\n"
            "  kedge replay runs/aligned --step 12                      log-probs, rewards, advantages, loss, weights\n"
            "  kedge replay runs/aligned --step 12 --regenerate         also sample the responses again from the policy\n"
            "  kedge replay runs/aligned --step 12 --json | jq '.quantities[] | select(.differ > 0)'\n\n"
            "Starts from the newest checkpoint before the step. Nothing is written. Exit code 0: everything is equal,\n"
            "1: something differs.",
            kedge::cli::run_replay, kedge::cli::replay_flags},
    Command{"bisect", "Evaluate and inspect", "find the first step of an online run that does not replay, and the cause",
            "kedge bisect RUN [--from N] [--to N] [--regenerate] [flags]\n\n"
            "  kedge bisect runs/aligned                                check the files, then replay every step\n"
            "  kedge bisect runs/aligned --from 40                      from the newest checkpoint before step 40\n\n"
            "Finds records with changed tokens, checkpoints with changed bits, and updates with a different result.\n"
            "Nothing is written. Exit code 0: everything is equal, 1: something differs.",
            kedge::cli::run_bisect, kedge::cli::bisect_flags},
    Command{"config", "Evaluate and inspect", "list every key of a configuration with type, default, bounds and meaning",
            "kedge config NAME [--yaml | --json]\n\n"
            "  kedge config reinforce                          a table of every key\n"
            "  kedge config reinforce --yaml > mine.yaml       a file to start from: every key with its meaning",
            kedge::cli::run_config, kedge::cli::config_flags, kedge::cli::config_names},
    Command{"doctor", "Evaluate and inspect", "check this machine: devices, libraries, limits; what is missing and how to install it",
            "kedge doctor [--json]\n\n"
            "  kedge doctor                                    one line per check\n"
            "  kedge doctor --json | jq .cuda                  for scripts",
            kedge::cli::run_doctor, kedge::cli::doctor_flags},
    Command{"completion", "Evaluate and inspect", "print a script that completes commands, flags, settings and values in your shell",
            "kedge completion bash | zsh | fish\n\n"
            "  source <(kedge completion bash)                 for this shell session\n"
            "  kedge completion bash > ~/.local/share/bash-completion/completions/kedge",
            kedge::cli::run_completion, kedge::cli::completion_flags, kedge::cli::completion_words},
};

// The one catch: what each kind of error means to the caller. end_job ends the other ranks of the job too.
int run_program(int argc, char** argv) {
  kedge::keep_freed_memory();
  try {
    if (const char* level = std::getenv("KEDGE_LOG"); level != nullptr && *level != '\0')
      kedge::set_screen_level(kedge::parse_log_level(level));
    kedge::end_process(kedge::cli::run_commands(kCommands, kedge::cli::Arguments(argv + 1, argv + argc)));
  } catch (const kedge::Interrupted& interrupted) {
    kedge::end_job(interrupted.what(), kedge::exit_code_of(interrupted.signal()));
  } catch (const kedge::UsageError& error) {
    kedge::end_job(error.what(), kedge::kExitUsage);
  } catch (const kedge::Error& error) {
    kedge::end_job(error.what(), kedge::kExitWorld);
  } catch (const std::filesystem::filesystem_error& error) {
    kedge::end_job(kedge::str(error.path1().string(), ": ", error.what()), kedge::kExitWorld);
  } catch (const std::bad_alloc&) {
    kedge::end_job("out of memory", kedge::kExitWorld);
  } catch (const c10::Error& error) {
    kedge::end_job(kedge::str("error inside torch, probably a bug in kedge: ", error.what_without_backtrace()), kedge::kExitWorld);
  } catch (const std::exception& error) {
    kedge::end_job(kedge::str("a bug in kedge, please report it: ", error.what()), kedge::kExitWorld);
  }
}

}  // namespace

// The first process of a container has additional duties.
int main(int argc, char** argv) {
  const auto work = [&] { return run_program(argc, argv); };
  return ::getpid() == 1 ? kedge::run_as_first_process(work) : work();
}
