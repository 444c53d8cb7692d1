// Machines of few rows: the Gram matrix of a machine's rows is made once, and the descent runs in it. A row whose dual
// variable stays costs one look there instead of a pass over its features.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels.h"
#include "linear.h"
#include "machines.h"
#include "parallel.h"

namespace nary {
namespace {

// The rows of each class together; dense ones also feature by feature, as a block of weights lies in memory.
template <class Real>
class RowsByClass {
 public:
  RowsByClass(const LinearTask<Real>& task, int n_threads) : task_(task), starts_(at(task.n_groups + 1)) {
    for (std::int64_t i = 0; i < task.rows.n_rows; ++i) {
      if (task.groups[i] >= 0) ++starts_[at(task.groups[i] + 1)];
    }
    for (std::size_t g = 1; g < starts_.size(); ++g) starts_[g] += starts_[g - 1];
    rows_.resize(at(starts_.back()));
    std::vector<std::int64_t> next = starts_;
    for (std::int64_t i = 0; i < task.rows.n_rows; ++i) {
      if (task.groups[i] >= 0) rows_[at(next[at(task.groups[i])]++)] = i;
    }
    if (task.rows.dense) turn(n_threads);
  }

  std::int64_t size(std::int64_t group) const { return starts_[at(group + 1)] - starts_[at(group)]; }
  std::int64_t row(std::int64_t group, std::int64_t k) const { return rows_[at(starts_[at(group)] + k)]; }
  std::int64_t padded(std::int64_t group) const { return round_up(size(group), kMachines); }
  const Real* turned(std::int64_t group) const { return turned_.data() + places_[at(group)]; }

 private:
  void turn(int n_threads) {
    const std::int64_t d = task_.rows.n_features;
    places_.resize(at(task_.n_groups + 1));
    for (std::int64_t g = 0; g < task_.n_groups; ++g) places_[at(g + 1)] = places_[at(g)] + d * padded(g);
    turned_.resize(at(places_.back()));
    parallel_for(task_.n_groups, n_threads, [&](int, std::int64_t g) {
      const std::int64_t width = padded(g);
      for (std::int64_t k = 0; k < size(g); ++k) {
        const Real* x = task_.rows.dense + row(g, k) * d;
        for (std::int64_t f = 0; f < d; ++f) turned_[at(places_[at(g)] + f * width + k)] = x[f];
      }
    });
  }

  const LinearTask<Real>& task_;
  std::vector<std::int64_t> starts_, rows_, places_;
  std::vector<Real> turned_;
};

// The memory of one thread, and the machine it works at.
template <class Real>
class GramFit {
 public:
  GramFit(const LinearTask<Real>& task, const RowsByClass<Real>& by_class, const LinearFit<Real>& fit)
      : task_(task), by_class_(by_class), fit_(fit), weights_(at(task.rows.n_features)) {
    if (!task.rows.dense) spread_.assign(at(task.rows.n_features), Real{0});
  }

  // Fits one machine; its weights are left in weights().
  void run(std::int64_t machine, const std::int32_t* classes, const std::int8_t* sides, std::int64_t n_classes) {
    gather_rows(machine, classes, sides, n_classes);
    std::fill(weights_.begin(), weights_.end(), Real{0});
    double gap = 0;
    std::int64_t epoch = 0;
    const bool two_sides = std::find(signs_.begin(), signs_.end(), Real{1}) != signs_.end() &&
                           std::find(signs_.begin(), signs_.end(), Real{-1}) != signs_.end();
    if (two_sides) {
      make_gram(classes, n_classes);
      start(machine);
      for (epoch = 1;; ++epoch) {
        shuffle(order_, task_.seed, epoch);
        active_kernels<Real>().descend(problem_);
        gap = gap_now();
        if (gap <= task_.tol || epoch >= task_.max_epochs) break;
        if (task_.free_intercept) move_offset();
      }
      add_up();
    }
    fit_.intercepts[machine] = two_sides ? problem_.offset + intercept() : Real{0};
    fit_.gaps[machine] = gap, fit_.epochs[machine] = static_cast<std::int32_t>(epoch);
  }

