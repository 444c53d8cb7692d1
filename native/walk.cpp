// Binning values, and walking binned rows through fitted trees.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels.h"
#include "parallel.h"
#include "trees.h"

namespace nary {
namespace {

constexpr std::int64_t kRowBlock = 512;  // rows of an item of work
constexpr int kAbreast = 8;              // rows walked side by side, so that their loads overlap

// How many of the edges lie below the value: the number of its bin.
template <class Real>
inline std::uint8_t bin_of(Real value, const double* edges, std::int64_t n_edges) {
  const double x = static_cast<double>(value);
  if (std::isnan(x)) return kMissing;
  const double* first = edges;
  for (std::int64_t n = n_edges; n > 0;) {  // without branches that depend on the value
    const std::int64_t half = (n + 1) / 2;
    first += first[half - 1] < x ? half : 0;
    n -= half;
  }
  return static_cast<std::uint8_t>(first - edges);
}

inline std::int32_t next(const Split& split, const std::uint8_t* row) {
  const unsigned missing_left = split.test >> 8 & 1;
  return goes_left(row[split.test >> 9], split.test & 255, missing_left) ? split.left : split.right;
}

// row_of(i) is row i's bins, one a feature.
template <class Value, class RowOf>
void walk_tree(const Split* splits, std::int32_t root, std::int64_t n_rows, const RowOf& row_of, std::int64_t stride,
               Value* out) {
  std::int64_t i = 0;
  for (; root >= 0 && i + kAbreast <= n_rows; i += kAbreast) {
    std::int32_t at[kAbreast];
    const std::uint8_t* rows[kAbreast];
    for (int k = 0; k < kAbreast; ++k) at[k] = root, rows[k] = row_of(i + k);
    for (std::int32_t walking = 0; walking >= 0;) {
      walking = -1;
      for (int k = 0; k < kAbreast; ++k) {
        const std::int32_t there = next(splits[at[k] < 0 ? 0 : at[k]], rows[k]);
        at[k] = at[k] < 0 ? at[k] : there;
        walking &= at[k];
      }
    }
    for (int k = 0; k < kAbreast; ++k) out[(i + k) * stride] = static_cast<Value>(~at[k]);
  }
  for (; i < n_rows; ++i) {
    std::int32_t at = root;
    while (at >= 0) at = next(splits[at], row_of(i));
    out[i * stride] = static_cast<Value>(~at);
  }
}

}  // namespace

template <class Value>
void walk_trees(const BinnedRows& rows, std::int64_t n_rows, const TreesView& trees, int n_threads, Value* out) {
  const std::int64_t L = trees.n_columns;
  if (rows.cells) {
    parallel_for((n_rows + kRowBlock - 1) / kRowBlock, n_threads, [&](int, std::int64_t block) {
      const std::int64_t first = block * kRowBlock, n = std::min(kRowBlock, n_rows - first);
      const std::uint8_t* cells = rows.cells + first * rows.stride;
      for (std::int64_t s = 0; s < L; ++s) {
        walk_tree(trees.splits + trees.starts[s], trees.roots[s], n,
                  [&](std::int64_t i) { return cells + i * rows.stride; }, L, out + first * L + s);
      }
    });
    return;
  }
  // Sparse rows are written out one at a time over the zero bins, and wiped out again.
  std::vector<std::vector<std::uint8_t>> scratch(static_cast<std::size_t>(n_threads));
  parallel_for(n_rows, n_threads, [&](int thread, std::int64_t i) {
    std::vector<std::uint8_t>& row = scratch[static_cast<std::size_t>(thread)];
    if (row.empty()) row.assign(rows.zero_bins, rows.zero_bins + rows.n_features);
    for (std::int64_t e = rows.starts[i]; e < rows.starts[i + 1]; ++e) row[static_cast<std::size_t>(rows.features[e])] = rows.bins[e];
    for (std::int64_t s = 0; s < L; ++s) {
      const Split* splits = trees.splits + trees.starts[s];
      std::int32_t at = trees.roots[s];
      while (at >= 0) at = next(splits[at], row.data());
      out[i * L + s] = static_cast<Value>(~at);
    }
    for (std::int64_t e = rows.starts[i]; e < rows.starts[i + 1]; ++e) {
      const auto f = static_cast<std::size_t>(rows.features[e]);
      row[f] = rows.zero_bins[f];
    }
  });
}

void mark_rows(const BinnedRows& rows, std::int64_t n_rows, int n_threads, std::uint64_t* marks) {
  const auto hash = [](std::int64_t f, std::uint8_t bin) {
    return splitmix64(static_cast<std::uint64_t>(f), static_cast<std::uint64_t>(bin));
  };
  parallel_for((n_rows + kRowBlock - 1) / kRowBlock, n_threads, [&](int, std::int64_t block) {
    for (std::int64_t i = block * kRowBlock; i < std::min((block + 1) * kRowBlock, n_rows); ++i) {
      std::uint64_t sum = 0;
      if (rows.cells) {
        const std::uint8_t* cells = rows.cells + i * rows.stride;
        for (std::int64_t f = 0; f < rows.n_features; ++f) {
          if (cells[f] != rows.zero_bins[f]) sum += hash(f, cells[f]);
        }
      } else {
        for (std::int64_t e = rows.starts[i]; e < rows.starts[i + 1]; ++e) {
          if (rows.bins[e] != rows.zero_bins[rows.features[e]]) sum += hash(rows.features[e], rows.bins[e]);
        }
      }
      marks[i] = sum;
    }
  });
}

template <class Real>
void bin_rows(const Real* values, std::int64_t n_rows, std::int64_t n_features,
              const double* edges, const std::int64_t* edge_starts, std::int64_t stride, std::int64_t copies,
              std::int64_t spread, int n_threads, std::uint8_t* cells) {
  constexpr std::int64_t kRows = 64;
  parallel_for((n_rows + kRows - 1) / kRows, n_threads, [&](int, std::int64_t block) {
    const std::int64_t first = block * kRows, last = std::min(first + kRows, n_rows);
    for (std::int64_t f = 0; f < n_features; ++f) {
      const double* mine = edges + edge_starts[f];
      const std::int64_t n_edges = edge_starts[f + 1] - edge_starts[f];
      for (std::int64_t i = first; i < last; ++i) {
        cells[i * stride + f] = bin_of(values[i * n_features + f], mine, n_edges);
      }
    }
    for (std::int64_t i = first; i < last; ++i) {
      for (std::int64_t copy = 1; copy < copies; ++copy) {
        std::copy_n(cells + i * stride, spread, cells + i * stride + copy * spread);
      }
    }
  });
}

template <class Real>
void bin_entries(const Real* values, const std::int32_t* features, std::int64_t n_entries, const double* edges,
                 const std::int64_t* edge_starts, int n_threads, std::uint8_t* bins) {
  constexpr std::int64_t kEntries = 4096;
  parallel_for((n_entries + kEntries - 1) / kEntries, n_threads, [&](int, std::int64_t block) {
    const std::int64_t last = std::min((block + 1) * kEntries, n_entries);
    for (std::int64_t e = block * kEntries; e < last; ++e) {
      const std::int32_t f = features[e];
      bins[e] = bin_of(values[e], edges + edge_starts[f], edge_starts[f + 1] - edge_starts[f]);
    }
  });
}

template void walk_trees(const BinnedRows&, std::int64_t, const TreesView&, int, std::int16_t*);
template void walk_trees(const BinnedRows&, std::int64_t, const TreesView&, int, std::int32_t*);
template void bin_rows(const float*, std::int64_t, std::int64_t, const double*, const std::int64_t*,
                       std::int64_t, std::int64_t, std::int64_t, int, std::uint8_t*);
template void bin_rows(const double*, std::int64_t, std::int64_t, const double*,
                       const std::int64_t*, std::int64_t, std::int64_t, std::int64_t, int, std::uint8_t*);
template void bin_entries(const float*, const std::int32_t*, std::int64_t, const double*, const std::int64_t*, int,
                          std::uint8_t*);
template void bin_entries(const double*, const std::int32_t*, std::int64_t, const double*, const std::int64_t*, int,
                          std::uint8_t*);

}  // namespace nary
