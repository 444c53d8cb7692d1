// Machines of few rows, over the Gram matrix of a machine's rows: a row whose dual variable stays costs one look there
// instead of a pass over its features. The hinge with a free intercept moves variables in pairs and asks for few lines of
// the matrix; the others go through all variables in turn and have the whole of it.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gram_rows.h"
#include "kernels.h"
#include "linear.h"
#include "machines.h"
#include "pages.h"
#include "parallel.h"

namespace nary {
namespace {

// Where the classes of machines are.
struct Sides {
  const std::int64_t* starts;
  const std::int32_t* classes;
  const std::int8_t* signs;
};

// By coordinate descent. The memory of one thread, and the machine it works at.
template <class Real>
class EpochFit {
 public:
  EpochFit(const LinearTask<Real>& task, const RowsByClass<Real>& by_class) : task_(task), rows_(task, by_class) {}

  // Fits one machine; its weights are left in `weights`.
  void run(std::int64_t machine, const Sides& sides, const LinearFit<Real>& fit, Real* weights) {
    const std::int64_t begin = sides.starts[machine];
    rows_.gather(machine, sides.classes + begin, sides.signs + begin, sides.starts[machine + 1] - begin);
    double gap = 0;
    std::int64_t epoch = 0;
    chosen_.clear(), used_.clear();
    if (rows_.two_sides()) {
      start();
      for (epoch = 1;; ++epoch) {
        shuffle(order_, task_.seed, epoch);
        active_kernels<Real>().descend(problem_);
        gap = gap_now();
        if (gap <= task_.tol || epoch >= task_.max_epochs) break;
        if (task_.free_intercept) problem_.offset += intercept();
      }
      for (std::int64_t i = 0; i < problem_.n; ++i) {
        if (coefficients_[at(i)] != 0) chosen_.push_back(i), used_.push_back(coefficients_[at(i)]);
      }
    }
    rows_.sum(chosen_, used_, weights);
    fit.intercepts[machine] = rows_.two_sides() ? problem_.offset + intercept() : Real{0};
    fit.gaps[machine] = gap, fit.epochs[machine] = static_cast<std::int32_t>(epoch);
  }

 private:
  void start() {
    const std::int64_t n = rows_.n(), stride = round_up(n, kMachines);
    gram_.resize(at(std::max(size_of(gram_), n * stride)));
    const Real square = task_.constant * task_.constant;
    rows_.matrix(square, stride, gram_.data());
    order_.resize(at(n)), coefficients_.assign(at(n), Real{0});
    states_.assign(at(n), cold_state<Real>(task_.loss)), scores_.assign(at(stride), Real{0});
    const double mean = rows_.mean_square() + static_cast<double>(square);
    problem_ = {gram_.data(), n, stride, task_.loss, order_.data(), rows_.signs().data(), rows_.costs().data(),
                mean > 0 ? static_cast<Real>(1e-6 * mean) : Real{1}, Real{0}, states_.data(), scores_.data(),
                coefficients_.data(), 0, 0, 0};
  }

  // The constant feature's part of the scores.
  Real intercept() const {
    double sum = 0;
    for (const Real c : coefficients_) sum += static_cast<double>(c);
    return static_cast<Real>(static_cast<double>(task_.constant * task_.constant) * sum);
  }

  double gap_now() const {
    const double half = 0.5 * problem_.square, primal = problem_.loss_sum + half;
    if (!(primal > 0)) return 0;
    const double gap = std::max(0.0, (primal - (problem_.dual_sum - half)) / primal);
    if (!task_.free_intercept || gap > task_.tol) return gap;
    const auto moved = static_cast<double>(intercept()), constant = static_cast<double>(task_.constant);
    return std::max(gap, 0.5 * (moved / constant) * (moved / constant) / primal);
  }

  const LinearTask<Real>& task_;
  MachineRows<Real> rows_;
  LargeVector<Real> gram_, states_, scores_, coefficients_;
  std::vector<Real> used_;
  std::vector<std::int64_t> order_, chosen_;
  GramProblem<Real> problem_{};
};

// By pairs. Likewise.
template <class Real>
class PairFit {
 public:
  PairFit(const LinearTask<Real>& task, const RowsByClass<Real>& by_class) : task_(task), rows_(task, by_class) {}

  void run(std::int64_t machine, const Sides& sides, const LinearFit<Real>& fit, Real* weights) {
    const std::int64_t begin = sides.starts[machine];
    rows_.gather(machine, sides.classes + begin, sides.signs + begin, sides.starts[machine + 1] - begin);
    chosen_.clear(), used_.clear(), problem_ = {};
    if (rows_.two_sides()) {
      start();
      for (std::int64_t i = active_kernels<Real>().smo(problem_); i >= 0; i = active_kernels<Real>().smo(problem_)) {
        make_line(i);
      }
      for (const std::int64_t i : chosen_) used_.push_back(problem_.scale * coefficients_[at(i)]);
    }
    rows_.sum(chosen_, used_, weights);
    fit.intercepts[machine] = problem_.offset, fit.gaps[machine] = problem_.gap;
    const std::int64_t n = std::max<std::int64_t>(1, rows_.n());
    fit.epochs[machine] = static_cast<std::int32_t>((problem_.n_steps + n - 1) / n);
  }

