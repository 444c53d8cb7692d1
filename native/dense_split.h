// The best split of a node over dense binned rows: thresholds are laid as vectors of 64 features and counted by kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "node.h"

namespace nary {

class DenseFinder {
 public:
  explicit DenseFinder(const BinnedRows& rows)
      : rows_(rows), most_bins_(most_bins(rows)), scratch_(kChunk * kLanes * (3 * sizeof(double) + 4) + 64) {}

  void find(const Node& node, const Search& search, Found& best) {
    lay_out(node, search);
    const std::int64_t blocks = (rows_.n_features + kLanes - 1) / kLanes;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t block = (search.first_feature / kLanes + b) % blocks;
      for (unsigned shift = 0; shift <= (rows_.any_missing ? 1u : 0u); ++shift) {
        search_block(node, search, block, shift, best);
      }
      if (perfect(node, search, best)) return;  // later blocks lose ties
    }
  }

 private:
  static constexpr std::int64_t kChunk = 32;  // threshold vectors whose sums are held at once

  static std::int64_t most_bins(const BinnedRows& rows) {
    std::int64_t most = 1;
    for (std::int64_t f = 0; f < rows.n_features; ++f) most = std::max(most, rows.n_bins(f));
    return most;
  }

  // No split can do better than one whose sides are pure.
  static bool perfect(const Node& node, const Search& search, const Found& best) {
    if (best.feature < 0) return false;
    return search.entropy ? best.score >= 0 : best.score >= node.weight;
  }

  // Which thresholds this node is searched with, the same for all blocks of features.
  void lay_out(const Node& node, const Search& search) {
    every_bin_ = search.splitter == Splitter::best && node.n >= most_bins_;
    // With few bins comparing with all of them takes less than adding to one.
    by_histogram_ = search.splitter == Splitter::best && static_cast<std::int64_t>(node.n) >= 2 * most_bins_ &&
                    most_bins_ >= 32 * rows_.copies &&
                    node.ends.size() <= kPackedGroups && !node.weights && !search.entropy && node.n <= 65535;
    const bool any = node.weights || search.entropy || node.n > 65535;
    by_tally_ = any && search.splitter == Splitter::best &&
                static_cast<std::int64_t>(node.ends.size()) * most_bins_ <= 16 * static_cast<std::int64_t>(node.n);
    if (search.entropy && !node.weights) extend_logs(node.n);
    if (every_bin_) {
      n_thresholds_ = most_bins_;
    } else if (search.splitter == Splitter::random) {
      n_thresholds_ = search.n_thresholds;
    } else {
      draw_thresholds(node, search, places_);
      n_thresholds_ = static_cast<std::int64_t>(places_.size());
    }
  }

  void search_block(const Node& node, const Search& search, std::int64_t block, unsigned shift, Found& best) {
    NodeBlock view{rows_.cells + block * kLanes, rows_.stride, node.rows, node.weights, node.ends.data(),
                   static_cast<std::int64_t>(node.ends.size()), static_cast<std::uint8_t>(shift)};
    if (search.splitter == Splitter::random) active().trees.ranges(view, node.n, low_, high_);
    if (by_histogram_) return score_bins(view, node, search, block, shift, best);
    if (by_tally_) return tally_block(view, node, search, block, shift, best);
    const std::int64_t vectors = (n_thresholds_ + rows_.copies - 1) / rows_.copies;
    for (std::int64_t first = 0; first < vectors; first += kChunk) {
      const std::int64_t n = std::min(kChunk, vectors - first);
      for (std::int64_t v = 0; v < n; ++v) lay_vector(node, search, block, first + v, shift, thresholds_ + v * kLanes);
      if (node.weights || search.entropy || node.n > 65535) {
        score_any(view, node, search, block, n, shift, best);
      } else if (node.n <= 255) {
        score_counts<std::uint16_t>(active().trees.counts_u16, view, node, search, block, n, shift, best);
      } else {
        score_counts<std::uint32_t>(active().trees.counts_u32, view, node, search, block, n, shift, best);
      }
    }
  }

  // One vector of thresholds; a place with nothing to test gets one that sends all rows left.
  void lay_vector(const Node& node, const Search& search, std::int64_t block, std::int64_t vector, unsigned shift,
                  std::uint8_t* out) {
    const std::int64_t first = block * kLanes;
    const std::uint8_t* blocked = search.blocked + first;
    if (rows_.copies > 1) std::memset(out, 255, kLanes);
    for (std::int64_t copy = 0; copy < rows_.copies; ++copy, out += rows_.spread) {
      const std::int64_t t = vector * rows_.copies + copy;
      if (t >= n_thresholds_) break;
      if (every_bin_) {
        const std::int64_t bin = shift && t == most_bins_ - 1 ? kMissing : t;
        for (std::int64_t f = 0; f < rows_.spread; ++f) out[f] = static_cast<std::uint8_t>(bin + shift) | blocked[f];
      } else if (search.splitter == Splitter::random) {
        for (std::int64_t f = 0; f < rows_.spread; ++f) {
          out[f] = blocked[f] ? 255 : static_cast<std::uint8_t>(uniform_bin(search, first + f, f, t) + shift);
        }
      } else {
        const std::uint8_t* cells = rows_.cells + node.rows[places_[static_cast<std::size_t>(t)]] * rows_.stride + first;
        for (std::int64_t f = 0; f < rows_.spread; ++f) out[f] = static_cast<std::uint8_t>(cells[f] + shift) | blocked[f];
      }
    }
  }

