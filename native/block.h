// A block of machines that are fitted side by side: which they are, the rows that take part, and who has finished.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "linear.h"
#include "machines.h"
#include "pages.h"

namespace nary {

constexpr std::int64_t kMostLanes = 64, kMostDenseLanes = 32;
constexpr std::int64_t kFewBlocks = 4;                // blocks that machines are cut into, at least, so that threads share
constexpr std::int64_t kMostWeights = 1 << 28;        // bytes of a block's weights, unless 16 lanes take more

// Machines first..last-1, and of jointly fitted ones the columns.
struct Span {
  std::int64_t first, last, first_column, last_column;
};

// A block depends on the machines alone and never on the number of threads.
template <class Real>
std::vector<Span> cut(const LinearTask<Real>& task) {
  const std::int64_t line = (task.rows.n_features + 1) * static_cast<std::int64_t>(sizeof(Real));
  std::int64_t width = round_up((task.n_machines + kFewBlocks - 1) / kFewBlocks, kMachines);
  width = std::min(width, std::max(kMachines, kMostWeights / line / kMachines * kMachines));
  width = std::min(width, task.rows.dense ? kMostDenseLanes : kMostLanes);
  std::vector<Span> spans;
  if (task.loss != Loss::crammer_singer) {
    for (std::int64_t first = 0; first < task.n_machines; first += width) {
      spans.push_back({first, std::min(first + width, task.n_machines), 0, 0});
    }
    return spans;
  }
  for (std::int64_t s = 0; s < task.n_columns;) {
    std::int64_t last = s + 1;
    while (last < task.n_columns && task.columns[last + 1] - task.columns[s] <= width) ++last;
    spans.push_back({task.columns[s], task.columns[last], s, last});
    s = last;
  }
  return spans;
}

// A unit is what stops by itself: a machine, or the machines of a column that are fitted jointly.
template <class Real>
class Block {
 public:
  Block(const LinearTask<Real>& task, const std::int8_t* signs, const std::vector<Real>& norms,
        const LinearFit<Real>& fit, const Span& span, bool ordered)
      : task_(task), fit_(fit), all_signs_(signs), norms_(norms), jointly_(task.loss == Loss::crammer_singer) {
    for (std::int64_t machine = span.first; machine < span.last; ++machine) lanes_.push_back(machine);
    if (jointly_) {
      for (std::int64_t s = span.first_column; s <= span.last_column; ++s) columns_.push_back(task.columns[s] - span.first);
    }
    find_members();
    if (ordered) order_.resize(members_.size());
    width_ = round_up(span.last - span.first, kMachines);
    weights_.assign(at((task.rows.n_features + 1) * width_), Real{0});
    states_.assign(members_.size() * at(width_), cold_state<Real>(task.loss));
    offsets_.assign(at(width_), Real{0});
    lay_lanes();
    finish_trivial();
  }

 protected:
  std::int64_t n_units() const { return jointly_ ? size_of(columns_) - 1 : size_of(lanes_); }
  std::int64_t n_left() const { return std::count(done_.begin(), done_.end(), char{0}); }
  std::int64_t first_lane(std::int64_t unit) const { return jointly_ ? columns_[at(unit)] : unit; }
  std::int64_t last_lane(std::int64_t unit) const { return jointly_ ? columns_[at(unit + 1)] : unit + 1; }
  std::int64_t n_weights() const { return task_.rows.n_features * width_; }  // but for the constant feature's
  Real constant_weight(std::size_t lane) const { return weights_[at(n_weights()) + lane]; }

  MachineBlock<Real> block() {
    return {task_.rows, task_.loss, width_, members_.data(), order_.empty() ? nullptr : order_.data(),
            size_of(members_), norms_.data(), task_.costs, task_.groups, signs_.data(), positive_.data(),
            negative_.data(), offsets_.data(), task_.constant, columns_.data(), jointly_ ? n_units() : 0,
            weights_.data(), states_.data(), losses_.data(), duals_.data(), scratch_.data()};
  }

  // Half the squares of each lane, over the first so many lines of (features + 1, width).
  template <class Lines>
  std::vector<double> half_squares(const Lines& lines, std::int64_t n_lines) const {
    std::vector<double> halves(at(width_));
    for (std::int64_t f = 0; f < n_lines; ++f) {
      const Real* line = lines.data() + f * width_;
      for (std::size_t lane = 0; lane < halves.size(); ++lane) {
        halves[lane] += 0.5 * static_cast<double>(line[lane]) * static_cast<double>(line[lane]);
      }
    }
    return halves;
  }

  void finish(std::int64_t unit, double gap, std::int64_t epoch) {
    done_[at(unit)] = 1;
    for (std::int64_t lane = first_lane(unit); lane < last_lane(unit); ++lane) {
      const std::int64_t machine = lanes_[at(lane)];
      leaving_.push_back(lane);
      fit_.intercepts[machine] = offsets_[at(lane)] + task_.constant * constant_weight(at(lane));
      fit_.gaps[machine] = gap, fit_.epochs[machine] = static_cast<std::int32_t>(epoch);
      if (!fit_.states) continue;
      for (std::size_t k = 0; k < members_.size(); ++k) {
        fit_.states[members_[k] * fit_.stride + machine] = states_[k * at(width_) + at(lane)];
      }
    }
  }

