// Scores of rows under the weights of many machines, and what rows add to those weights. Included once by each level's kernel
// file.
//
// A row of X is read once for a whole block of machines, which lie on the vector axis: weights are (features, machines). The
// scores of kRowBatch dense rows are taken together and their weights updated together, so that a line of weights is fetched
// once for all of them. No lane ever reads another, so a machine does not depend on those beside it.
#pragma once

#include "linear.h"
#include "losses.inc.h"

namespace {

using nary::kRowBatch;
using nary::LinearRows;

template <class Real>
struct Wide {
  typedef Real type __attribute__((vector_size(NARY_VECTOR_BYTES), aligned(alignof(Real)), may_alias));
  static constexpr int kStep = NARY_VECTOR_BYTES / static_cast<int>(sizeof(Real));
};

constexpr int kPartials = 16;             // sums along features and lanes are taken in so many parts, on every level

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
      for (int lane = 0; lane < kVectors * kStep; lane += kLine) __builtin_prefetch(next + lane, 1);
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
  for (; lane + 2 * kStep <= lanes; lane += 2 * kStep) {
    score_entries<Real, 2>(values, features, n, weights + lane, stride, start + lane, ahead, n_ahead, scores + lane);
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
  for (; lane + 2 * kStep <= width; lane += 2 * kStep) {
    if (!any_change(changes + lane, 2 * kStep)) continue;
    update_entries<Real, 2>(values, features, n, changes + lane, width, weights + lane);
  }
  for (; lane < width; lane += kStep) {
    if (any_change(changes + lane, kStep)) {
      update_entries<Real, 1>(values, features, n, changes + lane, width, weights + lane);
    }
  }
}

}  // namespace
