#pragma once
// Does a run fit into memory, phase by phase, and if not, what would? Checked before weights are read, by kedge plan and by every run.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kedge/dist/mesh.h"
#include "kedge/engine/engine_memory.h"
#include "kedge/train/memory_plan.h"
#include "kedge/train/reference_policy.h"

namespace kedge {

// Memory of generation.
struct GenerationDemand {
  EngineBytes bytes = {};
  std::optional<int64_t> given = {};    // size of the KV cache; none: what is left, at most what all answers need
  bool releases = false;                // it is released while the model trains
  std::optional<int64_t> weights = {};  // in a layout of their own; none: those that are trained
};

// A frozen copy of the weights that a run started from.
struct ReferenceDemand {
  ReferenceKind kind = ReferenceKind::resident;
  bool may_swap = false;  // if a resident one does not fit
};

// What a run does with memory.
struct MemoryDemand {
  MemoryInput update = {};  // with its largest micro-batch
  std::optional<GenerationDemand> generation = {};
  std::optional<ReferenceDemand> reference = {};
  bool looks = false;      // before an update, for its rows, in passes of the same size
  int64_t look = 0;        // a forward-only pass of another size
  int64_t companions = 0;  // other models in this process, on the same device
  int64_t beside = 0;      // other processes on it that are not started yet
  bool saves = true;
};

// Of a machine that a plan imagines: taken to be enough.
inline constexpr int64_t kUnknownBytes = std::numeric_limits<int64_t>::max();

// What is free.
struct MemoryRoom {
  int64_t device = 0;  // on the run's device, including the program itself
  int64_t host = 0;    // host memory next to a GPU; ignored on a CPU
  int num_ranks = 1;   // that share the former
  int host_ranks = 1;  // and the latter
};

// Names of the settings that would help.
struct MemoryKeys {
  std::string size = "micro_batch_size";  // of the largest micro-batch
  int64_t size_now = 1, size_least = 1;   // in its unit
  bool look_follows = false;              // also used for forward-only passes
  std::string reference = {};             // where the reference is kept
};

struct MemoryRequest {
  MemoryDemand demand = {};
  MemoryRoom room = {};
  MemoryKeys keys = {};
};

// Peak memory of a phase, per rank.
struct PhaseBytes {
  std::string name = {};
  int64_t device = 0, host = 0;
};

struct MemoryFit {
  MemoryPlan plan;  // of an update
  std::vector<PhaseBytes> phases;
  int64_t cache = 0;                       // for keys and values
  std::optional<ReferenceKind> reference;  // where it goes
  int64_t reference_bytes = 0;             // on the device
  int64_t needed = 0, free = 0;            // on the run's device, of all ranks that share it
  int64_t host_needed = 0, host_free = 0;  // next to a GPU
  bool fits = true;
  bool blocks = false;                // only if a checkpoint is written directly from the tensors, while training waits
  std::vector<std::string> remedies;  // settings that would fit, if it does not

  [[nodiscard]] PhaseBytes worst() const;  // the one that takes most of the device
};
[[nodiscard]] MemoryFit check_memory(const MemoryRequest& question);

// Where memory is plentiful on a GPU, passes keep all logits for their backward instead of computing them twice. Returns how many bytes
// that is, or 0, and puts it into the demand.
int64_t keep_logits(MemoryRequest& request);

// UsageError if it does not fit: what it needs, what is free, and what would fit. `what` opens it: "the run".
void require_fit(const MemoryFit& verdict, const std::string& what);

// The least that any rank has free, where this one has so much: if each decided by its own, one could swap its reference and another not,
// and their calls would no longer match. Collective.
[[nodiscard]] MemoryRoom least_room(const Mesh& mesh, int64_t device, int64_t host);
// Free memory of the devices of this machine's ranks. Collective.
[[nodiscard]] MemoryRoom free_room(const Mesh& mesh);

}  // namespace kedge