 private:
  void start() {
    const std::int64_t n = rows_.n(), lanes = round_up(n, kMachines);
    for (auto* items : {&norms_, &low_, &high_, &coefficients_, &wishes_}) items->assign(at(lanes), Real{0});
    lines_.assign(at(n), nullptr);
    std::int64_t first = -1;
    for (std::int64_t i = 0; i < n; ++i) {
      const Real sign = rows_.signs()[at(i)], cost = rows_.costs()[at(i)], norm = rows_.squares()[at(i)];
      norms_[at(i)] = norm, wishes_[at(i)] = sign;
      high_[at(i)] = sign > 0 ? cost : Real{0}, low_[at(i)] = sign > 0 ? Real{0} : -cost;
      if (sign > 0 && (first < 0 || norm < norms_[at(first)])) first = i;  // a row near the middle may be near the others
    }
    const double mean = rows_.mean_square();
    const auto least = static_cast<Real>((sizeof(Real) == 4 ? 1e-6 : 1e-12) * (mean > 0 ? mean : 1));
    problem_ = {lanes, lines_.data(), norms_.data(), low_.data(), high_.data(), coefficients_.data(), wishes_.data(),
                least, task_.tol, task_.max_epochs * n, 0, first, -1, Real{1}, Real{1}, Real{0}, 0};
  }

  void make_line(std::int64_t i) {
    const std::size_t k = chosen_.size();
    if (k == store_.size()) store_.emplace_back();
    LargeVector<Real>& line = store_[k];
    if (size_of(line) < problem_.lanes) line.resize(at(problem_.lanes));
    rows_.line(i, 0, line.data());
    std::fill(line.begin() + rows_.n(), line.begin() + problem_.lanes, Real{0});
    lines_[at(i)] = line.data();
    chosen_.push_back(i);
  }

  const LinearTask<Real>& task_;
  MachineRows<Real> rows_;
  LargeVector<Real> norms_, low_, high_, coefficients_, wishes_;
  std::vector<LargeVector<Real>> store_;  // the lines that were made
  std::vector<const Real*> lines_;          // by row
  std::vector<std::int64_t> chosen_;
  std::vector<Real> used_;
  SmoProblem<Real> problem_{};
};

// Neighbouring machines are written together, a line of memory at a time.
template <template <class> class Fit, class Real>
void fit_each(const LinearTask<Real>& task, const RowsByClass<Real>& by_class, const Sides& sides, int n_threads,
              const LinearFit<Real>& fit) {
  const std::int64_t d = task.rows.n_features;
  std::vector<Fit<Real>> fits;
  for (int thread = 0; thread < n_threads; ++thread) fits.emplace_back(task, by_class);
  std::vector<LargeVector<Real>> blocks(at(n_threads));
  parallel_for((task.n_machines + kMachines - 1) / kMachines, n_threads, [&](int thread, std::int64_t item) {
    const std::int64_t first = item * kMachines, n = std::min(kMachines, task.n_machines - first);
    LargeVector<Real>& block = blocks[at(thread)];  // (kMachines, features)
    block.resize(at(d * kMachines));
    for (std::int64_t k = 0; k < n; ++k) fits[at(thread)].run(first + k, sides, fit, block.data() + k * d);
    for (std::int64_t f = 0; f < d; ++f) {
      for (std::int64_t k = 0; k < n; ++k) fit.weights[f * fit.stride + first + k] = block[at(k * d + f)];
    }
  });
}

}  // namespace

template <class Real>
void fit_grams(const LinearTask<Real>& task, const std::int64_t* starts, const std::int32_t* classes,
               const std::int8_t* signs, int n_threads, const LinearFit<Real>& fit) {
  const bool by_pairs = task.loss == Loss::hinge && task.free_intercept;
  std::vector<std::int64_t> n_uses(at(task.n_groups));
  for (std::int64_t e = 0; by_pairs && e < starts[task.n_machines]; ++e) ++n_uses[at(classes[e])];
  const RowsByClass<Real> by_class(task, n_uses, n_threads);
  by_pairs ? fit_each<PairFit>(task, by_class, {starts, classes, signs}, n_threads, fit)
           : fit_each<EpochFit>(task, by_class, {starts, classes, signs}, n_threads, fit);
}

template void fit_grams(const LinearTask<float>&, const std::int64_t*, const std::int32_t*, const std::int8_t*, int,
                        const LinearFit<float>&);
template void fit_grams(const LinearTask<double>&, const std::int64_t*, const std::int32_t*, const std::int8_t*, int,
                        const LinearFit<double>&);

}  // namespace nary
