// The trees' part of the Python module nary._native: binning, growing and walking. Callers are checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <tuple>

#include "module.h"
#include "trees.h"

namespace {

using nary::python::In;
using nary::python::Out;
using nary::python::size;

// A vector as a NumPy array that owns it.
template <class T, class Item = T>
nb::ndarray<nb::numpy, Item, nb::ndim<1>> array_of(std::vector<T>&& values) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  auto* data = reinterpret_cast<Item*>(kept->data());
  const std::size_t n = kept->size() * (sizeof(T) / sizeof(Item));
  nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  kept.release();
  return nb::ndarray<nb::numpy, Item, nb::ndim<1>>(data, {n}, owner);
}

using Shape = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // stride, copies, spread
using Sparse = std::tuple<In<std::int64_t, 1>, In<std::int32_t, 1>, In<std::uint8_t, 1>, In<std::uint8_t, 1>>;

nary::BinnedRows dense_rows(const In<std::uint8_t, 2>& cells, const Shape& shape, std::int64_t n_features) {
  const auto [stride, copies, spread] = shape;
  return {n_features, cells.data(), stride, copies, spread, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, false};
}

nary::BinnedRows sparse_rows(const Sparse& parts) {
  const auto& [starts, features, bins, zero_bins] = parts;
  return {size(zero_bins.shape(0)), nullptr, 0, 1, 0, starts.data(), features.data(), bins.data(), zero_bins.data(),
          nullptr, nullptr, false};
}

struct Options : nary::TreeOptions {};

auto grow(nary::BinnedRows rows, const In<double, 1>& centres, const In<std::int64_t, 1>& centre_starts,
          bool any_missing, const In<std::int64_t, 1>& class_starts, const In<std::int64_t, 1>& starts,
          const In<std::int32_t, 1>& classes, const In<std::uint16_t, 1>& symbols, std::int64_t first,
          std::int64_t n_symbols, const nb::object& weights, bool balance_symbols, const Options& options,
          int n_threads) {
  rows.centres = centres.data(), rows.centre_starts = centre_starts.data(), rows.any_missing = any_missing;
  const double* row_weights = weights.is_none() ? nullptr : nb::cast<In<double, 1>>(weights).data();
  const nary::TreeColumns columns{class_starts.data(), starts.data(), classes.data(), symbols.data(),
                                  size(starts.shape(0)) - 1, first, n_symbols, row_weights, balance_symbols};
  nary::Trees trees;
  {
    const nb::gil_scoped_release release;
    trees = nary::grow_trees(rows, columns, options, n_threads);
  }
  return nb::make_tuple(array_of<nary::Split, std::int32_t>(std::move(trees.splits)), array_of(std::move(trees.gains)),
                        array_of(std::move(trees.starts)), array_of(std::move(trees.roots)),
                        array_of(std::move(trees.leaf_symbols)), array_of(std::move(trees.leaf_shares)),
                        array_of(std::move(trees.leaf_starts)));
}

template <class Value>
void walk(const nary::BinnedRows& rows, std::int64_t n_rows, const In<std::int32_t, 1>& splits,
          const In<std::int64_t, 1>& starts, const In<std::int32_t, 1>& roots, int n_threads, const Out<Value, 2>& out) {
  const nary::TreesView trees{reinterpret_cast<const nary::Split*>(splits.data()), starts.data(), roots.data(),
                              size(roots.shape(0))};
  const nb::gil_scoped_release release;
  nary::walk_trees<Value>(rows, n_rows, trees, n_threads, out.data());
}

template <class Value>
void define_walk(nb::module_& m) {
  m.def("walk_dense", [](In<std::uint8_t, 2> cells, Shape shape, std::int64_t n_features, In<std::int32_t, 1> splits,
                         In<std::int64_t, 1> starts, In<std::int32_t, 1> roots, int n_threads, Out<Value, 2> out) {
    walk<Value>(dense_rows(cells, shape, n_features), size(cells.shape(0)), splits, starts, roots, n_threads, out);
  }, "cells"_a.noconvert(), "shape"_a, "n_features"_a, "splits"_a.noconvert(), "starts"_a.noconvert(),
        "roots"_a.noconvert(), "n_threads"_a, "out"_a.noconvert());
  m.def("walk_sparse", [](Sparse parts, In<std::int32_t, 1> splits, In<std::int64_t, 1> starts,
                          In<std::int32_t, 1> roots, int n_threads, Out<Value, 2> out) {
    walk<Value>(sparse_rows(parts), size(std::get<0>(parts).shape(0)) - 1, splits, starts, roots, n_threads, out);
  }, "parts"_a, "splits"_a.noconvert(), "starts"_a.noconvert(), "roots"_a.noconvert(), "n_threads"_a,
        "out"_a.noconvert());
}

template <class Real>
void define_bins(nb::module_& m) {
  m.def("bin_rows", [](In<Real, 2> values, In<double, 1> edges, In<std::int64_t, 1> edge_starts,
                       Shape shape, int n_threads, Out<std::uint8_t, 2> cells) {
    const auto [stride, copies, spread] = shape;
    const nb::gil_scoped_release release;
    nary::bin_rows<Real>(values.data(), size(values.shape(0)), size(values.shape(1)), edges.data(),
                         edge_starts.data(), stride, copies, spread, n_threads, cells.data());
  }, "values"_a.noconvert(), "edges"_a.noconvert(), "edge_starts"_a.noconvert(), "shape"_a,
        "n_threads"_a, "cells"_a.noconvert());
  m.def("bin_entries", [](In<Real, 1> values, In<std::int32_t, 1> features, In<double, 1> edges,
                          In<std::int64_t, 1> edge_starts, int n_threads, Out<std::uint8_t, 1> bins) {
    const nb::gil_scoped_release release;
    nary::bin_entries<Real>(values.data(), features.data(), size(values.shape(0)), edges.data(), edge_starts.data(),
                            n_threads, bins.data());
  }, "values"_a.noconvert(), "features"_a.noconvert(), "edges"_a.noconvert(), "edge_starts"_a.noconvert(),
        "n_threads"_a, "bins"_a.noconvert());
}

}  // namespace

