// The fold over whole arrays: a tile of 64 samples is an item; each thread lays its tables in memory of its own.
#include <algorithm>
#include <vector>

#include "drivers.h"
#include "kernels.h"
#include "parallel.h"

namespace nary {
namespace {

template <class T>
struct Of;
template <>
struct Of<float> {
  static const FoldKernels<float>& kernels() { return active().fold_f32; }
};
template <>
struct Of<std::uint16_t> {
  static const FoldKernels<std::uint16_t>& kernels() { return active().fold_u16; }
};

std::int64_t tiles(std::int64_t n_rows) { return (n_rows + kTile - 1) / kTile; }

// table[cell, i] = costs[i, cell] - neutral[cell]; samples beyond n_rows are 0. Not one of the levels' kernels: moving
// single numbers gains nothing from wide instructions, and compilers make it slower with them.
void lay_costs(const float* costs, std::int64_t stride, std::int64_t n_rows, std::int64_t n_cells,
               const float* neutral, float* table) {
  if (n_rows < kTile) std::fill(table, table + n_cells * kTile, 0.0f);
  // 16 cells of a sample are one cache line of the input; their 16 output lines stay in L1 for all samples.
  for (std::int64_t first = 0; first < n_cells; first += 16) {
    const std::int64_t last = std::min(first + 16, n_cells);
    for (std::int64_t i = 0; i < n_rows; ++i) {
      const float* row = costs + i * stride;
      for (std::int64_t cell = first; cell < last; ++cell) table[cell * kTile + i] = row[cell] - neutral[cell];
    }
  }
}

// Memory of one thread, on cache lines of its own.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t n_cells) : memory_(static_cast<std::size_t>((n_cells + 1) * kTile)) {}
  T* data() {
    T* start = memory_.data();
    return start + (kTile - reinterpret_cast<std::uintptr_t>(start) % kTile) % kTile / sizeof(T);
  }

 private:
  std::vector<T> memory_;
};

// lay(tile's first row, its rows, first column, columns, table) fills the symbols' costs of one tile and one block.
template <class T, class Lay>
void add(const FoldBlocks& blocks, std::int64_t n_rows, int n_threads, T* totals, const Lay& lay) {
  const FoldKernels<T>& kernels = Of<T>::kernels();
  const std::int64_t width = blocks.block_columns;
  const std::int64_t most = std::min(width, blocks.n_columns), group = std::min(blocks.group, most);
  std::int64_t group_cells = 1;
  for (std::int64_t k = 0; k < group; ++k) group_cells *= blocks.n_symbols;
  std::vector<Scratch<T>> laid, combined;
  for (int thread = 0; thread < n_threads; ++thread) {
    laid.emplace_back(most * blocks.n_symbols);
    if (group > 1) combined.emplace_back((most + group - 1) / group * group_cells);
  }
  parallel_for(tiles(n_rows), n_threads, [&](int thread, std::int64_t tile) {
    T* costs = laid[static_cast<std::size_t>(thread)].data();
    T* cells = group > 1 ? combined[static_cast<std::size_t>(thread)].data() : costs;
    const std::int64_t row = tile * kTile;
    for (std::int64_t block = 0; block < blocks.n_blocks; ++block) {
      const std::int64_t column = block * width, columns = std::min(width, blocks.n_columns - column);
      lay(row, std::min(kTile, n_rows - row), column, columns, costs);
      if (group > 1) kernels.combine(costs, columns, blocks.n_symbols, blocks.group, cells);
      kernels.fold(cells, blocks.cells, blocks.starts + block * blocks.n_classes, blocks.n_classes,
                   totals + row * blocks.n_classes);
    }
  });
}

}  // namespace

void add_costs(const FoldBlocks& blocks, const float* costs, const float* neutral, std::int64_t n_rows, int n_threads,
               float* totals) {
  const std::int64_t N = blocks.n_symbols, stride = blocks.n_columns * N;
  add(blocks, n_rows, n_threads, totals,
      [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, float* table) {
        lay_costs(costs + row * stride + column * N, stride, rows, columns * N, neutral + column * N, table);
      });
}

template <class T>
void add_symbols(const FoldBlocks& blocks, const std::int16_t* symbols, const T* profile, const T* neutral,
                 std::int64_t n_rows, int n_threads, T* totals) {
  const std::int64_t N = blocks.n_symbols, stride = blocks.n_columns;
  const FoldKernels<T>& kernels = Of<T>::kernels();
  add(blocks, n_rows, n_threads, totals,
      [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, T* table) {
        kernels.lay_symbols(symbols + row * stride + column, stride, rows, columns, N, profile, neutral + column, table);
      });
}

template <class T>
void finish_costs(const T* totals, std::int64_t n_rows, std::int64_t n_classes, T base, float scale, int n_threads,
                  float* out) {
  const FoldKernels<T>& kernels = Of<T>::kernels();
  parallel_for(tiles(n_rows), n_threads, [&](int, std::int64_t tile) {
    const std::int64_t row = tile * kTile;
    kernels.finish(totals + row * n_classes, std::min(kTile, n_rows - row), n_classes, base, scale,
                   out + row * n_classes);
  });
}

template <class T>
void nearest_classes(const T* totals, std::int64_t n_rows, std::int64_t n_classes, T base, float scale, int n_threads,
                     std::int32_t* out) {
  const FoldKernels<T>& kernels = Of<T>::kernels();
  parallel_for(tiles(n_rows), n_threads, [&](int, std::int64_t tile) {
    const std::int64_t row = tile * kTile;
    kernels.nearest(totals + row * n_classes, std::min(kTile, n_rows - row), n_classes, base, scale, out + row);
  });
}

template void add_symbols(const FoldBlocks&, const std::int16_t*, const float*, const float*, std::int64_t, int, float*);
template void add_symbols(const FoldBlocks&, const std::int16_t*, const std::uint16_t*, const std::uint16_t*,
                          std::int64_t, int, std::uint16_t*);
template void finish_costs(const float*, std::int64_t, std::int64_t, float, float, int, float*);
template void finish_costs(const std::uint16_t*, std::int64_t, std::int64_t, std::uint16_t, float, int, float*);
template void nearest_classes(const float*, std::int64_t, std::int64_t, float, float, int, std::int32_t*);
template void nearest_classes(const std::uint16_t*, std::int64_t, std::int64_t, std::uint16_t, float, int,
                              std::int32_t*);

}  // namespace nary
