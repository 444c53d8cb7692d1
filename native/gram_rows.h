// The rows of machines that are fitted over Gram matrices: class by class, and the lines of one machine's matrix.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "linear.h"
#include "machines.h"
#include "pages.h"
#include "parallel.h"

namespace nary {

// The rows of each class together: their costs and squares; dense ones themselves too, filled up with zeros to whole vectors,
// and the inner products within classes that several machines share, as far as memory for them goes.
template <class Real>
class RowsByClass {
 public:
  RowsByClass(const LinearTask<Real>& task, const std::vector<std::int64_t>& n_uses, int n_threads)
      : task_(task), starts_(at(task.n_groups + 1)), places_(at(task.n_groups + 1)), traces_(at(task.n_groups)) {
    for (std::int64_t i = 0; i < task.rows.n_rows; ++i) {
      if (task.groups[i] >= 0) ++starts_[at(task.groups[i] + 1)];
    }
    for (std::size_t g = 1; g < starts_.size(); ++g) starts_[g] += starts_[g - 1];
    for (auto* items : {&costs_, &squares_}) items->resize(at(starts_.back()));
    rows_.resize(at(starts_.back()));
    std::vector<std::int64_t> next = starts_;
    for (std::int64_t i = 0; i < task.rows.n_rows; ++i) {
      if (task.groups[i] >= 0) rows_[at(next[at(task.groups[i])]++)] = i;
    }
    if (task.rows.dense) make_room(n_uses);
    parallel_for(task.n_groups, n_threads, [&](int, std::int64_t g) { take(g); });
  }

  std::int64_t size(std::int64_t group) const { return starts_[at(group + 1)] - starts_[at(group)]; }
  std::int64_t stride() const { return round_up(task_.rows.n_features, kMachines); }
  const std::int64_t* rows(std::int64_t group) const { return rows_.data() + starts_[at(group)]; }
  const Real* costs(std::int64_t group) const { return costs_.data() + starts_[at(group)]; }
  const Real* squares(std::int64_t group) const { return squares_.data() + starts_[at(group)]; }
  double trace(std::int64_t group) const { return traces_[at(group)]; }
  const Real* dense(std::int64_t group) const { return dense_.data() + starts_[at(group)] * stride(); }
  // (size, size), or null where they are not kept
  const Real* products(std::int64_t group) const {
    return places_[at(group)] < places_[at(group + 1)] ? products_.data() + places_[at(group)] : nullptr;
  }

 private:
  static constexpr std::int64_t kMostProducts = std::int64_t{1} << 24;

  void make_room(const std::vector<std::int64_t>& n_uses) {
    for (std::int64_t g = 0; g < task_.n_groups; ++g) {
      const std::int64_t room = n_uses[at(g)] > 1 ? size(g) * size(g) : 0, begin = places_[at(g)];
      places_[at(g + 1)] = begin + (begin + room <= kMostProducts ? room : 0);
    }
    dense_.resize(at(starts_.back() * stride())), products_.resize(at(places_.back()));
  }

  void take(std::int64_t g) {
    const std::int64_t d = task_.rows.n_features;
    for (std::int64_t k = starts_[at(g)]; k < starts_[at(g + 1)]; ++k) {
      const std::int64_t i = rows_[at(k)];
      costs_[at(k)] = task_.costs[i], squares_[at(k)] = row_square(task_.rows, i);
      traces_[at(g)] += static_cast<double>(squares_[at(k)]);
      if (task_.rows.dense) std::copy_n(task_.rows.dense + i * d, d, dense_.data() + k * stride());
    }
    for (std::int64_t k = 0; k < size(g) && products(g); ++k) {
      active_kernels<Real>().multiply(dense(g) + k * stride(), dense(g), size(g), stride(),
                                      products_.data() + places_[at(g)] + k * size(g));
    }
  }

  const LinearTask<Real>& task_;
  std::vector<std::int64_t> starts_, rows_, places_;
  std::vector<Real> costs_, squares_;
  std::vector<double> traces_;
  LargeVector<Real> dense_, products_;
};

// The rows of one machine: their sides and costs, lines of their Gram matrix, sums of them.
template <class Real>
class MachineRows {
 public:
  MachineRows(const LinearTask<Real>& task, const RowsByClass<Real>& by_class) : task_(task), by_class_(by_class) {
    if (!task.rows.dense) spread_.assign(at(task.rows.n_features), Real{0});
  }

