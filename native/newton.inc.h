// Newton's method for the smooth losses: what it asks of the rows. Included once by each level's kernel file.
//
// All passes read the rows in the order of the members; the scores that `slope` leaves in the states are what the other
// passes go by.
#pragma once

#include "descent.inc.h"
#include "linear.h"
#include "losses.inc.h"
#include "machine_rows.inc.h"

namespace {

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

}  // namespace
