// Newton's method for the smooth losses where rows are many and features few: passes over the rows are as in the descent, but
// their number does not grow with C. Each step is found by conjugate gradients, preconditioned by the Gram matrix of all
// rows, which differs from a machine's Hessian mostly by a factor: one set of factorisations serves all machines.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "block.h"
#include "kernels.h"
#include "linear.h"
#include "machines.h"
#include "parallel.h"

namespace nary {
namespace {

constexpr std::int64_t kProducts = 8;     // of conjugate gradients in a step; after every kEase steps twice as many
constexpr double kForcing = 0.2;         // by which they lower the residual, at least
constexpr int kMostProbes = 12;          // of a line search
constexpr double kFlat = 0.05;           // part of the first slope at which it ends
constexpr std::int64_t kEase = 8;         // steps
constexpr int kPatience = 3;             // steps without progress, for want of precision, after which a machine stops
constexpr int kFactors = 12;             // factorisations, each for half of the curvature of the one before
constexpr std::int64_t kMostFactored = 1024;  // features up to which there are any; beyond, the diagonal has to do

template <class Real>
constexpr double kPrecision = sizeof(Real) == 4 ? 1e-7 : 1e-15;  // relative, of an objective
template <class Real>
constexpr double kRounding = sizeof(Real) == 4 ? 1e-5 : 1e-13;   // likewise, of sums over many rows

// sum over rows of cost x x^T, the constant feature included, and the Cholesky factors of penalty + 2^-k times it.
template <class Real>
class Preconditioner {
 public:
  Preconditioner(const LinearTask<Real>& task, int n_threads)
      : n_(task.rows.n_features + 1), penalised_(task.free_intercept ? n_ - 1 : n_) {
    factored_ = task.rows.dense && n_ <= kMostFactored && task.rows.n_rows >= n_;
    for (std::int64_t i = 0; i < task.rows.n_rows; ++i) {
      if (task.groups[i] >= 0) total_ += static_cast<double>(task.costs[i]);
    }
    factored_ ? add_up(task, n_threads) : add_up_diagonal(task);
    if (!factored_) return;
    factors_.resize(kFactors);
    parallel_for(kFactors, n_threads, [&](int, std::int64_t k) { factorise(k); });
  }

  // Which factor stands for machines whose losses' second derivatives add up to `curvature`.
  int level(double curvature) const {
    if (!(curvature > 0)) return kFactors - 1;
    return std::clamp(-std::ilogb(curvature / (2 * total_)), 0, kFactors - 1);
  }

  // z = P^-1 r for the lanes of each level: (n, width) both.
  void solve(const std::vector<Real>& r, const std::vector<int>& levels, std::int64_t width, std::vector<Real>& z) const {
    if (!factored_) return divide(r, levels, width, z);
    std::vector<Real> solved(r.size());
    for (int k = 0; k < kFactors; ++k) {
      if (std::find(levels.begin(), levels.end(), k) == levels.end()) continue;
      solved = r;
      substitute(factors_[static_cast<std::size_t>(k)], width, solved.data());
      for (std::int64_t f = 0; f < n_; ++f) {
        for (std::size_t lane = 0; lane < levels.size(); ++lane) {
          if (levels[lane] == k) z[at(f * width) + lane] = solved[at(f * width) + lane];
        }
      }
    }
  }

 private:
  static double scale(std::int64_t level) { return std::ldexp(2.0, -static_cast<int>(level)); }