  std::uint8_t uniform_bin(const Search& search, std::int64_t feature, std::int64_t lane, std::int64_t t) const {
    if (low_[lane] >= high_[lane]) return low_[lane];
    return bin_between(rows_.centres + rows_.centre_starts[feature], low_[lane], high_[lane], search.uniform(feature, t));
  }

  // A score in floats that reaches this may be the best in doubles; what does not fit scores -1.
  static float nearly(double score) { return score > 0 ? static_cast<float>(score * (1 - 1e-6)) : 0.0f; }

  template <class Sum>
  void score_counts(const CountKernels<Sum>& kernels, const NodeBlock& view, const Node& node, const Search& search,
                    std::int64_t block, std::int64_t n, unsigned shift, Found& best) {
    Sum* left = scratch<Sum>();
    Sum *left_squares = left + kChunk * kLanes, *right_squares = left_squares + kChunk * kLanes;
    kernels.sum(view, thresholds_, n, left, left_squares, right_squares);
    consider(kernels, left, left_squares, right_squares, node, search, block, n, shift, best);
  }

  // Every bin as a threshold, in nodes of few symbols.
  void score_bins(const NodeBlock& view, const Node& node, const Search& search, std::int64_t block, unsigned shift,
                  Found& best) {
    packed_.resize(256 * 16);
    counts_.resize(static_cast<std::size_t>((most_bins_ + 1) * kPackedGroups * 16));
    sums_.resize(static_cast<std::size_t>(3 * most_bins_ * kLanes));
    const std::int64_t cells = most_bins_ * kLanes;
    std::uint32_t *left = sums_.data(), *left_squares = left + cells, *right_squares = left_squares + cells;
    active().trees.sum_bins(view, std::min(rows_.spread, rows_.n_features - block * kLanes), most_bins_,
                            search.blocked + block * kLanes, packed_.data(), counts_.data(), left, left_squares,
                            right_squares);
    for (std::int64_t first = 0; first < most_bins_; first += kChunk) {
      const std::int64_t n = std::min(kChunk, most_bins_ - first), at = first * kLanes;
      for (std::int64_t v = 0; v < n; ++v) {
        const std::int64_t bin = shift && first + v == most_bins_ - 1 ? kMissing : first + v;
        std::memset(thresholds_ + v * kLanes, static_cast<int>(bin + shift) & 255, kLanes);
      }
      consider(active().trees.counts_u32, left + at, left_squares + at, right_squares + at, node, search, block, n, shift,
               best);
    }
  }

