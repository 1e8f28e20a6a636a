#pragma once
// The keys of the trackers, under NeMo's names: exp_manager.mlflow_logger_kwargs and exp_manager.wandb_logger_kwargs.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"

namespace kedge {

struct MlflowConfig {
  std::optional<std::string> tracking_uri, experiment_name, run_name, run_id, artifact_location;
  std::optional<std::string> prefix;
  std::optional<std::map<std::string, std::string>> tags;

  void fields(auto&& field) {
    field("tracking_uri", tracking_uri, "address of the MLflow server, http://HOST:PORT; null: the variable MLFLOW_TRACKING_URI");
    field("experiment_name", experiment_name, "the experiment, created if it does not exist; null: kedge");
    field("run_name", run_name, "name of the MLflow run; null: the name of the run's folder");
    field("run_id", run_id, "an MLflow run that exists, to add to; null: a new one");
    field("tags", tags, "tags of the MLflow run");
    field("prefix", prefix, "put before the name of every metric, with a dash");
    field("artifact_location", artifact_location, "where a new experiment keeps its artifacts; null: the server's choice");
    field.ignored("save_dir", "metrics go to a server; metrics.jsonl is the copy on disk");
    field.ignored("synchronous", "metrics are always sent in the background");
    field.refused("log_model", "checkpoints are not uploaded", {"false", "False"});
  }
};

struct WandbConfig {
  std::optional<std::string> project, name, entity, group, job_type, notes, id, mode, save_dir, prefix, python;
  std::optional<std::vector<std::string>> tags;
  bool offline = false;

  void fields(auto&& field) {
    field("project", project, "the W&B project; null: W&B's default");
    field("name", name, "name of the W&B run; null: the name of the run's folder");
    field("entity", entity, "the W&B user or team; null: your default");
    field("group", group, "group of W&B runs");
    field("job_type", job_type, "kind of the W&B run");
    field("notes", notes, "description of the W&B run");
    field("tags", tags, "tags of the W&B run");
    field("id", id, "id of the W&B run; null: a new one, kept in the run's folder");
    field("offline", offline, "write files only; wandb sync uploads them later");
    field("mode", mode, "online, offline or disabled, as for wandb.init; null: WANDB_MODE, or online");
    field("save_dir", save_dir, "folder of W&B's files; null: the run's folder");
    field("prefix", prefix, "put before the name of every metric, with a dash");
    field("python", python, "the Python that has the wandb package; null: the variable KEDGE_PYTHON, or python3");
    field.alias("version", "id");
    field.alias("dir", "save_dir");
    field.ignored("resume", "a resumed run always continues its own W&B run");
    field.ignored("anonymous", "log in with wandb login");
    field.ignored("checkpoint_name", "checkpoints are not uploaded");
    field.refused("log_model", "checkpoints are not uploaded", {"false", "False"});
  }
};

}  // namespace kedge
