#include "kedge/model/shapes.h"

#include "kedge/core/error.h"
namespace kedge {
ModelConfig shape_config(const std::string& name) {
  auto make = [](const char* text) { return parse_model_config(Json::parse(text), "shape"); };
  if (name == "30m")
    return make(
        R"({"model_type":"llama","hidden_size":512,"num_hidden_layers":8,"num_attention_heads":8,"num_key_value_heads":4,"intermediate_size":1376,"vocab_size":8192,"tie_word_embeddings":false,"max_position_embeddings":2048})");
  if (name == "1b")
    return make(
        R"({"model_type":"llama","hidden_size":2048,"num_hidden_layers":16,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":8192,"vocab_size":128256,"tie_word_embeddings":true,"head_dim":64,"max_position_embeddings":8192})");
  if (name == "8b")
    return make(
        R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"tie_word_embeddings":false,"head_dim":128,"max_position_embeddings":8192})");
  throw UsageError("shape");
}
}  // namespace kedge
