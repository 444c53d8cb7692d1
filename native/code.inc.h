// Drawing codewords and measuring the distances between them. Included once by each level's kernel file.
#pragma once

#include "kernels.h"

namespace {

using nary::kTile;

template <class S>
void draw_row(std::uint64_t key, std::int64_t row, std::int64_t n_columns, std::uint32_t n_symbols, S* out) {
  const std::int64_t pairs = (n_columns + 1) / 2;
  const std::uint64_t start = static_cast<std::uint64_t>(row * pairs);
  for (std::int64_t p = 0; p < n_columns / 2; ++p) {
    const std::uint64_t z = nary::splitmix64(key, start + static_cast<std::uint64_t>(p));
    out[2 * p] = static_cast<S>(((z >> 32) * n_symbols) >> 32);
    out[2 * p + 1] = static_cast<S>(((z & 0xFFFFFFFFu) * n_symbols) >> 32);
  }
  if (n_columns % 2 == 1) {
    const std::uint64_t z = nary::splitmix64(key, start + static_cast<std::uint64_t>(pairs - 1));
    out[n_columns - 1] = static_cast<S>(((z >> 32) * n_symbols) >> 32);
  }
}

// Sum of |a - b|: the form that compilers turn into the byte instruction made for it.
inline std::int32_t absolute_pair(const std::uint8_t* a, const std::uint8_t* b, std::int64_t stride) {
  std::int32_t sum = 0;
  for (std::int64_t s = 0; s < stride; ++s) {
    const int difference = static_cast<int>(a[s]) - static_cast<int>(b[s]);
    sum += difference < 0 ? -difference : difference;
  }
  return sum;
}

inline std::int32_t absolute_pair(const std::uint16_t* a, const std::uint16_t* b, std::int64_t stride) {
  std::int32_t sum = 0;
  for (std::int64_t s = 0; s < stride; ++s) {
    const std::int32_t difference = static_cast<std::int32_t>(a[s]) - static_cast<std::int32_t>(b[s]);
    sum += difference < 0 ? -difference : difference;
  }
  return sum;
}

// Number of unequal symbols, counted in lanes as narrow as the symbols and emptied before they can overflow.
template <class S>
inline std::int32_t hamming_pair(const S* a, const S* b, std::int64_t stride) {
  constexpr std::int64_t kLanes = kTile / static_cast<std::int64_t>(sizeof(S));
  std::int32_t sum = 0;
  for (std::int64_t first = 0; first < stride; first += 255 * kLanes) {
    const std::int64_t last = first + 255 * kLanes < stride ? first + 255 * kLanes : stride;
    S lanes[kLanes] = {};
    for (std::int64_t s = first; s < last; s += kLanes) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<S>(a[s + lane] != b[s + lane]);
    }
    for (std::int64_t lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
  }
  return sum;
}

template <class S>
void absolute(const S* word, const S* others, std::int64_t n, std::int64_t stride, std::int32_t* out) {
  for (std::int64_t j = 0; j < n; ++j) out[j] = absolute_pair(word, others + j * stride, stride);
}

template <class S>
void hamming(const S* word, const S* others, std::int64_t n, std::int64_t stride, std::int32_t* out) {
  for (std::int64_t j = 0; j < n; ++j) out[j] = hamming_pair(word, others + j * stride, stride);
}

}  // namespace
