// Dual coordinate descent for many machines at a time. Included once by each level's kernel file.
//
// A row of X is read once for a whole block of machines, which lie on the vector axis: weights are (features, machines). The
// scores of kRowBatch dense rows are taken together and their weights updated together, so that a line of weights is fetched
// once for all of them; what an earlier row of the batch changed reaches the later ones through their inner products. That
// is the same descent as row by row, but for rounding. No lane ever reads another, so a machine does not depend on those
// beside it.
#pragma once

#include "linear.h"
#include "losses.inc.h"

namespace {

using nary::GramProblem;
using nary::kRowBatch;
using nary::LinearRows;
using nary::Loss;
using nary::MachineBlock;

template <class Real>
struct Wide {
  typedef Real type __attribute__((vector_size(NARY_VECTOR_BYTES), aligned(alignof(Real)), may_alias));
  static constexpr int kStep = NARY_VECTOR_BYTES / static_cast<int>(sizeof(Real));
};

constexpr int kPartials = 16;             // sums along features and lanes are taken in so many parts, on every level
constexpr std::int64_t kFlush = 64;    // rows whose losses are added up in single precision

template <class Real>
inline Real sum_parts(Real* part) {
  for (int half = kPartials / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) part[k] += part[k + half];
  }
  return part[0];
}

template <class Real>
Real inner(const Real* a, const Real* b, std::int64_t n) {
  Real part[kPartials] = {};
  std::int64_t f = 0;
  for (; f + kPartials <= n; f += kPartials) {
    for (int k = 0; k < kPartials; ++k) part[k] += a[f + k] * b[f + k];
  }
  for (; f < n; ++f) part[f % kPartials] += a[f] * b[f];
  return sum_parts(part);
}

template <class Real>
Real square(const Real* x, std::int64_t n) {
  return inner(x, x, n);
}

// Scores and updates of kRows rows and kVectors vectors of lanes, the sums in registers.

template <class Real, int kRows, int kVectors>
inline void score_lanes(const Real* const* x, std::int64_t n_features, const Real* weights, std::int64_t stride,
                        const Real* start, Real* scores, std::int64_t scores_stride) {
  typedef typename Wide<Real>::type V;
  constexpr int kStep = Wide<Real>::kStep;
  V sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sum[r][v] = *reinterpret_cast<const V*>(start + v * kStep);
  }
  for (std::int64_t f = 0; f < n_features; ++f, weights += stride) {
    V line[kVectors];
    for (int v = 0; v < kVectors; ++v) line[v] = *reinterpret_cast<const V*>(weights + v * kStep);
    for (int r = 0; r < kRows; ++r) {
      const Real value = x[r][f];
      for (int v = 0; v < kVectors; ++v) sum[r][v] += line[v] * value;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<V*>(scores + r * scores_stride + v * kStep) = sum[r][v];
  }
}

template <class Real, int kRows, int kVectors>
inline void update_lanes(const Real* const* x, std::int64_t n_features, const Real* const* changes, Real* weights,
                         std::int64_t stride) {
  typedef typename Wide<Real>::type V;
  constexpr int kStep = Wide<Real>::kStep;
  V change[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) change[r][v] = *reinterpret_cast<const V*>(changes[r] + v * kStep);
  }
  for (std::int64_t f = 0; f < n_features; ++f, weights += stride) {
    V line[kVectors];
    for (int v = 0; v < kVectors; ++v) line[v] = *reinterpret_cast<const V*>(weights + v * kStep);
    for (int r = 0; r < kRows; ++r) {
      const Real value = x[r][f];
      for (int v = 0; v < kVectors; ++v) line[v] += change[r][v] * value;
    }
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<V*>(weights + v * kStep) = line[v];
  }
}

template <class Real, int kVectors>
inline void score_rows(const Real* const* x, std::int64_t n_rows, std::int64_t n_features, const Real* weights,
                       std::int64_t stride, const Real* start, Real* scores, std::int64_t scores_stride) {
  switch (n_rows) {
    case 4: return score_lanes<Real, 4, kVectors>(x, n_features, weights, stride, start, scores, scores_stride);
    case 3: return score_lanes<Real, 3, kVectors>(x, n_features, weights, stride, start, scores, scores_stride);
    case 2: return score_lanes<Real, 2, kVectors>(x, n_features, weights, stride, start, scores, scores_stride);
    default: return score_lanes<Real, 1, kVectors>(x, n_features, weights, stride, start, scores, scores_stride);
  }
}

