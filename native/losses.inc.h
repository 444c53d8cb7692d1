// The losses of linear machines as rules for one dual variable. Included once by each level's kernel file.
//
// A rule knows the loss of a margin (the score times the row's side), the dual variable `alpha` of a state, its part of the
// dual objective, and `take`: the state at which the dual is largest, all other variables fixed. The smooth ones know the
// second derivative in the margin too, and the state that belongs to a margin. All are straight lines of
// arithmetic, so that compilers lay them on vectors; exponentials and logarithms are series for the same reason.
#pragma once

#include "linear.h"

namespace {

template <class Real>
struct Number;
template <>
struct Number<float> {
  typedef std::uint32_t bits;
  typedef std::int32_t place;
  static constexpr int kFraction = 23, kExpTerms = 7, kLogTerms = 8;
  static constexpr float kLeast = 1e-6f;  // of a pivot, beside the largest
  static constexpr float kHuge = 1e30f;
  static constexpr float kLowest = -80.0f, kShift = 12582912.0f;  // 1.5 * 2^23
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  static constexpr bits kOne = 0x3F800000u;
};
template <>
struct Number<double> {
  typedef std::uint64_t bits;
  typedef std::int64_t place;
  static constexpr int kFraction = 52, kExpTerms = 13, kLogTerms = 17;
  static constexpr double kLeast = 1e-12;
  static constexpr double kHuge = 1e300;
  static constexpr double kLowest = -700.0, kShift = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  static constexpr bits kOne = 0x3FF0000000000000u;
};

template <class Real>
inline Real larger(Real a, Real b) {
  return a > b ? a : b;
}
template <class Real>
inline Real smaller(Real a, Real b) {
  return a < b ? a : b;
}

// e^x for x <= 0: 2^k e^r with |r| <= log(2) / 2 and the series of e^r. Below kLowest it stays at e^kLowest.
template <class Real>
inline Real exp_of(Real x) {
  typedef Number<Real> Of;
  typedef typename Of::bits Bits;
  x = larger(x, Of::kLowest);
  const Real shifted = x * Real(1.4426950408889634074) + Of::kShift;
  const Real k = shifted - Of::kShift;
  const Real r = (x - k * Of::kLn2High) - k * Of::kLn2Low;
  Real sum = 1;
  for (int term = Of::kExpTerms; term > 0; --term) sum = sum * (r * (Real(1) / Real(term))) + Real(1);
  Bits power;
  __builtin_memcpy(&power, &shifted, sizeof power);
  power = static_cast<Bits>(power << Of::kFraction) + Of::kOne;
  Real scale;
  __builtin_memcpy(&scale, &power, sizeof scale);
  return sum * scale;
}

// log(1 + u) for 0 <= u <= 1: twice the series of the inverse hyperbolic tangent of u / (2 + u).
template <class Real>
inline Real log1p_of(Real u) {
  const Real v = u / (Real(2) + u), square = v * v;
  Real sum = 0;
  for (int term = Number<Real>::kLogTerms - 1; term >= 0; --term) sum = sum * square + Real(1) / Real(2 * term + 1);
  return Real(2) * v * sum;
}

// cost * max(0, 1 - margin)^2; alpha is unbounded.
struct SquaredHinge {
  template <class Real>
  static Real alpha(Real state, Real) { return state; }
  template <class Real>
  static Real loss(Real margin, Real cost) {
    const Real short_of = larger(Real(1) - margin, Real(0));
    return cost * (short_of * short_of);
  }
  template <class Real>
  static Real dual(Real state, Real cost) { return state - state * state * (Real(0.25) / cost); }
  template <class Real>
  static Real take(Real margin, Real state, Real cost, Real norm) {
    const Real twice = Real(2) * cost;  // the step is (margin - 1 + state / twice) / (norm + 1 / twice)
    return larger(state - (twice * (margin - Real(1)) + state) / (twice * norm + Real(1)), Real(0));
  }
  template <class Real>
  static Real state_at(Real margin, Real cost) { return Real(2) * cost * larger(Real(1) - margin, Real(0)); }
  template <class Real>
  static Real curvature(Real margin, Real cost) { return margin < Real(1) ? Real(2) * cost : Real(0); }
};

// cost * max(0, 1 - margin); 0 <= alpha <= cost.
struct Hinge {
  template <class Real>
  static Real alpha(Real state, Real) { return state; }
  template <class Real>
  static Real loss(Real margin, Real cost) { return cost * larger(Real(1) - margin, Real(0)); }
  template <class Real>
  static Real dual(Real state, Real) { return state; }
  template <class Real>
  static Real take(Real margin, Real state, Real cost, Real norm) {
    return smaller(larger(state - (margin - Real(1)) / norm, Real(0)), cost);
  }
};

// cost * log(1 + e^-margin); alpha = cost * sigma(t), the state is t.
struct Logistic {
  template <class Real>
  static Real alpha(Real t, Real cost) {
    const Real e = exp_of(t < 0 ? t : -t);
    return cost * ((t < 0 ? e : Real(1)) / (Real(1) + e));
  }
  template <class Real>
  static Real loss(Real margin, Real cost) {
    return cost * (larger(-margin, Real(0)) + log1p_of(exp_of(margin < 0 ? margin : -margin)));
  }
  template <class Real>
  static Real dual(Real t, Real cost) {  // the entropy of sigma(t)
    const Real u = t < 0 ? t : -t, e = exp_of(u);
    return cost * (log1p_of(e) - u * (e / (Real(1) + e)));
  }
  // The root of t + margin + norm * (cost * sigma(t) - alpha). On the side of 0 where it lies, and turned so that this is
  // the left one, the function is convex: Newton's steps come down to the root from the right and never pass it.
  template <class Real>
  static Real take(Real margin, Real t, Real cost, Real norm) {
    const Real range = norm * cost, fixed = margin - norm * alpha(t, cost);
    const bool left = fixed + Real(0.5) * range >= 0;
    const Real b = left ? fixed : -(fixed + range);
    const Real highest = smaller(-b, Real(0));
    Real u = smaller(larger(left ? t : -t, -b - Real(0.5) * range), highest);
    for (int round = 0; round < 5; ++round) {
      const Real e = exp_of(u), sigma = e / (Real(1) + e);
      u = smaller(u - (u + b + range * sigma) / (Real(1) + range * (sigma * (Real(1) - sigma))), highest);
    }
    u = larger(u, Number<Real>::kLowest);
    return left ? u : -u;
  }
  template <class Real>
  static Real state_at(Real margin, Real) { return larger(-margin, Number<Real>::kLowest); }
  template <class Real>
  static Real curvature(Real margin, Real cost) {
    const Real e = exp_of(margin < 0 ? margin : -margin), one = Real(1) + e;
    return cost * (e / (one * one));
  }
};

}  // namespace
