#include "cli/serve.h"

#include <unistd.h>

#include <chrono>
#include <thread>

#include <ATen/Parallel.h>

#include "kedge/algo/config_sections.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/fingerprint.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/core/stop.h"
#include "kedge/metrics/progress.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/reward/rank_scorer.h"
#include "kedge/reward/reward_service.h"
#include "kedge/run/device_setup.h"
#include "kedge/train/checkpoint/model_state.h"

#include "cli/commands.h"
#include "cli/plan.h"

namespace kedge::cli {
namespace {

// --insecure and --token-file FILE, at any place, as keys of the server's section.
Arguments without_flags(const Arguments& arguments, const std::string& section) {
  Arguments rest;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--insecure") {
      rest.push_back(section + ".insecure=true");
    } else if (arguments[i] == "--token-file") {
      check(i + 1 < arguments.size(), "--token-file: expected a file");
      rest.push_back(section + ".token_file=" + arguments[++i]);
    } else {
      rest.push_back(arguments[i]);
    }
  }
  return rest;
}

void load_settings(RewardServerConfig& config, const Arguments& arguments) {
  const ConfigArguments given = read_config_arguments(without_flags(arguments, "inference"));
  load_config(describe(config), given.file, given.overrides);
}

// The model, a pass of the largest size, and the program.
struct RewardMemory {
  ForwardMemory look;
  int64_t fixed = 0;

  [[nodiscard]] int64_t needed() const { return look.parameters + look.pass + fixed; }
};
RewardMemory reward_memory(const RewardServerConfig& config, const Path& folder, const Mesh& mesh) {
  MemoryInput input;
  input.model = load_model_config(folder);
  input.head = {HeadKind::score, std::max<int64_t>(1, input.model.num_labels), false};
  input.dtype = dtype_of(config.trainer, mesh.device);
  input.is_cuda = mesh.device.is_cuda();
  input.tensor_ranks = mesh.tensor.size();
  input.longest = std::min(config.model.encoder_seq_length, input.model.max_positions);
  input.rows = config.model.forward_micro_batch_size;
  input.tokens = input.rows * input.longest;
  input.threads = at::get_num_threads();
  return {plan_forward(input), process_bytes(input.is_cuda)};
}

// The ranks of the job as `model.tensor_model_parallel_size` divides them. Collective.
Mesh divide_ranks(const Mesh& ranks, const RewardServerConfig& config, const Path& folder) {
  const int64_t size = config.model.tensor_model_parallel_size;
  const std::string key = "model.tensor_model_parallel_size";
  check(size != 0, key, ": expected 1 or more ranks, or -1");
  return split_mesh(ranks, static_cast<int>(std::max<int64_t>(1, size)), load_model_config(folder), key);
}

// Ranks of one machine share its memory.
void check_room(const RewardServerConfig& config, const Path& folder, const Mesh& mesh) {
  const MemoryRoom room = free_room(mesh);
  const int64_t needed = reward_memory(config, folder, mesh).needed() * room.num_ranks;
  check(needed <= room.device, "the reward model needs ", format_bytes(needed), " of memory",
        room.num_ranks == 1 ? "" : str(" on ", room.num_ranks, " ranks"), ", and ", format_bytes(room.device),
        " are free; model.forward_micro_batch_size and model.encoder_seq_length make it less");
}

// Equal for servers that give the same rewards of a model: clients that call several compare it.
std::string scoring_print(RewardServerConfig config, at::ScalarType dtype) {
  Fingerprint print;
  for (const Section& section : {describe(config.model.regression), describe(config.model.reward_standardization)})
    print.add(to_json(section_node(section)).dump());
  print.add(static_cast<int64_t>(config.model.reward_model_type));
  print.add(static_cast<int64_t>(config.inference.add_bos) * 2 + static_cast<int64_t>(config.inference.add_eos));
  print.add(name_of(dtype));
  return print.hex();
}

// ", on 4 ranks, every 2 of which compute together"
std::string ranks_text(const Mesh& mesh) {
  if (mesh.world.size() == 1) return "";
  return str(", on ", mesh.world.size(), " ranks",
             mesh.tensor.is_split() ? str(", every ", mesh.tensor.size(), " of which compute together") : "");
}

