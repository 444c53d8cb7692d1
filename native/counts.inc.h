// Counting a node's rows at or below thresholds, 64 features a vector. Included once by each level's kernel file.
#pragma once

#include "kernels.h"

namespace {

using nary::kLanes;
using nary::NodeBlock;

typedef std::uint8_t Bytes __attribute__((vector_size(NARY_VECTOR_BYTES), aligned(1), may_alias));
constexpr int kParts = static_cast<int>(kLanes) / NARY_VECTOR_BYTES;
constexpr int kBatch = NARY_VECTOR_BYTES == 64 ? 8 : NARY_VECTOR_BYTES == 32 ? 2 : 1;  // thresholds held in registers
constexpr std::uint32_t kMostBytes = 255;  // rows that a byte can count

// out[t, f] = how many of n <= 255 rows have cell f at or below thresholds[t, f].
template <int kThresholds>
inline void count_below(const NodeBlock& node, const std::uint32_t* rows, std::uint32_t n,
                        const std::uint8_t* thresholds, std::uint8_t* out) {
  Bytes limit[kThresholds * kParts], count[kThresholds * kParts];
  for (int k = 0; k < kThresholds * kParts; ++k) {
    limit[k] = *reinterpret_cast<const Bytes*>(thresholds + k * NARY_VECTOR_BYTES);
    count[k] = Bytes{};
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint8_t* x = node.cells + rows[i] * node.stride;
    for (int part = 0; part < kParts; ++part) {
      const Bytes here = *reinterpret_cast<const Bytes*>(x + part * NARY_VECTOR_BYTES) + node.shift;
      for (int t = 0; t < kThresholds; ++t) {
        count[t * kParts + part] -= reinterpret_cast<Bytes>(here <= limit[t * kParts + part]);
      }
    }
  }
  for (int k = 0; k < kThresholds * kParts; ++k) *reinterpret_cast<Bytes*>(out + k * NARY_VECTOR_BYTES) = count[k];
}

template <class Sum, class Count>
inline void add_group(const Count* below, Sum rows, std::int64_t cells, Sum* left, Sum* left_squares,
                      Sum* right_squares) {
  for (std::int64_t k = 0; k < cells; ++k) {
    const Sum l = static_cast<Sum>(below[k]), r = static_cast<Sum>(rows - l);
    left[k] = static_cast<Sum>(left[k] + l);
    left_squares[k] = static_cast<Sum>(left_squares[k] + static_cast<Sum>(l * l));
    right_squares[k] = static_cast<Sum>(right_squares[k] + static_cast<Sum>(r * r));
  }
}

// `kThresholds` thresholds over all groups.
template <int kThresholds, class Sum>
void sum_batch(const NodeBlock& node, const std::uint8_t* thresholds, Sum* left, Sum* left_squares,
               Sum* right_squares) {
  constexpr std::int64_t kCells = kThresholds * kLanes;
  alignas(64) std::uint8_t below[kCells];
  for (std::int64_t k = 0; k < kCells; ++k) left[k] = left_squares[k] = right_squares[k] = 0;
  std::uint32_t begin = 0;
  for (std::int64_t g = 0; g < node.n_groups; ++g) {
    const std::uint32_t end = node.ends[g], n = end - begin;
    if (sizeof(Sum) == 2 || n <= kMostBytes) {
      count_below<kThresholds>(node, node.rows + begin, n, thresholds, below);
      add_group<Sum>(below, static_cast<Sum>(n), kCells, left, left_squares, right_squares);
    } else {
      alignas(64) std::uint32_t whole[kCells] = {};
      for (; begin < end; begin += kMostBytes) {
        const std::uint32_t some = end - begin < kMostBytes ? end - begin : kMostBytes;
        count_below<kThresholds>(node, node.rows + begin, some, thresholds, below);
        for (std::int64_t k = 0; k < kCells; ++k) whole[k] += below[k];
      }
      add_group<Sum>(whole, static_cast<Sum>(n), kCells, left, left_squares, right_squares);
    }
    begin = end;
  }
}

template <class Sum>
void sum_squares(const NodeBlock& node, const std::uint8_t* thresholds, std::int64_t n_thresholds, Sum* left,
                 Sum* left_squares, Sum* right_squares) {
  const std::int64_t whole = n_thresholds / kBatch * kBatch;
  for (std::int64_t k = 0; k < whole * kLanes; k += kBatch * kLanes) {
    sum_batch<kBatch>(node, thresholds + k, left + k, left_squares + k, right_squares + k);
  }
  for (std::int64_t k = whole * kLanes; k < n_thresholds * kLanes; k += kLanes) {
    sum_batch<1>(node, thresholds + k, left + k, left_squares + k, right_squares + k);
  }
}

template <class Sum>
float score_squares(const Sum* left, const Sum* left_squares, const Sum* right_squares, std::int64_t n,
                    std::int64_t min_leaf, float* out) {
  const std::int32_t rows = static_cast<std::int32_t>(n);
  const std::int32_t least = static_cast<std::int32_t>(min_leaf), most = rows - least;
  for (std::int64_t f = 0; f < kLanes; ++f) {
    const std::int32_t l = left[f];
    const float nl = static_cast<float>(l), nr = static_cast<float>(rows - l);
    const float sl = static_cast<float>(left_squares[f]), sr = static_cast<float>(right_squares[f]);
    const bool fits = (l >= least) & (l <= most);
    const float product = fits ? nl * nr : 1.0f;
    const float score = fits ? (sl * nr + sr * nl) / product : -1.0f;
    out[f] = score;
  }
  float largest[16];
  for (int k = 0; k < 16; ++k) largest[k] = out[k];
  for (std::int64_t f = 16; f < kLanes; f += 16) {
    for (int k = 0; k < 16; ++k) largest[k] = largest[k] < out[f + k] ? out[f + k] : largest[k];
  }
  for (int half = 8; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) largest[k] = largest[k] < largest[k + half] ? largest[k + half] : largest[k];
  }
  return largest[0];
}

