// The dual variables of machines that are fitted jointly. Included once by each level's kernel file.
#pragma once

#include "losses.inc.h"
#include "machine_rows.inc.h"

namespace {

// Crammer and Singer's machines of one column: a row's loss is max_k (s_k + [k is wrong]) - s_own. With D_k = s_k + [k is
// wrong] - A alpha_k + A C_k, where C_k is the cost for the own symbol and else 0, the best alpha_k is C_k - max(0, D_k - b)
// / A, and b solves sum_k max(0, D_k - b) = A C: a projection onto a simplex. (Keerthi et al., "A sequential dual method for
// large scale multi-class linear SVMs", 2008; b by Michelot's steps, which rise to it from below.)

template <class Real>
inline Real threshold(const Real* values, std::int64_t n, Real total) {
  Real highest = values[0], part[kPartials] = {};
  for (std::int64_t k = 0; k < n; ++k) {
    highest = larger(highest, values[k]);
    part[k % kPartials] += values[k];
  }
  Real b = larger((sum_parts(part) - total) / static_cast<Real>(n), highest - total);
  for (std::int64_t count = n + 1;;) {
    Real sums[kPartials] = {}, counts[kPartials] = {};
    std::int64_t k = 0;
    for (; k + kPartials <= n; k += kPartials) {
      for (int p = 0; p < kPartials; ++p) {
        sums[p] += values[k + p] > b ? values[k + p] : Real(0);
        counts[p] += values[k + p] > b ? Real(1) : Real(0);
      }
    }
    for (int p = 0; k < n; ++k, ++p) {
      sums[p] += values[k] > b ? values[k] : Real(0);
      counts[p] += values[k] > b ? Real(1) : Real(0);
    }
    const auto now = static_cast<std::int64_t>(sum_parts(counts));
    if (now == 0 || now >= count) return b;
    count = now;
    b = larger(b, (sum_parts(sums) - total) / static_cast<Real>(now));
  }
}

// The place of a row's own symbol, -1 where its class takes no part in the column.
inline std::int64_t own_symbol(const std::int8_t* signs, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) {
    if (signs[k] > 0) return k;
  }
  return -1;
}

// A symbol that no row has is nobody's rival: its sides are 0.
template <class Real>
inline Real joint_loss(const Real* scores, const std::int8_t* signs, std::int64_t own, std::int64_t n) {
  Real highest = scores[own];
  for (std::int64_t k = 0; k < n; ++k) highest = signs[k] < 0 ? larger(highest, scores[k] + Real(1)) : highest;
  return highest - scores[own];
}

template <class Real>
void take_jointly(Real cost, Real norm, const std::int8_t* signs, std::int64_t own, const Real* scores,
                  const Real* offsets, std::int64_t n, Real* states, Real* changes, double* loss, double* dual) {
  Real lowest = scores[own] - norm * states[own] + norm * cost;
  for (std::int64_t k = 0; k < n; ++k) {
    const Real wrong = signs[k] > 0 ? Real(0) : Real(1), bound = signs[k] > 0 ? cost : Real(0);
    changes[k] = scores[k] + wrong - norm * states[k] + norm * bound;
    lowest = smaller(lowest, changes[k]);
  }
  const Real out = lowest - norm * cost - Real(1);  // never above the threshold
  for (std::int64_t k = 0; k < n; ++k) changes[k] = signs[k] != 0 ? changes[k] : out;
  const Real b = threshold(changes, n, norm * cost);
  Real by_offsets = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const Real bound = signs[k] > 0 ? cost : Real(0);
    const Real after = bound - larger(changes[k] - b, Real(0)) / norm;
    changes[k] = after - states[k];
    states[k] = after;
    by_offsets += after * offsets[k];
  }
  *loss += static_cast<double>(cost * joint_loss(scores, signs, own, n));
  *dual += static_cast<double>(states[own] - by_offsets);
}

}  // namespace
