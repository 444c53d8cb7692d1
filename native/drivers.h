// What the Python module calls: kernels over whole arrays, cut into items for threads. Shapes are checked in Python.
#pragma once

#include <cstdint>

namespace nary {

// Where a block of columns finds its classes' cells: class c's are cells[starts[c]] .. cells[starts[c + 1]].
struct FoldBlocks {
  const std::uint16_t* cells;
  const std::int64_t* starts;  // n_blocks * n_classes + 1
  std::int64_t n_blocks;
  std::int64_t n_classes;
  std::int64_t n_columns;      // of all blocks together
  std::int64_t block_columns;  // of each block but the last
  std::int64_t n_symbols;
  std::int64_t group;          // columns a cell
};

void add_costs(const FoldBlocks& blocks, const float* costs, const float* neutral, std::int64_t n_rows, int n_threads,
               float* totals);

template <class T>
void add_symbols(const FoldBlocks& blocks, const std::int16_t* symbols, const T* profile, const T* neutral,
                 std::int64_t n_rows, int n_threads, T* totals);

template <class T>
void finish_costs(const T* totals, std::int64_t n_rows, std::int64_t n_classes, T base, float scale, int n_threads,
                  float* out);

template <class T>
void nearest_classes(const T* totals, std::int64_t n_rows, std::int64_t n_classes, T base, float scale, int n_threads,
                     std::int32_t* out);

template <class S>
void distances(const S* words, std::int64_t n_words, std::int64_t stride, std::int64_t first, std::int64_t last,
               bool absolute, int n_threads, std::int32_t* out);

struct SearchResult {
  std::int64_t candidate;     // -1: none
  std::int32_t min_distance;
};

// Of candidates first..last-1 the one with the largest minimum distance, the first of equals, if that is above `floor`; its
// symbols are left in `best`. A candidate without a full set of distinct columns does not count.
template <class S>
SearchResult search_random(std::uint64_t seed, std::int64_t first, std::int64_t last, std::int32_t floor,
                           std::int64_t n_classes,
                           std::int64_t n_columns, std::uint32_t n_symbols, bool absolute, bool distinct_columns,
                           int n_threads, S* best);

}  // namespace nary
