/* All kernels for one instruction set with vectors of 64 bytes.
 *
 *     native.c  ->  avx512.h  ->  isa.h
 *
 * In: ISA, TARGET (its features), VNNI, DOT_BF16. With EMULATED a test brings the instructions as plain C.
 */

#define BYTES 64
#define ROWS 6
#define ALONE 7
#define STRIPS STRIP(1, 4) STRIP(2, 4) STRIP(3, 4) STRIP(4, 4) STRIP(5, 4) STRIP(6, 4)
#define STRIPS_INT8 STRIPS
#if !defined(EMULATED)
BEGIN_TARGET(TARGET)
#endif
#include "isa.h"
#if !defined(EMULATED)
END_TARGET
#endif
#undef TARGET