template <class Real, int kVectors>
inline void update_rows(const Real* const* x, std::int64_t n_rows, std::int64_t n_features, const Real* const* changes,
                        Real* weights, std::int64_t stride) {
  switch (n_rows) {
    case 4: return update_lanes<Real, 4, kVectors>(x, n_features, changes, weights, stride);
    case 3: return update_lanes<Real, 3, kVectors>(x, n_features, changes, weights, stride);
    case 2: return update_lanes<Real, 2, kVectors>(x, n_features, changes, weights, stride);
    case 1: return update_lanes<Real, 1, kVectors>(x, n_features, changes, weights, stride);
    default: return;
  }
}

constexpr int kMost = NARY_VECTOR_BYTES == 64 ? 4 : 2;  // vectors of lanes whose sums fit in registers for kRowBatch rows

template <class Real>
void dense_scores(const Real* const* x, std::int64_t n_rows, std::int64_t n_features, const Real* weights,
                  std::int64_t stride, std::int64_t lanes, const Real* start, Real* scores,
                  std::int64_t scores_stride) {
  constexpr std::int64_t kStep = Wide<Real>::kStep;
  std::int64_t lane = 0;
  for (; lane + kMost * kStep <= lanes; lane += kMost * kStep) {
    score_rows<Real, kMost>(x, n_rows, n_features, weights + lane, stride, start + lane, scores + lane, scores_stride);
  }
  for (; lane + 2 * kStep <= lanes; lane += 2 * kStep) {
    score_rows<Real, 2>(x, n_rows, n_features, weights + lane, stride, start + lane, scores + lane, scores_stride);
  }
  for (; lane < lanes; lane += kStep) {
    score_rows<Real, 1>(x, n_rows, n_features, weights + lane, stride, start + lane, scores + lane, scores_stride);
  }
}

template <class Real>
inline bool any_change(const Real* changes, std::int64_t lanes) {
  typedef typename Number<Real>::bits Bits;
  Bits some = 0;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    Bits bits;
    __builtin_memcpy(&bits, changes + lane, sizeof bits);
    some |= static_cast<Bits>(bits << 1);  // -0 changes nothing either
  }
  return some != 0;
}

// The update of some vectors of lanes by those rows of the batch that change anything there.
template <class Real, int kVectors>
inline void update_some(const Real* const* x, std::int64_t n_rows, std::int64_t n_features, const Real* changes,
                        std::int64_t changes_stride, Real* weights, std::int64_t stride) {
  const Real* rows[kRowBatch];
  const Real* theirs[kRowBatch];
  std::int64_t n = 0;
  for (std::int64_t r = 0; r < n_rows; ++r) {
    if (!any_change(changes + r * changes_stride, kVectors * Wide<Real>::kStep)) continue;
    rows[n] = x[r], theirs[n] = changes + r * changes_stride;
    ++n;
  }
  update_rows<Real, kVectors>(rows, n, n_features, theirs, weights, stride);
}

// Of all vectors together where most change, one by one where few do.
template <class Real>
void dense_update(const Real* const* x, std::int64_t n_rows, std::int64_t n_features, const Real* changes,
                  std::int64_t width, Real* weights) {
  constexpr std::int64_t kStep = Wide<Real>::kStep;
  std::int64_t lane = 0;
  for (; lane + kMost * kStep <= width; lane += kMost * kStep) {
    std::int64_t n_changing = 0;
    for (std::int64_t r = 0; r < n_rows; ++r) {
      for (int v = 0; v < kMost; ++v) n_changing += any_change(changes + r * width + lane + v * kStep, kStep);
    }
    if (4 * n_changing >= 3 * n_rows * kMost) {
      update_some<Real, kMost>(x, n_rows, n_features, changes + lane, width, weights + lane, width);
    } else {
      for (int v = 0; v < kMost; ++v) {
        const std::int64_t at = lane + v * kStep;
        update_some<Real, 1>(x, n_rows, n_features, changes + at, width, weights + at, width);
      }
    }
  }
  for (; lane < width; lane += kStep) {
    update_some<Real, 1>(x, n_rows, n_features, changes + lane, width, weights + lane, width);
  }
}

// A row in CSR form touches its features' lines only.

