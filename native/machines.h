// What the ways of fitting linear machines share: their kernels, the norms of rows, the order in which rows are visited.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels.h"
#include "linear.h"
#include "parallel.h"

namespace nary {

template <class Real>
const LinearKernels<Real>& active_kernels();
template <>
inline const LinearKernels<float>& active_kernels() { return active().linear_f32; }
template <>
inline const LinearKernels<double>& active_kernels() { return active().linear_f64; }

inline std::size_t at(std::int64_t n) { return static_cast<std::size_t>(n); }
template <class Items>
std::int64_t size_of(const Items& items) { return static_cast<std::int64_t>(items.size()); }
inline std::int64_t round_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

// The state of a dual variable that is 0; the logistic loss has no such state, but one that is 0 for all purposes.
template <class Real>
Real cold_state(Loss loss) {
  return loss == Loss::logistic ? (sizeof(Real) == 4 ? Real(-80) : Real(-700)) : Real(0);
}

// A row of zeros tells nothing, but its dual variable must find its place too: it moves as if the row were the smallest of
// the others.
template <class Real>
Real least_norm(const std::vector<Real>& norms) {
  double sum = 0;
  Real least = 0;
  for (const Real norm : norms) {
    sum += static_cast<double>(norm);
    if (norm > 0 && (least == 0 || norm < least)) least = norm;
  }
  if (least == 0) return Real(1);
  return std::max(least, static_cast<Real>(1e-12 * (sum / static_cast<double>(norms.size()))));
}

template <class Real>
Real row_square(const LinearRows<Real>& rows, std::int64_t i) {
  const LinearKernels<Real>& kernels = active_kernels<Real>();
  if (rows.dense) return kernels.square(rows.dense + i * rows.n_features, rows.n_features);
  return kernels.square(rows.values + rows.starts[i], rows.starts[i + 1] - rows.starts[i]);
}

template <class Real>
std::vector<Real> row_norms(const LinearTask<Real>& task, int n_threads) {
  constexpr std::int64_t kRows = 1024;
  std::vector<Real> norms(at(task.rows.n_rows));
  parallel_for((task.rows.n_rows + kRows - 1) / kRows, n_threads, [&](int, std::int64_t item) {
    for (std::int64_t i = item * kRows; i < std::min((item + 1) * kRows, task.rows.n_rows); ++i) {
      norms[at(i)] = row_square(task.rows, i) + task.constant * task.constant;
    }
  });
  const Real least = least_norm(norms);
  for (Real& norm : norms) norm = std::max(norm, least);
  return norms;
}

// The order of an epoch: a draw of its own, by Fisher and Yates.
inline void shuffle(std::vector<std::int64_t>& order, std::uint64_t seed, std::int64_t epoch) {
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const std::uint64_t key = splitmix64(seed, static_cast<std::uint64_t>(epoch));
  for (std::size_t i = order.size(); i > 1; --i) {
    const std::uint64_t drawn = ((splitmix64(key, i) >> 32) * i) >> 32;
    std::swap(order[i - 1], order[drawn]);
  }
}

}  // namespace nary
