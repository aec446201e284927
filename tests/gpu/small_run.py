"""A small run of every kernel, for `compute-sanitizer --tool ... python tests/gpu/small_run.py`.

The device is used through the library that is named after it, else through PyCUDA. Ends with 1 if
the backends differ.
"""

import sys

from helpers.both_backends import differences, kmer_case, kmer_differences, random_case
from helpers.device_cases import wrong_columns, wrong_text
from helpers.text_cases import STYLES, TEXT_CASES

from mummergpu.cuda.device_library import PYCUDA, device_opener
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.tree.policy import Policy

POLICIES = [Policy.from_code(code) for code in ("m", "none", "Tn", "QRTmrtn", "Tt")]


def main():
    device = device_opener(sys.argv[1] if len(sys.argv) > 1 else PYCUDA)(0)
    cache = KernelCache(None, print)
    found = []
    for wide in (False, True):
        for seed in (0, 1):
            case = random_case(seed, 1200, 40)
            found += differences(device, cache, case, POLICIES[: 5 if seed else 2], wide)
    # Steps of one base, of a few, of more than a word; lists for one thread, and for many.
    for seed, minimum_length in ((0, 4), (1, 12), (2, 60)):
        case = kmer_case(seed, minimum_length)
        lengths = (3, 2 + minimum_length // 10)
        samplings = [*map(KmerSampling, lengths), KmerSampling(3, 1 + minimum_length // 6)]
        found += kmer_differences(device, cache, case, samplings)
    for number, text_case in enumerate(TEXT_CASES):
        text = wrong_text(device, cache, text_case, STYLES[number % len(STYLES)])
        found += filter(None, (text, wrong_columns(device, cache, text_case)))
    device.close()
    print("different:" if found else "the backends agree", *found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
