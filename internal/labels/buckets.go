package labels

// DecisionBuckets are the upper bounds of a histogram of decisions, in seconds.
func DecisionBuckets() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
}

// WaitBuckets are those of a histogram of waits for locks.
func WaitBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
}
