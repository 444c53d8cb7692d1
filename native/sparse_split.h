// The best split of a node over sparse binned rows: only stored entries are visited, the rows at zero follow by difference.
#pragma once

#include <algorithm>
#include <vector>

#include "node.h"

namespace nary {

class SparseFinder {
 public:
  explicit SparseFinder(const BinnedRows& rows)
      : rows_(rows), counts_(static_cast<std::size_t>(rows.n_features)), ends_(static_cast<std::size_t>(rows.n_features)) {}

  void find(const Node& node, const Search& search, Found& best) {
    choose_thresholds(node, search);
    gather(node, search);
    moved_.assign(node.ends.size(), 0.0);
    all_values_ = 0;
    for (const double total : node.totals) all_values_ += term_of(total, search.entropy);
    for (const std::int32_t f : touched_) search_feature(node, search, f, best);
    for (const std::int32_t f : touched_) counts_[static_cast<std::size_t>(f)] = 0;
    touched_.clear();
  }

 private:
  struct Entry {
    std::uint8_t bin;
    bool threshold;  // whether its row was drawn to give thresholds
    std::uint16_t group;
    std::uint32_t weight;
  };
  enum class Side { left, right };

  void choose_thresholds(const Node& node, const Search& search) {
    drawn_.assign(node.n, 0);
    n_drawn_ = 0;
    if (search.splitter == Splitter::random) return;
    draw_thresholds(node, search, places_);
    for (const std::uint32_t place : places_) {
      n_drawn_ += !drawn_[place];
      drawn_[place] = 1;
    }
  }

  // The node's entries of allowed features, feature by feature: entries_[ends_[f] - counts_[f]] .. entries_[ends_[f]].
  void gather(const Node& node, const Search& search) {
    for (std::uint32_t i = 0; i < node.n; ++i) {
      for (std::int64_t e = rows_.starts[node.rows[i]]; e < rows_.starts[node.rows[i] + 1]; ++e) {
        const std::int32_t f = rows_.features[e];
        if (search.blocked[f]) continue;
        if (counts_[static_cast<std::size_t>(f)]++ == 0) touched_.push_back(f);
      }
    }
    std::int64_t total = 0;
    for (const std::int32_t f : touched_) {
      ends_[static_cast<std::size_t>(f)] = total;
      total += counts_[static_cast<std::size_t>(f)];
    }
    entries_.resize(static_cast<std::size_t>(total));
    std::uint16_t group = 0;
    for (std::uint32_t i = 0; i < node.n; ++i) {
      while (i >= node.ends[group]) ++group;
      const std::uint32_t weight = node.weights ? node.weights[i] : 1;
      for (std::int64_t e = rows_.starts[node.rows[i]]; e < rows_.starts[node.rows[i] + 1]; ++e) {
        const std::int32_t f = rows_.features[e];
        if (search.blocked[f]) continue;
        entries_[static_cast<std::size_t>(ends_[static_cast<std::size_t>(f)]++)] = {rows_.bins[e], drawn_[i] != 0, group, weight};
      }
    }
  }

  void search_feature(const Node& node, const Search& search, std::int32_t f, Found& best) {
    Entry* last = entries_.data() + ends_[static_cast<std::size_t>(f)];
    Entry* first = last - counts_[static_cast<std::size_t>(f)];
    std::sort(first, last, [](const Entry& a, const Entry& b) {
      return a.bin != b.bin ? a.bin < b.bin : a.group < b.group;
    });
    list_tries(node, search, f, first, last);
    const Entry* missing = std::lower_bound(first, last, kMissing, [](const Entry& e, std::uint8_t bin) { return e.bin < bin; });
    for (unsigned shift = 0; shift <= (missing < last ? 1u : 0u); ++shift) {
      sweep_left(node, search, f, first, missing, last, shift, best);
      sweep_right(node, search, f, first, missing, last, shift, best);
    }
  }

