// Growing and walking trees over binned rows: what the Python module calls. Shapes and ranges are checked in Python.
#pragma once

#include <cstdint>
#include <vector>

namespace nary {

constexpr std::uint8_t kMissing = 255;  // the bin of a missing value; other values have bins 0..254

// A split of a fitted tree. A child that is a split is its number in the tree; one that is a leaf is ~value: ~symbol, or
// ~number of the leaf where leaves have distributions.
struct Split {
  std::int32_t left, right;
  std::uint32_t test;  // feature << 9 | missing goes left << 8 | last bin that goes left

  static std::uint32_t pack(std::int64_t feature, bool missing_left, std::uint8_t bin) noexcept {
    return static_cast<std::uint32_t>(feature) << 9 | static_cast<std::uint32_t>(missing_left) << 8 | bin;
  }
};
static_assert(sizeof(Split) == 12, "a split is kept in 12 bytes");

// With missing values on the left a bin is compared after adding 1, which makes the missing one the least.
static inline bool goes_left(std::uint8_t bin, std::uint8_t last, unsigned missing_left) noexcept {
  return static_cast<std::uint8_t>(bin + missing_left) <= static_cast<std::uint8_t>(last + missing_left);
}

// Binned rows, sorted by class, in one of two forms.
struct BinnedRows {
  std::int64_t n_features;
  // Dense: a row lies in `stride` bytes, a multiple of 64; with few features it is written `copies` times, `spread` apart.
  const std::uint8_t* cells;
  std::int64_t stride, copies, spread;
  // Sparse, where `cells` is null: row i's entries are starts[i] .. starts[i + 1], features ascending; all other features
  // have their zero bin.
  const std::int64_t* starts;
  const std::int32_t* features;
  const std::uint8_t* bins;
  const std::uint8_t* zero_bins;
  // Feature f's bins stand for the values centres[centre_starts[f]] .. centres[centre_starts[f + 1] - 1].
  const double* centres;
  const std::int64_t* centre_starts;
  bool any_missing;

  std::int64_t n_bins(std::int64_t f) const noexcept { return centre_starts[f + 1] - centre_starts[f]; }
};

// The column problems of a block of columns: column s gives the classes of its entries their symbols, sorted by symbol.
struct TreeColumns {
  const std::int64_t* class_starts;  // class c's rows are class_starts[c] .. class_starts[c + 1]
  const std::int64_t* starts;        // column s's entries
  const std::int32_t* classes;
  const std::uint16_t* symbols;
  std::int64_t n_columns;
  std::int64_t first;         // the number of the block's first column in the code
  std::int64_t n_symbols;     // the largest alphabet
  const double* row_weights;  // of all rows, or null; a row of weight 0 takes no part
  bool balance_symbols;       // every symbol of a column weighs as much as any other
};

enum class Splitter : int { sampled, best, random };
enum class Criterion : int { gini, entropy };

struct TreeOptions {
  Splitter splitter;
  Criterion criterion;
  std::int64_t n_thresholds;
  std::int64_t max_depth, max_leaf_nodes;  // no limit: the largest number
  double min_samples_split, min_samples_leaf;
  bool split_is_fraction, leaf_is_fraction;  // of the rows of the column
  std::int64_t column_features, split_features;  // how many a column has, and of those how many a split may see
  double row_fraction;
  bool bootstrap;
  double min_impurity_decrease, ccp_alpha;
  bool leaf_distributions;
  std::uint64_t seed;
};

struct Trees {
  std::vector<Split> splits;          // of all columns
  std::vector<double> gains;          // what each split took off the impurity, times its rows
  std::vector<std::int64_t> starts;   // column s's splits, n_columns + 1
  std::vector<std::int32_t> roots;    // of each column: a split's number or ~value
  std::vector<std::uint16_t> leaf_symbols;    // with distributions: of all leaves
  std::vector<std::uint8_t> leaf_shares;      // (leaves, n_symbols): in units of 1/255 of the largest share
  std::vector<std::int64_t> leaf_starts;      // column s's leaves
};

Trees grow_trees(const BinnedRows& rows, const TreeColumns& columns, const TreeOptions& options, int n_threads);

// Fitted trees of some columns, as `grow_trees` gives them.
struct TreesView {
  const Split* splits;
  const std::int64_t* starts;
  const std::int32_t* roots;
  std::int64_t n_columns;
};

// out[i, s]: the value of the leaf that row i comes to in column s's tree.
template <class Value>
void walk_trees(const BinnedRows& rows, std::int64_t n_rows, const TreesView& trees, int n_threads, Value* out);

// cells[i, f] = the bin of values[i, f]: the number of the feature's edges below it, or kMissing.
template <class Real>
void bin_rows(const Real* values, std::int64_t n_rows, std::int64_t n_features,
              const double* edges, const std::int64_t* edge_starts, std::int64_t stride, std::int64_t copies,
              std::int64_t spread, int n_threads, std::uint8_t* cells);

// bins[e] = the bin of value e of a CSR matrix.
template <class Real>
void bin_entries(const Real* values, const std::int32_t* features, std::int64_t n_entries, const double* edges,
                 const std::int64_t* edge_starts, int n_threads, std::uint8_t* bins);

// marks[i] = a number that depends on row i's bins alone, the same for both forms of rows: a sum over its features of a
// hash of (feature, bin), zero bins left out.
void mark_rows(const BinnedRows& rows, std::int64_t n_rows, int n_threads, std::uint64_t* marks);

}  // namespace nary