  // The weights of the machines that have finished since, line by line: neighbours' weights lie in one line of memory.
  void write_out() {
    for (std::int64_t f = 0; f < task_.rows.n_features; ++f) {
      Real* line = fit_.weights + f * fit_.stride;
      for (const std::int64_t lane : leaving_) line[lanes_[at(lane)]] = weights_[at(f * width_ + lane)];
    }
    leaving_.clear();
  }

  // Lanes of finished machines are given up once a vector of them is free.
  void narrow() {
    write_out();
    std::vector<std::int64_t> kept, columns{0};
    for (std::int64_t unit = 0; unit < n_units(); ++unit) {
      if (done_[at(unit)]) continue;
      for (std::int64_t lane = first_lane(unit); lane < last_lane(unit); ++lane) kept.push_back(lane);
      columns.push_back(size_of(kept));
    }
    const std::int64_t width = round_up(size_of(kept), kMachines);
    if (kept.empty() || width == width_) return;
    weights_ = select(weights_, width_, kept, width), states_ = select(states_, width_, kept, width);
    offsets_ = select(offsets_, width_, kept, width);
    for (std::size_t k = 0; k < kept.size(); ++k) lanes_[k] = lanes_[at(kept[k])];
    lanes_.resize(kept.size());
    if (jointly_) columns_ = columns;
    width_ = width;
    done_.clear();
    lay_lanes();
  }

  // Of lines `from_width` wide some lanes, in lines `width` wide.
  template <class Lines>
  static Lines select(const Lines& from, std::int64_t from_width, const std::vector<std::int64_t>& kept,
                      std::int64_t width) {
    const std::size_t n = from.size() / at(from_width);
    Lines into(n * at(width));
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < kept.size(); ++k) into[i * at(width) + k] = from[i * at(from_width) + at(kept[k])];
    }
    return into;
  }

  const LinearTask<Real>& task_;
  const LinearFit<Real>& fit_;
  std::int64_t width_ = 0;
  std::vector<std::int64_t> lanes_, members_, order_;
  LargeVector<Real> weights_, states_;
  std::vector<Real> offsets_;
  std::vector<double> losses_, duals_;
  std::vector<char> done_;

 private:
  // The rows whose class has a side in any machine of the block.
  void find_members() {
    std::vector<char> takes_part(at(task_.n_groups));
    for (std::int64_t g = 0; g < task_.n_groups; ++g) {
      for (const std::int64_t machine : lanes_) takes_part[at(g)] |= side(g, machine) != 0;
    }
    for (std::int64_t i = 0; i < task_.rows.n_rows; ++i) {
      if (task_.groups[i] >= 0 && takes_part[at(task_.groups[i])]) members_.push_back(i);
    }
  }

  std::int8_t side(std::int64_t group, std::int64_t machine) const {
    return all_signs_[group * task_.n_machines + machine];
  }

  // All that is kept by lane and follows from the machines in them; lanes beyond the last machine take no part.
  void lay_lanes() {
    signs_.assign(at(task_.n_groups * width_), 0);
    positive_.assign(at(width_), Real{1});
    negative_.assign(at(width_), Real{1});
    for (std::int64_t lane = 0; lane < size_of(lanes_); ++lane) {
      const std::int64_t machine = lanes_[at(lane)];
      for (std::int64_t g = 0; g < task_.n_groups; ++g) signs_[at(g * width_ + lane)] = side(g, machine);
      positive_[at(lane)] = task_.positive_weights[machine];
      negative_[at(lane)] = task_.negative_weights[machine];
    }
    losses_.resize(at(width_)), duals_.resize(at(width_));
    scratch_.resize(at(kScratchRows * width_));
    done_.resize(at(n_units()));
  }

  // Where all rows have one side, or one symbol, there is nothing to tell apart: weights and intercept are 0.
  void finish_trivial() {
    std::vector<char> above(lanes_.size()), below(lanes_.size());
    for (const std::int64_t i : members_) {
      const std::int8_t* signs = signs_.data() + task_.groups[i] * width_;
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) above[lane] |= signs[lane] > 0, below[lane] |= signs[lane] < 0;
    }
    for (std::int64_t unit = 0; unit < n_units(); ++unit) {
      std::int64_t sides = 0;
      for (std::int64_t lane = first_lane(unit); lane < last_lane(unit); ++lane) {
        sides += jointly_ ? above[at(lane)] : above[at(lane)] + below[at(lane)];
      }
      if (sides < 2) finish(unit, 0, 0);
    }
  }

  const std::int8_t* all_signs_;
  const std::vector<Real>& norms_;
  const bool jointly_;
  std::vector<std::int64_t> columns_, leaving_;
  std::vector<std::int8_t> signs_;
  std::vector<Real> positive_, negative_, scratch_;
};

}  // namespace nary
