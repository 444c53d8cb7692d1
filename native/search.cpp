// Distances between codewords, and the search for the random code whose two nearest words lie furthest apart.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "drivers.h"
#include "kernels.h"
#include "parallel.h"

namespace nary {
namespace {

constexpr std::int64_t kMostDraws = 1000000;  // of one column before a search is given up

template <class S>
struct Of;
template <>
struct Of<std::uint8_t> {
  static const CodeKernels<std::uint8_t>& kernels() { return active().code_u8; }
};
template <>
struct Of<std::uint16_t> {
  static const CodeKernels<std::uint16_t>& kernels() { return active().code_u16; }
};

template <class S>
void distances_to(bool absolute, const S* word, const S* others, std::int64_t n, std::int64_t stride,
                  std::int32_t* out) {
  const CodeKernels<S>& kernels = Of<S>::kernels();
  (absolute ? kernels.absolute : kernels.hamming)(word, others, n, stride, out);
}

// One random code being made. Words lie in rows; scratch memory is kept from candidate to candidate.
template <class S>
class Candidate {
 public:
  Candidate(std::int64_t n_classes, std::int64_t n_columns, std::uint32_t n_symbols, bool distinct_columns)
      : K_(n_classes), L_(n_columns), stride_((n_columns + kTile - 1) / kTile * kTile), N_(n_symbols),
        distinct_(distinct_columns), symbols_(static_cast<std::size_t>(K_ * stride_)),
        marks_(static_cast<std::size_t>(L_)), sorted_(static_cast<std::size_t>(L_)), forth_(n_symbols),
        distances_(static_cast<std::size_t>(K_)) {}

  const S* word(std::int64_t c) const { return symbols_.data() + c * stride_; }

  // Draws candidate `index`; false if a column could not be told from the others in kMostDraws draws.
  bool draw(std::uint64_t seed, std::int64_t index) {
    const std::uint64_t key = splitmix64(seed, static_cast<std::uint64_t>(index));
    const CodeKernels<S>& kernels = Of<S>::kernels();
    for (std::int64_t c = 0; c < K_; ++c) kernels.draw_row(key, c, L_, N_, symbols_.data() + c * stride_);
    mark_all();
    if (!suspicious()) return true;
    return redraw(key);
  }

  // The smallest distance between two words; stops early once it is certain to be below `floor`.
  std::int32_t min_distance(bool absolute, const std::atomic<std::int64_t>& floor_key, std::int64_t index) {
    std::int32_t smallest = INT32_MAX;
    for (std::int64_t c = 0; c + 1 < K_; ++c) {
      distances_to(absolute, word(c), word(c + 1), K_ - c - 1, stride_, distances_.data());
      smallest = std::min(smallest, *std::min_element(distances_.begin(), distances_.begin() + (K_ - c - 1)));
      if (rank(smallest, index) < floor_key.load(std::memory_order_relaxed)) break;
    }
    return smallest;
  }

  // Larger is better: by minimum distance, then the earlier candidate.
  static std::int64_t rank(std::int32_t min_distance, std::int64_t index) {
    return (static_cast<std::int64_t>(min_distance) << 31) | (INT32_MAX - index);
  }

 private:
  S& at(std::int64_t c, std::int64_t s) { return symbols_[static_cast<std::size_t>(c * stride_ + s)]; }

  // Bit c of a column's mark says whether classes c and c + 1 share its symbol, for the first 65 classes: the same for
  // a column and its relabellings, so columns with different marks differ.
  void mark_all() {
    std::fill(marks_.begin(), marks_.end(), 0);
    for (std::int64_t c = 1; c < std::min<std::int64_t>(K_, 65); ++c) {
      const S* above = word(c - 1);
      const S* here = word(c);
      for (std::int64_t s = 0; s < L_; ++s) {
        marks_[static_cast<std::size_t>(s)] = marks_[static_cast<std::size_t>(s)] << 1 | (above[s] == here[s]);
      }
    }
  }

  std::uint64_t mark(std::int64_t s) {
    std::uint64_t bits = 0;
    for (std::int64_t c = 1; c < std::min<std::int64_t>(K_, 65); ++c) bits = bits << 1 | (at(c - 1, s) == at(c, s));
    return bits;
  }

  std::uint64_t constant_mark() const {
    const std::int64_t bits = std::min<std::int64_t>(K_, 65) - 1;
    return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  }

  // Whether some column may be constant or repeat another.
  bool suspicious() {
    std::copy(marks_.begin(), marks_.end(), sorted_.begin());
    std::sort(sorted_.begin(), sorted_.end());
    const bool constant = std::binary_search(sorted_.begin(), sorted_.end(), constant_mark());
    const bool repeated = distinct_ && std::adjacent_find(sorted_.begin(), sorted_.end()) != sorted_.end();
    return constant || repeated;
  }