  void add_up(const LinearTask<Real>& task, int n_threads) {
    const std::int64_t d = n_ - 1, width = round_up(n_, kMachines);
    gram_.assign(at(n_ * width), Real{0});
    std::vector<std::int64_t> members;
    for (std::int64_t i = 0; i < task.rows.n_rows; ++i) {
      if (task.groups[i] >= 0) members.push_back(i);
    }
    // A panel is some columns of the matrix; row r of a batch changes them by its cost times its features there.
    const std::int64_t panels = width / kMachines;
    parallel_for(panels, n_threads, [&](int, std::int64_t panel) {
      std::vector<Real> lines(at(d * kMachines), Real{0});
      std::array<Real, kRowBatch * kMachines> changes{};
      std::array<Real, kMachines> constant{};
      for (std::int64_t first = 0; first < size_of(members); first += kRowBatch) {
        const std::int64_t n = std::min(kRowBatch, size_of(members) - first);
        const Real* x[kRowBatch];
        for (std::int64_t r = 0; r < n; ++r) {
          const std::int64_t i = members[at(first + r)];
          x[r] = task.rows.dense + i * d;
          for (std::int64_t k = 0; k < kMachines; ++k) {
            const std::int64_t f = panel * kMachines + k;
            const Real value = f < d ? x[r][f] : f == d ? task.constant : Real{0};
            changes[at(r * kMachines + k)] = task.costs[i] * value;
            constant[at(k)] += task.constant * (task.costs[i] * value);
          }
        }
        active_kernels<Real>().dense_update(x, n, d, changes.data(), kMachines, lines.data());
      }
      for (std::int64_t k = 0; k < kMachines; ++k) {
        const std::int64_t column = panel * kMachines + k;
        for (std::int64_t f = 0; f < d; ++f) gram_[at(f * width + column)] = lines[at(f * kMachines + k)];
        gram_[at(d * width + column)] = constant[at(k)];
      }
    });
  }

  void add_up_diagonal(const LinearTask<Real>& task) {
    diagonal_.assign(at(n_), 0.0);
    const LinearRows<Real>& rows = task.rows;
    for (std::int64_t i = 0; i < rows.n_rows; ++i) {
      if (task.groups[i] < 0) continue;
      const auto cost = static_cast<double>(task.costs[i]);
      const std::int64_t begin = rows.dense ? 0 : rows.starts[i], end = rows.dense ? rows.n_features : rows.starts[i + 1];
      for (std::int64_t e = begin; e < end; ++e) {
        const auto value = static_cast<double>(rows.dense ? rows.dense[i * rows.n_features + e] : rows.values[e]);
        diagonal_[at(rows.dense ? e : rows.features[e])] += cost * value * value;
      }
      diagonal_[at(n_ - 1)] += cost * static_cast<double>(task.constant) * static_cast<double>(task.constant);
    }
  }

  // Row by row. Sums over many rows are rounded, and a matrix of less than full rank would then have negative pivots: the
  // diagonal is raised by what rounding can take off it.
  void factorise(std::int64_t level) {
    const std::int64_t width = round_up(n_, kMachines);
    std::vector<double> lower(at(n_ * n_));
    const double part = scale(level);
    double largest = 0;
    for (std::int64_t i = 0; i < n_; ++i) largest = std::max(largest, part * static_cast<double>(gram_[at(i * width + i)]));
    const double raise = kRounding<Real> * largest;
    for (std::int64_t i = 0; i < n_; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        double sum = part * static_cast<double>(gram_[at(i * width + j)]) + (i == j ? raise + (i < penalised_ ? 1.0 : 0.0) : 0.0);
        const double *a = lower.data() + i * n_, *b = lower.data() + j * n_;
        double sums[4] = {};
        std::int64_t k = 0;
        for (; k + 4 <= j; k += 4) {
          for (int p = 0; p < 4; ++p) sums[p] += a[k + p] * b[k + p];
        }
        for (; k < j; ++k) sums[0] += a[k] * b[k];
        sum -= (sums[0] + sums[1]) + (sums[2] + sums[3]);
        lower[at(i * n_ + j)] = i == j ? std::sqrt(std::max(sum, std::max(raise, 1e-3))) : sum / lower[at(j * n_ + j)];
      }
    }
    std::vector<Real>& kept = factors_[at(level)];
    kept.resize(lower.size());
    for (std::size_t e = 0; e < lower.size(); ++e) kept[e] = static_cast<Real>(lower[e]);
  }

