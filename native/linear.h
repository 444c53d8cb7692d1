// What linear machines are fitted from, as kernels and drivers see it. A machine is a lane: 16 of them fill a vector.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nary {

constexpr std::int64_t kRowBatch = 4;       // rows whose scores are taken together
constexpr std::int64_t kMachines = 16;   // blocks of machines are so many lanes wide, or a multiple

enum class Loss : int { squared_hinge, hinge, logistic, crammer_singer };

// Rows of numbers: dense, or in CSR form where `dense` is null.
template <class Real>
struct LinearRows {
  std::int64_t n_rows;
  std::int64_t n_features;
  const Real* dense;
  const std::int64_t* starts;
  const std::int32_t* features;
  const Real* values;
};

// Machines that are fitted side by side, and the rows that take part in them. The dual variable of a row and a machine is
// kept as its `state`: itself, or its logit for the logistic loss.
template <class Real>
struct MachineBlock {
  LinearRows<Real> rows;
  Loss loss;
  std::int64_t width;              // lanes
  const std::int64_t* members;     // the rows that take part
  const std::int64_t* order;       // in which they are visited: places in `members`
  std::int64_t n_members;
  const Real* norms;               // of each row: its square, the constant feature's included, above 0
  const Real* costs;               // C times the weight of each row
  const std::int32_t* groups;      // the class of each row
  const std::int8_t* signs;        // (groups, width): the side of a class in a machine, 0: takes no part
  const Real* positive_weights;    // by lane: of rows on either side
  const Real* negative_weights;
  const Real* offsets;             // by lane: added to every score
  Real constant;                   // the constant feature, which gives the intercept; 0: none
  const std::int64_t* columns;     // of machines that are fitted jointly: where each column's lanes begin, and the end
  std::int64_t n_columns;
  Real* weights;                   // (features + 1, width): the last row is the constant feature's
  Real* states;                    // (members, width)
  double* losses;                  // by lane, or by column: the sum over the rows of a sweep of cost * loss
  double* duals;                   // likewise of the dual objective, but for the weights' part
  Real* scratch;                   // room for kScratchRows rows of `width`
};

constexpr std::int64_t kScratchRows = 2 * kRowBatch + 4;

// The Gram matrix of one machine's rows, solved in place: scores are kept, weights are not.
template <class Real>
struct GramProblem {
  const Real* gram;      // (n, stride), the constant feature included
  std::int64_t n;
  std::int64_t stride;
  Loss loss;
  const std::int64_t* order;
  const Real* signs;
  const Real* costs;
  Real least_norm;       // what stands for smaller diagonal elements
  Real offset;
  Real* states;
  Real* scores;          // (stride): the machine's score of each row less the offset
  Real* coefficients;    // sign * alpha, and the sums, as `descend` leaves them
  double loss_sum;
  double dual_sum;
  double square;         // of the weights, the constant feature's included
};

// One machine of the hinge with a free intercept, solved by pairs of rows. Arrays have an element for each row and go on to
// whole vectors of kMachines, with bounds of 0.
template <class Real>
struct SmoProblem {
  std::int64_t lanes;
  const Real* const* lines;  // of the Gram matrix, each `lanes` long; null: not made yet
  const Real* norms;         // its diagonal
  const Real* low;           // bounds of the coefficients
  const Real* high;
  Real* coefficients;        // sign * alpha
  Real* wishes;              // the intercept that would put a row on its margin
  Real least;                // what stands for a smaller curvature
  double tol;
  std::int64_t max_steps;
  std::int64_t n_steps;
  std::int64_t first;        // the pair in hand; -1: not chosen yet
  std::int64_t second;
  Real look_at;              // how near each other the wishes of a pair must be for the gap to be worth a look
  Real scale;                // of the weights, and the intercept: where the primal objective is as low as `gap` says
  Real offset;
  double gap;
};

