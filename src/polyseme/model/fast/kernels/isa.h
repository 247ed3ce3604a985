/* All kernels for one instruction set, which native.c defines before including this; the definitions are removed at the end.
 *
 *     native.c  ->  isa.h  ->  vector.h, int8.h, product.h, lstm.h, read.h, unpack.h, encode.h, windows.h, pack.h,
 *     gradients.h, loss.h, updates.h, dropout.h, dots.h
 *
 * In: ISA, BYTES, VNNI, DOT_BF16, ROWS, ALONE, STRIPS, STRIPS_INT8. Out: `struct kernels` under the name of the ISA.
 */

#include "vector.h"
#include "int8.h"
#include "product.h"
#include "lstm.h"
#include "read.h"
#include "pack.h"
#include "gradients.h"
#include "loss.h"
#include "unpack.h"
#include "encode.h"
#include "windows.h"
#include "updates.h"
#include "dropout.h"
#include "dots.h"
static const struct kernels ISA = {TEXT(ISA), NAME(map), NAME(product), NAME(forward), NAME(read), NAME(backward),
                                   NAME(outer), NAME(loss), NAME(dots), NAME(above), NAME(squares), NAME(totals),
                                   NAME(unpack), NAME(filter), NAME(highway), NAME(scan), NAME(copy_panel),
                                   NAME(round_panel), NAME(update), NAME(square_sum), NAME(drop)};

#undef vec
#undef ivec
#undef LANES
#undef TALL
#undef ACROSS
#undef WIDE
#undef ISA
#undef BYTES
#undef VNNI
#undef DOT_BF16
#undef ROWS
#undef ALONE
#undef STRIPS
#undef STRIPS_INT8
