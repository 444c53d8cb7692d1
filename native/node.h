// What a tree's node is while the tree grows, and what a finder says of it. Shared by the growers of both forms of rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels.h"
#include "trees.h"

namespace nary {

// A stream of draws that depends on its key alone.
class Random {
 public:
  explicit Random(std::uint64_t key) : key_(key) {}
  std::uint64_t next() noexcept { return splitmix64(key_, counter_++); }
  std::uint64_t below(std::uint64_t n) noexcept {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
  }

 private:
  std::uint64_t key_, counter_ = 0;
};

// The rows of a node, sorted by symbol.
struct Node {
  const std::uint32_t* rows;
  const std::uint16_t* symbols;
  const std::uint32_t* weights;  // whole numbers, so that sums are exact in any order; null: all are 1
  std::uint32_t n;
  std::vector<std::uint32_t> ends;  // where each symbol's rows end
  std::vector<double> totals;       // each symbol's weight
  double weight = 0;                // of all rows
};

// The best split seen so far. Its score is sum f(l_k) of the left over its weight plus the same of the right for Gini's
// f(w) = w^2; for entropy sum (l_k log l_k) - l log l plus the same of the right. Of equal scores the smaller key wins.
struct Found {
  double score = -std::numeric_limits<double>::infinity();
  std::uint64_t key = ~std::uint64_t{0};
  std::int64_t feature = -1;
  std::uint8_t bin = 0;
  bool missing_left = false;

  void offer(double their_score, std::uint64_t their_key, std::int64_t their_feature, std::uint8_t their_bin,
             bool their_missing_left) noexcept {
    if (their_score > score || (their_score == score && their_key < key)) {
      *this = {their_score, their_key, their_feature, their_bin, their_missing_left};
    }
  }
};

// How a finder is to look at a node: which features, where ties start, which thresholds.
struct Search {
  const std::uint8_t* blocked;  // a byte a feature, 255 for those that are not to be looked at; whole blocks of 64
  std::int64_t first_feature;   // of equally good features the first from here on, blocks of 64 at a time
  Splitter splitter;
  std::int64_t n_thresholds;
  std::uint64_t key;            // of what is drawn for this node
  std::uint32_t min_leaf;
  bool entropy;

  // Where threshold t of a feature lies between the least and the largest value: in [0, 1).
  double uniform(std::int64_t feature, std::int64_t t) const noexcept {
    const auto number = static_cast<std::uint64_t>(feature) << 16 | static_cast<std::uint64_t>(t);
    return static_cast<double>(splitmix64(key, number) >> 11) * 0x1p-53;
  }
};

// Ties between features: by block of 64 and place in it, both counted from the first feature; then the lower bin.
inline std::uint64_t tie_key(const Search& search, std::int64_t n_features, std::int64_t feature, std::uint8_t bin,
                             bool missing_left) noexcept {
  const std::int64_t blocks = (n_features + kLanes - 1) / kLanes;
  const std::int64_t ahead = feature / kLanes - search.first_feature / kLanes, block = ahead < 0 ? ahead + blocks : ahead;
  const std::int64_t lane = (feature - search.first_feature + kLanes * blocks) % kLanes;
  return (static_cast<std::uint64_t>(block) << 32) | (static_cast<std::uint64_t>(lane) << 16) |
         (static_cast<std::uint64_t>(missing_left) << 8) | bin;
}

// A symbol's part in the criterion: w^2, or w log2 w for entropy.
inline double term_of(double weight, bool entropy) {
  if (!entropy) return weight * weight;
  return weight > 0 ? weight * std::log2(weight) : 0.0;
}

inline double split_score(double left, double left_values, double right, double right_values, bool entropy) {
  if (!entropy) return (left_values * right + right_values * left) / (left * right);
  return (left_values - left * __builtin_log2(left)) + (right_values - right * __builtin_log2(right));
}

// The positions of the rows whose cells are a node's thresholds: all of them, or some drawn with their weights as chances.
inline void draw_thresholds(const Node& node, const Search& search, std::vector<std::uint32_t>& places) {
  places.clear();
  if (search.splitter == Splitter::best) {
    for (std::uint32_t i = 0; i < node.n; ++i) places.push_back(i);
    return;
  }
  for (std::int64_t t = 0; t < search.n_thresholds; ++t) {
    double there = search.uniform(0, t) * node.weight;
    std::uint32_t place = node.weights ? 0 : static_cast<std::uint32_t>(there);
    if (node.weights) {
      for (; place + 1 < node.n && there >= node.weights[place]; ++place) there -= node.weights[place];
    }
    places.push_back(std::min(place, node.n - 1));
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
}

// The last bin that lies at most a share `u` of the way from bin `low` to bin `high`, high itself excepted. Where centres
// are spaced evenly the bin that far along is near it, so that is looked at first.
inline std::uint8_t bin_between(const double* centres, std::uint8_t low, std::uint8_t high, double u) {
  constexpr int kNear = 8;
  const double value = centres[low] * (1 - u) + centres[high] * u;
  int first = low, end = high, guess = low + static_cast<int>(u * (high - low));
  for (int step = 0; step < kNear; ++step) {
    if (centres[guess] > value && guess > first) {
      end = guess--;
    } else if (guess + 1 < end && centres[guess + 1] <= value) {
      first = ++guess;
    } else {
      return static_cast<std::uint8_t>(guess);
    }
  }
  first = std::max<int>(first, low);
  while (end - first > 1) {  // the last one at most `value` is among first .. end - 1
    const int middle = first + (end - first) / 2;
    (centres[middle] <= value ? first : end) = middle;
  }
  return static_cast<std::uint8_t>(first);
}

}  // namespace nary