template <class Real, int kVectors>
inline void score_entries(const Real* values, const std::int32_t* features, std::int64_t n, const Real* weights,
                          std::int64_t stride, const Real* start, const std::int32_t* ahead, std::int64_t n_ahead,
                          Real* scores) {
  typedef typename Wide<Real>::type V;
  constexpr int kStep = Wide<Real>::kStep, kLine = 64 / static_cast<int>(sizeof(Real));
  V sum[kVectors];
  for (int v = 0; v < kVectors; ++v) sum[v] = *reinterpret_cast<const V*>(start + v * kStep);
  for (std::int64_t e = 0; e < n; ++e) {
    const Real* line = weights + features[e] * stride;
    if (e < n_ahead) {
      const Real* next = weights + ahead[e] * stride;
      for (int lane = 0; lane < kVectors * kStep; lane += kLine) __builtin_prefetch(next + lane, 1, 2);
    }
    for (int v = 0; v < kVectors; ++v) sum[v] += *reinterpret_cast<const V*>(line + v * kStep) * values[e];
  }
  for (int v = 0; v < kVectors; ++v) *reinterpret_cast<V*>(scores + v * kStep) = sum[v];
}

template <class Real>
void sparse_scores(const Real* values, const std::int32_t* features, std::int64_t n, const Real* weights,
                   std::int64_t stride, std::int64_t lanes, const Real* start, const std::int32_t* ahead,
                   std::int64_t n_ahead, Real* scores) {
  constexpr std::int64_t kStep = Wide<Real>::kStep;
  std::int64_t lane = 0;
  for (; lane + 4 * kStep <= lanes; lane += 4 * kStep) {
    score_entries<Real, 4>(values, features, n, weights + lane, stride, start + lane, ahead, n_ahead, scores + lane);
  }
  for (; lane < lanes; lane += kStep) {
    score_entries<Real, 1>(values, features, n, weights + lane, stride, start + lane, ahead, n_ahead, scores + lane);
  }
}

template <class Real, int kVectors>
inline void update_entries(const Real* values, const std::int32_t* features, std::int64_t n, const Real* changes,
                           std::int64_t width, Real* weights) {
  typedef typename Wide<Real>::type V;
  constexpr int kStep = Wide<Real>::kStep;
  V change[kVectors];
  for (int v = 0; v < kVectors; ++v) change[v] = *reinterpret_cast<const V*>(changes + v * kStep);
  for (std::int64_t e = 0; e < n; ++e) {
    Real* line = weights + features[e] * width;
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<V*>(line + v * kStep) += change[v] * values[e];
  }
}

template <class Real>
void sparse_update(const Real* values, const std::int32_t* features, std::int64_t n, const Real* changes,
                   std::int64_t width, Real* weights) {
  constexpr std::int64_t kStep = Wide<Real>::kStep;
  std::int64_t lane = 0;
  for (; lane + 4 * kStep <= width; lane += 4 * kStep) {
    if (!any_change(changes + lane, 4 * kStep)) continue;
    update_entries<Real, 4>(values, features, n, changes + lane, width, weights + lane);
  }
  for (; lane < width; lane += kStep) {
    if (any_change(changes + lane, kStep)) {
      update_entries<Real, 1>(values, features, n, changes + lane, width, weights + lane);
    }
  }
}

// One row's dual variables: from scores to states, changes of the weights, and parts of the objectives.

template <class Real>
inline Real side_cost(Real row_cost, Real sign, Real positive, Real negative) {
  return row_cost * (sign > 0 ? positive : negative);
}

template <class Rule, class Real>
void take_lanes(const MachineBlock<Real>& block, Real row_cost, Real norm, const std::int8_t* __restrict signs,
                const Real* __restrict scores, Real* __restrict states, Real* __restrict changes,
                Real* __restrict losses, Real* __restrict duals) {
  const Real* __restrict positive = block.positive_weights;
  const Real* __restrict negative = block.negative_weights;
  const Real* __restrict offsets = block.offsets;
  for (std::int64_t lane = 0; lane < block.width; ++lane) {
    const Real sign = static_cast<Real>(signs[lane]), used = sign * sign;
    const Real cost = side_cost(row_cost, sign, positive[lane], negative[lane]), margin = sign * scores[lane];
    const Real before = states[lane], after = Rule::take(margin, before, cost, norm);
    const Real alpha = Rule::alpha(after, cost);
    states[lane] = after;
    changes[lane] = sign * (alpha - Rule::alpha(before, cost));
    losses[lane] += used * Rule::loss(margin, cost);
    duals[lane] += used * Rule::dual(after, cost) - sign * alpha * offsets[lane];
  }
}

template <class Rule, class Real>
void lose_lanes(const MachineBlock<Real>& block, std::int64_t first, std::int64_t last, Real row_cost,
                const std::int8_t* __restrict signs, const Real* __restrict scores, Real* __restrict losses) {
  const Real* __restrict positive = block.positive_weights;
  const Real* __restrict negative = block.negative_weights;
  for (std::int64_t lane = first; lane < last; ++lane) {
    const Real sign = static_cast<Real>(signs[lane]);
    const Real cost = side_cost(row_cost, sign, positive[lane], negative[lane]);
    losses[lane] += sign * sign * Rule::loss(sign * scores[lane], cost);
  }
}

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

