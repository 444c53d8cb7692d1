// Growing the trees of a block of columns: one tree a column, each a function of its column, the options and the seed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "dense_split.h"
#include "node.h"
#include "parallel.h"
#include "sparse_split.h"
#include "trees.h"

namespace nary {
namespace {

constexpr std::int32_t kLeaf = -1;

struct Tree {
  std::vector<Split> splits;
  std::vector<double> gains;
  std::int32_t root = ~0;
  std::vector<std::uint16_t> leaf_symbols;
  std::vector<std::uint8_t> leaf_shares;
};

class Grower {
 public:
  Grower(const BinnedRows& rows, const TreeColumns& columns, const TreeOptions& options)
      : rows_(rows), columns_(columns), options_(options),
        blocked_(static_cast<std::size_t>((rows.n_features + kLanes - 1) / kLanes * kLanes)) {
    if (rows.cells) {
      dense_ = std::make_unique<DenseFinder>(rows);
    } else {
      sparse_ = std::make_unique<SparseFinder>(rows);
    }
  }

  Tree grow(std::int64_t s) {
    random_ = Random(splitmix64(options_.seed, static_cast<std::uint64_t>(columns_.first + s)));
    take_rows(s);
    take_features();
    grown_.clear();
    open_.clear();
    if (here_.rows.empty()) return saying_nothing();
    const auto n = static_cast<double>(here_.rows.size());
    const auto at_least = [n](double value, bool fraction) {
      return static_cast<std::uint32_t>(std::min(1e9, fraction ? std::ceil(value * n) : value));
    };
    min_leaf_ = std::max(1u, at_least(options_.min_samples_leaf, options_.leaf_is_fraction));
    min_split_ = std::max({2u, at_least(options_.min_samples_split, options_.split_is_fraction), 2 * min_leaf_});
    const bool best_first = options_.max_leaf_nodes < std::numeric_limits<std::int64_t>::max();
    add_node(0, static_cast<std::uint32_t>(here_.rows.size()), 0);
    for (std::int64_t leaves = 1; !open_.empty() && leaves < options_.max_leaf_nodes; ++leaves) {
      if (best_first) std::pop_heap(open_.begin(), open_.end(), less_promising);
      const Open open = open_.back();
      open_.pop_back();
      const std::size_t n_heaped = open_.size();
      split(open);
      if (best_first) push_from(n_heaped);
    }
    if (options_.ccp_alpha > 0) prune();
    return emit();
  }

 private:
  struct Rows {
    std::vector<std::uint32_t> rows;
    std::vector<std::uint16_t> symbols;
    std::vector<std::uint32_t> weights;  // empty: all are 1

    void resize(std::size_t n, bool weighted) {
      rows.resize(n), symbols.resize(n);
      if (weighted) weights.resize(n);
    }
    void move(std::size_t to, const Rows& from, std::size_t at, bool weighted) {
      rows[to] = from.rows[at], symbols[to] = from.symbols[at];
      if (weighted) weights[to] = from.weights[at];
    }
  };

  struct GrownNode {
    std::int32_t left = kLeaf, right = kLeaf;
    std::uint32_t test = 0;
    std::uint16_t symbol = 0;
    double value = 0;  // what the criterion makes of the node's own symbols: -value is its impurity times its weight
    double gain = 0;
  };

  // A leaf whose best split is known.
  struct Open {
    std::int32_t node;
    std::uint32_t begin, end;
    std::int64_t depth;
    Found found;
    double gain;
  };

  static bool less_promising(const Open& a, const Open& b) {
    return a.gain != b.gain ? a.gain < b.gain : a.node > b.node;
  }

  void push_from(std::size_t first) {
    for (std::size_t n = first; n < open_.size(); ++n) {
      std::push_heap(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(n + 1), less_promising);
    }
  }

  bool weighted() const { return !here_.weights.empty(); }

  // The rows of column s, sorted by symbol; drawn by the column's own numbers where it takes only some.
  void take_rows(std::int64_t s) {
    here_.rows.clear(), here_.symbols.clear(), here_.weights.clear();
    for (std::int64_t e = columns_.starts[s]; e < columns_.starts[s + 1]; ++e) {
      const std::int32_t c = columns_.classes[e];
      for (std::int64_t row = columns_.class_starts[c]; row < columns_.class_starts[c + 1]; ++row) {
        here_.rows.push_back(static_cast<std::uint32_t>(row));
        here_.symbols.push_back(columns_.symbols[e]);
      }
    }
    draw_rows();
    weigh_rows();
    there_.resize(here_.rows.size(), weighted());
  }