  const std::vector<Real>& weights() const { return weights_; }

 private:
  void gather_rows(std::int64_t machine, const std::int32_t* classes, const std::int8_t* sides, std::int64_t n_classes) {
    rows_.clear(), signs_.clear(), costs_.clear();
    for (std::int64_t c = 0; c < n_classes; ++c) {
      const Real weight = (sides[c] > 0 ? task_.positive_weights : task_.negative_weights)[machine];
      for (std::int64_t k = 0; k < by_class_.size(classes[c]); ++k) {
        rows_.push_back(by_class_.row(classes[c], k));
        signs_.push_back(static_cast<Real>(sides[c]));
        costs_.push_back(task_.costs[rows_.back()] * weight);
      }
    }
    order_.resize(rows_.size());
  }

  // Columns of a class are written whole vectors wide; what they spill is overwritten by the next class, or never read.
  void make_gram(const std::int32_t* classes, std::int64_t n_classes) {
    n_ = size_of(rows_), stride_ = round_up(n_, kMachines) + kMachines;
    gram_.resize(at(n_ * stride_));
    if (!task_.rows.dense) return make_sparse_gram();
    const std::int64_t d = task_.rows.n_features;
    const Real square = task_.constant * task_.constant;
    for (std::int64_t first = 0; first < n_; first += kRowBatch) {
      const std::int64_t batch = std::min(kRowBatch, n_ - first);
      const Real* x[kRowBatch];
      for (std::int64_t r = 0; r < batch; ++r) x[r] = task_.rows.dense + rows_[at(first + r)] * d;
      std::int64_t column = 0;
      for (std::int64_t c = 0; c < n_classes; column += by_class_.size(classes[c++])) {
        const std::int64_t width = by_class_.padded(classes[c]);
        if (at(width) > start_.size()) start_.resize(at(width));
        std::fill(start_.begin(), start_.end(), square);
        active_kernels<Real>().dense_scores(x, batch, d, by_class_.turned(classes[c]), width, width, start_.data(),
                                            gram_.data() + first * stride_ + column, stride_);
      }
    }
  }

  void make_sparse_gram() {
    const LinearRows<Real>& rows = task_.rows;
    for (std::int64_t i = 0; i < n_; ++i) {
      const std::int64_t begin = rows.starts[rows_[at(i)]], end = rows.starts[rows_[at(i)] + 1];
      for (std::int64_t e = begin; e < end; ++e) spread_[at(rows.features[e])] = rows.values[e];
      for (std::int64_t j = 0; j <= i; ++j) {
        Real sum = task_.constant * task_.constant;
        for (std::int64_t e = rows.starts[rows_[at(j)]]; e < rows.starts[rows_[at(j)] + 1]; ++e) {
          sum += spread_[at(rows.features[e])] * rows.values[e];
        }
        gram_[at(i * stride_ + j)] = gram_[at(j * stride_ + i)] = sum;
      }
      for (std::int64_t e = begin; e < end; ++e) spread_[at(rows.features[e])] = 0;
    }
  }

  void start(std::int64_t machine) {
    states_.assign(at(n_), cold_state<Real>(task_.loss)), scores_.assign(at(stride_), Real{0});
    double trace = 0;
    for (std::int64_t i = 0; i < n_; ++i) trace += static_cast<double>(gram_[at(i * stride_ + i)]);
    problem_ = {gram_.data(), n_, stride_, task_.loss, order_.data(), signs_.data(), costs_.data(),
                trace > 0 ? static_cast<Real>(1e-6 * trace / static_cast<double>(n_)) : Real{1}, Real{0},
                states_.data(), scores_.data(), 0, 0, 0};
    static_cast<void>(machine);
  }

