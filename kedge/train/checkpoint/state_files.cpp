#include "kedge/train/checkpoint/state_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "kedge/core/autograd.h"
#include "kedge/core/bit_hash.h"
#include "kedge/core/error.h"
#include "kedge/model/files/tensor_bytes.h"

namespace kedge {
namespace {

constexpr std::string_view kTensors = "state.safetensors", kNumbers = "state.json";

Path tensors_of(const Path& folder, int rank) { return rank == 0 ? folder / kTensors : folder / str("state.", rank, ".safetensors"); }

// Those above 0.
std::set<int> ranks_with_files(const Path& folder) {
  std::set<int> ranks;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    int rank = 0;
    if (!name.starts_with("state.")) continue;
    std::from_chars(name.data() + 6, name.data() + name.size(), rank);
    if (rank > 0 && entry.path() == tensors_of(folder, rank)) ranks.insert(rank);
  }
  return ranks;
}

// A part's name in a file: NAME@BEGIN/SIZE.
std::string part_name(const std::string& name, const StatePart& part) { return str(name, "@", part.begin, "/", part.size); }

std::optional<StatePart> parse_part(std::string_view text) {
  StatePart part;
  const char *end = text.data() + text.size(), *at = text.data();
  const auto begin = std::from_chars(at, end, part.begin);
  if (begin.ec != std::errc() || begin.ptr == end || *begin.ptr != '/') return std::nullopt;
  const auto size = std::from_chars(begin.ptr + 1, end, part.size);
  if (size.ec != std::errc() || size.ptr != end || part.begin < 0 || part.size < part.begin) return std::nullopt;
  return part;
}

void check_type(const TensorEntry& entry, const Tensor& to, const std::string& file) {
  const WeightType type = weight_type(entry, file), wanted = weight_type_of(to.scalar_type(), entry.name);
  check(type == wanted, file, ": ", entry.name, " is ", name_of(type), ", expected ", name_of(wanted));
}

// `to` from element `begin` of the entry on.
void read_row(const SafetensorsFile& file, const TensorEntry& entry, int64_t begin, const Tensor& to) {
  check_type(entry, to, file.path().string());
  const auto size = static_cast<size_t>(to.element_size());
  read_tensor({file.bytes(entry).substr(static_cast<size_t>(begin) * size, to.nbytes()), *entry.type, to.sizes().vec()}, to);
}

void check_shape(const TensorEntry& entry, at::IntArrayRef shape, const std::string& file) {
  check(at::IntArrayRef(entry.shape) == shape, file, ": ", entry.name, " has the shape ", at::IntArrayRef(entry.shape), ", expected ",
        shape);
}

}  // namespace

Tensor StateSnapshot::host_copy(const Tensor& tensor) const {
  const NoGrad no_grad;
  return copies_ ? tensor.detach().to(tensor.options().device(at::kCPU), false, true) : tensor.detach();
}

void StateSnapshot::add(const std::string& name, const Tensor& tensor) { tensors_.emplace_back(name, host_copy(tensor)); }

void StateSnapshot::take(const std::string& name, Tensor tensor) { tensors_.emplace_back(name, std::move(tensor)); }

Tensor StateSnapshot::add_part(const std::string& name, const StatePart& part, const Tensor& row) {
  Tensor kept = host_copy(row);
  if (row.numel() > 0) tensors_.emplace_back(part_name(name, part), kept);
  return kept;
}

void StateSnapshot::write_tensors(const Path& folder, int rank) const {
  make_folder(folder);
  // The wider numbers first, so that all are aligned.
  std::vector<const std::pair<std::string, Tensor>*> order;
  for (const auto& named : tensors_) order.push_back(&named);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->second.element_size() > b->second.element_size(); });
  std::vector<TensorEntry> entries;
  for (const auto* named : order)
    entries.push_back({named->first, weight_type_of(named->second.scalar_type(), named->first), named->second.sizes().vec()});
  SafetensorsWriter writer(tensors_of(folder, rank), entries);
  for (size_t i = 0; i < order.size(); ++i)
    write_tensor(order[i]->second, *entries[i].type, [&](std::string_view bytes) { writer.write(bytes); });
  writer.finish();
}

