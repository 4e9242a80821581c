package search

// How much each part of an address weighs in the score. Only the parts that were typed count, so the shares need no fixed
// sum. The street weighs most, because the other parts are easier to get wrong.
const (
	StreetShare   = 50
	CityShare     = 25
	PostcodeShare = 12
	NumberShare   = 10
)

// evidence is all that the score of a candidate depends on. Parts that were not typed do not count.
type evidence struct {
	hasStreet bool
	streetFit int32 // in thousandths

	hasPlace   bool
	placeSim   int32 // in hundredths
	isLate     bool  // the name stands where a commune is expected
	isOldOther bool  // it is the name of a former commune that the address is not in, or of an office that does not deliver to it

	hasCode bool // an INSEE code was given
	isCoded bool // it is that of the commune

	postcode postcodeRelation

	hasNumber bool
	number    numberFit

	isElsewhere bool // the commune is not the one that was typed

	most int32 // the highest score beside a wrong postcode, 0 if it is not wrong
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

// worth is what a fit adds to the score, in thousandths of the share of the number.
func (f numberFit) worth() int32 {
	return [...]int32{1000, 970, 900, 800, 700, 300, 0}[f]
}

// maxElsewhereScore is the highest score of an address in another commune than the typed one. It lies below
// likelyScore, so the search goes on, and below that of a misspelt address in the typed commune beside a wrong postcode.
const maxElsewhereScore = 7270

// score is the weighted mean of what the typed parts are worth, of 10,000. A name of a place counts slightly less
// where no commune is expected, since it may belong to the street.
func (e *evidence) score() int32 {
	var sum shares
	if e.hasStreet {
		sum.add(StreetShare, e.streetFit)
	}
	if e.hasPlace {
		worth := e.placeSim * 10
		if !e.isLate {
			worth -= 80
		}
		if e.isOldOther {
			worth = worth * 8 / 10
		}
		sum.add(CityShare, worth)
	}
	if e.hasCode {
		sum.add(CityShare, thousandIf(e.isCoded))
	}
	if e.postcode != noPostcode {
		sum.add(PostcodeShare, e.postcode.worth())
	}
	if e.hasNumber {
		sum.add(NumberShare, e.number.worth())
	}
	score := sum.score()
	if e.most > 0 {
		score -= max(e.perfect()-e.most, 0)
	}
	if e.isElsewhere {
		return min(score, maxElsewhereScore)
	}
	return score
}

// The highest scores of an address beside a postcode that is not its own.
const (
	maxMiscodedScore   = 8500 // its commune was typed
	maxUnnamedMiscoded = 8000 // no commune was typed
)

// perfect is the score of an address that fits in all parts but the postcode.
func (e evidence) perfect() int32 {
	e.streetFit, e.placeSim, e.isLate, e.isOldOther, e.number, e.isElsewhere, e.most = 1000, 100, true, false, numberFound, false, 0
	return e.score()
}

// thousandIf is the full worth if ok, else none.
func thousandIf(ok bool) int32 {
	if ok {
		return 1000
	}
	return 0
}

// shares sums what parts are worth, and their shares, for a weighted mean.
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

// unknownWorth is what a number of unknown words leaves of the fit of a street, in thousandths. The first
// takes more than the others, so that a misspelt street that explains the words comes first.
func unknownWorth(n int) int32 {
	if n == 0 {
		return 1000
	}
	return max(845-25*int32(n), 500)
}

// fitStreet is how well a name fits, in thousandths. It multiplies the share of the typed words that the name
// holds with a factor for the share of the name that was typed. That factor is milder for an unfinished line,
// where the rest of the name may still follow.
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
