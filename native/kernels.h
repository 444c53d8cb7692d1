// The loops of the compiled core, as a table of functions: one table for each CPU level.
//
// A kernel is a plain loop over memory that its caller has checked: no allocation, no exception, nothing of Python.
// Each kernel file is compiled once per level and keeps everything internal but its one exported table, because a
// function that the linker may share between levels would carry wide instructions to a CPU that lacks them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "linear.h"

namespace nary {

constexpr std::int64_t kTile = 64;  // samples on the vector axis of the fold; bytes in a padded block of a codeword

// The fold. A cell is one way in which a group of neighbouring columns can be labelled; a table holds 64 samples' costs
// a cell. In a group of one column a cell is a symbol.
template <class T>
struct FoldKernels {
  // table[cell, i] = profile[n_symbols - 1 + symbol - symbols[i, column]] - neutral[column]; beyond n_rows it is 0.
  void (*lay_symbols)(const std::int16_t* symbols, std::int64_t stride, std::int64_t n_rows, std::int64_t n_columns,
                      std::int64_t n_symbols, const T* profile, const T* neutral, T* table);
  // cells[w, i] of every group of columns: the sum, in the order of the columns, of the costs of the symbols in which the
  // word w is written to base n_symbols, the first column's digit first. Groups lie n_symbols^group apart.
  void (*combine)(const T* costs, std::int64_t n_columns, std::int64_t n_symbols, std::int64_t group, T* cells);
  // totals[c, i] += sum over the cells e of class c of table[e, i], in the order of the cells.
  void (*fold)(const T* table, const std::uint16_t* cells, const std::int64_t* starts, std::int64_t n_classes,
               T* totals);
  // out[i, c] = scale * (totals[c, i] + base), rounded to a multiple of 2^-16.
  void (*finish)(const T* totals, std::int64_t n_rows, std::int64_t n_classes, T base, float scale, float* out);
  // out[i] = the class for which `finish` gives the least, the first of equals.
  void (*nearest)(const T* totals, std::int64_t n_rows, std::int64_t n_classes, T base, float scale,
                  std::int32_t* out);
};

// Codewords lie in rows of `stride` symbols, padded with zeros to a multiple of 64.
template <class S>
struct CodeKernels {
  // row[s] = draw of (candidate key, class, column), uniform over 0..n_symbols-1.
  void (*draw_row)(std::uint64_t key, std::int64_t row, std::int64_t n_columns, std::uint32_t n_symbols, S* out);
  // distances of one codeword to n others
  void (*absolute)(const S* word, const S* others, std::int64_t n, std::int64_t stride, std::int32_t* out);
  void (*hamming)(const S* word, const S* others, std::int64_t n, std::int64_t stride, std::int32_t* out);
};

constexpr std::int64_t kLanes = 64;  // features on the vector axis of a tree's counts
constexpr int kPackedGroups = 5;     // symbols whose counts share a word in a histogram,
constexpr int kPackedBits = 12;      // and the bits of each

constexpr std::uint32_t kMostWeight = 1 << 20;  // so that those of 255 rows add up in 32 bits

// The rows of a tree's node, sorted by symbol, and 64 of their features.
struct NodeBlock {
  const std::uint8_t* cells;  // the block's first feature in row 0
  std::int64_t stride;
  const std::uint32_t* rows;
  const std::uint32_t* weights;  // of rows[0..], at most kMostWeight; null: all are 1
  const std::uint32_t* ends;  // where each symbol's rows end in `rows`
  std::int64_t n_groups;
  std::uint8_t shift;         // added to every cell before it is compared with a (shifted) threshold
};

// For every threshold and feature, with l_k of symbol k's c_k rows at or below the threshold: left = sum of l_k,
// left_squares = sum of l_k^2, right_squares = sum of (c_k - l_k)^2. All arrays are (thresholds, 64).
template <class Sum>
struct CountKernels {
  void (*sum)(const NodeBlock& node, const std::uint8_t* thresholds, std::int64_t n_thresholds, Sum* left,
              Sum* left_squares, Sum* right_squares);
  // out[f] = left_squares / left + right_squares / right for one threshold, -1 where a side has less than `min_leaf` of the
  // n rows; returns the largest.
  float (*score)(const Sum* left, const Sum* left_squares, const Sum* right_squares, std::int64_t n,
                 std::int64_t min_leaf, float* out);
};

struct TreeKernels {
  CountKernels<std::uint16_t> counts_u16;  // for at most 255 rows
  CountKernels<std::uint32_t> counts_u32;  // for at most 65,535
  // For any number of rows, weights and criterion: left_rows counts them, left adds their weights, and with f(w) = w^2, or
  // w log2 w where `entropy`, left_values and right_values sum f over the symbols. `logs` has f of all numbers up to the
  // node's weight, or is null.
  void (*sum_any)(const NodeBlock& node, const std::uint8_t* thresholds, std::int64_t n_thresholds, bool entropy,
                  const double* logs, std::uint32_t* left_rows, double* left, double* left_values,
                  double* right_values);
  // The same as counts_u32.sum for every bin as a threshold; with `shift` the last stands for "only missing values". For at
  // most kPackedGroups symbols. `packed` (256, 16) holds zeros before and after; `counts` has room for (n_bins + 1, symbols,
  // 16). A blocked feature, and those from n_features on, have no rows on the left.
  void (*sum_bins)(const NodeBlock& node, std::int64_t n_features, std::int64_t n_bins, const std::uint8_t* blocked,
                   std::uint64_t* packed, std::uint32_t* counts, std::uint32_t* left, std::uint32_t* left_squares,
                   std::uint32_t* right_squares);
  // The least and the largest cell of each feature, missing values aside (255 and 0 where there are no others).
  void (*ranges)(const NodeBlock& node, std::int64_t n_rows, std::uint8_t* low, std::uint8_t* high);
};

struct Kernels {
  const char* level;
  FoldKernels<float> fold_f32;
  FoldKernels<std::uint16_t> fold_u16;
  CodeKernels<std::uint8_t> code_u8;
  CodeKernels<std::uint16_t> code_u16;
  TreeKernels trees;
  LinearKernels<float> linear_f32;
  LinearKernels<double> linear_f64;
};

// The tables that this machine can run, slowest first; `active` is the one in use.
const Kernels* const* available_levels(int* count) noexcept;
const Kernels& active() noexcept;
bool activate(const char* level) noexcept;

// The generator behind every native draw: output number `counter` of splitmix64 started at `key`.
// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.) Any output can be had alone.
static inline std::uint64_t splitmix64(std::uint64_t key, std::uint64_t counter) noexcept {
  std::uint64_t z = key + (counter + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Two symbols come of one output: its high half for even columns, its low half for odd ones.
static inline std::uint32_t draw_symbol(std::uint64_t key, std::int64_t row, std::int64_t column,
                                        std::int64_t n_columns, std::uint32_t n_symbols) noexcept {
  const std::uint64_t pairs = static_cast<std::uint64_t>((n_columns + 1) / 2);
  const std::uint64_t z = splitmix64(key, static_cast<std::uint64_t>(row) * pairs + static_cast<std::uint64_t>(column / 2));
  const std::uint64_t half = column % 2 == 0 ? z >> 32 : z & 0xFFFFFFFFu;
  return static_cast<std::uint32_t>((half * n_symbols) >> 32);
}

}  // namespace nary