void define_trees(nb::module_& m) {
  nb::class_<Options>(m, "TreeOptions")
      .def("__init__", [](Options* self, int splitter, bool entropy, std::int64_t n_thresholds, std::int64_t max_depth,
                          std::int64_t max_leaf_nodes, double min_samples_split, bool split_is_fraction,
                          double min_samples_leaf, bool leaf_is_fraction, std::int64_t column_features,
                          std::int64_t split_features, double row_fraction, bool bootstrap,
                          double min_impurity_decrease, double ccp_alpha, bool leaf_distributions, std::uint64_t seed) {
        new (self) Options{{static_cast<nary::Splitter>(splitter),
                            entropy ? nary::Criterion::entropy : nary::Criterion::gini, n_thresholds, max_depth,
                            max_leaf_nodes, min_samples_split, min_samples_leaf, split_is_fraction, leaf_is_fraction,
                            column_features, split_features, row_fraction, bootstrap, min_impurity_decrease, ccp_alpha,
                            leaf_distributions, seed}};
      }, nb::kw_only(), "splitter"_a, "entropy"_a, "n_thresholds"_a, "max_depth"_a, "max_leaf_nodes"_a,
           "min_samples_split"_a, "split_is_fraction"_a, "min_samples_leaf"_a, "leaf_is_fraction"_a,
           "column_features"_a, "split_features"_a, "row_fraction"_a, "bootstrap"_a, "min_impurity_decrease"_a,
           "ccp_alpha"_a, "leaf_distributions"_a, "seed"_a);
  m.def("grow_dense", [](In<std::uint8_t, 2> cells, Shape shape, In<double, 1> centres,
                         In<std::int64_t, 1> centre_starts, bool any_missing, In<std::int64_t, 1> class_starts,
                         In<std::int64_t, 1> starts, In<std::int32_t, 1> classes, In<std::uint16_t, 1> symbols,
                         std::int64_t first, std::int64_t n_symbols, nb::object weights, bool balance_symbols,
                         const Options& options, int n_threads) {
    return grow(dense_rows(cells, shape, size(centre_starts.shape(0)) - 1), centres, centre_starts, any_missing,
                class_starts, starts, classes, symbols, first, n_symbols, weights, balance_symbols, options, n_threads);
  }, "cells"_a.noconvert(), "shape"_a, "centres"_a.noconvert(), "centre_starts"_a.noconvert(), "any_missing"_a,
        "class_starts"_a.noconvert(), "starts"_a.noconvert(), "classes"_a.noconvert(), "symbols"_a.noconvert(),
        "first"_a, "n_symbols"_a, "weights"_a.none(), "balance_symbols"_a, "options"_a, "n_threads"_a);
  m.def("grow_sparse", [](Sparse parts, In<double, 1> centres, In<std::int64_t, 1> centre_starts, bool any_missing,
                          In<std::int64_t, 1> class_starts, In<std::int64_t, 1> starts, In<std::int32_t, 1> classes,
                          In<std::uint16_t, 1> symbols, std::int64_t first, std::int64_t n_symbols, nb::object weights,
                          bool balance_symbols, const Options& options, int n_threads) {
    return grow(sparse_rows(parts), centres, centre_starts, any_missing, class_starts, starts, classes, symbols, first,
                n_symbols, weights, balance_symbols, options, n_threads);
  }, "parts"_a, "centres"_a.noconvert(), "centre_starts"_a.noconvert(), "any_missing"_a, "class_starts"_a.noconvert(),
        "starts"_a.noconvert(), "classes"_a.noconvert(), "symbols"_a.noconvert(), "first"_a, "n_symbols"_a,
        "weights"_a.none(), "balance_symbols"_a, "options"_a, "n_threads"_a);
  m.def("mark_dense", [](In<std::uint8_t, 2> cells, Shape shape, In<std::uint8_t, 1> zero_bins, int n_threads,
                         Out<std::uint64_t, 1> marks) {
    nary::BinnedRows rows = dense_rows(cells, shape, size(zero_bins.shape(0)));
    rows.zero_bins = zero_bins.data();
    const nb::gil_scoped_release release;
    nary::mark_rows(rows, size(cells.shape(0)), n_threads, marks.data());
  }, "cells"_a.noconvert(), "shape"_a, "zero_bins"_a.noconvert(), "n_threads"_a, "marks"_a.noconvert());
  m.def("mark_sparse", [](Sparse parts, int n_threads, Out<std::uint64_t, 1> marks) {
    const nary::BinnedRows rows = sparse_rows(parts);
    const nb::gil_scoped_release release;
    nary::mark_rows(rows, size(std::get<0>(parts).shape(0)) - 1, n_threads, marks.data());
  }, "parts"_a, "n_threads"_a, "marks"_a.noconvert());
  define_walk<std::int16_t>(m);
  define_walk<std::int32_t>(m);
  define_bins<float>(m);
  define_bins<double>(m);
}
