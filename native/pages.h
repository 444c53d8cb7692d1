// Memory that is read in no order, in pages as large as the machine has: fewer of them are missed on the way.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace nary {

template <class T>
struct LargePages {
  typedef T value_type;
  static constexpr std::size_t kPage = std::size_t{1} << 21;

  LargePages() = default;
  template <class U>
  LargePages(const LargePages<U>&) noexcept {}

  T* allocate(std::size_t n) {
    const std::size_t page = n * sizeof(T) >= kPage ? kPage : 64;
    const std::size_t bytes = (n * sizeof(T) + page - 1) / page * page;
    void* memory = std::aligned_alloc(page, bytes);
    if (!memory) throw std::bad_alloc();
#ifdef __linux__
    if (page == kPage) madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: where it is not granted nothing changes
#endif
    return static_cast<T*>(memory);
  }

  void deallocate(T* memory, std::size_t) noexcept { std::free(memory); }

  template <class U>
  bool operator==(const LargePages<U>&) const noexcept { return true; }
  template <class U>
  bool operator!=(const LargePages<U>&) const noexcept { return false; }
};

template <class T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace nary
