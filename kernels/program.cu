// All kernels, as one program that is compiled for one set of policies. The compiler is
// given each policy, WIDE (the node format) and PROFILE (count node visits) as 0 or 1.
#include "match.cu"
#include "offsets.cu"
#include "order.cu"
#include "print.cu"
