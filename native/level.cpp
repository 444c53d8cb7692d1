// One CPU level's kernels: compiled once for each level with that level's instructions (see CMakeLists.txt).
#include "code.inc.h"
#include "counts.inc.h"
#include "descent.inc.h"
#include "fold.inc.h"
#include "histogram.inc.h"
#include "kernels.h"
#include "newton.inc.h"
#include "smo.inc.h"

#define NARY_TEXT_OF(name) #name
#define NARY_TEXT(name) NARY_TEXT_OF(name)
#define NARY_JOIN_OF(a, b) a##b
#define NARY_JOIN(a, b) NARY_JOIN_OF(a, b)

namespace nary {

// Sixteen 16-byte registers hold half a tile of floats and its addresses; wider levels hold a whole tile.
constexpr int kFloatLanes = NARY_VECTOR_BYTES == 16 ? 32 : 64;

extern const Kernels NARY_JOIN(kernels_, NARY_LEVEL);
const Kernels NARY_JOIN(kernels_, NARY_LEVEL) = {
    NARY_TEXT(NARY_LEVEL),
    {lay_symbols<float>, combine<float>, fold<float, kFloatLanes>, finish<float>, nearest<float>},
    {lay_symbols<std::uint16_t>, combine<std::uint16_t>, fold<std::uint16_t, 64>, finish<std::uint16_t>, nearest<std::uint16_t>},
    {draw_row<std::uint8_t>, absolute<std::uint8_t>, hamming<std::uint8_t>},
    {draw_row<std::uint16_t>, absolute<std::uint16_t>, hamming<std::uint16_t>},
    {{sum_squares<std::uint16_t>, score_squares<std::uint16_t>},
     {sum_squares<std::uint32_t>, score_squares<std::uint32_t>},
     sum_any,
     sum_bins,
     ranges},
    {sweep<float>, gather<float>, measure<float>, slope<float>, bend<float>, trace<float>, probe<float>, solve<float>,
     dense_update<float>, descend<float>, dense_scores<float>, sparse_scores<float>, square<float>, smo<float>, multiply<float>,
     combine<float>},
    {sweep<double>, gather<double>, measure<double>, slope<double>, bend<double>, trace<double>, probe<double>, solve<double>,
     dense_update<double>, descend<double>, dense_scores<double>, sparse_scores<double>, square<double>, smo<double>, multiply<double>,
     combine<double>},
};

}  // namespace nary
