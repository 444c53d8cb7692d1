// Dual coordinate descent: pass after pass over the rows, every machine of a block at a time, until each has converged.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "block.h"
#include "kernels.h"
#include "linear.h"
#include "machines.h"
#include "parallel.h"

namespace nary {
namespace {

constexpr double kHope = 2;  // an estimated gap so many times too large is worth a measurement

template <class Real>
class Descent : private Block<Real> {
  typedef Block<Real> Base;

 public:
  Descent(const LinearTask<Real>& task, const std::int8_t* signs, const std::vector<Real>& norms,
          const LinearFit<Real>& fit, const Span& span)
      : Base(task, signs, norms, fit, span, true) {
    if (fit.states) start_warm();
  }

  void run() {
    for (epoch_ = 1; epoch_ <= task_.max_epochs && n_left() > 0; ++epoch_) {
      std::fill(losses_.begin(), losses_.end(), 0.0);
      std::fill(duals_.begin(), duals_.end(), 0.0);
      shuffle(order_, task_.seed, epoch_);
      active_kernels<Real>().sweep(this->block());
      stop_converged(epoch_ == task_.max_epochs);
      if (task_.free_intercept) move_offsets();
      this->narrow();
    }
    this->write_out();
  }

 private:
  using Base::task_;
  using Base::fit_;
  using Base::width_;
  using Base::lanes_;
  using Base::members_;
  using Base::order_;
  using Base::weights_;
  using Base::states_;
  using Base::offsets_;
  using Base::losses_;
  using Base::duals_;
  using Base::done_;
  using Base::n_units;
  using Base::n_left;
  using Base::first_lane;
  using Base::last_lane;
  using Base::constant_weight;

  void start_warm() {
    for (std::size_t k = 0; k < members_.size(); ++k) {
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        states_[k * at(width_) + lane] = fit_.states[members_[k] * fit_.stride + lanes_[lane]];
      }
    }
    for (std::size_t k = 0; k < order_.size(); ++k) order_[k] = static_cast<std::int64_t>(k);
    active_kernels<Real>().gather(this->block());
    if (!task_.free_intercept) return;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      offsets_[lane] = fit_.intercepts[lanes_[lane]] - task_.constant * constant_weight(lane);
    }
  }

  // Rows were met under older weights in a sweep, which is more than they lose now, but costs nothing: only machines that
  // seem to have converged are measured.
  void stop_converged(bool last_epoch) {
    const std::vector<double> half = half_penalties();
    const auto gap = [&](std::int64_t unit) {
      const double primal = losses_[at(unit)] + half[at(unit)];
      if (std::isnan(primal)) return std::numeric_limits<double>::infinity();
      if (primal <= 0) return 0.0;
      const auto [balance, imbalance] = task_.free_intercept ? balances(unit) : std::pair<double, double>{0, 0};
      return (std::max(0.0, primal - (duals_[at(unit)] + balance - half[at(unit)])) + imbalance) / primal;
    };
    for (std::int64_t unit = 0; unit < n_units(); ++unit) {
      if (done_[at(unit)] || !(last_epoch || gap(unit) <= kHope * task_.tol)) continue;
      std::int64_t last = unit + 1;  // neighbours are measured together
      while (last < n_units() && !done_[at(last)] && (last_epoch || gap(last) <= kHope * task_.tol)) ++last;
      std::fill(losses_.begin() + unit, losses_.begin() + last, 0.0);
      active_kernels<Real>().measure(this->block(), unit, last);
      for (; unit < last; ++unit) {
        if (last_epoch || gap(unit) <= task_.tol) this->finish(unit, gap(unit), epoch_);
      }
    }
  }

  // Half the squared weights of each unit; a free intercept's are no part of the objective.
  std::vector<double> half_penalties() const {
    const std::vector<double> lanes = this->half_squares(weights_, task_.rows.n_features + !task_.free_intercept);
    std::vector<double> units(at(n_units()));
    for (std::int64_t unit = 0; unit < n_units(); ++unit) {
      for (std::int64_t lane = first_lane(unit); lane < last_lane(unit); ++lane) units[at(unit)] += lanes[at(lane)];
    }
    return units;
  }

  // With a free intercept dual variables must balance. What the sweep took off the dual objective for the offsets is given
  // back, and the bound is off by no more than the imbalance times the intercept's error, taken for about its own size.
  std::pair<double, double> balances(std::int64_t unit) const {
    double balance = 0, imbalance = 0;
    for (std::int64_t lane = first_lane(unit); lane < last_lane(unit); ++lane) {
      const auto constant = static_cast<double>(task_.constant), offset = static_cast<double>(offsets_[at(lane)]);
      const double sum = static_cast<double>(constant_weight(at(lane))) / constant;
      balance += sum * offset;
      imbalance += std::abs(sum) * (1 + std::abs(offset + constant * constant * sum));
    }
    return {balance, imbalance};
  }

  // The method of multipliers: the penalty on the intercept's distance from its last place moves along with it.
  void move_offsets() {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) offsets_[lane] += task_.constant * constant_weight(lane);
  }

  std::int64_t epoch_ = 0;
};

}  // namespace

template <class Real>
void fit_blocks(const LinearTask<Real>& task, const std::int8_t* signs, int n_threads, const LinearFit<Real>& fit) {
  const std::vector<Span> spans = cut(task);
  const std::vector<Real> norms = row_norms(task, n_threads);
  parallel_for(size_of(spans), n_threads, [&](int, std::int64_t item) {
    Descent<Real>(task, signs, norms, fit, spans[at(item)]).run();
  });
}

template void fit_blocks(const LinearTask<float>&, const std::int8_t*, int, const LinearFit<float>&);
template void fit_blocks(const LinearTask<double>&, const std::int8_t*, int, const LinearFit<double>&);

}  // namespace nary