void StateSnapshot::write(const Path& folder) const {
  write_tensors(folder, 0);
  write_atomic(folder / kNumbers, numbers_.dump(2) + "\n");
}

StateFiles::StateFiles(const Path& folder)
    : where_((folder / kNumbers).string()), numbers_(Json::parse(read_text(folder / kNumbers), where_)) {
  files_.emplace_back(folder / kTensors);
  // Ranks that had nothing to write left no file.
  for (const int rank : ranks_with_files(folder)) files_.emplace_back(tensors_of(folder, rank));
}

std::vector<StateFiles::Piece> StateFiles::pieces_of(const std::string& name) const {
  std::vector<Piece> pieces;
  for (const SafetensorsFile& file : files_)
    for (const TensorEntry& entry : file.entries()) {
      if (entry.name == name) return {{&file, &entry, {0, -1}}};
      if (!entry.name.starts_with(name + "@")) continue;
      if (const auto part = parse_part(std::string_view(entry.name).substr(name.size() + 1))) pieces.push_back({&file, &entry, *part});
    }
  check(!pieces.empty(), files_[0].path().string(), ": no ", name);
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.part.begin < b.part.begin; });
  return pieces;
}

// One after the other and nothing in between, as the ranks wrote them.
void StateFiles::check_complete(const std::string& name, const std::vector<Piece>& pieces, int64_t size) const {
  int64_t end = 0;
  for (const Piece& piece : pieces) {
    const std::string file = piece.file->path().string();
    check(piece.entry->shape.size() == 1, file, ": ", piece.entry->name, " is not a row");
    check(piece.part.size == size, file, ": ", piece.entry->name, " is part of ", piece.part.size, " elements, expected ", size);
    check(piece.part.begin == end, file, ": ", piece.entry->name, " follows on ", end, " elements: a part of ", name, " is missing");
    end += piece.entry->shape[0];
  }
  check(end == size, files_.back().path().string(), ": ", name, " ends after ", end, " of ", size, " elements: a part is missing");
}

std::string StateFiles::hash(const std::string& name) const {
  const std::vector<Piece> pieces = pieces_of(name);
  if (pieces[0].part.size < 0) return bit_hash(pieces[0].file->bytes(*pieces[0].entry));
  check_complete(name, pieces, pieces[0].part.size);
  uint64_t sum = 0, num_bytes = 0;
  for (const Piece& piece : pieces) {
    const std::string_view bytes = piece.file->bytes(*piece.entry);
    sum += bit_sum(bytes, num_bytes / 4);
    num_bytes += bytes.size();
  }
  return bit_hash_text(sum, num_bytes);
}

void StateFiles::read(const std::string& name, const Tensor& to) const {
  const NoGrad no_grad;
  const std::vector<Piece> pieces = pieces_of(name);
  if (pieces[0].part.size >= 0) return read_part(name, {0, to.numel()}, to);
  check_shape(*pieces[0].entry, to.sizes(), pieces[0].file->path().string());
  read_row(*pieces[0].file, *pieces[0].entry, 0, to);
  pieces[0].file->drop(*pieces[0].entry);
}

void StateFiles::read_part(const std::string& name, const StatePart& part, const Tensor& to) const {
  const NoGrad no_grad;
  std::vector<Piece> pieces = pieces_of(name);
  if (pieces[0].part.size < 0) {
    check_shape(*pieces[0].entry, part.size, pieces[0].file->path().string());
    pieces[0].part = {0, part.size};
  }
  check_complete(name, pieces, part.size);
  const int64_t end = part.begin + to.numel();
  for (const Piece& piece : pieces) {
    const int64_t first = std::max(part.begin, piece.part.begin), last = std::min(end, piece.part.begin + piece.entry->shape[0]);
    if (first < last || to.numel() == 0) check_type(*piece.entry, to, piece.file->path().string());
    if (first >= last) continue;
    read_row(*piece.file, *piece.entry, first - piece.part.begin, to.narrow(0, first - part.begin, last - first));
    piece.file->drop(*piece.entry);
  }
}

}  // namespace kedge
