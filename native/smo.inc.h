// Sequential minimal optimization: one machine with the hinge and a free intercept, over lines of the Gram matrix of its
// rows. Included once by each level's kernel file.
//
// The coefficients c_i = s_i alpha_i add up to 0, so they move in pairs. A row's wish is the intercept that would put it on
// its margin, s_i - sum_j c_j K_ij: the row that may rise with the highest wish goes with the one that may fall and gains
// most, (wish_i - wish_j)^2 / (K_ii + K_jj - 2 K_ij). (Fan, Chen and Lin, "Working set selection using second order
// information for training support vector machines", 2005.) Only their two lines are read; few rows are ever chosen.
#pragma once

#include "descent.inc.h"

namespace {

using nary::SmoProblem;

constexpr std::int64_t kSmoLook = 64;  // steps after which the gap is looked at anyhow

template <class T, int kBytes>
struct Lanes {
  typedef T type __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
};

template <class T, int kBytes>
inline T highest_lane(typename Lanes<T, kBytes>::type values) {
  if constexpr (kBytes == 2 * sizeof(T)) {
    return larger(values[0], values[1]);
  } else {
    typename Lanes<T, kBytes / 2>::type half[2];
    __builtin_memcpy(half, &values, kBytes);
    return highest_lane<T, kBytes / 2>(half[0] > half[1] ? half[0] : half[1]);
  }
}

// The place of a highest value, by one comparison each: values are read as integers, which sort alike, and their last bits
// give way to the place. Which of some nearly equal ones is taken does not matter, but it is the same one on every level.
template <class Real>
struct Highest {
  static constexpr int kBytes = NARY_VECTOR_BYTES, kStep = kBytes / static_cast<int>(sizeof(Real));
  typedef typename Lanes<Real, kBytes>::type V;
  typedef typename Number<Real>::place Place;
  typedef typename Lanes<Place, kBytes>::type I;
  static constexpr Place kNone = Place{1} << (8 * sizeof(Place) - 1);

  Place places;  // the bits of a place
  I place, best;

