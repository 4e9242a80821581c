package search

import "testing"

// whole is the evidence of an address that is there, typed with all its parts.
func whole() evidence {
	return evidence{hasStreet: true, streetFit: 1000, hasPlace: true, placeSim: 100, isLate: true, postcode: samePostcode, hasNumber: true}
}

func TestAnAddressTypedInFullScoresAll(t *testing.T) {
	t.Parallel()
	e := whole()
	if got := e.score(); got != 10000 {
		t.Errorf("got %d, want 10000", got)
	}
}

func TestWhatWasNotTypedDoesNotCount(t *testing.T) {
	t.Parallel()
	e := evidence{hasStreet: true, streetFit: 900}
	if got := e.score(); got != 9000 {
		t.Errorf("a street alone: %d, want 9000", got)
	}
	if got := (&evidence{}).score(); got != 0 {
		t.Errorf("nothing typed: %d, want 0", got)
	}
}

func TestEachLossLowersTheScore(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*evidence){
		"a street that fits less":      func(e *evidence) { e.streetFit = 900 },
		"a misspelt commune":           func(e *evidence) { e.placeSim = 85 },
		"a commune that stands before": func(e *evidence) { e.isLate = false },
		"another former commune":       func(e *evidence) { e.isOldOther = true },
		"a code of another commune":    func(e *evidence) { e.hasCode = true },
		"a suffix written otherwise":   func(e *evidence) { e.number = numberOtherRep },
		"another address of the list":  func(e *evidence) { e.number = numberInList },
		"a missing number":             func(e *evidence) { e.number = numberMissing },
		"another postcode of the city": func(e *evidence) { e.postcode = cityPostcode },
	} {
		e, full := whole(), whole()
		if lose(&e); e.score() >= full.score() {
			t.Errorf("%s: %d, want less than %d", name, e.score(), full.score())
		}
	}
}

func TestPostcodesAndNumbersAreWorthLessTheFurtherTheyAre(t *testing.T) {
	t.Parallel()
	for last, r := int32(1001), samePostcode; r <= otherPostcode; r++ {
		if r == prefixPostcode {
			continue // worth as much as the whole one
		}
		if r.worth() >= last {
			t.Errorf("relation %d is worth %d, the one before %d", r, r.worth(), last)
		}
		last = r.worth()
	}
	for last, f := int32(1001), numberFound; f <= numberImpossible; f++ {
		if f.worth() >= last {
			t.Errorf("fit %d is worth %d, the one before %d", f, f.worth(), last)
		}
		last = f.worth()
	}
}

func TestAnAddressElsewhereStaysBelowWhatIsSure(t *testing.T) {
	t.Parallel()
	e := whole()
	e.isElsewhere = true
	if got := e.score(); got != maxElsewhereScore || got >= 8000 {
		t.Errorf("got %d, want %d", got, maxElsewhereScore)
	}
}

func TestANameFitsByWhatWasTypedAndByWhatItHas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name               string
		matched, total     int32
		named, whole, want int32
		completing         bool
	}{
		{"all typed", 13500, 135, 13500, 135, 1000, false},
		{"half of the name typed", 10000, 100, 10000, 200, 750, false},
		{"half of what was typed is in it", 10000, 200, 10000, 100, 500, false},
		{"half of the name typed so far", 10000, 100, 10000, 200, 900, true},
		{"nothing typed", 0, 0, 0, 100, 0, false},
	} {
		if got := fitStreet(c.matched, c.total, &alignment{nameWeight: c.named, totalWeight: c.whole}, c.completing); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
