package main

import (
	"slices"
	"testing"
)

func TestSizesAreWholeNumbersOfThousandsOrMillions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int{
		"1": {1}, "10k, 1M": {10_000, 1_000_000}, "100M": {100_000_000},
		"10kM": nil, "10Mk": nil, "10kk": nil, "k": nil, "": nil, "0": nil, "-1k": nil, "101M": nil, "1.5M": nil,
	} {
		if got, err := parseSizes(text); (err == nil) != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}