  explicit Highest(std::int64_t lanes) : places(1), place{}, best(I{} + kNone) {
    while (places < lanes) places *= 2;
    --places;
    for (int k = 0; k < kStep; ++k) place[k] = k;
  }
  void see(V values, I allowed) {
    I bits = reinterpret_cast<I>(values);
    bits ^= (bits >> (8 * sizeof(Place) - 1)) & ~kNone;
    const I key = allowed ? (bits & ~places) | place : I{} + kNone;
    best = key > best ? key : best;
    place += kStep;
  }
  // -1 where none was allowed
  std::int64_t found() const {
    const Place top = highest_lane<Place, kBytes>(best);
    return top == kNone ? -1 : static_cast<std::int64_t>(top & places);
  }
};

template <class Real>
inline void choose_first(SmoProblem<Real>& problem, const Real* line_i, const Real* line_j, Real step, Real middle) {
  typedef Highest<Real> High;
  typedef typename High::V V;
  const auto load = [](const Real* from) { return *reinterpret_cast<const V*>(from); };
  const std::int64_t lanes = problem.lanes;
  const Real *coefficients = problem.coefficients, *highest = problem.high;
  Real* wishes = problem.wishes;
  High high(lanes);
  for (std::int64_t k = 0; k < lanes; k += High::kStep) {
    const V moved = load(wishes + k) - (load(line_i + k) - load(line_j + k)) * step;
    *reinterpret_cast<V*>(wishes + k) = moved;
    high.see(moved - middle, load(coefficients + k) < load(highest + k));
  }
  problem.first = high.found(), problem.second = -1;
}

template <class Real>
inline void choose_second(SmoProblem<Real>& problem, const Real* line) {
  typedef Highest<Real> High;
  typedef typename High::V V;
  const auto load = [](const Real* from) { return *reinterpret_cast<const V*>(from); };
  const Real norm = problem.norms[problem.first], wish = problem.wishes[problem.first], least = problem.least;
  const std::int64_t lanes = problem.lanes;
  const Real *coefficients = problem.coefficients, *low = problem.low, *norms = problem.norms, *wishes = problem.wishes;
  High high(lanes);
  for (std::int64_t k = 0; k < lanes; k += High::kStep) {
    const V apart = wish - load(wishes + k);
    V curvature = norm + load(norms + k) - Real(2) * load(line + k);
    curvature = curvature > least ? curvature : V{} + least;
    high.see(apart * apart / curvature, (load(coefficients + k) > load(low + k)) & (apart > 0));
  }
  problem.second = high.found();
}

// The gap between the dual objective and the primal one at the best of two pairs (scale, intercept), of which the first is
// (1, the middle of the two wishes that contradict each other most). The second scales the weights until no row is inside its
// margin: where rows can be told apart and C is large, far fewer steps suffice to come near the least objective that way.
template <class Real>
void smo_gap(SmoProblem<Real>& problem) {
  constexpr Real kHuge = Number<Real>::kHuge;
  Real rise[kPartials], fall[kPartials], plus[kPartials], minus[kPartials];
  double square[kPartials] = {}, sum[kPartials] = {}, losses[kPartials] = {};
  for (int p = 0; p < kPartials; ++p) rise[p] = plus[p] = -kHuge, fall[p] = minus[p] = kHuge;
  for (std::int64_t k = 0; k < problem.lanes; k += kPartials) {
    const Real *wishes = problem.wishes + k, *low = problem.low + k, *high = problem.high + k;
    const Real* coefficients = problem.coefficients + k;
    for (int p = 0; p < kPartials; ++p) {
      const Real wish = wishes[p], c = coefficients[p], sign = high[p] > 0 ? Real(1) : Real(-1);
      rise[p] = larger(rise[p], c < high[p] ? wish : -kHuge);
      fall[p] = smaller(fall[p], c > low[p] ? wish : kHuge);
      plus[p] = larger(plus[p], high[p] > 0 ? wish : -kHuge);
      minus[p] = smaller(minus[p], low[p] < 0 ? wish : kHuge);
      square[p] += static_cast<double>(c * (sign - wish));
      sum[p] += static_cast<double>(c * sign);
    }
  }
  for (int p = 1; p < kPartials; ++p) {
    rise[0] = larger(rise[0], rise[p]), fall[0] = smaller(fall[0], fall[p]);
    plus[0] = larger(plus[0], plus[p]), minus[0] = smaller(minus[0], minus[p]);
  }
  sum_parts(square), sum_parts(sum);
  if (rise[0] <= -kHuge) rise[0] = fall[0];
  if (fall[0] >= kHuge) fall[0] = rise[0];
  const Real middle = Real(0.5) * (rise[0] + fall[0]);
  for (std::int64_t k = 0; k < problem.lanes; k += kPartials) {
    const Real *wishes = problem.wishes + k, *low = problem.low + k, *high = problem.high + k;
    for (int p = 0; p < kPartials; ++p) {
      const Real past = wishes[p] - middle;
      losses[p] += static_cast<double>(larger(high[p] * past, low[p] * past));
    }
  }
  sum_parts(losses);
  const double dual = sum[0] - 0.5 * square[0];
  double primal = losses[0] + 0.5 * square[0];
  problem.scale = 1, problem.offset = middle;
  // Scores are known but to rounding, and what falls short of a margin costs C times as much as a little more scale.
  const Real rounding = 16 * Number<Real>::kLeast * (Real(1) + larger(plus[0], -plus[0]) + larger(minus[0], -minus[0]));
  // from the lowest score on the positive side down to the highest on the other
  const Real between = Real(2) + minus[0] - plus[0] - rounding;
  if (between > 0) {
    const Real scale = Real(2) / between;
    const double hard = 0.5 * static_cast<double>(scale * scale) * square[0];
    if (hard < primal) {
      primal = hard, problem.scale = scale;
      problem.offset = Real(1) - scale * (Real(1) - plus[0] - Real(0.5) * rounding);
    }
  }
  problem.gap = primal > 0 ? (primal - dual) / primal : 0;
  if (problem.gap < 0) problem.gap = 0;
}

// Whether the machine is fitted, looked up where that may be so: the gap falls about as the distance between the wishes.
template <class Real>
inline bool smo_ends(SmoProblem<Real>& problem) {
  const bool stuck = problem.first < 0 || problem.second < 0 || problem.n_steps >= problem.max_steps;
  const Real apart = stuck ? Real(0) : problem.wishes[problem.first] - problem.wishes[problem.second];
  if (apart > problem.look_at && problem.n_steps % kSmoLook != 0) return false;
  smo_gap(problem);
  problem.look_at = apart * larger(Real(0.25), static_cast<Real>(problem.tol / problem.gap));
  return stuck || problem.gap <= problem.tol;
}

// Steps until the line of a row is needed, which is returned, or till the end: -1.
template <class Real>
std::int64_t smo(SmoProblem<Real>& problem) {
  for (;; ++problem.n_steps) {
    if (problem.second < 0) {
      if (problem.first >= 0) {
        if (!problem.lines[problem.first]) return problem.first;
        choose_second(problem, problem.lines[problem.first]);
      }
      if (smo_ends(problem)) return -1;
    }
    const std::int64_t i = problem.first, j = problem.second;
    const Real *line_i = problem.lines[i], *line_j = problem.lines[j];
    if (!line_j) return j;
    Real &c_i = problem.coefficients[i], &c_j = problem.coefficients[j];
    const Real curvature = larger(line_i[i] + line_j[j] - Real(2) * line_i[j], problem.least);
    const Real room_i = problem.high[i] - c_i, room_j = c_j - problem.low[j];
    const Real step = smaller((problem.wishes[i] - problem.wishes[j]) / curvature, smaller(room_i, room_j));
    c_i = step == room_i ? problem.high[i] : c_i + step;
    c_j = step == room_j ? problem.low[j] : c_j - step;
    choose_first(problem, line_i, line_j, step, Real(0.5) * (problem.wishes[i] + problem.wishes[j]));
  }
}

// Inner products of rows that are whole vectors long: kPartials sums along the features, then halves of them together.

template <class T, int kBytes>
inline T sum_lanes(typename Lanes<T, kBytes>::type values) {
  if constexpr (kBytes == 2 * sizeof(T)) {
    return values[0] + values[1];
  } else {
    typename Lanes<T, kBytes / 2>::type half[2];
    __builtin_memcpy(half, &values, kBytes);
    return sum_lanes<T, kBytes / 2>(half[0] + half[1]);
  }
}

template <class Real, int kRows>
inline void multiply_rows(const Real* x, const Real* rows, std::int64_t stride, Real* out) {
  typedef typename Wide<Real>::type V;
  constexpr int kStep = Wide<Real>::kStep, kVectors = kPartials / kStep;
  V sum[kRows][kVectors] = {};
  for (std::int64_t f = 0; f < stride; f += kPartials) {
    for (int v = 0; v < kVectors; ++v) {
      const V own = *reinterpret_cast<const V*>(x + f + v * kStep);
      for (int r = 0; r < kRows; ++r) sum[r][v] += own * *reinterpret_cast<const V*>(rows + r * stride + f + v * kStep);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int half = kVectors / 2; half > 0; half /= 2) {
      for (int v = 0; v < half; ++v) sum[r][v] += sum[r][v + half];
    }
    out[r] = sum_lanes<Real, NARY_VECTOR_BYTES>(sum[r][0]);
  }
}

// out[k] = x . rows[k]
template <class Real>
void multiply(const Real* x, const Real* rows, std::int64_t n, std::int64_t stride, Real* out) {
  constexpr int kRows = Wide<Real>::kStep < kPartials / 2 ? 2 : 4;  // as many sums as registers hold
  std::int64_t k = 0;
  for (; k + kRows <= n; k += kRows) multiply_rows<Real, kRows>(x, rows + k * stride, stride, out + k);
  for (; k < n; ++k) multiply_rows<Real, 1>(x, rows + k * stride, stride, out + k);
}

// sum = sum of c_k x_k over dense rows
template <class Real>
void combine(const Real* const* x, const Real* coefficients, std::int64_t n, std::int64_t n_features, Real* sum) {
  typedef typename Wide<Real>::type V;
  constexpr std::int64_t kStep = Wide<Real>::kStep, kVectors = 4;
  std::int64_t f = 0;
  for (; f + kVectors * kStep <= n_features; f += kVectors * kStep) {
    V part[kVectors] = {};
    for (std::int64_t k = 0; k < n; ++k) {
      for (int v = 0; v < kVectors; ++v) part[v] += *reinterpret_cast<const V*>(x[k] + f + v * kStep) * coefficients[k];
    }
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<V*>(sum + f + v * kStep) = part[v];
  }
  for (; f < n_features; ++f) {
    sum[f] = 0;
    for (std::int64_t k = 0; k < n; ++k) sum[f] += x[k][f] * coefficients[k];
  }
}

}  // namespace
