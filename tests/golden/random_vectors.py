"""Makes the numbers in tests/core/random_test.cpp by an independent route: Philox in Python's big integers, normals by the
standard library's NormalDist. Run it with any Python 3.8+ and compare."""
import struct
from statistics import NormalDist

# Coefficients of algorithm AS 241, highest power first: centre, middle and far tail, numerator and denominator.
A = [2509.0809287301227, 33430.57558358813, 67265.7709270087, 45921.95393154987, 13731.69376550946, 1971.5909503065513, 133.14166789178438, 3.3871328727963665]
B = [5226.495278852854, 28729.085735721943, 39307.89580009271, 21213.794301586597, 5394.196021424751, 687.1870074920579, 42.31333070160091, 1.0]
C = [0.0007745450142783414, 0.022723844989269184, 0.2417807251774506, 1.2704582524523684, 3.6478483247632045, 5.769497221460691, 4.630337846156546, 1.4234371107496835]
D = [1.0507500716444169e-09, 0.0005475938084995345, 0.015198666563616457, 0.14810397642748008, 0.6897673349851, 1.6763848301838038, 2.053191626637759, 1.0]
E = [2.0103343992922881e-07, 2.7115555687434876e-05, 0.0012426609473880784, 0.026532189526576124, 0.29656057182850487, 1.7848265399172913, 5.463784911164114, 6.657904643501103]
F = [2.0442631033899397e-15, 1.421511758316446e-07, 1.8463183175100548e-05, 0.0007868691311456133, 0.014875361290850615, 0.1369298809227358, 0.599832206555888, 1.0]


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def bits(seed, stream, position):
    halves = lambda x: [x & 0xFFFFFFFF, x >> 32]
    block = philox(halves(position) + halves(stream), halves(seed))
    return block[1] << 32 | block[0]


def stream_of(*parts):
    folded = 0
    for part in parts:
        folded = bits(folded, part, len(parts))
    return folded


def permutation(size, seed):
    order, stream = list(range(size)), stream_of(0x7065726D)
    for i in range(size - 1):
        j = i + (bits(seed, stream, i) * (size - i) >> 64)
        order[i], order[j] = order[j], order[i]
    return order


def polynomial(x, coefficients):
    total = 0.0
    for coefficient in coefficients:
        total = total * x + coefficient
    return total


def exact_log(x):
    number = struct.unpack("<Q", struct.pack("<d", x))[0]
    exponent = (number >> 52) - 1023
    mantissa = struct.unpack("<d", struct.pack("<Q", number & (1 << 52) - 1 | 1023 << 52))[0]
    if mantissa > 1.4142135623730951:
        mantissa, exponent = mantissa * 0.5, exponent + 1
    s = (mantissa - 1) / (mantissa + 1)
    series = 0.0
    for odd in range(21, 2, -2):
        series = (series + 1.0 / odd) * (s * s)
    return exponent * 0.6931471805599453 + 2 * (s + s * series)


def exact_sqrt(x):
    number = struct.unpack("<Q", struct.pack("<d", x))[0]
    root = struct.unpack("<d", struct.pack("<Q", (number >> 1) + 0x1FF8000000000000))[0]
    for _ in range(6):
        root = 0.5 * (root + x / root)
    return root


def exact_normal(seed, stream, position):
    """The same operations as kedge's, in Python's doubles: equal to the last bit."""
    p = ((bits(seed, stream, position) >> 12) + 0.5) * 2**-52
    q = p - 0.5
    if -0.425 < q < 0.425:
        r = 0.180625 - q * q
        return q * polynomial(r, A) / polynomial(r, B)
    r = exact_sqrt(-exact_log(p if q < 0 else 1 - p))
    x = polynomial(r - 1.6, C) / polynomial(r - 1.6, D) if r <= 5 else polynomial(r - 5, E) / polynomial(r - 5, F)
    return -x if q < 0 else x


def hash_of_normals(seed, stream, count):
    value = 0
    for i in range(count):
        number = struct.unpack("<Q", struct.pack("<d", exact_normal(seed, stream, i)))[0]
        value = (value * 31 + number) % 2**64
    return value


if __name__ == "__main__":
    print("bits(1234, 5, 6) =", hex(bits(1234, 5, 6)))
    print("stream_of(1, 2, 3) =", hex(stream_of(1, 2, 3)))
    print("permutation(10, 1234) =", permutation(10, 1234))
    print("permutation(10, 1235) =", permutation(10, 1235))
    print("uniform(42, 7, 0..3) =", [(bits(42, 7, i) >> 11) * 2**-53 for i in range(4)])
    print("normal(42, 7, 0..3) =", [NormalDist().inv_cdf(((bits(42, 7, i) >> 12) + 0.5) * 2**-52) for i in range(4)])
    for p in [0.075, 0.0750001, 0.1, 0.3, 0.9, 0.999, 1e-5, 1e-12, 1 - 1e-9]:
        print(f"quantile({p!r}) = {NormalDist().inv_cdf(p)!r}")
    print("hash of 100000 normals of (42, 9) =", hex(hash_of_normals(42, 9, 100000)))
