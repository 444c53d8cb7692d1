// What the files of the Python module share: arrays in and out, told apart by dtype alone and never converted.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace nary::python {

template <class T, int kAxes>
using In = nb::ndarray<const T, nb::numpy, nb::ndim<kAxes>, nb::c_contig, nb::device::cpu>;
template <class T, int kAxes>
using Out = nb::ndarray<T, nb::numpy, nb::ndim<kAxes>, nb::c_contig, nb::device::cpu>;

inline std::int64_t size(std::size_t n) { return static_cast<std::int64_t>(n); }

}  // namespace nary::python

void define_trees(nb::module_& m);
void define_linear(nb::module_& m);