template <class Real>
void take_columns(const MachineBlock<Real>& block, Real cost, Real norm, const std::int8_t* signs, const Real* scores,
                  Real* states, Real* changes) {
  for (std::int64_t s = 0; s < block.n_columns; ++s) {
    const std::int64_t first = block.columns[s], n = block.columns[s + 1] - first;
    const std::int64_t own = own_symbol(signs + first, n);
    if (own < 0) {
      for (std::int64_t k = 0; k < n; ++k) changes[first + k] = 0;
      continue;
    }
    take_jointly(cost * block.positive_weights[first + own], norm, signs + first, own, scores + first,
                 block.offsets + first, n, states + first, changes + first, block.losses + s, block.duals + s);
  }
  for (std::int64_t k = block.columns[block.n_columns]; k < block.width; ++k) changes[k] = 0;
}

template <class Real>
void take_row(const MachineBlock<Real>& block, std::int64_t row, const Real* scores, Real* states, Real* changes,
              Real* losses, Real* duals) {
  const std::int8_t* signs = block.signs + block.groups[row] * block.width;
  const Real cost = block.costs[row], norm = block.norms[row];
  switch (block.loss) {
    case Loss::squared_hinge:
      return take_lanes<SquaredHinge>(block, cost, norm, signs, scores, states, changes, losses, duals);
    case Loss::hinge: return take_lanes<Hinge>(block, cost, norm, signs, scores, states, changes, losses, duals);
    case Loss::logistic: return take_lanes<Logistic>(block, cost, norm, signs, scores, states, changes, losses, duals);
    case Loss::crammer_singer: return take_columns(block, cost, norm, signs, scores, states, changes);
  }
}

template <class Real>
void lose_row(const MachineBlock<Real>& block, std::int64_t row, std::int64_t first, std::int64_t last,
              const Real* scores, Real* losses) {
  const std::int8_t* signs = block.signs + block.groups[row] * block.width;
  const Real cost = block.costs[row];
  switch (block.loss) {
    case Loss::squared_hinge: return lose_lanes<SquaredHinge>(block, first, last, cost, signs, scores, losses);
    case Loss::hinge: return lose_lanes<Hinge>(block, first, last, cost, signs, scores, losses);
    case Loss::logistic: return lose_lanes<Logistic>(block, first, last, cost, signs, scores, losses);
    case Loss::crammer_singer:
      for (std::int64_t s = first; s < last; ++s) {
        const std::int64_t lane = block.columns[s], n = block.columns[s + 1] - lane;
        const std::int64_t own = own_symbol(signs + lane, n);
        if (own < 0) continue;
        const Real own_cost = cost * block.positive_weights[lane + own];
        block.losses[s] += static_cast<double>(own_cost * joint_loss(scores + lane, signs + lane, own, n));
      }
  }
}

template <class Real>
void flush(Real* sums, double* totals, std::int64_t first, std::int64_t last) {
  for (std::int64_t lane = first; lane < last; ++lane) {
    totals[lane] += static_cast<double>(sums[lane]);
    sums[lane] = 0;
  }
}

// The members of a batch, which begins at place `at` of the order.
template <class Real>
struct Batch {
  std::int64_t n;
  std::int64_t member[kRowBatch];
  std::int64_t row[kRowBatch];
  const Real* x[kRowBatch];

  Batch(const MachineBlock<Real>& block, std::int64_t at) {
    const std::int64_t most = block.rows.dense ? kRowBatch : 1;
    n = block.n_members - at < most ? block.n_members - at : most;
    for (std::int64_t r = 0; r < n; ++r) {
      member[r] = block.order ? block.order[at + r] : at + r;
      row[r] = block.members[member[r]];
      x[r] = block.rows.dense ? block.rows.dense + row[r] * block.rows.n_features : nullptr;
    }
  }
};

template <class Real>
void fetch_batch(const MachineBlock<Real>& block, std::int64_t at) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(Real));
  if (at >= block.n_members) return;
  const Batch<Real> batch(block, at);
  for (std::int64_t r = 0; r < batch.n; ++r) {
    const Real* state = block.states + batch.member[r] * block.width;
    for (std::int64_t lane = 0; lane < block.width; lane += kLine) __builtin_prefetch(state + lane, 1);
    if (!batch.x[r]) continue;
    for (std::int64_t f = 0; f < block.rows.n_features; f += kLine) __builtin_prefetch(batch.x[r] + f);
  }
}