  // Forward and backward, all lanes at once.
  void substitute(const std::vector<Real>& lower, std::int64_t width, Real* z) const {
    for (std::int64_t i = 0; i < n_; ++i) {
      Real* mine = z + i * width;
      for (std::int64_t j = 0; j < i; ++j) subtract(lower[at(i * n_ + j)], z + j * width, width, mine);
      divide_line(lower[at(i * n_ + i)], width, mine);
    }
    for (std::int64_t i = n_ - 1; i >= 0; --i) {
      Real* mine = z + i * width;
      divide_line(lower[at(i * n_ + i)], width, mine);
      for (std::int64_t j = 0; j < i; ++j) subtract(lower[at(i * n_ + j)], mine, width, z + j * width);
    }
  }

  static void subtract(Real factor, const Real* __restrict from, std::int64_t width, Real* __restrict line) {
    for (std::int64_t lane = 0; lane < width; ++lane) line[lane] -= factor * from[lane];
  }

  static void divide_line(Real by, std::int64_t width, Real* line) {
    for (std::int64_t lane = 0; lane < width; ++lane) line[lane] /= by;
  }

  void divide(const std::vector<Real>& r, const std::vector<int>& levels, std::int64_t width, std::vector<Real>& z) const {
    for (std::int64_t f = 0; f < n_; ++f) {
      for (std::size_t lane = 0; lane < levels.size(); ++lane) {
        const double by = (f < penalised_ ? 1.0 : 0.0) + scale(levels[lane]) * diagonal_[at(f)];
        z[at(f * width) + lane] = by > 0 ? static_cast<Real>(static_cast<double>(r[at(f * width) + lane]) / by) : Real{0};
      }
    }
  }

  std::int64_t n_, penalised_;
  bool factored_ = false;
  double total_ = 0;
  std::vector<Real> gram_;
  std::vector<double> diagonal_;
  std::vector<std::vector<Real>> factors_;
};

template <class Real>
class Newton : private Block<Real> {
  typedef Block<Real> Base;

 public:
  Newton(const LinearTask<Real>& task, const std::int8_t* signs, const std::vector<Real>& norms,
         const LinearFit<Real>& fit, const Span& span, const Preconditioner<Real>& preconditioner, bool warm)
      : Base(task, signs, norms, fit, span, false), preconditioner_(preconditioner) {
    best_.assign(at(width_), std::numeric_limits<double>::infinity());
    stalled_.assign(at(width_), 0);
    if (warm) start_warm();
  }

  void run() {
    for (step_ = 1; n_left() > 0; ++step_) {
      find_slope();
      stop_converged(step_ > task_.max_epochs);
      this->narrow_slopes();
      if (n_left() == 0) return;
      find_direction();
      go();
    }
    this->write_out();
  }

 private:
  using Base::task_;
  using Base::fit_;
  using Base::width_;
  using Base::lanes_;
  using Base::members_;
  using Base::weights_;
  using Base::offsets_;
  using Base::losses_;
  using Base::duals_;
  using Base::done_;
  using Base::n_left;
  using Base::constant_weight;

  std::int64_t n_lines() const { return task_.rows.n_features + 1; }
  std::int64_t n_penalised() const { return n_lines() - task_.free_intercept; }
  std::size_t length() const { return weights_.size(); }

  void start_warm() {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (done_[lane]) continue;
      for (std::int64_t f = 0; f < task_.rows.n_features; ++f) {
        weights_[at(f * width_) + lane] = fit_.weights[f * fit_.stride + lanes_[lane]];
      }
      if (task_.constant != 0) weights_[at(this->n_weights()) + lane] = fit_.intercepts[lanes_[lane]] / task_.constant;
    }
  }

  // gradient_ = that of the losses; the penalty's is the weights themselves.
  void find_slope() {
    gradient_.assign(length(), Real{0});
    curvatures_.assign(at(width_), 0.0);
    std::fill(losses_.begin(), losses_.end(), 0.0);
    std::fill(duals_.begin(), duals_.end(), 0.0);
    active_kernels<Real>().slope(this->block(), gradient_.data(), curvatures_.data());
    half_ = this->half_squares(weights_, n_penalised());
  }