template <class Real>
struct LinearKernels {
  // One pass over the members in their order: each row's dual variables are taken to their optimum, the others fixed.
  void (*sweep)(const MachineBlock<Real>& block);
  // weights += what the states of all members stand for
  void (*gather)(const MachineBlock<Real>& block);
  // The losses of all members under fixed weights, of lanes (or columns) first..last-1.
  void (*measure)(const MachineBlock<Real>& block, std::int64_t first, std::int64_t last);
  // For the smooth losses, with the scores of the members kept in their states: gradient += that of the losses, together
  // with the sums of the losses, of the dual objective at that point, and of the second derivatives, by lane;
  void (*slope)(const MachineBlock<Real>& block, Real* gradient, double* curvatures);
  // product += the losses' Hessian times a direction; along (members, width) = the scores' change along it; and, at a
  // length for each lane, slopes and bends += the first and second derivative of the losses along it.
  void (*bend)(const MachineBlock<Real>& block, const Real* direction, Real* product);
  void (*trace)(const MachineBlock<Real>& block, const Real* direction, Real* along);
  void (*probe)(const MachineBlock<Real>& block, const Real* along, const Real* lengths, double* slopes, double* bends);
  // b becomes the solution of (penalty + sum over some dense rows of bend * x x^T) z = b, the constant feature last and
  // without penalty where it is free; `matrix` has room for (n_features + 1) lines of that many, rounded up to kMachines.
  void (*solve)(const LinearRows<Real>& rows, const std::int64_t* members, const Real* bends, std::int64_t n,
                Real constant, bool free_intercept, Real* matrix, Real* b);
  // target += the outer products of rows and changes (n_rows, width), for up to kRowBatch dense rows
  void (*dense_update)(const Real* const* x, std::int64_t n_rows, std::int64_t n_features, const Real* changes,
                       std::int64_t width, Real* target);
  void (*descend)(GramProblem<Real>& problem);
  // scores[r, lane] = start[lane] + sum over the features of x_r * weights[feature, lane], for up to kRowBatch dense rows
  void (*dense_scores)(const Real* const* x, std::int64_t n_rows, std::int64_t n_features, const Real* weights,
                       std::int64_t stride, std::int64_t lanes, const Real* start, Real* scores,
                       std::int64_t scores_stride);
  // The same for a row in CSR form; the lines of the features `ahead` are fetched meanwhile.
  void (*sparse_scores)(const Real* values, const std::int32_t* features, std::int64_t n, const Real* weights,
                        std::int64_t stride, std::int64_t lanes, const Real* start, const std::int32_t* ahead,
                        std::int64_t n_ahead, Real* scores);
  Real (*square)(const Real* x, std::int64_t n);
  // Goes on until the line of some row is needed, which it returns, or till the end: -1.
  std::int64_t (*smo)(SmoProblem<Real>& problem);
  // out[k] = x . rows[k] of n rows, each filled up with zeros to `stride`, a multiple of kMachines
  void (*multiply)(const Real* x, const Real* rows, std::int64_t n, std::int64_t stride, Real* out);
  // sum = sum over n dense rows of coefficient * x
  void (*combine)(const Real* const* x, const Real* coefficients, std::int64_t n, std::int64_t n_features, Real* sum);
};

// What a set of machines is fitted on and how. A row of group -1 takes no part in any.
template <class Real>
struct LinearTask {
  LinearRows<Real> rows;
  Loss loss;
  const std::int32_t* groups;
  std::int64_t n_groups;
  const Real* costs;
  Real constant;                  // the constant feature
  bool free_intercept;            // the intercept is free of penalty: the constant feature only helps to find it
  double tol;
  std::int64_t max_epochs;
  std::uint64_t seed;
  std::int64_t n_machines;
  const std::int64_t* columns;    // of machines that are fitted jointly
  std::int64_t n_columns;
  const Real* positive_weights;   // by machine
  const Real* negative_weights;
};

template <class Real>
struct LinearFit {
  Real* weights;                  // (features, stride): machine m is column m
  std::int64_t stride;
  Real* intercepts;
  double* gaps;                   // relative to the primal objective
  std::int32_t* epochs;
  Real* states;                   // (rows, stride): where to start from, and what was reached; null: from nothing
};

// Dual coordinate descent over blocks of machines, each row read once for a block; signs is (groups, machines).
template <class Real>
void fit_blocks(const LinearTask<Real>& task, const std::int8_t* signs, int n_threads, const LinearFit<Real>& fit);

// The same problems by Newton's method, for the smooth losses; `warm`: from the weights and intercepts that `fit` holds.
template <class Real>
void fit_newton(const LinearTask<Real>& task, const std::int8_t* signs, int n_threads, bool warm,
                const LinearFit<Real>& fit);

// Machines of few rows, each over its rows' Gram matrix. Machine m's classes are classes[starts[m]] ..., on the sides signs.
template <class Real>
void fit_grams(const LinearTask<Real>& task, const std::int64_t* starts, const std::int32_t* classes,
               const std::int8_t* signs, int n_threads, const LinearFit<Real>& fit);

}  // namespace nary
