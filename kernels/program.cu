// All kernels of one search, as one program. The compiler is given SAMPLED (which search),
// each policy, WIDE (the node format) and PROFILE (count node visits) as 0 or 1.
#if SAMPLED
#include "long_lists.cu"
#include "offsets.cu"
#include "planes.cu"
#include "sampled.cu"
#else
#include "match.cu"
#include "offsets.cu"
#include "order.cu"
#include "print.cu"
#include "queries.cu"
#endif
