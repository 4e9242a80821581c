package address

// stem is a postcode that may not have been typed to its end. It may as well be a number in a street's name.
type stem struct {
	at       mask   // its word, or 0
	from, to uint32 // the postcodes it may become
	communes area   // that have one of them
}

// share is 1 for a postcode that the stem may become.
func (s *stem) share(postcode uint32) int32 {
	if postcode >= s.from && postcode < s.to {
		return 1
	}
	return 0
}

// readStem reads the word that may still grow as the beginning of a postcode: digits after words and another number, or
// so many that they are no house number.
func (q *question) readStem(last int) {
	t := q.terms[last]
	if !t.Digits || t.Tail != "" || t.Glued || len(t.Typed) > 4 || last == 0 || len(t.Typed) < 4 && !q.numbered(last) {
		return
	}
	from, to := number(t.Typed), number(t.Typed)+1
	for range 5 - len(t.Typed) {
		from, to = from*10, to*10
	}
	q.stem = stem{at: bit(last), from: from, to: to}
	communes := q.v.PostcodesCommunes(from, to)
	all := make([]uint32, communes.Len())
	for i := range all {
		all[i] = communes.At(i)
	}
	q.stem.communes = sorted(all)
}

// numbered says whether there is a number before a word.
func (q *question) numbered(before int) bool {
	for i := range before {
		if q.terms[i].Digits {
			return true
		}
	}
	return false
}
