#pragma once
// Where the tests find their files.
#include <filesystem>

namespace kedge::testing {

// The checkout.
inline std::filesystem::path source_folder() { return KEDGE_SOURCE_FOLDER; }

// Real models, tokenizers and data beside the checkout; tests that need one skip where it is absent.
inline std::filesystem::path assets_folder() { return source_folder().parent_path() / "shared" / "assets"; }

}  // namespace kedge::testing