int serve_reward(const Arguments& arguments) {
  name_rank_in_log();
  RewardServerConfig config;
  load_settings(config, arguments);
  const auto begin = std::chrono::steady_clock::now();
  const ServedBatches batches{preferred_batch_sizes(config.inference.inference_micro_batch_size, "inference.inference_micro_batch_size"),
                              config.inference.max_queue_delay_microseconds};
  const Mesh ranks = open_mesh(config.trainer);
  const bool speaks = ranks.world.rank() == 0;
  if (speaks) check_server_address(config.inference, "inference");
  const Path folder = find_model_folder(config.rm_model_file, "rm_model_file");
  const RewardScorerOptions options = scorer_options(config.model);
  const Mesh mesh = divide_ranks(ranks, config, folder);
  check_room(config, folder, mesh);
  const StorageOptions storage{dtype_of(config.trainer, mesh.device), mesh.device, false, {}, mesh.tensor};
  const auto model = load_model(folder, {.storage = storage, .head = HeadKind::score});
  const int64_t max_length = std::min(config.model.encoder_seq_length, model->config().max_positions);
  const ServedRows rows(folder, model->config(), {max_length, config.inference.add_bos, config.inference.add_eos});
  const RewardScorer scorer(*model, options);
  const RankScorer ranked(scorer, mesh);
  const std::string print = start_print(*model);
  if (!speaks) return follow_until_told([&] { ranked.follow(); });
  log_info("reward model ", folder.string(), ": ", format_number(static_cast<double>(model->parameters().num_elements())), " parameters, ",
           name_of(model->parameters().options().dtype), " on ", name_of(mesh.device), ", rows of at most ", max_length, " tokens",
           ranks_text(mesh));
  ServedModel service = make_reward_service(config.inference.model_name, rows, scorer, batches,
                                            [&ranked](std::span<const TokenIds> own) { return ranked.score(own); });
  // A caller that loses its connection checks that it reconnects to the same model.
  service.signature.parameters.emplace_back("model_print", str(folder.filename().string(), " ", print));
  service.signature.parameters.emplace_back("scoring_print", scoring_print(config, storage.dtype));
  const int code = serve_until_told({config.inference, {std::move(service)}, mesh.device, begin});
  ranked.stop();
  return code;
}

}  // namespace

PlanReport plan_serve_reward(const Arguments& arguments, const PlanOptions& options) {
  RewardServerConfig config;
  load_settings(config, arguments);
  const Path folder = find_model_folder(config.rm_model_file, "rm_model_file");
  const Mesh mesh = divide_ranks(open_plan_mesh(config.trainer, options.ranks), config, folder);
  const RewardMemory memory = reward_memory(config, folder, mesh);
  const int64_t free = free_room(mesh).device;
  PlanReport report;
  report.needed = memory.needed();
  report.fits = memory.needed() + options.beside <= free;
  report.text = plan_heading("serve reward", folder, dtype_of(config.trainer, mesh.device), mesh);
  report.text += str("\nMemory\n  parameters ", format_bytes(memory.look.parameters), ", a pass of ", config.model.forward_micro_batch_size,
                     " rows of full length ", format_bytes(memory.look.pass), ", the program ", format_bytes(memory.fixed), "\n",
                     report.fits ? "fits: " : "does not fit: ", format_bytes(memory.needed()), " needed, ", format_bytes(free), " free\n");
  report.json.set("server", "reward");
  report.json.set("parameters", memory.look.parameters);
  report.json.set("pass", memory.look.pass);
  report.json.set("needed_bytes", memory.needed());
  report.json.set("free_bytes", free);
  report.json.set("fits", report.fits);
  return report;
}

void check_server_address(const ServerConfig& config, std::string_view section) {
  try {
    check_address(config);
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    throw Error(str(error.what(), "; ", section, ".port sets another port, 0 any that is free"));
  }
}

Mesh open_plan_mesh(const ComputeConfig& compute, const std::optional<PlannedRanks>& planned) {
  Mesh mesh = open_mesh(compute, planned);
  check(planned || mesh.world.size() == 1, "kedge plan: ", mesh.world.size(), " ranks were started; it is one process");
  return mesh;
}

int follow_until_told(const std::function<void()>& work) {
  const StopSignals signals;
  work();
  return kExitOk;
}

int serve_until_told(ServerParts parts) {
  const StopSignals signals;
  std::vector<std::string> names;
  for (const ServedModel& model : parts.models) names.push_back(model.signature.name);
  ModelServer server(parts.config, std::move(parts.models), [device = parts.device] { use_device(device); });
  const std::string address = str("http://", parts.config.ip, ":", server.port(), "/v2/models/");
  for (const std::string& name : names)
    log_info(name, ": ", address, name, "/infer, ", address, name, "/config, ", address, name, "/ready");
  if (server.token_path())
    log_info("calls that change the model need the token in ", *server.token_path(), "; kedge actors of this user on this machine find it");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - parts.begin;
  log_info("ready after ", format_number(took.count()), " s; metrics at http://", parts.config.ip, ":", server.port(),
           "/metrics; stop it with: kill -SIGINT ", getpid());
  while (!signals.received()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  log_info(name_of_signal(*signals.received()), ": finishing running calls, rejecting the rest");
  server.stop();
  log_info("stopped");
  return kExitOk;
}

std::string serve_flags() {
  return "  --insecure           require no token: anyone who reaches the port may call, and change the model\n"
         "  --token-file FILE    file with the bearer token that clients must send; without it, calls that\n"
         "                       change the model need a token that the server creates for its own user\n\n"
         "kedge config serve_reward and kedge config serve_critic list every key; --yaml prints a file to start from.\n";
}

int run_serve(const Arguments& arguments) {
  check(!arguments.empty() && (arguments[0] == "reward" || arguments[0] == "critic"), "kedge serve: expected reward or critic first",
        arguments.empty() ? "" : str(", found \"", arguments[0], "\""));
  const Arguments rest(arguments.begin() + 1, arguments.end());
  return arguments[0] == "reward" ? serve_reward(rest) : serve_critic(without_flags(rest, "trainer.ppo"));
}

}  // namespace kedge::cli
