// Counting a node's rows by bin, for the exact search of nodes with few symbols. Included once by each level's kernel file.
#pragma once

#include "kernels.h"

namespace {

using nary::kPackedBits;
using nary::NodeBlock;

constexpr std::int64_t kNarrow = 16;  // features whose packed counts of all bins stay in the first-level cache
constexpr std::uint64_t kPackedMost = (std::uint64_t{1} << kPackedBits) - 1;

// counts[b, k, f] += packed[b, f]'s counter k, which is emptied; the missing bin comes after the others.
inline void unpack(std::uint64_t* packed, std::int64_t n_bins, std::int64_t n_groups, std::uint32_t* counts) {
  for (std::int64_t b = 0; b <= n_bins; ++b) {
    std::uint64_t* bin = packed + (b < n_bins ? b : 255) * kNarrow;
    for (std::int64_t k = 0; k < n_groups; ++k) {
      std::uint32_t* out = counts + (b * n_groups + k) * kNarrow;
      for (std::int64_t f = 0; f < kNarrow; ++f) {
        out[f] += static_cast<std::uint32_t>((bin[f] >> (kPackedBits * k)) & kPackedMost);
      }
    }
    for (std::int64_t f = 0; f < kNarrow; ++f) bin[f] = 0;
  }
}

// All symbols' counts of a bin lie in one word, so that a row costs one addition a feature whatever its symbol is.
inline void count_bins(const NodeBlock& node, std::int64_t first, std::int64_t n_bins, std::uint64_t* packed,
                       std::uint32_t* counts) {
  for (std::int64_t k = 0; k < (n_bins + 1) * node.n_groups * kNarrow; ++k) counts[k] = 0;
  std::uint32_t begin = 0;
  for (std::int64_t g = 0; g < node.n_groups; ++g) {
    const std::uint64_t one = std::uint64_t{1} << (kPackedBits * g);
    while (begin < node.ends[g]) {
      const std::uint32_t left = node.ends[g] - begin;
      const std::uint32_t end = left > kPackedMost ? begin + static_cast<std::uint32_t>(kPackedMost) : node.ends[g];
      for (; begin < end; ++begin) {
        const std::uint8_t* x = node.cells + node.rows[begin] * node.stride + first;
        for (std::int64_t f = 0; f < kNarrow; ++f) packed[x[f] * kNarrow + f] += one;
      }
      if (begin < node.ends[g]) unpack(packed, n_bins, node.n_groups, counts);  // before a counter can overflow
    }
  }
  unpack(packed, n_bins, node.n_groups, counts);
}

// `sums` of 16 features for every bin as the last one on the left.
inline void sum_left(const NodeBlock& node, std::int64_t n_bins, const std::uint32_t* counts,
                     const std::uint8_t* blocked, std::uint32_t* left, std::uint32_t* left_squares,
                     std::uint32_t* right_squares) {
  const std::int64_t G = node.n_groups;
  const std::uint32_t* missing = counts + n_bins * G * kNarrow;
  std::uint32_t below[nary::kPackedGroups * kNarrow];
  for (std::int64_t k = 0; k < G * kNarrow; ++k) below[k] = node.shift ? missing[k] : 0;
  for (std::int64_t b = 0; b < n_bins; ++b, left += kLanes, left_squares += kLanes, right_squares += kLanes) {
    const bool only_missing = node.shift && b == n_bins - 1;
    for (std::int64_t k = 0; k < G * kNarrow; ++k) {
      below[k] = only_missing ? missing[k] : below[k] + counts[b * G * kNarrow + k];
    }
    std::uint32_t l[kNarrow] = {}, ls[kNarrow] = {}, rs[kNarrow] = {};
    for (std::int64_t g = 0; g < G; ++g) {
      const std::uint32_t all = node.ends[g] - (g > 0 ? node.ends[g - 1] : 0);
      for (std::int64_t f = 0; f < kNarrow; ++f) {
        const std::uint32_t here = below[g * kNarrow + f], rest = all - here;
        l[f] += here, ls[f] += here * here, rs[f] += rest * rest;
      }
    }
    for (std::int64_t f = 0; f < kNarrow; ++f) {
      left[f] = blocked[f] ? 0 : l[f], left_squares[f] = ls[f], right_squares[f] = rs[f];
    }
  }
}

void sum_bins(const NodeBlock& node, std::int64_t n_features, std::int64_t n_bins, const std::uint8_t* blocked,
              std::uint64_t* packed, std::uint32_t* counts, std::uint32_t* left, std::uint32_t* left_squares,
              std::uint32_t* right_squares) {
  for (std::int64_t first = 0; first < kLanes; first += kNarrow) {
    if (first < n_features) {
      count_bins(node, first, n_bins, packed, counts);
      sum_left(node, n_bins, counts, blocked + first, left + first, left_squares + first, right_squares + first);
    } else {
      for (std::int64_t b = 0; b < n_bins; ++b) {
        for (std::int64_t f = 0; f < kNarrow; ++f) left[b * kLanes + first + f] = 0;
      }
    }
  }
}

}  // namespace
