package load

import (
	"math"
	"math/rand/v2"
)

// drawer picks keys: uniformly, or by Zipf's law with the key 0 the most
// popular.
type drawer struct {
	random *rand.Rand
	zipf   *zipf // nil: uniform
	keys   int
}

// newDrawer has a stream of its own for each connection, fixed by the seed.
// exponent is 0 for a uniform distribution.
func newDrawer(seed uint64, conn, keys int, exponent float64) *drawer {
	d := &drawer{random: rand.New(rand.NewPCG(seed, uint64(conn))), keys: keys}
	if exponent != 0 {
		d.zipf = newZipf(exponent, keys)
	}
	return d
}

func (d *drawer) draw() int {
	if d.zipf != nil {
		return d.zipf.draw(d.random)
	}
	return d.random.IntN(d.keys)
}

// zipf draws k below a bound with a probability in proportion to 1/(k+1)^exponent, for any exponent above 0: YCSB's is
// 0.99, and the one of math/rand must exceed 1. It needs neither tables nor sums, and about one logarithm a draw
// (W. Hörmann, G. Derflinger: Rejection-inversion to generate variates from monotone discrete distributions, 1996).
type zipf struct {
	exponent          float64
	first, last, sure float64 // the integral at 1.5 less h(1), and at the bound; what needs no second look
	bound             int
}

func newZipf(exponent float64, bound int) *zipf {
	z := &zipf{exponent: exponent, bound: bound}
	z.first, z.last = z.integral(1.5)-1, z.integral(float64(bound)+0.5)
	z.sure = 2 - z.inverse(z.integral(2.5)-z.h(2))
	return z
}

func (z *zipf) draw(r *rand.Rand) int {
	for {
		u := z.last + r.Float64()*(z.first-z.last)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), float64(z.bound))
		if k-x <= z.sure || u >= z.integral(k+0.5)-z.h(k) {
			return int(k) - 1
		}
	}
}

func (z *zipf) h(x float64) float64 { return math.Exp(-z.exponent * math.Log(x)) }

// integral is that of h, up to a constant, without a gap at the exponent 1.
func (z *zipf) integral(x float64) float64 {
	log := math.Log(x)
	if e := (1 - z.exponent) * log; math.Abs(e) > 1e-8 {
		return math.Expm1(e) / e * log
	}
	return log
}

func (z *zipf) inverse(u float64) float64 {
	e := max((1-z.exponent)*u, -1)
	if math.Abs(e) > 1e-8 {
		return math.Exp(math.Log1p(e) / e * u)
	}
	return math.Exp(u)
}
