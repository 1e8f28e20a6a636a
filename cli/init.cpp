#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/model/spec/shapes.h"
#include "kedge/text/tokenizer/tokenizer.h"

#include "cli/commands.h"
#include "cli/device_flags.h"
#include "cli/output_folder.h"
#include "cli/text/json_lines.h"

namespace kedge {

constexpr auto enum_names(Family) {
  return std::array<EnumName<Family>, 5>{
      {{"llama", Family::llama}, {"mistral", Family::mistral}, {"qwen2", Family::qwen2}, {"qwen3", Family::qwen3}, {"gpt2", Family::gpt2}}};
}

namespace cli {
namespace {

struct InitOptions {
  std::string out, shape;
  std::optional<Family> family;
  std::optional<std::string> tokenizer;
  std::optional<int64_t> hidden_size, num_layers, num_heads, num_kv_heads, head_dim, mlp_size, vocab_size, max_positions;
  std::optional<bool> tied;
  int64_t num_labels = 0;
  bool overwrite = false;
  DeviceFlags flags;

  void fields(auto&& field) {
    field("out", out, "the folder to write", required());
    field("shape", shape, "sizes to start from, listed below", required());
    field("tokenizer", tokenizer, "folder whose tokenizer files are copied; the vocabulary size is theirs");
    field("family", family, "architecture, if not the shape's own");
    field("hidden_size", hidden_size, "hidden size; this and the next flags replace the shape's values", at_least(1));
    field("num_layers", num_layers, "decoder layers", at_least(1));
    field("num_heads", num_heads, "query heads", at_least(1));
    field("num_kv_heads", num_kv_heads, "key and value heads", at_least(1));
    field("head_dim", head_dim, "channels per head; by default hidden size / heads", at_least(2));
    field("mlp_size", mlp_size, "hidden size of the MLP", at_least(1));
    field("vocab_size", vocab_size, "number of token ids; by default the tokenizer's", at_least(1));
    field("max_positions", max_positions, "maximum sequence length in tokens", at_least(1));
    field("tied", tied, "tie the output head to the embedding; --no-tied: separate weights");
    field("num_labels", num_labels, "number of labels of a reward model; 0: a language model", at_least(0), at_most(1000));
    field("overwrite", overwrite, "replace the model in a folder that is not empty");
    flags.fields(field);
  }
};

const std::vector<std::string> kInitPositionals = {"out"};

ModelShape shape_of(const InitOptions& options, const Tokenizer* tokenizer) {
  ModelShape shape = find_shape(options.shape, "--shape");
  const auto set = [](auto& value, const auto& given) {
    if (given) value = *given;
  };
  set(shape.family, options.family);
  set(shape.hidden_size, options.hidden_size);
  set(shape.num_layers, options.num_layers);
  set(shape.num_heads, options.num_heads);
  set(shape.num_kv_heads, options.num_kv_heads);
  set(shape.head_dim, options.head_dim);
  set(shape.mlp_size, options.mlp_size);
  set(shape.max_positions, options.max_positions);
  set(shape.tied, options.tied);
  if (tokenizer != nullptr) shape.vocab_size = tokenizer->vocab_size();
  set(shape.vocab_size, options.vocab_size);
  if (shape.family == Family::gpt2)
    check(!options.num_kv_heads && !options.head_dim, options.num_kv_heads ? "--num-kv-heads" : "--head-dim",
          ": a gpt2 model has as many heads of keys and values as heads, of hidden size / heads channels");
  if (tokenizer != nullptr)
    check(shape.vocab_size >= tokenizer->vocab_size(), "--vocab-size: ", shape.vocab_size, " is less than the tokenizer's ",
          tokenizer->vocab_size());
  return shape;
}

ModelConfig config_of(const InitOptions& options, const Tokenizer* tokenizer) {
  Json json = shape_json(shape_of(options, tokenizer));
  if (tokenizer != nullptr) {
    const auto set = [&](const char* key, std::optional<TokenId> id) {
      if (id) json.set(key, int64_t{*id});
    };
    set("bos_token_id", tokenizer->special().bos);
    set("eos_token_id", tokenizer->special().eos);
    set("pad_token_id", tokenizer->special().pad);
  }
  return parse_model_config(json, "--shape " + options.shape);
}

// Parameter by parameter, so that a large model shows progress.
void draw_weights(Model& model, uint64_t seed) {
  Parameters& parameters = model.parameters();
  int64_t done = 0;
  for (size_t i = 0; i < parameters.specs().size(); ++i) {
    set_status_line(str("initializing weights: ", 100 * done / parameters.num_elements(), "%"));
    parameters.initialise(static_cast<int>(i), seed, model.config().init_range);
    done += parameters.specs()[i].size();
  }
  parameters.publish();
  set_status_line("");
}

}  // namespace

std::string init_flags() {
  std::string text = options_help<InitOptions>(kInitPositionals) + "\nShapes\n";
  for (const NamedShape& entry : named_shapes())
    text += str("  ", entry.name, entry.other_name.empty() ? "" : " or ", entry.other_name, ": ", entry.about, " (",
                name_of(entry.shape.family), ", ", entry.shape.num_layers, " layers of ", entry.shape.hidden_size, ")\n");
  return text;
}

int run_init(const Arguments& arguments) {
  const auto options = parse_options<InitOptions>(arguments, kInitPositionals);
  check_out_folder(options.out, options.overwrite);
  std::unique_ptr<Tokenizer> tokenizer;
  SaveOptions save{.dtype = dtype_of(options.flags.dtype), .companions = {}};
  if (options.tokenizer) {
    save.companions = is_folder(*options.tokenizer) ? Path(*options.tokenizer) : find_model_folder(*options.tokenizer, "--tokenizer");
    check(!is_same_folder(*save.companions, options.out), "--tokenizer: is OUT itself");
    tokenizer = load_tokenizer(*save.companions);
  }
  const ModelConfig config = config_of(options, tokenizer.get());
  const HeadOptions head{options.num_labels > 0 ? HeadKind::score : HeadKind::language, std::max<int64_t>(options.num_labels, 1), false};
  Model model(config, head, options.flags.storage());
  draw_weights(model, static_cast<uint64_t>(options.flags.seed));
  if (options.overwrite) remove_model_files(options.out);
  save_model(model, options.out, save);
  print_json_line(Json::Object{{"folder", options.out},
                               {"family", name_of(config.family)},
                               {"parameters", model.parameters().num_elements()},
                               {"vocab_size", config.vocab_size},
                               {"labels", options.num_labels},
                               {"dtype", name_of(dtype_of(options.flags.dtype))},
                               {"seed", options.flags.seed}});
  return kExitOk;
}

}  // namespace cli
}  // namespace kedge