  // The constant feature's part of the scores.
  Real intercept() const {
    double sum = 0;
    for (std::int64_t i = 0; i < n_; ++i) sum += static_cast<double>(coefficient(i));
    return static_cast<Real>(static_cast<double>(task_.constant * task_.constant) * sum);
  }

  Real coefficient(std::int64_t i) const {
    return signs_[at(i)] * active_kernels<Real>().alpha(task_.loss, states_[at(i)], costs_[at(i)]);
  }

  double gap_now() const {
    const double half = 0.5 * problem_.square, primal = problem_.loss_sum + half;
    if (!(primal > 0)) return 0;
    const double gap = std::max(0.0, (primal - (problem_.dual_sum - half)) / primal);
    if (!task_.free_intercept || gap > task_.tol) return gap;
    const auto moved = static_cast<double>(intercept()), constant = static_cast<double>(task_.constant);
    return std::max(gap, 0.5 * (moved / constant) * (moved / constant) / primal);
  }

  void move_offset() { problem_.offset += intercept(); }

  void add_up() {
    const LinearRows<Real>& rows = task_.rows;
    for (std::int64_t i = 0; i < n_; ++i) {
      const Real c = coefficient(i);
      if (c == 0) continue;
      if (rows.dense) {
        const Real* x = rows.dense + rows_[at(i)] * rows.n_features;
        for (std::int64_t f = 0; f < rows.n_features; ++f) weights_[at(f)] += c * x[f];
      } else {
        for (std::int64_t e = rows.starts[rows_[at(i)]]; e < rows.starts[rows_[at(i)] + 1]; ++e) {
          weights_[at(rows.features[e])] += c * rows.values[e];
        }
      }
    }
  }

  const LinearTask<Real>& task_;
  const RowsByClass<Real>& by_class_;
  const LinearFit<Real>& fit_;
  std::vector<Real> weights_, spread_, gram_, start_, signs_, costs_, states_, scores_;
  std::vector<std::int64_t> rows_, order_;
  std::int64_t n_ = 0, stride_ = 0;
  GramProblem<Real> problem_{};
};

}  // namespace

template <class Real>
void fit_grams(const LinearTask<Real>& task, const std::int64_t* starts, const std::int32_t* classes,
               const std::int8_t* signs, int n_threads, const LinearFit<Real>& fit) {
  const RowsByClass<Real> by_class(task, n_threads);
  const std::int64_t d = task.rows.n_features;
  std::vector<GramFit<Real>> fits;
  for (int thread = 0; thread < n_threads; ++thread) fits.emplace_back(task, by_class, fit);
  std::vector<std::vector<Real>> sides(at(n_threads));
  // Neighbouring machines are written together, a line of memory at a time.
  parallel_for((task.n_machines + kMachines - 1) / kMachines, n_threads, [&](int thread, std::int64_t item) {
    const std::int64_t first = item * kMachines, n = std::min(kMachines, task.n_machines - first);
    std::vector<Real>& lines = sides[at(thread)];
    lines.resize(at(d * kMachines));
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t begin = starts[first + k];
      fits[at(thread)].run(first + k, classes + begin, signs + begin, starts[first + k + 1] - begin);
      const std::vector<Real>& weights = fits[at(thread)].weights();
      for (std::int64_t f = 0; f < d; ++f) lines[at(f * kMachines + k)] = weights[at(f)];
    }
    for (std::int64_t f = 0; f < d; ++f) {
      std::copy_n(lines.data() + f * kMachines, n, fit.weights + f * fit.stride + first);
    }
  });
}

template void fit_grams(const LinearTask<float>&, const std::int64_t*, const std::int32_t*, const std::int8_t*, int,
                        const LinearFit<float>&);
template void fit_grams(const LinearTask<double>&, const std::int64_t*, const std::int32_t*, const std::int8_t*, int,
                        const LinearFit<double>&);

}  // namespace nary