// Scores of the lanes first..last-1 of a batch under some weights.
template <class Real>
void score_batch(const MachineBlock<Real>& block, const Batch<Real>& batch, std::int64_t at, std::int64_t first,
                 std::int64_t last, const Real* weights, const Real* offsets, Real* start, Real* scores) {
  const LinearRows<Real>& rows = block.rows;
  const Real* constant = weights + rows.n_features * block.width;
  for (std::int64_t lane = first; lane < last; ++lane) {
    start[lane] = (offsets ? offsets[lane] : Real(0)) + block.constant * constant[lane];
  }
  if (rows.dense) {
    dense_scores(batch.x, batch.n, rows.n_features, weights + first, block.width, last - first, start + first,
                 scores + first, block.width);
    return;
  }
  const std::int64_t begin = rows.starts[batch.row[0]], n = rows.starts[batch.row[0] + 1] - begin;
  const std::int32_t* ahead = nullptr;
  std::int64_t n_ahead = 0;
  if (at + 1 < block.n_members) {
    const std::int64_t next = block.members[block.order ? block.order[at + 1] : at + 1];
    ahead = rows.features + rows.starts[next];
    n_ahead = rows.starts[next + 1] - rows.starts[next];
  }
  sparse_scores(rows.values + begin, rows.features + begin, n, weights + first, block.width, last - first,
                start + first, ahead, n_ahead, scores + first);
}

template <class Real>
void update_batch(const MachineBlock<Real>& block, const Batch<Real>& batch, const Real* changes, Real* weights) {
  const LinearRows<Real>& rows = block.rows;
  Real* __restrict constant = weights + rows.n_features * block.width;
  for (std::int64_t r = 0; r < batch.n; ++r) {
    for (std::int64_t lane = 0; lane < block.width; ++lane) {
      constant[lane] += block.constant * changes[r * block.width + lane];
    }
  }
  if (rows.dense) {
    dense_update(batch.x, batch.n, rows.n_features, changes, block.width, weights);
    return;
  }
  const std::int64_t begin = rows.starts[batch.row[0]], n = rows.starts[batch.row[0] + 1] - begin;
  sparse_update(rows.values + begin, rows.features + begin, n, changes, block.width, weights);
}

template <class Real>
void sweep(const MachineBlock<Real>& block) {
  const std::int64_t width = block.width;
  Real *scores = block.scratch, *changes = scores + kRowBatch * width, *start = changes + kRowBatch * width;
  Real *losses = start + width, *duals = losses + width;
  const bool jointly = block.loss == Loss::crammer_singer;
  for (std::int64_t lane = 0; lane < width; ++lane) losses[lane] = duals[lane] = 0;
  const std::int64_t step = block.rows.dense ? kRowBatch : 1;
  for (std::int64_t at = 0; at < block.n_members; at += step) {
    const Batch<Real> batch(block, at);
    fetch_batch(block, at + step);
    score_batch(block, batch, at, 0, width, block.weights, block.offsets, start, scores);
    for (std::int64_t r = 0; r < batch.n; ++r) {
      Real* mine = scores + r * width;
      for (std::int64_t before = 0; before < r; ++before) {
        const Real product =
            inner(batch.x[before], batch.x[r], block.rows.n_features) + block.constant * block.constant;
        const Real* __restrict change = changes + before * width;
        for (std::int64_t lane = 0; lane < width; ++lane) mine[lane] += product * change[lane];
      }
      take_row(block, batch.row[r], mine, block.states + batch.member[r] * width, changes + r * width, losses, duals);
    }
    update_batch(block, batch, changes, block.weights);
    if (!jointly && ((at + step) % kFlush == 0 || at + step >= block.n_members)) {
      flush(losses, block.losses, 0, width);
      flush(duals, block.duals, 0, width);
    }
  }
}

template <class Rule, class Real>
void gather_lanes(const MachineBlock<Real>& block, Real row_cost, const std::int8_t* signs, const Real* states,
                  Real* changes) {
  for (std::int64_t lane = 0; lane < block.width; ++lane) {
    const Real sign = static_cast<Real>(signs[lane]);
    const Real cost = side_cost(row_cost, sign, block.positive_weights[lane], block.negative_weights[lane]);
    changes[lane] = sign * Rule::alpha(states[lane], cost);
  }
}