  void gather(std::int64_t machine, const std::int32_t* classes, const std::int8_t* sides, std::int64_t n_classes) {
    classes_ = classes, n_classes_ = n_classes;
    firsts_.assign(1, 0), trace_ = 0;
    bool sided[2] = {false, false};
    for (std::int64_t c = 0; c < n_classes; ++c) {
      const std::int64_t size = by_class_.size(classes[c]);
      firsts_.push_back(firsts_.back() + size);
      if (size > 0) sided[sides[c] > 0] = true;
      trace_ += by_class_.trace(classes[c]);
    }
    two_sides_ = sided[0] && sided[1];
    signs_.resize(at(n())), costs_.resize(at(n())), squares_.resize(at(n())), class_of_.resize(at(n()));
    for (std::int64_t c = 0; c < n_classes; ++c) {
      const Real weight = (sides[c] > 0 ? task_.positive_weights : task_.negative_weights)[machine];
      const Real *costs = by_class_.costs(classes[c]), *squares = by_class_.squares(classes[c]);
      const std::int64_t first = firsts_[at(c)], size = firsts_[at(c + 1)] - first;
      for (std::int64_t k = 0; k < size; ++k) {
        signs_[at(first + k)] = static_cast<Real>(sides[c]), costs_[at(first + k)] = costs[k] * weight;
        squares_[at(first + k)] = squares[k], class_of_[at(first + k)] = static_cast<std::int32_t>(c);
      }
    }
  }

  std::int64_t n() const { return firsts_.back(); }
  bool two_sides() const { return two_sides_; }
  double mean_square() const { return trace_ / static_cast<double>(n()); }
  const std::vector<Real>& signs() const { return signs_; }
  const std::vector<Real>& costs() const { return costs_; }
  const std::vector<Real>& squares() const { return squares_; }

  // The inner products of row i with the rows of classes begin.., at their places.
  void line(std::int64_t i, std::int64_t begin, Real* out) {
    if (!task_.rows.dense) return sparse_line(i, begin, out);
    const std::int64_t stride = by_class_.stride();
    for (std::int64_t c = begin; c < n_classes_; ++c) {
      const std::int64_t group = classes_[c], size = by_class_.size(group);
      const Real* products = c == class_of_[at(i)] ? by_class_.products(group) : nullptr;
      if (products) {
        std::copy_n(products + (i - firsts_[at(c)]) * size, size, out + firsts_[at(c)]);
      } else {
        active_kernels<Real>().multiply(dense(i), by_class_.dense(group), size, stride, out + firsts_[at(c)]);
      }
    }
  }

  // The whole matrix, (n, stride), every element plus `square`: products with earlier classes are copied.
  void matrix(Real square, std::int64_t stride, Real* out) {
    for (std::int64_t i = 0; i < n(); ++i) {
      const std::int64_t c = class_of_[at(i)], beyond = firsts_[at(c + 1)];
      line(i, c, out + i * stride);
      for (std::int64_t j = firsts_[at(c)]; j < n(); ++j) out[i * stride + j] += square;
      for (std::int64_t j = beyond; j < n(); ++j) out[j * stride + i] = out[i * stride + j];
    }
  }

  // weights = sum over some of the rows of coefficient * x
  void sum(const std::vector<std::int64_t>& chosen, const std::vector<Real>& coefficients, Real* weights) {
    const LinearRows<Real>& rows = task_.rows;
    if (rows.dense) {
      x_.clear();
      for (const std::int64_t i : chosen) x_.push_back(dense(i));
      return active_kernels<Real>().combine(x_.data(), coefficients.data(), size_of(chosen), rows.n_features, weights);
    }
    std::fill_n(weights, rows.n_features, Real{0});
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      const std::int64_t i = row(chosen[k]);
      for (std::int64_t e = rows.starts[i]; e < rows.starts[i + 1]; ++e) {
        weights[rows.features[e]] += coefficients[k] * rows.values[e];
      }
    }
  }

 private:
  std::int64_t row(std::int64_t i) const {
    const std::int64_t c = class_of_[at(i)];
    return by_class_.rows(classes_[c])[i - firsts_[at(c)]];
  }
  const Real* dense(std::int64_t i) const {
    const std::int64_t c = class_of_[at(i)];
    return by_class_.dense(classes_[c]) + (i - firsts_[at(c)]) * by_class_.stride();
  }

  void sparse_line(std::int64_t i, std::int64_t begin, Real* out) {
    const LinearRows<Real>& rows = task_.rows;
    const std::int64_t own = row(i);
    for (std::int64_t e = rows.starts[own]; e < rows.starts[own + 1]; ++e) spread_[at(rows.features[e])] = rows.values[e];
    for (std::int64_t j = firsts_[at(begin)]; j < n(); ++j) {
      const std::int64_t other = row(j);
      Real sum = 0;
      for (std::int64_t e = rows.starts[other]; e < rows.starts[other + 1]; ++e) {
        sum += spread_[at(rows.features[e])] * rows.values[e];
      }
      out[j] = sum;
    }
    for (std::int64_t e = rows.starts[own]; e < rows.starts[own + 1]; ++e) spread_[at(rows.features[e])] = 0;
  }

  const LinearTask<Real>& task_;
  const RowsByClass<Real>& by_class_;
  const std::int32_t* classes_ = nullptr;
  std::int64_t n_classes_ = 0;
  bool two_sides_ = false;
  double trace_ = 0;
  std::vector<std::int64_t> firsts_;    // where each class begins, and the end
  std::vector<std::int32_t> class_of_;  // of each row
  std::vector<Real> signs_, costs_, squares_, spread_;
  std::vector<const Real*> x_;
};

}  // namespace nary