  void draw_rows() {
    const std::size_t all = here_.rows.size();
    const auto n = static_cast<std::size_t>(std::max(1.0, std::round(options_.row_fraction * static_cast<double>(all))));
    if (all == 0 || (!options_.bootstrap && n >= all)) return;
    std::vector<std::uint32_t> times(all, 0);
    if (options_.bootstrap) {
      for (std::size_t k = 0; k < n; ++k) ++times[random_.below(all)];
    } else {
      std::size_t wanted = n;
      for (std::size_t i = 0; i < all; ++i) {  // each row with the chance that is left to it
        if (random_.below(all - i) < wanted) times[i] = 1, --wanted;
      }
    }
    there_.rows.clear(), there_.symbols.clear();
    for (std::size_t i = 0; i < all; ++i) {
      there_.rows.insert(there_.rows.end(), times[i], here_.rows[i]);
      there_.symbols.insert(there_.symbols.end(), times[i], here_.symbols[i]);
    }
    std::swap(here_.rows, there_.rows);
    std::swap(here_.symbols, there_.symbols);
  }

  // The rows' weights as whole numbers up to kMostWeight, scaled by a power of two: sums of them are exact, and integer
  // weights keep their ratios. Rows of weight 0 are left out.
  void weigh_rows() {
    if (!columns_.row_weights && !columns_.balance_symbols) return;
    std::vector<double> weights(here_.rows.size(), 1.0);
    if (columns_.row_weights) {
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = columns_.row_weights[here_.rows[i]];
    }
    if (columns_.balance_symbols) balance(weights);
    const double most = weights.empty() ? 0 : *std::max_element(weights.begin(), weights.end());
    const double least = weights.empty() ? 0 : *std::min_element(weights.begin(), weights.end());
    if (most == least && most > 0) return;  // all weigh alike
    const int shift = most > 0 ? 19 - std::ilogb(most) : 0;
    std::size_t n = 0;
    here_.weights.resize(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] <= 0) continue;
      here_.rows[n] = here_.rows[i], here_.symbols[n] = here_.symbols[i];
      here_.weights[n++] = static_cast<std::uint32_t>(std::max(1.0, std::round(std::ldexp(weights[i], shift))));
    }
    here_.resize(n, true);
  }