template <class Real>
void gather(const MachineBlock<Real>& block) {
  const std::int64_t width = block.width, step = block.rows.dense ? kRowBatch : 1;
  Real* changes = block.scratch;
  for (std::int64_t at = 0; at < block.n_members; at += step) {
    const Batch<Real> batch(block, at);
    for (std::int64_t r = 0; r < batch.n; ++r) {
      const std::int8_t* signs = block.signs + block.groups[batch.row[r]] * width;
      const Real* states = block.states + batch.member[r] * width;
      const Real cost = block.costs[batch.row[r]];
      Real* mine = changes + r * width;
      switch (block.loss) {
        case Loss::squared_hinge: gather_lanes<SquaredHinge>(block, cost, signs, states, mine); break;
        case Loss::hinge: gather_lanes<Hinge>(block, cost, signs, states, mine); break;
        case Loss::logistic: gather_lanes<Logistic>(block, cost, signs, states, mine); break;
        case Loss::crammer_singer:
          for (std::int64_t lane = 0; lane < width; ++lane) mine[lane] = states[lane];
      }
    }
    update_batch(block, batch, changes, block.weights);
  }
}

template <class Real>
void measure(const MachineBlock<Real>& block, std::int64_t first, std::int64_t last) {
  const std::int64_t width = block.width;
  Real *scores = block.scratch, *start = scores + 2 * kRowBatch * width, *losses = start + width;
  const bool jointly = block.loss == Loss::crammer_singer;
  const std::int64_t from = jointly ? block.columns[first] : first;
  const std::int64_t to = jointly ? block.columns[last] : last;
  constexpr std::int64_t kStep = Wide<Real>::kStep;
  const std::int64_t lane = from / kStep * kStep, beyond = (to + kStep - 1) / kStep * kStep;
  for (std::int64_t k = first; k < last; ++k) losses[k] = 0;
  const std::int64_t step = block.rows.dense ? kRowBatch : 1;
  for (std::int64_t at = 0; at < block.n_members; at += step) {
    const Batch<Real> batch(block, at);
    score_batch(block, batch, at, lane, beyond, block.weights, block.offsets, start, scores);
    for (std::int64_t r = 0; r < batch.n; ++r) lose_row(block, batch.row[r], first, last, scores + r * width, losses);
    if (!jointly && ((at + step) % kFlush == 0 || at + step >= block.n_members)) {
      flush(losses, block.losses, first, last);
    }
  }
}

// Newton's method for the smooth losses. All passes read the rows in the order of the members; the scores that `slope` leaves
// in the states are what the other two go by.

template <class Rule, class Real>
void slope_lanes(const MachineBlock<Real>& block, Real row_cost, const std::int8_t* __restrict signs,
                 const Real* __restrict scores, Real* __restrict coefficients, Real* __restrict losses,
                 Real* __restrict duals, Real* __restrict curvatures) {
  const Real* __restrict positive = block.positive_weights;
  const Real* __restrict negative = block.negative_weights;
  for (std::int64_t lane = 0; lane < block.width; ++lane) {
    const Real sign = static_cast<Real>(signs[lane]), used = sign * sign;
    const Real cost = side_cost(row_cost, sign, positive[lane], negative[lane]), margin = sign * scores[lane];
    const Real state = Rule::state_at(margin, cost);
    coefficients[lane] = -sign * Rule::alpha(state, cost);
    losses[lane] += used * Rule::loss(margin, cost);
    duals[lane] += used * Rule::dual(state, cost);
    curvatures[lane] += used * Rule::curvature(margin, cost);
  }
}

template <class Rule, class Real>
void slope_by(const MachineBlock<Real>& block, Real* gradient, double* curvatures) {
  const std::int64_t width = block.width, step = block.rows.dense ? kRowBatch : 1;
  Real *coefficients = block.scratch, *start = coefficients + 2 * kRowBatch * width;
  Real *losses = start + width, *duals = losses + width, *curved = duals + width;
  for (std::int64_t lane = 0; lane < width; ++lane) losses[lane] = duals[lane] = curved[lane] = 0;
  for (std::int64_t at = 0; at < block.n_members; at += step) {
    const Batch<Real> batch(block, at);
    Real* scores = block.states + at * width;
    score_batch(block, batch, at, 0, width, block.weights, block.offsets, start, scores);
    for (std::int64_t r = 0; r < batch.n; ++r) {
      const std::int8_t* signs = block.signs + block.groups[batch.row[r]] * width;
      slope_lanes<Rule>(block, block.costs[batch.row[r]], signs, scores + r * width, coefficients + r * width, losses,
                        duals, curved);
    }
    update_batch(block, batch, coefficients, gradient);
    if ((at + step) % kFlush == 0 || at + step >= block.n_members) {
      flush(losses, block.losses, 0, width);
      flush(duals, block.duals, 0, width);
      flush(curved, curvatures, 0, width);
    }
  }
}