  // The bins to be tried as the last of the left side, ascending.
  void list_tries(const Node& node, const Search& search, std::int32_t f, const Entry* first, const Entry* last) {
    tries_.clear();
    const std::uint8_t zero = rows_.zero_bins[f];
    const bool any_zero = last - first < node.n;
    if (search.splitter == Splitter::random) {
      std::uint8_t low = any_zero ? zero : kMissing, high = any_zero ? zero : 0;
      for (const Entry* e = first; e < last && e->bin != kMissing; ++e) low = std::min(low, e->bin), high = std::max(high, e->bin);
      if (low >= high) tries_.push_back(low);
      for (std::int64_t t = 0; low < high && t < search.n_thresholds; ++t) {
        tries_.push_back(bin_between(rows_.centres + rows_.centre_starts[f], low, high, search.uniform(f, t)));
      }
    } else {
      std::int64_t drawn = 0;
      for (const Entry* e = first; e < last; ++e) {
        if (e->threshold && (tries_.empty() || tries_.back() != e->bin)) tries_.push_back(e->bin);
        drawn += e->threshold;
      }
      if (drawn < n_drawn_) tries_.push_back(zero);
    }
    std::sort(tries_.begin(), tries_.end());
    tries_.erase(std::unique(tries_.begin(), tries_.end()), tries_.end());
  }

  // Thresholds below the zero bin: the rows on the left are moved there one by one.
  void sweep_left(const Node& node, const Search& search, std::int32_t f, const Entry* first, const Entry* missing,
                  const Entry* last, unsigned shift, Found& best) {
    start();
    if (shift) {
      for (const Entry* e = missing; e < last; ++e) move(node, search, *e);
      if (!tries_.empty() && tries_.back() == kMissing) try_split(node, search, f, kMissing, shift, Side::left, best);
    }
    const Entry* next = first;
    for (std::size_t k = 0; k < tries_.size() && tries_[k] < rows_.zero_bins[f]; ++k) {
      for (; next < missing && next->bin <= tries_[k]; ++next) move(node, search, *next);
      try_split(node, search, f, tries_[k], shift, Side::left, best);
    }
    put_back(first, next);
    if (shift) put_back(missing, last);
  }

  // Thresholds from the zero bin on: the rows on the right are moved there one by one, from the largest bin down.
  void sweep_right(const Node& node, const Search& search, std::int32_t f, const Entry* first, const Entry* missing,
                   const Entry* last, unsigned shift, Found& best) {
    start();
    if (!shift) {
      for (const Entry* e = missing; e < last; ++e) move(node, search, *e);
    }
    const Entry* next = missing;
    for (std::size_t k = tries_.size(); k-- > 0 && tries_[k] >= rows_.zero_bins[f];) {
      if (tries_[k] == kMissing) continue;
      for (; next > first && (next - 1)->bin > tries_[k]; --next) move(node, search, *(next - 1));
      try_split(node, search, f, tries_[k], shift, Side::right, best);
    }
    put_back(next, missing);
    if (!shift) put_back(missing, last);
  }

  void start() {
    moved_rows_ = 0;
    moved_weight_ = moved_values_ = 0;
    rest_values_ = all_values_;
  }

  void move(const Node& node, const Search& search, const Entry& entry) {
    double& there = moved_[entry.group];
    const double total = node.totals[entry.group], after = there + entry.weight;
    moved_values_ += term_of(after, search.entropy) - term_of(there, search.entropy);
    rest_values_ += term_of(total - after, search.entropy) - term_of(total - there, search.entropy);
    moved_weight_ += entry.weight;
    ++moved_rows_;
    there = after;
  }

  void put_back(const Entry* first, const Entry* last) {
    for (const Entry* e = first; e < last; ++e) moved_[e->group] = 0;
  }

  void try_split(const Node& node, const Search& search, std::int32_t f, std::uint8_t bin, unsigned shift, Side moved,
                 Found& best) const {
    const std::uint32_t rest_rows = node.n - moved_rows_;
    const double rest = node.weight - moved_weight_;
    if (std::min(moved_rows_, rest_rows) < search.min_leaf || moved_weight_ <= 0 || rest <= 0) return;
    const double score = moved == Side::left
                             ? split_score(moved_weight_, moved_values_, rest, rest_values_, search.entropy)
                             : split_score(rest, rest_values_, moved_weight_, moved_values_, search.entropy);
    best.offer(score, tie_key(search, rows_.n_features, f, bin, shift != 0), f, bin, shift != 0);
  }

  const BinnedRows& rows_;
  std::vector<std::int64_t> counts_, ends_;  // of each feature
  std::vector<std::int32_t> touched_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> places_;
  std::vector<std::uint8_t> drawn_;
  std::int64_t n_drawn_ = 0;
  std::vector<std::uint8_t> tries_;
  std::vector<double> moved_;  // of each group: the weight moved to the smaller side
  std::uint32_t moved_rows_ = 0;
  double moved_weight_ = 0, moved_values_ = 0, rest_values_ = 0, all_values_ = 0;
};

}  // namespace nary