  // The dual variables that belong to the margins give -gradient as their weights, and so a bound on the optimum.
  void stop_converged(bool last_step) {
    const std::vector<double> half_dual = this->half_squares(gradient_, n_penalised());
    gaps_.assign(at(width_), 0.0);
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      const double primal = losses_[lane] + half_[lane];
      if (primal > 0) gaps_[lane] = std::max(0.0, primal - (duals_[lane] - half_dual[lane])) / primal;
      if (!std::isfinite(gaps_[lane]) || std::isnan(primal)) gaps_[lane] = std::numeric_limits<double>::infinity();
      if (primal > 0 && task_.free_intercept) gaps_[lane] += intercept_gap(lane) / primal;
      const bool falls = primal < best_[lane] * (1 - kPrecision<Real>);
      stalled_[lane] = falls ? 0 : stalled_[lane] + 1;
      best_[lane] = std::min(best_[lane], primal);
      const bool ends = last_step || gaps_[lane] <= task_.tol || stalled_[lane] >= kPatience;
      if (!done_[lane] && ends) this->finish(static_cast<std::int64_t>(lane), gaps_[lane], step_ - 1);
    }
  }

  // Dual variables must balance where the intercept is free. While they do not, the bound is off by no more than this for an
  // intercept that is wrong by about its own size.
  double intercept_gap(std::size_t lane) const {
    if (task_.constant == 0) return 0;
    const auto slope = static_cast<double>(gradient_[at(this->n_weights()) + lane]) / static_cast<double>(task_.constant);
    const double intercept = static_cast<double>(task_.constant) * static_cast<double>(constant_weight(lane));
    return std::abs(slope) * (1 + std::abs(intercept));
  }

  // Lanes are given up between finding the slope and the direction: what the slope left must move with them.
  void narrow_slopes() {
    std::vector<std::int64_t> kept;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (!done_[lane]) kept.push_back(static_cast<std::int64_t>(lane));
    }
    const std::int64_t before = width_;
    const std::vector<double> losses = losses_;
    this->narrow();
    if (width_ == before) return;
    gradient_ = this->select(gradient_, before, kept, width_);
    curvatures_ = this->select(curvatures_, before, kept, width_);
    losses_ = this->select(losses, before, kept, width_);
    half_ = this->select(half_, before, kept, width_);
    gaps_ = this->select(gaps_, before, kept, width_);
    best_ = this->select(best_, before, kept, width_);
    stalled_ = this->select(stalled_, before, kept, width_);
  }

  // Products with the Hessian that a step may take: machines that need many steps need better ones.
  std::int64_t effort() const { return kProducts << std::min<std::int64_t>(step_ / kEase, 8); }

  // Conjugate gradients for H direction = -(weights + gradient), every lane with numbers of its own.
  void find_direction() {
    std::vector<int> levels(lanes_.size());
    for (std::size_t lane = 0; lane < levels.size(); ++lane) levels[lane] = preconditioner_.level(curvatures_[lane]);
    direction_.assign(length(), Real{0});
    std::vector<Real> residual(length()), z(length()), product(length());
    for (std::size_t e = 0; e < length(); ++e) residual[e] = -gradient_[e] - (penalised(e) ? weights_[e] : Real{0});
    clear_done(residual);
    solve_exactly(residual);
    preconditioner_.solve(residual, levels, width_, z);
    std::vector<Real> along = z;
    std::vector<double> square = inner(residual, z), goal(square);
    for (double& value : goal) value *= kForcing * kForcing;
    for (std::int64_t k = 0; k < effort(); ++k) {
      std::fill(product.begin(), product.end(), Real{0});
      active_kernels<Real>().bend(this->block(), along.data(), product.data());
      for (std::size_t e = 0; e < length(); ++e) product[e] += penalised(e) ? along[e] : Real{0};
      const std::vector<double> curved = inner(along, product);
      std::vector<Real> step(at(width_), Real{0});
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        const double length = square[lane] / curved[lane];
        if (square[lane] > goal[lane] && curved[lane] > 0 && std::isfinite(length)) step[lane] = static_cast<Real>(length);
      }
      add(along, step, direction_);
      for (Real& value : step) value = -value;
      add(product, step, residual);
      preconditioner_.solve(residual, levels, width_, z);
      const std::vector<double> now = inner(residual, z);
      std::vector<Real> turn(at(width_), Real{0});
      bool any = false;
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        if (step[lane] == 0) continue;  // it has what it wants: its residual stays
        turn[lane] = static_cast<Real>(now[lane] / square[lane]);
        square[lane] = now[lane];
        any = any || square[lane] > goal[lane];
      }
      if (!any) return;
      for (std::size_t e = 0; e < length(); ++e) along[e] = z[e] + turn[e % at(width_)] * along[e];
    }
  }

  // A squared hinge bends at the rows short of their margin alone. Where those are few the whole Hessian costs no more than a
  // few products with it, and the direction is found at once.
  void solve_exactly(std::vector<Real>& residual) {
    const std::int64_t d = task_.rows.n_features, n = size_of(members_);
    if (task_.loss != Loss::squared_hinge || !task_.rows.dense || d * d > 3 * effort() * n) return;
    const std::int64_t most = effort() * n / (d + 1);
    find_active(most);
    matrix_.resize(at((d + 1 + kRowBatch) * round_up(d + 1, kMachines)));
    std::vector<Real> b(at(d + 1));
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (done_[lane] || size_of(active_[lane]) > most) continue;
      for (std::int64_t f = 0; f <= d; ++f) {
        b[at(f)] = residual[at(f * width_) + lane];
        residual[at(f * width_) + lane] = 0;
      }
      active_kernels<Real>().solve(task_.rows, active_[lane].data(), bends_[lane].data(), size_of(active_[lane]),
                                   task_.constant, task_.free_intercept, matrix_.data(), b.data());
      for (std::int64_t f = 0; f <= d; ++f) direction_[at(f * width_) + lane] = b[at(f)];
    }
  }

  // Each machine's rows short of their margin, up to one more than so many.
  void find_active(std::int64_t most) {
    active_.assign(lanes_.size(), {}), bends_.assign(lanes_.size(), {});
    const MachineBlock<Real> block = this->block();
    for (std::size_t k = 0; k < members_.size(); ++k) {
      const std::int64_t row = members_[k];
      const std::int8_t* signs = block.signs + task_.groups[row] * width_;
      const Real* scores = block.states + static_cast<std::int64_t>(k) * width_;
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        if (signs[lane] == 0 || static_cast<Real>(signs[lane]) * scores[lane] >= 1) continue;
        if (size_of(active_[lane]) > most) continue;
        active_[lane].push_back(row);
        const Real weight = (signs[lane] > 0 ? block.positive_weights : block.negative_weights)[lane];
        bends_[lane].push_back(Real{2} * task_.costs[row] * weight);
      }
    }
  }

  // An exact line search: the slope along the direction rises with the length, and its root is found by Newton's steps
  // that are kept between the lengths known to be too short and too long.
  void go() {
    along_.resize(members_.size() * at(width_));
    active_kernels<Real>().trace(this->block(), direction_.data(), along_.data());
    const std::vector<double> across = inner(weights_, direction_, n_penalised());
    const std::vector<double> square = inner(direction_, direction_, n_penalised());
    const std::vector<double> start = slope_at_start(across);
    for (std::size_t e = 0; e < length(); ++e) {
      if (!std::isfinite(start[e % at(width_)])) direction_[e] = 0;  // beyond the precision: the machine stays
    }
    std::vector<Real> lengths(at(width_), Real{0});
    std::vector<double> low(at(width_), 0.0), high(at(width_), std::numeric_limits<double>::infinity());
    std::vector<char> searching(at(width_), 0);
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) searching[lane] = !done_[lane] && start[lane] < 0;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) lengths[lane] = searching[lane] ? Real{1} : Real{0};
    for (int k = 0; k < kMostProbes && std::find(searching.begin(), searching.end(), 1) != searching.end(); ++k) {
      std::vector<double> slopes(at(width_), 0.0), bends(at(width_), 0.0);
      active_kernels<Real>().probe(this->block(), along_.data(), lengths.data(), slopes.data(), bends.data());
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        if (!searching[lane]) continue;
        const auto t = static_cast<double>(lengths[lane]);
        const double slope = slopes[lane] + across[lane] + t * square[lane], bend = bends[lane] + square[lane];
        searching[lane] = std::abs(slope) > kFlat * std::abs(start[lane]);
        if (!searching[lane]) continue;
        (slope < 0 ? low : high)[lane] = t;
        double next = bend > 0 ? t - slope / bend : 2 * t;
        if (next >= high[lane]) next = 0.5 * (low[lane] + high[lane]);
        if (next <= low[lane]) next = std::isinf(high[lane]) ? 2 * t : 0.5 * (low[lane] + high[lane]);
        lengths[lane] = static_cast<Real>(next);
      }
    }
    add(direction_, lengths, weights_);
  }

  // The slope along the direction at length 0: what the whole gradient says.
  std::vector<double> slope_at_start(const std::vector<double>& across) const {
    std::vector<double> slopes = inner(gradient_, direction_);
    for (std::size_t lane = 0; lane < slopes.size(); ++lane) slopes[lane] += across[lane];
    return slopes;
  }

  bool penalised(std::size_t e) const { return e < at(n_penalised() * width_); }

  void clear_done(std::vector<Real>& lines) const {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (!done_[lane]) continue;
      for (std::size_t e = lane; e < lines.size(); e += at(width_)) lines[e] = 0;
    }
  }

  template <class A, class B>
  std::vector<double> inner(const A& a, const B& b, std::int64_t lines = -1) const {
    std::vector<double> sums(at(width_));
    const std::int64_t n = lines < 0 ? n_lines() : lines;
    for (std::int64_t f = 0; f < n; ++f) {
      for (std::size_t lane = 0; lane < sums.size(); ++lane) {
        const std::size_t e = at(f * width_) + lane;
        sums[lane] += static_cast<double>(a[e]) * static_cast<double>(b[e]);
      }
    }
    return sums;
  }

  // into += from times the lane's factor
  template <class Lines>
  void add(const std::vector<Real>& from, const std::vector<Real>& factors, Lines& into) const {
    for (std::int64_t f = 0; f < n_lines(); ++f) {
      for (std::size_t lane = 0; lane < factors.size(); ++lane) {
        into[at(f * width_) + lane] += factors[lane] * from[at(f * width_) + lane];
      }
    }
  }

  const Preconditioner<Real>& preconditioner_;
  std::int64_t step_ = 0;
  std::vector<Real> gradient_, direction_, along_, matrix_;
  std::vector<std::vector<std::int64_t>> active_;  // by lane
  std::vector<std::vector<Real>> bends_;
  std::vector<double> curvatures_, half_, gaps_;
  std::vector<double> best_;   // the least objective of each machine so far
  std::vector<int> stalled_;   // steps since it fell
};

}  // namespace

template <class Real>
void fit_newton(const LinearTask<Real>& task, const std::int8_t* signs, int n_threads, bool warm,
                const LinearFit<Real>& fit) {
  const std::vector<Span> spans = cut(task);
  const std::vector<Real> norms(1);  // of no use here
  const Preconditioner<Real> preconditioner(task, n_threads);
  parallel_for(size_of(spans), n_threads, [&](int, std::int64_t item) {
    Newton<Real>(task, signs, norms, fit, spans[at(item)], preconditioner, warm).run();
  });
}

template void fit_newton(const LinearTask<float>&, const std::int8_t*, int, bool, const LinearFit<float>&);
template void fit_newton(const LinearTask<double>&, const std::int8_t*, int, bool, const LinearFit<double>&);

}  // namespace nary