  // Every symbol weighs as much as any other.
  void balance(std::vector<double>& weights) const {
    std::vector<double> of_symbol(static_cast<std::size_t>(columns_.n_symbols), 0.0);
    for (std::size_t i = 0; i < weights.size(); ++i) of_symbol[here_.symbols[i]] += weights[i];
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] > 0) weights[i] /= of_symbol[here_.symbols[i]];
    }
  }

  // The features that the column may use; the others are blocked, and so are the places that fill the last block of 64.
  void take_features() {
    features_.clear();
    std::int64_t wanted = options_.column_features;
    for (std::int64_t f = 0; f < rows_.n_features; ++f) {
      const bool all = options_.column_features >= rows_.n_features;
      if (all || static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(rows_.n_features - f))) < wanted) {
        features_.push_back(static_cast<std::int32_t>(f)), --wanted;
      }
    }
    std::fill(blocked_.begin(), blocked_.end(), std::uint8_t{255});
    for (const std::int32_t f : features_) blocked_[static_cast<std::size_t>(f)] = 0;
  }

  // Adds a leaf for rows begin..end-1, and opens it if it can be split.
  std::int32_t add_node(std::uint32_t begin, std::uint32_t end, std::int64_t depth) {
    const auto number = static_cast<std::int32_t>(grown_.size());
    view(begin, end);
    GrownNode grown;
    grown.symbol = here_.symbols[begin + (majority_ == 0 ? 0 : node_.ends[majority_ - 1])];
    grown.value = value_of_node();
    grown_.push_back(grown);
    if (depth == 0) whole_weight_ = node_.weight;
    if (depth >= options_.max_depth || node_.n < min_split_ || node_.ends.size() < 2) return number;
    const Found found = find();
    if (found.feature < 0) return number;
    const double gain = std::max(0.0, found.score - grown.value);
    if (gain / whole_weight_ + 1e-15 < options_.min_impurity_decrease) return number;
    open_.push_back({number, begin, end, depth, found, gain});
    return number;
  }

  // Makes node_ the rows begin..end-1: where their symbols end, and what they weigh.
  void view(std::uint32_t begin, std::uint32_t end) {
    node_.rows = here_.rows.data() + begin;
    node_.symbols = here_.symbols.data() + begin;
    node_.weights = weighted() ? here_.weights.data() + begin : nullptr;
    node_.n = end - begin;
    node_.ends.clear(), node_.totals.clear();
    node_.weight = 0;
    majority_ = 0;
    double total = 0;
    for (std::uint32_t i = 0; i < node_.n; ++i) {
      total += node_.weights ? node_.weights[i] : 1;
      if (i + 1 < node_.n && node_.symbols[i + 1] == node_.symbols[i]) continue;
      node_.ends.push_back(i + 1), node_.totals.push_back(total);
      node_.weight += total;
      if (total > node_.totals[majority_]) majority_ = node_.totals.size() - 1;
      total = 0;
    }
  }

  // sum f(c_k) over the node's weight for Gini's f(w) = w^2; for entropy sum (c_k log c_k) - c log c.
  double value_of_node() const {
    double sum = 0;
    const bool entropy = options_.criterion == Criterion::entropy;
    for (const double total : node_.totals) sum += term_of(total, entropy);
    return entropy ? sum - term_of(node_.weight, true) : sum / node_.weight;
  }

  // The best split as the options want it; should a few features or thresholds show none, all of them are tried.
  Found find() {
    Search search{blocked_.data(), static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(rows_.n_features))),
                  options_.splitter, options_.n_thresholds, random_.next(), min_leaf_,
                  options_.criterion == Criterion::entropy};
    const auto n_features = static_cast<std::int64_t>(features_.size());
    Found found;
    if (options_.split_features < n_features) {
      draw_features();
      search.blocked = blocked_in_node_.data();
      look(search, found);
      for (std::int64_t k = 0; k < options_.split_features; ++k) {
        blocked_in_node_[static_cast<std::size_t>(features_[static_cast<std::size_t>(k)])] = 255;
      }
      search.blocked = blocked_.data();
    }
    if (found.feature < 0) look(search, found);
    if (found.feature < 0 && search.splitter != Splitter::best) {
      search.splitter = Splitter::best;
      look(search, found);
    }
    return found;
  }

  void look(const Search& search, Found& found) {
    if (dense_) {
      dense_->find(node_, search, found);
    } else {
      sparse_->find(node_, search, found);
    }
  }

  // Moves as many features as a split may see to the front of features_, and opens them in blocked_in_node_.
  void draw_features() {
    if (blocked_in_node_.empty()) blocked_in_node_.assign(blocked_.size(), 255);
    for (std::int64_t k = 0; k < options_.split_features; ++k) {
      const auto other = k + static_cast<std::int64_t>(random_.below(features_.size() - static_cast<std::uint64_t>(k)));
      std::swap(features_[static_cast<std::size_t>(k)], features_[static_cast<std::size_t>(other)]);
      blocked_in_node_[static_cast<std::size_t>(features_[static_cast<std::size_t>(k)])] = 0;
    }
  }

  std::uint8_t cell(std::uint32_t row, std::int64_t feature) const {
    if (rows_.cells) return rows_.cells[row * rows_.stride + feature];
    const std::int32_t* first = rows_.features + rows_.starts[row];
    const std::int32_t* last = rows_.features + rows_.starts[row + 1];
    const std::int32_t* found = std::lower_bound(first, last, static_cast<std::int32_t>(feature));
    return found != last && *found == feature ? rows_.bins[found - rows_.features] : rows_.zero_bins[feature];
  }

  // Parts an open leaf's rows, the order of each side kept, so that both stay sorted by symbol.
  void split(const Open& open) {
    const Found& found = open.found;
    const bool with_weights = weighted();
    std::uint32_t left = open.begin, right = 0;
    int low = -1, high = 256;  // the largest bin on the left and the least on the right, missing values aside
    bool any_missing = false;
    double left_weight = 0, weight = 0;
    for (std::uint32_t i = open.begin; i < open.end; ++i) {
      const std::uint8_t bin = cell(here_.rows[i], found.feature);
      const bool is_left = goes_left(bin, found.bin, found.missing_left);
      const double its = with_weights ? here_.weights[i] : 1;
      weight += its, left_weight += is_left ? its : 0.0;
      if (bin == kMissing) {
        any_missing = true;
      } else if (is_left) {
        low = std::max<int>(low, bin);
      } else {
        high = std::min<int>(high, bin);
      }
      if (is_left) {
        here_.move(left++, here_, i, with_weights);
      } else {
        there_.move(right++, here_, i, with_weights);
      }
    }
    for (std::uint32_t k = 0; k < right; ++k) here_.move(left + k, there_, k, with_weights);
    const bool missing_left = any_missing ? found.missing_left : left_weight > weight - left_weight;
    const auto node = static_cast<std::size_t>(open.node);
    grown_[node].test = Split::pack(found.feature, missing_left, last_bin_left(found, low, high));
    grown_[node].gain = open.gain;
    const std::int32_t left_node = add_node(open.begin, left, open.depth + 1);
    grown_[node].left = left_node;
    const std::int32_t right_node = add_node(left, open.end, open.depth + 1);
    grown_[node].right = right_node;
  }

  // Between the two sides' bins nearest to each other any bin parts the node alike: the one half way is taken, as CART does,
  // or the one that was drawn.
  std::uint8_t last_bin_left(const Found& found, int low, int high) const {
    if (low < 0) return kMissing;     // only missing values go left
    if (high > 255) return kMissing - 1;  // only missing values go right
    if (options_.splitter == Splitter::random) return found.bin;
    const double* centres = rows_.centres + rows_.centre_starts[found.feature];
    return bin_between(centres, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high), 0.5);
  }

  // Minimal cost-complexity pruning (Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", chapter
  // 3): a branch stays if it takes more off the impurity than ccp_alpha for each of its leaves but one.
  void prune() {
    std::vector<double> cost(grown_.size());
    for (std::size_t k = grown_.size(); k-- > 0;) {  // children come after their parents
      GrownNode& node = grown_[k];
      const double as_leaf = -node.value / whole_weight_ + options_.ccp_alpha;
      cost[k] = as_leaf;
      if (node.left == kLeaf) continue;
      const double as_branch = cost[static_cast<std::size_t>(node.left)] + cost[static_cast<std::size_t>(node.right)];
      if (as_leaf <= as_branch + 1e-15) {
        node.left = node.right = kLeaf;
      } else {
        cost[k] = as_branch;
      }
    }
  }

  // The tree in its final form: splits in preorder, leaves inside their parents.
  Tree emit() const {
    Tree tree;
    std::vector<std::pair<std::int32_t, std::int32_t*>> todo;  // nodes, and where their reference belongs
    std::size_t n_splits = 0;
    for (const GrownNode& node : grown_) n_splits += node.left != kLeaf;
    tree.splits.reserve(n_splits);  // references into it stay valid
    todo.emplace_back(0, &tree.root);
    while (!todo.empty()) {
      const auto [number, reference] = todo.back();
      todo.pop_back();
      const GrownNode& node = grown_[static_cast<std::size_t>(number)];
      if (node.left == kLeaf) {
        *reference = ~std::int32_t{node.symbol};
        if (options_.leaf_distributions) {
          *reference = ~static_cast<std::int32_t>(tree.leaf_symbols.size());
          tree.leaf_symbols.push_back(node.symbol);
        }
        continue;
      }
      *reference = static_cast<std::int32_t>(tree.splits.size());
      tree.splits.push_back({0, 0, node.test});
      tree.gains.push_back(node.gain);
      todo.emplace_back(node.right, &tree.splits.back().right);
      todo.emplace_back(node.left, &tree.splits.back().left);
    }
    if (options_.leaf_distributions) count_leaves(tree);
    return tree;
  }

  void count_leaves(Tree& tree) const {
    const auto N = static_cast<std::size_t>(columns_.n_symbols);
    std::vector<double> counts(tree.leaf_symbols.size() * N, 0.0);
    for (std::size_t i = 0; i < here_.rows.size(); ++i) {
      std::int32_t at = tree.root;
      while (at >= 0) {
        const Split& split = tree.splits[static_cast<std::size_t>(at)];
        const std::uint8_t bin = cell(here_.rows[i], split.test >> 9);
        at = goes_left(bin, split.test & 255, split.test >> 8 & 1) ? split.left : split.right;
      }
      counts[static_cast<std::size_t>(~at) * N + here_.symbols[i]] += weighted() ? here_.weights[i] : 1;
    }
    tree.leaf_shares.resize(counts.size());
    for (std::size_t leaf = 0; leaf < tree.leaf_symbols.size(); ++leaf) {
      const double* first = counts.data() + leaf * N;
      const double most = *std::max_element(first, first + N);
      for (std::size_t k = 0; k < N; ++k) tree.leaf_shares[leaf * N + k] = share(first[k], most);
    }
  }

  // In units of 1/255 of the most frequent symbol's; one that was seen is never 0.
  static std::uint8_t share(double count, double most) {
    return count > 0 ? static_cast<std::uint8_t>(std::max(1.0, std::round(255 * count / most))) : 0;
  }

  // The tree of a column without rows: it says symbol 0 and, of the symbols' chances, that all are alike.
  Tree saying_nothing() const {
    Tree tree;
    if (options_.leaf_distributions) {
      tree.leaf_symbols.push_back(0);
      tree.leaf_shares.assign(static_cast<std::size_t>(columns_.n_symbols), 255);
    }
    return tree;
  }

  const BinnedRows& rows_;
  const TreeColumns& columns_;
  const TreeOptions& options_;
  std::unique_ptr<DenseFinder> dense_;
  std::unique_ptr<SparseFinder> sparse_;
  Random random_{0};
  Rows here_, there_;
  std::vector<std::int32_t> features_;
  std::vector<std::uint8_t> blocked_, blocked_in_node_;
  std::uint32_t min_leaf_ = 1, min_split_ = 2;
  double whole_weight_ = 0;
  Node node_;
  std::size_t majority_ = 0;
  std::vector<GrownNode> grown_;
  std::vector<Open> open_;
};

