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

// lay(tile's first row, its rows, first column, columns, table) fills the table of one tile and one block.
template <class T, class Lay>
void add(const FoldBlocks& blocks, std::int64_t n_rows, int n_threads, T* totals, const Lay& lay) {
  const FoldKernels<T>& kernels = Of<T>::kernels();
  const std::int64_t most = std::min(blocks.block_columns, blocks.n_columns);
  const auto table_size = static_cast<std::size_t>(most * blocks.n_symbols * kTile);
  std::vector<std::vector<T>> tables(static_cast<std::size_t>(n_threads), std::vector<T>(table_size + kTile));
  parallel_for(tiles(n_rows), n_threads, [&](int thread, std::int64_t tile) {
    T* table = tables[static_cast<std::size_t>(thread)].data();
    table += (kTile - reinterpret_cast<std::uintptr_t>(table) % kTile) % kTile / sizeof(T);  // whole cache lines
    const std::int64_t row = tile * kTile;
    for (std::int64_t block = 0; block < blocks.n_blocks; ++block) {
      const std::int64_t column = block * blocks.block_columns;
      lay(row, std::min(kTile, n_rows - row), column, std::min(blocks.block_columns, blocks.n_columns - column), table);
      kernels.fold(table, blocks.cells, blocks.starts + block * blocks.n_classes, blocks.n_classes,
                   totals + row * blocks.n_classes);
    }
  });
}

}  // namespace

void add_costs(const FoldBlocks& blocks, const float* costs, const float* neutral, std::int64_t n_rows, int n_threads,
               float* totals) {
  const std::int64_t N = blocks.n_symbols, stride = blocks.n_columns * N;
  const Kernels& kernels = active();
  add(blocks, n_rows, n_threads, totals,
      [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, float* table) {
        kernels.lay_costs(costs + row * stride + column * N, stride, rows, columns * N, neutral + column * N, table);
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

template void add_symbols(const FoldBlocks&, const std::int16_t*, const float*, const float*, std::int64_t, int, float*);
template void add_symbols(const FoldBlocks&, const std::int16_t*, const std::uint16_t*, const std::uint16_t*,
                          std::int64_t, int, std::uint16_t*);
template void finish_costs(const float*, std::int64_t, std::int64_t, float, float, int, float*);
template void finish_costs(const std::uint16_t*, std::int64_t, std::int64_t, std::uint16_t, float, int, float*);

}  // namespace nary