  bool constant(std::int64_t s) {
    for (std::int64_t c = 1; c < K_; ++c) {
      if (at(c, s) != at(0, s)) return false;
    }
    return true;
  }

  // Whether column b is column a under other names for its symbols.
  bool repeats(std::int64_t a, std::int64_t b) {
    constexpr std::int32_t kUnseen = -1;
    std::fill(forth_.begin(), forth_.end(), kUnseen);
    std::vector<std::int32_t>& forth = forth_;
    std::vector<bool> taken(N_, false);
    for (std::int64_t c = 0; c < K_; ++c) {
      const S from = at(c, a), to = at(c, b);
      if (forth[from] == kUnseen) {
        if (taken[to]) return false;
        forth[from] = to;
        taken[to] = true;
      } else if (forth[from] != to) {
        return false;
      }
    }
    return true;
  }

  // Takes the columns in order and draws a bad one again, by a key of its own for each try, until it is good.
  bool redraw(std::uint64_t key) {
    std::unordered_multimap<std::uint64_t, std::int64_t> accepted;
    for (std::int64_t s = 0; s < L_; ++s) {
      std::int64_t draws = 0;
      while (constant(s) || known(accepted, s)) {
        if (++draws > kMostDraws) return false;
        const std::uint64_t next = splitmix64(~key, static_cast<std::uint64_t>(draws));
        for (std::int64_t c = 0; c < K_; ++c) at(c, s) = static_cast<S>(draw_symbol(next, c, s, L_, N_));
      }
      if (distinct_) accepted.emplace(mark(s), s);
    }
    return true;
  }

  bool known(const std::unordered_multimap<std::uint64_t, std::int64_t>& accepted, std::int64_t s) {
    const auto range = accepted.equal_range(mark(s));
    return std::any_of(range.first, range.second, [&](const auto& entry) { return repeats(entry.second, s); });
  }

  const std::int64_t K_, L_, stride_;
  const std::uint32_t N_;
  const bool distinct_;
  std::vector<S> symbols_;
  std::vector<std::uint64_t> marks_, sorted_;
  std::vector<std::int32_t> forth_, distances_;
};

}  // namespace

template <class S>
void distances(const S* words, std::int64_t n_words, std::int64_t stride, std::int64_t first, std::int64_t last,
               bool absolute, int n_threads, std::int32_t* out) {
  parallel_for(last - first, n_threads, [&](int, std::int64_t item) {
    distances_to(absolute, words + (first + item) * stride, words, n_words, stride, out + item * n_words);
  });
}

template <class S>
SearchResult search_random(std::uint64_t seed, std::int64_t first, std::int64_t last, std::int32_t floor,
                           std::int64_t n_classes, std::int64_t n_columns, std::uint32_t n_symbols, bool absolute,
                           bool distinct_columns, int n_threads, S* best) {
  std::vector<Candidate<S>> scratch;
  for (int thread = 0; thread < n_threads; ++thread) {
    scratch.emplace_back(n_classes, n_columns, n_symbols, distinct_columns);
  }
  const std::int64_t start = floor < 0 ? -1 : Candidate<S>::rank(floor, 0);
  std::atomic<std::int64_t> best_rank{start};
  parallel_for(last - first, n_threads, [&](int thread, std::int64_t item) {
    const std::int64_t index = first + item;
    Candidate<S>& candidate = scratch[static_cast<std::size_t>(thread)];
    if (!candidate.draw(seed, index)) return;
    const std::int64_t rank = Candidate<S>::rank(candidate.min_distance(absolute, best_rank, index), index);
    std::int64_t seen = best_rank.load();
    while (rank > seen && !best_rank.compare_exchange_weak(seen, rank)) {
    }
  });
  const std::int64_t rank = best_rank.load();
  if (rank == start) return {-1, 0};
  const SearchResult result{INT32_MAX - (rank & INT32_MAX), static_cast<std::int32_t>(rank >> 31)};
  scratch[0].draw(seed, result.candidate);
  for (std::int64_t c = 0; c < n_classes; ++c) {
    std::copy(scratch[0].word(c), scratch[0].word(c) + n_columns, best + c * n_columns);
  }
  return result;
}

template void distances(const std::uint8_t*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, int,
                        std::int32_t*);
template void distances(const std::uint16_t*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, int,
                        std::int32_t*);
template SearchResult search_random(std::uint64_t, std::int64_t, std::int64_t, std::int32_t, std::int64_t, std::int64_t,
                                    std::uint32_t, bool, bool, int, std::uint8_t*);
template SearchResult search_random(std::uint64_t, std::int64_t, std::int64_t, std::int32_t, std::int64_t, std::int64_t,
                                    std::uint32_t, bool, bool, int, std::uint16_t*);

}  // namespace nary