Trees together(std::vector<Tree>& grown, std::int64_t n_symbols) {
  Trees all;
  all.starts.push_back(0), all.leaf_starts.push_back(0);
  std::size_t n_splits = 0, n_leaves = 0;
  for (const Tree& tree : grown) n_splits += tree.splits.size(), n_leaves += tree.leaf_symbols.size();
  all.splits.reserve(n_splits), all.gains.reserve(n_splits);
  all.leaf_symbols.reserve(n_leaves), all.leaf_shares.reserve(n_leaves * static_cast<std::size_t>(n_symbols));
  for (Tree& tree : grown) {
    all.splits.insert(all.splits.end(), tree.splits.begin(), tree.splits.end());
    all.gains.insert(all.gains.end(), tree.gains.begin(), tree.gains.end());
    all.leaf_symbols.insert(all.leaf_symbols.end(), tree.leaf_symbols.begin(), tree.leaf_symbols.end());
    all.leaf_shares.insert(all.leaf_shares.end(), tree.leaf_shares.begin(), tree.leaf_shares.end());
    all.starts.push_back(static_cast<std::int64_t>(all.splits.size()));
    all.leaf_starts.push_back(static_cast<std::int64_t>(all.leaf_symbols.size()));
    all.roots.push_back(tree.root);
    tree = Tree{};
  }
  return all;
}

}  // namespace

Trees grow_trees(const BinnedRows& rows, const TreeColumns& columns, const TreeOptions& options, int n_threads) {
  std::vector<Tree> grown(static_cast<std::size_t>(columns.n_columns));
  std::vector<std::unique_ptr<Grower>> growers(static_cast<std::size_t>(n_threads));
  parallel_for(columns.n_columns, n_threads, [&](int thread, std::int64_t s) {
    auto& grower = growers[static_cast<std::size_t>(thread)];
    if (!grower) grower = std::make_unique<Grower>(rows, columns, options);
    grown[static_cast<std::size_t>(s)] = grower->grow(s);
  });
  return together(grown, columns.n_symbols);
}

}  // namespace nary