template <class Rule, class Real>
void bend_by(const MachineBlock<Real>& block, const Real* direction, Real* product) {
  const std::int64_t width = block.width, step = block.rows.dense ? kRowBatch : 1;
  Real *along = block.scratch, *start = along + 2 * kRowBatch * width;
  const Real* __restrict positive = block.positive_weights;
  const Real* __restrict negative = block.negative_weights;
  for (std::int64_t at = 0; at < block.n_members; at += step) {
    const Batch<Real> batch(block, at);
    score_batch(block, batch, at, 0, width, direction, static_cast<const Real*>(nullptr), start, along);
    for (std::int64_t r = 0; r < batch.n; ++r) {
      const std::int8_t* __restrict signs = block.signs + block.groups[batch.row[r]] * width;
      const Real* __restrict scores = block.states + (at + r) * width;
      const Real row_cost = block.costs[batch.row[r]];
      Real* __restrict mine = along + r * width;
      for (std::int64_t lane = 0; lane < width; ++lane) {
        const Real sign = static_cast<Real>(signs[lane]);
        const Real cost = side_cost(row_cost, sign, positive[lane], negative[lane]);
        mine[lane] *= sign * sign * Rule::curvature(sign * scores[lane], cost);
      }
    }
    update_batch(block, batch, along, product);
  }
}

template <class Real>
void trace(const MachineBlock<Real>& block, const Real* direction, Real* along) {
  const std::int64_t width = block.width, step = block.rows.dense ? kRowBatch : 1;
  for (std::int64_t at = 0; at < block.n_members; at += step) {
    const Batch<Real> batch(block, at);
    score_batch(block, batch, at, 0, width, direction, static_cast<const Real*>(nullptr), block.scratch,
                along + at * width);
  }
}

template <class Rule, class Real>
void probe_by(const MachineBlock<Real>& block, const Real* along, const Real* __restrict lengths, double* slopes,
              double* bends) {
  const std::int64_t width = block.width;
  Real* __restrict sums = block.scratch;
  Real* __restrict curved = sums + width;
  const Real* __restrict positive = block.positive_weights;
  const Real* __restrict negative = block.negative_weights;
  for (std::int64_t lane = 0; lane < width; ++lane) sums[lane] = curved[lane] = 0;
  for (std::int64_t k = 0; k < block.n_members; ++k) {
    const std::int64_t row = block.members[k];
    const std::int8_t* __restrict signs = block.signs + block.groups[row] * width;
    const Real* __restrict scores = block.states + k * width;
    const Real* __restrict ahead = along + k * width;
    const Real row_cost = block.costs[row];
    for (std::int64_t lane = 0; lane < width; ++lane) {
      const Real sign = static_cast<Real>(signs[lane]);
      const Real cost = side_cost(row_cost, sign, positive[lane], negative[lane]);
      const Real margin = sign * (scores[lane] + lengths[lane] * ahead[lane]);
      sums[lane] -= sign * Rule::alpha(Rule::state_at(margin, cost), cost) * ahead[lane];
      curved[lane] += sign * sign * Rule::curvature(margin, cost) * (ahead[lane] * ahead[lane]);
    }
    if ((k + 1) % kFlush == 0 || k + 1 == block.n_members) {
      flush(sums, slopes, 0, width);
      flush(curved, bends, 0, width);
    }
  }
}

// Gaussian elimination of a symmetric matrix of `lines` rows, of which the upper triangle is read, and the solution for b.
template <class Real>
void eliminate(Real* matrix, std::int64_t lines, std::int64_t stride, Real* __restrict b) {
  Real largest = 0;
  for (std::int64_t k = 0; k < lines; ++k) largest = larger(largest, matrix[k * stride + k]);
  for (std::int64_t k = 0; k < lines; ++k) {
    Real* __restrict pivot = matrix + k * stride;
    pivot[k] = larger(pivot[k], largest * Number<Real>::kLeast);  // rounding may have left less, or nothing
    for (std::int64_t i = k + 1; i < lines; ++i) {
      const Real factor = pivot[i] / pivot[k];
      Real* __restrict line = matrix + i * stride;
      for (std::int64_t j = i; j < lines; ++j) line[j] -= factor * pivot[j];
      b[i] -= factor * b[k];
    }
  }
  for (std::int64_t k = lines - 1; k >= 0; --k) {
    const Real* line = matrix + k * stride;
    b[k] = (b[k] - inner(line + k + 1, b + k + 1, lines - k - 1)) / line[k];
  }
}

