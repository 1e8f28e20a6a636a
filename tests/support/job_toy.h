#pragma once
// The files of a small job: a model over bytes with its tokenizer, a reward model, and data for each kind of training.
#include <string>
#include <vector>

#include "kedge/config/config.h"
#include "kedge/core/error.h"
#include "kedge/model/files/model_files.h"
#include "kedge/train/checkpoint/run_record.h"

#include "tests/support/temp_folder.h"
#include "tests/support/tiny_training.h"

namespace kedge::testing {

struct JobToy : TempFolder {
  JobToy() {
    write_model("lm", {});
    write_model("rm", {HeadKind::score, 1, false});
    std::string prompts;
    for (int i = 0; i < 8; ++i) prompts += str("{\"text\": \"p", i, "\"}\n");
    file("prompts.jsonl", prompts);
    file("rows.jsonl", sft_rows(8));
    file("pairs.jsonl", pair_rows(8));
  }

  // What an online run of `algorithm` in the folder `run` needs to be told.
  [[nodiscard]] std::vector<std::string> online(const std::string& algorithm, const std::string& run = "run") const {
    const std::string data = (path() / "prompts.jsonl").string();
    const std::string loop = "trainer." + algorithm, rollouts = "model." + algorithm;
    return {"pretrained_checkpoint.restore_from_path=" + (path() / "lm").string(),
            "model.data.data_prefix={train: [" + data + "], validation: [" + data + "], test: [" + data + "]}",
            "exp_manager.explicit_log_dir=" + (path() / run).string(),
            "exp_manager.console=false",
            "trainer.threads=1",
            "model.encoder_seq_length=24",
            "model.global_batch_size=2",
            loop + ".max_steps=2",
            loop + ".max_epochs=100",
            loop + ".val_check_interval=0",
            loop + ".save_interval=1",
            rollouts + ".num_rollout_samples=2",
            rollouts + ".length_params.max_length=6"};
  }
  // The same for a supervised one.
  [[nodiscard]] std::vector<std::string> sft(const std::string& run = "run") const {
    const std::string data = (path() / "rows.jsonl").string();
    return {"model.restore_from_path=" + (path() / "lm").string(),
            "model.data.train_ds.file_path=" + data,
            "model.data.validation_ds.file_path=" + data,
            "model.data.train_ds.global_batch_size=4",
            "model.data.train_ds.micro_batch_size=2",
            "trainer.sft.max_steps=2",
            "trainer.sft.max_epochs=100",
            "trainer.sft.val_check_interval=0",
            "trainer.threads=1",
            "exp_manager.console=false",
            "exp_manager.explicit_log_dir=" + (path() / run).string()};
  }
  [[nodiscard]] std::vector<std::string> rm(const std::string& run = "run") const {
    const std::string data = (path() / "pairs.jsonl").string();
    return {"pretrained_checkpoint.restore_from_path=" + (path() / "lm").string(),
            "model.data.data_prefix={train: [" + data + "], validation: [" + data + "], test: [" + data + "]}",
            "model.global_batch_size=4",
            "model.micro_batch_size=2",
            "trainer.rm.max_steps=2",
            "trainer.rm.max_epochs=100",
            "trainer.rm.val_check_interval=2",
            "trainer.threads=1",
            "exp_manager.console=false",
            "exp_manager.explicit_log_dir=" + (path() / run).string()};
  }

  // As if the tokenizer had got tokens for which the embedding has no rows. The weights are no longer readable.
  void cut_vocabulary(int64_t vocab_size) const {
    Json config = Json::parse(read_text(path() / "lm/config.json"));
    config.set("vocab_size", vocab_size);
    write_atomic(path() / "lm/config.json", config.dump());
    write_atomic(path() / "lm/model.safetensors", "no weights");
  }

  // Beside the weights of `lm`.
  void write_tokenizer_without_bos() const {
    TokenizerFiles files = byte_tokenizer_files();
    files.config.set("bos_token", nullptr);
    files.write(path() / "lm");
  }

  // Of the model that a run left.
  [[nodiscard]] std::string weights_hash(const std::string& run) const { return file_hash(path() / run / "model/model.safetensors"); }

 private:
  void write_model(const std::string& name, const HeadOptions& head) const {
    save_model(*byte_model(head), path() / name);
    byte_tokenizer_files().write(path() / name);
  }
};

// Loads settings into a job; of the same key the last one holds.
inline void load_job(auto& job, const std::vector<std::vector<std::string>>& settings) {
  std::vector<std::string> all;
  for (const std::vector<std::string>& some : settings) all.insert(all.end(), some.begin(), some.end());
  load_config(job.section(), std::nullopt, all);
}

}  // namespace kedge::testing
