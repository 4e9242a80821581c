package chart

// scale is the vertical axis: steps of a round number, from 0 to top.
type scale struct{ step, top int64 }

// ticksWanted is how many steps an axis has at most.
const ticksWanted = 4

// highestLine is how many times as high as the highest bar a line may be and still be in the scale. A higher one would make
// the bars too low to read, and is drawn at the top.
const highestLine = 3

// largest is the largest number of an axis. What is above it is drawn as high.
const largest = int64(1e18)

// newScale returns the axis for values up to highest. Its step is 1, 2 or 5 times a power of ten.
func newScale(highest int64) scale {
	highest = min(max(highest, 1), largest)
	for power := int64(1); ; power *= 10 {
		for _, step := range []int64{power, 2 * power, 5 * power} {
			if ticks := (highest-1)/step + 1; ticks <= ticksWanted {
				return scale{step, ticks * step}
			}
		}
	}
}

// height is how high a value is on an axis of a height.
func (s scale) height(value, axis float64) float64 {
	return min(max(value, 0)/float64(s.top), 1) * axis
}

// labelSteps are the distances of labelled days: a few days, weeks, months.
var labelSteps = []int{1, 2, 5, 7, 14, 30, 61, 91}

// labelsWanted is how many labels of days fit on a phone.
const labelsWanted = 7

// labelStep returns every how many of n days one has a label.
func labelStep(n int) int {
	for _, step := range labelSteps {
		if (n-1)/step < labelsWanted {
			return step
		}
	}
	return (n + labelsWanted - 1) / labelsWanted
}
