package main

import "slices"

// spread is what rounds came to.
type spread struct {
	median, low, high float64 // low and high are the quartiles
	rounds            int
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return spread{
		median: quantile(sorted, 0.5), low: quantile(sorted, 0.25), high: quantile(sorted, 0.75),
		rounds: len(sorted),
	}
}

// quantile lies between the two nearest of the sorted values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	below := int(at)
	if below == len(sorted)-1 {
		return sorted[below]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}

// above says whether two spreads are apart, with s the larger: nobody wins by
// noise.
func (s spread) above(other spread) bool {
	return s.rounds > 0 && other.rounds > 0 && s.median > other.median && s.low > other.high
}