  template <class Sum>
  void consider(const CountKernels<Sum>& kernels, const Sum* left, const Sum* left_squares, const Sum* right_squares,
                const Node& node, const Search& search, std::int64_t block, std::int64_t n, unsigned shift, Found& best) {
    float bar = nearly(best.score);
    for (std::int64_t at = 0; at < n * kLanes; at += kLanes) {
      const float top = kernels.score(left + at, left_squares + at, right_squares + at, node.n, search.min_leaf, scores_);
      if (top < bar) continue;
      bar = std::max(bar, nearly(top));
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        if (scores_[lane] < bar) continue;
        const double l = left[at + lane];
        const double score = split_score(l, left_squares[at + lane], node.n - l, right_squares[at + lane], false);
        offer(search, block, lane, thresholds_[at + lane], shift, score, best);
      }
    }
  }

  void score_any(const NodeBlock& view, const Node& node, const Search& search, std::int64_t block, std::int64_t n,
                 unsigned shift, Found& best) {
    double* left = scratch<double>();
    double *left_values = left + kChunk * kLanes, *right_values = left_values + kChunk * kLanes;
    auto* left_rows = reinterpret_cast<std::uint32_t*>(right_values + kChunk * kLanes);
    active().trees.sum_any(view, thresholds_, n, search.entropy, logs(node), left_rows, left, left_values, right_values);
    for (std::int64_t k = 0; k < n * kLanes; ++k) {
      const double right = node.weight - left[k];
      if (left_rows[k] < search.min_leaf || node.n - left_rows[k] < search.min_leaf || left[k] <= 0 || right <= 0) continue;
      const double score = split_score(left[k], left_values[k], right, right_values[k], search.entropy);
      offer(search, block, k % kLanes, thresholds_[k], shift, score, best);
    }
  }

  // f(w) = w log2 w of whole numbers, for nodes without weights.
  void extend_logs(std::uint32_t most) {
    for (auto w = static_cast<double>(logs_.size()); w <= most; ++w) logs_.push_back(term_of(w, true));
  }
  const double* logs(const Node& node) const { return node.weights ? nullptr : logs_.data(); }

  double term(double weight, const Search& search, const Node& node) const {
    if (search.entropy && !node.weights) return logs_[static_cast<std::size_t>(weight)];
    return term_of(weight, search.entropy);
  }

  // Every bin as a threshold, with weights, for entropy or in very large nodes: a feature at a time, each symbol's weight a
  // bin tallied, and from bin to bin only the symbols that come in it measured anew.
  void tally_block(const NodeBlock& view, const Node& node, const Search& search, std::int64_t block, unsigned shift,
                   Found& best) {
    const std::int64_t features = std::min(rows_.spread, rows_.n_features - block * kLanes);
    for (std::int64_t f = 0; f < features; ++f) {
      if (search.blocked[block * kLanes + f]) continue;
      tally(view, f);
      scan_tally(node, search, block, f, shift, best);
    }
  }

  void tally(const NodeBlock& view, std::int64_t f) {
    const auto G = static_cast<std::size_t>(view.n_groups);
    tally_.assign(256 * G, 0.0);
    tally_rows_.assign(256, 0);
    std::uint32_t begin = 0;
    for (std::size_t g = 0; g < G; ++g) {
      for (; begin < view.ends[g]; ++begin) {
        const std::uint8_t bin = view.cells[view.rows[begin] * view.stride + f];
        tally_[bin * G + g] += view.weights ? view.weights[begin] : 1;
        ++tally_rows_[bin];
      }
    }
  }

  void scan_tally(const Node& node, const Search& search, std::int64_t block, std::int64_t f, unsigned shift,
                  Found& best) {
    const std::size_t G = node.ends.size();
    below_.assign(G, 0.0);
    left_terms_.assign(G, 0.0);
    right_terms_.resize(G);
    for (std::size_t g = 0; g < G; ++g) right_terms_[g] = term(node.totals[g], search, node);
    std::uint32_t rows = 0;
    if (shift) {  // missing values go left before all others, which is a split of its own
      rows = move_bin(node, search, kMissing);
      offer_tally(node, search, block, f, kMissing, shift, rows, best);
    }
    for (int bin = 0; bin < kMissing; ++bin) {
      if (tally_rows_[static_cast<std::size_t>(bin)] == 0) continue;  // parts the node as the bin before does
      rows += move_bin(node, search, static_cast<std::uint8_t>(bin));
      offer_tally(node, search, block, f, static_cast<std::uint8_t>(bin), shift, rows, best);
    }
  }

  std::uint32_t move_bin(const Node& node, const Search& search, std::uint8_t bin) {
    const std::size_t G = node.ends.size();
    for (std::size_t g = 0; g < G; ++g) {
      if (tally_[bin * G + g] == 0) continue;
      below_[g] += tally_[bin * G + g];
      left_terms_[g] = term(below_[g], search, node), right_terms_[g] = term(node.totals[g] - below_[g], search, node);
    }
    return tally_rows_[bin];
  }

  void offer_tally(const Node& node, const Search& search, std::int64_t block, std::int64_t f, std::uint8_t bin,
                   unsigned shift, std::uint32_t rows, Found& best) {
    if (rows < search.min_leaf || node.n - rows < search.min_leaf) return;
    double left = 0, left_values = 0, right_values = 0;
    for (std::size_t g = 0; g < below_.size(); ++g) {
      left += below_[g], left_values += left_terms_[g], right_values += right_terms_[g];
    }
    const double right = node.weight - left;
    if (left <= 0 || right <= 0) return;
    const double score = split_score(left, left_values, right, right_values, search.entropy);
    offer(search, block, f, static_cast<std::uint8_t>(bin + shift), shift, score, best);
  }

  void offer(const Search& search, std::int64_t block, std::int64_t lane, std::uint8_t threshold, unsigned shift,
             double score, Found& best) {
    if (score < best.score) return;
    const std::int64_t feature = block * kLanes + (rows_.copies > 1 ? lane % rows_.spread : lane);
    const std::uint8_t bin = static_cast<std::uint8_t>(threshold - shift);
    best.offer(score, tie_key(search, rows_.n_features, feature, bin, shift != 0), feature, bin, shift != 0);
  }

  template <class T>
  T* scratch() {
    const auto address = reinterpret_cast<std::uintptr_t>(scratch_.data());
    return reinterpret_cast<T*>((address + 63) / 64 * 64);
  }

  const BinnedRows& rows_;
  const std::int64_t most_bins_;
  bool every_bin_ = false, by_histogram_ = false, by_tally_ = false;
  std::int64_t n_thresholds_ = 0;
  std::vector<std::uint32_t> places_;
  std::vector<std::uint8_t> scratch_;
  std::vector<std::uint64_t> packed_;
  std::vector<std::uint32_t> counts_, sums_, tally_rows_;
  std::vector<double> tally_, below_, left_terms_, right_terms_, logs_;
  alignas(64) std::uint8_t thresholds_[kChunk * kLanes];
  alignas(64) float scores_[kLanes];
  std::uint8_t low_[kLanes], high_[kLanes];
};

}  // namespace nary