inline double term(double weight, bool entropy, const double* logs) {
  if (!entropy) return weight * weight;
  if (logs) return logs[static_cast<std::int64_t>(weight)];
  return weight > 0 ? weight * __builtin_log2(weight) : 0.0;
}

void sum_any(const NodeBlock& node, const std::uint8_t* thresholds, std::int64_t n_thresholds, bool entropy,
             const double* logs, std::uint32_t* left_rows, double* left, double* left_values, double* right_values) {
  for (std::int64_t t = 0; t < n_thresholds; ++t, thresholds += kLanes, left_rows += kLanes, left += kLanes,
                    left_values += kLanes, right_values += kLanes) {
    for (std::int64_t f = 0; f < kLanes; ++f) left_rows[f] = 0, left[f] = left_values[f] = right_values[f] = 0;
    std::uint32_t begin = 0;
    for (std::int64_t g = 0; g < node.n_groups; ++g) {
      const std::uint32_t end = node.ends[g];
      double whole = 0, below[kLanes] = {};
      for (; begin < end; begin += kMostBytes) {
        const std::uint32_t last = end - begin < kMostBytes ? end : begin + kMostBytes;
        std::uint32_t some[kLanes] = {}, rows[kLanes] = {}, all = 0;
        for (std::uint32_t i = begin; i < last; ++i) {
          const std::uint8_t* x = node.cells + node.rows[i] * node.stride;
          const std::uint32_t weight = node.weights ? node.weights[i] : 1;
          all += weight;
          for (std::int64_t f = 0; f < kLanes; ++f) {
            const bool is_left = static_cast<std::uint8_t>(x[f] + node.shift) <= thresholds[f];
            rows[f] += is_left;
            some[f] += is_left ? weight : 0;
          }
        }
        whole += all;
        for (std::int64_t f = 0; f < kLanes; ++f) below[f] += some[f], left_rows[f] += rows[f];
      }
      begin = end;
      for (std::int64_t f = 0; f < kLanes; ++f) {
        left[f] += below[f];
        left_values[f] += term(below[f], entropy, logs);
        right_values[f] += term(whole - below[f], entropy, logs);
      }
    }
  }
}

void ranges(const NodeBlock& node, std::int64_t n_rows, std::uint8_t* low, std::uint8_t* high) {
  for (std::int64_t f = 0; f < kLanes; ++f) low[f] = 255, high[f] = 0;
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const std::uint8_t* x = node.cells + node.rows[i] * node.stride;
    for (std::int64_t f = 0; f < kLanes; ++f) {
      const std::uint8_t value = x[f] == 255 ? 0 : x[f];
      low[f] = x[f] < low[f] ? x[f] : low[f];
      high[f] = value > high[f] ? value : high[f];
    }
  }
}

}  // namespace
