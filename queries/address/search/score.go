package search

// How much each part of an address weighs in the score, of those that were typed.
const (
	streetShare   = 50
	cityShare     = 25
	postcodeShare = 12
	numberShare   = 10
)

// evidence is all that the score of a candidate depends on. What was not typed does not count.
type evidence struct {
	hasStreet bool
	streetFit int32 // in thousandths

	hasPlace   bool
	placeSim   int32 // in hundredths
	isLate     bool  // the name stands where a commune is expected
	isOldOther bool  // it is that of a former commune that the address is not in

	hasCode bool // a commune's code was given
	isCoded bool // and it is this commune's

	postcode postcodeRelation

	hasNumber bool
	number    numberFit

	isElsewhere bool // the commune is not the one that was typed
}

// numberFit says how well the house number fits.
type numberFit uint8

const (
	numberFound numberFit = iota
	numberOtherRep
	numberInList  // one of several that were typed
	numberNoRep   // found without its repetition index
	numberOpen    // it may be a complement's
	numberMissing // the street does not have it
	numberImpossible
)

// worth is what a fit is worth, in thousandths.
func (f numberFit) worth() int32 {
	return [...]int32{1000, 970, 900, 800, 700, 300, 0}[f]
}

// elsewhereMost is the highest score of an address in another commune than the typed one.
const elsewhereMost = 7900

// score sums what the typed parts are worth, of 10,000.
func (e *evidence) score() int32 {
	var sum shares
	if e.hasStreet {
		sum.add(streetShare, e.streetFit)
	}
	if e.hasPlace {
		worth := e.placeSim * 10
		if !e.isLate {
			worth -= 80
		}
		if e.isOldOther {
			worth = worth * 8 / 10
		}
		sum.add(cityShare, worth)
	}
	if e.hasCode {
		sum.add(cityShare, thousandIf(e.isCoded))
	}
	if e.postcode != noPostcode {
		sum.add(postcodeShare, e.postcode.worth())
	}
	if e.hasNumber {
		sum.add(numberShare, e.number.worth())
	}
	if e.isElsewhere {
		return min(sum.score(), elsewhereMost)
	}
	return sum.score()
}

func thousandIf(ok bool) int32 {
	if ok {
		return 1000
	}
	return 0
}

// shares sums parts, in thousandths of their shares.
type shares struct{ worth, of int32 }

func (s *shares) add(share, thousandths int32) {
	s.worth += share * thousandths
	s.of += share
}

func (s *shares) score() int32 {
	if s.of == 0 {
		return 0
	}
	return s.worth * 10 / s.of
}

// fitStreet is how well a name fits, in thousandths: how much of what was typed it holds, and how much of it was typed.
func fitStreet(matched, total int32, a *alignment, completing bool) int32 {
	if total == 0 || a.totalWeight == 0 {
		return 0
	}
	typed, named := min(matched*10/total, 1000), min(a.nameWeight*10/a.totalWeight, 1000)
	if completing {
		return typed * (800 + named/5) / 1000
	}
	return typed * (500 + named/2) / 1000
}
