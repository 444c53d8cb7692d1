// Dual coordinate descent for a block of machines, and for one machine over its Gram matrix. Included once by each level's
// kernel file.
//
// Rows are visited in batches, whose scores are taken together: what an earlier row of the batch changed reaches the later
// ones through their inner products. That is the same descent as row by row, but for rounding.
#pragma once

#include "joint.inc.h"
#include "linear.h"
#include "losses.inc.h"
#include "machine_rows.inc.h"

namespace {

using nary::GramProblem;
using nary::Loss;
using nary::MachineBlock;

constexpr std::int64_t kFlush = 64;  // rows whose losses are added up in single precision

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