template <class Real>
void solve(const LinearRows<Real>& rows, const std::int64_t* members, const Real* bends, std::int64_t n, Real constant,
           bool free_intercept, Real* matrix, Real* b) {
  const std::int64_t d = rows.n_features, stride = (d + nary::kMachines) / nary::kMachines * nary::kMachines;
  Real* scaled = matrix + (d + 1) * stride;  // the rows of a batch times their bends
  for (std::int64_t e = 0; e < (d + 1 + kRowBatch) * stride; ++e) matrix[e] = 0;
  for (std::int64_t first = 0; first < n; first += kRowBatch) {
    const std::int64_t batch = n - first < kRowBatch ? n - first : kRowBatch;
    const Real* x[kRowBatch];
    for (std::int64_t r = 0; r < batch; ++r) {
      x[r] = rows.dense + members[first + r] * d;
      const Real bend = bends[first + r];
      Real* __restrict mine = scaled + r * stride;
      const Real* __restrict row = x[r];
      for (std::int64_t f = 0; f < d; ++f) mine[f] = bend * row[f];
      mine[d] = bend * constant;
      Real* __restrict last = matrix + d * stride;
      for (std::int64_t f = 0; f <= d; ++f) last[f] += constant * mine[f];
    }
    dense_update(x, batch, d, scaled, stride, matrix);
  }
  for (std::int64_t f = 0; f < d; ++f) matrix[f * stride + f] += Real(1);
  Real& corner = matrix[d * stride + d];
  corner = larger(corner + (free_intercept ? Real(0) : Real(1)), Number<Real>::kLeast);
  eliminate(matrix, d + 1, stride, b);
}

template <class Real>
void slope(const MachineBlock<Real>& block, Real* gradient, double* curvatures) {
  block.loss == Loss::logistic ? slope_by<Logistic>(block, gradient, curvatures)
                               : slope_by<SquaredHinge>(block, gradient, curvatures);
}

template <class Real>
void bend(const MachineBlock<Real>& block, const Real* direction, Real* product) {
  block.loss == Loss::logistic ? bend_by<Logistic>(block, direction, product)
                               : bend_by<SquaredHinge>(block, direction, product);
}

template <class Real>
void probe(const MachineBlock<Real>& block, const Real* along, const Real* lengths, double* slopes, double* bends) {
  block.loss == Loss::logistic ? probe_by<Logistic>(block, along, lengths, slopes, bends)
                               : probe_by<SquaredHinge>(block, along, lengths, slopes, bends);
}

// One machine over the Gram matrix of its rows. A variable that stays costs one look, so bounded ones are left alone.
template <class Rule, class Real>
void descend_by(GramProblem<Real>& problem) {
  Real* __restrict scores = problem.scores;
  for (std::int64_t k = 0; k < problem.n; ++k) {
    const std::int64_t i = problem.order[k];
    const Real sign = problem.signs[i], cost = problem.costs[i];
    const Real* __restrict line = problem.gram + i * problem.stride;
    const Real before = problem.states[i];
    const Real norm = larger(line[i], problem.least_norm);
    const Real after = Rule::take(sign * (scores[i] + problem.offset), before, cost, norm);
    if (after == before) continue;
    problem.states[i] = after;
    const Real change = sign * (Rule::alpha(after, cost) - Rule::alpha(before, cost));
    for (std::int64_t j = 0; j < problem.stride; ++j) scores[j] += change * line[j];
  }
  double losses = 0, duals = 0, square = 0;
  for (std::int64_t i = 0; i < problem.n; ++i) {
    const Real sign = problem.signs[i], cost = problem.costs[i], alpha = Rule::alpha(problem.states[i], cost);
    losses += static_cast<double>(Rule::loss(sign * (scores[i] + problem.offset), cost));
    problem.coefficients[i] = sign * alpha;
    duals += static_cast<double>(Rule::dual(problem.states[i], cost) - sign * alpha * problem.offset);
    square += static_cast<double>(sign * alpha * scores[i]);
  }
  problem.loss_sum = losses, problem.dual_sum = duals, problem.square = square;
}

template <class Real>
void descend(GramProblem<Real>& problem) {
  switch (problem.loss) {
    case Loss::squared_hinge: return descend_by<SquaredHinge>(problem);
    case Loss::hinge: return descend_by<Hinge>(problem);
    default: return descend_by<Logistic>(problem);
  }
}

}  // namespace
